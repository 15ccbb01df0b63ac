//! Running products of matrices with cuBLASLt.

mod tuned;

use super::driver::{Backend, Context, Real};
use super::lanes::Lane;
use super::libraries::open_for_good;
use super::matmul::{Matmul, Problem, Stored};
use super::once::OnceMap;
use crate::error::{Error, Result};
use crate::log::{self, Topic};
use cudarc::cublaslt::sys::{
    self, cublasComputeType_t as compute, cublasLtEpilogue_t as epilogue, cublasLtMatmulDescAttributes_t as of_matmul,
    cublasLtMatmulPreferenceAttributes_t as of_choice, cublasLtMatrixLayoutAttribute_t as of_matrix,
    cublasLtReductionScheme_t as reduction, cublasStatus_t as status, cudaDataType_t as data,
};
use cudarc::driver::sys::CUstream;
use fuse_compiler::types::DType;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Scratch memory the algorithms may use; Hopper's best ones want this much.
const WORKSPACE: usize = 32 << 20;

/// Problems whose algorithm is remembered; a sweep over many sizes starts over.
const REMEMBERED: usize = 4096;

/// The library on one context, opened by the first product.
pub(super) type Libraries = OnceMap<(), Option<Arc<Library>>>;

/// Scratch memory by stream.
pub(super) type Workspaces = Vec<(Lane, u64)>;

/// A handle, scratch memory, and the algorithms found so far.
pub(super) struct Library {
    handle: sys::cublasLtHandle_t,
    workspaces: Mutex<Workspaces>,
    /// The name of the device and its architecture.
    device: (String, String),
    choices: OnceMap<Problem, Option<Arc<Choice>>>,
}

// SAFETY: the library's handle may be used from several threads.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Context {
    /// The library, if it is installed.
    pub(super) fn library(&self, real: &Real) -> Result<Option<Arc<Library>>> {
        self.libraries.get_or_try_make((), || match is_present() {
            true => Library::open(self, real).map(|library| Some(Arc::new(library))),
            false => {
                log::warn(format_args!(
                    "cuBLASLt was not found, products of matrices are slower without it: \
                     install it with `pip install nvidia-cublas` or the CUDA toolkit, and put its folder on LD_LIBRARY_PATH"
                ));
                Ok(None)
            }
        })
    }

    /// Opens the library, if it is installed, so that the first product does not wait for it.
    pub(crate) fn open_library(&self) {
        if let Backend::Real(real) = &self.backend {
            // What goes wrong here goes wrong again where it is needed.
            let _ = self.library(real);
        }
    }

    /// How the library does a product, if it is there and can.
    pub(super) fn recipe(&self, real: &Real, problem: Problem) -> Result<Option<Recipe>> {
        let Some(library) = self.library(real)? else { return Ok(None) };
        real.make_current()?;
        let choice = library.choices.get_or_try_make(problem, || library.choose(problem))?;
        Ok(choice.map(|choice| Recipe { library, choice, form: OnceLock::new() }))
    }
}

/// Where a product is launched, or captured.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) context: &'a Context,
    pub(super) real: &'a Real,
    pub(super) stream: CUstream,
}

/// What is needed to launch a product again and again.
pub(super) struct Recipe {
    library: Arc<Library>,
    choice: Arc<Choice>,
    /// The description of the first launch, for those with the same bias: its address is inside the description.
    form: OnceLock<(Option<u64>, Form)>,
}

impl Clone for Recipe {
    fn clone(&self) -> Recipe {
        Recipe { library: self.library.clone(), choice: self.choice.clone(), form: OnceLock::new() }
    }
}

impl Recipe {
    /// The library, if its scratch memory is used.
    pub(super) fn workspace(&self) -> Option<&Library> {
        self.choice.uses_workspace.then_some(&*self.library)
    }

    /// Launches the product, or returns `false` if the library cannot after all; the context is current.
    pub(super) fn run(&self, target: Target<'_>, problem: Problem, matmul: &Matmul) -> Result<bool> {
        match self.form.get() {
            Some((bias, form)) if *bias == matmul.bias => self.library.run(target, matmul, &self.choice, form),
            Some(_) => self.library.run(target, matmul, &self.choice, &Form::new(problem, matmul.bias)?),
            None => {
                let form = Form::new(problem, matmul.bias)?;
                let outcome = self.library.run(target, matmul, &self.choice, &form);
                // Another thread may have been first.
                let _ = self.form.set((matmul.bias, form));
                outcome
            }
        }
    }
}

