//! Makes a program that fails smaller while it still fails.

use crate::common::{Lay, value_of};
use crate::program::{Program, Ref, Step};
use fuse_runtime::Device;

/// The smallest program found that `fails`: one result, values in the place of the steps that made them, plain layouts.
pub fn shrink(program: Program, fails: &dyn Fn(&Program) -> bool) -> Program {
    let mut smallest = program;
    while let Some(smaller) = smaller(&smallest).into_iter().find(|candidate| fails(candidate)) {
        smallest = smaller;
    }
    smallest
}

fn smaller(program: &Program) -> Vec<Program> {
    let mut candidates = vec![];
    if program.outs.len() > 1 {
        let alone = |&out: &Ref| Program { outs: vec![out], ..program.clone() };
        candidates.extend(program.outs.iter().map(alone));
        let without = |skip: usize| {
            let outs = program.outs.iter().enumerate().filter(|(at, _)| *at != skip).map(|(_, &out)| out).collect();
            Program { outs, ..program.clone() }
        };
        candidates.extend((0..program.outs.len()).map(without));
    }
    candidates.extend(earlier_results(program));
    candidates.extend(cut_short(program));
    candidates.extend((0..program.steps.len()).filter_map(|at| in_rows(program, at)));
    candidates
        .into_iter()
        .map(|candidate| candidate.pruned())
        .filter(|candidate| size(candidate) < size(program))
        .collect()
}

/// What shrinking brings down.
fn size(program: &Program) -> (usize, usize, usize, usize) {
    let calls = program.steps.iter().filter(|step| matches!(step, Step::Call(..))).count();
    let odd = program.inputs().filter(|(_, lay)| *lay != Lay::Contiguous).count();
    (calls, program.outs.len(), program.steps.len(), odd)
}

/// The program with an earlier step's result in the place of its last one.
fn earlier_results(program: &Program) -> Vec<Program> {
    let calls = (0..program.steps.len()).filter(|&at| matches!(program.steps[at], Step::Call(..)));
    let ending = |step: usize| Program { outs: vec![Ref { step, out: 0 }], ..program.clone() };
    calls.map(ending).collect()
}

/// The program with an argument in the place of one step.
fn cut_short(program: &Program) -> Vec<Program> {
    let Ok(trace) = program.eager(Device::cpu()) else { return vec![] };
    let calls =
        (0..program.steps.len()).filter(|&at| matches!(program.steps[at], Step::Call(..)) && trace[at].len() == 1);
    let cut = |at: usize| {
        let mut steps = program.steps.clone();
        steps[at] = Step::Input(value_of(&trace[at][0]), Lay::Contiguous);
        Program { steps, outs: program.outs.clone() }
    };
    calls.map(cut).collect()
}

/// The program with an argument in row-major order.
fn in_rows(program: &Program, at: usize) -> Option<Program> {
    let Step::Input(value, lay) = &program.steps[at] else { return None };
    let mut steps = program.steps.clone();
    steps[at] = Step::Input(value.clone(), Lay::Contiguous);
    (*lay != Lay::Contiguous).then(|| Program { steps, outs: program.outs.clone() })
}
