//! Transitions of the local copy of one key: pure functions, called under the key's latch by both
//! the workers' fast path and [`crate::engine::Engine`] (AdaPM §4.1, AdaPM §B.1.2; Lapse §3.2).
//!
//! | state | holds | pull, push | left by |
//! | --- | --- | --- | --- |
//! | `None` | perhaps a location | refused | `request` to `Requested`, `found` to `Main` |
//! | `Requested` | nothing; intent or localize sent | refused (parked) | `install` to `Replica`, `arrive` to `Main`, `refuse` to `None` |
//! | `Replica` | value, delta, version, owner's location | served | `arrive` to `Main`, `release` to `Releasing` |
//! | `Main` | value, version, relocation counter | served | `hand_over` to `None` |
//! | `Releasing` | nothing; last delta not acknowledged | refused (parked) | `released` to `None` |
//!
//! Only `Engine` changes what a local copy is; workers call [`Slot::pull`], [`Slot::push`] and
//! [`Slot::step`] only.

use core::fmt;

use crate::id::{Counter, NodeId, Version};
use crate::update::UpdateRule;
use crate::value::{Value, accumulate};

/// The state of a node's copy of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// No value.
    None = 0,
    /// Intent or localize sent, the grant is not here yet.
    Requested = 1,
    /// A second copy: value, delta not yet sent, version.
    Replica = 2,
    /// The main copy: this node is the owner.
    Main = 3,
    /// The replica was given up, its last delta is not acknowledged yet.
    Releasing = 4,
}

/// The believed location of a key: (owner, relocation counter). The higher counter always wins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The owner.
    pub node: NodeId,
    /// The key's number of relocations when that node became owner.
    pub counter: Counter,
}

const STATE_BITS: u32 = 3;
const DIRTY: u64 = 1 << 3;
const WATCHED: u64 = 1 << 4;
const NODE_SHIFT: u32 = 5;
const COUNTER_SHIFT: u32 = 21;

/// State, flags and location of one key in 61 bits; the store may use the top bit for itself.
///
/// Zero for a key without any record: it is at its home, never relocated.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct PackedState(u64);

impl PackedState {
    /// Nothing held, nothing known.
    pub const EMPTY: Self = Self(0);

    /// A main copy at its home, never relocated.
    pub const MAIN_AT_HOME: Self = Self(State::Main as u64);

    /// Creates the packed state from stored bits. Drops unused bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & (u64::MAX >> 3))
    }

    /// Returns the bits, the upper three of them zero.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the state of the local copy.
    #[must_use]
    pub fn state(self) -> State {
        match self.0 & ((1 << STATE_BITS) - 1) {
            1 => State::Requested,
            2 => State::Replica,
            3 => State::Main,
            4 => State::Releasing,
            _ => State::None,
        }
    }

    /// Returns true if a replica has a delta, or a main copy has changed since its holders were
    /// marked stale.
    #[must_use]
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// Returns true for a main copy with holders.
    #[must_use]
    pub fn is_watched(self) -> bool {
        self.0 & WATCHED != 0
    }

    /// Returns true if workers are served from the local copy.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self.state(), State::Replica | State::Main)
    }

    /// Returns the relocation counter of the location or main copy.
    #[must_use]
    pub fn counter(self) -> Counter {
        Counter((self.0 >> COUNTER_SHIFT) & Counter::MAX.0)
    }

    /// Returns the believed location, `None` while only the home is known. For a main copy: its
    /// former owner.
    #[must_use]
    pub fn location(self) -> Option<Location> {
        let counter = self.counter();
        (counter > Counter(0))
            .then_some(Location { node: NodeId((self.0 >> NODE_SHIFT) as u16), counter })
    }

    fn set_state(&mut self, state: State) {
        self.0 = (self.0 & !((1 << STATE_BITS) - 1)) | state as u64;
    }

    fn set_flag(&mut self, flag: u64, on: bool) {
        if on {
            self.0 |= flag;
        } else {
            self.0 &= !flag;
        }
    }

    fn set_location(&mut self, location: Location) {
        debug_assert!(location.counter <= Counter::MAX, "a relocation counter fits its 40 bits");
        let kept = self.0 & ((1 << NODE_SHIFT) - 1);
        self.0 = kept
            | (u64::from(location.node.0) << NODE_SHIFT)
            | (location.counter.0 << COUNTER_SHIFT);
    }
}

