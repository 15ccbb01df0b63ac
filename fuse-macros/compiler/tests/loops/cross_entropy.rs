#[doc = "row[logits.0 | logits.1] t2 = eq(targets, -100); t4 = max(logits); div23 = div(sum(where_cond(t2, 0, sub(ln(sum(exp(sub(logits, t4)))), sub(logits[where_cond(t2, 0, targets)], t4)))), f32(sum(logical_not(t2))))"]
#[allow(non_camel_case_types)]
struct k0_eq_max_sub_exp;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_eq_max_sub_exp {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let logits_in = &ins.elem::<f32>(1)[..n];
        let logits_in2 = ins.gather::<f32>(2);
        let targets: i64 = ins.row::<i64>(0);
        let eq: bool = targets == (-100i64);
        let where_cond: i64 = if eq { 0i64 } else { targets };
        let gathered: f32 = logits_in2.get(0, where_cond);
        let logical_not: bool = m::logical_not(eq);
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let logits: f32 = logits_in[i]; logits });
        let sub2: f32 = gathered - max;
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let logits: f32 = logits_in[i]; let sub: f32 = logits - max; let exp: f32 = m::exp(sub); exp });
        let ln: f32 = m::ln(sum);
        let sub3: f32 = ln - sub2;
        let where_cond2: f32 = if eq { 0.0f32 } else { sub3 };
        outs.stage::<f32>(15, where_cond2);
        outs.stage::<bool>(17, logical_not);
    }
    #[inline(always)]
    fn finish(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let where_cond2_rows = ins.staged::<f32>(15);
        let sum2: f32 = rt::reduce::row_sum(where_cond2_rows.len(), #[inline(always)] |i| { where_cond2_rows[i] });
        let logical_not_rows = ins.staged::<bool>(17);
        let sum3: i64 = rt::reduce::row_sum(logical_not_rows.len(), #[inline(always)] |i| { m::cast::<bool, i64>({ logical_not_rows[i] }) });
        let cast: f32 = m::cast::<i64, f32>(sum3);
        let div: f32 = sum2 / cast;
        outs.all::<f32>(0, div);
    }
}
