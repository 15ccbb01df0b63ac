//! Finite differences.

use crate::common::Rng;
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Host, Value, eval};
use fuse_compiler::graph::verify::expect_valid;
use fuse_compiler::op::{Build, Num, Source};
use fuse_compiler::types::DType;

/// How far an element is moved to either side; less where it is small, since there are the poles.
const STEP: f64 = 1e-5;

/// Of central differences: `STEP^2` from the third derivative and `1e-16 / STEP` from rounding, with room for steep functions.
const TOLERANCE: f64 = 1e-6;

/// Draws that differ from place to place.
pub const HOST: Host = Host {
    params: &[],
    scalars: &[],
    ints: &[],
    rounding: fuse_compiler::graph::eval::Rounding::OnlyCasts,
    random: &|_: Source, draw, at| ((at * 7 + u64::from(draw) * 3) % 10) as f64 / 10.0 + 0.05,
};

/// A graph at a point.
#[derive(Clone)]
pub struct Point {
    /// All of whose results are differentiated.
    pub graph: Graph,
    /// Where.
    pub inputs: Vec<Value>,
}

impl Point {
    /// The gradients of the float inputs, with random cotangents as further inputs, after the results.
    pub fn differentiated(&self) -> Point {
        let wrt = self.float_inputs().iter().map(|&input| input as u32).collect();
        let outs: Vec<bool> = self.graph.outs.iter().map(|&out| self.graph.ty(out).dtype.is_float()).collect();
        let seeds = outs.iter().map(|&float| if float { Seed::Input } else { Seed::Nothing }).collect();
        let graph = autodiff::run(self.graph.clone(), &Request { wrt, seeds });
        expect_valid(&graph, "autodiff");
        let mut rng = Rng::new(1);
        let values =
            eval(&self.graph, &self.inputs, &HOST).unwrap_or_else(|e| panic!("{e:?}\n{self:?}\n{}", self.graph));
        let mut inputs = self.inputs.clone();
        for (value, _) in values.iter().zip(outs).filter(|(_, float)| *float) {
            inputs.push(rng.value(value.dtype, &value.dims, (-1.0, 1.0)));
        }
        Point { graph, inputs }
    }

    /// Every element of the gradient of every float input against the difference that moving it makes.
    pub fn check(&self, what: &str) {
        let back = self.differentiated();
        let cotangents = &back.inputs[self.inputs.len()..];
        let results =
            eval(&back.graph, &back.inputs, &HOST).unwrap_or_else(|e| panic!("{what}: {e:?}\n{}", back.graph));
        let gradients = &results[self.graph.outs.len()..];
        for (gradient, input) in gradients.iter().zip(self.float_inputs()) {
            assert_eq!(gradient.dims, self.inputs[input].dims, "{what}: input {input}\n{}", back.graph);
            for (at, found) in gradient.as_floats().into_iter().enumerate() {
                let wanted = self.difference(input, at, cotangents);
                let close = (found - wanted).abs() <= TOLERANCE * wanted.abs().max(1.0);
                assert!(
                    close,
                    "{what}: input {input} at {at}: {found}, by differences {wanted}\n{self:?}\n{}",
                    back.graph
                );
            }
        }
    }

    fn float_inputs(&self) -> Vec<usize> {
        (0..self.inputs.len()).filter(|&k| self.inputs[k].dtype == DType::F64).collect()
    }

    fn difference(&self, input: usize, at: usize, cotangents: &[Value]) -> f64 {
        let step = STEP * self.inputs[input].data[at].f().abs().clamp(0.01, 1.0);
        let moved = |step: f64| {
            let mut inputs = self.inputs.clone();
            let place = &mut inputs[input].data[at];
            *place = Num::F(place.f() + step);
            self.weighted(&inputs, cotangents)
        };
        (moved(step) - moved(-step)) / (2.0 * step)
    }

    /// The results times their cotangents, summed.
    fn weighted(&self, inputs: &[Value], cotangents: &[Value]) -> f64 {
        let values = eval(&self.graph, inputs, &HOST).expect("a point nearby has a value");
        let floats = values.iter().filter(|value| value.dtype.is_float());
        let dot = |(value, cotangent): (&Value, &Value)| -> f64 {
            value.as_floats().iter().zip(cotangent.as_floats()).map(|(a, b)| a * b).sum()
        };
        floats.zip(cotangents).map(dot).sum()
    }
}

impl std::fmt::Debug for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for input in &self.inputs {
            writeln!(f, "{}{:?}: {:?}", input.dtype, input.dims, input.data)?;
        }
        Ok(())
    }
}
