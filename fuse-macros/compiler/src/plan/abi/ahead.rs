//! Texts of a kernel that are worth compiling before anybody knows its layouts, while the user's crate is built.
//!
//! They are those for contiguous operands of a usual size, where the plan's formulas leave sizes open, and those that serve
//! whatever there may be. So their number is bounded, and no layout is without a text.

use super::candidates::distinct;
use super::{Access, BATCH_AXES, Geometry, Lie, Step, THREADS, Target, Variant, Walk, splittable};
use crate::plan::{Kernel, Kind, Leaf, LeafSource, Level, Matmul, Operand, Phases, Plan, Store, View};
use crate::types::Dim;

/// What extents that are not known are taken for, so that a power of two divides them.
const USUAL: i64 = 1024;
/// Another length of rows: those of the first are kept by fewer threads.
const LONG: i64 = 4096;

/// The most texts of a kernel that [`ahead`] gives.
pub const MOST_AHEAD: usize = 6;

/// The texts of a kernel that are compiled while the crate is built, for a device of a kind.
pub fn ahead(plan: &Plan, kernel: &Kernel, target: &Target) -> Vec<Variant> {
    let lengths: &[i64] = if kernel.kind == Kind::Row { &[USUAL, LONG] } else { &[USUAL] };
    let usual = lengths.iter().filter_map(|&extent| {
        let axes = geometry(plan, kernel, extent)?.collapse(kernel);
        Some(Variant::choose(kernel, &axes, target))
    });
    let usual: Vec<Variant> = usual.collect();
    let joined = usual.iter().filter(|text| !text.turned().any(|turned| turned)).map(|text| text.join(kernel, text));
    let splits = kernel.kind == Kind::Row && splittable(&Phases::of(kernel));
    let plain = Variant::plainest(kernel);
    let split = splits.then(|| Variant { walk: Walk::Split, ..plain.clone() });
    distinct(usual.iter().cloned().chain(joined).chain(split).chain([plain]))
}

/// The same of a matmul template: large matrices, on tensor cores too where the device has such, and a row; of both the usual
/// ones and any.
pub fn ahead_of_product(plan: &Plan, matmul: &Matmul, target: &Target) -> Vec<Variant> {
    let (kernel, dtype) = (&matmul.epilogue, matmul.dtype);
    let plain = [USUAL, 1].into_iter().filter_map(|rows| {
        let best = Variant::plain_product(kernel, dtype, &product_geometry(plan, matmul, rows)?);
        let any = best.join(kernel, &best).for_all(kernel);
        Some([best, any])
    });
    let large = product_geometry(plan, matmul, LONG).map(|axes| Variant::product(kernel, dtype, &axes, target));
    distinct(plain.flatten().chain(large))
}

impl Variant {
    /// The text that runs any layout of a kernel that is no product, however slowly.
    pub fn plainest(kernel: &Kernel) -> Variant {
        let (domain, reduced) = (kernel.domain.len(), kernel.reduced as usize);
        let operands = kernel.leaves.len() + kernel.stores.len();
        let walk = if kernel.kind == Kind::Row { Walk::Stream { team: THREADS } } else { Walk::Plain };
        let (outer, inner) = match kernel.kind {
            Kind::Map => (domain, 0),
            _ => (domain - reduced, reduced.max(1)),
        };
        Variant { outer: outer.max(1), inner, vec: 1, steps: vec![Step::Apart; operands], wide: true, walk }
    }

    /// Whether this text runs any layout of its kernel, whatever would be best for it.
    pub(super) fn runs_any(&self, kernel: &Kernel) -> bool {
        let anyhow = Lie::Apart;
        match self.walk {
            Walk::Product { left, right, .. } => self.wide && self.vec == 1 && left == anyhow && right == anyhow,
            _ => *self == Variant::plainest(kernel),
        }
    }
}

