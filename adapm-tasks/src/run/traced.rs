//! The keys to trace: those asked for by name or number, or a few between the most frequent and a
//! typical one (as AdaPM Figure 15 chooses).
//!
//! Not here: which names a task has, and which key each of them is.

use std::cmp::Reverse;

use adapm_core::Key;
use adapm_runtime::trace::Tracer;

/// A key, or keys, of a task's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyChoice {
    /// The key of the thing of this kind and name.
    Named {
        /// One of the task's kinds of things.
        kind: &'static str,
        /// Its name, as in the data.
        name: String,
    },
    /// The key of this number.
    Key(u64),
}

impl KeyChoice {
    /// Returns the forms of a choice, for a task of these kinds: `word:NAME or key:NUMBER`.
    pub(crate) fn forms(kinds: &[&str]) -> String {
        let names: Vec<String> = kinds.iter().map(|kind| format!("{kind}:NAME")).collect();
        let names = if names.is_empty() { String::new() } else { names.join(", ") + " or " };
        names + "key:NUMBER"
    }

    /// Reads `KIND:NAME` with one of `kinds`, and `key:NUMBER`, separated by commas. A comma
    /// separates only in front of another choice: names may hold commas.
    ///
    /// # Errors
    ///
    /// Text that is neither.
    pub fn list(text: &str, kinds: &'static [&'static str]) -> Result<Vec<Self>, UnknownKeyChoice> {
        let mut texts: Vec<String> = Vec::new();
        for piece in text.split(',') {
            match texts.last_mut() {
                Some(last) if Self::read(piece, kinds).is_none() => {
                    last.push(',');
                    last.push_str(piece);
                }
                _ => texts.push(piece.to_owned()),
            }
        }
        let choices = texts.iter().map(|text| Self::read(text, kinds));
        choices
            .collect::<Option<_>>()
            .ok_or_else(|| UnknownKeyChoice { text: text.to_owned(), kinds })
    }

    fn read(text: &str, kinds: &'static [&'static str]) -> Option<Self> {
        match text.split_once(':')? {
            ("key", number) => number.parse().ok().map(Self::Key),
            (_, "") => None,
            (kind, name) => {
                let kind = kinds.iter().find(|known| **known == kind)?;
                Some(Self::Named { kind, name: name.to_owned() })
            }
        }
    }
}

/// Text that is no [`KeyChoice`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' chooses no keys; give {}, several separated by commas", KeyChoice::forms(kinds))]
pub struct UnknownKeyChoice {
    text: String,
    kinds: &'static [&'static str],
}

/// A choice that the data does not have. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", no_such_key(choice, *keys))]
pub struct UnknownKey {
    choice: KeyChoice,
    keys: u64,
}

impl UnknownKey {
    /// Creates the error of this choice among so many keys, at least one.
    #[must_use]
    pub fn new(choice: KeyChoice, keys: u64) -> Self {
        Self { choice, keys }
    }
}

fn no_such_key(choice: &KeyChoice, keys: u64) -> String {
    match choice {
        KeyChoice::Named { kind, name } => {
            format!("no {kind} {name} in the data; give a name as in its files")
        }
        KeyChoice::Key(number) => format!("no key {number}; keys are 0 to {}", keys - 1),
    }
}

