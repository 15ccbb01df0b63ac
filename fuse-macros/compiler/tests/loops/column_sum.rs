#[doc = "column[x.1 | x.0] sum2 = sum(mul(x, x))"]
#[allow(non_camel_case_types)]
struct k0_mul_sum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_mul_sum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let sum: f32 = match ins.summed::<f32>(0) { Some(sum) => sum, None => rt::reduce::column_sum(n, #[inline(always)] |i| { let x: f32 = x_in[i]; let mul: f32 = x * x; mul }) };
        outs.row::<f32>(0, sum);
    }
    const SUMS: bool = true;
    #[inline(always)]
    fn sums(&self, ins: &::fuse_runtime::rt::Ins<'_>, sums: &mut ::fuse_runtime::rt::Sums<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let mut sum_lanes = sums.take::<f32>(0);
        for row in 0..ins.rows() {
            let x_in = &ins.elem_at::<f32>(0, row)[..n];
            let sum_lane = &mut sum_lanes.of(row)[..n];
            for i in 0..n {
                let x: f32 = x_in[i];
                let mul: f32 = x * x;
                sum_lane[i] = m::add(sum_lane[i], mul);
            }
        }
    }
}
