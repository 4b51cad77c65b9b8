//! An engine's record of its node's intent for a key: 8 bytes, since windows may be long and keys
//! many; and localizes of this node that have not brought ownership yet (Lapse §3.2).

use alloc::collections::BTreeSet;
use core::mem;

use smallvec::SmallVec;

use crate::engine::ctx::KeyMap;
use crate::engine::entry::Request;
use crate::engine::input::OpId;
use crate::id::Key;

/// Acted-on intent of this node, and the unanswered entry, if any: intent may end before the answer
/// is here.
#[derive(Debug, Default)]
pub(crate) struct IntentState {
    /// Signals acted on and not expired that name the key, each as often as it does.
    pub(crate) signals: u32,
    /// The low bits of the number of the round that asked, if [`IntentFlag::Asked`].
    round: [u8; 3],
    flags: u8,
}

/// A flag of an intent state.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum IntentFlag {
    /// A localize is pending ([`Localizes`]); counts as intent.
    Localize = 1,
    /// The owner has not been notified of it yet.
    Unsent = 2,
    /// Answered by `Remote` since the count was last zero: not asked for again until then.
    Refused = 4,
    /// Relocated away under this intent, without replication: a signal has one turn, so that a key
    /// moves at most as often as it is signaled, and entries on their way to its owner arrive. Not
    /// asked for again before the next signal.
    HadTurn = 8,
    /// In [`super::Intents::listed`], or deferred for a peer.
    Listed = 16,
    /// The intent or localize entry of an absent key is unanswered.
    Asked = 32,
    /// It is a localize.
    AskedToLocalize = 64,
    /// The entry was turned away, and only the home can have it passed on: ask the home.
    AskHome = 128,
}

impl IntentState {
    pub(crate) fn is(&self, flag: IntentFlag) -> bool {
        self.flags & flag as u8 != 0
    }

    /// Sets `flag`. Returns true if it was set before.
    pub(crate) fn put(&mut self, flag: IntentFlag) -> bool {
        let was = self.is(flag);
        self.flags |= flag as u8;
        was
    }

    /// Clears `flag`. Returns true if it was set.
    pub(crate) fn take(&mut self, flag: IntentFlag) -> bool {
        let was = self.is(flag);
        self.flags &= !(flag as u8);
        was
    }

    /// Returns the reference count: active signals, and the localize.
    pub(crate) fn count(&self) -> usize {
        self.signals as usize + usize::from(self.is(IntentFlag::Localize))
    }

    /// Returns true if the owner has to be asked while the key is not local.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is(IntentFlag::Localize)
            || (self.signals > 0 && !self.is(IntentFlag::Refused) && !self.is(IntentFlag::HadTurn))
    }

    /// Records the unanswered entry of an absent key. Localizes of replicas are recorded with the
    /// request to the owner instead.
    pub(crate) fn ask(&mut self, request: Request) {
        let [round @ .., _] = request.round.to_le_bytes();
        self.round = round;
        self.put(IntentFlag::Asked);
        if request.localize {
            self.put(IntentFlag::AskedToLocalize);
        }
    }

    /// Returns the low bits of the number of the round that asked, if an entry is unanswered.
    pub(crate) fn asked_in(&self) -> Option<u32> {
        let [low, middle, high] = self.round;
        self.is(IntentFlag::Asked).then_some(u32::from_le_bytes([low, middle, high, 0]))
    }

    /// Takes the unanswered entry, if there is one.
    pub(crate) fn take_request(&mut self) -> Option<Request> {
        let [low, middle, high] = self.round;
        let round = u32::from_le_bytes([low, middle, high, 0]);
        let localize = self.is(IntentFlag::AskedToLocalize);
        self.take(IntentFlag::AskHome);
        self.unask().then_some(Request { round, localize, at_once: false })
    }

    /// Cancels an entry that could not be sent, without a change of whom to ask. Returns true if
    /// there was one.
    pub(super) fn unask(&mut self) -> bool {
        self.take(IntentFlag::AskedToLocalize);
        self.take(IntentFlag::Asked)
    }

    /// Clears per-intent state. Returns true if the entry can be removed.
    pub(crate) fn end(&mut self) -> bool {
        self.signals = 0;
        for flag in
            [IntentFlag::Localize, IntentFlag::Unsent, IntentFlag::Refused, IntentFlag::HadTurn]
        {
            self.take(flag);
        }
        !self.is(IntentFlag::Asked)
    }
}

const _: () = assert!(size_of::<(crate::id::Key, IntentState)>() == 16, "a key each, of millions");

