//! `vjp` of whatever a function returns: each tensor of the result has a cotangent of its own.

use crate::common::{check, device};
use fuse_runtime::ErrorKind;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;

/// What `call` gives on the tape: inside of another call, what comes beside a function runs its original.
fn on_tape<O>(call: impl FnOnce() -> O) -> O {
    let zero = Tensor::<f64, 0>::zeros([], device());
    value_and_grad(&zero, |zero| (zero, call())).0.1
}

/// The sum of the products of a tensor with a cotangent.
fn weighted<const R: usize>(value: &Tensor<f64, R>, cotangent: &Tensor<f64, R>) -> f64 {
    (value * cotangent).sum_all().item()
}

#[track_caller]
fn close<const R: usize>(found: &Tensor<f64, R>, wanted: &Tensor<f64, R>) {
    let pairs = found.to_vec().into_iter().zip(wanted.to_vec());
    pairs.for_each(|(a, b)| assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a}, on the tape {b}"));
}

/// Whether forward and backward of `name` are one graph.
fn is_one_graph(report: &fuse_runtime::Explanation, name: &str) -> bool {
    report.gradients().iter().any(|graph| graph.name == name)
}

#[compile(grad(x, w))]
fn projected(x: &Tensor<f64, 2>, w: &Tensor<f64, 2>) -> (Tensor<f64, 2>, Tensor<f64, 1>) {
    let y = x.matmul(w).tanh();
    let size = y.powi(2).sum(-1);
    (y, size)
}

#[test]
fn a_pair_has_a_pair_of_cotangents() {
    let d = device();
    let (x, w) = (Tensor::randn([4, 3], d), Tensor::randn([3, 5], d));
    let (c0, c1) = (Tensor::randn([4, 5], d), Tensor::randn([4], d));
    let f = |x: &_, w: &_| {
        let (y, size) = projected(x, w);
        weighted(&y, &c0) + weighted(&size, &c1)
    };
    let ((y, size), (x_grad, w_grad)) = projected::vjp(&x, &w, (&c0, &c1));
    let plain = projected(&x, &w);
    assert_eq!((y.to_vec(), size.to_vec()), (plain.0.to_vec(), plain.1.to_vec()));
    check(&x_grad, &x, |x| f(x, &w));
    check(&w_grad, &w, |w| f(&x, w));
    let ((y_tape, size_tape), (x_tape, w_tape)) = on_tape(|| projected::vjp(&x, &w, (&c0, &c1)));
    assert_eq!((y.to_vec(), size.to_vec()), (y_tape.to_vec(), size_tape.to_vec()));
    close(&x_grad, &x_tape);
    close(&w_grad, &w_tape);
    assert!(is_one_graph(projected::explain(), "projected::vjp"), "{}", projected::explain());
}

type Everything = (Tensor<f64, 2>, Tensor<f64, 1>, usize, [Tensor<f64, 0>; 2], Vec<Tensor<f64, 2>>, bool);

#[compile(grad(x, w))]
fn everything(
    x: &Tensor<f64, 2>,
    w: Tensor<f64, 1>,
    flag: bool,
) -> ((Tensor<f64, 2>, (Tensor<f64, 1>, usize)), [Tensor<f64, 0>; 2], Vec<Tensor<f64, 2>>, bool) {
    let [n, _] = x.dims();
    let y = x * &w;
    let rows = y.exp().sum(0);
    let numbers = [rows.mean_all(), w.powi(3).sum_all()];
    ((y.sin(), (rows, n)), numbers, vec![x.sigmoid(), y], flag)
}

/// Its parts in one tuple.
fn flat(x: &Tensor<f64, 2>, w: &Tensor<f64, 1>) -> Everything {
    let ((a, (b, n)), numbers, list, flag) = everything(x, w.clone(), true);
    (a, b, n, numbers, list, flag)
}

