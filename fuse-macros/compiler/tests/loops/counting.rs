#[doc = "row[x.0 | x.1] sum3 = sum(gt(x, 0.5))"]
#[allow(non_camel_case_types)]
struct k0_gt_sum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_gt_sum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let sum: i64 = rt::reduce::row_sum(n, #[inline(always)] |i| { m::cast::<bool, i64>({ let x: f32 = x_in[i]; let gt: bool = x > 0.5f32; gt }) });
        outs.row::<i64>(0, sum);
    }
}
