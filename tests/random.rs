//! Random programs, run op by op and as one compiled graph: the same bits.
//!
//! `FUSE_SEEDS=10000` goes through more programs than every run does, `FUSE_SEED=17` through one, and `FUSE_DEVICE=cuda:0`
//! runs them on a GPU, where each is called four times by default and four in `reduce-overhead`: step by step, as it is taken down, and
//! again, as a graph there. `FUSE_MODE` asks for one mode. Most of the time on a GPU goes into compiling, of which one
//! process does not do much at a time, so many seeds want several: `FUSE_SHARD=3/16` takes every sixteenth from the third on.
//! Products of matrices are of halves of small odd numbers, so that their sums are exact in any order and nothing of a program may
//! differ.

mod common;
#[path = "random/compiled.rs"]
mod compiled;
#[path = "random/generate.rs"]
mod generate;
#[rustfmt::skip]
#[path = "random/generated.rs"]
mod generated;
#[path = "random/gradients.rs"]
mod gradients;
#[path = "random/program.rs"]
mod program;
#[path = "random/shrink.rs"]
mod shrink;
#[path = "random/source.rs"]
mod source;

use common::{device, on_all_cores, report_programs, same_bits, seeds};
use compiled::Function;
use fuse_compiler::op::{Op, table};
use fuse_runtime::rt::Mode;
use fuse_runtime::{Device, Error};
use program::{Program, Run, Trace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::RwLock;

/// Held for writing while the generator of the device must give numbers to one program only.
static DRAWS: RwLock<()> = RwLock::new(());

/// Compares a program with itself, op by op.
fn compare(program: &Program) -> Result<(), String> {
    caught(|| compare_or_panic(program)).and_then(|verdict| verdict)
}

/// What `body` gives, or what it panicked with.
fn caught<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        format!("panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("of another type"))
    })
}

fn compare_or_panic(program: &Program) -> Result<(), String> {
    let _alone = program.draws().then(|| DRAWS.write().unwrap_or_else(|poisoned| poisoned.into_inner()));
    match run_twice(program) {
        (Ok(trace), Ok(runs)) => runs.iter().try_for_each(|run| compare_run(run, program, &trace)),
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(error)) => Err(format!("compiled fails: {error}")),
        (Err(error), Ok(_)) => Err(format!("eager fails: {error}")),
    }
}

fn compare_run(Run { mode, call, results }: &Run, program: &Program, trace: &Trace) -> Result<(), String> {
    for (k, (got, out)) in results.iter().zip(&program.outs).enumerate() {
        same_bits(got, &trace[out.step][out.out])
            .map_err(|text| format!("{}, call {call}, result {k}: {text}", mode.word()))?;
    }
    Ok(())
}

/// The results of every step run by itself, and of calls of the whole.
fn run_twice(program: &Program) -> (Result<Trace, Error>, Result<Vec<Run>, Error>) {
    seed(program);
    let eager = program.eager(device());
    let (modes, calls) = ways();
    (eager, program.compiled(&modes, calls, &|| seed(program)))
}

/// The modes of calls, and how many there are in each. On a processor all are alike.
fn ways() -> (Vec<Mode>, usize) {
    let asked = std::env::var("FUSE_MODE").ok().map(|word| Mode::from_word(&word).expect("FUSE_MODE is a mode"));
    match device().is_cpu() {
        true => (vec![Mode::Default], 1),
        false => (asked.map_or(vec![Mode::Default, Mode::ReduceOverhead], |mode| vec![mode]), 4),
    }
}

fn seed(program: &Program) {
    if program.draws() {
        device().manual_seed(7);
    }
}

/// Making a program runs its steps, which may draw.
fn make(seed: u64) -> Program {
    let _others_draw_too = DRAWS.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    caught(|| generate::program(seed)).unwrap_or_else(|text| panic!("seed {seed} makes no program: {text}"))
}

