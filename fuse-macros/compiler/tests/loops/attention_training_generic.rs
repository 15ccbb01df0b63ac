#[doc = "map[q.0, q.1, k.1] product4 = product"]
#[allow(non_camel_case_types)]
struct k0_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let product4_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = m::round_to::<T0>(product_in[i]);
            product4_out[i] = <T0 as Element>::from_compute(product);
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t3 = C0(mul(product4, 0.125)); t6 = exp(sub(t3, max(t3))); t9 = T0(div(t6, sum(t6))); cast15 = t9; cast25 = T0(mul(C0(t9), mul(C0(ge(uniform0(position), 0.10000000149011612)), C0(1.1111111111111112))))"]
#[allow(non_camel_case_types)]
struct k1_mul_max_sub_exp<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k1_mul_max_sub_exp<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product4_in = &ins.elem::<T0>(0)[..n];
        let position_in = &ins.elem::<i64>(1)[..n];
        let cast15_out = &mut outs.elem::<T0>(0)[..n];
        let cast25_out = &mut outs.elem::<T0>(1)[..n];
        let draw: rt::Draw = ins.draw(0);
        let max: <T0 as Element>::Compute = rt::reduce::max(n, #[inline(always)] |i| { let product4: <T0 as Element>::Compute = Element::to_compute(product4_in[i]); let mul: <T0 as Element>::Compute = m::round_to::<T0>(product4 * <<T0 as Element>::Compute as Element>::from_f64(0.125f64)); let cast: <T0 as Element>::Compute = mul; cast });
        let sum: <T0 as Element>::Compute = rt::reduce::row_sum(n, #[inline(always)] |i| { let product4: <T0 as Element>::Compute = Element::to_compute(product4_in[i]); let mul: <T0 as Element>::Compute = m::round_to::<T0>(product4 * <<T0 as Element>::Compute as Element>::from_f64(0.125f64)); let cast: <T0 as Element>::Compute = mul; let sub: <T0 as Element>::Compute = cast - max; let exp: <T0 as Element>::Compute = m::exp(sub); exp });
        for i in 0..n {
            let product4: <T0 as Element>::Compute = Element::to_compute(product4_in[i]);
            let mul: <T0 as Element>::Compute = m::round_to::<T0>(product4 * <<T0 as Element>::Compute as Element>::from_f64(0.125f64));
            let cast: <T0 as Element>::Compute = mul;
            let sub: <T0 as Element>::Compute = cast - max;
            let exp: <T0 as Element>::Compute = m::exp(sub);
            let div: <T0 as Element>::Compute = exp / sum;
            let cast2: <T0 as Element>::Compute = m::round_to::<T0>(div);
            let cast3: <T0 as Element>::Compute = cast2;
            let position: i64 = position_in[i];
            let uniform: f32 = draw.uniform(position);
            let ge: bool = uniform >= 0.1f32;
            let cast4: <T0 as Element>::Compute = m::cast::<bool, <T0 as Element>::Compute>(ge);
            let cast5: <T0 as Element>::Compute = m::cast::<f64, <T0 as Element>::Compute>(1.1111111111111112f64);
            let mul2: <T0 as Element>::Compute = cast4 * cast5;
            let mul3: <T0 as Element>::Compute = cast3 * mul2;
            let cast6: <T0 as Element>::Compute = m::round_to::<T0>(mul3);
            cast15_out[i] = <T0 as Element>::from_compute(cast2);
            cast25_out[i] = <T0 as Element>::from_compute(cast6);
        }
    }
}
#[doc = "map[q.0, q.1, v.2] product26 = product"]
#[allow(non_camel_case_types)]
struct k2_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k2_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let product26_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = m::round_to::<T0>(product_in[i]);
            product26_out[i] = <T0 as Element>::from_compute(product);
        }
    }
}
#[doc = "map[q.0, k.1, v.2] v_grad = T0(product)"]
#[allow(non_camel_case_types)]
struct k3_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k3_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let v_grad_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = product_in[i];
            let v_grad: <T0 as Element>::Compute = m::round_to::<T0>(product);
            v_grad_out[i] = <T0 as Element>::from_compute(v_grad);
        }
    }
}
#[doc = "map[q.0, q.1, k.1] cast30 = T0(product)"]
#[allow(non_camel_case_types)]
struct k4_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k4_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let cast30_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = product_in[i];
            let cast: <T0 as Element>::Compute = m::round_to::<T0>(product);
            cast30_out[i] = <T0 as Element>::from_compute(cast);
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t1 = C0(cast15); t14 = C0(T0(mul(C0(cast30), mul(C0(ge(uniform0(position), 0.10000000149011612)), C0(1.1111111111111112))))); cast47 = T0(mul(C0(T0(mul(t1, sub(t14, sum(mul(t14, t1)))))), C0(0.125)))"]
#[allow(non_camel_case_types)]
struct k5_random_ge_mul_sum<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k5_random_ge_mul_sum<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let cast15_in = &ins.elem::<T0>(0)[..n];
        let cast30_in = &ins.elem::<T0>(1)[..n];
        let position_in = &ins.elem::<i64>(2)[..n];
        let cast47_out = &mut outs.elem::<T0>(0)[..n];
        let draw: rt::Draw = ins.draw(0);
        let sum: <T0 as Element>::Compute = rt::reduce::row_sum(n, #[inline(always)] |i| { let cast15: <T0 as Element>::Compute = Element::to_compute(cast15_in[i]); let cast: <T0 as Element>::Compute = cast15; let cast30: <T0 as Element>::Compute = Element::to_compute(cast30_in[i]); let cast2: <T0 as Element>::Compute = cast30; let position: i64 = position_in[i]; let uniform: f32 = draw.uniform(position); let ge: bool = uniform >= 0.1f32; let cast3: <T0 as Element>::Compute = m::cast::<bool, <T0 as Element>::Compute>(ge); let cast4: <T0 as Element>::Compute = m::cast::<f64, <T0 as Element>::Compute>(1.1111111111111112f64); let mul: <T0 as Element>::Compute = cast3 * cast4; let mul2: <T0 as Element>::Compute = cast2 * mul; let cast5: <T0 as Element>::Compute = m::round_to::<T0>(mul2); let cast6: <T0 as Element>::Compute = cast5; let mul3: <T0 as Element>::Compute = cast6 * cast; mul3 });
        for i in 0..n {
            let cast15: <T0 as Element>::Compute = Element::to_compute(cast15_in[i]);
            let cast: <T0 as Element>::Compute = cast15;
            let cast30: <T0 as Element>::Compute = Element::to_compute(cast30_in[i]);
            let cast2: <T0 as Element>::Compute = cast30;
            let position: i64 = position_in[i];
            let uniform: f32 = draw.uniform(position);
            let ge: bool = uniform >= 0.1f32;
            let cast3: <T0 as Element>::Compute = m::cast::<bool, <T0 as Element>::Compute>(ge);
            let cast4: <T0 as Element>::Compute = m::cast::<f64, <T0 as Element>::Compute>(1.1111111111111112f64);
            let mul: <T0 as Element>::Compute = cast3 * cast4;
            let mul2: <T0 as Element>::Compute = cast2 * mul;
            let cast5: <T0 as Element>::Compute = m::round_to::<T0>(mul2);
            let cast6: <T0 as Element>::Compute = cast5;
            let sub: <T0 as Element>::Compute = cast6 - sum;
            let mul4: <T0 as Element>::Compute = cast * sub;
            let cast7: <T0 as Element>::Compute = m::round_to::<T0>(mul4);
            let cast8: <T0 as Element>::Compute = cast7;
            let cast9: <T0 as Element>::Compute = <<T0 as Element>::Compute as Element>::from_f64(0.125f64);
            let mul5: <T0 as Element>::Compute = cast8 * cast9;
            let cast10: <T0 as Element>::Compute = m::round_to::<T0>(mul5);
            cast47_out[i] = <T0 as Element>::from_compute(cast10);
        }
    }
}
#[doc = "map[q.0, q.1, q.2] q_grad = T0(product)"]
#[allow(non_camel_case_types)]
struct k6_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k6_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let q_grad_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = product_in[i];
            let q_grad: <T0 as Element>::Compute = m::round_to::<T0>(product);
            q_grad_out[i] = <T0 as Element>::from_compute(q_grad);
        }
    }
}
#[doc = "map[q.0, k.1, q.2] cast53 = T0(product)"]
#[allow(non_camel_case_types)]
struct k7_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k7_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let cast53_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = product_in[i];
            let cast: <T0 as Element>::Compute = m::round_to::<T0>(product);
            cast53_out[i] = <T0 as Element>::from_compute(cast);
        }
    }
}
