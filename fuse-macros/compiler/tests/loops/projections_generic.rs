#[doc = "map[x.0, b.0] add8 = add(product, b)"]
#[allow(non_camel_case_types)]
struct k0_matmul_add<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_matmul_add<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let b_in = &ins.elem::<T0>(0)[..n];
        let add8_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = m::round_to::<T0>(product_in[i]);
            let b: <T0 as Element>::Compute = Element::to_compute(b_in[i]);
            let add: <T0 as Element>::Compute = m::round_to::<T0>(product + b);
            add8_out[i] = <T0 as Element>::from_compute(add);
        }
    }
}
#[doc = "map[x.0, b.0] product6 = product"]
#[allow(non_camel_case_types)]
struct k1_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k1_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let product6_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = m::round_to::<T0>(product_in[i]);
            product6_out[i] = <T0 as Element>::from_compute(product);
        }
    }
}
#[doc = "map[x.0, b.0] product7 = product"]
#[allow(non_camel_case_types)]
struct k2_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k2_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let product7_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = m::round_to::<T0>(product_in[i]);
            product7_out[i] = <T0 as Element>::from_compute(product);
        }
    }
}