#[test]
fn tuples_arrays_and_vectors_may_be_nested_with_numbers_among_them() {
    let d = device();
    let (x, w) = (Tensor::randn([2, 3], d), Tensor::randn([3], d));
    let (a, b) = (Tensor::randn([2, 3], d), Tensor::randn([3], d));
    let (p, q) = (Tensor::randn([], d), Tensor::randn([], d));
    let list = vec![Tensor::randn([2, 3], d), Tensor::randn([2, 3], d)];
    let f = |x: &_, w: &_| {
        let (y, rows, _, numbers, parts, _) = flat(x, w);
        let numbers = weighted(&numbers[0], &p) + weighted(&numbers[1], &q);
        let parts: f64 = parts.iter().zip(&list).map(|(part, cotangent)| weighted(part, cotangent)).sum();
        weighted(&y, &a) + weighted(&rows, &b) + numbers + parts
    };
    let call = || everything::vjp(&x, w.clone(), true, ((&a, (&b, ())), [&p, &q], &list, ()));
    let (((_, (_, n)), _, parts, flag), (x_grad, w_grad)) = call();
    assert_eq!((n, parts.len(), flag), (2, 2, true));
    check(&x_grad, &x, |x| f(x, &w));
    check(&w_grad, &w, |w| f(&x, w));
    let (_, (x_tape, w_tape)) = on_tape(call);
    close(&x_grad, &x_tape);
    close(&w_grad, &w_tape);
    assert!(is_one_graph(everything::explain(), "everything::vjp"), "{}", everything::explain());
}

#[compile(grad(x, y, unused))]
#[allow(unused_variables)]
fn handed_on(
    x: &Tensor<f64, 2>,
    y: Tensor<f64, 1>,
    constant: &Tensor<f64, 1>,
    unused: &Tensor<f64, 1>,
) -> (Tensor<f64, 2>, [Tensor<f64, 1>; 3], Tensor<f64, 2>, Tensor<f64, 1>) {
    let z = &y * constant;
    (x.t(), [z.clone(), z, y], x.clone(), constant.exp())
}

/// One value comes back twice, parameters and a view of one as they are, and something that depends on none of them.
#[test]
fn what_is_no_new_value_has_a_cotangent_as_any() {
    let d = device();
    let (x, y) = (Tensor::randn([2, 3], d), Tensor::randn([4], d));
    let (constant, unused) = (Tensor::randn([4], d), Tensor::randn([5], d));
    let (turned, same) = (Tensor::randn([3, 2], d), Tensor::randn([2, 3], d));
    let cotangents: [Tensor<f64, 1>; 4] = std::array::from_fn(|_| Tensor::randn([4], d));
    let [first, second, third, other] = &cotangents;
    let call = || handed_on::vjp(&x, y.clone(), &constant, &unused, (&turned, [first, second, third], &same, other));
    let (value, (x_grad, y_grad, unused_grad)) = call();
    assert_eq!(value.1[2].to_vec(), y.to_vec());
    assert_eq!(x_grad.to_vec(), (turned.t() + &same).to_vec());
    close(&y_grad, &((first + second) * &constant + third));
    assert_eq!(unused_grad.to_vec(), [0.0; 5]);
    let (_, (x_tape, y_tape, unused_tape)) = on_tape(call);
    close(&x_grad, &x_tape);
    close(&y_grad, &y_tape);
    assert_eq!(unused_tape.to_vec(), [0.0; 5]);
    assert!(is_one_graph(handed_on::explain(), "handed_on::vjp"), "{}", handed_on::explain());
}

#[compile(grad(logits))]
fn predicted(logits: &Tensor<f64, 2>) -> (Tensor<i64, 1>, Tensor<f64, 2>, (Tensor<bool, 2>, f64)) {
    (logits.argmax(-1), logits.softmax(-1), (logits.gt(0.0), 0.5))
}

#[test]
fn integers_and_bools_have_no_cotangent() {
    let d = device();
    let (logits, cotangent) = (Tensor::randn([3, 4], d), Tensor::randn([3, 4], d));
    let call = || predicted::vjp(&logits, ((), &cotangent, ()));
    let ((best, ..), grad) = call();
    assert_eq!(best.to_vec(), logits.argmax(-1).to_vec());
    check(&grad, &logits, |logits| weighted(&predicted(logits).1, &cotangent));
    close(&grad, &on_tape(call).1);
}

