//! A failure says the same op by op and compiled: as panic, as the `Err` of a function that returns a `Result`, and under
//! `backend = "eager"`. It names the op that fails, wherever that stands in a graph.

mod common;

use common::device;
use fuse_compiler::op::{Attr, Call, Class, Op, ParamKind, Rules, table};
use fuse_compiler::types::{DType, Dim, Sym, Ty};
use fuse_runtime::prelude::*;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// A way to make a call.
type Way = Box<dyn Fn() -> Said>;

/// A call that fails, and what it says in each way to make it.
struct Case {
    op: &'static str,
    name: &'static str,
    ways: Vec<(&'static str, Way)>,
}

/// What a call fails with.
#[derive(PartialEq)]
enum Said {
    /// The error's kind and text.
    Error(ErrorKind, String),
    Nothing,
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Said::Error(kind, text) => write!(f, "{kind:?}: {text}"),
            Said::Nothing => write!(f, "no error"),
        }
    }
}

/// A GPU tells the next who waits of a fault, whoever called.
static ALONE: Mutex<()> = Mutex::new(());

/// What a call fails with, be it at once or with the next wait for the device.
fn said<T>(call: impl FnOnce() -> Result<T, Error>) -> Said {
    let waited = || call().and_then(|value| device().synchronize().map(|()| value));
    match catch_unwind(AssertUnwindSafe(waited)) {
        Ok(Ok(_)) => Said::Nothing,
        Ok(Err(error)) => Said::Error(error.kind(), error.to_string()),
        Err(panic) => match panic.downcast::<Error>() {
            Ok(error) => Said::Error(error.kind(), error.to_string()),
            Err(_) => Said::Nothing,
        },
    }
}

/// Functions that fail: the op that does, the function, and what it is called with.
macro_rules! cases {
    ($list:ident in $module:ident: $($op:literal $name:ident($($params:tt)*) -> [$($out:tt)*] $body:block with ($($value:expr),*);)*) => {
        #[allow(unused_braces)]
        mod $module {
            use super::*;

            $(
                #[compile]
                pub fn $name($($params)*) -> $($out)* $body
            )*

            pub mod returned {
                use super::*;
                $(
                    #[compile]
                    pub fn $name($($params)*) -> Result<$($out)*, Error> {
                        let value: $($out)* = $body;
                        Ok(value)
                    }
                )*
            }

            pub mod op_by_op {
                use super::*;
                $(
                    #[compile(backend = "eager")]
                    pub fn $name($($params)*) -> Result<$($out)*, Error> {
                        Ok($body)
                    }
                )*
            }
        }

        fn $list() -> Vec<Case> {
            vec![$(Case {
                op: $op,
                name: stringify!($name),
                ways: vec![
                    ("original", Box::new(|| said(|| Ok($module::$name::eager($($value),*))))),
                    ("compiled", Box::new(|| said(|| Ok($module::$name($($value),*))))),
                    ("returned", Box::new(|| said(|| $module::returned::$name($($value),*)))),
                    ("op by op", Box::new(|| said(|| $module::op_by_op::$name($($value),*)))),
                ],
            }),*]
        }
    };
}

fn floats<const R: usize>(dims: [usize; R]) -> Tensor<f32, R> {
    Tensor::ones(dims, device())
}

fn ints<const R: usize>(dims: [usize; R]) -> Tensor<i64, R> {
    Tensor::zeros(dims, device())
}

fn bools<const R: usize>(dims: [usize; R]) -> Tensor<bool, R> {
    Tensor::zeros(dims, device())
}

fn at(positions: &[i64]) -> Tensor<i64, 1> {
    Tensor::from_slice(positions, [positions.len()], device())
}

