#[doc = "column[x.1 | x.0] cast19 = bf16(mul(f32(sum(x)), mul(f32(ge(uniform1(position), 0.10000000149011612)), 1.1111111640930176)))"]
#[allow(non_camel_case_types)]
struct k0_sum_random_ge_mul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_sum_random_ge_mul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let draw: rt::Draw = ins.draw(1);
        let position: i64 = ins.row::<i64>(1);
        let uniform: f32 = draw.uniform(position);
        let ge: bool = uniform >= 0.1f32;
        let cast2: f32 = m::cast::<bool, f32>(ge);
        let mul: f32 = cast2 * 1.1111112f32;
        let sum: f32 = m::round_bf16(match ins.summed::<f32>(0) { Some(sum) => sum, None => rt::reduce::column_sum(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); x }) });
        let cast: f32 = sum;
        let mul2: f32 = cast * mul;
        let cast3: f32 = m::round_bf16(mul2);
        outs.row::<::fuse_runtime::prelude::bf16>(0, <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast3));
    }
    const SUMS: bool = true;
    #[inline(always)]
    fn sums(&self, ins: &::fuse_runtime::rt::Ins<'_>, sums: &mut ::fuse_runtime::rt::Sums<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let mut sum_lanes = sums.take::<f32>(0);
        let draw: rt::Draw = ins.draw(1);
        for row in 0..ins.rows() {
            let x_in = &ins.elem_at::<::fuse_runtime::prelude::bf16>(0, row)[..n];
            let sum_lane = &mut sum_lanes.of(row)[..n];
            for i in 0..n {
                let x: f32 = Element::to_compute(x_in[i]);
                sum_lane[i] = m::add(sum_lane[i], x);
            }
        }
    }
}
#[doc = "row[ | x.0, x.1] cast26 = bf16(mul(f32(sum(x)), mul(f32(ge(uniform2(position), 0.10000000149011612)), 1.1111111640930176)))"]
#[allow(non_camel_case_types)]
struct k1_sum_random_ge_mul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_sum_random_ge_mul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let draw: rt::Draw = ins.draw(2);
        let position: i64 = ins.row::<i64>(1);
        let uniform: f32 = draw.uniform(position);
        let ge: bool = uniform >= 0.1f32;
        let cast2: f32 = m::cast::<bool, f32>(ge);
        let mul: f32 = cast2 * 1.1111112f32;
        let sum: f32 = m::round_bf16(rt::reduce::row_sum(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); x }));
        let cast: f32 = sum;
        let mul2: f32 = cast * mul;
        let cast3: f32 = m::round_bf16(mul2);
        outs.row::<::fuse_runtime::prelude::bf16>(0, <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast3));
    }
}
#[doc = "row[x.0 | x.1] cast12 = bf16(mul(f32(sum(x)), mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176))); mul27 = mul(x, cast26)"]
#[allow(non_camel_case_types)]
struct k2_sum_random_ge_mul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k2_sum_random_ge_mul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let cast26_in = &ins.elem::<::fuse_runtime::prelude::bf16>(2)[..n];
        let mul27_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let draw: rt::Draw = ins.draw(0);
        let position: i64 = ins.row::<i64>(1);
        let uniform: f32 = draw.uniform(position);
        let ge: bool = uniform >= 0.1f32;
        let cast2: f32 = m::cast::<bool, f32>(ge);
        let mul: f32 = cast2 * 1.1111112f32;
        let sum: f32 = m::round_bf16(rt::reduce::row_sum(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); x }));
        for i in 0..n {
            let x: f32 = Element::to_compute(x_in[i]);
            let cast26: f32 = Element::to_compute(cast26_in[i]);
            let mul3: f32 = m::round_bf16(x * cast26);
            mul27_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(mul3);
        }
        let cast: f32 = sum;
        let mul2: f32 = cast * mul;
        let cast3: f32 = m::round_bf16(mul2);
        outs.row::<::fuse_runtime::prelude::bf16>(0, <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast3));
    }
}