#[compile(grad(x, w))]
fn scaled<T: Float>(x: &Tensor<T, 2>, w: &Tensor<T, 1>) -> Result<(Tensor<T, 2>, Tensor<f32, 1>), Error> {
    let y = x * w;
    Ok((y.relu(), y.sum(0).cast::<f32>()))
}

#[test]
fn element_types_and_ranks_may_differ() {
    fn of<T: Float>(rounds: f64) {
        let d = device();
        let tensor = |data: [f64; 6]| Tensor::from_slice(&data.map(T::from_f64), [2, 3], d);
        let (x, w) =
            (tensor([1.0, -2.0, 3.0, 0.5, 2.0, -1.0]), Tensor::from_slice(&[1.0, 2.0, -0.5].map(T::from_f64), [3], d));
        let (wide, narrow) = (tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Tensor::from_slice(&[1.0f32, -1.0, 2.0], [3], d));
        let call = || scaled::vjp(&x, &w, (&wide, &narrow)).unwrap();
        let ((y, sums), (x_grad, w_grad)) = call();
        assert_eq!((y.cast::<f64>().to_vec()[4], sums.to_vec()[1]), (4.0, 0.0));
        // Of x the cotangent of the row sums, and where `x * w` is positive that of itself, times w.
        let wanted = [2.0, -2.0, -1.0, 5.0, 8.0, -4.0];
        let pairs = x_grad.cast::<f64>().to_vec().into_iter().zip(wanted);
        pairs.for_each(|(a, b)| assert!((a - b).abs() <= rounds, "{a}, not {b}"));
        let (_, (x_tape, w_tape)) = on_tape(call);
        assert_eq!(x_grad.to_vec(), x_tape.to_vec());
        assert_eq!(w_grad.to_vec(), w_tape.to_vec());
        assert!(scaled::vjp(&x, &Tensor::ones([4], d), (&wide, &narrow)).is_err());
    }
    of::<f32>(0.0);
    of::<f64>(0.0);
    of::<f16>(0.0);
    of::<bf16>(0.0);
}

/// Code that no graph holds.
fn look<const R: usize>(_: &Tensor<f64, R>) {}

#[compile(grad(x, w))]
fn recurrent(
    x: &Tensor<f64, 2>,
    w: &Tensor<f64, 2>,
    steps: usize,
) -> Result<(Vec<Tensor<f64, 2>>, Tensor<f64, 2>), Error> {
    let mut states: Vec<Tensor<f64, 2>> = vec![];
    let mut h = x.tanh();
    for _ in 0..steps {
        let next = h.matmul(w).tanh();
        look(&next);
        states.push(next.clone());
        h = next;
    }
    Ok((states, h))
}

#[test]
fn a_vector_may_be_as_long_as_a_run_makes_it() {
    let d = device();
    let (x, w) = (Tensor::randn([2, 3], d), Tensor::randn([3, 3], d));
    for steps in [0, 1, 3] {
        let cotangents: Vec<Tensor<f64, 2>> = (0..steps).map(|_| Tensor::randn([2, 3], d)).collect();
        let last = Tensor::randn([2, 3], d);
        let f = |x: &_, w: &_| {
            let (states, h) = recurrent(x, w, steps).unwrap();
            states.iter().zip(&cotangents).map(|(state, c)| weighted(state, c)).sum::<f64>() + weighted(&h, &last)
        };
        let ((states, _), (x_grad, w_grad)) = recurrent::vjp(&x, &w, steps, (&cotangents, &last)).unwrap();
        assert_eq!(states.len(), steps);
        check(&x_grad, &x, |x| f(x, &w));
        check(&w_grad, &w, |w| f(&x, w));
    }
    let one = [x.clone()];
    let error = recurrent::vjp(&x, &w, 2, (&one, &x)).unwrap_err();
    assert_eq!(error.to_string(), "`cotangent.0` has 1 parts where the result has 2");
    let error = recurrent::vjp(&x, &w, 1, (std::slice::from_ref(&w), &x)).unwrap_err();
    assert_eq!(error.to_string(), "`cotangent.0[0]` has extent 3 where the result has 2");
}

