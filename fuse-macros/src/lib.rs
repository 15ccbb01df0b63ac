//! The `#[compile]` attribute of fuse.

mod loops;

use proc_macro::TokenStream;

/// Compiles a tensor function: its tensor ops are fused into kernels while the crate compiles.
///
/// The function keeps computing what it computes without the attribute. Beside it comes an empty enum of the same name with
/// `CUDA`, the generated source, `explain()`, the report, and `eager(..)`, the original. On an `impl` block it compiles the
/// methods, and `forward` gets `FORWARD_CUDA`, `forward_explain()` and `forward_eager(..)`.
///
/// `#[dims(B, D)]` on a parameter names its extents: equal names are equal extents, and a name may stand in a formula such as
/// `#[dims(B, 2 * H)]` or beside a number.
///
/// | option | values, the default first | meaning |
/// |---|---|---|
/// | `mode` | `"default"`, `"reduce-overhead"`, `"max-autotune"` | what a call is tuned for: `"reduce-overhead"` launches a call that comes again with the same layouts as one CUDA graph; `"max-autotune"` does the same with the fastest of the ways of walking each kernel, which its first call times |
/// | `backend` | `"auto"`, `"eager"` | `"eager"` runs the original, op by op |
/// | `dynamic` | `true`, `false` | whether extents may differ from call to call: `false` compiles every size for itself, `true` none before it comes again; else the first size is, and the others share kernels |
/// | `fullgraph`, `deny(breaks)` | | a graph break is a compile error at its tokens |
/// | `numerics` | `"strict"`, `"fast"` | `"fast"` keeps halves in f32 inside a kernel and lets CUDA code contract |
/// | `precision` | `"highest"`, `"high"` | `"high"` lets f32 products use TF32 |
/// | `grad(w, b)` | parameters that are tensors of floats, `order = 1` to `4` | beside the function come `value_and_grad(..)` and `vjp(..)`, and from order 2 on `hvp(..)` |
/// | `memory` | `0.0` to `1.0` | how much of what could be computed again is kept for the backward pass on a tape and across graph breaks |
/// | `companion` | a name | what the enum beside the function is called |
///
/// With `grad(w, b)`, `f::value_and_grad(..)` takes the function's arguments and gives `(value, (w_grad, b_grad))`, if the result has
/// rank 0 or is a tuple that begins with such a number; `f::vjp(.., &cotangent)` gives the same for any result, weighted by a cotangent
/// of its extents. A cotangent has the structure of the result: `(&c0, (&c1, ()))` for `(Tensor, (Tensor, usize))`, `[&c0, &c1]` for an
/// array, a slice `&[c0, c1]` for a `Vec`, and `()` for what holds no tensor of floats: numbers, flags, tensors of integers or bools. With
/// one parameter its gradient stands alone. Forward and backward of a function of one graph are one graph, fused together; a function with graph
/// breaks or host branches is walked back graph by graph along the path it took. So is a function, of however many graphs, that is
/// called inside of a `value_and_grad` in plain Rust, such as a layer of a model. With `grad(order = 2, x)`,
/// `f::hvp(.., &x_vector)` gives `(value, product)`, the product of the second derivatives for `x` with a vector; the order also allows
/// for gradients that are taken inside of the body. Beside a method `forward` they are called `forward_value_and_grad`,
/// `forward_vjp` and `forward_hvp`.
///
/// Inside of a compiled function, `value_and_grad((&w, &b), |(w, b)| ..)` is a part of the graph. A closure that reads tensors on the
/// host, calls unknown code or may return early is followed op by op instead, and the report says so.
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
