//! Names of entities, relations, words: many of them, in one buffer.

use std::borrow::Cow;
use std::fmt;

/// Names in one buffer, by index. A name is any bytes without tab and line end.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    /// Adds a name as the next index.
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of a name, or `None` beyond the last.
    #[must_use]
    pub fn bytes(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[start..end])
    }

    /// Returns the index of a name, the first one of several that are equal. Looks at all names:
    /// for many of them, make an index.
    #[must_use]
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        (0..self.len()).find(|index| self.bytes(*index) == Some(name))
    }

    /// Returns a name for people; what is no UTF-8 is replaced. `None` beyond the last.
    #[must_use]
    pub fn text(&self, index: usize) -> Option<Cow<'_, str>> {
        self.bytes(index).map(String::from_utf8_lossy)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names", self.len())
    }
}
