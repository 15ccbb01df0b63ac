//! Branches, early exits and what never ends.

use super::*;

#[compile]
fn match_on_an_option(x: &Tensor<f32, 1>, mask: Option<&Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let y = match mask {
        Some(m) if m.numel() > 5 => x * m,
        Some(m) => x + m,
        None => x.clone(),
    };
    y.tanh()
}

#[compile]
fn let_chains(x: &Tensor<f32, 1>, a: Option<f32>, b: Option<&Tensor<f32, 1>>) -> Tensor<f32, 1> {
    if let Some(k) = a
        && k > 1.0
        && let Some(t) = b
    {
        x * k + t
    } else if let Some(t) = b {
        x - t
    } else {
        x.clone()
    }
}

#[compile]
fn lazy_option(x: &Tensor<f32, 1>, want: bool) -> Option<Tensor<f32, 1>> {
    want.then(|| x.exp())
}

#[compile]
fn flags_of_flags(x: &Tensor<f32, 1>, a: bool, b: bool) -> Tensor<f32, 1> {
    let both = a && b;
    let y = if both {
        x.exp()
    } else if a || b {
        x.relu()
    } else {
        x.clone()
    };
    if !both { y * 2.0 } else { y }
}

#[compile]
fn match_on_numbers_and_text(x: &Tensor<f32, 1>, n: i32, s: &str) -> Tensor<f32, 1> {
    match (n, s) {
        (0, _) => x.clone(),
        (1..=3, "a" | "b") => x * 2.0,
        (k, name) if k < 0 => x - name.len() as f32,
        (k @ 4.., _) => x + k as f32,
        _ => x.neg(),
    }
}

#[compile]
fn let_else(x: &Tensor<f32, 1>, b: Option<&Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let y = x.exp();
    let Some(b) = b else {
        return y;
    };
    y + b
}

#[compile]
fn match_on_a_shape(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    match x.dims() {
        [1, _] => x * 2.0,
        [r, c] if r == c => x.t().relu(),
        [_, c] => x + c as f32,
    }
}

#[compile]
fn clip_by_norm(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let norm = x.norm_all().item();
    let clip = if norm > 1.0 { 1.0 / norm } else { 1.0 };
    x * clip
}

#[compile]
fn panicking_arms(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let y = if n == 0 {
        x.exp()
    } else if n == 1 {
        x.relu()
    } else {
        panic!("no {n}")
    };
    let k = match n {
        0 => 2.0,
        1 => 3.0,
        _ => unreachable!(),
    };
    y * k
}

#[compile]
fn option_combinators(x: &Tensor<f32, 1>, b: Option<&Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let y = x * 3.0;
    let z: Tensor<f32, 1> = b.map(|b| b + 1.0).unwrap_or_else(|| y.clone());
    let w: Tensor<f32, 1> = b.map_or(y.relu(), |b| b * &y);
    z + w
}

#[compile]
fn match_on_a_result(x: &Tensor<f32, 1>, text: &str) -> Result<Tensor<f32, 1>, Error> {
    let k = match text.parse::<f32>() {
        Ok(k) if k > 0.0 => k,
        Ok(_) => return Ok(x.clone()),
        Err(_) => 0.5,
    };
    let y = x * k;
    let n = text.len().checked_sub(1).unwrap_or(3);
    Ok(y + n as f32)
}

#[compile]
fn match_on_a_slice(ws: &[Tensor<f32, 1>]) -> Tensor<f32, 1> {
    match ws {
        [] => Tensor::zeros([3], crate::common::device()),
        [only] => only.relu(),
        [first, .., last] => first + last,
    }
}

#[compile]
fn optional_size(x: &Tensor<f32, 2>, heads: Option<usize>) -> Tensor<f32, 3> {
    let [n, d] = x.dims();
    let h = heads.unwrap_or(2);
    assert!(d % h == 0, "{d} is no multiple of {h}");
    let y = x.reshape([n, h, d / h]);
    y.softmax(-1) * (h as f32).sqrt()
}

fn parse(text: &str) -> Result<f32, std::num::ParseFloatError> {
    text.parse()
}

#[compile]
fn match_on_two_options(x: &Tensor<f32, 1>, a: Option<&Tensor<f32, 1>>, b: Option<&Tensor<f32, 1>>) -> Tensor<f32, 1> {
    match (a, b) {
        (Some(a), Some(b)) => a + b,
        (Some(t), None) | (None, Some(t)) => t.clone(),
        _ => x.clone(),
    }
}

#[compile]
fn branches_inside_of_operators(x: &Tensor<f32, 1>, flag: bool, n: usize) -> Tensor<f32, 1> {
    let y = x + if flag { 1.0 } else { 2.0 };
    let z = y * match n {
        0 => 1.0,
        _ => 3.0,
    };
    let w = z + {
        let t = x.exp();
        t * 2.0
    };
    let v = (if flag { &w } else { x }).relu();
    v.clamp(if flag { 0.0 } else { 0.5 }, 2.0) + { 1.0 }
}