/// Returns the keys that `choices` name, each with its title; without choices up to five of the
/// first `ranked.len()` keys, between the most frequent and a typical one: what a
/// `Program::traced_keys` returns.
///
/// `keys`: how many there are. `ranked`: how often each of the first keys occurs; empty if that is
/// not known, then none is chosen by itself. `named`: the numbers of the keys of a kind and a name,
/// `None` if the data lacks it. `title`: what a key is. Sorts `ranked` once.
///
/// # Errors
///
/// The first choice that `named` does not know, or a number that is not below `keys`.
pub fn chosen_keys(
    choices: &[KeyChoice],
    keys: usize,
    ranked: &[u64],
    named: impl Fn(&'static str, &str) -> Option<Vec<usize>>,
    title: impl Fn(usize) -> String,
) -> Result<Vec<(Key, String)>, UnknownKey> {
    if choices.is_empty() {
        let described =
            |(key, what): (usize, &str)| (Key(key as u64), format!("{} ({what})", title(key)));
        return Ok(across_the_range(ranked).into_iter().map(described).collect());
    }
    let mut chosen = Vec::new();
    for choice in choices {
        let found = match choice {
            KeyChoice::Named { kind, name } => named(kind, name),
            KeyChoice::Key(number) => {
                usize::try_from(*number).ok().filter(|key| *key < keys).map(|key| vec![key])
            }
        };
        let found = found.ok_or_else(|| UnknownKey::new(choice.clone(), keys as u64))?;
        chosen.extend(found.into_iter().map(|key| (Key(key as u64), title(key))));
    }
    Ok(chosen)
}

/// Checks that there are the keys of a trace.
pub(crate) fn check(tracer: &Tracer, keys: u64) -> Result<(), UnknownKey> {
    let unknown = tracer.keys().iter().find(|key| key.0 >= keys);
    unknown.map_or(Ok(()), |key| Err(UnknownKey::new(KeyChoice::Key(key.0), keys)))
}

/// Positions at quantiles of frequency, each with what that is called; of equally frequent ones the
/// first.
fn across_the_range(counts: &[u64]) -> Vec<(usize, &'static str)> {
    let mut ranked: Vec<usize> = (0..counts.len()).collect();
    ranked.sort_by_key(|at| (Reverse(counts[*at]), *at));
    let mut chosen: Vec<(usize, &'static str)> = Vec::new();
    for (above, what) in QUANTILES {
        let rank = (ranked.len() as f64 * above) as usize;
        let Some(at) = ranked.get(rank) else { continue };
        if chosen.iter().all(|(other, _)| other != at) {
            chosen.push((*at, what));
        }
    }
    chosen
}

/// Share of keys that are more frequent, and what that is called.
const QUANTILES: [(f64, &str); 5] = [
    (0.0, "the most frequent"),
    (0.001, "99.9 % frequency quantile"),
    (0.01, "99 % frequency quantile"),
    (0.1, "90 % frequency quantile"),
    (0.5, "median frequency"),
];

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: &[&str] = &["entity", "relation"];

    #[test]
    fn commas_in_names_separate_nothing() {
        let named = |kind, name: &str| KeyChoice::Named { kind, name: name.to_owned() };
        let expected =
            [named("entity", "Paris, France"), KeyChoice::Key(7), named("relation", "a:b")];
        let choices = KeyChoice::list("entity:Paris, France,key:7,relation:a:b", KINDS);
        assert_eq!(choices.as_deref(), Ok(expected.as_slice()));
        for text in ["", "entity", "entity:", "key:x", "key:-1", "people:3", "key:7,8"] {
            let error = KeyChoice::list(text, KINDS).expect_err(text).to_string();
            assert!(error.contains("give entity:NAME, relation:NAME or key:NUMBER"), "{error}");
        }
    }

    #[test]
    fn a_trace_of_a_key_that_there_is_not_is_refused() {
        let tracer = Tracer::new(Vec::new(), [Key(0), Key(7)].map(|key| (key, String::new())));
        assert_eq!(check(&tracer, 8), Ok(()));
        let error = check(&tracer, 7).expect_err("key 7 is the eighth").to_string();
        assert_eq!(error, "no key 7; keys are 0 to 6");
    }

    #[test]
    fn the_range_goes_from_the_most_frequent_to_a_typical_one() {
        let counts: Vec<u64> = (0..2_000).map(|at| 10_000 / (1 + (at + 5) % 2_000)).collect();
        let chosen = across_the_range(&counts);
        let frequencies: Vec<u64> = chosen.iter().map(|(at, _)| counts[*at]).collect();
        assert_eq!((chosen[0], frequencies[0]), ((1_995, "the most frequent"), 10_000));
        assert!(
            frequencies.len() == 5 && frequencies.is_sorted_by(|a, b| a > b),
            "{frequencies:?}"
        );
        assert_eq!(across_the_range(&[3]).len(), 1);
        assert!(across_the_range(&[]).is_empty());
    }
}
