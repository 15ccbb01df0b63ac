//! Printing, in PyTorch's form.

use super::Tensor;
use crate::device::Device;
use crate::dtype::Element;
use crate::raw::RawTensor;
use fuse_compiler::types::DType;
use std::fmt::{self, Debug, Display};

/// Tensors with more elements are shown by their edges.
const THRESHOLD: usize = 1000;
/// How many places of each edge are shown.
const EDGE: usize = 3;
/// How wide a line gets.
const LINE_WIDTH: usize = 80;
/// What every line starts after.
const PREFIX: &str = "tensor(";

/// Prints like PyTorch: `tensor([[1., 2.], [3., 4.]])`. A precision (`{:.2}`) sets the number of decimals.
impl<T: Element, const R: usize> Display for Tensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.raw().to_device(Device::cpu()) {
            Ok(host) => host,
            Err(error) => return write!(f, "tensor(<{error}>)"),
        };
        let page = Page::new::<T>(&shown, f.precision());
        f.write_str(PREFIX)?;
        match shown.numel() {
            0 => f.write_str("[]")?,
            _ => page.write(f, &shown, PREFIX.len(), &mut page.cells.iter())?,
        }
        write!(f, "{})", suffix(self))
    }
}

/// The same as [`Display`]: it tells everything.
impl<T: Element, const R: usize> Debug for Tensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// What the numbers alone do not tell.
fn suffix<T: Element, const R: usize>(tensor: &Tensor<T, R>) -> String {
    let mut out = String::new();
    if tensor.numel() == 0 && R != 1 {
        out += &format!(", size={:?}", tensor.dims());
    }
    if !tensor.device().is_cpu() {
        out += &format!(", device='{}'", tensor.device());
    }
    // A reader takes floats for f32, whole numbers for i64, and knows bool by its words.
    if !matches!(T::DTYPE, DType::F32 | DType::I64 | DType::Bool) || (tensor.numel() == 0 && T::DTYPE != DType::F32) {
        out += &format!(", dtype={}", T::DTYPE);
    }
    out
}

/// The elements to be shown, as texts of equal width.
struct Page {
    cells: Vec<String>,
    width: usize,
    summarised: bool,
}

impl Page {
    fn new<T: Element>(tensor: &RawTensor, precision: Option<usize>) -> Self {
        let summarised = tensor.numel() > THRESHOLD;
        let mut values = Vec::new();
        collect::<T>(tensor, summarised, &mut values);
        let cells = texts(&values, precision);
        let width = cells.iter().map(String::len).max().unwrap_or(0);
        Page { cells, width, summarised }
    }

    /// Writes one dim after the other; the cells come in the order of [`collect`].
    fn write<'a>(
        &self,
        f: &mut fmt::Formatter<'_>,
        tensor: &RawTensor,
        indent: usize,
        cells: &mut impl Iterator<Item = &'a String>,
    ) -> fmt::Result {
        match tensor.shape() {
            [] => write!(f, "{}", cells.next().map_or("", |cell| cell.as_str())),
            [extent] => self.write_line(f, *extent, indent, cells),
            _ => self.write_rows(f, tensor, indent, cells),
        }
    }

    fn write_rows<'a>(
        &self,
        f: &mut fmt::Formatter<'_>,
        tensor: &RawTensor,
        indent: usize,
        cells: &mut impl Iterator<Item = &'a String>,
    ) -> fmt::Result {
        // Matrices of a stack are set apart by an empty line, deeper stacks by more.
        let gap = format!(",{}{}", "\n".repeat(tensor.shape().len() - 1), " ".repeat(indent + 1));
        f.write_str("[")?;
        for (i, place) in places(tensor.shape()[0], self.summarised).enumerate() {
            f.write_str(if i > 0 { &gap } else { "" })?;
            match place {
                Some(row) => self.write(f, &row_of(tensor, row), indent + 1, cells)?,
                None => f.write_str("...")?,
            }
        }
        f.write_str("]")
    }

    fn write_line<'a>(
        &self,
        f: &mut fmt::Formatter<'_>,
        extent: usize,
        indent: usize,
        cells: &mut impl Iterator<Item = &'a String>,
    ) -> fmt::Result {
        let per_line = ((LINE_WIDTH - indent.min(LINE_WIDTH)) / (self.width + 2)).max(1);
        let gap = format!(",\n{}", " ".repeat(indent + 1));
        f.write_str("[")?;
        for (i, place) in places(extent, self.summarised).enumerate() {
            f.write_str(match i {
                0 => "",
                i if i % per_line == 0 => &gap,
                _ => ", ",
            })?;
            match place.and_then(|_| cells.next()) {
                Some(cell) => write!(f, "{cell:>width$}", width = self.width)?,
                None => write!(f, " ...")?,
            }
        }
        f.write_str("]")
    }
}

/// The places of a dim to be shown; `None` stands for those left out.
fn places(extent: usize, summarised: bool) -> impl Iterator<Item = Option<usize>> {
    let cut = summarised && extent > 2 * EDGE;
    let head = if cut { EDGE } else { extent };
    let tail = if cut { extent - EDGE } else { extent };
    (0..head).map(Some).chain(cut.then_some(None)).chain((tail..extent).map(Some))
}

