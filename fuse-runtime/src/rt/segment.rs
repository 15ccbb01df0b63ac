//! The run-time side of one graph of a compiled function.

use super::{Cubin, DynBody, Scalar};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::exec::{self, Ahead, Call, Functions, Program};
use crate::raw::RawTensor;
use fuse_compiler::options::Mode;
use fuse_compiler::plan::Plan;
use fuse_compiler::types::DType;
use std::sync::{Arc, OnceLock, RwLock};

/// One graph of a compiled function, as the macro has embedded it.
///
/// There is a plan for every set of equalities the graph was specialised for, the most special one first and a general
/// one last; a call takes the first whose equalities hold. Plans are read when the segment is first called.
pub struct Segment {
    plans: &'static [&'static str],
    cuda: &'static str,
    config: Config,
    cubins: &'static [Cubin],
    read: OnceLock<Vec<Plan>>,
    programs: RwLock<Vec<Arc<Instance>>>,
}

/// What `#[compile(..)]` says about how a graph is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// `mode`.
    pub mode: Mode,
    /// `dynamic`.
    pub dynamic: Option<bool>,
}

impl Config {
    /// What holds where the attribute says nothing.
    pub const DEFAULT: Config = Config { mode: Mode::Default, dynamic: None };
}

/// The programs of a segment for some element types, one a plan.
struct Instance {
    params: Vec<DType>,
    programs: Vec<Program>,
}

/// What a segment is called with.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// What the generic element types of the function stand for.
    pub params: &'a [DType],
    /// Tensor arguments, in the order of the graph's inputs.
    pub tensors: &'a [&'a RawTensor],
    /// Whether the function gives each tensor up, so that a result may take over storage that nothing else holds; empty
    /// where it gives none.
    pub given: &'a [bool],
    /// Host scalars.
    pub scalars: &'a [Scalar],
    /// Host integers that sizes are made of.
    pub host_ints: &'a [i64],
    /// The compiled kernels: for each plan in order, one for each of its steps.
    pub bodies: &'a [&'a dyn DynBody],
    /// Where a graph without tensor arguments runs.
    pub device: Device,
}

impl Segment {
    /// A segment from the texts of its plans and the CUDA text of all their kernels.
    pub const fn new(plans: &'static [&'static str], cuda: &'static str) -> Self {
        Segment::configured(plans, cuda, Config::DEFAULT)
    }

    /// The same with what the attribute says.
    pub const fn configured(plans: &'static [&'static str], cuda: &'static str, config: Config) -> Self {
        Segment::compiled(plans, cuda, config, &[])
    }

    /// The same with kernels that were compiled while the crate was built.
    pub const fn compiled(
        plans: &'static [&'static str],
        cuda: &'static str,
        config: Config,
        cubins: &'static [Cubin],
    ) -> Self {
        Segment { plans, cuda, config, cubins, read: OnceLock::new(), programs: RwLock::new(Vec::new()) }
    }

    /// Runs the graph. After an error no tensor has changed.
    pub fn call(&self, inputs: Inputs<'_>) -> Result<Vec<RawTensor>> {
        if inputs.tensors.iter().any(|tensor| crate::tape::is_traced(tensor)) {
            let text =
                "a compiled graph is called with a variable of `value_and_grad`, through which no gradient would flow";
            return Err(Error::compile(text));
        }
        let instance = self.instance(inputs.params);
        let device = common_device(&instance.programs[0].plan.name, &inputs)?;
        let again = |program| exec::run_again(&call(program, &[], &inputs, device));
        if let Some(results) = instance.programs.iter().find_map(again) {
            return results;
        }
        let mut bodies = inputs.bodies;
        for (k, program) in instance.programs.iter().enumerate() {
            let (own, others) = bodies.split_at(program.plan.steps.len());
            bodies = others;
            let last = k + 1 == instance.programs.len();
            if last || exec::guards_hold(&program.plan, inputs.tensors, inputs.host_ints) {
                return exec::run(&call(program, own, &inputs, device));
            }
        }
        unreachable!("a segment has at least one plan")
    }

    /// The device of a call.
    pub(super) fn device(&self, inputs: &Inputs<'_>) -> Result<Device> {
        common_device(&self.plans()[0].name, inputs)
    }

    /// What its calls are tuned for.
    pub(super) fn mode(&self) -> Mode {
        crate::env::mode().unwrap_or(self.config.mode)
    }

    /// Has a call of the graph looked at instead of run.
    pub(super) fn look<R>(&self, inputs: &Inputs<'_>, look: impl FnOnce(&Call<'_>) -> R) -> Result<R> {
        let instance = self.instance(inputs.params);
        let (last, guarded) = instance.programs.split_last().expect("a segment has at least one plan");
        let device = common_device(&last.plan.name, inputs)?;
        let holds = |program: &&Program| exec::guards_hold(&program.plan, inputs.tensors, inputs.host_ints);
        Ok(look(&call(guarded.iter().find(holds).unwrap_or(last), &[], inputs, device)))
    }

    /// The programs for these element types, made when they are first asked for.
    fn instance(&self, params: &[DType]) -> Arc<Instance> {
        let find = |list: &[Arc<Instance>]| list.iter().find(|instance| instance.params == params).cloned();
        if let Some(found) = find(&self.programs.read().unwrap_or_else(|poisoned| poisoned.into_inner())) {
            return found;
        }
        let mode = self.mode();
        let dynamic = self.config.dynamic;
        let functions = || Functions::new(dynamic, Ahead::of(self.cubins, params));
        let program =
            |plan: &Plan| Program::new(plan, params).with_source(self.cuda).with_mode(mode).with_functions(functions());
        let programs = self.plans().iter().map(program).collect();
        let made = Arc::new(Instance { params: params.to_vec(), programs });
        let mut list = self.programs.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        find(&list).unwrap_or_else(|| {
            list.push(made.clone());
            made
        })
    }

    fn plans(&self) -> &[Plan] {
        let read = |text: &&str| ron::from_str(text).expect("the macro has embedded a plan of this version");
        self.read.get_or_init(|| self.plans.iter().map(read).collect())
    }
}