/// Operations that wait for a key.
pub(super) type Waiters = SmallVec<[OpId; 1]>;

/// Pending localizes by key.
#[derive(Debug, Default)]
pub(super) struct Localizes {
    pending: KeyMap<PendingLocalize>,
    /// Localizes without ownership, other intent and waiters, by the round in which they may end; a
    /// key at most once.
    due: BTreeSet<(u64, Key)>,
}

#[derive(Debug, Default)]
struct PendingLocalize {
    /// Operations that wait for the key to be local.
    waiters: Waiters,
    /// The round in which it may end, its place in [`Localizes::due`]; `None` while other intent
    /// lasts or an operation waits.
    due: Option<u64>,
}

impl Localizes {
    /// Returns the number of entries in the map and the list.
    pub(super) fn len(&self) -> usize {
        self.pending.len() + self.due.len()
    }

    /// Makes `waiter` wait for `key` to be local; meanwhile the localize never falls due.
    pub(super) fn add(&mut self, key: Key, waiter: OpId) {
        let localize = self.pending.entry(key).or_default();
        localize.waiters.push(waiter);
        if localize.due.is_some() {
            self.schedule(key, None);
        }
    }

    /// Sets the round in which the localize of `key` may end, if there is one.
    pub(super) fn schedule(&mut self, key: Key, due: Option<u64>) {
        let Some(localize) = self.pending.get_mut(&key) else { return };
        if let Some(due) = mem::replace(&mut localize.due, due) {
            self.due.remove(&(due, key));
        }
        self.due.extend(due.map(|due| (due, key)));
    }

    /// Returns true if a localize of `key` is pending for which no operation waits.
    pub(super) fn is_unawaited(&self, key: Key) -> bool {
        self.pending.get(&key).is_some_and(|localize| localize.waiters.is_empty())
    }

    /// Takes the operations that wait for `key`; `None` if no localize of it is pending.
    pub(super) fn take_waiters(&mut self, key: Key) -> Option<Waiters> {
        self.pending.get_mut(&key).map(|localize| mem::take(&mut localize.waiters))
    }

    /// Removes the localize of `key`, if there is one. Returns the operations that wait for it.
    pub(super) fn remove(&mut self, key: Key) -> Waiters {
        let Some(localize) = self.pending.remove(&key) else { return Waiters::new() };
        if let Some(due) = localize.due {
            self.due.remove(&(due, key));
        }
        localize.waiters
    }

    /// Returns a key whose localize may end in `round`, if there is one.
    pub(super) fn due_in(&self, round: u64) -> Option<Key> {
        self.due.first().filter(|(due, _)| *due <= round).map(|(_, key)| *key)
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.due.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_taken_once_and_changes_nothing_else() {
        for localize in [false, true] {
            let mut state = IntentState { signals: u32::MAX, ..IntentState::default() };
            state.put(IntentFlag::HadTurn);
            state.ask(Request { round: 0xab_fe_dc_ba, localize, at_once: false });
            assert!(!state.end(), "the answer is awaited");
            let taken = Request { round: 0xfe_dc_ba, localize, at_once: false };
            assert_eq!(state.take_request(), Some(taken));
            assert_eq!(state.take_request(), None);
            assert!(state.end());
        }
    }

    #[test]
    fn what_does_not_leave_after_all_leaves_it_at_whom_to_ask() {
        let mut state = IntentState::default();
        state.put(IntentFlag::AskHome);
        state.ask(Request { round: 7, localize: true, at_once: false });
        assert!(state.unask() && !state.unask());
        assert!(state.is(IntentFlag::AskHome) && state.asked_in().is_none());
        let request = Request { round: 8, localize: false, at_once: false };
        state.ask(request);
        assert_eq!(state.take_request(), Some(request));
        assert!(!state.is(IntentFlag::AskHome), "it is answered");
    }

    #[test]
    fn marks_do_not_touch_each_other() {
        let flags = [
            IntentFlag::Localize,
            IntentFlag::Unsent,
            IntentFlag::Refused,
            IntentFlag::HadTurn,
            IntentFlag::Listed,
            IntentFlag::Asked,
            IntentFlag::AskedToLocalize,
            IntentFlag::AskHome,
        ];
        for flag in flags {
            let mut state = IntentState::default();
            assert!(!state.put(flag) && state.put(flag));
            assert_eq!(flags.iter().filter(|other| state.is(**other)).count(), 1);
            assert!(state.take(flag) && !state.take(flag));
        }
    }
}
