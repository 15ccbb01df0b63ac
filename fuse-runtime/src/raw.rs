//! Tensors whose element type and rank are values: what plans are run on.

use crate::copy::{Loops, copy_strided};
use crate::device::Device;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::storage::{CpuBuffer, CudaBuffer, Storage};
use crate::tape::Var;
use fuse_compiler::types::DType;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// A tensor without types: shared storage and a layout in it. Cloning shares the storage.
#[derive(Clone)]
pub struct RawTensor {
    storage: Arc<Storage>,
    dtype: DType,
    layout: Layout,
    device: Device,
    /// What it is on an eager tape, while one records; other ways to see the storage are constants until they are recorded.
    var: Option<Var>,
}

impl RawTensor {
    /// A row-major tensor with any content, for a kernel to fill.
    pub fn empty(dtype: DType, shape: &[usize], device: Device) -> Result<Self> {
        let bytes = byte_count(dtype, shape)?;
        let storage = match device.cuda_ordinal() {
            None => Storage::Cpu(CpuBuffer::new(bytes)?),
            Some(ordinal) => Storage::Cuda(CudaBuffer::new(ordinal, bytes)?),
        };
        Ok(RawTensor { storage: Arc::new(storage), dtype, layout: Layout::contiguous(shape), device, var: None })
    }

    /// A tensor on the host with the values of `data` in row-major order.
    pub fn from_slice<T: Element>(data: &[T], shape: &[usize]) -> Result<Self> {
        RawTensor::from_slice_on(data, shape, Device::cpu())
    }

    /// A tensor on `device` with the values of `data` in row-major order.
    pub fn from_slice_on<T: Element>(data: &[T], shape: &[usize], device: Device) -> Result<Self> {
        if shape.iter().product::<usize>() != data.len() {
            return Err(Error::shape("from_slice", format!("{} values do not fill {shape:?}", data.len())));
        }
        // SAFETY: an element is a number or a bool, without padding, so all its bytes are initialised.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data)) };
        RawTensor::of_valid_bytes(T::DTYPE, shape, bytes, device)
    }