/// Whether the library is installed and not to be done without.
pub(super) fn is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    *PRESENT.get_or_init(|| open_for_good("cublasLt"))
}

impl Library {
    fn open(context: &Context, real: &Real) -> Result<Library> {
        real.make_current()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current, and the library writes one handle.
        check(unsafe { sys::cublasLtCreate(&mut handle) }, "open cuBLASLt")?;
        let device = (context.facts().name.to_string(), context.facts().arch.to_string());
        Ok(Library { handle, workspaces: Mutex::default(), device, choices: OnceMap::bounded(REMEMBERED) })
    }

    /// The scratch memory of this thread's stream, for the launches of one call at a time.
    pub(super) fn turn(&self, context: &Context, real: &Real) -> Result<(MutexGuard<'_, Workspaces>, u64)> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = context.lane();
        let address = match workspaces.iter().find(|(of, _)| *of == lane) {
            Some((_, address)) => *address,
            None => {
                let address = real.allocate(context, lane, WORKSPACE)?;
                workspaces.push((lane, address));
                address
            }
        };
        Ok((workspaces, address))
    }

    /// Launches the product, or returns `false` if the library cannot after all.
    fn run(&self, target: Target<'_>, matmul: &Matmul, choice: &Choice, form: &Form) -> Result<bool> {
        // An algorithm with a workspace is more than one kernel. Those of another thread's call must not come in between.
        let turn = if choice.uses_workspace { Some(self.turn(target.context, target.real)?) } else { None };
        let workspace = turn.as_ref().map_or(0, |(_, workspace)| *workspace);
        let [left, right, out] = &choice.layouts;
        let scale = Scale::of(matmul.dtype);
        let (a, b, c) =
            (matmul.b.address as *const c_void, matmul.a.address as *const c_void, matmul.c.address as *mut c_void);
        // SAFETY: the layouts describe the three matrices, which the caller vouches for; the scalars outlive the call, which
        // reads them at once; the workspace is as large as was told when the algorithm was chosen.
        let outcome = unsafe {
            sys::cublasLtMatmul(
                self.handle,
                form.0,
                scale.one(),
                a,
                left.0,
                b,
                right.0,
                scale.zero(),
                c,
                out.0,
                c,
                out.0,
                &choice.algorithm,
                workspace as *mut c_void,
                if workspace == 0 { 0 } else { WORKSPACE },
                target.stream.cast(),
            )
        };
        supported(outcome, "multiply matrices with cuBLASLt")
    }

    /// The algorithm of a product and the layouts it is for: the fastest, if that is asked for and known, else the one the
    /// library thinks best.
    fn choose(&self, problem: Problem) -> Result<Option<Arc<Choice>>> {
        if problem.tuned
            && let Some(choice) = self.fastest(problem)?
        {
            return Ok(Some(Arc::new(choice)));
        }
        let best = self.algorithms(problem, 1)?.pop();
        let found = if best.is_some() { "an" } else { "no" };
        log::line(Topic::Tune, format_args!("library has {found} algorithm for {problem:?}"));
        Ok(best.map(Arc::new))
    }

    /// At most so many algorithms, the one first that the library thinks best.
    fn algorithms(&self, problem: Problem, most: usize) -> Result<Vec<Choice>> {
        // The heuristic looks at whether there is a bias, not at where: any aligned address will do.
        let form = Form::new(problem, problem.bias.then_some(256))?;
        let (layouts, preference) = (problem.layouts()?, Preference::new(problem)?);
        let [left, right, out] = &layouts;
        let (mut found, mut count) = (vec![no_result(); most], 0);
        // SAFETY: all handles live, and there is room for as many results as are asked for.
        let outcome = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                form.0,
                left.0,
                right.0,
                out.0,
                out.0,
                preference.0,
                most as i32,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        let known = if supported(outcome, "choose an algorithm with cuBLASLt")? { count as usize } else { 0 };
        let usable = found[..known].iter().filter(|found| found.state == status::CUBLAS_STATUS_SUCCESS);
        let choice = |found: &sys::cublasLtMatmulHeuristicResult_t| {
            let uses_workspace = found.workspaceSize > 0;
            Ok(Choice { layouts: problem.layouts()?, algorithm: found.algo, uses_workspace })
        };
        usable.map(choice).collect()
    }
}

