//! Tensors in arrays, vectors, maps, cells and options.

use super::*;
use std::collections::HashMap;

#[compile]
fn array_by_index(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let parts = [x.relu(), x.exp(), x.tanh()];
    let mut y = &parts[0] + &parts[1];
    for part in &parts {
        y = y + part;
    }
    y * parts[2].clone()
}

#[compile]
fn folded(x: &Tensor<f32, 1>, ws: &[Tensor<f32, 1>]) -> Tensor<f32, 1> {
    let total: Tensor<f32, 1> = ws.iter().fold(x.clone(), |acc, w| acc + w);
    let parts: Vec<Tensor<f32, 1>> = ws.iter().map(|w| w.relu()).collect();
    total * &parts[0]
}

#[compile]
fn pushed_and_stacked(x: &Tensor<f32, 1>) -> Tensor<f32, 2> {
    let mut rows = Vec::new();
    for k in 0..3 {
        rows.push(x * k as f32);
    }
    let [a, b, c]: [Tensor<f32, 1>; 3] = rows.try_into().unwrap();
    Tensor::stack([a, b, c], 0)
}

#[compile]
fn swapped_and_replaced(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let mut a = x + 1.0;
    let mut b = x * 2.0;
    std::mem::swap(&mut a, &mut b);
    (a, b) = (b.relu(), a);
    let old: Tensor<f32, 1> = std::mem::replace(&mut a, b.clone());
    (a + &old, old * 3.0)
}

#[compile]
fn map_of_tensors(x: &Tensor<f32, 1>, ws: &HashMap<&str, Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let w: &Tensor<f32, 1> = &ws["w"];
    let b = ws.get("b");
    let y = x * w;
    match b {
        Some(b) => y + b,
        None => y,
    }
}

#[compile]
fn lists_as_results(x: &Tensor<f32, 1>) -> (Vec<Tensor<f32, 1>>, [Tensor<f32, 1>; 2]) {
    let v = vec![x.exp(), x.relu(), x.exp()];
    let [a, b] = x.chunk(0);
    (v, [b, a])
}

#[compile]
fn cache_in_a_cell(x: &Tensor<f32, 1>, cache: &RefCell<Vec<Tensor<f32, 1>>>) -> Tensor<f32, 1> {
    let y = x.exp();
    cache.borrow_mut().push(y.clone());
    let n = cache.borrow().len();
    let last: Tensor<f32, 1> = cache.borrow()[n - 1].clone();
    last * n as f32
}

#[compile]
fn boxes_and_cells(
    x: &Tensor<f32, 1>,
    w: std::rc::Rc<Tensor<f32, 1>>,
    b: Box<Tensor<f32, 1>>,
    m: &RefCell<Tensor<f32, 1>>,
) -> Tensor<f32, 1> {
    let b: Tensor<f32, 1> = *b;
    let y: Tensor<f32, 1> = x.exp() + w.gelu() + &*w;
    let z: Tensor<f32, 1> = y * &*m.borrow();
    *m.borrow_mut() = z.clone();
    z + b
}

#[derive(Debug, Clone)]
struct State {
    step: usize,
    w: Tensor<f32, 1>,
}

#[compile]
fn state_in_a_struct(mut state: State, g: &Tensor<f32, 1>) -> State {
    state.step += 1;
    let w: &Tensor<f32, 1> = &state.w;
    let lr = 1.0 / state.step as f32;
    state.w = w - g * lr;
    state
}

fn helper(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    (x + 1.0, x * 2.0)
}

#[compile]
fn mapped_array(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let ys = [1.0, 2.0].map(|k| x * k);
    let (a, b): (Tensor<f32, 1>, Tensor<f32, 1>) = helper(x);
    let (y0, y1): (&Tensor<f32, 1>, &Tensor<f32, 1>) = (&ys[0], &ys[1]);
    let z = a + y0 + y1;
    z * b
}

#[compile]
fn vector_by_index(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let mut ys = vec![x.clone(); 2];
    ys[0] = &ys[0] + 1.0;
    ys.swap(0, 1);
    let first: Tensor<f32, 1> = ys.remove(0);
    (first, ys.pop().unwrap() * 2.0)
}

#[compile]
fn best_so_far(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut best: Option<Tensor<f32, 1>> = None;
    for k in [1.0, -2.0, 3.0] {
        let y = x * k;
        best = Some(match best {
            None => y.clone(),
            Some(b) => b.maximum(&y),
        });
    }
    best.unwrap()
}

#[compile]
fn pushed_to_a_parameter(x: &Tensor<f32, 1>, out: &mut Vec<Tensor<f32, 1>>) -> usize {
    out.push(x.exp());
    let y = x * 2.0;
    out.extend([y.clone(), y.relu()]);
    out.len()
}

fn run12(f: fn(&Row, &mut Vec<Row>) -> usize, x: &Row) -> (usize, Vec<Row>) {
    let mut out = vec![];
    (f(x, &mut out), out)
}

#[compile]
fn grid(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut grid = [[x.clone(), x.exp()], [x.relu(), x.tanh()]];
    grid[1][0] = &grid[0][1] + 1.0;
    let [[a, b], [c, d]] = grid;
    a + b * c - d
}

#[test]
fn containers_keep_their_changes() {
    let w = row(&[0.5, 1.5, -1.0]);
    for x in &rows() {
        same!(array_by_index(x));
        same!(folded(x, &rows()));
        same!(pushed_and_stacked(x));
        same!(swapped_and_replaced(x));
        let mut ws = HashMap::from([("w", w.clone())]);
        same!(map_of_tensors(x, &ws));
        ws.insert("b", w.clone());
        same!(map_of_tensors(x, &ws));
        same!(lists_as_results(&x.repeat([2])));
        same!(cache_in_a_cell(x, &RefCell::new(vec![])));
        same!(boxes_and_cells(x, std::rc::Rc::new(w.clone()), Box::new(w.clone()), &RefCell::new(w.clone())));
        same!(state_in_a_struct(State { step: 0, w: w.clone() }, x));
        same!(mapped_array(x));
        same!(vector_by_index(x));
        same!(best_so_far(x));
        assert_eq!(
            format!("{:?}", run12(pushed_to_a_parameter, x)),
            format!("{:?}", run12(pushed_to_a_parameter::eager, x))
        );
        same!(grid(x));
    }
}
