//! Products whose algorithm is the fastest of those the library thinks best.
//!
//! They are timed on copies of the operands and written to the book of what was fastest, which is where the choice of an
//! algorithm finds them: so a file that is committed also fixes the bits of such a product.

use super::{Choice, Form, Library, Target, no_result, sys};
use crate::cuda::clock::Clock;
use crate::cuda::driver::{Backend, Context};
use crate::cuda::matmul::{Matmul, Matrix, Problem, Stored};
use crate::cuda::memory::Buffer;
use crate::error::Result;
use crate::log::{self, Topic};
use crate::tune::{Book, Subject, Timed, fastest};
use fuse_compiler::types::DType;
use std::sync::Arc;

/// So many algorithms are timed.
const CANDIDATES: usize = 8;

/// Copies begin as far from a multiple of this as what they are copies of.
const ALIGN: u64 = 256;

impl Context {
    /// Sees to it that the fastest algorithm of a product is known, where the library has several.
    pub(crate) fn tune_product(self: &Arc<Self>, matmul: &Matmul) -> Result<()> {
        let (Backend::Real(real), Some(problem)) = (&self.backend, Problem::of(matmul)) else { return Ok(()) };
        let Some(library) = self.library(real)? else { return Ok(()) };
        let subject = library.subject(problem);
        if Book::of_user().find(&subject).is_some() {
            return Ok(());
        }
        real.make_current()?;
        let choices = library.algorithms(problem, CANDIDATES)?;
        let Some(copies) = (if choices.len() > 1 { Copies::new(self, matmul, problem)? } else { None }) else {
            return Ok(());
        };
        let (clock, form) = (Clock::new(self)?, Form::new(problem, matmul.bias)?);
        let target = Target { context: self, real, stream: self.stream(real) };
        let time = |index: usize| {
            let launch = || library.run(target, &copies.matmul, &choices[index], &form).map(drop);
            clock.time(launch)
        };
        if let Some(winner) = fastest("a product", choices.len(), time) {
            let (us, default_us) = (winner.us, winner.default_us);
            log::line(
                Topic::Tune,
                format_args!(
                    "library: algorithm {} of {} takes {us:.1} us, the first {default_us:.1}, for {problem:?}",
                    winner.index,
                    choices.len()
                ),
            );
            let choice = words(&choices[winner.index].algorithm);
            Book::of_user().note(&subject, &Timed { choice, us, default_us });
        }
        Ok(())
    }
}

impl Library {
    /// The algorithm that was fastest, if that is known and the library still has it.
    pub(super) fn fastest(&self, problem: Problem) -> Result<Option<Choice>> {
        let known = Book::of_user().find(&self.subject(problem));
        let Some(algorithm) = known.and_then(|timed| algorithm(&timed.choice)) else { return Ok(None) };
        let (form, layouts) = (Form::new(problem, problem.bias.then_some(ALIGN))?, problem.layouts()?);
        let [left, right, out] = &layouts;
        let mut found = no_result();
        // SAFETY: all handles live, the algorithm is plain data that is checked here, and the library writes one result.
        let outcome = unsafe {
            sys::cublasLtMatmulAlgoCheck(self.handle, form.0, left.0, right.0, out.0, out.0, &algorithm, &mut found)
        };
        let fits = outcome == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && found.workspaceSize <= super::WORKSPACE;
        let uses_workspace = found.workspaceSize > 0;
        Ok(fits.then_some(Choice { layouts, algorithm, uses_workspace }))
    }

    /// What a choice is about, for the book.
    fn subject(&self, problem: Problem) -> Subject {
        // SAFETY: the library is there and gives a number.
        let version = unsafe { sys::cublasLtGetVersion() };
        let (device, arch) = self.device.clone();
        Subject { device, arch, kernel: "cuBLASLt".into(), text: version.to_string(), shape: format!("{problem:?}") }
    }
}

/// An algorithm in words of a file.
fn words(algorithm: &sys::cublasLtMatmulAlgo_t) -> String {
    algorithm.data.map(|word| format!("{word:x}")).join("-")
}

/// The algorithm of such words.
fn algorithm(words: &str) -> Option<sys::cublasLtMatmulAlgo_t> {
    let parsed: Option<Vec<u64>> = words.split('-').map(|word| u64::from_str_radix(word, 16).ok()).collect();
    Some(sys::cublasLtMatmulAlgo_t { data: parsed?.try_into().ok()? })
}

/// A product of copies.
struct Copies {
    matmul: Matmul,
    _memory: [Buffer; 3],
}

impl Copies {
    /// Copies of the operands and room for the product; `None` where there is not room enough.
    fn new(context: &Arc<Context>, matmul: &Matmul, problem: Problem) -> Result<Option<Copies>> {
        let matrices = [(matmul.b, problem.left), (matmul.a, problem.right), (matmul.c, problem.out)];
        let (dtype, out) = (matmul.dtype, matmul.out_dtype);
        let bytes = |stored: Stored, dtype: DType| stored.reach(problem.batch) * dtype.bytes();
        let lens = [bytes(problem.left, dtype), bytes(problem.right, dtype), bytes(problem.out, out)];
        let (free, _) = context.memory_info()?;
        if lens.iter().sum::<usize>() + 4 * context.facts().l2_bytes as usize > free {
            return Ok(None);
        }
        let mut memory = Vec::new();
        let mut placed = Vec::new();
        for (k, (matrix, len)) in matrices.into_iter().map(|(matrix, _)| matrix).zip(lens).enumerate() {
            let buffer = Buffer::new(context, len + ALIGN as usize)?;
            let address = buffer.ptr() + matrix.address.wrapping_sub(buffer.ptr()) % ALIGN;
            if k < 2 {
                context.copy(address, matrix.address, len)?;
            }
            placed.push(Matrix { address, ..matrix });
            memory.push(buffer);
        }
        let [b, a, c] = placed[..] else { unreachable!("there are three matrices") };
        let memory = memory.try_into().unwrap_or_else(|_| unreachable!("each has its buffer"));
        Ok(Some(Copies { matmul: Matmul { a, b, c, ..*matmul }, _memory: memory }))
    }
}

impl Stored {
    /// Elements from the first to the last of so many such matrices.
    fn reach(&self, batch: i32) -> usize {
        let columns = (self.cols as i64 - 1) * self.leading + self.rows as i64;
        (columns + i64::from(batch - 1) * self.batch_stride) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_comes_back_from_its_words() {
        let data = [0, 1, u64::MAX, 0x1234_5678, 9, 10, 11, 12];
        let known = sys::cublasLtMatmulAlgo_t { data };
        assert_eq!(algorithm(&words(&known)).map(|found| found.data), Some(data));
        assert!(algorithm("1-2-3").is_none() && algorithm("(vec:4,way:Plain)").is_none());
    }
}
