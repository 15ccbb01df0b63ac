//! Loops of every kind.

use super::*;
use std::collections::HashMap;

#[compile]
fn return_from_a_loop(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for i in 0..10 {
        if i == n {
            return y * 100.0;
        }
        y = y + i as f32;
    }
    y
}

#[compile]
fn question_mark_in_a_loop(x: &Tensor<f32, 1>, texts: &[&str]) -> Result<Tensor<f32, 1>, Box<dyn std::error::Error>> {
    let mut total = x * 0.0;
    for text in texts {
        let k: f32 = text.parse()?;
        total = total + x * k;
    }
    Ok(total)
}

#[compile]
fn several_accumulators(x: &Tensor<f32, 2>) -> (Tensor<f32, 1>, usize, f32) {
    let mut acc = x.sum(0) * 0.0;
    let mut count = 0;
    let mut weight = 0.5;
    for i in 0..3 {
        acc += x.sum(0) * weight;
        weight *= 0.5;
        count += i;
    }
    (acc, count, weight)
}

#[compile]
fn layers(x: &Tensor<f32, 2>, ws: &[Tensor<f32, 2>]) -> Tensor<f32, 2> {
    let mut h = x.clone();
    for (i, w) in ws.iter().enumerate() {
        h = h.matmul(w);
        if i + 1 < ws.len() {
            h = h.relu();
        }
    }
    h
}

#[compile]
fn while_let(x: &Tensor<f32, 1>, mut stack: Vec<f32>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    while let Some(k) = stack.pop() {
        y = y * k + 1.0;
    }
    y
}

#[compile]
fn any_iterator(x: &Tensor<f32, 1>, ks: impl IntoIterator<Item = f32>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for k in ks {
        y = y * k;
    }
    y - 1.0
}

#[compile]
fn labelled_value(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let mut y = x.clone();
    let mut i = 0;
    let z = 'search: loop {
        for j in 0..4 {
            y = y + 1.0;
            if i * j >= n {
                break 'search y.relu() * j as f32;
            }
        }
        i += 1;
    };
    z - 1.0
}

#[compile]
fn labelled_block(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let k = 'k: {
        if n > 3 {
            break 'k 1.5;
        }
        if n > 1 {
            break 'k 2.5;
        }
        0.5
    };
    let y = x * k;
    let z: Tensor<f32, 1> = 'z: {
        if n == 2 {
            break 'z y.exp();
        }
        y.relu()
    };
    z + 1.0
}

#[compile]
fn pairs_of_values(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let (mut a, mut b) = (x.clone(), x.clone());
    for _ in 0..n {
        (a, b) = (b.clone(), a + b);
    }
    a
}

#[compile]
fn zip_and_take(x: &Tensor<f32, 1>, ws: &[Tensor<f32, 1>], ks: &[f32]) -> Tensor<f32, 1> {
    let mut y = x * 1.0;
    for (w, k) in ws.iter().zip(ks) {
        y = y + w * *k;
    }
    for w in ws.iter().rev().take(1) {
        y = y - w;
    }
    y
}

#[compile]
fn windows_and_steps(x: &Tensor<f32, 1>, ks: &[f32]) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for pair in ks.windows(2) {
        y = y * pair[0] + pair[1];
    }
    for i in (0..6).step_by(2) {
        y = y + i as f32;
    }
    for i in (0..3).rev() {
        y = y * (i + 1) as f32;
    }
    y
}

#[compile]
fn skipped_turns(x: &Tensor<f32, 1>, skip: &[bool]) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for &s in skip {
        if s {
            continue;
        }
        y = y.sin() + 1.0;
    }
    y
}

#[compile]
fn read_in_a_condition(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, usize) {
    let mut y = x.clone();
    let mut n = 0;
    while y.abs().sum_all().item() > 0.5 && n < 20 {
        y = y * 0.5;
        n += 1;
    }
    (y, n)
}

/// Two graphs: the loop changes two tensors and binds one in every turn.
#[compile]
fn halved_until_small(x: &Tensor<f32, 1>, limit: f32) -> (Tensor<f32, 1>, Tensor<f32, 0>) {
    let mut y = x * 3.0;
    let before = y.clone();
    let mut total = y.sum_all();
    while y.abs().max_all().item() > limit {
        let smaller = &y * 0.5;
        total = total + smaller.sum_all();
        y = smaller;
    }
    (y * before, total)
}

/// A turn writes what it does not read, reads what no turn writes, and hides a name.
#[compile]
fn flag_of_the_device(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let mut y = x.clone();
    let mut last = w.clone();
    while !y.abs().max_all().lt(0.5).item() {
        let w = w * 2.0;
        last = w.exp();
        y = y * 0.25;
    }
    (y, last + w)
}

#[compile]
fn changing_extents(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    while y.abs().sum_all().item() > 1.0 {
        let half = y.size(0) / 2;
        y = y.narrow(0, 0, half) * 0.5;
    }
    y
}

#[compile]
fn exchanged(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let (mut a, mut b) = (x.clone(), x * 2.0);
    while a.abs().sum_all().item() > 0.5 {
        let next = &b * 0.25;
        b = a;
        a = next;
    }
    (a, b)
}

#[compile]
fn inner_loop(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for i in 0..n {
        let limit = 1.0 / (i + 1) as f32;
        while y.abs().sum_all().item() > limit {
            y = y * 0.5;
        }
        y = y + 1.0;
    }
    y
}

