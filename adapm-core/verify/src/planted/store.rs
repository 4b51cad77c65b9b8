//! Mistakes of a store: under the latch, or in its answers.

use core::ops::Range;

use adapm_core::id::Key;
use adapm_core::layout::Layout;
use adapm_core::slot::{PackedState, Pushed, Slot, State};
use adapm_core::store::{Look, Store};

use super::Bug;
use crate::ReferenceStore;

/// A [`ReferenceStore`], with a mistake or without.
#[derive(Debug)]
pub struct PlantedStore {
    sound: ReferenceStore<i64>,
    bug: Option<Bug>,
}

/// The state of a slot before a step.
struct Before {
    packed: PackedState,
    value: Vec<i64>,
    delta: Vec<i64>,
}

impl PlantedStore {
    /// Creates an empty store for the keys of `layout`, with the mistake `bug` if it belongs to
    /// stores.
    #[must_use]
    pub fn new(layout: &Layout, bug: Option<Bug>) -> Self {
        let bug = bug.filter(|bug| bug.place() == super::Place::Store);
        Self { sound: ReferenceStore::new(layout), bug }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

impl Store for PlantedStore {
    type Value = i64;

    fn value_len(&self, key: Key) -> usize {
        self.sound.value_len(key)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, i64>) -> R) -> R {
        let Some(bug) = self.bug else { return self.sound.with_slot(key, f) };
        self.sound.with_slot(key, |slot| {
            let Slot { packed, version, value, delta } = slot;
            let before = Before { packed: *packed, value: value.to_vec(), delta: delta.to_vec() };
            let result = f(Slot {
                packed: &mut *packed,
                version: &mut *version,
                value: &mut *value,
                delta: &mut *delta,
            });
            spoil(bug, &before, Slot { packed, version, value, delta });
            result
        })
    }

    fn push(&self, key: Key, update: &[i64]) -> Pushed {
        let pushed = self.with_slot(key, |mut slot| {
            let before = *slot.packed;
            let pushed = slot.push(update);
            if self.has(Bug::LoseDirtyMark) {
                *slot.packed = before;
            }
            pushed
        });
        if pushed == Pushed::Dirtied && self.has(Bug::LoseDirtyEntry) {
            Pushed::Done
        } else {
            pushed
        }
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        self.sound.reserve(key, with_delta);
    }

    fn release(&self, key: Key) {
        let (state, has_delta) =
            self.sound.with_slot(key, |slot| (slot.packed.state(), !slot.delta.is_empty()));
        let stays = match self.bug {
            Some(Bug::KeepMainCopy) => state == State::Main,
            Some(Bug::KeepOrphan) => state == State::Replica,
            Some(Bug::LeakCopy) => !has_delta,
            _ => false,
        };
        if !stays {
            self.sound.release(key);
        }
    }

    fn visit(&self, keys: Range<Key>, f: impl FnMut(Key, Slot<'_, i64>)) {
        self.sound.visit(keys, f);
    }

    fn look(&self, key: Key) -> Look {
        match self.sound.look(key) {
            Look::Held { .. } if self.has(Bug::TakeForMain) => Look::Held { with_delta: false },
            look => look,
        }
    }
}

/// Undoes a part of a step's changes to a slot.
fn spoil(bug: Bug, before: &Before, mut slot: Slot<'_, i64>) {
    let was_dirty = before.packed.is_dirty();
    let (was, is) = (before.packed.state(), slot.packed.state());
    match (bug, was, is) {
        (Bug::KeepMainCopy, State::Main, State::None) => *slot.packed = before.packed,
        (Bug::KeepOrphan, State::Replica, State::None) => {
            *slot.packed = before.packed;
            slot.delta.copy_from_slice(&before.delta);
        }
        (Bug::ForgetWatch, State::Main, State::Main)
            if !before.packed.is_watched() && slot.packed.is_watched() =>
        {
            slot.watch(false);
        }
        (Bug::SendDeltaTwice, State::Replica, State::Replica)
            if was_dirty && !slot.packed.is_dirty() =>
        {
            slot.delta.copy_from_slice(&before.delta);
        }
        (Bug::RefreshOverPending, State::Replica, State::Replica)
            if was_dirty && slot.packed.is_dirty() =>
        {
            let is_refresh = *slot.delta == before.delta && *slot.value != before.value;
            if is_refresh {
                slot.value.iter_mut().zip(&*slot.delta).for_each(|(value, delta)| *value -= delta);
            }
        }
        _ => {}
    }
}
