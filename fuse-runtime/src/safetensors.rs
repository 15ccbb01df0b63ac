//! Tensors in safetensors files.

use crate::device::Device;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use ::safetensors::tensor::{Dtype, TensorView};
use ::safetensors::{SafeTensors, serialize};
use fuse_compiler::types::DType;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The tensors of a file by name.
#[derive(Clone, Debug)]
pub struct Tensors {
    path: PathBuf,
    entries: BTreeMap<String, Entry>,
}

/// A tensor of a file.
#[derive(Clone, Debug)]
enum Entry {
    Known(RawTensor),
    /// An element type that tensors do not have, by its name in the file.
    Unknown(String),
}

/// Reads all tensors of a file to `device`.
///
/// ```
/// use fuse_runtime::prelude::*;
/// use fuse_runtime::safetensors;
/// let path = std::env::temp_dir().join(format!("fuse-doc-{}.safetensors", std::process::id()));
/// let weight = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// safetensors::save(&path, [("weight", &weight)])?;
///
/// let tensors = safetensors::load(&path, Device::cpu())?;
/// assert_eq!(tensors.get::<f32, 2>("weight")?.to_vec(), weight.to_vec());
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// Fails with an [`Error`] of kind `Io` if the file cannot be read or is damaged.
pub fn load(path: impl AsRef<Path>, device: impl Into<Device>) -> Result<Tensors> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|error| Error::io(path.display(), error))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| Error::io(path.display(), error))?;
    let device = device.into();
    let mut entries = BTreeMap::new();
    for (name, view) in file.iter() {
        let entry = read(path, name, &view, device)?;
        entries.insert(name.to_owned(), entry);
    }
    Ok(Tensors { path: path.to_owned(), entries })
}

fn read(path: &Path, name: &str, view: &TensorView<'_>, device: Device) -> Result<Entry> {
    let Some((dtype, _)) = DTYPES.iter().find(|(_, stored)| *stored == view.dtype()) else {
        return Ok(Entry::Unknown(format!("{:?}", view.dtype())));
    };
    if *dtype == DType::Bool && view.data().iter().any(|&byte| byte > 1) {
        return Err(Error::io(path.display(), format!("`{name}` holds values that are no bool")));
    }
    Ok(Entry::Known(RawTensor::from_bytes(*dtype, view.shape(), view.data(), device)?))
}

impl Tensors {
    /// The tensor called `name`.
    ///
    /// Fails with an [`Error`] of kind `Io` if there is none, or if it has another element type or rank.
    pub fn get<T: Element, const R: usize>(&self, name: &str) -> Result<Tensor<T, R>> {
        let raw = self.untyped(name)?;
        if (raw.dtype(), raw.shape().len()) != (T::DTYPE, R) {
            let found = format!("`{name}` is {}{:?}", raw.dtype(), raw.shape());
            return Err(self.fail(format!("{found} and not of {} with rank {R}", T::DTYPE)));
        }
        Ok(Tensor::from_raw(raw.clone()))
    }

    /// The tensor of a name, or an error that says why there is none.
    pub(crate) fn untyped(&self, name: &str) -> Result<&RawTensor> {
        match self.entries.get(name) {
            None => Err(self.fail(format!("there is no tensor `{name}`"))),
            Some(Entry::Unknown(dtype)) => Err(self.fail(format!("`{name}` is of {dtype}, which no tensor can hold"))),
            Some(Entry::Known(raw)) => Ok(raw),
        }
    }

    /// An error about the file.
    pub(crate) fn fail(&self, text: String) -> Error {
        Error::io(self.path.display(), text)
    }

