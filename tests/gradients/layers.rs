//! Models in plain Rust whose layers are compiled: a tape walks back over each layer by its compiled backward graph.

use crate::common::{check, device, turn};
use fuse_runtime::prelude::*;
use fuse_runtime::{Generator, rt::recorder};

#[compile(grad(x, w, b))]
fn layer(
    #[dims(N, D)] x: &Tensor<f64, 2>,
    #[dims(D, D)] w: &Tensor<f64, 2>,
    #[dims(D)] b: &Tensor<f64, 1>,
    training: bool,
) -> Tensor<f64, 2> {
    x + (x.matmul(w) + b).gelu().dropout(0.3, training)
}

#[compile(grad(x))]
fn loss(#[dims(N, D)] x: &Tensor<f64, 2>, #[dims(N)] targets: &Tensor<i64, 1>) -> Tensor<f64, 0> {
    x.tanh().cross_entropy(targets)
}

/// The weights of three layers.
struct Model {
    layers: [(Tensor<f64, 2>, Tensor<f64, 1>); 3],
    x: Tensor<f64, 2>,
    targets: Tensor<i64, 1>,
}

impl Model {
    fn new(d: Device) -> Model {
        let layers = [(); 3].map(|()| (Tensor::randn([4, 4], d), Tensor::randn([4], d)));
        Model { layers, x: Tensor::randn([5, 4], d), targets: Tensor::from_slice(&[0, 3, 1, 2, 2], [5], d) }
    }

    /// Value and gradients with these functions for a layer and the loss; the first two layers share their weights.
    fn gradients(&self, layer: Layer, loss: Loss, training: bool) -> (f64, Vec<Vec<f64>>) {
        let [(w0, b0), (w1, b1), _] = &self.layers;
        let run = || {
            value_and_grad((w0, b0, w1, b1), |(w0, b0, w1, b1)| {
                let x = layer(&self.x, &w0, &b0, training);
                let x = layer(&x, &w0, &b1, training);
                let x = layer(&(&x * 0.5), &w1, &b1, training);
                loss(&x, &self.targets)
            })
        };
        let (value, (w0, b0, w1, b1)) = Generator::new(5).scope(run);
        (value.item(), vec![w0.to_vec(), b0.to_vec(), w1.to_vec(), b1.to_vec()])
    }
}

type Layer = fn(&Tensor<f64, 2>, &Tensor<f64, 2>, &Tensor<f64, 1>, bool) -> Tensor<f64, 2>;
type Loss = fn(&Tensor<f64, 2>, &Tensor<i64, 1>) -> Tensor<f64, 0>;

#[test]
fn layers_have_the_gradients_of_their_originals() {
    let model = Model::new(device());
    for training in [false, true] {
        let (value, found) = model.gradients(layer, loss, training);
        let (wanted, eager) = model.gradients(layer::eager, loss::eager, training);
        assert!((value - wanted).abs() <= 1e-12, "{value}, op by op {wanted}");
        for (found, eager) in found.iter().flatten().zip(eager.iter().flatten()) {
            assert!((found - eager).abs() <= 1e-12 * eager.abs().max(1.0), "{found}, op by op {eager}");
        }
    }
}

#[test]
fn a_layer_is_differentiated_twice() {
    let model = Model::new(device());
    let (w, b) = &model.layers[0];
    let direction = Tensor::randn([4], device());
    for training in [false, true] {
        let slope = |b: &Tensor<f64, 1>| {
            let run = |b: Tensor<f64, 1>| loss(&layer(&model.x, w, &b, training), &model.targets);
            let grad = Generator::new(9).scope(|| value_and_grad(b, run).1);
            (grad * &direction).sum_all()
        };
        let (_, curvature) = value_and_grad(b, |b| slope(&b));
        check(&curvature, b, |b| slope(b).item());
    }
}