    /// A tensor from the bytes of its elements in row-major order.
    ///
    /// # Panics
    /// If a bool is neither 0 nor 1.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8], device: Device) -> Result<Self> {
        assert!(dtype != DType::Bool || bytes.iter().all(|&byte| byte <= 1), "a bool is 0 or 1");
        RawTensor::of_valid_bytes(dtype, shape, bytes, device)
    }

    fn of_valid_bytes(dtype: DType, shape: &[usize], bytes: &[u8], device: Device) -> Result<Self> {
        if byte_count(dtype, shape)? != bytes.len() {
            return Err(Error::shape("from_bytes", format!("{} bytes do not fill {dtype}{shape:?}", bytes.len())));
        }
        let storage = match device.cuda_ordinal() {
            None => Storage::Cpu(CpuBuffer::from_bytes(bytes)?),
            Some(ordinal) => Storage::Cuda(CudaBuffer::from_bytes(ordinal, bytes)?),
        };
        Ok(RawTensor { storage: Arc::new(storage), dtype, layout: Layout::contiguous(shape), device, var: None })
    }

    /// A tensor of existing storage, which must hold every element of `layout`.
    pub fn from_storage(storage: Arc<Storage>, dtype: DType, layout: Layout, device: Device) -> Self {
        let out = RawTensor { storage, dtype, layout, device, var: None };
        out.assert_inside();
        out
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, strides and offset.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.layout.numel()
    }

    /// The device that holds the data.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The memory, which other tensors may share.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The value of a tape that it is.
    pub(crate) fn var(&self) -> Option<&Var> {
        self.var.as_ref()
    }

    /// The same tensor as a value of a tape, or as a constant.
    pub(crate) fn with_var(self, var: Option<Var>) -> Self {
        RawTensor { var, ..self }
    }

    /// Whether nothing else holds the storage, so that a write to it is seen by nobody.
    pub fn is_unique(&self) -> bool {
        let unique = Arc::strong_count(&self.storage) == 1;
        // The thread that let go last may have read the storage; what it did comes before what we do now.
        fence(Ordering::Acquire);
        unique
    }

    /// The same storage seen through another layout.
    pub fn with_layout(&self, layout: Layout) -> Self {
        RawTensor::from_storage(self.storage.clone(), self.dtype, layout, self.device)
    }

    /// The same storage, held by nobody more, under another layout that must be inside of it.
    pub(crate) fn relaid(self, layout: Layout) -> Self {
        let out = RawTensor { layout, var: None, ..self };
        out.assert_inside();
        out
    }

    /// The address of the first element, on the device of the tensor.
    pub fn address(&self) -> u64 {
        self.storage.address().wrapping_add_signed(self.layout.offset() as i64 * self.dtype.bytes() as i64)
    }

    /// The first element on the host, for kernels; `None` on other devices.
    pub fn host_ptr(&self) -> Option<*mut u8> {
        let buffer = self.storage.as_cpu()?;
        Some(buffer.as_ptr().wrapping_offset(self.layout.offset() * self.dtype.bytes() as isize))
    }

    /// The elements in row-major order, where they lie so on the host and are of type `T`.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if T::DTYPE != self.dtype || !self.layout.is_contiguous() {
            return None;
        }
        let start = self.host_ptr()?;
        // SAFETY: the layout is inside of the storage (checked when the tensor was made), storage is initialised and aligned,
        // and a storage of dtype `T` holds only valid values of `T`: they were written as such.
        Some(unsafe { std::slice::from_raw_parts(start.cast::<T>(), self.numel()) })
    }

    /// The bytes of the elements in row-major order, where they lie so on the host.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        let buffer = self.storage.as_cpu().filter(|_| self.layout.is_contiguous())?;
        // A tensor without elements may start anywhere.
        let start = if self.numel() == 0 { 0 } else { self.layout.offset() as usize * self.dtype.bytes() };
        Some(&buffer.as_slice()[start..start + self.numel() * self.dtype.bytes()])
    }

    /// The elements in row-major order to write to, where nothing else holds the storage.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        if T::DTYPE != self.dtype || !self.layout.is_contiguous() {
            return None;
        }
        Arc::get_mut(&mut self.storage)?;
        let start = self.host_ptr()?;
        // SAFETY: as above; `get_mut` has shown that no other tensor sees the storage.
        Some(unsafe { std::slice::from_raw_parts_mut(start.cast::<T>(), self.numel()) })
    }

    /// The same values in row-major order, copied only if they do not lie so already.
    pub fn contiguous(&self) -> Result<Self> {
        if self.layout.is_contiguous() { Ok(self.clone()) } else { self.copied() }
    }

    /// A row-major copy in storage of its own.
    pub fn copied(&self) -> Result<Self> {
        let mut out = RawTensor::empty(self.dtype, self.shape(), self.device)?;
        let all = *out.layout();
        out.overwrite(&all, self)?;
        Ok(out)
    }

    /// The same values with other extents, copied only where strides do not allow a view.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        match self.layout.reshape(shape)? {
            Some(layout) => Ok(self.with_layout(layout)),
            None => Ok(self.copied()?.with_layout(Layout::contiguous(shape))),
        }
    }

    /// The values in row-major order on the host.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        assert_eq!(T::DTYPE, self.dtype, "the element type of a typed tensor is the one of its data");
        let host = self.to_device(Device::cpu())?.contiguous()?;
        Ok(host.as_slice().map(<[T]>::to_vec).unwrap_or_default())
    }

    /// The same values on `device`, copied only if they are elsewhere.
    pub fn to_device(&self, device: Device) -> Result<Self> {
        if device == self.device {
            return Ok(self.clone());
        }
        match &*self.storage {
            Storage::Cpu(_) => {
                let dense = self.contiguous()?;
                let bytes = dense.as_bytes().unwrap_or_default();
                RawTensor::of_valid_bytes(self.dtype, self.shape(), bytes, device)
            }
            Storage::Cuda(memory) => self.download(memory)?.to_device(device),
        }
    }

    /// The part of a GPU's storage that the layout spans, under the same layout on the host.
    fn download(&self, memory: &CudaBuffer) -> Result<Self> {
        let size = self.dtype.bytes();
        let (low, high) = self.layout.span().unwrap_or((0, -1));
        let mut host = CpuBuffer::new((high - low + 1) as usize * size)?;
        memory.buffer().read(low as usize * size, host.as_mut_slice())?;
        crate::eager::check_faults(memory)?;
        let layout = Layout::strided(self.shape(), self.layout.strides(), self.layout.offset() - low);
        Ok(RawTensor::from_storage(Arc::new(Storage::Cpu(host)), self.dtype, layout, Device::cpu()))
    }

    /// Writes the values of `source`, on the same device, over the elements that `part`, of its extents, has in the storage.
    ///
    /// # Panics
    /// If something else holds the storage: it would see the write.
    pub(crate) fn overwrite(&mut self, part: &Layout, source: &RawTensor) -> Result<()> {
        assert!(self.is_unique(), "only the owner of a storage writes to it");
        let target = self.with_layout(*part);
        match (target.host_ptr(), source.host_ptr()) {
            (Some(to), Some(from)) => {
                // SAFETY: both layouts are inside of their storages, and nothing else held the one of `self`, so the two do
                // not overlap.
                unsafe { copy_strided(to, part, from, &source.layout, self.dtype.bytes()) };
                Ok(())
            }
            _ => copy_on_device(&target, source),
        }
    }

    /// The storage of a dense tensor, with any content, as one of another element type and of other extents but the same size.
    pub(crate) fn recast(&self, dtype: DType, shape: &[usize]) -> Option<Self> {
        let bytes = self.numel() * self.dtype.bytes();
        let offset = self.layout.offset() as usize * self.dtype.bytes();
        let fits = self.layout.is_contiguous() && bytes == shape.iter().product::<usize>() * dtype.bytes();
        if !fits || !offset.is_multiple_of(dtype.bytes()) {
            return None;
        }
        let dense = Layout::contiguous(shape);
        let layout = Layout::strided(shape, dense.strides(), (offset / dtype.bytes()) as isize);
        Some(RawTensor::from_storage(self.storage.clone(), dtype, layout, self.device))
    }

    /// Takes over the new value of a variable that the caller keeps if the call that makes the value fails.
    ///
    /// A GPU finds out about that behind our back: there the old value is copied back behind the call, where it has failed.
    pub(crate) fn replace(&mut self, value: RawTensor) -> Result<()> {
        let failing = value.storage.as_cuda().and_then(|memory| Some((memory, memory.may_fail()?)));
        if let Some((memory, call)) = failing {
            let alike = (self.dtype, self.device, self.shape()) == (value.dtype, value.device, value.shape());
            if alike && value.is_unique() && value.layout.is_contiguous() {
                let (old, bytes) = (self.contiguous()?, value.numel() * value.dtype.bytes());
                old.storage.as_cuda().map_or(Ok(()), |old| old.buffer().will_read())?;
                memory.buffer().will_write()?;
                memory.buffer().context().restore_if_failed(call, value.address(), old.address(), bytes)?;
                memory.note_call(self.last_call());
            } else {
                memory.buffer().context().synchronize()?;
                crate::eager::check_faults(memory)?;
            }
        }
        *self = value;
        Ok(())
    }

    fn last_call(&self) -> u64 {
        self.storage.as_cuda().map_or(0, CudaBuffer::last_call)
    }

    fn assert_inside(&self) {
        if let Some((low, high)) = self.layout.span() {
            let elements = (self.storage.bytes() / self.dtype.bytes()) as isize;
            assert!(low >= 0 && high < elements, "{:?} leaves a storage of {elements} elements", self.layout);
        }
    }
}

