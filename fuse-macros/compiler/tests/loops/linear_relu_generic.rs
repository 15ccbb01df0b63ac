#[doc = "map[x.0, w.1] product3 = product"]
#[allow(non_camel_case_types)]
struct k0_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let product3_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = m::round_to::<T0>(product_in[i]);
            product3_out[i] = <T0 as Element>::from_compute(product);
        }
    }
}
#[doc = "map[x.0, broadcast(w.1, b.0)] relu5 = relu(add(product3, b))"]
#[allow(non_camel_case_types)]
struct k1_add_relu<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k1_add_relu<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product3_in = &ins.elem::<T0>(0)[..n];
        let b_in = &ins.elem::<T0>(1)[..n];
        let relu5_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product3: <T0 as Element>::Compute = Element::to_compute(product3_in[i]);
            let b: <T0 as Element>::Compute = Element::to_compute(b_in[i]);
            let add: <T0 as Element>::Compute = m::round_to::<T0>(product3 + b);
            let relu: <T0 as Element>::Compute = m::round_to::<T0>(m::relu(add));
            relu5_out[i] = <T0 as Element>::from_compute(relu);
        }
    }
}
