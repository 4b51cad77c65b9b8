//! Keys that nodes hold for the whole run, chosen before it, under systems that have such keys: the
//! same on every node, from how often each is accessed (NuPS §3.3, AdaPM §A.5), or those of a
//! partition (HET-GMP §5.2).
//!
//! All nodes have to choose the same: from the accesses of all of them, by arithmetic that is the
//! same everywhere. The manager compares what they chose.
//!
//! Not here: frequencies, which a task knows
//! ([`Task::frequencies`](crate::run::Task::frequencies)).

use std::path::{Path, PathBuf};

use adapm_core::Key;
use adapm_core::error::OneLine;
use adapm_runtime::Builder;
use adapm_transport::error::SystemError;

use crate::files;

/// The keys that nodes hold for the whole run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Hot {
    /// The same on every node.
    Shared(Vec<Key>),
    /// Of each node.
    ByNode(Vec<Vec<Key>>),
}

impl Hot {
    /// Returns none.
    pub(crate) const fn none() -> Self {
        Self::Shared(Vec::new())
    }

    /// Has a manager hold them.
    pub(crate) fn given_to(&self, builder: Builder<f32>) -> Builder<f32> {
        match self {
            Self::Shared(keys) => builder.hot_keys(keys.iter().copied()),
            Self::ByNode(lists) => builder.hot_keys_by_node(lists.iter().cloned()),
        }
    }
}

/// What is hot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum HotChoice<'a> {
    /// Keys that are accessed more often than so many times the mean of all accessed keys.
    Factor(f64),
    /// So many keys, the most frequent ones.
    Most(u64),
    /// The keys of a file.
    Listed(&'a Path),
}

/// Hot keys that cannot be chosen. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HotKeysError {
    /// The file cannot be read.
    #[error("{}", files::unreadable(path, Some("--replicate-keys"), *error))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: SystemError,
    },
    /// A line is not the number of a key.
    #[error(
        "{}:{line}: {} is not the number of a key; give one number a line (--replicate-keys)",
        path.display(), OneLine(text)
    )]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What it holds.
        text: String,
    },
    /// A key that the parameters do not have.
    #[error(
        "{}:{line}: there is no key {key}: keys are 0 to {}; give one of them (--replicate-keys)",
        path.display(), keys - 1
    )]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key.
        key: u64,
        /// Keys of the parameters.
        keys: u64,
    },
    /// No key.
    #[error("{} lists no key; give one number a line (--replicate-keys)", .0.display())]
    Empty(PathBuf),
    /// They are to be chosen by frequencies that the task does not know.
    #[error(
        "this task does not say how often keys are accessed; list the keys to replicate in a file (--replicate-keys)"
    )]
    NoFrequencies,
}

/// Returns the hot keys of `keys` many, ascending; `frequencies` has one for each key, if the task
/// knows them. All keys if more are asked for.
///
/// # Errors
///
/// A choice by frequencies that are not known, or a file that cannot be used.
pub(crate) fn choose(
    choice: HotChoice<'_>,
    keys: u64,
    frequencies: impl FnOnce() -> Option<Vec<f64>>,
) -> Result<Vec<Key>, HotKeysError> {
    let known = || frequencies().ok_or(HotKeysError::NoFrequencies);
    match choice {
        HotChoice::Listed(file) => read(file, keys),
        HotChoice::Most(count) => Ok(most(&known()?, usize::try_from(count).unwrap_or(usize::MAX))),
        HotChoice::Factor(factor) => Ok(above(&known()?, factor)),
    }
}

/// Returns the keys that are accessed more often than `factor` times the mean of those that are
/// accessed at all: data may name keys that a run never meets.
fn above(frequencies: &[f64], factor: f64) -> Vec<Key> {
    let accessed = frequencies.iter().filter(|frequency| **frequency > 0.0).count();
    let least = factor * frequencies.iter().sum::<f64>() / accessed.max(1) as f64;
    let hot = (0..).zip(frequencies).filter(|(_, frequency)| **frequency > least);
    hot.map(|(key, _)| Key(key)).collect()
}

/// Returns the `count` most frequent keys, of equally frequent ones the first.
fn most(frequencies: &[f64], count: usize) -> Vec<Key> {
    let mut keys: Vec<usize> = (0..frequencies.len()).collect();
    keys.sort_by(|a, b| frequencies[*b].total_cmp(&frequencies[*a]).then(a.cmp(b)));
    keys.truncate(count);
    keys.sort_unstable();
    keys.into_iter().map(|key| Key(key as u64)).collect()
}

