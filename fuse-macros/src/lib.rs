//! The `#[compile]` attribute of fuse.

mod loops;

use proc_macro::TokenStream;

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
