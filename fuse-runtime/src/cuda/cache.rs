//! Compiled kernels, kept in memory and on disk.
//!
//! A cubin is found by a hash of everything it depends on, so an entry never goes stale: a changed source is another key.
//! The version of NVRTC is not in the key but beside it. Where the library is installed only cubins of its version count,
//! where it is missing any version will do: that is how a machine without NVRTC runs what was compiled for it.

use super::disk::Disk;
use super::nvrtc::{self, Nvrtc};
use super::once::OnceMap;
use super::section::own_text;
use crate::error::Result;
use crate::log::{self, Topic};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// A source, and what else decides about its machine code.
#[derive(Clone, Copy)]
pub(super) struct Program<'a> {
    /// The name for people: in logs and errors.
    pub(super) name: &'a str,
    /// The CUDA text.
    pub(super) source: &'a str,
    /// The architecture: `sm_90a`.
    pub(super) arch: &'a str,
    /// Macros and their values, in order.
    pub(super) defines: &'a [(&'a str, String)],
    /// Whether products may contract with the sums they go into.
    pub(super) contract: bool,
}

impl Program<'_> {
    /// The hash of everything the machine code depends on.
    ///
    /// Lines that only say where the source came from do not count, nor do comments and other kernels of the function:
    /// moving it must not compile it again, and the kernel of an eager op is the same for every rank.
    pub(super) fn key(&self) -> Key {
        let version = Key::START.and(env!("CARGO_PKG_VERSION").as_bytes());
        let key = nvrtc::options(self).fold(version, |key, option| key.and(option.as_bytes()));
        let key = self.defines.iter().fold(key, |key, (name, value)| key.and(name.as_bytes()).and(value.as_bytes()));
        let own = own_text(self.source, self.name);
        let lines = own.split('\n').filter(|line| !nvrtc::is_line_directive(line) && !is_comment(line));
        lines.fold(key, |key, line| key.and(line.as_bytes()))
    }
}

/// What tells a kernel from every other, and from itself after a change: its text and its element types.
pub(crate) fn text_key(source: &str, kernel: &str, types: &[(&str, String)], contract: bool) -> String {
    Program { name: kernel, source, arch: "", defines: types, contract }.key().to_string()
}

/// Whether a line of source is for people only. One that ends in a backslash goes on in the next line and counts.
fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") && !line.ends_with('\\')
}

/// A 128-bit FNV-1a hash: the same in every build and on every machine, unlike the standard library's.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) u128);

impl Key {
    /// The hash of nothing.
    pub(super) const START: Key = Key(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);

    /// The hash of what was hashed so far, then `bytes`; their length goes in as well, so that pieces cannot run together.
    pub(super) fn and(self, bytes: &[u8]) -> Key {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let length = (bytes.len() as u64).to_le_bytes();
        let all = bytes.iter().chain(&length);
        Key(all.fold(self.0, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME)))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where cubins come from: memory, then disk, then the compiler.
pub(super) struct Cache {
    cubins: OnceMap<Key, Arc<[u8]>>,
    disk: Option<Disk>,
    nvrtc: Option<Nvrtc>,
}

impl Cache {
    /// The cache of this user, shared by all devices of the process.
    pub(super) fn of_user() -> &'static Cache {
        static CACHE: LazyLock<Cache> = LazyLock::new(|| Cache::new(Disk::of_user(), Nvrtc::detect()));
        &CACHE
    }

    /// A cache over a folder and a compiler, either of which may be missing.
    pub(super) fn new(disk: Option<Disk>, nvrtc: Option<Nvrtc>) -> Cache {
        Cache { cubins: OnceMap::new(), disk, nvrtc }
    }

    /// The machine code of `program`. Threads asking for one program compile it once, different programs in parallel.
    pub(super) fn cubin(&self, program: &Program) -> Result<Arc<[u8]>> {
        let key = program.key();
        self.cubins.get_or_try_make(key, || self.load(key, program).map_or_else(|| self.compile(key, program), Ok))
    }

    fn load(&self, key: Key, program: &Program) -> Option<Arc<[u8]>> {
        let found = self.disk.as_ref()?.load(key, self.nvrtc.map(|nvrtc| nvrtc.version));
        let outcome = if found.is_some() { "hit" } else { "miss" };
        log::line(Topic::Cache, format_args!("{outcome} {} for {} ({key})", program.name, program.arch));
        found.map(Arc::from)
    }

    fn compile(&self, key: Key, program: &Program) -> Result<Arc<[u8]>> {
        let nvrtc = self.nvrtc.ok_or_else(|| nvrtc::missing(program))?;
        let own = own_text(program.source, program.name);
        let cubin = nvrtc.compile(&Program { source: &own, ..*program })?;
        if let Some(disk) = &self.disk {
            disk.store(key, nvrtc.version, &cubin);
        }
        Ok(cubin.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: &str, arch: &str, defines: &[(&str, String)]) -> Key {
        Program { name: "k", source, arch, defines, contract: false }.key()
    }

    #[test]
    fn everything_the_code_depends_on_is_in_the_key() {
        let define = |name, value: &str| [(name, value.to_owned())];
        let keys = [
            key("a", "sm_80", &[]),
            key("b", "sm_80", &[]),
            key("a", "sm_90a", &[]),
            key("a", "sm_80", &define("N", "1")),
            key("a", "sm_80", &define("N", "2")),
            key("a", "sm_80", &define("N1", "")),
        ];
        let contracted = Program { name: "k", source: "a", arch: "sm_80", defines: &[], contract: true }.key();
        assert!(!keys.contains(&contracted));
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    #[test]
    fn where_the_source_came_from_is_not_in_the_key() {
        assert_eq!(key("#line 3 \"m.rs\"\na", "sm_80", &[]), key("#line 9 \"m.rs\"\na", "sm_80", &[]));
        assert_eq!(key("// x [B, S]\na", "sm_80", &[]), key("  // x [B]\na", "sm_80", &[]));
        assert_ne!(key("// a \\\nb", "sm_80", &[]), key("// c \\\nb", "sm_80", &[]));
    }

    #[test]
    fn a_change_in_one_kernel_leaves_the_others_as_they_are() {
        let text =
            |one: &str| format!("#if defined(KERNEL_k)\nzero\n#endif\n#if defined(KERNEL_other)\n{one}\n#endif\n");
        assert_eq!(key(&text("one"), "sm_80", &[]), key(&text("two"), "sm_80", &[]));
    }

    #[test]
    fn pieces_cannot_run_together() {
        assert_ne!(Key::START.and(b"ab").and(b"c"), Key::START.and(b"a").and(b"bc"));
    }
}
