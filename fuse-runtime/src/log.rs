//! Lines on stderr about what the runtime does, asked for with `FUSE_LOG=compile,launch,cache,tune,break`.

use std::fmt;
use std::sync::OnceLock;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Kernels that were compiled, and how long it took.
    Compile,
    /// Every launch, with its grid and block.
    Launch,
    /// Hits and misses of the kernel cache.
    Cache,
    /// Candidates that were timed, and the winners.
    Tune,
    /// Graph breaks of the functions that are called.
    Break,
}

const TOPICS: [(&str, Topic); 5] = [
    ("compile", Topic::Compile),
    ("launch", Topic::Launch),
    ("cache", Topic::Cache),
    ("tune", Topic::Tune),
    ("break", Topic::Break),
];

/// Whether lines about `topic` were asked for; the environment is read once.
pub fn enabled(topic: Topic) -> bool {
    static ENABLED: OnceLock<u8> = OnceLock::new();
    let enabled = ENABLED.get_or_init(|| {
        let list = crate::env::log_topics();
        let (mask, unknown) = parse(&list);
        for word in unknown {
            warn(format_args!("FUSE_LOG: unknown topic `{word}`, known are {}", known()));
        }
        mask
    });
    enabled & bit(topic) != 0
}

/// Writes a line about `topic` if such lines were asked for.
pub fn line(topic: Topic, text: fmt::Arguments<'_>) {
    if enabled(topic) {
        let name = TOPICS.iter().find(|row| row.1 == topic).map_or("", |row| row.0);
        eprintln!("fuse {name}: {text}");
    }
}

/// Writes a line that nobody asked for but everybody should see.
pub fn warn(text: fmt::Arguments<'_>) {
    eprintln!("fuse warning: {text}");
}

/// The topics in a comma list as a bit mask, and the words that name none.
fn parse(list: &str) -> (u8, Vec<&str>) {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.fold((0, Vec::new()), |(mask, mut unknown), word| match TOPICS.iter().find(|row| row.0 == word) {
        Some(row) => (mask | bit(row.1), unknown),
        None => {
            unknown.push(word);
            (mask, unknown)
        }
    })
}

fn bit(topic: Topic) -> u8 {
    1 << topic as u8
}

fn known() -> String {
    TOPICS.map(|row| row.0).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_list_names_topics() {
        let (mask, unknown) = parse("compile, cache");
        assert_eq!(mask, bit(Topic::Compile) | bit(Topic::Cache));
        assert!(unknown.is_empty());
    }

    #[test]
    fn unknown_words_are_reported_and_the_others_still_count() {
        assert_eq!(parse("lunch,launch,"), (bit(Topic::Launch), vec!["lunch"]));
    }
}