/// Room for what the library finds.
fn no_result() -> sys::cublasLtMatmulHeuristicResult_t {
    sys::cublasLtMatmulHeuristicResult_t {
        algo: sys::cublasLtMatmulAlgo_t { data: [0; 8] },
        workspaceSize: 0,
        state: status::CUBLAS_STATUS_NOT_SUPPORTED,
        wavesCount: 0.0,
        reserved: [0; 4],
    }
}

/// What is launched for a problem.
struct Choice {
    layouts: [Layout; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
    uses_workspace: bool,
}

// SAFETY: the layouts are plain memory of the library that is only read after it was set up.
unsafe impl Send for Choice {}
// SAFETY: as above.
unsafe impl Sync for Choice {}

/// The factors of the product and of what was in `c` before: one and zero, in the type sums are in.
#[derive(Clone, Copy)]
enum Scale {
    Single([f32; 2]),
    Double([f64; 2]),
}

impl Scale {
    fn of(dtype: DType) -> Scale {
        if dtype == DType::F64 { Scale::Double([1.0, 0.0]) } else { Scale::Single([1.0, 0.0]) }
    }

    fn one(&self) -> *const c_void {
        match self {
            Scale::Single(pair) => (&raw const pair[0]).cast(),
            Scale::Double(pair) => (&raw const pair[0]).cast(),
        }
    }

    fn zero(&self) -> *const c_void {
        match self {
            Scale::Single(pair) => (&raw const pair[1]).cast(),
            Scale::Double(pair) => (&raw const pair[1]).cast(),
        }
    }
}

/// The description of a product: types, transpositions, epilogue.
struct Form(sys::cublasLtMatmulDesc_t);

impl Form {
    fn new(problem: Problem, bias: Option<u64>) -> Result<Form> {
        let (compute, scale) = match problem.dtype {
            DType::F64 => (compute::CUBLAS_COMPUTE_64F, data::CUDA_R_64F),
            _ if problem.tf32 => (compute::CUBLAS_COMPUTE_32F_FAST_TF32, data::CUDA_R_32F),
            _ => (compute::CUBLAS_COMPUTE_32F, data::CUDA_R_32F),
        };
        let mut form = Form(std::ptr::null_mut());
        // SAFETY: the library writes one handle.
        check(unsafe { sys::cublasLtMatmulDescCreate(&mut form.0, compute, scale) }, "describe a product")?;
        form.set(of_matmul::CUBLASLT_MATMUL_DESC_TRANSA, i32::from(problem.left.transposed))?;
        form.set(of_matmul::CUBLASLT_MATMUL_DESC_TRANSB, i32::from(problem.right.transposed))?;
        form.set(of_matmul::CUBLASLT_MATMUL_DESC_EPILOGUE, problem.epilogue() as u32)?;
        if let Some(address) = bias {
            form.set(of_matmul::CUBLASLT_MATMUL_DESC_BIAS_POINTER, address)?;
        }
        Ok(form)
    }

    fn set<T: Copy>(&self, which: sys::cublasLtMatmulDescAttributes_t, value: T) -> Result<()> {
        // SAFETY: the description lives; the library checks the size and copies the value.
        let outcome =
            unsafe { sys::cublasLtMatmulDescSetAttribute(self.0, which, (&raw const value).cast(), size_of::<T>()) };
        check(outcome, "describe a product")
    }
}

// SAFETY: the description is plain memory of the library that is only read after it was set up.
unsafe impl Send for Form {}
// SAFETY: as above.
unsafe impl Sync for Form {}

impl Drop for Form {
    fn drop(&mut self) {
        // SAFETY: the handle was created, or is null, which the library takes as nothing.
        unsafe { sys::cublasLtMatmulDescDestroy(self.0) };
    }
}

/// The description of a matrix.
struct Layout(sys::cublasLtMatrixLayout_t);

impl Layout {
    fn new(batch: i32, dtype: DType, stored: Stored) -> Result<Layout> {
        let mut layout = Layout(std::ptr::null_mut());
        let (kind, Stored { rows, cols, leading, .. }) = (data_type(dtype), stored);
        // SAFETY: the library writes one handle.
        check(
            unsafe { sys::cublasLtMatrixLayoutCreate(&mut layout.0, kind, rows, cols, leading) },
            "describe a matrix",
        )?;
        layout.set(of_matrix::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch)?;
        layout.set(of_matrix::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stored.batch_stride)?;
        Ok(layout)
    }

