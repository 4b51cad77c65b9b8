//! The order rule: a worker with an operation in flight on a key does not use the fast path for
//! that key (protocol, "Operations").
//!
//! Otherwise a later access could overtake the operation: a pull would miss the worker's own push
//! once a copy has arrived.

use core::hash::Hash;

use alloc::vec::Vec;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::id::Key;

/// The operations of one worker that are in flight, by key and by call; `C` identifies calls.
///
/// Nearly free while there are none: [`InFlight::blocks`] is one comparison then.
#[derive(Clone, Debug)]
pub struct InFlight<C> {
    keys: HashMap<Key, u32, foldhash::fast::FixedState>,
    calls: HashMap<C, Vec<Key>, foldhash::fast::FixedState>,
}

impl<C> Default for InFlight<C> {
    fn default() -> Self {
        Self { keys: HashMap::default(), calls: HashMap::default() }
    }
}

impl<C: Eq + Hash> InFlight<C> {
    /// Returns true if the fast path is closed for `key`.
    #[inline]
    #[must_use]
    pub fn blocks(&self, key: Key) -> bool {
        !self.keys.is_empty() && self.keys.contains_key(&key)
    }

    /// Returns true if the fast path is open for all keys.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the number of calls in flight.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Closes the fast path for `key` on behalf of the call that [`InFlight::track`] registers
    /// next. Mark from the first refusal on, so that a duplicate of the key in the same call cannot
    /// overtake it either.
    pub fn mark(&mut self, key: Key) {
        *self.keys.entry(key).or_default() += 1;
    }

    /// Registers `call` as in flight with `keys`, each marked as often as it is listed.
    pub fn track(&mut self, call: C, keys: Vec<Key>) {
        self.calls.insert(call, keys);
    }

    /// Ends `call`. Returns false if it was not in flight.
    pub fn finish(&mut self, call: &C) -> bool {
        let Some(keys) = self.calls.remove(call) else { return false };
        for key in keys {
            let Entry::Occupied(mut count) = self.keys.entry(key) else {
                unreachable!("a tracked key is marked")
            };
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_opens_when_the_last_operation_on_the_key_is_done() {
        let mut order = InFlight::default();
        for (call, keys) in [("a", [Key(1), Key(2), Key(1)].as_slice()), ("b", &[Key(1)])] {
            keys.iter().for_each(|key| order.mark(*key));
            order.track(call, keys.to_vec());
        }
        assert!(order.finish(&"a") && !order.finish(&"a"));
        assert!(order.blocks(Key(1)) && !order.blocks(Key(2)) && !order.blocks(Key(3)));
        assert!(order.finish(&"b") && !order.blocks(Key(1)) && order.is_open());
    }
}