#[compile(grad(x), backend = "eager")]
fn listed_eager(x: &Tensor<f64, 1>, cotangent: f64) -> Vec<(Tensor<f64, 1>, f64)> {
    vec![(x.exp(), cotangent), (x * cotangent, 1.0)]
}

#[compile(grad(x))]
fn listed(x: &Tensor<f64, 1>, cotangent: f64) -> Vec<(Tensor<f64, 1>, f64)> {
    vec![(x.exp(), cotangent), (x * cotangent, 1.0)]
}

#[test]
fn what_is_in_a_vector_has_its_cotangents_in_a_slice() {
    let d = device();
    let x = Tensor::randn([3], d);
    let cotangents = [(Tensor::randn([3], d), ()), (Tensor::randn([3], d), ())];
    let (_, grad) = listed::vjp(&x, 2.0, &cotangents);
    let (_, eager) = listed_eager::vjp(&x, 2.0, &cotangents);
    close(&grad, &eager);
    check(&grad, &x, |x| listed(x, 2.0).iter().zip(&cotangents).map(|((y, _), (c, ()))| weighted(y, c)).sum());
    assert!(is_one_graph(listed::explain(), "listed::vjp"), "{}", listed::explain());
}

/// In both ways a failure has the same text; a parameter that is called `cotangent` gives the other one a longer name.
#[test]
fn a_cotangent_that_does_not_fit_is_named() {
    let (d, x) = (device(), Tensor::randn([3], device()));
    let fit = || (Tensor::randn([3], d), ());
    let failure = |cotangents: &[(Tensor<f64, 1>, ())]| {
        let [compiled, eager] = [
            catch(|| drop(listed::vjp(&x, 2.0, cotangents))).unwrap_err(),
            catch(|| drop(listed_eager::vjp(&x, 2.0, cotangents))).unwrap_err(),
        ];
        assert_eq!(compiled, eager);
        assert_eq!(compiled.kind(), ErrorKind::Shape);
        compiled.to_string()
    };
    assert_eq!(failure(&[fit()]), "`cotangent_` has 1 parts where the result has 2");
    let wrong = [fit(), (Tensor::randn([4], d), ())];
    assert_eq!(failure(&wrong), "`cotangent_[1].0` has extent 4 where the result has 3");
}

#[compile(grad(x))]
fn of_one_tensor(x: &Tensor<f64, 2>) -> Tensor<f64, 2> {
    x.exp()
}

#[test]
fn a_cotangent_that_would_be_broadcast_does_not_fit() {
    let x = Tensor::randn([2, 3], device());
    for extents in [[1, 3], [2, 1], [3, 2]] {
        let cotangent = Tensor::randn(extents, device());
        let compiled = catch(|| drop(of_one_tensor::vjp(&x, &cotangent))).unwrap_err();
        let tape = catch(|| on_tape(|| drop(of_one_tensor::vjp(&x, &cotangent)))).unwrap_err();
        assert_eq!(compiled, tape);
        assert!(compiled.to_string().starts_with("`cotangent` has extent"), "{compiled}");
    }
}

struct Cell {
    weight: Tensor<f64, 2>,
}

#[compile]
impl Cell {
    #[compile(grad(x, state))]
    fn forward(&self, x: &Tensor<f64, 2>, state: &Tensor<f64, 2>) -> (Tensor<f64, 2>, [Tensor<f64, 2>; 2]) {
        let weight: &Tensor<f64, 2> = &self.weight;
        let next = (x.matmul(weight) + state).tanh();
        (&next * 2.0, [next, state.sigmoid()])
    }
}