impl fmt::Debug for RawTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} on {}", self.dtype, self.layout, self.device)
    }
}

/// Copies between two tensors of equal extents on one GPU.
fn copy_on_device(target: &RawTensor, source: &RawTensor) -> Result<()> {
    let (Some(to), Some(from)) = (target.storage.as_cuda(), source.storage.as_cuda()) else {
        return Err(Error::device("copy", format!("{} and {} are not one device", target.device, source.device)));
    };
    to.note_call(from.last_call());
    let size = target.dtype.bytes();
    if target.layout.is_contiguous() && source.layout.is_contiguous() {
        let start = |layout: &Layout| layout.offset() as usize * size;
        return to.buffer().copy_from(
            start(&target.layout),
            from.buffer(),
            start(&source.layout),
            target.numel() * size,
        );
    }
    let loops = Loops::merged(&target.layout, &source.layout, size);
    from.buffer().will_read()?;
    to.buffer().will_write()?;
    to.buffer().context().copy_strided(target.address(), source.address(), &loops, size)
}

fn byte_count(dtype: DType, shape: &[usize]) -> Result<usize> {
    let count = shape.iter().try_fold(dtype.bytes(), |bytes, &extent| bytes.checked_mul(extent));
    count.filter(|&bytes| bytes <= isize::MAX as usize).ok_or_else(|| Error::out_of_memory("the machine", usize::MAX))
}
