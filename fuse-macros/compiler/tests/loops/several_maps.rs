#[doc = "map[x.0] cast12 = T0(mul(C0(x), mul(C0(ge(uniform0(position), 0.10000000149011612)), C0(1.1111111111111112))))"]
#[allow(non_camel_case_types)]
struct k0_random_ge_mul<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_random_ge_mul<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<T0>(0)[..n];
        let position_in = &ins.elem::<i64>(1)[..n];
        let cast12_out = &mut outs.elem::<T0>(0)[..n];
        let draw: rt::Draw = ins.draw(0);
        for i in 0..n {
            let x: <T0 as Element>::Compute = Element::to_compute(x_in[i]);
            let cast: <T0 as Element>::Compute = x;
            let position: i64 = position_in[i];
            let uniform: f32 = draw.uniform(position);
            let ge: bool = uniform >= 0.1f32;
            let cast2: <T0 as Element>::Compute = m::cast::<bool, <T0 as Element>::Compute>(ge);
            let cast3: <T0 as Element>::Compute = m::cast::<f64, <T0 as Element>::Compute>(1.1111111111111112f64);
            let mul: <T0 as Element>::Compute = cast2 * cast3;
            let mul2: <T0 as Element>::Compute = cast * mul;
            let cast4: <T0 as Element>::Compute = m::round_to::<T0>(mul2);
            cast12_out[i] = <T0 as Element>::from_compute(cast4);
        }
    }
}
#[doc = "map[y.1, y.0] add14 = add(y, y)"]
#[allow(non_camel_case_types)]
struct k1_add<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k1_add<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let y_in = &ins.elem::<T0>(0)[..n];
        let add14_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let y: <T0 as Element>::Compute = Element::to_compute(y_in[i]);
            let add: <T0 as Element>::Compute = m::round_to::<T0>(y + y);
            add14_out[i] = <T0 as Element>::from_compute(add);
        }
    }
}
#[doc = "map[z.0, z.1, z.2] tanh15 = tanh(z)"]
#[allow(non_camel_case_types)]
struct k2_tanh<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k2_tanh<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let z_in = &ins.elem::<T0>(0)[..n];
        let tanh15_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let z: <T0 as Element>::Compute = Element::to_compute(z_in[i]);
            let tanh: <T0 as Element>::Compute = m::round_to::<T0>(m::tanh(z));
            tanh15_out[i] = <T0 as Element>::from_compute(tanh);
        }
    }
}
