#[doc = "row[q.0, q.1 | q.2] t1 = C0(q); cast15 = T0(mul(mul(t1, rsqrt(add(div(sum(mul(t1, t1)), q.2), C0(0.000001)))), C0(q_weight)))"]
#[allow(non_camel_case_types)]
struct k0_mul_sum_div_add<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_mul_sum_div_add<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let q_in = &ins.elem::<T0>(0)[..n];
        let q_weight_in = &ins.elem::<T0>(1)[..n];
        let cast15_out = &mut outs.elem::<T0>(0)[..n];
        let extent: <T0 as Element>::Compute = m::cast::<i64, <T0 as Element>::Compute>(ins.size(4));
        let cast2: <T0 as Element>::Compute = m::cast::<f64, <T0 as Element>::Compute>(1e-6f64);
        let sum: <T0 as Element>::Compute = rt::reduce::row_sum(n, #[inline(always)] |i| { let q: <T0 as Element>::Compute = Element::to_compute(q_in[i]); let cast: <T0 as Element>::Compute = q; let mul: <T0 as Element>::Compute = cast * cast; mul });
        let div: <T0 as Element>::Compute = sum / extent;
        let add: <T0 as Element>::Compute = div + cast2;
        let rsqrt: <T0 as Element>::Compute = m::recip(m::sqrt(add));
        for i in 0..n {
            let q: <T0 as Element>::Compute = Element::to_compute(q_in[i]);
            let cast: <T0 as Element>::Compute = q;
            let mul2: <T0 as Element>::Compute = cast * rsqrt;
            let q_weight: <T0 as Element>::Compute = Element::to_compute(q_weight_in[i]);
            let cast3: <T0 as Element>::Compute = q_weight;
            let mul3: <T0 as Element>::Compute = mul2 * cast3;
            let cast4: <T0 as Element>::Compute = m::round_to::<T0>(mul3);
            cast15_out[i] = <T0 as Element>::from_compute(cast4);
        }
    }
}
#[doc = "row[k.0, k.1 | k.2] t1 = C0(k); cast29 = T0(mul(mul(t1, rsqrt(add(div(sum(mul(t1, t1)), k.2), C0(0.000001)))), C0(k_weight)))"]
#[allow(non_camel_case_types)]
struct k1_mul_sum_div_add<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k1_mul_sum_div_add<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let k_in = &ins.elem::<T0>(0)[..n];
        let k_weight_in = &ins.elem::<T0>(1)[..n];
        let cast29_out = &mut outs.elem::<T0>(0)[..n];
        let extent: <T0 as Element>::Compute = m::cast::<i64, <T0 as Element>::Compute>(ins.size(4));
        let cast2: <T0 as Element>::Compute = m::cast::<f64, <T0 as Element>::Compute>(1e-6f64);
        let sum: <T0 as Element>::Compute = rt::reduce::row_sum(n, #[inline(always)] |i| { let k: <T0 as Element>::Compute = Element::to_compute(k_in[i]); let cast: <T0 as Element>::Compute = k; let mul: <T0 as Element>::Compute = cast * cast; mul });
        let div: <T0 as Element>::Compute = sum / extent;
        let add: <T0 as Element>::Compute = div + cast2;
        let rsqrt: <T0 as Element>::Compute = m::recip(m::sqrt(add));
        for i in 0..n {
            let k: <T0 as Element>::Compute = Element::to_compute(k_in[i]);
            let cast: <T0 as Element>::Compute = k;
            let mul2: <T0 as Element>::Compute = cast * rsqrt;
            let k_weight: <T0 as Element>::Compute = Element::to_compute(k_weight_in[i]);
            let cast3: <T0 as Element>::Compute = k_weight;
            let mul3: <T0 as Element>::Compute = mul2 * cast3;
            let cast4: <T0 as Element>::Compute = m::round_to::<T0>(mul3);
            cast29_out[i] = <T0 as Element>::from_compute(cast4);
        }
    }
}
#[doc = "map[count.0] add32 = add(count, 1)"]
#[allow(non_camel_case_types)]
struct k2_add<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k2_add<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let count_in = &ins.elem::<i64>(0)[..n];
        let add32_out = &mut outs.elem::<i64>(0)[..n];
        for i in 0..n {
            let count: i64 = count_in[i];
            let add: i64 = count.wrapping_add(1i64);
            add32_out[i] = add;
        }
    }
}
