//! What `#[compile(..)]` was told.

/// The options of one compiled function, PyTorch's words where PyTorch has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `mode`.
    pub mode: Mode,
    /// `backend`.
    pub backend: Backend,
    /// `dynamic`: whether extents may differ from call to call; `None` where the compiler decides.
    pub dynamic: Option<bool>,
    /// `fullgraph`: a graph break is an error.
    pub fullgraph: bool,
    /// `deny(breaks)`: a graph break is an error.
    pub deny_breaks: bool,
    /// `numerics`.
    pub numerics: Numerics,
    /// `precision`.
    pub precision: Precision,
    /// `companion`: the name of the enum beside the function, if it is not the function's.
    pub companion: Option<String>,
    /// `grad(..)`: the parameters whose gradients are wanted.
    #[cfg(feature = "syn")]
    pub grad: Vec<proc_macro2::Ident>,
    /// `memory`, in hundredths: from nothing kept for the backward pass that can be computed again, to all of it.
    pub memory: u8,
    /// `grad(order = 2, ..)`: how often the function is differentiated.
    pub grad_order: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Default,
            backend: Backend::Auto,
            dynamic: None,
            fullgraph: false,
            deny_breaks: false,
            numerics: Numerics::Strict,
            precision: Precision::Highest,
            companion: None,
            #[cfg(feature = "syn")]
            grad: vec![],
            memory: 0,
            grad_order: 1,
        }
    }
}

impl Options {
    /// `memory`, from 0 to 1.
    pub fn memory(&self) -> f64 {
        f64::from(self.memory) / 100.0
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$word_doc])* $variant,)* }

        impl $name {
            /// The words users write.
            pub const WORDS: &[&str] = &[$($word),*];

            /// The option a word stands for.
            pub fn from_word(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)*
                    _ => None,
                }
            }

            /// The word.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}

/// The highest order of derivatives that `grad(order = .., ..)` takes.
pub const MAX_ORDER: usize = 4;

/// The most CUDA graphs that are kept of one plan, for calls of different layouts.
pub const GRAPHS_OF_A_PLAN: usize = 16;
/// The most it keeps in a process.
pub const GRAPHS_IN_ALL: usize = 256;

words! {
    /// What a call is tuned for.
    Mode {
        /// One launch per kernel.
        Default = "default",
        /// Launches replayed as one CUDA graph.
        ReduceOverhead = "reduce-overhead",
        /// The same, with kernels chosen by timing them.
        MaxAutotune = "max-autotune",
    }
}

impl Mode {
    /// Whether a call that comes again is launched as a CUDA graph.
    pub fn uses_graphs(self) -> bool {
        self != Mode::Default
    }
}

words! {
    /// What runs the function.
    Backend {
        /// Compiled kernels on the device of the tensors.
        Auto = "auto",
        /// The original, op by op.
        Eager = "eager",
    }
}

words! {
    /// How values are rounded inside a kernel.
    Numerics {
        /// Exactly where eager rounds.
        Strict = "strict",
        /// Halves stay in f32, fused multiply-add is allowed.
        Fast = "fast",
    }
}

words! {
    /// How f32 products are computed.
    Precision {
        /// With f32 accuracy.
        Highest = "highest",
        /// With TF32.
        High = "high",
    }
}
