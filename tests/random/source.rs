//! Programs as Rust functions under `#[compile]`, so that rustc compiles the loops that are emitted for them.

use crate::program::{Operand, Param, Program, Size, Step};
use fuse_compiler::op::{Attr, Call, Literal, Op, ParamKind};
use fuse_compiler::types::DType;
use fuse_runtime::Device;
use std::fmt::Write;

/// The ops whose index operand must stay in range, with its place.
const INDEXED: [(&str, usize); 4] = [("gather", 1), ("index_select", 1), ("scatter_add", 1), ("index_add", 1)];

/// The text of a file of functions, one for each program.
pub fn file(programs: &[(u64, Program)]) -> String {
    let mut text = String::from(
        "// Made by `cargo test --test random -- --ignored`, which writes this file anew; not to be edited.\n\n\
         use crate::compiled::{Argument, Function, results, tensor};\n\
         use crate::common::Lay;\n\
         use fuse_compiler::types::DType;\n\
         use fuse_runtime::prelude::*;\n",
    );
    for (seed, program) in programs {
        text += &function(*seed, program);
    }
    text += "\n/// Every function with its arguments.\npub const FUNCTIONS: &[Function] = &[\n";
    for (seed, program) in programs {
        text += &entry(*seed, program);
    }
    text + "];\n"
}

fn function(seed: u64, program: &Program) -> String {
    let types = Types::of(program);
    let inputs = places(program);
    let params: Vec<String> = inputs.iter().map(|&at| format!("v{at}: &{}", types.text(at))).collect();
    let outs: Vec<String> = program.outs.iter().map(|out| types.text(out.step)).collect();
    let mut text = format!("\n#[compile]\npub fn p{seed}({}) -> ({},) {{\n", params.join(", "), outs.join(", "));
    for (at, step) in program.steps.iter().enumerate() {
        if let Step::Call(op, operands, params) = step {
            let value = Printer { inputs: &inputs }.call(*op, operands, params);
            writeln!(text, "    let v{at} = {value};").expect("a string takes text");
        }
    }
    let results: Vec<String> = program.outs.iter().map(|out| format!("v{}.clone()", out.step)).collect();
    text + &format!("    ({},)\n}}\n", results.join(", "))
}

fn entry(seed: u64, program: &Program) -> String {
    let inputs = places(program);
    let types = Types::of(program);
    let arguments: Vec<String> = inputs.iter().map(|&at| argument(program, at)).collect();
    let tensors: Vec<String> =
        inputs.iter().enumerate().map(|(k, &at)| format!("&tensor::<{}>(x, {k})", types.parts(at))).collect();
    let list = tensors.join(", ");
    format!(
        "    Function {{\n        seed: {seed},\n        arguments: &[{}],\n        compiled: |x| results!({}; p{seed}({list})),\n        \
         eager: |x| results!({}; p{seed}::eager({list})),\n    }},\n",
        arguments.join(", "),
        program.outs.len(),
        program.outs.len()
    )
}

/// The steps that are arguments.
fn places(program: &Program) -> Vec<usize> {
    (0..program.steps.len()).filter(|&at| matches!(program.steps[at], Step::Input(..))).collect()
}

fn argument(program: &Program, at: usize) -> String {
    let Step::Input(value, lay) = &program.steps[at] else { unreachable!("a place of an argument") };
    let indexes = |step: &Step| match step {
        Step::Call(op, operands, _) => INDEXED.iter().any(|&(name, place)| {
            name == op.name && matches!(operands[place], Operand::Value(index) if index.step == at)
        }),
        Step::Input(..) => false,
    };
    let below = match program.steps.iter().any(indexes) {
        true => format!("Some({})", value.as_ints().iter().max().map_or(1, |last| last + 1)),
        false => "None".to_owned(),
    };
    format!(
        "Argument {{ dtype: DType::{:?}, dims: &{:?}, lay: Lay::{lay:?}, below: {below} }}",
        value.dtype, value.dims
    )
}

/// The types of all values.
struct Types(Vec<(DType, usize)>);

impl Types {
    fn of(program: &Program) -> Types {
        let trace = program.eager(Device::cpu()).expect("programs that fail are not written");
        Types(trace.iter().map(|results| (results[0].dtype(), results[0].layout().rank())).collect())
    }

    fn parts(&self, at: usize) -> String {
        format!("{}, {}", self.0[at].0, self.0[at].1)
    }

    fn text(&self, at: usize) -> String {
        format!("Tensor<{}>", self.parts(at))
    }
}

struct Printer<'a> {
    /// The steps that are arguments, which are references already.
    inputs: &'a [usize],
}

impl Printer<'_> {
    fn call(&self, op: Op, operands: &[Operand], params: &[Param]) -> String {
        if op.call == Call::Function {
            let list: Vec<String> = operands.iter().map(|operand| self.operand(operand)).collect();
            return format!("Tensor::{}([{}], {})", op.name, list.join(", "), self.param(&params[0], ""));
        }
        match (op.operator, operands) {
            (Some(symbol), [a, b]) => return format!("{} {symbol} {}", self.operand(a), self.operand(b)),
            (Some(symbol), [a]) => return format!("{symbol}{}", self.operand(a)),
            _ => {}
        }
        let Operand::Value(receiver) = &operands[0] else { unreachable!("a receiver is a tensor") };
        let (mut operands, mut params) = (operands[1..].iter(), params.iter());
        let (mut kind, mut list) = (String::new(), vec![]);
        for param in op.params {
            match param.kind {
                ParamKind::DType => kind = format!("::<{}>", self.param(params.next().expect("an attribute"), "")),
                of if of.is_operand() => list.push(self.operand(operands.next().expect("an operand"))),
                _ => list.push(
                    self.param(params.next().expect("an attribute"), if op.name == "slice" { " as isize" } else { "" }),
                ),
            }
        }
        format!("v{}.{}{kind}({})", receiver.step, op.name, list.join(", "))
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Value(at) if self.inputs.contains(&at.step) => format!("v{}", at.step),
            Operand::Value(at) => format!("&v{}", at.step),
            Operand::Scalar(Literal::Float(x), dtype) => format!("{x:?}{dtype}"),
            Operand::Scalar(Literal::Int(k), dtype) => format!("{k}{dtype}"),
            Operand::Scalar(Literal::Bool(flag), _) => flag.to_string(),
        }
    }

    /// An attribute; sizes of tensors are converted as `cast` says.
    fn param(&self, param: &Param, cast: &str) -> String {
        match param {
            Param::Attr(Attr::Int(k)) => k.to_string(),
            Param::Attr(Attr::Ints(list)) => format!("{list:?}"),
            Param::Attr(Attr::DType(dtype)) => dtype.to_string(),
            Param::Attr(Attr::Bool(flag)) => flag.to_string(),
            Param::Attr(Attr::Dim(dim)) => dim.as_const().expect("a known size").to_string(),
            Param::Attr(other) => unreachable!("{other:?} is not generated"),
            Param::Size(size) => format!("{}{cast}", self.size(size)),
            Param::Sizes(sizes) => {
                format!("[{}]", sizes.iter().map(|size| self.size(size)).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn size(&self, size: &Size) -> String {
        match size {
            Size::Known(n) => n.to_string(),
            Size::Extent(at, axis) => format!("v{}.dims()[{axis}]", at.step),
            Size::Count(at) => format!("v{}.numel()", at.step),
        }
    }
}
