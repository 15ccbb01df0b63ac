//! Cubins on disk: one file per key and NVRTC version, private to the user, bounded in size.
//!
//! A file is written under a name of its own and renamed, so that a reader sees all of it or nothing. It starts with a
//! header that repeats what it is; a file that is cut, changed, foreign or of another format is not an entry and is
//! written anew. Nothing here fails: a folder that cannot be used costs a warning, and compiling again.

use super::cache::Key;
use super::once::lock;
use crate::env;
use crate::log::{self, Topic};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The most the cache takes, in bytes.
const LIMIT: u64 = 512 << 20;

/// The first bytes of an entry; the last of them is the version of the format.
const MAGIC: [u8; 8] = *b"FUSECUB\x01";

/// Magic, key, NVRTC version, checksum.
const HEADER: usize = 8 + 16 + 8 + 16;

/// The version of the compiler that made an entry.
type Version = (u32, u32);

/// A folder of cubins.
pub(super) struct Disk {
    folder: PathBuf,
    limit: u64,
    /// The size of all entries, once it was counted.
    size: Mutex<Option<u64>>,
    warned: AtomicBool,
}

impl Disk {
    /// The folder named by `FUSE_CACHE_DIR`, else `fuse` in the user's cache folder; none where there is no home.
    pub(super) fn of_user() -> Option<Disk> {
        env::cache_folder().map(|folder| Disk::new(folder, LIMIT))
    }

    /// A folder that is kept below `limit` bytes; it is made when the first entry is stored.
    pub(super) fn new(folder: PathBuf, limit: u64) -> Disk {
        Disk { folder, limit, size: Mutex::new(None), warned: AtomicBool::new(false) }
    }

    /// The cubin of `key` made by compiler `version`, or by any if it is `None`.
    pub(super) fn load(&self, key: Key, version: Option<Version>) -> Option<Vec<u8>> {
        match version {
            Some(version) => self.read(&self.path(key, version), key),
            None => self.paths_of(key).iter().find_map(|path| self.read(path, key)),
        }
    }

    /// Keeps `cubin`, and drops the entries unused for longest if the folder grows beyond its limit.
    pub(super) fn store(&self, key: Key, version: Version, cubin: &[u8]) {
        let stored = self.write(key, version, cubin).and_then(|len| self.bound(len));
        if let Err(error) = stored {
            self.warn(&error);
        }
    }

    fn path(&self, key: Key, (major, minor): Version) -> PathBuf {
        self.folder.join(format!("{key}-{major}.{minor}.cubin"))
    }

    /// The files of `key`, whichever compiler made them.
    fn paths_of(&self, key: Key) -> Vec<PathBuf> {
        let prefix = format!("{key}-");
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        names
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .map(|entry| entry.path())
            .collect()
    }

    fn read(&self, path: &Path, key: Key) -> Option<Vec<u8>> {
        let mut file = File::open(path).ok()?;
        let cubin = permissions::is_private(&file).then(|| decode(&mut file, path, key)).flatten();
        match &cubin {
            // The time of the last use, so that what is used stays. It is a hint: a read-only cache works as well.
            Some(_) => drop(file.set_modified(SystemTime::now())),
            None => log::line(Topic::Cache, format_args!("{} is damaged or foreign", path.display())),
        }
        cubin
    }

    /// Writes an entry and returns its size.
    fn write(&self, key: Key, version: Version, cubin: &[u8]) -> io::Result<u64> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        permissions::create_folder(&self.folder)?;
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let draft = self.folder.join(format!("{key}.{}.{number}.tmp", std::process::id()));
        let entry = encode(key, version, cubin);
        let written = permissions::create_file(&draft)
            .and_then(|mut file| file.write_all(&entry))
            .and_then(|()| fs::rename(&draft, self.path(key, version)));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written.map(|()| entry.len() as u64)
    }

    /// Notes that `added` bytes came, and evicts down to three quarters of the limit when it is passed.
    fn bound(&self, added: u64) -> io::Result<()> {
        let mut size = lock(&self.size);
        let now = match *size {
            Some(before) => before + added,
            None => files(&self.folder)?.iter().map(|file| file.len).sum(),
        };
        *size = Some(if now > self.limit { evict(&self.folder, self.limit / 4 * 3)? } else { now });
        Ok(())
    }

    /// Says once why the folder cannot be used.
    fn warn(&self, error: &io::Error) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            let folder = self.folder.display();
            log::warn(format_args!("kernels are not kept between runs, {folder} cannot be written: {error}"));
        }
    }
}