    /// The untyped tensor called `name`, if there is one whose element type is known.
    pub fn raw(&self, name: &str) -> Option<&RawTensor> {
        match self.entries.get(name)? {
            Entry::Known(raw) => Some(raw),
            Entry::Unknown(_) => None,
        }
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Writes tensors to a file, which appears whole or not at all.
///
/// Tensors of several types go in one file as untyped ones: `("weight", weight.raw().clone())`.
///
/// Fails with an [`Error`] of kind `Io` if the file cannot be written; what was at `path` then stays.
pub fn save<N, X>(path: impl AsRef<Path>, tensors: impl IntoIterator<Item = (N, X)>) -> Result<()>
where
    N: AsRef<str>,
    X: Into<RawTensor>,
{
    let path = path.as_ref();
    let mut kept = Vec::new();
    for (name, tensor) in tensors {
        kept.push((name.as_ref().to_owned(), tensor.into().to_device(Device::cpu())?.contiguous()?));
    }
    let views = kept.iter().map(|(name, tensor)| Ok((name, view(path, tensor)?))).collect::<Result<Vec<_>>>()?;
    let bytes = serialize(views, None).map_err(|error| Error::io(path.display(), error))?;
    write_whole(path, &bytes).map_err(|error| Error::io(path.display(), error))
}

fn view<'a>(path: &Path, tensor: &'a RawTensor) -> Result<TensorView<'a>> {
    let stored = DTYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype()).map(|(_, stored)| *stored);
    let (Some(stored), Some(bytes)) = (stored, tensor.as_bytes()) else {
        return Err(Error::io(path.display(), format!("{tensor:?} cannot be written")));
    };
    TensorView::new(stored, tensor.shape().to_vec(), bytes).map_err(|error| Error::io(path.display(), error))
}

/// Writes to a file of another name beside `path`, then renames it, which replaces `path` at once.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let unique = format!("{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut name = path.as_os_str().to_owned();
    name.push(unique);
    let outcome = fs::File::create(&name).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&name, path)?;
        sync_folder(path)
    });
    if outcome.is_err() {
        // Nothing is lost if it cannot be removed: it has a name of its own.
        let _ = fs::remove_file(&name);
    }
    outcome
}

/// Has the new name of a file written to the disk, too, where the system can be asked to.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { fs::File::open(folder)?.sync_all() } else { Ok(()) }
}

const DTYPES: [(DType, Dtype); 9] = [
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F8E4M3, Dtype::F8_E4M3),
    (DType::I64, Dtype::I64),
    (DType::I32, Dtype::I32),
    (DType::U8, Dtype::U8),
    (DType::Bool, Dtype::BOOL),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use half::bf16;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("fuse-safetensors-{name}-{}", std::process::id()))
    }

    #[test]
    fn tensors_come_back_as_they_were_saved() {
        let path = scratch("round-trip");
        let x = Tensor::from([[1.0f32, -0.0], [f32::INFINITY, 4.0]]).t();
        let y = Tensor::from([bf16::from_f32(1.5)]);
        let z = Tensor::from([true, false]);
        save(&path, [("x", x.raw().clone()), ("y", y.raw().clone()), ("z", z.raw().clone())]).unwrap();
        let tensors = load(&path, Device::cpu()).unwrap();
        fs::remove_file(&path).unwrap();

        assert_eq!(tensors.names().collect::<Vec<_>>(), ["x", "y", "z"]);
        assert_eq!(tensors.get::<f32, 2>("x").unwrap().to_vec(), x.to_vec());
        assert_eq!(tensors.get::<bf16, 1>("y").unwrap().to_vec(), y.to_vec());
        assert_eq!(tensors.get::<bool, 1>("z").unwrap().to_vec(), z.to_vec());
    }

    #[test]
    fn a_wrong_name_or_type_says_what_is_there() {
        let path = scratch("types");
        save(&path, [("x", Tensor::from([1i64, 2]))]).unwrap();
        let tensors = load(&path, Device::cpu()).unwrap();
        fs::remove_file(&path).unwrap();

        let error = tensors.get::<f32, 2>("x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().ends_with("`x` is i64[2] and not of f32 with rank 2"), "{error}");
        let error = tensors.get::<f32, 2>("y").unwrap_err();
        assert!(error.to_string().ends_with("there is no tensor `y`"), "{error}");
    }

    #[test]
    fn a_damaged_or_missing_file_is_an_io_error() {
        let path = scratch("damaged");
        assert_eq!(load(&path, Device::cpu()).unwrap_err().kind(), ErrorKind::Io);
        fs::write(&path, b"not a tensor file").unwrap();
        assert_eq!(load(&path, Device::cpu()).unwrap_err().kind(), ErrorKind::Io);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_failed_save_leaves_nothing_behind() {
        let folder = scratch("no-such-folder");
        let error = save(folder.join("x"), [("x", Tensor::from([1i64]))]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(!folder.exists());
    }
}
