//! The `#[compile]` attribute of fuse.

use proc_macro::TokenStream;

/// The tensor methods that follow from the rows of the op table, as calls of macros that the runtime defines.
#[doc(hidden)]
#[proc_macro]
pub fn table_methods(_: TokenStream) -> TokenStream {
    fuse_compiler::op::methods::text().parse().expect("the text is a list of macro calls")
}
