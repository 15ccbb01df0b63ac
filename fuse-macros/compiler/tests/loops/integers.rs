#[doc = "map[broadcast(x.0, y.0)] add5 = add(floor_divide(x, y), x)"]
#[allow(non_camel_case_types)]
struct k0_floor_divide_add;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_floor_divide_add {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<i64>(0)[..n];
        let y_in = &ins.elem::<i64>(1)[..n];
        let add5_out = &mut outs.elem::<i64>(0)[..n];
        for i in 0..n {
            let x: i64 = x_in[i];
            let y: i64 = y_in[i];
            let floor_divide: i64 = { if y == 0 { ins.fault(2); } m::floor_divide(x, y) };
            let add: i64 = floor_divide.wrapping_add(x);
            add5_out[i] = add;
        }
    }
}
#[doc = "map[broadcast(a.0, b.0)] mul6 = mul(a, b); eq7 = eq(a, b)"]
#[allow(non_camel_case_types)]
struct k1_mul_eq;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_mul_eq {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let a_in = &ins.elem::<u8>(0)[..n];
        let b_in = &ins.elem::<u8>(1)[..n];
        let mul6_out = &mut outs.elem::<u8>(0)[..n];
        let eq7_out = &mut outs.elem::<bool>(1)[..n];
        for i in 0..n {
            let a: u8 = a_in[i];
            let b: u8 = b_in[i];
            let mul: u8 = a.wrapping_mul(b);
            let eq: bool = a == b;
            mul6_out[i] = mul;
            eq7_out[i] = eq;
        }
    }
}