#[test]
fn methods_return_tuples_too() {
    let d = device();
    let cell = Cell { weight: Tensor::randn([3, 3], d) };
    let tensors: [Tensor<f64, 2>; 5] = std::array::from_fn(|_| Tensor::randn([2, 3], d));
    let [x, state, c0, c1, c2] = &tensors;
    let f = |x: &_, state: &_| {
        let (y, [next, gate]) = cell.forward(x, state);
        weighted(&y, c0) + weighted(&next, c1) + weighted(&gate, c2)
    };
    let (_, (x_grad, state_grad)) = cell.forward_vjp(x, state, (c0, [c1, c2]));
    check(&x_grad, x, |x| f(x, state));
    check(&state_grad, state, |state| f(x, state));
    let (_, (x_tape, state_tape)) = on_tape(|| cell.forward_vjp(x, state, (c0, [c1, c2])));
    close(&x_grad, &x_tape);
    close(&state_grad, &state_tape);
}

#[test]
fn gradients_of_several_results_are_differentiated_again() {
    let d = device();
    let (x, w) = (Tensor::randn([2, 3], d), Tensor::randn([3, 3], d));
    let (c0, c1, direction) = (Tensor::randn([2, 3], d), Tensor::randn([2], d), Tensor::randn([3, 3], d));
    let along = |w: &Tensor<f64, 2>| (projected::vjp(&x, w, (&c0, &c1)).1.1 * &direction).sum_all();
    let (value, second) = value_and_grad(&w, |w| along(&w));
    assert!((value.item() - along(&w).item()).abs() < 1e-12);
    check(&second, &w, |w| along(w).item());
}

#[compile(grad(order = 2, w))]
fn loss_and_more(x: &Tensor<f64, 2>, w: &Tensor<f64, 1>) -> (Tensor<f64, 0>, Tensor<f64, 1>, usize) {
    let y = (x * w).tanh();
    let [n, _] = x.dims();
    (y.powi(2).sum_all(), y.sum(0), n)
}

/// As in a closure: gradients are of the number that a tuple begins with.
#[test]
fn a_tuple_that_begins_with_a_number_has_all_three() {
    let d = device();
    let (x, w, vector) = (Tensor::randn([4, 3], d), Tensor::randn([3], d), Tensor::randn([3], d));
    let ((loss, sums, n), grad) = loss_and_more::value_and_grad(&x, &w);
    let plain = loss_and_more(&x, &w);
    assert_eq!((loss.item(), sums.to_vec(), n), (plain.0.item(), plain.1.to_vec(), 4));
    check(&grad, &w, |w| loss_and_more(&x, w).0.item());
    let ((tape_loss, ..), tape) = on_tape(|| loss_and_more::value_and_grad(&x, &w));
    assert_eq!(tape_loss.item(), loss.item());
    close(&grad, &tape);
    let ((.., n), product) = loss_and_more::hvp(&x, &w, &vector);
    assert_eq!(n, 4);
    check(&product, &w, |w| weighted(&loss_and_more::value_and_grad(&x, w).1, &vector));
    let (one, zeros) = (Tensor::ones([], d), Tensor::zeros([3], d));
    let (_, by_vjp) = loss_and_more::vjp(&x, &w, (&one, &zeros, ()));
    close(&grad, &by_vjp);
}

#[compile(grad(logits))]
fn accuracy_and_scores(logits: &Tensor<f64, 2>, targets: &Tensor<i64, 1>) -> (Tensor<f64, 0>, Tensor<f64, 2>) {
    (logits.argmax(-1).eq(targets).cast::<f64>().mean_all(), logits.log_softmax(-1))
}

/// Such a number may have no gradient itself; then there is `vjp` alone.
#[test]
fn a_number_without_a_gradient_may_come_first() {
    let d = device();
    let (logits, targets) = (Tensor::randn([3, 4], d), Tensor::from_slice(&[0, 2, 1], [3], d));
    let (one, cotangent) = (Tensor::ones([], d), Tensor::randn([3, 4], d));
    let (_, grad) = accuracy_and_scores::vjp(&logits, &targets, (&one, &cotangent));
    check(&grad, &logits, |logits| weighted(&accuracy_and_scores(logits, &targets).1, &cotangent));
}
