//! A store for one thread and huge sparse layouts: an entry per touched key, and a list of the
//! copies that need synchronization.
//!
//! The list serves local sampling (AdaPM App. C): of many keys drawn among the local ones, only
//! those that other nodes hold too matter to the protocol.

use core::cell::{Cell, RefCell};
use core::ops::Range;
use std::collections::HashMap;

use adapm_core::slot::{PackedState, Slot, State};
use adapm_core::store::Store;
use adapm_core::{Counter, Key, Layout, Version};
use foldhash::fast::FixedState;

/// The copies of one node.
#[derive(Debug)]
pub struct LightStore {
    layout: Layout,
    entries: RefCell<HashMap<Key, Entry, FixedState>>,
    shared: RefCell<Vec<Key>>,
    /// Main copies that arrived, minus those that left: untouched ones at their home have no entry.
    moved_here: Cell<i64>,
    replicas: Cell<u64>,
}

#[derive(Debug, Default)]
struct Entry {
    packed: PackedState,
    version: Version,
    value: Elements,
    delta: Elements,
    /// Position in the list of shared copies, plus one; 0 if absent.
    place: u32,
}

/// Elements of a value; a single one needs no memory of its own.
#[derive(Debug, Default)]
enum Elements {
    #[default]
    Absent,
    One([i64; 1]),
    Many(Box<[i64]>),
}

impl Elements {
    fn zeros(len: usize) -> Self {
        if len == 1 { Self::One([0]) } else { Self::Many(vec![0; len].into()) }
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    fn as_mut(&mut self) -> &mut [i64] {
        match self {
            Self::Absent => &mut [],
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

impl LightStore {
    /// Creates an empty store for the keys of `layout`.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            entries: RefCell::default(),
            shared: RefCell::default(),
            moved_here: Cell::new(0),
            replicas: Cell::new(0),
        }
    }

    /// Returns the number of copies that others hold too: replicas, and main copies with holders.
    #[must_use]
    pub fn shared_len(&self) -> usize {
        self.shared.borrow().len()
    }

    /// Returns the shared copy at `place` in an arbitrary but reproducible order.
    #[must_use]
    pub fn shared_at(&self, place: usize) -> Option<Key> {
        self.shared.borrow().get(place).copied()
    }

    /// Returns true if `key` is local and others hold it too.
    #[must_use]
    pub fn is_shared(&self, key: Key) -> bool {
        self.entries.borrow().get(&key).is_some_and(|entry| entry.place > 0)
    }

    /// Returns the number of local copies, if `homed` keys have their home here.
    #[must_use]
    pub fn local_len(&self, homed: u64) -> u64 {
        homed.saturating_add_signed(self.moved_here.get()) + self.replicas.get()
    }

    /// Returns the number of replicas held.
    #[must_use]
    pub fn replicas(&self) -> u64 {
        self.replicas.get()
    }

    fn account(&self, key: Key, before: PackedState, entry: &mut Entry) {
        let after = entry.packed;
        if before == after {
            return;
        }
        let replica = |packed: PackedState| u64::from(packed.state() == State::Replica);
        self.replicas.set(self.replicas.get() + replica(after) - replica(before));
        // A main copy that was never relocated has always been here.
        let main = |packed: PackedState| {
            i64::from(packed.state() == State::Main && packed.counter() > Counter(0))
        };
        let left = before.state() == State::Main
            && before.counter() == Counter(0)
            && after.state() != State::Main;
        self.moved_here.set(self.moved_here.get() + main(after) - main(before) - i64::from(left));
        match (entry.place, is_shared(after)) {
            (0, true) => {
                let mut shared = self.shared.borrow_mut();
                shared.push(key);
                entry.place =
                    u32::try_from(shared.len()).expect("fewer than 2^32 copies fit into memory");
            }
            (place, false) if place > 0 => entry.place = 0,
            _ => {}
        }
    }

    /// Takes the copy at `place` (plus one) off the list; the last one takes its place.
    fn unlist(&self, place: u32) {
        let mut shared = self.shared.borrow_mut();
        let at = place as usize - 1;
        shared.swap_remove(at);
        if let Some(moved) = shared.get(at) {
            let mut entries = self.entries.borrow_mut();
            entries.get_mut(moved).expect("a listed key has an entry").place = place;
        }
    }
}

impl Store for LightStore {
    type Value = i64;

    fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).unwrap_or(0)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, i64>) -> R) -> R {
        let (result, unlisted) = {
            let mut entries = self.entries.borrow_mut();
            let entry = entries.entry(key).or_default();
            let (before, place) = (entry.packed, entry.place);
            let Entry { packed, version, value, delta, .. } = entry;
            let mut ignored = Version(0);
            let version = if value.is_absent() { &mut ignored } else { version };
            let result = f(Slot { packed, version, value: value.as_mut(), delta: delta.as_mut() });
            self.account(key, before, entry);
            (result, (place > 0 && entry.place == 0).then_some(place))
        };
        if let Some(place) = unlisted {
            self.unlist(place);
        }
        result
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        let len = self.value_len(key);
        let mut entries = self.entries.borrow_mut();
        let entry = entries.entry(key).or_default();
        if entry.value.is_absent() {
            entry.value = Elements::zeros(len);
        }
        if !with_delta {
            entry.delta = Elements::Absent;
        } else if entry.delta.is_absent() {
            entry.delta = Elements::zeros(len);
        }
    }

    fn release(&self, key: Key) {
        if let Some(entry) = self.entries.borrow_mut().get_mut(&key) {
            (entry.value, entry.delta, entry.version) =
                (Elements::Absent, Elements::Absent, Version(0));
        }
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, i64>)) {
        let held = |(key, entry): (&Key, &Entry)| {
            (keys.contains(key) && !entry.value.is_absent()).then_some(*key)
        };
        let mut held: Vec<Key> = self.entries.borrow().iter().filter_map(held).collect();
        held.sort_unstable();
        for key in held {
            self.with_slot(key, |slot| f(key, slot));
        }
    }
}

fn is_shared(packed: PackedState) -> bool {
    packed.state() == State::Replica || packed.state() == State::Main && packed.is_watched()
}
