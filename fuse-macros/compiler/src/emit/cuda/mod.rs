//! CUDA C++ for a plan: one text with a section per kernel, for NVRTC without headers.
//!
//! Every section compiles on its own with `-DKERNEL_name` and the defines of its variant, see [`crate::plan::abi`].

mod attention;
mod column;
pub mod compile;
mod finish;
mod helpers;
mod line;
mod literal;
mod map;
mod matmul;
mod params;
mod row;
mod scope;
mod small;
mod stores;
mod tile;

use crate::emit::writer::Writer;
use crate::plan::abi::Part;
use crate::plan::{Fused, Kernel, Kind, Plan, Step};
use crate::types::DType;
use scope::Scope;

/// The CUDA text of a plan.
pub fn text(plan: &Plan) -> String {
    source(&plan.name, [plan])
}

/// The CUDA text of all plans of a function, whose kernels have names of their own.
pub fn source<'p>(name: &str, plans: impl IntoIterator<Item = &'p Plan>) -> String {
    let mut sections = String::new();
    let mut generic = false;
    for plan in plans {
        generic |= is_generic(plan);
        sections.extend(plan.steps.iter().map(|step| step_text(plan, step)));
        sections.extend(plan.fused.iter().map(|fused| attention_text(plan, fused)));
        sections.extend(
            plan.products.iter().map(|products| {
                section(plan, &products.program, |w, scope| matmul::write_products(w, scope, products))
            }),
        );
        sections.extend(plan.small.iter().map(|small| small::section(plan, small)));
    }
    let helpers = helpers::needed(&sections, generic);
    let ops: String = crate::op::helpers::needed_by(&sections).iter().map(|h| format!("{}\n", h.text)).collect();
    format!("// {name}\n\n{helpers}{ops}{sections}")
}

/// The text of a kernel that does what the one map of a plan does for many sets of arguments at once, see [`abi::list`](crate::plan::abi::list).
pub fn list(plan: &Plan, kernel: &Kernel) -> String {
    let section = section(plan, kernel, map::write_list);
    let helpers = helpers::needed(&section, is_generic(plan));
    let ops: String = crate::op::helpers::needed_by(&section).iter().map(|h| format!("{}\n", h.text)).collect();
    format!("// {}, for a list\n\n{helpers}{ops}{section}", plan.name)
}

fn step_text(plan: &Plan, step: &Step) -> String {
    match step {
        Step::Kernel(kernel) => section(plan, kernel, write_kernel),
        Step::Matmul(matmul) => {
            let template = section(plan, &matmul.epilogue, |w, scope| matmul::write(w, scope, matmul));
            let rest = matmul.lib.rest.as_ref().map(|rest| section(plan, rest, write_kernel));
            template + &rest.unwrap_or_default()
        }
    }
}

/// The text of attention in one kernel and of its way back.
fn attention_text(plan: &Plan, fused: &Fused) -> String {
    let back = fused.back.iter().flat_map(|_| Part::BACK);
    let text = |part: Part| section(plan, part.program(fused), |w, scope| attention::write(w, scope, fused, part));
    Part::forward(fused).iter().copied().chain(back).map(text).collect()
}

fn section(plan: &Plan, kernel: &Kernel, write: impl FnOnce(&mut Writer, &Scope<'_>)) -> String {
    let mut w = Writer::default();
    w.line(format!("#if defined(KERNEL_{})", kernel.name));
    w.lines(header(plan, kernel));
    write(&mut w, &Scope::new(plan, kernel));
    w.line("#endif");
    w.line("");
    w.finish()
}

fn write_kernel(w: &mut Writer, scope: &Scope<'_>) {
    match scope.kernel.kind {
        Kind::Map => map::write(w, scope),
        Kind::Row => row::write(w, scope),
        Kind::Column => column::write(w, scope),
        Kind::Line => line::write(w, scope),
    }
}

/// What the user wrote, line by line.
fn header(plan: &Plan, kernel: &Kernel) -> Vec<String> {
    let mut lines = vec![format!("// {}: {}", kernel.name, crate::plan::print::kernel(plan, kernel))];
    let mut places: Vec<u32> = kernel.ops.clone();
    places.dedup();
    let places = places.iter().filter_map(|p| plan.places.get(*p as usize)).filter(|p| !p.text.is_empty());
    lines.extend(places.map(|p| format!("//   {}:{}  {}", p.file, p.line, one_line(&p.text))));
    lines
}

/// Comments end with their line, and a backslash would continue them.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.trim_end_matches('\\').to_owned()
}

/// The head of a kernel with its parameters.
fn signature(scope: &Scope<'_>, threads: &str, parameters: &[String]) -> String {
    let list = parameters.join(",\n    ");
    format!("extern \"C\" __global__ void __launch_bounds__({threads}) {}(\n    {list})", scope.kernel.name)
}

fn is_generic(plan: &Plan) -> bool {
    let generic = |dtype: &DType| matches!(dtype, DType::Param(_) | DType::Compute(_));
    plan.bufs.iter().any(|b| generic(&b.ty.dtype)) || plan.scalars.iter().any(generic)
}