impl fmt::Debug for PackedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.state())?;
        if self.is_dirty() {
            f.write_str("+dirty")?;
        }
        if self.is_watched() {
            f.write_str("+watched")?;
        }
        match self.location() {
            Some(location) => write!(f, "({}, {})", location.node, location.counter),
            None => Ok(()),
        }
    }
}

/// The local copy of one key, borrowed from a store under the key's latch.
pub struct Slot<'a, V> {
    /// State, bits and location.
    pub packed: &'a mut PackedState,
    /// Main: number of changes. Replica: the version last received, and the pushes not sent since.
    pub version: &'a mut Version,
    /// `[value_len]`, empty if nothing is held.
    pub value: &'a mut [V],
    /// `[value_len]` updates not yet sent, empty unless reserved with a delta.
    pub delta: &'a mut [V],
}

/// The outcome of a push under the latch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Pushed {
    /// No local copy: use the slow path.
    Refused,
    /// Added; no report needed.
    Done,
    /// Added, and the copy has become dirty: append the key to the dirty queue.
    Dirtied,
}

impl<V: Value> Slot<'_, V> {
    /// Copies the local value into `out` `[value_len]`. Returns false if there is no local copy.
    #[must_use]
    pub fn pull(&self, out: &mut [V]) -> bool {
        let local = self.packed.is_local();
        if local {
            out.copy_from_slice(self.value);
        }
        local
    }

    /// Adds `update` `[value_len]` to the local value, and in a replica also to its delta
    /// (AdaPM §B.1.2).
    ///
    /// The delta is kept separately: the difference of two values would drift.
    pub fn push(&mut self, update: &[V]) -> Pushed {
        match self.packed.state() {
            State::Replica => {
                accumulate(self.value, update);
                accumulate(self.delta, update);
                self.version.push();
                self.dirty_once()
            }
            State::Main => {
                accumulate(self.value, update);
                *self.version = self.version.next();
                if self.packed.is_watched() { self.dirty_once() } else { Pushed::Done }
            }
            State::None | State::Requested | State::Releasing => Pushed::Refused,
        }
    }

    /// Pushes the update that `rule` computes from the local value for `gradient` `[dim]`; `update`
    /// `[value_len]` is written. Returns `None` if it is not finite: nothing is added then.
    ///
    /// Steps on a copy are taken one after the other: each sees the updates of those before.
    pub fn step(
        &mut self,
        rule: &dyn UpdateRule<V>,
        gradient: &[V],
        update: &mut [V],
    ) -> Option<Pushed> {
        if !self.packed.is_local() {
            return Some(Pushed::Refused);
        }
        rule.step(self.value, gradient, update).then(|| self.push(update))
    }

    /// Overwrites the value of a main copy with `value` `[value_len]`.
    pub fn set(&mut self, value: &[V]) {
        self.expect(State::Main, "only an owner sets");
        self.value.copy_from_slice(value);
        *self.version = self.version.next();
    }

    /// Moves from `None` to `Requested`: an intent or localize entry is sent to the owner.
    pub fn request(&mut self) {
        self.expect(State::None, "only an absent key is requested");
        self.packed.set_state(State::Requested);
    }

    /// Moves from `Requested` to `None`: the owner keeps the key, or asks for another try.
    pub fn refuse(&mut self) {
        self.expect(State::Requested, "only a request is refused");
        self.packed.set_state(State::None);
    }

    /// Moves from `None` to `Main`, value zero: this node is the key's home, and no node has ever
    /// owned the key.
    pub fn create_main_copy(&mut self) {
        self.expect(State::None, "a main copy is founded once");
        debug_assert_eq!(self.packed.counter(), Counter(0), "a relocated key is not founded again");
        *self.packed = PackedState::MAIN_AT_HOME;
        *self.version = Version(0);
    }

    /// Moves from `Requested` to `Replica`: `value` `[value_len]` of `version` came from the owner
    /// at `owner`.
    pub fn install(&mut self, version: Version, value: &[V], owner: Location) {
        self.expect(State::Requested, "a replica is installed where it was asked for");
        self.value.copy_from_slice(value);
        self.delta.fill(V::default());
        *self.version = version.of_main();
        self.packed.set_state(State::Replica);
        self.packed.set_location(owner);
    }

    /// Moves from `Requested` or `Replica` to `Main`: ownership arrives, with `value` unless the
    /// replica is current.
    ///
    /// The replica's unsent changes stay in the value as part of the main copy. `former` is the
    /// former owner, with the counter under which the key is here.
    pub fn arrive(&mut self, version: Version, value: Option<&[V]>, former: Location) {
        debug_assert!(
            matches!(self.packed.state(), State::Requested | State::Replica),
            "ownership arrives where asked for"
        );
        let pending = self.packed.state() == State::Replica && self.packed.is_dirty();
        if let Some(value) = value {
            self.value.copy_from_slice(value);
            if pending {
                accumulate(self.value, self.delta);
            }
        }
        *self.version = if pending { version.next() } else { version.of_main() };
        self.delta.fill(V::default());
        self.packed.set_flag(DIRTY, false);
        self.packed.set_flag(WATCHED, false);
        self.packed.set_state(State::Main);
        self.packed.set_location(former);
    }

    /// Sets a replica's value to `value` `[value_len]` plus its unsent delta (AdaPM §B.1.2).
    pub fn refresh(&mut self, version: Version, value: &[V]) {
        self.expect(State::Replica, "only a replica is refreshed");
        self.value.copy_from_slice(value);
        if self.packed.is_dirty() {
            accumulate(self.value, self.delta);
        }
        self.version.see(version);
    }

    /// Moves a replica's delta into `out` `[value_len]`, zeros before, and leaves the copy clean.
    pub fn take_delta(&mut self, out: &mut [V]) {
        self.take_delta_with(|delta| out.copy_from_slice(delta));
    }

    /// Passes a replica's delta to `take` and clears it, like [`Slot::take_delta`].
    pub fn take_delta_with(&mut self, take: impl FnOnce(&[V])) {
        self.expect(State::Replica, "only a replica has a delta");
        take(self.delta);
        self.delta.fill(V::default());
        self.version.send();
        self.packed.set_flag(DIRTY, false);
    }

    /// Moves from `Replica` to `Releasing`. The delta must have been taken in the same latched
    /// step.
    pub fn release(&mut self) {
        self.expect(State::Replica, "only a replica is released");
        debug_assert!(!self.packed.is_dirty(), "the last delta leaves with the release");
        self.packed.set_state(State::Releasing);
    }

    /// Moves from `Releasing` to `None`: the owner has acknowledged the release.
    pub fn released(&mut self) {
        self.expect(State::Releasing, "only a release is acknowledged");
        self.packed.set_state(State::None);
    }

    /// Moves from `Replica` to `None`: the owner is lost, and the unsent delta with it.
    pub fn abandon(&mut self) {
        self.expect(State::Replica, "only a replica is abandoned");
        self.delta.fill(V::default());
        self.packed.set_flag(DIRTY, false);
        self.packed.set_state(State::None);
    }

    /// Adds a holder's `delta` `[value_len]` to a main copy.
    pub fn apply(&mut self, delta: &[V]) {
        self.expect(State::Main, "a delta meets its owner");
        accumulate(self.value, delta);
        *self.version = self.version.next();
    }

    /// Clears a main copy's dirty flag. Returns true if it was set, so that all holders are stale.
    #[must_use]
    pub fn take_dirty(&mut self) -> bool {
        self.expect(State::Main, "only a main copy tells holders");
        let dirty = self.packed.is_dirty();
        self.packed.set_flag(DIRTY, false);
        dirty
    }

    /// Sets if a main copy has holders, which must be notified of local pushes.
    pub fn watch(&mut self, watched: bool) {
        self.expect(State::Main, "only a main copy is watched");
        self.packed.set_flag(WATCHED, watched);
        if !watched {
            self.packed.set_flag(DIRTY, false);
        }
    }

    /// Moves from `Main` to `None`: the main copy goes to `to`. Its value must have been read in
    /// the same latched step.
    pub fn hand_over(&mut self, to: Location) {
        self.expect(State::Main, "only an owner hands over");
        *self.packed = PackedState::EMPTY;
        self.packed.set_location(to);
    }

    /// Records the location of a copy that is not `Main`; the higher counter wins.
    pub fn learn(&mut self, location: Location) {
        if self.packed.state() != State::Main && location.counter > self.packed.counter() {
            self.packed.set_location(location);
        }
    }

    fn dirty_once(&mut self) -> Pushed {
        if self.packed.is_dirty() {
            return Pushed::Done;
        }
        self.packed.set_flag(DIRTY, true);
        Pushed::Dirtied
    }

    fn expect(&self, state: State, rule: &str) {
        debug_assert_eq!(self.packed.state(), state, "{rule}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves the parameter against the gradient and counts steps; a gradient of 0 is not finite.
    struct Counting;

    impl UpdateRule<i64> for Counting {
        fn state_len(&self, _dim: usize) -> usize {
            1
        }

        fn step(&self, value: &[i64], gradient: &[i64], update: &mut [i64]) -> bool {
            update.copy_from_slice(&[-gradient[0] * (1 + value[1]), 1]);
            gradient != [0]
        }
    }

    fn step(
        packed: &mut PackedState,
        value: &mut [i64],
        delta: &mut [i64],
        g: i64,
    ) -> Option<Pushed> {
        let (mut version, mut update) = (Version(0), [0; 2]);
        Slot { packed, version: &mut version, value, delta }.step(&Counting, &[g], &mut update)
    }

    #[test]
    fn each_step_on_a_copy_sees_those_before() {
        let (mut packed, mut value) = (PackedState::MAIN_AT_HOME, [0; 2]);
        for _ in 0..3 {
            assert_eq!(step(&mut packed, &mut value, &mut [], 10), Some(Pushed::Done));
        }
        assert_eq!(value, [-10 - 20 - 30, 3]);
    }

    #[test]
    fn a_step_on_a_replica_goes_to_its_delta() {
        let (mut packed, mut value, mut delta) = (PackedState::EMPTY, [5, 2], [0; 2]);
        packed.set_state(State::Replica);
        assert_eq!(step(&mut packed, &mut value, &mut delta, 10), Some(Pushed::Dirtied));
        assert_eq!(step(&mut packed, &mut value, &mut delta, 10), Some(Pushed::Done));
        assert_eq!((value, delta), ([5 - 30 - 40, 4], [-30 - 40, 2]));
    }

    #[test]
    fn a_step_that_is_not_finite_adds_nothing_and_one_without_a_copy_is_refused() {
        let (mut packed, mut value) = (PackedState::MAIN_AT_HOME, [5, 2]);
        assert_eq!(step(&mut packed, &mut value, &mut [], 0), None);
        assert_eq!(value, [5, 2]);
        assert_eq!(step(&mut { PackedState::EMPTY }, &mut [], &mut [], 10), Some(Pushed::Refused));
    }
}