#[compile]
fn question_marks_inside_of_operators(
    x: &Tensor<f32, 1>,
    text: &str,
) -> Result<Tensor<f32, 1>, Box<dyn std::error::Error>> {
    let y = x.exp() * parse(text)?;
    let z = y.relu() + text.parse::<f32>()?;
    Ok(z - parse("1.5").unwrap_or(0.0))
}

#[compile]
fn loop_with_a_value(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    if x.numel() == 0 || n > 10 {
        return x.clone();
    }
    let mut k = n;
    let y = loop {
        k += 1;
        if k % 3 == 0 {
            break x * k as f32;
        }
    };
    let z = if y.sum_all().item() > 0.0 { y } else { return x - 1.0 };
    z + 1.0
}

#[compile]
fn returns_in_arms(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let k = if n > 3 { 1.0 } else { return x.relu() };
    let t = match n {
        4 => "a",
        5 => return x.clone(),
        _ => "b",
    };
    log(t);
    x * k
}

#[compile]
fn returns_a_reference<'a>(x: &'a Tensor<f32, 1>, w: &'a Tensor<f32, 1>, first: bool) -> &'a Tensor<f32, 1> {
    let y = x + w;
    log(format!("{}", y.sum_all().item()));
    if first { x } else { w }
}

#[compile]
fn chosen_references(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>, first: bool) -> Tensor<f32, 1> {
    let chosen = if first { x } else { w };
    let both = [x, w];
    let other = both[first as usize];
    let owned = [x.exp(), w.exp()];
    let third = owned[first as usize].clone();
    chosen * 2.0 + other - third * &owned[1 - first as usize]
}

#[compile]
fn masks(x: &Tensor<f32, 1>, mask: &Tensor<bool, 1>) -> Tensor<f32, 1> {
    let m = !mask | x.gt(0.0);
    let y = m.where_cond(x, 0.0);
    let z = y.masked_fill(&m, 2.0);
    let any = m.sum_all().item() > 0;
    if any && !z.isnan().max_all().item() { z } else { y }
}

#[compile]
fn question_mark_on_an_option(x: &Tensor<f32, 1>, k: Option<f32>) -> Option<Tensor<f32, 1>> {
    let y = x.exp();
    let k = k?;
    let y = y * k;
    (k > 0.0).then_some(y)
}

#[test]
fn only_what_is_taken_runs() {
    let w = row(&[0.5, 1.5, -1.0]);
    let m = matrix(2, [1.0, -2.0, 0.5, 3.0, 0.25, -1.0, 2.0, 1.0]);
    let sq = matrix(2, [1.0, -2.0, 0.5, 3.0]);
    for x in &rows() {
        same!(match_on_an_option(x, None));
        same!(match_on_an_option(x, Some(&w)));
        same!(let_chains(x, None, None));
        same!(let_chains(x, Some(2.0), None));
        same!(let_chains(x, Some(2.0), Some(&w)));
        same!(let_chains(x, Some(0.5), Some(&w)));
        same!(lazy_option(x, true));
        same!(lazy_option(x, false));
        for (a, b) in [(false, false), (true, false), (true, true)] {
            same!(flags_of_flags(x, a, b));
        }
        for (n, s) in [(0, ""), (1, "a"), (2, "c"), (-3, "xyz"), (9, "")] {
            same!(match_on_numbers_and_text(x, n, s));
        }
        same!(let_else(x, None));
        same!(let_else(x, Some(&w)));
        same!(clip_by_norm(x));
        same!(panicking_arms(x, 0));
        same!(panicking_arms(x, 1));
        same!(option_combinators(x, None));
        same!(option_combinators(x, Some(&w)));
        for text in ["1.5", "-1.0", "x", ""] {
            same!(match_on_a_result(x, text));
        }
        for k in 0..3 {
            same!(match_on_a_slice(&rows()[..k]));
        }
        same!(match_on_two_options(x, None, None));
        same!(match_on_two_options(x, Some(&w), None));
        same!(match_on_two_options(x, Some(&w), Some(x)));
        for n in 0..2 {
            same!(branches_inside_of_operators(x, true, n));
            same!(branches_inside_of_operators(x, false, n));
        }
        same!(question_marks_inside_of_operators(x, "2.0"));
        same!(question_marks_inside_of_operators(x, "z"));
        for n in [1, 2, 11] {
            same!(loop_with_a_value(x, n));
        }
        for n in 3..7 {
            same!(returns_in_arms(x, n));
        }
        same!(returns_a_reference(x, &w, true));
        same!(chosen_references(x, &w, true));
        same!(chosen_references(x, &w, false));
        same!(masks(x, &w.gt(0.0)));
        same!(question_mark_on_an_option(x, None));
        same!(question_mark_on_an_option(x, Some(2.0)));
        same!(question_mark_on_an_option(x, Some(-2.0)));
    }
    same!(optional_size(&m, None));
    same!(optional_size(&m, Some(4)));
    same!(match_on_a_shape(&m));
    same!(match_on_a_shape(&sq));
}
