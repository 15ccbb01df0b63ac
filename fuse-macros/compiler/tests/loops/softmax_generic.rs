#[doc = "row[x.0 | x.1] t1 = C0(x); t4 = exp(sub(t1, max(t1))); cast9 = T0(div(t4, sum(t4)))"]
#[allow(non_camel_case_types)]
struct k0_max_sub_exp_sum<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_max_sub_exp_sum<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<T0>(0)[..n];
        let cast9_out = &mut outs.elem::<T0>(0)[..n];
        let max: <T0 as Element>::Compute = rt::reduce::max(n, #[inline(always)] |i| { let x: <T0 as Element>::Compute = Element::to_compute(x_in[i]); let cast: <T0 as Element>::Compute = x; cast });
        let sum: <T0 as Element>::Compute = rt::reduce::row_sum(n, #[inline(always)] |i| { let x: <T0 as Element>::Compute = Element::to_compute(x_in[i]); let cast: <T0 as Element>::Compute = x; let sub: <T0 as Element>::Compute = cast - max; let exp: <T0 as Element>::Compute = m::exp(sub); exp });
        for i in 0..n {
            let x: <T0 as Element>::Compute = Element::to_compute(x_in[i]);
            let cast: <T0 as Element>::Compute = x;
            let sub: <T0 as Element>::Compute = cast - max;
            let exp: <T0 as Element>::Compute = m::exp(sub);
            let div: <T0 as Element>::Compute = exp / sum;
            let cast2: <T0 as Element>::Compute = m::round_to::<T0>(div);
            cast9_out[i] = <T0 as Element>::from_compute(cast2);
        }
    }
}