/// Reads the keys of a file, one number a line, of `keys` many. Blank lines do not count.
pub(crate) fn read(path: &Path, keys: u64) -> Result<Vec<Key>, HotKeysError> {
    let bytes = files::read(path).map_err(|error| {
        let (path, error) = (path.to_owned(), SystemError::from(&error));
        HotKeysError::Unreadable { path, error }
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let mut listed = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let (text, line, path) = (text.trim(), index + 1, || path.to_owned());
        if text.is_empty() {
            continue;
        }
        let key: u64 = text.parse().map_err(|_| {
            let text = text.chars().take(SHOWN).collect();
            HotKeysError::NotANumber { path: path(), line, text }
        })?;
        if key >= keys {
            return Err(HotKeysError::UnknownKey { path: path(), line, key, keys });
        }
        listed.push(Key(key));
    }
    listed.sort_unstable();
    listed.dedup();
    if listed.is_empty() { Err(HotKeysError::Empty(path.to_owned())) } else { Ok(listed) }
}

/// Returns the expected number of batches that access a key of `count` examples, if all examples
/// are dealt to `batches` at random: a batch accesses a key once, however often it needs it.
pub(crate) fn batches_with(count: f64, batches: f64) -> f64 {
    if batches <= 1.0 {
        return count.min(batches);
    }
    batches * (1.0 - (1.0 - 1.0 / batches).powf(count))
}

/// NuPS's untuned choice (AdaPM §5.3).
pub(crate) const FACTOR: f64 = 100.0;
/// Characters of a bad line that an error shows.
const SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(choice: HotChoice<'_>, frequencies: &[f64]) -> Result<Vec<u64>, String> {
        let keys = choose(choice, frequencies.len() as u64, || Some(frequencies.to_vec()));
        let keys = keys.map_err(|error| error.to_string())?;
        Ok(keys.into_iter().map(|key| key.0).collect())
    }

    #[test]
    fn what_is_accessed_often_is_hot() {
        let frequencies = [0.0, 3.0, 50.0, 3.0, 0.0, 50.0, 1.0];
        let of = |choice| chosen(choice, &frequencies);
        // The mean of the five that are accessed is 21.4.
        assert_eq!(of(HotChoice::Factor(2.0)), Ok(vec![2, 5]));
        assert_eq!(of(HotChoice::Factor(2.4)), Ok(vec![]));
        assert_eq!(of(HotChoice::Factor(0.01)), Ok(vec![1, 2, 3, 5, 6]));
        assert_eq!(of(HotChoice::Most(1)), Ok(vec![2]), "of equals the first");
        assert_eq!(of(HotChoice::Most(3)), Ok(vec![1, 2, 5]));
        assert_eq!(of(HotChoice::Most(7)), Ok((0..7).collect()));
        assert_eq!(chosen(HotChoice::Factor(1.0), &[0.0; 3]), Ok(vec![]));
    }

    #[test]
    fn without_frequencies_a_file_is_asked_for() {
        let error = choose(HotChoice::Most(1), 5, || None).expect_err("nothing is known");
        assert_eq!(error, HotKeysError::NoFrequencies);
        assert!(error.to_string().contains("--replicate-keys"), "{error}");
    }

    #[test]
    fn a_file_lists_keys_and_what_is_none_is_named_with_its_line() {
        let path = std::env::temp_dir().join(format!("adapm-hot-{}", std::process::id()));
        let of = |text: &str| {
            std::fs::write(&path, text).expect("it can be written");
            chosen(HotChoice::Listed(&path), &[1.0; 9])
        };
        let name = path.display();
        assert_eq!(of("8\n\n 2 \r\n8\n"), Ok(vec![2, 8]));
        let refused = |text: &str, told: &str| assert_eq!(of(text), Err(told.to_owned()));
        refused(
            "1\nword\n",
            &format!(
                "{name}:2: word is not the number of a key; give one number a line (--replicate-keys)"
            ),
        );
        refused(
            "1\n\n9",
            &format!(
                "{name}:3: there is no key 9: keys are 0 to 8; give one of them (--replicate-keys)"
            ),
        );
        refused("\n", &format!("{name} lists no key; give one number a line (--replicate-keys)"));
        std::fs::remove_file(&path).expect("it is there");
        let gone = chosen(HotChoice::Listed(&path), &[1.0; 9]).expect_err("it is gone");
        assert_eq!(
            gone,
            format!("cannot read {name} (--replicate-keys): no such file; check the path")
        );
    }

    #[test]
    fn a_batch_accesses_a_key_once() {
        assert_eq!(batches_with(1.0, 8.0), 1.0);
        assert!((batches_with(2.0, 8.0) - 1.875).abs() < 1e-12);
        assert!((batches_with(1e6, 8.0) - 8.0).abs() < 1e-9);
        assert_eq!(batches_with(5.0, 1.0), 1.0);
    }
}