fn call<'a>(program: &'a Program, bodies: &'a [&'a dyn DynBody], inputs: &Inputs<'a>, device: Device) -> Call<'a> {
    let Inputs { tensors, given, scalars, host_ints, .. } = *inputs;
    Call { program, tensors, given, scalars, host_ints, device, bodies }
}

/// The device of all tensors of a call.
fn common_device(name: &str, inputs: &Inputs<'_>) -> Result<Device> {
    let mut devices = inputs.tensors.iter().map(|tensor| tensor.device());
    let Some(first) = devices.next() else { return Ok(inputs.device) };
    match devices.find(|&device| device != first) {
        None => Ok(first),
        Some(other) => {
            let text = format!("one tensor is on {first} and another on {other}; move one with `to_device`");
            Err(Error::device(name, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::{Body, Ins, Outs};

    struct Doubled;

    impl Body for Doubled {
        #[inline(always)]
        fn run(&self, ins: &Ins<'_>, outs: &mut Outs<'_>) {
            let (x, out) = (ins.elem::<f32>(0), outs.elem::<f32>(0));
            for i in 0..ins.len() {
                out[i] = x[i] + x[i];
            }
        }
    }

    /// `x + x` for a vector.
    static SEGMENT: Segment = Segment::new(
        &[r#"(
            name: "double",
            syms: [(name: "x.0", source: Input(input: 0, axis: 0))],
            checks: [], guards: [],
            bufs: [
                (name: "x", ty: (dtype: F32, dims: [Sym((0))]), class: In(0), live: (0, 0), donor: None),
                (name: "y", ty: (dtype: F32, dims: [Sym((0))]), class: Out, live: (0, 0), donor: None),
            ],
            scalars: [], draws: [],
            steps: [Kernel((
                name: "k0_add", kind: Map, domain: [Sym((0))], reduced: 0,
                leaves: [(source: Buf((0)), views: [], level: Elem, indexed: None)],
                stmts: [
                    (expr: Load(0), dtype: F32, round: false, level: Elem, name: None, place: 0),
                    (expr: Apply("add", [(0), (0)]), dtype: F32, round: false, level: Elem, name: None, place: 0),
                ],
                stores: [(to: (buf: (1), views: []), value: (1), scatter: None)],
                ops: [],
            ))],
            outs: [(buf: (1), views: [])],
            places: [], decisions: [],
        )"#],
        "",
    );

    fn inputs<'a>(tensors: &'a [&'a RawTensor], bodies: &'a [&'a dyn DynBody]) -> Inputs<'a> {
        let (params, given, scalars, host_ints) = (&[], &[], &[], &[]);
        Inputs { params, tensors, given, scalars, host_ints, bodies, device: Device::cpu() }
    }

    #[test]
    fn a_compiled_body_runs_on_every_run() {
        let values: Vec<f32> = (0..100_003).map(|i| i as f32).collect();
        let x = RawTensor::from_slice(&values, &[values.len()]).unwrap();
        let strided = x.with_layout(x.layout().flip(&[0]).unwrap());
        for x in [x, strided] {
            let y = SEGMENT.call(inputs(&[&x], &[&Doubled])).unwrap().remove(0);
            let want: Vec<f32> = x.to_vec::<f32>().unwrap().iter().map(|v| v + v).collect();
            assert_eq!(y.to_vec::<f32>().unwrap(), want);
        }
    }

    #[test]
    fn extents_a_plan_was_not_made_for_are_an_error() {
        let x = RawTensor::from_slice(&[1f32; 6], &[2, 3]).unwrap();
        let error = SEGMENT.call(inputs(&[&x], &[&Doubled])).unwrap_err();
        assert!(error.to_string().contains("[2, 3]"), "{error}");
    }
}
