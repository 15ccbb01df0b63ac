#[doc = "map[broadcast(x.0, y.0), broadcast(x.1, y.1)] add9 = add(mul(relu(add(mul(x, 2), 1)), sigmoid(x)), y)"]
#[allow(non_camel_case_types)]
struct k0_mul_add_relu_sigmoid;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_mul_add_relu_sigmoid {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let y_in = &ins.elem::<f32>(1)[..n];
        let add9_out = &mut outs.elem::<f32>(0)[..n];
        for i in 0..n {
            let x: f32 = x_in[i];
            let mul: f32 = x * 2.0f32;
            let add: f32 = mul + 1.0f32;
            let relu: f32 = m::relu(add);
            let gate: f32 = m::sigmoid(x);
            let mul2: f32 = relu * gate;
            let y: f32 = y_in[i];
            let add2: f32 = mul2 + y;
            add9_out[i] = add2;
        }
    }
}
