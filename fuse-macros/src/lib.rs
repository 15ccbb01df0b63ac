//! The `#[compile]` attribute of fuse.

mod loops;

use proc_macro::TokenStream;

/// Compiles a tensor function: its tensor ops are fused into kernels while the crate compiles.
///
/// The function keeps computing what it computes without the attribute. Beside it comes an empty enum of the same name with
/// `CUDA`, the generated source, `explain()`, the report, and `eager(..)`, the original. On an `impl` block it compiles the
/// methods, and `forward` gets `FORWARD_CUDA`, `forward_explain()` and `forward_eager(..)`.
///
/// Options: `mode = "default" | "reduce-overhead" | "max-autotune"`, `backend = "auto" | "eager"`, `dynamic = true | false`,
/// `fullgraph`, `numerics = "strict" | "fast"`, `precision = "highest" | "high"`, `deny(breaks)`, `companion = name`.
#[proc_macro_attribute]
pub fn compile(options: TokenStream, item: TokenStream) -> TokenStream {
    fuse_compiler::pipeline::compile(options.into(), item.into()).into()
}

/// The tensor methods that follow from the rows of the op table, as calls of macros that the runtime defines.
#[doc(hidden)]
#[proc_macro]
pub fn table_methods(_: TokenStream) -> TokenStream {
    fuse_compiler::op::methods::text().parse().expect("the text is a list of macro calls")
}

/// The loops of the runtime's interpreter, one for every elementwise op and compute type.
#[doc(hidden)]
#[proc_macro]
pub fn elementwise_loops(_: TokenStream) -> TokenStream {
    loops::rows()
}