    fn set<T: Copy>(&self, which: sys::cublasLtMatrixLayoutAttribute_t, value: T) -> Result<()> {
        // SAFETY: the layout lives; the library checks the size and copies the value.
        let outcome =
            unsafe { sys::cublasLtMatrixLayoutSetAttribute(self.0, which, (&raw const value).cast(), size_of::<T>()) };
        check(outcome, "describe a matrix")
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: the handle was created, or is null, which the library takes as nothing.
        unsafe { sys::cublasLtMatrixLayoutDestroy(self.0) };
    }
}

/// What an algorithm may use.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new(problem: Problem) -> Result<Preference> {
        let mut preference = Preference(std::ptr::null_mut());
        // SAFETY: the library writes one handle.
        check(unsafe { sys::cublasLtMatmulPreferenceCreate(&mut preference.0) }, "describe what may be used")?;
        preference.set(of_choice::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, WORKSPACE as u64)?;
        preference.set(of_choice::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, problem.reductions() as u32)?;
        preference.set(of_choice::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.left.alignment)?;
        preference.set(of_choice::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.right.alignment)?;
        preference.set(of_choice::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.out.alignment)?;
        preference.set(of_choice::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.out.alignment)?;
        Ok(preference)
    }

    fn set<T: Copy>(&self, which: sys::cublasLtMatmulPreferenceAttributes_t, value: T) -> Result<()> {
        let (value, size) = ((&raw const value).cast(), size_of::<T>());
        // SAFETY: the preference lives; the library checks the size and copies the value.
        let outcome = unsafe { sys::cublasLtMatmulPreferenceSetAttribute(self.0, which, value, size) };
        check(outcome, "describe what may be used")
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: the handle was created, or is null, which the library takes as nothing.
        unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}

impl Problem {
    /// The three matrices as the library describes them.
    fn layouts(self) -> Result<[Layout; 3]> {
        let layout = |dtype, stored| Layout::new(self.batch, dtype, stored);
        Ok([layout(self.dtype, self.left)?, layout(self.dtype, self.right)?, layout(self.out_dtype, self.out)?])
    }

    fn epilogue(self) -> epilogue {
        match (self.bias, self.relu) {
            (false, false) => epilogue::CUBLASLT_EPILOGUE_DEFAULT,
            (true, false) => epilogue::CUBLASLT_EPILOGUE_BIAS,
            (false, true) => epilogue::CUBLASLT_EPILOGUE_RELU,
            (true, true) => epilogue::CUBLASLT_EPILOGUE_RELU_BIAS,
        }
    }

    /// How parts of a sum that was split may be added: for the halves not in their own type, which would round each part.
    fn reductions(self) -> reduction {
        match self.dtype {
            DType::F16 | DType::BF16 => reduction::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
            _ => reduction::CUBLASLT_REDUCTION_SCHEME_MASK,
        }
    }
}

fn data_type(dtype: DType) -> data {
    match dtype {
        DType::F64 => data::CUDA_R_64F,
        DType::F16 => data::CUDA_R_16F,
        DType::BF16 => data::CUDA_R_16BF,
        _ => data::CUDA_R_32F,
    }
}

/// `Ok` for success, else a driver error that says what was being done.
fn check(outcome: status, doing: &str) -> Result<()> {
    match outcome {
        status::CUBLAS_STATUS_SUCCESS => Ok(()),
        _ => Err(Error::driver(format!("cuda: could not {doing}: {outcome:?}"))),
    }
}

/// Like [`check`], with `false` for what the library says it does not do.
fn supported(outcome: status, doing: &str) -> Result<bool> {
    match outcome {
        status::CUBLAS_STATUS_NOT_SUPPORTED => Ok(false),
        _ => check(outcome, doing).map(|()| true),
    }
}