#[test]
fn a_tape_launches_the_graphs_of_layers() {
    let _turn = turn();
    let model = Model::new(recorder::device());
    recorder::launches();
    model.gradients(layer, loss, true);
    let launched: Vec<String> = recorder::launches().into_iter().map(|launch| launch.kernel).collect();
    let is_of = |text: &str, name: &str| text.contains(&format!("KERNEL_{name}"));
    let is_compiled =
        |name: &str| ["matmul", "graph"].contains(&name) || is_of(layer::CUDA, name) || is_of(loss::CUDA, name);
    // Between the layers there is a product with its gradient, and two sums of gradients of weights that are used twice.
    let eager: Vec<&String> = launched.iter().filter(|name| !is_compiled(name)).collect();
    assert!(eager.len() <= 6 && launched.len() >= 12, "{eager:?} of {launched:?}");
}

/// A model with a number that is no parameter, and parameters that are models.
#[derive(Clone)]
struct Deep {
    blocks: Vec<Block>,
    labels: Tensor<i64, 1>,
    training: bool,
}

#[derive(Clone)]
struct Block {
    w: Tensor<f64, 2>,
    b: Tensor<f64, 1>,
}

fuse_runtime::parameters!(Deep { blocks, labels });
fuse_runtime::parameters!(Block { w, b });

#[test]
fn a_struct_has_gradients_as_its_tensors_have() {
    let model = Model::new(device());
    let blocks = model.layers.iter().map(|(w, b)| Block { w: w.clone(), b: b.clone() }).collect();
    let deep = Deep { blocks, labels: model.targets.clone(), training: true };
    let run = |deep: Deep| {
        let x = deep.blocks.iter().fold(model.x.clone(), |x, block| layer(&x, &block.w, &block.b, deep.training));
        loss(&x, &deep.labels)
    };
    let (value, grads) = Generator::new(3).scope(|| value_and_grad(&deep, run));
    let list = [0, 1, 2].map(|k| (&deep.blocks[k].w, &deep.blocks[k].b));
    let blocks = |list: [(Tensor<f64, 2>, Tensor<f64, 1>); 3]| list.into_iter().map(|(w, b)| Block { w, b }).collect();
    let by_hand = || value_and_grad(list, |list| run(Deep { blocks: blocks(list), ..deep.clone() }));
    let (wanted, tensors) = Generator::new(3).scope(by_hand);
    assert_eq!(value.item(), wanted.item());
    for (block, (w, b)) in grads.blocks.iter().zip(tensors) {
        assert_eq!((block.w.to_vec(), block.b.to_vec()), (w.to_vec(), b.to_vec()));
    }
    assert_eq!((grads.labels.to_vec(), grads.training), (deep.labels.to_vec(), true));
    let (_, of_blocks) = value_and_grad(&deep.blocks, |blocks| run(Deep { blocks, training: false, ..deep.clone() }));
    check(&of_blocks[1].b, &deep.blocks[1].b, |b| {
        let mut deep = Deep { training: false, ..deep.clone() };
        deep.blocks[1].b = b.clone();
        run(deep).item()
    });
}

/// In a compiled function, too, where a tape follows it.
#[compile]
fn slope(deep: &Deep, x: &Tensor<f64, 2>) -> Tensor<f64, 1> {
    let (_, grads) = value_and_grad(deep, |deep| {
        let block = &deep.blocks[0];
        (x.matmul(&block.w) + &block.b).tanh().sum_all()
    });
    let slope: &Tensor<f64, 1> = &grads.blocks[0].b;
    slope * 2.0
}

#[test]
fn a_compiled_function_takes_gradients_of_a_struct() {
    let model = Model::new(device());
    let [(w, b), ..] = &model.layers;
    let blocks = vec![Block { w: w.clone(), b: b.clone() }];
    let deep = Deep { blocks, labels: model.targets.clone(), training: false };
    let found = slope(&deep, &model.x);
    assert_eq!(found.to_vec(), slope::eager(&deep, &model.x).to_vec());
    let (_, wanted) = value_and_grad(b, |b| (model.x.matmul(w) + b).tanh().sum_all());
    assert_eq!(found.to_vec(), (wanted * 2.0).to_vec());
}

/// What cannot be cloned is a list of parameters all the same.
struct Fixed {
    w: Tensor<f64, 1>,
}

fuse_runtime::parameters!(Fixed { w });

#[test]
fn a_struct_that_cannot_be_cloned_has_parameters() {
    let fixed = Fixed { w: Tensor::zeros([3], device()) };
    assert_eq!(fuse_runtime::optim::numel(&fixed), 3);
}
