//! What one worker has copied: which keys, and their values.

use std::ops::Range;

use adapm_core::Key;

/// Keys of one worker with their values, one behind the other. Takes 12 bytes for each 64 keys
/// between the first and the last beside the values.
#[derive(Debug, Default)]
pub struct Part {
    /// The first key of the first word; a multiple of its bits.
    start: u64,
    /// A bit for each key from there on.
    words: Vec<u64>,
    /// For each word the number of keys before it.
    ranks: Vec<u32>,
    values: Vec<f32>,
}

impl Part {
    /// Returns the part of these keys, ascending, and their values, each as long as the tables say.
    ///
    /// # Panics
    /// If the keys do not ascend, or are 2^32 or more.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = Key>, values: Vec<f32>) -> Self {
        let mut part = Self { values, ..Self::default() };
        let mut last = None;
        for key in keys {
            assert!(last < Some(key), "the keys of a part ascend");
            last = Some(key);
            if part.words.is_empty() {
                part.start = key.0 / WORD * WORD;
            }
            let at = key.0 - part.start;
            part.words.resize((at / WORD) as usize + 1, 0);
            part.words[(at / WORD) as usize] |= 1 << (at % WORD);
        }
        let mut rank = 0;
        let mut ranks = part.words.iter().map(|word| {
            let before = u32::try_from(rank).expect("fewer than 2^32 keys of a part");
            rank += u64::from(word.count_ones());
            before
        });
        part.ranks = ranks.by_ref().collect();
        part
    }

    /// Returns the same keys with these values.
    pub(crate) fn with_values(self, values: Vec<f32>) -> Self {
        Self { values, ..self }
    }

    /// Returns the keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.keys_in(0..u64::MAX)
    }

    /// Returns the keys in a range, ascending.
    pub(super) fn keys_in(&self, range: Range<u64>) -> impl Iterator<Item = Key> + '_ {
        let first = range.start.saturating_sub(self.start) / WORD;
        let words = (first..).map(|word| self.start + word * WORD);
        let words = words.zip(self.words.iter().skip(first as usize));
        let keys = words.flat_map(|(start, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = u64::from(rest.trailing_zeros());
                rest &= rest.checked_sub(1)?;
                Some(Key(start + bit))
            })
        });
        keys.skip_while(move |key| key.0 < range.start).take_while(move |key| key.0 < range.end)
    }

    /// Returns the values, one behind the other.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn count(&self) -> usize {
        match (self.ranks.last(), self.words.last()) {
            (Some(rank), Some(word)) => *rank as usize + word.count_ones() as usize,
            _ => 0,
        }
    }

    /// Gives the memory of the values back.
    pub(super) fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Returns the number of keys below this one.
    pub(super) fn rank(&self, key: Key) -> usize {
        let Some(at) = key.0.checked_sub(self.start) else { return 0 };
        match self.words.get((at / WORD) as usize) {
            Some(word) => {
                let below = word & !(u64::MAX << (at % WORD));
                self.ranks[(at / WORD) as usize] as usize + below.count_ones() as usize
            }
            None => self.count(),
        }
    }

    /// Returns true if the key is one of these.
    pub(super) fn has(&self, key: Key) -> bool {
        let Some(at) = key.0.checked_sub(self.start) else { return false };
        let word = self.words.get((at / WORD) as usize);
        word.is_some_and(|word| word >> (at % WORD) & 1 == 1)
    }
}

/// Keys of a word.
const WORD: u64 = u64::BITS as u64;

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_counted() {
        let keys = [70, 71, 127, 128, 300].map(Key);
        let part = Part::new(keys, vec![0.0; 5]);
        assert!(part.keys().eq(keys));
        for key in (0..400).map(Key) {
            assert_eq!(part.has(key), keys.contains(&key), "{key:?}");
            assert_eq!(
                part.rank(key),
                keys.iter().filter(|other| **other < key).count(),
                "{key:?}"
            );
        }
        for (start, end) in [(0, 71), (71, 128), (128, 300), (300, 301), (129, 299), (400, 500)] {
            let within = keys.into_iter().filter(|key| (start..end).contains(&key.0));
            assert!(part.keys_in(start..end).eq(within), "{start} to {end}");
        }
        let none = Part::new([], Vec::new());
        assert_eq!((none.keys().count(), none.has(Key(0)), none.rank(Key(9))), (0, false, 0));
    }

    #[test]
    #[should_panic(expected = "ascend")]
    fn keys_that_do_not_ascend_are_refused() {
        let _ = Part::new([Key(3), Key(3)], Vec::new());
    }
}
