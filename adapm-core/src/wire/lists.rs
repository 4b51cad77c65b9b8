//! Lists on the wire. Sorted keys: the first key, then the gaps minus one, each a varint; others:
//! element by element.
//!
//! Lists of keys that are not strictly ascending cannot be expressed, so a decoded list always
//! ascends. Encoding one yields other keys: composers append with [`Keys::push`], which checks the
//! order in debug builds.
//!
//! A list is allocated once at its exact size, and not at all if it claims more elements than there
//! are bytes left. The total for all lists of a frame is checked before ([`crate::wire::decode`]).

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::Key;

/// Strictly ascending keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(pub Vec<Key>);

impl core::ops::Deref for Keys {
    type Target = [Key];

    fn deref(&self) -> &[Key] {
        &self.0
    }
}

impl Keys {
    /// Appends a key, larger than the last.
    pub fn push(&mut self, key: Key) {
        debug_assert!(self.0.last().is_none_or(|last| *last < key), "keys of a message ascend");
        self.0.push(key);
    }
}

impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        let mut next = 0_u64;
        for key in self.iter() {
            list.serialize_element(&key.0.wrapping_sub(next))?;
            next = key.0.wrapping_add(1);
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Ascending)
    }
}

struct Ascending;

impl<'de> Visitor<'de> for Ascending {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("strictly ascending keys")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keys, A::Error> {
        let mut keys: Vec<Key> = room(&list)?;
        while let Some(gap) = list.next_element::<u64>()? {
            let key = match keys.last() {
                None => Some(gap),
                Some(last) => last.0.checked_add(1).and_then(|next| next.checked_add(gap)),
            };
            keys.push(Key(key.ok_or_else(|| A::Error::custom("a key above u64"))?));
        }
        Ok(Keys(keys))
    }
}

/// Reads a list of elements of at least one byte each into one exact allocation: for
/// `#[serde(deserialize_with)]`. Serde's own lists grow, and end up to twice as large.
///
/// # Errors
/// If it claims more elements than there are bytes left, or an element is invalid.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Elements(PhantomData))
}

struct Elements<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut elements = room(&list)?;
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(elements)
    }
}

/// Allocates a vector for all of `list`. Postcard gives no length for a list longer than the bytes
/// left.
fn room<'de, A: SeqAccess<'de>, T>(list: &A) -> Result<Vec<T>, A::Error> {
    let len = list.size_hint().ok_or_else(|| A::Error::custom("a list longer than its frame"))?;
    Ok(Vec::with_capacity(len))
}