/// The axes of a kernel with contiguous operands, whose unknown extents are all this one. `None` where they cannot be.
fn geometry(plan: &Plan, kernel: &Kernel, unknown: i64) -> Option<Geometry> {
    let domain: Vec<i64> = kernel.domain.iter().map(|dim| extent(dim, unknown)).collect();
    let inner = if kernel.kind == Kind::Map { 0 } else { kernel.reduced as usize };
    let (outer, inner) = domain.split_at(domain.len() - inner);
    let leaves = kernel.leaves.iter().map(|leaf| leaf_access(plan, leaf, unknown));
    let stores = kernel.stores.iter().map(|store| store_access(plan, kernel, store, unknown));
    let operands = leaves.chain(stores).collect::<Option<Vec<Access>>>()?;
    let ranks = [0, outer.len(), domain.len()];
    let fits = operands.iter().all(|operand| ranks.contains(&operand.strides.len()));
    fits.then(|| Geometry { outer: outer.to_vec(), inner: inner.to_vec(), operands })
}

/// The axes of a matmul template with so many rows.
fn product_geometry(plan: &Plan, matmul: &Matmul, rows: i64) -> Option<Geometry> {
    let epilogue = geometry(plan, &matmul.epilogue, USUAL)?;
    let missing = BATCH_AXES.checked_sub(matmul.batch.len())?;
    let pad = |list: &[i64], with: i64| [vec![with; missing], list.to_vec()].concat();
    let padded = |access: &Access| match access.strides.len() {
        0 => access.clone(),
        _ => Access { strides: pad(&access.strides, 0), ..access.clone() },
    };
    let mut outer = pad(&epilogue.outer, 1);
    outer[BATCH_AXES] = if matmul.m.as_const().is_some() { outer[BATCH_AXES] } else { rows };
    let mut operands: Vec<Access> = epilogue.operands.iter().map(padded).collect();
    for matrix in [&matmul.a, &matmul.b] {
        operands.push(padded(&operand_access(plan, matrix, USUAL)?));
    }
    Some(Geometry { outer, inner: vec![extent(&matmul.k, USUAL)], operands })
}

fn extent(dim: &Dim, unknown: i64) -> i64 {
    dim.eval(&|_| unknown)
}

fn extents(dims: &[Dim], unknown: i64) -> Vec<i64> {
    dims.iter().map(|dim| extent(dim, unknown)).collect()
}

fn leaf_access(plan: &Plan, leaf: &Leaf, unknown: i64) -> Option<Access> {
    let (dims, bytes) = match &leaf.source {
        LeafSource::Buf(buf) => {
            let ty = &plan.bufs[buf.0 as usize].ty;
            (&ty.dims, ty.dtype.bytes())
        }
        LeafSource::Index(dims) => (dims, 0),
    };
    let shape = Lay::contiguous(extents(dims, unknown))
        .cut(leaf.indexed.map(|lookup| lookup.axis))
        .under(&leaf.views, unknown)?;
    Some(shape.access(leaf.level, bytes, leaf.indexed.is_some()))
}

fn store_access(plan: &Plan, kernel: &Kernel, store: &Store, unknown: i64) -> Option<Access> {
    let ty = &plan.bufs[store.to.buf.0 as usize].ty;
    let axis = store.scatter.as_ref().map(|scatter| scatter.axis);
    let lay = Lay::contiguous(extents(&ty.dims, unknown)).cut(axis).under(&store.to.views, unknown)?;
    Some(lay.access(kernel.store_level(store), ty.dtype.bytes(), axis.is_some()))
}

fn operand_access(plan: &Plan, operand: &Operand, unknown: i64) -> Option<Access> {
    let ty = &plan.bufs[operand.buf.0 as usize].ty;
    let lay = Lay::contiguous(extents(&ty.dims, unknown)).under(&operand.views, unknown)?;
    Some(lay.access(Level::Elem, ty.dtype.bytes(), false))
}

