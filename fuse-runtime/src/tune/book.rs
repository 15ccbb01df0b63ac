//! The choices that are known, in memory and in a file.

use super::line::{self, Subject, TITLE, Timed};
use crate::env;
use crate::log::{self, Topic};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Known choices.
pub(crate) struct Book {
    known: Mutex<BTreeMap<Subject, Timed>>,
    /// Where new ones are written.
    file: Option<PathBuf>,
}

impl Book {
    /// The choices of this user: those of the file that `FUSE_TUNE_FILE` names, else of one beside the compiled kernels.
    pub(crate) fn of_user() -> &'static Book {
        static BOOK: LazyLock<Book> = LazyLock::new(|| Book::open(env::tune_file()));
        &BOOK
    }

    /// What is in a file. What cannot be read is left alone, as if it were not there.
    fn open(file: Option<PathBuf>) -> Book {
        let text = file.as_deref().map(read).unwrap_or_default();
        let place = file.as_deref().map(Path::display).map(|place| place.to_string()).unwrap_or_default();
        let mut known = BTreeMap::new();
        for (number, text) in text.lines().enumerate() {
            match line::read(text) {
                // Where two processes have timed the same the later line counts.
                Ok(choice) => known.extend(choice),
                Err(error) => log::line(Topic::Tune, format_args!("{place}:{}: ignored, {error}", number + 1)),
            }
        }
        if !known.is_empty() {
            log::line(Topic::Tune, format_args!("{} choices in {place}", known.len()));
        }
        Book { known: Mutex::new(known), file }
    }

    /// What was fastest, if that is known.
    pub(crate) fn find(&self, subject: &Subject) -> Option<Timed> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(subject).cloned()
    }

    /// Remembers what was fastest. A file that cannot be written costs a line in the log, and timing again in the next run.
    pub(crate) fn note(&self, subject: &Subject, timed: &Timed) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(subject.clone(), timed.clone());
        if let Some(file) = &self.file
            && let Err(error) = append(file, &line::write(subject, timed))
        {
            log::line(Topic::Tune, format_args!("{} cannot be written: {error}", file.display()));
        }
    }
}

/// The text of a file, or nothing.
fn read(file: &Path) -> String {
    match fs::read(file).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            log::line(Topic::Tune, format_args!("{} is ignored, it is no text", file.display()));
            String::new()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            log::line(Topic::Tune, format_args!("{} cannot be read: {error}", file.display()));
            String::new()
        }
    }
}

/// Adds a line in one piece, so that the lines of several processes do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    let title = if file.metadata()?.len() == 0 { format!("{TITLE}\n") } else { String::new() };
    file.write_all(format!("{title}{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(kernel: &str) -> Subject {
        let text = |text: &str| text.to_owned();
        Subject {
            device: text("a GPU"),
            arch: text("sm_90a"),
            kernel: text(kernel),
            text: text("12ab"),
            shape: text("64"),
        }
    }

    fn timed(choice: &str) -> Timed {
        Timed { choice: choice.to_owned(), us: 12.25, default_us: 14.0 }
    }

    /// A file of its own, removed at the end.
    struct File(PathBuf);

    impl File {
        fn new(name: &str) -> File {
            File(std::env::temp_dir().join(format!("fuse-tune-{name}-{}.ron", std::process::id())))
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_choice_is_found_by_another_process() {
        let file = File::new("found");
        let book = Book::open(Some(file.0.clone()));
        assert_eq!(book.find(&subject("k0")), None);
        book.note(&subject("k0"), &timed("first"));
        book.note(&subject("k1"), &timed("second"));
        book.note(&subject("k0"), &timed("better"));
        let other = Book::open(Some(file.0.clone()));
        assert_eq!(other.find(&subject("k0")), Some(timed("better")));
        assert_eq!(other.find(&subject("k1")), Some(timed("second")));
        assert_eq!(other.find(&subject("k2")), None);
    }

    #[test]
    fn damaged_and_foreign_lines_are_ignored() {
        let file = File::new("damaged");
        Book::open(Some(file.0.clone())).note(&subject("k0"), &timed("good"));
        let good = fs::read_to_string(&file.0).unwrap();
        let cut = &good.trim_end()[..good.len() / 2];
        fs::write(&file.0, format!("not a choice\n{good}\n(device: 3)\n{cut}")).unwrap();
        assert_eq!(Book::open(Some(file.0.clone())).find(&subject("k0")), Some(timed("good")));
        fs::write(&file.0, [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(Book::open(Some(file.0.clone())).find(&subject("k0")), None);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_no_failure() {
        let file = File::new("blocked");
        fs::write(&file.0, "").unwrap();
        let book = Book::open(Some(file.0.join("below")));
        book.note(&subject("k0"), &timed("good"));
        assert_eq!(book.find(&subject("k0")), Some(timed("good")));
    }
}
