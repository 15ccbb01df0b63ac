//! Several maps in one launch: a block finds the map it works for, and which of its blocks it is.
//!
//! Each map is a function of its own. What specialises it stands in defines with its number, which have their usual names
//! while its text is read.

use super::map;
use super::params::parameters;
use super::scope::Scope;
use super::{compile, header};
use crate::emit::writer::Writer;
use crate::plan::abi::{self, THREADS};
use crate::plan::{Kernel, Maps, Plan};

/// The section of the kernel.
pub(super) fn section(plan: &Plan, maps: &Maps) -> String {
    let mut w = Writer::default();
    w.line(format!("#if defined(KERNEL_{})", maps.name));
    w.line(format!("// {}: {} maps in one launch", maps.name, maps.count));
    w.line("#undef RANK");
    w.line("#undef VEC");
    for (n, kernel) in maps.steps(plan).enumerate() {
        function(&mut w, plan, kernel, n);
    }
    kernel(&mut w, plan, maps);
    w.line("#endif");
    w.line("");
    w.finish()
}

/// What one map does in one of its blocks.
fn function(w: &mut Writer, plan: &Plan, kernel: &Kernel, n: usize) {
    let scope = Scope::new(plan, kernel);
    let steps = (0..kernel.leaves.len() + kernel.stores.len()).map(|operand| format!("STEP_{operand}"));
    let own: Vec<String> = ["RANK".to_owned(), "VEC".to_owned()].into_iter().chain(steps).collect();
    w.lines(header(plan, kernel));
    w.lines(own.iter().map(|name| format!("#define {name} MAP_{n}_{name}")));
    let list = [vec!["const unsigned block".to_owned()], parameters(&scope)].concat().join(",\n    ");
    w.block(format!("static __device__ __forceinline__ void {}(\n    {list})", kernel.name), |w| {
        map::body_behind(w, &scope, "block");
    });
    w.lines(own.iter().map(|name| format!("#undef {name}")));
}

/// The kernel, whose parameters are those of all maps, by number.
fn kernel(w: &mut Writer, plan: &Plan, maps: &Maps) {
    let room = abi::maps::room(maps.count as usize);
    w.line("// `of` is the first block behind those of a map.");
    w.line(format!("struct fuse_ends {{ unsigned of[{room}]; }};"));
    let (mut list, mut calls) = (vec!["const __grid_constant__ fuse_ends end".to_owned()], vec![]);
    for (n, kernel) in maps.steps(plan).enumerate() {
        let mut given = vec!["block".to_owned()];
        for (k, parameter) in parameters(&Scope::new(plan, kernel)).into_iter().enumerate() {
            let (ty, _) = parameter.rsplit_once(' ').expect("a parameter has a type and a name");
            list.push(format!("{} of_{n}_{k}", ty.replace("RANK", &format!("MAP_{n}_RANK"))));
            given.push(format!("of_{n}_{k}"));
        }
        calls.push(format!("case {n}: return {}({});", kernel.name, given.join(", ")));
    }
    let list = list.join(",\n    ");
    w.block(format!("extern \"C\" __global__ void __launch_bounds__({THREADS}) {}(\n    {list})", maps.name), |w| {
        w.line(compile::WAITS);
        map::find(w, "map", "end.of", &(room / 2).to_string());
        w.block("switch (map)", |w| w.lines(calls));
    });
}