/// An entry as it lies on disk.
fn encode(key: Key, version: Version, cubin: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(HEADER + cubin.len());
    entry.extend(MAGIC);
    entry.extend(key.0.to_le_bytes());
    entry.extend(version_bytes(version));
    entry.extend(checksum(key, version, cubin));
    entry.extend(cubin);
    entry
}

/// The cubin of an entry, if the file is an entry for this key and under its right name.
fn decode(file: &mut File, path: &Path, key: Key) -> Option<Vec<u8>> {
    let mut entry = Vec::new();
    file.read_to_end(&mut entry).ok()?;
    let (header, cubin) = entry.split_at_checked(HEADER)?;
    let version = version_in(path)?;
    let expected = encode(key, version, &[]);
    let same =
        header[..HEADER - 16] == expected[..HEADER - 16] && header[HEADER - 16..] == checksum(key, version, cubin);
    same.then(|| cubin.to_vec())
}

fn version_bytes((major, minor): Version) -> [u8; 8] {
    (u64::from(major) << 32 | u64::from(minor)).to_le_bytes()
}

fn checksum(key: Key, version: Version, cubin: &[u8]) -> [u8; 16] {
    key.and(&version_bytes(version)).and(cubin).0.to_le_bytes()
}

/// The version in a file name like `0123-13.0.cubin`.
fn version_in(path: &Path) -> Option<Version> {
    let (major, minor) = path.file_stem()?.to_str()?.split_once('-')?.1.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A file of the cache.
struct Entry {
    path: PathBuf,
    used: SystemTime,
    len: u64,
}

/// The entries and drafts in a folder; files of others are left alone.
fn files(folder: &Path) -> io::Result<Vec<Entry>> {
    let ours = |path: &Path| path.extension().is_some_and(|extension| extension == "cubin" || extension == "tmp");
    let entry = |entry: fs::DirEntry| {
        let about = entry.metadata().ok()?;
        let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        (about.is_file() && ours(&entry.path())).then(|| Entry { path: entry.path(), used, len: about.len() })
    };
    Ok(fs::read_dir(folder)?.flatten().filter_map(entry).collect())
}

/// Removes the entries unused for longest until at most `target` bytes are left, and returns how many are.
fn evict(folder: &Path, target: u64) -> io::Result<u64> {
    let mut entries = files(folder)?;
    entries.sort_by_key(|entry| entry.used);
    let mut size = entries.iter().map(|entry| entry.len).sum();
    // A draft that another process is writing is young; an old one was left behind by a crash.
    let young = SystemTime::now().checked_sub(Duration::from_secs(3600)).unwrap_or(SystemTime::UNIX_EPOCH);
    for entry in
        entries.iter().filter(|entry| entry.path.extension().is_some_and(|e| e == "cubin") || entry.used < young)
    {
        if size <= target {
            break;
        }
        // Another process may have removed it first, which is as good.
        let _ = fs::remove_file(&entry.path);
        log::line(Topic::Cache, format_args!("evicted {}", entry.path.display()));
        size -= entry.len;
    }
    Ok(size)
}

/// Folders and files only their owner can read or write, and files only this user can have written.
#[cfg(unix)]
mod permissions {
    use std::fs::{self, DirBuilder, File, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    pub(super) fn create_folder(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    pub(super) fn create_file(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    /// Whether the file is this user's, and nobody else may write to it: machine code of others is not run.
    pub(super) fn is_private(file: &File) -> bool {
        let user = fs::metadata("/proc/self").map(|about| about.uid());
        match (file.metadata(), user) {
            (Ok(about), Ok(user)) => about.uid() == user && about.mode() & 0o022 == 0,
            // Without /proc the owner is not known; the permissions still are.
            (Ok(about), Err(_)) => about.mode() & 0o022 == 0,
            (Err(_), _) => false,
        }
    }
}

/// Where permissions work otherwise, the user's cache folder is private by its place.
#[cfg(not(unix))]
mod permissions {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::path::Path;

    pub(super) fn create_folder(path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    pub(super) fn create_file(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    pub(super) fn is_private(_: &File) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::tests::scratch::Folder;

    const KEY: Key = Key(42);
    const VERSION: Version = (13, 0);

    #[test]
    fn what_was_stored_is_loaded() {
        let folder = Folder::new();
        Disk::new(folder.path(), LIMIT).store(KEY, VERSION, b"cubin");
        let disk = Disk::new(folder.path(), LIMIT);
        assert_eq!(disk.load(KEY, Some(VERSION)).as_deref(), Some(&b"cubin"[..]));
        assert_eq!(disk.load(Key(43), Some(VERSION)), None);
    }

    #[test]
    fn another_compiler_version_counts_only_where_there_is_no_compiler() {
        let folder = Folder::new();
        let disk = Disk::new(folder.path(), LIMIT);
        disk.store(KEY, VERSION, b"cubin");
        assert_eq!(disk.load(KEY, Some((13, 1))), None);
        assert_eq!(disk.load(KEY, None).as_deref(), Some(&b"cubin"[..]));
    }

    #[test]
    fn every_damaged_byte_and_every_cut_is_seen() {
        let folder = Folder::new();
        let disk = Disk::new(folder.path(), LIMIT);
        disk.store(KEY, VERSION, b"cubin");
        let path = disk.path(KEY, VERSION);
        let entry = fs::read(&path).unwrap();
        for index in 0..entry.len() {
            let mut damaged = entry.clone();
            damaged[index] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(disk.load(KEY, Some(VERSION)), None, "byte {index}");
            fs::write(&path, &entry[..index]).unwrap();
            assert_eq!(disk.load(KEY, Some(VERSION)), None, "cut at {index}");
        }
        fs::write(&path, entry).unwrap();
        assert!(disk.load(KEY, Some(VERSION)).is_some());
    }

    #[test]
    fn an_entry_under_the_name_of_another_is_not_trusted() {
        let folder = Folder::new();
        let disk = Disk::new(folder.path(), LIMIT);
        disk.store(KEY, VERSION, b"cubin");
        fs::copy(disk.path(KEY, VERSION), disk.path(Key(43), VERSION)).unwrap();
        fs::copy(disk.path(KEY, VERSION), disk.path(KEY, (13, 1))).unwrap();
        assert_eq!(disk.load(Key(43), Some(VERSION)), None);
        assert_eq!(disk.load(KEY, Some((13, 1))), None);
    }

    #[test]
    fn the_oldest_entries_make_room() {
        let folder = Folder::new();
        let disk = Disk::new(folder.path(), 4000);
        let second = |index| SystemTime::UNIX_EPOCH + Duration::from_secs(index);
        for index in 1..=4u8 {
            disk.store(Key(index.into()), VERSION, &[index; 900]);
            let path = disk.path(Key(index.into()), VERSION);
            File::options().write(true).open(path).unwrap().set_modified(second(index.into())).unwrap();
        }
        assert!(disk.load(Key(1), Some(VERSION)).is_some(), "a use makes it the youngest");
        disk.store(Key(5), VERSION, &[5; 900]);
        let left: Vec<u128> = (1..=5).filter(|&key| disk.load(Key(key), Some(VERSION)).is_some()).collect();
        assert_eq!(left, [1, 4, 5]);
    }

    #[cfg(unix)]
    #[test]
    fn entries_are_private_to_the_user() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let folder = Folder::new();
        let disk = Disk::new(folder.path().join("made"), LIMIT);
        disk.store(KEY, VERSION, b"cubin");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&disk.folder), 0o700);
        let path = disk.path(KEY, VERSION);
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(disk.load(KEY, Some(VERSION)), None, "anyone could have written it");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_failure() {
        let folder = Folder::new();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let disk = Disk::new(file.join("below"), LIMIT);
        disk.store(KEY, VERSION, b"cubin");
        assert!(disk.warned.load(Ordering::Relaxed));
        assert_eq!(disk.load(KEY, Some(VERSION)), None);
    }
}
