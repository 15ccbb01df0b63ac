//! Tensors of functions that are generic in their rank, on their way into graphs and back.

use crate::dtype::Element;
use crate::layout::Layout;
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use fuse_compiler::types::OPEN_RANK;

/// Whether a function captured for tensors of [`OPEN_RANK`] axes, whose ops take at least `least`, serves rank `R`.
pub const fn is_open_to<const R: usize>(least: usize) -> bool {
    least <= R && R <= OPEN_RANK
}

/// A tensor with leading axes of extent 1.
///
/// # Panics
/// If its rank is more than [`OPEN_RANK`].
pub fn widened<T: Element, const R: usize>(tensor: &Tensor<T, R>) -> RawTensor {
    let (raw, added) = (tensor.raw(), OPEN_RANK - R);
    let (mut shape, mut strides) = ([1; OPEN_RANK], [0; OPEN_RANK]);
    shape[added..].copy_from_slice(raw.shape());
    strides[added..].copy_from_slice(raw.layout().strides());
    raw.with_layout(Layout::strided(&shape, &strides, raw.layout().offset()))
}

/// An extent of [`widened`].
pub fn widened_size<T: Element, const R: usize>(tensor: &Tensor<T, R>, axis: usize) -> usize {
    axis.checked_sub(OPEN_RANK - R).map_or(1, |axis| tensor.dims()[axis])
}

/// A tensor without the leading axes that its function's arguments were given.
///
/// # Panics
/// If the rank of `R` is more than that of `raw`, or the axes are not of extent 1: a graph that keeps ranks keeps them so.
pub fn narrowed<T: Element, const R: usize>(raw: RawTensor) -> Tensor<T, R> {
    let added = raw.layout().rank() - R;
    let (shape, strides) = (raw.shape().to_vec(), raw.layout().strides().to_vec());
    assert!(shape[..added].iter().all(|&extent| extent == 1), "{raw:?} has more axes than {R}");
    let layout = Layout::strided(&shape[added..], &strides[added..], raw.layout().offset());
    Tensor::from_raw(raw.relaid(layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn a_tensor_comes_back_as_it_went() {
        let x = Tensor::<f32, 2>::randn([3, 4], Device::cpu());
        for x in [x.t(), x.narrow(1, 1, 2)] {
            let wide = widened(&x);
            assert_eq!(wide.shape(), [1, 1, 1, 1, x.size(0), x.size(1)]);
            assert_eq!(wide.shape(), std::array::from_fn::<usize, OPEN_RANK, _>(|axis| widened_size(&x, axis)));
            assert_eq!(narrowed::<f32, 2>(wide).to_vec(), x.to_vec());
        }
        let one = Tensor::<f32, 0>::full([], 2.0, Device::cpu());
        assert_eq!(narrowed::<f32, 0>(widened(&one)).item(), 2.0);
    }

    #[test]
    fn ranks_beyond_the_open_one_and_below_what_ops_take_are_not_served() {
        assert!(is_open_to::<0>(0) && is_open_to::<6>(2));
        assert!(!is_open_to::<1>(2) && !is_open_to::<7>(0));
    }
}