/// Checks programs of seeds and gives a report of the first that fail, made small.
fn check(seeds: &[u64]) {
    let made = on_all_cores(seeds, |&seed| (seed, make(seed)));
    let (drawing, others): (Vec<_>, Vec<_>) = made.into_iter().partition(|(_, program)| program.draws());
    let differs = |item: &(u64, Program)| compare(&item.1).is_err().then(|| item.clone());
    let mut failures = on_all_cores(&others, differs);
    // One program has the generator at a time: what takes long on a GPU, compiling, is done before.
    on_all_cores(if device().is_cpu() { &[] } else { &drawing[..] }, |(_, program)| {
        drop(caught(|| run_twice(program)))
    });
    failures.extend(drawing.iter().map(differs));
    let failures: Vec<(u64, Program)> = failures.into_iter().flatten().collect();
    let reports: Vec<String> =
        failures.iter().take(5).map(|(seed, program)| report(*seed, program, &compare)).collect();
    let all: Vec<u64> = failures.iter().map(|(seed, _)| *seed).collect();
    assert!(failures.is_empty(), "{} programs differ: {all:?}\n\n{}", failures.len(), reports.join("\n"));
}

/// What a program that differs comes down to.
fn report(seed: u64, program: &Program, compare: &dyn Fn(&Program) -> Result<(), String>) -> String {
    let small = shrink::shrink(program.clone(), &|candidate| compare(candidate).is_err());
    let reason = compare(&small).err().unwrap_or_else(|| "differs only sometimes".to_owned());
    let graph =
        small.graph().map_or_else(|fault| fault.message, |(graph, scalars)| format!("{graph}scalars {scalars:?}"));
    let inputs: Vec<String> = small
        .inputs()
        .map(|(value, lay)| {
            format!("{}{:?} {lay:?} {:?}", value.dtype, value.dims, &value.data[..value.data.len().min(8)])
        })
        .collect();
    format!("seed {seed}: {reason}\n{graph}\n{}\n", inputs.join("\n"))
}

#[test]
fn programs_equal_themselves_op_by_op() {
    match std::env::var("FUSE_SEED") {
        Ok(seed) => check(&[seed.parse().expect("FUSE_SEED is a number")]),
        Err(_) => check(&seeds(2000)),
    }
    report_programs("random programs");
}

#[test]
fn gradients_of_programs_equal_those_of_the_tape() {
    let programs = on_all_cores(&seeds(500), |&seed| (seed, make(seed)));
    let drawless: Vec<(u64, Program)> = programs.into_iter().filter(|(_, program)| !program.draws()).collect();
    let verdict = |program: &Program| caught(|| gradients::compare(program)).and_then(|verdict| verdict);
    let verdicts = on_all_cores(&drawless, |(_, program)| verdict(program));
    let differ = drawless.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_err());
    let failures: Vec<String> =
        differ.map(|((seed, program), _)| report(*seed, program, &|program| verdict(program).map(drop))).collect();
    assert!(failures.is_empty(), "{} programs differ:\n{}", failures.len(), failures.join("\n"));
    let compared = verdicts.iter().filter(|verdict| **verdict == Ok(true)).count();
    assert!(compared > verdicts.len() / 4, "only {compared} programs have gradients");
}

#[test]
fn every_regular_op_is_in_some_program() {
    let programs = on_all_cores(&(0..500).collect::<Vec<_>>(), |&seed| make(seed));
    let has = |op: &Op, program: &Program| program.calls().any(|called| called == *op);
    let missing: Vec<&str> = table()
        .iter()
        .filter(|op| generate::regular(op) && !programs.iter().any(|program| has(op, program)))
        .map(|op| op.name)
        .collect();
    assert!(missing.is_empty(), "no program has {missing:?}");
    let long = programs.iter().filter(|program| program.calls().count() >= 5).count();
    assert!(long > 200, "only {long} of 500 programs have 5 calls or more");
}

#[test]
fn compiled_functions_equal_their_eager_twins() {
    let check = |function: &Function| caught(|| function.check()).and_then(|verdict| verdict);
    let failures: Vec<String> = on_all_cores(generated::FUNCTIONS, check).into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// How many functions are written out. Each is compiled by rustc in every build of this test.
const FUNCTIONS: usize = 32;

/// Writes the functions of the first seeds that draw no random numbers and do not fail.
#[test]
#[ignore = "writes the functions that the other tests of this file compile"]
fn write_functions() {
    let usable = |program: &Program| {
        (3..16).contains(&program.calls().count()) && !program.draws() && program.eager(Device::cpu()).is_ok()
    };
    let programs: Vec<(u64, Program)> =
        (0..).map(|seed| (seed, make(seed))).filter(|(_, program)| usable(program)).take(FUNCTIONS).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/random/generated.rs");
    std::fs::write(path, source::file(&programs)).expect("the sources are writable");
}
