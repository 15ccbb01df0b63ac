//! The kernel that tells a graph whether its loop goes on.
//!
//! The function it calls is the driver's own, which resolves it where it loads PTX; NVRTC has no program to link it to.

use super::cache::Program;
use super::driver::{Backend, Context};
use super::module::Function;
use crate::error::Result;
use crate::log::{self, Topic};

const NAME: &str = "set_condition";

/// Sets the condition of a handle to the bool at an address.
const SOURCE: &str = "\
.version 8.3
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 cudaGraphSetConditional_param_0, .param .b32 cudaGraphSetConditional_param_1)
;
.visible .entry set_condition(.param .u64 handle, .param .u64 flag)
{
    .reg .b16 %rs<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [handle];
    ld.param.u64 %rd2, [flag];
    cvta.to.global.u64 %rd3, %rd2;
    ld.global.u8 %rs1, [%rd3];
    cvt.u32.u16 %r1, %rs1;
    {
    .param .b64 param0;
    st.param.b64 [param0+0], %rd1;
    .param .b32 param1;
    st.param.b32 [param1+0], %r1;
    call.uni cudaGraphSetConditional, (param0, param1);
    }
    ret;
}
\0";

impl Context {
    /// The kernel, whose arguments are a handle and an address; `None` where the driver cannot load it.
    pub(super) fn set_condition(&self) -> Option<Function> {
        let program = Program { name: NAME, source: SOURCE, arch: "ptx", defines: &[], contract: false };
        let loaded: Result<Function> = self.functions.get_or_try_make(program.key(), || match &self.backend {
            Backend::Real(real) => real.load(self, SOURCE.as_bytes(), NAME, false),
            _ => Ok(Function::unloaded(NAME)),
        });
        loaded.inspect_err(|error| log::line(Topic::Launch, format_args!("no loops in graphs: {error}"))).ok()
    }
}