cases! { shapes in of_shapes:
    "add" add(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x + y } with (&floats([2]), &floats([3]));
    "add" add_of_matrices(x: &Tensor<f32, 2>, y: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x + y } with (&floats([2, 3]), &floats([4, 3]));
    "add" add_of_a_constant(x: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x + Tensor::ones([3], x.device()) } with (&floats([2]));
    "add" add_behind_ops(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.exp() + y.relu() * 2.0 } with (&floats([2]), &floats([3]));
    "add" add_of_three(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>, z: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x + y + z } with (&floats([1]), &floats([3]), &floats([2]));
    "add" add_to(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [()] { *x += y; } with (&mut floats([2]), &floats([3]));
    "add" add_more_to(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [()] { *x += y; } with (&mut floats([1]), &floats([3]));
    "sub" sub(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x - y } with (&floats([2]), &floats([3]));
    "mul" mul(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x * y } with (&floats([2]), &floats([3]));
    "mul" mul_by(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [()] { *x *= y; } with (&mut floats([2]), &floats([3]));
    "div" div(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x / y } with (&floats([2]), &floats([3]));
    "fmod" rem(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x % y } with (&floats([2]), &floats([3]));
    "fmod" fmod(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.fmod(y) } with (&floats([2]), &floats([3]));
    "remainder" remainder(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.remainder(y) } with (&floats([2]), &floats([3]));
    "floor_divide" floor_divide(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.floor_divide(y) } with (&floats([2]), &floats([3]));
    "powf" powf(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.powf(y) } with (&floats([2]), &floats([3]));
    "minimum" minimum(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.minimum(y) } with (&floats([2]), &floats([3]));
    "maximum" maximum(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.maximum(y) } with (&floats([2]), &floats([3]));
    "clamp" clamp(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.clamp(y, 2.0) } with (&floats([2]), &floats([3]));
    "leaky_relu" leaky_relu(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.leaky_relu(y) } with (&floats([2]), &floats([3]));
    "eq" eq(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<bool, 1>] { x.eq(y) } with (&floats([2]), &floats([3]));
    "ne" ne(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<bool, 1>] { x.ne(y) } with (&floats([2]), &floats([3]));
    "lt" lt(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<bool, 1>] { x.lt(y) } with (&floats([2]), &floats([3]));
    "le" le(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<bool, 1>] { x.le(y) } with (&floats([2]), &floats([3]));
    "gt" gt(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<bool, 1>] { x.gt(y) } with (&floats([2]), &floats([3]));
    "ge" ge(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<bool, 1>] { x.ge(y) } with (&floats([2]), &floats([3]));
    "logical_and" logical_and(x: &Tensor<bool, 1>, y: &Tensor<bool, 1>) -> [Tensor<bool, 1>] { x.logical_and(y) } with (&bools([2]), &bools([3]));
    "logical_or" logical_or(x: &Tensor<bool, 1>, y: &Tensor<bool, 1>) -> [Tensor<bool, 1>] { x.logical_or(y) } with (&bools([2]), &bools([3]));
    "bitwise_and" bitwise_and(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x & y } with (&ints([2]), &ints([3]));
    "bitwise_or" bitwise_or(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x | y } with (&ints([2]), &ints([3]));
    "bitwise_xor" bitwise_xor(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x ^ y } with (&ints([2]), &ints([3]));
    "bitwise_left_shift" bitwise_left_shift(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x << y } with (&ints([2]), &ints([3]));
    "bitwise_right_shift" bitwise_right_shift(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x >> y } with (&ints([2]), &ints([3]));
    "where_cond" where_cond(c: &Tensor<bool, 1>, x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { c.where_cond(x, y) } with (&bools([2]), &floats([2]), &floats([3]));
    "masked_fill" masked_fill(x: &Tensor<f32, 1>, m: &Tensor<bool, 1>) -> [Tensor<f32, 1>] { x.masked_fill(m, 1.0) } with (&floats([2]), &bools([3]));
    "masked_fill" masked_fill_of_one(x: &Tensor<f32, 1>, m: &Tensor<bool, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.masked_fill(m, 1.0) + y } with (&floats([3]), &bools([2]), &floats([3]));

    "matmul" matmul(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.matmul(w) } with (&floats([2, 3]), &floats([4, 5]));
    "matmul" matmul_of_batches(x: &Tensor<f32, 3>, w: &Tensor<f32, 3>) -> [Tensor<f32, 3>] { x.matmul(w) } with (&floats([2, 3, 4]), &floats([3, 4, 5]));
    "matmul" matmul_of_vectors(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> [Tensor<f32, 0>] { x.matmul(w) } with (&floats([2]), &floats([3]));
    "matmul" matmul_of_views(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>, n: usize) -> [Tensor<f32, 2>] { x.narrow(1, 0, n).matmul(&w.t()) } with (&floats([2, 3]), &floats([4, 5]), 2);
    "linear" linear(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>, b: &Tensor<f32, 1>) -> [Tensor<f32, 2>] { x.linear(w, b) } with (&floats([2, 3]), &floats([5, 4]), &floats([5]));
    "linear" linear_bias(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>, b: &Tensor<f32, 1>) -> [Tensor<f32, 2>] { x.linear(w, b) } with (&floats([2, 4]), &floats([5, 4]), &floats([4]));
    "addmm" addmm(x: &Tensor<f32, 2>, a: &Tensor<f32, 2>, b: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.addmm(a, b) } with (&floats([3, 4]), &floats([2, 3]), &floats([3, 4]));
    "addmm" addmm_inner(x: &Tensor<f32, 2>, a: &Tensor<f32, 2>, b: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.addmm(a, b) } with (&floats([2, 4]), &floats([2, 3]), &floats([4, 4]));
    "addmm" addmm_of_more(x: &Tensor<f32, 2>, a: &Tensor<f32, 2>, b: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.addmm(a, b) } with (&floats([3, 4]), &floats([1, 3]), &floats([3, 4]));
    "baddbmm" baddbmm(x: &Tensor<f32, 3>, a: &Tensor<f32, 3>, b: &Tensor<f32, 3>) -> [Tensor<f32, 3>] { x.baddbmm(a, b) } with (&floats([2, 3, 5]), &floats([2, 3, 4]), &floats([2, 4, 6]));
    "scaled_matmul" scaled_matmul(x: &Tensor<f8e4m3, 2>, w: &Tensor<f8e4m3, 2>, s: &Tensor<f32, 0>) -> [Tensor<f32, 2>] { x.scaled_matmul::<f32>(w, s, s) } with (&Tensor::zeros([2, 3], device()), &Tensor::zeros([4, 5], device()), &floats([]));
    "scaled_dot_product_attention" attention(q: &Tensor<f32, 3>, k: &Tensor<f32, 3>, v: &Tensor<f32, 3>) -> [Tensor<f32, 3>] { q.scaled_dot_product_attention(k, v, (), false) } with (&floats([2, 3, 4]), &floats([2, 5, 6]), &floats([2, 5, 4]));
    "scaled_dot_product_attention" attention_values(q: &Tensor<f32, 3>, k: &Tensor<f32, 3>, v: &Tensor<f32, 3>) -> [Tensor<f32, 3>] { q.scaled_dot_product_attention(k, v, (), false) } with (&floats([2, 3, 4]), &floats([2, 5, 4]), &floats([2, 6, 4]));
    "scaled_dot_product_attention" attention_mask(q: &Tensor<f32, 3>, k: &Tensor<f32, 3>, v: &Tensor<f32, 3>, m: &Tensor<bool, 3>) -> [Tensor<f32, 3>] { q.scaled_dot_product_attention(k, v, m, false) } with (&floats([2, 3, 4]), &floats([2, 5, 4]), &floats([2, 5, 4]), &bools([2, 3, 4]));

    "layer_norm" layer_norm(x: &Tensor<f32, 2>, w: &Tensor<f32, 1>, b: &Tensor<f32, 1>) -> [Tensor<f32, 2>] { x.layer_norm(w, b, 1e-5) } with (&floats([2, 3]), &floats([4]), &floats([3]));
    "layer_norm" layer_norm_bias(x: &Tensor<f32, 2>, w: &Tensor<f32, 1>, b: &Tensor<f32, 1>) -> [Tensor<f32, 2>] { x.layer_norm(w, b, 1e-5) } with (&floats([2, 3]), &floats([3]), &floats([4]));
    "rms_norm" rms_norm(x: &Tensor<f32, 2>, w: &Tensor<f32, 1>) -> [Tensor<f32, 2>] { x.rms_norm(w, 1e-5) } with (&floats([2, 3]), &floats([4]));
    "cross_entropy" cross_entropy(x: &Tensor<f32, 2>, t: &Tensor<i64, 1>) -> [Tensor<f32, 0>] { x.cross_entropy(t) } with (&floats([2, 3]), &ints([3]));
    "cross_entropy_with" cross_entropy_with(x: &Tensor<f32, 2>, t: &Tensor<i64, 1>) -> [Tensor<f32, 0>] { x.cross_entropy_with(t, Reduction::Sum, -1) } with (&floats([2, 3]), &ints([3]));

    "max" max(x: &Tensor<f32, 2>) -> [Tensor<f32, 1>] { x.max(1) } with (&floats([2, 0]));
    "min" min(x: &Tensor<f32, 2>) -> [Tensor<f32, 1>] { x.min(1) } with (&floats([2, 0]));
    "argmax" argmax(x: &Tensor<f32, 2>) -> [Tensor<i64, 1>] { x.argmax(0) } with (&floats([0, 3]));
    "argmin" argmin(x: &Tensor<f32, 2>) -> [Tensor<i64, 1>] { x.argmin(0) } with (&floats([0, 3]));
    "max_keepdim" max_keepdim(x: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.max_keepdim(1) } with (&floats([2, 0]));
    "min_keepdim" min_keepdim(x: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.min_keepdim(1) } with (&floats([2, 0]));
    "argmax_keepdim" argmax_keepdim(x: &Tensor<f32, 2>) -> [Tensor<i64, 2>] { x.argmax_keepdim(0) } with (&floats([0, 3]));
    "argmin_keepdim" argmin_keepdim(x: &Tensor<f32, 2>) -> [Tensor<i64, 2>] { x.argmin_keepdim(0) } with (&floats([0, 3]));
    "max_all" max_all(x: &Tensor<f32, 2>) -> [Tensor<f32, 0>] { x.max_all() } with (&floats([2, 0]));
    "min_all" min_all(x: &Tensor<f32, 2>) -> [Tensor<f32, 0>] { x.min_all() } with (&floats([2, 0]));
    "argmax_all" argmax_all(x: &Tensor<f32, 2>) -> [Tensor<i64, 0>] { x.argmax_all() } with (&floats([2, 0]));
    "argmin_all" argmin_all(x: &Tensor<f32, 2>) -> [Tensor<i64, 0>] { x.argmin_all() } with (&floats([2, 0]));

    "reshape" reshape(x: &Tensor<f32, 2>, n: usize) -> [Tensor<f32, 1>] { x.reshape([n]) } with (&floats([2, 3]), 5);
    "reshape" reshape_of_a_computed_value(x: &Tensor<f32, 2>, n: usize) -> [Tensor<f32, 2>] { x.exp().reshape([n, 2]).relu() } with (&floats([2, 3]), 4);
    "reshape" reshape_to_constants(x: &Tensor<f32, 1>) -> [Tensor<f32, 2>] { x.reshape([2, 2]) } with (&floats([3]));
    "squeeze" squeeze(x: &Tensor<f32, 2>) -> [Tensor<f32, 1>] { x.squeeze(1) } with (&floats([2, 3]));
    "expand" expand(x: &Tensor<f32, 1>, n: usize) -> [Tensor<f32, 2>] { x.expand([n, n]) } with (&floats([2]), 3);
    "expand" expand_back(x: &Tensor<f32, 1>, n: usize) -> [Tensor<f32, 1>] { x.expand([n]) } with (&floats([2]), 1);
    "expand" expand_to_a_constant(x: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.expand([3]) } with (&floats([2]));
    "expand" expand_to_one(x: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.expand([1]) } with (&floats([2]));
    "expand" expand_to_another(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.exp().expand([y.size(0)]) + y } with (&floats([2]), &floats([3]));
    "narrow" narrow(x: &Tensor<f32, 1>, n: usize) -> [Tensor<f32, 1>] { x.narrow(0, 1, n) } with (&floats([4]), 4);
    "narrow" narrow_from(x: &Tensor<f32, 2>, n: usize) -> [Tensor<f32, 2>] { x.narrow(1, n, 1) } with (&floats([2, 3]), 3);
    "narrow" narrow_by_constants(x: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.narrow(0, 2, 3).exp() } with (&floats([4]));
    "chunk" chunk(x: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { let [a, _, _] = x.chunk(0); a } with (&floats([4]));
    "chunk" chunk_of_few(x: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { let [a, b, c, d] = x.chunk(1); a + b + c + d } with (&floats([2, 3]));
    "cat" cat(x: &Tensor<f32, 2>, y: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { Tensor::cat([x, y], 0) } with (&floats([2, 3]), &floats([2, 4]));
    "stack" stack(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 2>] { Tensor::stack([x, y], 0) } with (&floats([2]), &floats([3]));
    "slice_assign" slice_assign(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [()] { x.slice_assign(0, 1, 3, y); } with (&mut floats([4]), &floats([3]));
    "slice_assign" slice_assign_to_the_end(x: &mut Tensor<f32, 2>, y: &Tensor<f32, 2>, n: isize) -> [()] { x.slice_assign(1, n, isize::MAX, y); } with (&mut floats([2, 4]), &floats([2, 4]), -3);
    "slice_assign" slice_assign_to_a_clipped_part(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [()] { x.slice_assign(0, 1, 9, y); } with (&mut floats([4]), &floats([8]));
    "copy_" copy(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [()] { x.copy_(y); } with (&mut floats([2]), &floats([3]));
    "copy_" copy_to_one(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> [()] { x.copy_(y); } with (&mut floats([1]), &floats([3]));
    "arange" arange(x: &Tensor<f32, 1>, n: usize) -> [Tensor<f32, 1>] { Tensor::arange(5i64, n as i64, x.device()).cast::<f32>() + x } with (&floats([1]), 3);

    "gather" gather(x: &Tensor<f32, 2>, i: &Tensor<i64, 2>) -> [Tensor<f32, 2>] { x.gather(1, i) } with (&floats([2, 3]), &ints([3, 3]));
    "scatter_add" scatter_add(x: &Tensor<f32, 2>, i: &Tensor<i64, 2>, y: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.scatter_add(1, i, y) } with (&floats([2, 3]), &ints([3, 3]), &floats([3, 3]));
    "scatter_add" scatter_add_source(x: &Tensor<f32, 2>, i: &Tensor<i64, 2>, y: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.scatter_add(1, i, y) } with (&floats([2, 3]), &ints([2, 3]), &floats([2, 2]));
    "index_add" index_add(x: &Tensor<f32, 2>, i: &Tensor<i64, 1>, y: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.index_add(0, i, y) } with (&floats([2, 3]), &ints([2]), &floats([2, 4]));
    "index_add" index_add_positions(x: &Tensor<f32, 2>, i: &Tensor<i64, 1>, y: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.index_add(0, i, y) } with (&floats([2, 3]), &ints([2]), &floats([1, 3]));
    "index_copy" index_copy(x: &Tensor<f32, 2>, i: &Tensor<i64, 1>, y: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.index_copy(0, i, y) } with (&floats([2, 3]), &ints([2]), &floats([2, 4]));
    "index_copy_" index_copy_to(x: &mut Tensor<f32, 2>, i: &Tensor<i64, 1>, y: &Tensor<f32, 2>) -> [()] { x.index_copy_(0, i, y); } with (&mut floats([2, 3]), &ints([2]), &floats([2, 4]));
}

cases! { faults in of_faults:
    "index_select" index_select(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.index_select(0, i) } with (&floats([2]), &at(&[7]));
    "index_select" index_select_of_negative(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.index_select(0, i) } with (&floats([2]), &at(&[-1]));
    "gather" gather(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.gather(0, i) } with (&floats([2]), &at(&[7]));
    "embedding" embedding(x: &Tensor<f32, 2>, i: &Tensor<i64, 1>) -> [Tensor<f32, 2>] { x.embedding(i) } with (&floats([2, 3]), &at(&[1, 7]));
    "scatter_add" scatter_add(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.scatter_add(0, i, y) } with (&floats([2]), &at(&[7]), &floats([1]));
    "index_add" index_add(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.index_add(0, i, y) } with (&floats([2]), &at(&[7]), &floats([1]));
    "index_copy" index_copy(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.index_copy(0, i, y) } with (&floats([2]), &at(&[7]), &floats([1]));
    "index_copy_" index_copy_to(x: &mut Tensor<f32, 1>, i: &Tensor<i64, 1>, y: &Tensor<f32, 1>) -> [()] { x.index_copy_(0, i, y); } with (&mut floats([2]), &at(&[7]), &floats([1]));
    "cross_entropy" cross_entropy(x: &Tensor<f32, 2>, i: &Tensor<i64, 1>) -> [Tensor<f32, 0>] { x.cross_entropy(i) } with (&floats([1, 3]), &at(&[7]));
    "cross_entropy_with" cross_entropy_with(x: &Tensor<f32, 2>, i: &Tensor<i64, 1>) -> [Tensor<f32, 0>] { x.cross_entropy_with(i, Reduction::Sum, -1) } with (&floats([1, 3]), &at(&[7]));
    "div" div(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x / y } with (&ints([2]), &ints([2]));
    "div" div_by(x: &mut Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [()] { *x /= y; } with (&mut ints([2]), &ints([2]));
    "div" div_by_a_number(x: &Tensor<i64, 1>, k: i64) -> [Tensor<i64, 1>] { x / k } with (&ints([2]), 0);
    "fmod" rem(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x % y } with (&ints([2]), &ints([2]));
    "fmod" fmod(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x.fmod(y) } with (&ints([2]), &ints([2]));
    "remainder" remainder(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x.remainder(y) } with (&ints([2]), &ints([2]));
    "floor_divide" floor_divide(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x.floor_divide(y) } with (&ints([2]), &ints([2]));

    "scatter_add" scatter_of_a_constant(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { let one: Tensor<f32, 1> = Tensor::full([i.size(0)], 1.0, x.device()); x.scatter_add(0, i, &one) } with (&floats([2]), &at(&[7]));
    "scatter_add" scatter_of_a_computed_value(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.exp().scatter_add(0, i, &(y * 2.0).tanh()).relu() } with (&floats([2]), &at(&[7]), &floats([1]));
    "scatter_add" scatter_at_computed_positions(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, y: &Tensor<f32, 1>) -> [Tensor<f32, 1>] { x.scatter_add(0, &(i + 5), y) } with (&floats([2]), &at(&[0]), &floats([1]));
    "index_add" add_of_looked_up_rows(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, k: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.index_add(0, k, &x.index_select(0, i)) } with (&floats([2]), &at(&[0]), &at(&[7]));
    "index_select" lookup_that_is_added(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, k: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.index_add(0, k, &x.index_select(0, i)) } with (&floats([2]), &at(&[7]), &at(&[0]));
    "index_copy" copy_of_a_quotient(x: &Tensor<i64, 1>, i: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x.index_copy(0, i, &(y / y)) } with (&ints([2]), &at(&[7]), &(ints([1]) + 1));
    "div" quotient_that_is_copied(x: &Tensor<i64, 1>, i: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { x.index_copy(0, i, &(x.narrow(0, 0, 1) / y)) } with (&ints([2]), &at(&[0]), &ints([1]));
    "gather" second_lookup(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, k: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.index_select(0, i) + x.gather(0, k) } with (&floats([2]), &at(&[0]), &at(&[7]));
    "index_select" first_lookup(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>, k: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.index_select(0, i) + x.gather(0, k) } with (&floats([2]), &at(&[7]), &at(&[0]));
    "index_select" lookup_of_a_lookup(x: &Tensor<f32, 1>, i: &Tensor<i64, 1>) -> [Tensor<f32, 1>] { x.exp().index_select(0, i).index_select(0, i) * 2.0 } with (&floats([2]), &at(&[7]));
    "embedding" rows_that_are_multiplied(x: &Tensor<f32, 2>, i: &Tensor<i64, 1>, w: &Tensor<f32, 2>) -> [Tensor<f32, 2>] { x.embedding(i).matmul(w).softmax(-1) } with (&floats([2, 3]), &at(&[7]), &floats([3, 3]));
    "div" quotient_in_a_sum(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 0>] { (x * 3 - x / y + 1).sum_all() } with (&ints([2]), &ints([2]));
    "remainder" rest_in_a_chain(x: &Tensor<i64, 1>, y: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { let a = x / (y + 1); a.remainder(y) * 2 } with (&ints([2]), &ints([2]));
    "div" first_of_two(x: &Tensor<i64, 1>, i: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { (x / x).index_select(0, i) } with (&ints([2]), &at(&[7]));
    "index_select" first_of_two_in_one_kernel(x: &Tensor<i64, 1>, i: &Tensor<i64, 1>) -> [Tensor<i64, 1>] { let rows = x.index_select(0, i); &rows / &rows } with (&ints([2]), &at(&[0, 7]));
    "remainder" first_of_two_kernels(x: &Tensor<i64, 1>, i: &Tensor<i64, 1>) -> [(Tensor<i64, 1>, Tensor<i64, 0>)] { let rest = x.remainder(x); let sum = x.index_select(0, i).sum_all(); (rest, sum) } with (&ints([2]), &at(&[7]));
    "floor_divide" first_of_two_sums(x: &Tensor<i64, 1>, i: &Tensor<i64, 1>) -> [(Tensor<i64, 1>, Tensor<i64, 0>)] { let sum = x.floor_divide(x).sum_all(); (x.index_select(0, i), sum) } with (&ints([2]), &at(&[7]));
}

/// Of two faults in one kernel a GPU tells the one that it comes to first.
const AT_ONCE: &str = "first_of_two_in_one_kernel";

/// Every way to make a call says the same, and names the op.
#[track_caller]
fn check(list: fn() -> Vec<Case>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let has_order = |case: &&Case| device().is_cpu() || case.name != AT_ONCE;
    let wrong: Vec<String> = list().iter().filter(has_order).filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is wrong with what a call says.
fn difference(case: &Case) -> Option<String> {
    let said: Vec<(&str, Said)> = case.ways.iter().map(|(way, call)| (*way, call())).collect();
    let (_, first) = &said[0];
    let names_op = matches!(first, Said::Error(_, text) if text.contains(&format!("`{}`", case.op)));
    let is_right = names_op && said.iter().all(|(_, other)| other == first);
    (!is_right).then(|| format!("{} ({}): {said:#?}", case.name, case.op))
}

#[test]
fn extents_that_do_not_fit_are_told_in_one_way() {
    check(shapes);
}

#[test]
fn positions_out_of_range_and_zero_divisors_are_told_in_one_way() {
    check(faults);
}

/// Ops with sizes or other operands that take whatever they are given.
const TAKE_ALL: &[&str] = &[
    "dropout",
    "eye",
    "full",
    "ones",
    "powi",
    "rand",
    "randn",
    "repeat",
    "slice",
    "std_correction",
    "tril",
    "triu",
    "var_correction",
    "zeros",
];

/// Whether calls of an op can be refused at run time, judged by its row.
fn can_be_refused(op: Op) -> bool {
    use ParamKind::{Axis, Bound, Branch, Count, Dims, Mask, Operand, TensorOf, Tensors};
    let takes_more = op.params.iter().any(|param| {
        matches!(
            param.kind,
            Operand | Branch | ParamKind::Tensor | TensorOf(_) | Mask | Tensors | ParamKind::Dim | Dims | Bound | Count
        )
    });
    let attrs: Vec<Attr> = op.params.iter().filter(|param| param.kind == Axis).map(|_| Attr::Int(0)).collect();
    let matrix = Ty::new(DType::F32, [Dim::Sym(Sym(0)), Dim::Sym(Sym(1))]);
    let mut rules = Rules::default();
    takes_more || {
        let typed = attrs.len() == op.params.len() && op.types(&mut rules, &[&matrix], &attrs).is_ok();
        typed && !rules.checks.is_empty()
    }
}

#[test]
fn every_op_that_can_be_refused_is_among_them() {
    let told: BTreeSet<&str> = shapes().iter().map(|case| case.op).chain(TAKE_ALL.iter().copied()).collect();
    let public = table().iter().filter(|op| op.call != Call::Internal && op.class != Class::Host);
    // What only reads at positions has no extents that must fit.
    let reads = ["index_select", "embedding"];
    let missing: Vec<&str> = public
        .filter(|op| can_be_refused(**op) && !told.contains(op.name) && !reads.contains(&op.name))
        .map(|op| op.name)
        .collect();
    assert!(missing.is_empty(), "no call of these is refused in the cases: {missing:?}");
}