fn collect<T: Element>(tensor: &RawTensor, summarised: bool, out: &mut Vec<T>) {
    match tensor.shape() {
        [] => out.extend(tensor.as_slice::<T>().unwrap_or_default()),
        [extent, ..] => {
            for row in places(*extent, summarised).flatten() {
                collect(&row_of(tensor, row), summarised, out);
            }
        }
    }
}

fn row_of(tensor: &RawTensor, row: usize) -> RawTensor {
    tensor.with_layout(tensor.layout().select(0, row).expect("the row is inside of the tensor"))
}

fn texts<T: Element>(values: &[T], precision: Option<usize>) -> Vec<String> {
    if !T::DTYPE.compute().is_float() {
        return values.iter().map(|value| value.to_string()).collect();
    }
    let style = Style::of(values.iter().map(|value| value.to_f64()), precision);
    values.iter().map(|value| style.text(value.to_f64())).collect()
}

/// How all floats of a tensor are written.
#[derive(Clone, Copy)]
enum Style {
    /// `1.`: all are whole numbers.
    Whole,
    /// `1.2346`, with this many decimals.
    Fixed(usize),
    /// `1.2346e+10`, with this many decimals.
    Scientific(usize),
}

impl Style {
    /// PyTorch's rule: scientific where the numbers span more than three decades or leave `1e-4..1e8`.
    fn of(values: impl Iterator<Item = f64>, precision: Option<usize>) -> Self {
        let magnitudes: Vec<f64> = values.filter(|v| v.is_finite() && *v != 0.0).map(f64::abs).collect();
        let largest = magnitudes.iter().copied().fold(0.0, f64::max);
        let smallest = magnitudes.iter().copied().fold(f64::INFINITY, f64::min);
        let whole = magnitudes.iter().all(|v| v.fract() == 0.0);
        let decimals = precision.unwrap_or(4);
        if magnitudes.is_empty() || precision.is_some() {
            return if precision.is_some() { Style::Fixed(decimals) } else { Style::Whole };
        }
        match (largest / smallest > 1000.0 || largest > 1e8, whole) {
            (true, true) if largest <= 1e8 => Style::Whole,
            (true, _) => Style::Scientific(decimals),
            (false, true) => Style::Whole,
            (false, false) if smallest < 1e-4 => Style::Scientific(decimals),
            (false, false) => Style::Fixed(decimals),
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            _ if value.is_nan() => "nan".to_owned(),
            _ if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_owned(),
            Style::Whole => format!("{value:.0}."),
            Style::Fixed(decimals) => format!("{value:.decimals$}"),
            Style::Scientific(decimals) => scientific(value, decimals),
        }
    }
}

/// `1.2346e+10`: Rust leaves out the sign and the second digit of the exponent.
fn scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Element, const R: usize>(tensor: Tensor<T, R>, expected: &str) {
        assert_eq!(tensor.to_string(), expected);
        assert_eq!(format!("{tensor:?}"), expected);
    }

    #[test]
    fn whole_floats_end_in_a_dot() {
        check(Tensor::from([[1.0f32, 2.0], [3.0, -4.0]]), "tensor([[ 1.,  2.],\n        [ 3., -4.]])");
    }

    #[test]
    fn floats_have_four_decimals() {
        check(Tensor::from([0.5f32, 10.25]), "tensor([ 0.5000, 10.2500])");
        assert_eq!(format!("{:.1}", Tensor::from([0.5f32, 10.25])), "tensor([ 0.5, 10.2])");
    }

    #[test]
    fn wide_ranges_are_scientific() {
        check(Tensor::from([1.5e-10f32, 2.0]), "tensor([1.5000e-10, 2.0000e+00])");
        check(Tensor::from([f32::NAN, f32::INFINITY, -1.0]), "tensor([nan, inf, -1.])");
    }

    #[test]
    fn rank_0_has_no_brackets() {
        check(Tensor::of_scalar(2.5f32), "tensor(2.5000)");
        check(Tensor::of_scalar(7i64), "tensor(7)");
    }

    #[test]
    fn other_types_are_named() {
        check(Tensor::from([1i32, 20]), "tensor([ 1, 20], dtype=i32)");
        check(Tensor::from([true, false]), "tensor([ true, false])");
        check(Tensor::from([half::f16::ONE]), "tensor([1.], dtype=f16)");
    }

    #[test]
    fn empty_tensors_tell_their_size() {
        check(Tensor::<f32, 2>::zeros([2, 0], Device::cpu()), "tensor([], size=[2, 0])");
        check(Tensor::<i64, 1>::zeros([0], Device::cpu()), "tensor([], dtype=i64)");
    }

    #[test]
    fn large_tensors_are_shown_by_their_edges() {
        check(Tensor::arange(0i64, 2000, Device::cpu()), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
    }

    #[test]
    fn stacks_of_matrices_are_set_apart() {
        check(Tensor::from([[[1i64, 2]], [[3, 4]]]), "tensor([[[1, 2]],\n\n        [[3, 4]]])");
    }
}
