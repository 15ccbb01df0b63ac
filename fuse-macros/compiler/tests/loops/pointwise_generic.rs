#[doc = "map[broadcast(x.0, y.0), broadcast(x.1, y.1)] add9 = add(mul(relu(add(mul(x, 2), 1)), sigmoid(x)), y)"]
#[allow(non_camel_case_types)]
struct k0_mul_add_relu_sigmoid<T0>(::core::marker::PhantomData<fn() -> (T0,)>);
#[allow(unused, clippy::all)]
impl<T0: ::fuse_runtime::Float> ::fuse_runtime::rt::Body for k0_mul_add_relu_sigmoid<T0> {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<T0>(0)[..n];
        let y_in = &ins.elem::<T0>(1)[..n];
        let add9_out = &mut outs.elem::<T0>(0)[..n];
        for i in 0..n {
            let x: <T0 as Element>::Compute = Element::to_compute(x_in[i]);
            let mul: <T0 as Element>::Compute = m::round_to::<T0>(x * <<T0 as Element>::Compute as Element>::from_f64(2.0f64));
            let add: <T0 as Element>::Compute = m::round_to::<T0>(mul + <<T0 as Element>::Compute as Element>::from_f64(1.0f64));
            let relu: <T0 as Element>::Compute = m::round_to::<T0>(m::relu(add));
            let gate: <T0 as Element>::Compute = m::round_to::<T0>(m::sigmoid(x));
            let mul2: <T0 as Element>::Compute = m::round_to::<T0>(relu * gate);
            let y: <T0 as Element>::Compute = Element::to_compute(y_in[i]);
            let add2: <T0 as Element>::Compute = m::round_to::<T0>(mul2 + y);
            add9_out[i] = <T0 as Element>::from_compute(add2);
        }
    }
}
