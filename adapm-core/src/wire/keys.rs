//! Sorted key lists on the wire: the first key, then the gaps minus one, each a varint.
//!
//! Lists that are not strictly ascending cannot be written down, so a decoded list always ascends. Encoding one gives
//! bytes of other keys: composers append with [`Keys::push`], which checks the order in debug builds.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::Key;
use crate::wire::message::Keys;

/// Entries for which room is made before any of them has been read, whatever length a peer claims.
const ROOM_MAX: usize = 1 << 17;

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
        let mut keys: Vec<Key> = Vec::with_capacity(list.size_hint().unwrap_or(0).min(ROOM_MAX));
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
