//! Running a scenario in a process of its own.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names the scenario that a process is to play.
pub const SCENARIO: &str = "FUSE_TEST_SCENARIO";

/// Plays a scenario with these variables and returns what it wrote to stderr; fails with it if the scenario fails.
///
/// `FUSE_LOG` makes every scenario tell what it compiles and what it finds in the cache.
pub fn play(scenario: &str, variables: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().expect("the binary knows where it is");
    let mut command = Command::new(program);
    command.args([
        "failures::scenarios::the_scenario_of_the_environment",
        "--exact",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env(SCENARIO, scenario).env("FUSE_LOG", "compile,cache,launch").envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output().expect("the binary runs again");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stdout.contains("1 passed"), "`{scenario}` fails\n{stdout}\n{stderr}");
    stderr.into_owned()
}

/// How many lines contain a text.
pub fn lines_with(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

/// Whether kernels can be compiled here; says once where not.
pub fn has_nvrtc() -> bool {
    static FOUND: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| {
        let folder = Folder::new();
        let said = play("tell_nvrtc", &[("FUSE_CACHE_DIR", folder.path())]);
        let found = lines_with(&said, "NVRTC is here") == 1;
        let required = std::env::var("FUSE_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
        assert!(found || !required, "FUSE_REQUIRE_NVRTC is set, but NVRTC was not found\n{said}");
        if !found {
            println!("skipped: NVRTC is not installed");
        }
        found
    })
}

/// A folder of its own, removed at the end of the test.
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty folder in the system's place for such.
    pub fn new() -> Folder {
        static COUNTER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("fuse-failures-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the system has a writable folder for temporary files");
        Folder(path)
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("the system's folder has a name in UTF-8")
    }

    /// The files in it, by name.
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).expect("the folder is there");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
