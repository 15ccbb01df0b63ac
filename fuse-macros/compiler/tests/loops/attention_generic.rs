#[doc = "map[q.0, q.1, k.1] product5 = product"]
#[allow(non_camel_case_types)]
struct k0_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let product5_out = &mut outs.elem::<<T0 as Element>::Compute>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = product_in[i];
            product5_out[i] = product;
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t12 = where_cond(le(position, position), add(mul(product5, recip(sqrt(q.2))), C0(bias)), -inf); t13 = max(t12); t15 = eq(t13, -inf); t19 = exp(sub(t12, where_cond(t15, 0, t13))); cast30 = T0(div(t19, where_cond(t15, 1, sum(t19))))"]
#[allow(non_camel_case_types)]
struct k1_le_sqrt_recip_mul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k1_le_sqrt_recip_mul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let position_in = &ins.elem::<i64>(0)[..n];
        let position_in2 = &ins.elem::<i64>(1)[..n];
        let product5_in = &ins.elem::<<T0 as Element>::Compute>(2)[..n];
        let bias_in = &ins.elem::<T0>(3)[..n];
        let cast30_out = &mut outs.elem::<T0>(0)[..n];
        let extent: <T0 as Element>::Compute = m::cast::<i64, <T0 as Element>::Compute>(ins.size(4));
        let max: <T0 as Element>::Compute = rt::reduce::max(n, #[inline(always)] |i| { let position: i64 = position_in[i]; let position2: i64 = position_in2[i]; let le: bool = position <= position2; let product5: <T0 as Element>::Compute = product5_in[i]; let sqrt: <T0 as Element>::Compute = m::sqrt(extent); let recip: <T0 as Element>::Compute = m::recip(sqrt); let mul: <T0 as Element>::Compute = product5 * recip; let bias: <T0 as Element>::Compute = Element::to_compute(bias_in[i]); let cast: <T0 as Element>::Compute = bias; let add: <T0 as Element>::Compute = mul + cast; let where_cond: <T0 as Element>::Compute = if le { add } else { <<T0 as Element>::Compute as Element>::from_f64(f64::from_bits(18442240474082181120)) }; where_cond });
        let eq: bool = max == <<T0 as Element>::Compute as Element>::from_f64(f64::from_bits(18442240474082181120));
        let where_cond2: <T0 as Element>::Compute = if eq { <<T0 as Element>::Compute as Element>::from_f64(0.0f64) } else { max };
        let sum: <T0 as Element>::Compute = rt::reduce::row_sum(n, #[inline(always)] |i| { let position: i64 = position_in[i]; let position2: i64 = position_in2[i]; let le: bool = position <= position2; let product5: <T0 as Element>::Compute = product5_in[i]; let sqrt: <T0 as Element>::Compute = m::sqrt(extent); let recip: <T0 as Element>::Compute = m::recip(sqrt); let mul: <T0 as Element>::Compute = product5 * recip; let bias: <T0 as Element>::Compute = Element::to_compute(bias_in[i]); let cast: <T0 as Element>::Compute = bias; let add: <T0 as Element>::Compute = mul + cast; let where_cond: <T0 as Element>::Compute = if le { add } else { <<T0 as Element>::Compute as Element>::from_f64(f64::from_bits(18442240474082181120)) }; let sub: <T0 as Element>::Compute = where_cond - where_cond2; let exp: <T0 as Element>::Compute = m::exp(sub); exp });
        let where_cond3: <T0 as Element>::Compute = if eq { <<T0 as Element>::Compute as Element>::from_f64(1.0f64) } else { sum };
        for i in 0..n {
            let position: i64 = position_in[i];
            let position2: i64 = position_in2[i];
            let le: bool = position <= position2;
            let product5: <T0 as Element>::Compute = product5_in[i];
            let sqrt: <T0 as Element>::Compute = m::sqrt(extent);
            let recip: <T0 as Element>::Compute = m::recip(sqrt);
            let mul: <T0 as Element>::Compute = product5 * recip;
            let bias: <T0 as Element>::Compute = Element::to_compute(bias_in[i]);
            let cast: <T0 as Element>::Compute = bias;
            let add: <T0 as Element>::Compute = mul + cast;
            let where_cond: <T0 as Element>::Compute = if le { add } else { <<T0 as Element>::Compute as Element>::from_f64(f64::from_bits(18442240474082181120)) };
            let sub: <T0 as Element>::Compute = where_cond - where_cond2;
            let exp: <T0 as Element>::Compute = m::exp(sub);
            let div: <T0 as Element>::Compute = exp / where_cond3;
            let cast2: <T0 as Element>::Compute = m::round_to::<T0>(div);
            cast30_out[i] = <T0 as Element>::from_compute(cast2);
        }
    }
}
#[doc = "map[q.0, q.1, v.2] cast32 = T0(product)"]
#[allow(non_camel_case_types)]
struct k2_matmul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k2_matmul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<<T0 as Element>::Compute>()[..n];
        let cast32_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let product: <T0 as Element>::Compute = product_in[i];
            let cast: <T0 as Element>::Compute = m::round_to::<T0>(product);
            cast32_out[i] = <T0 as Element>::from_compute(cast);
        }
    }
}
