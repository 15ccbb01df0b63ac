//! Several small kernels in one launch: a block finds the one it works for, and which of its blocks it is.
//!
//! Each is a function of its own. What specialises it stands in defines with its number, which have their usual names
//! while its text is read.

use super::params::parameters;
use super::scope::Scope;
use super::{compile, header};
use super::{map, row};
use crate::emit::writer::Writer;
use crate::plan::abi::{self, THREADS};
use crate::plan::{Kernel, Kind, Plan, SmallKernels};

/// The section of the kernel.
pub(super) fn section(plan: &Plan, small: &SmallKernels) -> String {
    let mut w = Writer::default();
    w.line(format!("#if defined(KERNEL_{})", small.name));
    w.line(format!("// {}: {} kernels in one launch", small.name, small.count));
    w.line("#undef RANK");
    w.line("#undef VEC");
    w.line(format!("#define THREADS {THREADS}"));
    for (n, kernel) in small.steps(plan).enumerate() {
        function(&mut w, plan, kernel, n);
    }
    kernel(&mut w, plan, small);
    w.line("#endif");
    w.line("");
    w.finish()
}

/// What one of them does in one of its blocks.
fn function(w: &mut Writer, plan: &Plan, kernel: &Kernel, n: usize) {
    let scope = Scope::new(plan, kernel);
    let steps = (0..kernel.leaves.len() + kernel.stores.len()).map(|operand| format!("STEP_{operand}"));
    let of_walk: &[&str] = if kernel.kind == Kind::Row { &["INNER_RANK", "TEAM", "ITEMS", "WHOLE"] } else { &[] };
    let own = ["RANK", "VEC"].iter().chain(of_walk).map(|&name| name.to_owned()).chain(steps);
    let own: Vec<String> = own.collect();
    w.lines(header(plan, kernel));
    w.lines(own.iter().map(|name| format!("#define {name} PART_{n}_{name}")));
    let list = [vec!["const unsigned block".to_owned()], parameters(&scope)].concat().join(",\n    ");
    w.block(format!("static __device__ __forceinline__ void {}(\n    {list})", kernel.name), |w| match kernel.kind {
        Kind::Row => row::kept_behind(w, &scope, "block"),
        _ => map::body_behind(w, &scope, "block"),
    });
    w.lines(own.iter().map(|name| format!("#undef {name}")));
}

/// The kernel, whose parameters are those of all, by number.
fn kernel(w: &mut Writer, plan: &Plan, small: &SmallKernels) {
    let room = abi::small::room(small.count as usize);
    w.line("// `of` is the first block behind those of a part.");
    w.line(format!("struct fuse_ends {{ unsigned of[{room}]; }};"));
    let (mut list, mut calls) = (vec!["const __grid_constant__ fuse_ends end".to_owned()], vec![]);
    for (n, kernel) in small.steps(plan).enumerate() {
        let mut given = vec!["block".to_owned()];
        for (k, parameter) in parameters(&Scope::new(plan, kernel)).into_iter().enumerate() {
            let (ty, _) = parameter.rsplit_once(' ').expect("a parameter has a type and a name");
            list.push(format!("{} of_{n}_{k}", own_ranks(ty, n)));
            given.push(format!("of_{n}_{k}"));
        }
        calls.push(format!("case {n}: return {}({});", kernel.name, given.join(", ")));
    }
    let list = list.join(",\n    ");
    w.block(format!("extern \"C\" __global__ void __launch_bounds__({THREADS}) {}(\n    {list})", small.name), |w| {
        w.line(compile::WAITS);
        map::find(w, "part", "end.of", &(room / 2).to_string());
        w.block("switch (part)", |w| w.lines(calls));
    });
}

/// A type in which the ranks of a part have their numbers.
fn own_ranks(ty: &str, n: usize) -> String {
    let inner = ty.replace("INNER_RANK", "INNER");
    inner.replace("RANK", &format!("PART_{n}_RANK")).replace("INNER", &format!("PART_{n}_INNER_RANK"))
}