#[compile]
fn largest_element(x: &Tensor<f32, 1>) -> f32 {
    let v = x.exp().to_vec();
    let mut best = 0;
    for (i, &e) in v.iter().enumerate() {
        if e > v[best] {
            best = i;
        }
    }
    v[best] + x.sum_all().item()
}

#[compile]
fn losses(x: &Tensor<f32, 1>) -> (Vec<f32>, Tensor<f32, 1>) {
    let mut losses = vec![];
    let mut w = x.clone();
    for _ in 0..3 {
        let loss = (&w * &w).mean_all();
        losses.push(loss.item());
        w = &w - &w * 0.1;
    }
    (losses, w)
}

#[compile]
fn zipped_tensors(x: &Tensor<f32, 1>, ws: &[Tensor<f32, 1>], table: &HashMap<usize, Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for (w, i) in ws.iter().zip(0..).skip(1) {
        y = y + w * i as f32;
    }
    for pair in ws.windows(2) {
        y = y + &pair[0] * &pair[1];
    }
    for w in table.values() {
        y = y + w;
        let z: Tensor<f32, 1> = y * -w;
        y = z;
    }
    for (t, k) in [x, &ws[0]].into_iter().zip([1.0, 2.0]) {
        y = y - t * k;
    }
    y
}

#[compile]
fn optional_factors(x: &Tensor<f32, 1>, ks: &[Option<f32>]) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for k in ks {
        let k = match k {
            Some(k) => *k,
            None => continue,
        };
        y = y * k;
    }
    let total: f32 = ks.iter().flatten().sum();
    y + total
}

#[compile]
fn swapped_roles(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let (mut a, mut b) = (x.exp(), x.relu());
    for i in 0..n {
        if i % 2 == 0 {
            std::mem::swap(&mut a, &mut b);
        } else {
            a = a + &b;
        }
    }
    let (c, d) = if n > 2 { (a, b) } else { (b, a) };
    c - d
}

static KS: [f32; 3] = [1.0, 0.5, 2.0];

const NS: [usize; 2] = [3, 4];

#[compile]
fn constant_lists(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for k in KS {
        y = y * k;
    }
    for (i, k) in KS.iter().enumerate() {
        y = y + k * i as f32;
    }
    for n in NS {
        y = y - n as f32;
    }
    for i in 1..=3 {
        y = y / i as f32;
    }
    y
}

#[compile]
fn labelled_continue(x: &Tensor<f32, 1>, flags: &[bool]) -> Tensor<f32, 1> {
    let mut y = x.clone();
    'outer: for i in 0..3 {
        for &f in flags {
            if f && i == 1 {
                continue 'outer;
            }
            y = y + 1.0;
        }
        y = y * 2.0;
    }
    y
}

#[compile]
fn optimiser_steps(x: &Tensor<f32, 1>, lr: f64, steps: u32) -> Tensor<f32, 1> {
    let mut w = x.clone();
    let (b1, b2) = (0.9f32, 0.999f32);
    let mut m = Tensor::<f32, 1>::zeros([x.numel()], crate::common::device());
    let mut v: Tensor<f32, 1> = Tensor::zeros(w.dims(), crate::common::device());
    for t in 1..=steps {
        let g = &w * 2.0;
        m = m * b1 + &g * (1.0 - b1);
        v = v * b2 + &g * &g * (1.0 - b2);
        let mh = &m / (1.0 - b1.powi(t as i32));
        let vh = &v / (1.0 - b2.powi(t as i32));
        w = w - mh * lr as f32 / (vh.sqrt() + 1e-8);
    }
    w
}

#[test]
fn iterations_carry_values() {
    let w = row(&[0.5, 1.5, -1.0]);
    let m = matrix(2, [1.0, -2.0, 0.5, 3.0, 0.25, -1.0, 2.0, 1.0]);
    let sq = matrix(2, [1.0, -2.0, 0.5, 3.0]);
    for x in &rows() {
        for n in [0, 2, 20] {
            same!(return_from_a_loop(x, n));
        }
        same!(question_mark_in_a_loop(x, &["1.0", "2.5"]));
        same!(question_mark_in_a_loop(x, &["1.0", "x"]));
        same!(while_let(x, vec![1.0, 2.0]));
        same!(any_iterator(x, [1.0, 3.0]));
        for n in [0, 2, 3, 7] {
            same!(labelled_value(x, n));
            same!(labelled_block(x, n));
        }
        for n in [0, 1, 4] {
            same!(pairs_of_values(x, n));
        }
        same!(zip_and_take(x, &rows(), &[1.0, 2.0]));
        same!(windows_and_steps(x, &[1.0, 2.0, 3.0]));
        same!(skipped_turns(x, &[true, false, false]));
        same!(read_in_a_condition(x));
        for limit in [0.1, 2.0, 100.0] {
            same!(halved_until_small(x, limit));
        }
        same!(flag_of_the_device(x, &w));
        same!(changing_extents(x));
        same!(exchanged(x));
        for n in [0, 1, 3] {
            same!(inner_loop(x, n));
        }
        same!(largest_element(x));
        same!(losses(x));
        same!(zipped_tensors(x, &rows(), &HashMap::from([(1, w.clone())])));
        same!(optional_factors(x, &[Some(2.0), None, Some(3.0)]));
        for n in 0..5 {
            same!(swapped_roles(x, n));
        }
        same!(constant_lists(x));
        same!(labelled_continue(x, &[true, false]));
        same!(labelled_continue(x, &[false, true]));
        same!(optimiser_steps(x, 0.1, 3));
    }
    same!(several_accumulators(&m));
    same!(layers(&sq, &[sq.clone(), sq.clone()]));
}
