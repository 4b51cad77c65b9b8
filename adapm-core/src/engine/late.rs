//! What is to be said to a peer that still owes an answer, or did not fit into the request to it: looked at again when the peer can
//! be asked, not in every round until then.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::mem;

use crate::id::Key;

/// Keys that wait for one peer, each once.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// Keys to ask it for.
    pub(crate) wanted: BTreeSet<Key>,
    /// Keys whose replica has changed, is set or is given up.
    pub(crate) changed: BTreeSet<Key>,
    /// Those of them that a mark waits for ([`crate::engine::state::SyncMark`]): they come before the others.
    pub(crate) sealed: BTreeSet<Key>,
}

impl Late {
    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.changed.is_empty() && self.sealed.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.wanted.len() + self.changed.len() + self.sealed.len()
    }

    /// From here on, what has changed so far comes first.
    pub(crate) fn seal(&mut self) {
        self.sealed.append(&mut self.changed);
    }

    /// Puts a change off, again if it was sealed.
    pub(crate) fn put_off(&mut self, key: Key, was_sealed: bool) {
        if was_sealed {
            self.sealed.insert(key)
        } else {
            self.changed.insert(key)
        };
    }

    /// The changes that come next.
    pub(crate) fn changes(&mut self) -> &mut BTreeSet<Key> {
        if self.sealed.is_empty() { &mut self.changed } else { &mut self.sealed }
    }
}

/// Takes at most `most` keys: those from `first` on, then those before it. `first` becomes the first that is left, if one is.
pub(crate) fn take(keys: &mut BTreeSet<Key>, first: &mut Key, most: usize) -> Vec<Key> {
    if keys.len() <= most {
        return mem::take(keys).into_iter().collect();
    }
    let mut in_turn = keys.range(*first..).chain(keys.range(..*first)).copied();
    let taken: Vec<Key> = in_turn.by_ref().take(most).collect();
    *first = in_turn.next().expect("there are more than are taken");
    taken.iter().for_each(|key| assert!(keys.remove(key), "it was just found"));
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also of keys that come back as soon as they were taken: none starves.
    #[test]
    fn all_have_their_turn() {
        let mut keys: BTreeSet<Key> = (0..10).map(Key).collect();
        let mut first = Key(4);
        let mut turns = Vec::new();
        for _ in 0..5 {
            let taken = take(&mut keys, &mut first, 4);
            keys.extend(taken.iter().copied());
            turns.extend(taken.iter().map(|key| key.0));
        }
        assert_eq!(turns, (4..24).map(|key| key % 10).collect::<Vec<u64>>());
        assert_eq!(take(&mut keys, &mut first, 10).len(), 10);
        assert!(keys.is_empty());
    }
}
