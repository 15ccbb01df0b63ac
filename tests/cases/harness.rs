//! How every numeric case is run: eager and compiled, alone and inside of a larger kernel, several times in a row, on
//! arguments in every layout and, where a case is pointwise, on the same data repeated to many lengths.

use crate::common::{Lay, device, first_difference, lay_out, ulp, value_of};
use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::Num;
use fuse_compiler::types::DType;
use fuse_runtime::RawTensor;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;

/// Lengths at which vectors and tails begin and end.
const LENGTHS: [usize; 7] = [1, 3, 8, 17, 33, 257, 1025];

/// Functions of tensors, each in a module of its own name: compiled `alone`, and `inside` a kernel that first passes every
/// argument through a select. `trap()` gives both, with their eager twins.
macro_rules! traps {
    ($($(#[$meta:meta])* fn $name:ident($($x:ident: $t:ident $r:tt),*) -> $out:ty { $($body:tt)* })*) => {$(
        $(#[$meta])*
        // A few are only called alone, and many give a tuple.
        #[allow(dead_code, clippy::type_complexity)]
        mod $name {
            use super::*;

            #[compile(fullgraph)]
            pub fn alone($($x: &Tensor<$t, $r>),*) -> $out {
                $($body)*
            }

            #[compile(fullgraph)]
            pub fn inside(keep: &Tensor<bool, 0>, $($x: &Tensor<$t, $r>),*) -> $out {
                $(let $x = &keep.where_cond($x, $x);)*
                $($body)*
            }

            pub fn trap() -> Trap<($(Tensor<$t, $r>,)*)> {
                let keep = || Tensor::of_scalar(true).to_device(device());
                Trap::new(vec![
                    ("eager", Box::new(|($($x,)*)| alone::eager($($x),*).results())),
                    ("compiled", Box::new(|($($x,)*)| alone($($x),*).results())),
                    ("eager, inside", Box::new(move |($($x,)*)| inside::eager(&keep(), $($x),*).results())),
                    ("compiled, inside", Box::new(move |($($x,)*)| inside(&keep(), $($x),*).results())),
                ])
            }
        }
    )*};
}

pub(crate) use traps;

/// One way to run a function.
type Run<I> = (&'static str, Box<dyn Fn(&I) -> Vec<RawTensor>>);

/// A function in all its ways.
pub struct Trap<I> {
    runs: Vec<Run<I>>,
    pointwise: bool,
}

/// Plays a test in a process of its own where a GPU is asked: what a kernel has met there is told to whoever reads next, and
/// that may be another test.
pub fn alone(test: &str, body: impl FnOnce()) {
    const ALONE: &str = "FUSE_TEST_ALONE";
    if device().is_cpu() || std::env::var_os(ALONE).is_some() {
        return body();
    }
    let program = std::env::current_exe().expect("the binary knows where it is");
    let output = std::process::Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .expect("the binary runs again");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

impl<I: Inputs> Trap<I> {
    /// A function that can be run so.
    pub fn new(runs: Vec<Run<I>>) -> Self {
        Trap { runs, pointwise: false }
    }

    /// The function does the same to every element of its arguments of rank 1: it is also run on other lengths.
    pub fn pointwise(self) -> Self {
        Trap { pointwise: true, ..self }
    }

    /// The results have these bits; a zero has a sign where it is written as -0.0.
    pub fn exactly(&self, inputs: I, want: impl Outputs) {
        self.check(&inputs, &want.results(), &|got, want, _| exact(got, want));
    }

    /// The results are these, as near as their element type lets one expect.
    pub fn nearly(&self, inputs: I, want: impl Outputs) {
        self.check(&inputs, &want.results(), &|got, want, dtype| {
            let (relative, absolute) = match dtype {
                DType::F64 => (1e-12, 0.0),
                DType::F32 => (1e-6, 1e-7),
                half => (0.0, ulp(want, half)),
            };
            exact(got, want) || (got - want).abs() <= absolute.max(relative * want.abs())
        });
    }

    /// The results are these, within an absolute or a relative difference.
    pub fn within(&self, relative: f64, absolute: f64, inputs: I, want: impl Outputs) {
        self.check(&inputs, &want.results(), &|got, want, _| {
            exact(got, want) || (got - want).abs() <= absolute.max(relative * want.abs())
        });
    }

    /// Every way to run it is refused with an error of this kind.
    pub fn refuses(&self, inputs: I, kind: ErrorKind) {
        let inputs = inputs.map(&|raw| raw.to_device(device()).expect("a small tensor"));
        // A GPU reports what a kernel has met when its results are read.
        let read = |results: Vec<RawTensor>| {
            results.iter().map(|result| result.to_device(Device::cpu())).collect::<Result<Vec<_>, Error>>()
        };
        for (name, run) in &self.runs {
            match catch(|| run(&inputs)).and_then(read) {
                Err(error) => assert_eq!(error.kind(), kind, "{name}: {error}"),
                Ok(results) => panic!("{name}: not refused, but {:?}", value_of(&results[0])),
            }
        }
    }

    fn check(&self, inputs: &I, want: &[RawTensor], near: &dyn Fn(f64, f64, DType) -> bool) {
        let want: Vec<Value> = want.iter().map(value_of).collect();
        for lay in Lay::FREE {
            let placed = inputs.map(&|raw| lay_out(&value_of(raw), lay, device()));
            self.run_all(&placed, &want, near, &format!("{lay:?}"));
        }
        for length in if self.pointwise { &LENGTHS[..] } else { &[] } {
            let longer = inputs.map(&|raw| lay_out(&cycled(value_of(raw), *length), Lay::Contiguous, device()));
            let want: Vec<Value> = want.iter().map(|want| cycled(want.clone(), *length)).collect();
            self.run_all(&longer, &want, near, &format!("length {length}"));
        }
    }

    fn run_all(&self, inputs: &I, want: &[Value], near: &dyn Fn(f64, f64, DType) -> bool, how: &str) {
        for (name, run) in &self.runs {
            // The first call loads what the later ones run. Large results are compared once.
            let calls = if want.iter().map(|want| want.data.len()).sum::<usize>() < 20_000 { 3 } else { 1 };
            for call in 0..calls {
                let results = run(inputs);
                assert_eq!(results.len(), want.len());
                for (k, (got, want)) in results.iter().zip(want).enumerate() {
                    let verdict =
                        first_difference(&value_of(got), want, |_, got, want_number| match (got, want_number) {
                            (Num::F(got), Num::F(number)) => near(got, number, want.dtype),
                            (got, number) => got == number,
                        });
                    verdict.unwrap_or_else(|text| panic!("{name}, {how}, call {call}, result {k}: {text}"));
                }
            }
        }
    }
}

fn exact(got: f64, want: f64) -> bool {
    got == want && (want.is_sign_positive() || want != 0.0 || got.is_sign_negative()) || (got.is_nan() && want.is_nan())
}

/// A vector repeated or cut to a length; anything else as it is.
fn cycled(value: Value, length: usize) -> Value {
    match value.dims[..] {
        [own] if own > 0 => {
            let data = value.data.iter().cycle().take(length).copied().collect();
            Value::new(value.dtype, vec![length], data)
        }
        _ => value,
    }
}

/// Arguments of a function: tensors in a tuple.
pub trait Inputs {
    /// Each tensor replaced.
    fn map(&self, f: &dyn Fn(&RawTensor) -> RawTensor) -> Self;
}

/// Results of a function: tensors, alone or in a tuple, array or `Vec`.
pub trait Outputs {
    /// The tensors, in order.
    fn results(&self) -> Vec<RawTensor>;
}

impl<T: Element, const R: usize> Outputs for Tensor<T, R> {
    fn results(&self) -> Vec<RawTensor> {
        vec![self.raw().clone()]
    }
}

impl<O: Outputs, const N: usize> Outputs for [O; N] {
    fn results(&self) -> Vec<RawTensor> {
        self.iter().flat_map(O::results).collect()
    }
}

impl<O: Outputs> Outputs for Vec<O> {
    fn results(&self) -> Vec<RawTensor> {
        self.iter().flat_map(O::results).collect()
    }
}

macro_rules! tuples {
    ($($($t:ident $r:ident $o:ident),+;)*) => {$(
        impl<$($t: Element, const $r: usize),+> Inputs for ($(Tensor<$t, $r>,)+) {
            #[allow(non_snake_case)]
            fn map(&self, f: &dyn Fn(&RawTensor) -> RawTensor) -> Self {
                let ($($t,)+) = self;
                ($(Tensor::from_raw(f($t.raw())),)+)
            }
        }

        impl<$($o: Outputs),+> Outputs for ($($o,)+) {
            #[allow(non_snake_case)]
            fn results(&self) -> Vec<RawTensor> {
                let ($($o,)+) = self;
                [$($o.results()),+].concat()
            }
        }
    )*};
}

tuples! {
    A RA OA;
    A RA OA, B RB OB;
    A RA OA, B RB OB, C RC OC;
    A RA OA, B RB OB, C RC OC, D RD OD;
    A RA OA, B RB OB, C RC OC, D RD OD, E RE OE;
    A RA OA, B RB OB, C RC OC, D RD OD, E RE OE, F RF OF;
}

/// A vector of bf16.
pub fn bf<const N: usize>(values: [f32; N]) -> Tensor<bf16, 1> {
    Tensor::from(values.map(bf16::from_f32))
}

/// A vector of f16.
pub fn hf<const N: usize>(values: [f32; N]) -> Tensor<f16, 1> {
    Tensor::from(values.map(f16::from_f32))
}

/// A tensor of rank 0.
pub fn scalar<T: Element>(value: T) -> Tensor<T, 0> {
    Tensor::of_scalar(value)
}

/// A tensor of extents known when the test is written.
pub fn tensor<T: Element, const R: usize>(values: impl IntoIterator<Item = T>, dims: [usize; R]) -> Tensor<T, R> {
    Tensor::from_vec(values.into_iter().collect(), dims, Device::cpu())
}