/// Extents and strides; where the first element lies does not count.
struct Lay {
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Lay {
    fn contiguous(shape: Vec<i64>) -> Lay {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1);
        }
        Lay { shape, strides }
    }

    /// With one axis cut down to extent 1.
    fn cut(mut self, axis: Option<u32>) -> Lay {
        axis.into_iter().for_each(|axis| self.shape[axis as usize] = 1);
        self
    }

    fn under(self, views: &[View], unknown: i64) -> Option<Lay> {
        views.iter().try_fold(self, |lay, view| lay.view(view, unknown))
    }

    fn view(mut self, view: &View, unknown: i64) -> Option<Lay> {
        match view {
            View::Permute(order) => {
                let pick = |list: &[i64]| order.iter().map(|&axis| list[axis as usize]).collect();
                return Some(Lay { shape: pick(&self.shape), strides: pick(&self.strides) });
            }
            View::Reshape(dims) => return self.reshaped(extents(dims, unknown)),
            View::Expand(dims) => return self.expanded(extents(dims, unknown)),
            View::Slice { axis, len, step, .. } => {
                self.shape[*axis as usize] = extent(len, unknown);
                self.strides[*axis as usize] *= step;
            }
            View::Unsqueeze(axis) => {
                self.shape.insert(*axis as usize, 1);
                self.strides.insert(*axis as usize, 0);
            }
            View::Squeeze(axis) => {
                self.shape.remove(*axis as usize);
                self.strides.remove(*axis as usize);
            }
            View::Flip(axes) => axes.iter().for_each(|&axis| self.strides[axis as usize] *= -1),
        }
        Some(self)
    }

    /// Only of what is contiguous: other strides may take a copy, after which it is.
    fn reshaped(self, shape: Vec<i64>) -> Option<Lay> {
        (shape.iter().product::<i64>() == self.shape.iter().product()).then(|| Lay::contiguous(shape))
    }

    fn expanded(self, shape: Vec<i64>) -> Option<Lay> {
        let new = shape.len().checked_sub(self.shape.len())?;
        let stride = |(axis, &extent): (usize, &i64)| match axis.checked_sub(new) {
            Some(own) if self.shape[own] == extent => self.strides[own],
            _ => 0,
        };
        let strides = shape.iter().enumerate().map(stride).collect();
        Some(Lay { shape, strides })
    }

    fn access(self, level: Level, bytes: usize, indexed: bool) -> Access {
        let strides = if level == Level::All { vec![] } else { self.strides };
        Access { strides, address: 0, bytes, indexed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{H200, kernel, product, rows, softmax, square, transpose_add};
    use super::*;
    use crate::plan::Step as PlanStep;
    use crate::types::DType;

    #[test]
    fn rows_of_usual_lengths_have_the_text_that_is_best_for_them() {
        let plan = softmax();
        let texts = ahead(&plan, kernel(&plan), &H200);
        for len in [1024, 4096] {
            let axes = rows(1024, len, 0).collapse(kernel(&plan));
            assert!(texts.contains(&Variant::choose(kernel(&plan), &axes, &H200)), "{len}: {texts:#?}");
        }
        assert!(texts.len() <= MOST_AHEAD);
    }

    #[test]
    fn a_transposed_operand_has_tiles_and_a_text_without() {
        let plan = transpose_add();
        let texts = ahead(&plan, kernel(&plan), &H200);
        let axes = square(1024).collapse(kernel(&plan));
        assert!(texts.contains(&Variant::choose(kernel(&plan), &axes, &H200)), "{texts:#?}");
        assert!(texts.contains(&Variant::plainest(kernel(&plan))));
    }

    #[test]
    fn products_have_a_text_for_tensor_cores_and_one_for_anything() {
        for dtype in [DType::F32, DType::BF16, DType::I64] {
            let plan = product(dtype);
            let Some(PlanStep::Matmul(matmul)) = plan.steps.last() else { panic!("{} ends in a product", plan.name) };
            let texts = ahead_of_product(&plan, matmul, &H200);
            let on_tensor_cores =
                texts.iter().any(|text| matches!(text.walk, Walk::Thirds { .. } | Walk::Halves { .. }));
            assert_eq!(on_tensor_cores, dtype != DType::I64, "{texts:#?}");
            assert!(texts.iter().any(|text| text.runs_any(&matmul.epilogue)) && texts.len() <= MOST_AHEAD);
        }
    }

    #[test]
    fn a_view_of_something_contiguous_has_its_strides() {
        let dims = |list: [i64; 3]| list.map(Dim::Const).to_vec();
        let views = [
            View::Permute(vec![1, 0]),
            View::Slice { axis: 1, start: Dim::Const(0), len: Dim::Const(2), step: 2 },
            View::Flip(vec![0]),
            View::Unsqueeze(0),
            View::Expand(dims([5, 3, 2])),
        ];
        let lay = Lay::contiguous(vec![4, 3]).under(&views, USUAL).expect("all of them are views");
        assert_eq!((lay.shape, lay.strides), (vec![5, 3, 2], vec![0, -1, 6]));
    }
}
