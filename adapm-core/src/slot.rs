//! What happens to the local copy of one key: pure transitions, called under the key's latch by the
//! worker's fast path and by [`crate::engine::Engine`] alike (AdaPM §4.1, AdaPM §B.1.2; Lapse
//! §3.2).
//!
//! | state | holds | pull, push | left by |
//! | --- | --- | --- | --- |
//! | `None` | perhaps a location | refused | `request` to `Requested`, `found` to `Main` |
//! | `Requested` | nothing; intent or localize sent | refused (parked) | `install` to `Replica`, `arrive` to `Main`, `refuse` to `None` |
//! | `Replica` | value, delta, version, owner's location | served | `arrive` to `Main`, `release` to `Releasing` |
//! | `Main` | value, version, relocation counter | served | `hand_over` to `None` |
//! | `Releasing` | nothing; last delta not acknowledged | refused (parked) | `released` to `None` |
//!
//! Only `Engine` changes what a local copy is; workers call [`Slot::pull`] and [`Slot::push`] only.

use core::fmt;

use crate::id::{Counter, NodeId, Version};
use crate::value::{Value, accumulate};

/// What a node has of a key.
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

/// Where a key is believed to be: (owner, relocation counter). The higher counter wins, always.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The owner.
    pub node: NodeId,
    /// How often the key had been relocated when that node became owner.
    pub counter: Counter,
}

const STATE_BITS: u32 = 3;
const DIRTY: u64 = 1 << 3;
const WATCHED: u64 = 1 << 4;
const NODE_SHIFT: u32 = 5;
const COUNTER_SHIFT: u32 = 21;

/// State, bits and location of one key in 61 bits; the store may use the top bit for itself.
///
/// A packed state of 0 is a key of which nothing is known: it is at its home, which has never
/// relocated it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct PackedState(u64);

impl PackedState {
    /// Nothing held, nothing known.
    pub const EMPTY: Self = Self(0);

    /// A main copy at its home, never relocated.
    pub const MAIN_AT_HOME: Self = Self(State::Main as u64);

    /// The packed state with these bits, as a store keeps it. Bits that no packed state has are
    /// dropped.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & (u64::MAX >> 3))
    }

    /// The bits, the upper three of them zero.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// What the node has of the key.
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

    /// Replica: has a delta. Main: changed since its holders were marked stale.
    #[must_use]
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// Main: has holders.
    #[must_use]
    pub fn is_watched(self) -> bool {
        self.0 & WATCHED != 0
    }

    /// Whether workers are served from the local copy.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self.state(), State::Replica | State::Main)
    }

    /// The relocation counter that goes with the location, or of the main copy.
    #[must_use]
    pub fn counter(self) -> Counter {
        Counter((self.0 >> COUNTER_SHIFT) & Counter::MAX.0)
    }

    /// Where the key is believed to be; `None` while nothing but the home is known. Of a main copy:
    /// where it came from.
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
    /// Main: number of changes. Replica: the version last received.
    pub version: &'a mut Version,
    /// `[value_len]`, empty if nothing is held.
    pub value: &'a mut [V],
    /// `[value_len]` updates not yet sent, empty unless reserved with a delta.
    pub delta: &'a mut [V],
}

/// What became of a push under the latch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Pushed {
    /// There is no local copy: the slow path must take it.
    Refused,
    /// Added; nobody needs to be told.
    Done,
    /// Added, and the copy has become dirty by it: append the key to the dirty queue.
    Dirtied,
}

impl<V: Value> Slot<'_, V> {
    /// Copies the local value into `out` `[value_len]`; false if there is no local copy.
    #[must_use]
    pub fn pull(&self, out: &mut [V]) -> bool {
        let local = self.packed.is_local();
        if local {
            out.copy_from_slice(self.value);
        }
        local
    }

    /// Adds `update` `[value_len]` to the local value, in a replica also to its delta (AdaPM
    /// §B.1.2).
    ///
    /// The delta is kept apart: value minus an older value drifts.
    pub fn push(&mut self, update: &[V]) -> Pushed {
        match self.packed.state() {
            State::Replica => {
                accumulate(self.value, update);
                accumulate(self.delta, update);
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

    /// Main: overwrites the value with `value` `[value_len]`.
    pub fn set(&mut self, value: &[V]) {
        self.expect(State::Main, "only an owner sets");
        self.value.copy_from_slice(value);
        *self.version = self.version.next();
    }

    /// `None` to `Requested`: an intent or localize entry leaves for the owner.
    pub fn request(&mut self) {
        self.expect(State::None, "only an absent key is requested");
        self.packed.set_state(State::Requested);
    }

    /// `Requested` to `None`: the owner keeps the key, or asks to try again.
    pub fn refuse(&mut self) {
        self.expect(State::Requested, "only a request is refused");
        self.packed.set_state(State::None);
    }

    /// `None` to `Main`, value zero: this node is the key's home and nobody has ever owned it
    /// elsewhere.
    pub fn create_main_copy(&mut self) {
        self.expect(State::None, "a main copy is founded once");
        debug_assert_eq!(self.packed.counter(), Counter(0), "a relocated key is not founded again");
        *self.packed = PackedState::MAIN_AT_HOME;
        *self.version = Version(0);
    }

    /// `Requested` to `Replica`: `value` `[value_len]` of `version` came from the owner at `owner`.
    pub fn install(&mut self, version: Version, value: &[V], owner: Location) {
        self.expect(State::Requested, "a replica is installed where it was asked for");
        self.value.copy_from_slice(value);
        self.delta.fill(V::default());
        *self.version = version;
        self.packed.set_state(State::Replica);
        self.packed.set_location(owner);
    }

    /// `Requested` or `Replica` to `Main`: ownership arrives, with `value` unless the replica is
    /// current.
    ///
    /// What the replica has not sent yet stays in the value: it is now part of the main copy.
    /// `former` is who had it before, and the counter under which it is here.
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
        *self.version = if pending { version.next() } else { version };
        self.delta.fill(V::default());
        self.packed.set_flag(DIRTY, false);
        self.packed.set_flag(WATCHED, false);
        self.packed.set_state(State::Main);
        self.packed.set_location(former);
    }

    /// Replica: the value becomes `value` `[value_len]` plus what has not been sent yet (AdaPM
    /// §B.1.2).
    pub fn refresh(&mut self, version: Version, value: &[V]) {
        self.expect(State::Replica, "only a replica is refreshed");
        self.value.copy_from_slice(value);
        if self.packed.is_dirty() {
            accumulate(self.value, self.delta);
        }
        *self.version = version;
    }

    /// Replica: moves the delta into `out` `[value_len]`, zeros, and leaves the copy clean.
    pub fn take_delta(&mut self, out: &mut [V]) {
        self.take_delta_with(|delta| out.copy_from_slice(delta));
    }

    /// As [`Slot::take_delta`], into wherever `take` puts it.
    pub fn take_delta_with(&mut self, take: impl FnOnce(&[V])) {
        self.expect(State::Replica, "only a replica has a delta");
        take(self.delta);
        self.delta.fill(V::default());
        self.packed.set_flag(DIRTY, false);
    }

    /// `Replica` to `Releasing`; its delta must have been taken in the same latched step.
    pub fn release(&mut self) {
        self.expect(State::Replica, "only a replica is released");
        debug_assert!(!self.packed.is_dirty(), "the last delta leaves with the release");
        self.packed.set_state(State::Releasing);
    }

    /// `Releasing` to `None`: the owner has acknowledged the release.
    pub fn released(&mut self) {
        self.expect(State::Releasing, "only a release is acknowledged");
        self.packed.set_state(State::None);
    }

    /// `Replica` to `None`: the owner is lost, and with it what has not been sent.
    pub fn abandon(&mut self) {
        self.expect(State::Replica, "only a replica is abandoned");
        self.delta.fill(V::default());
        self.packed.set_flag(DIRTY, false);
        self.packed.set_state(State::None);
    }

    /// Main: adds a holder's `delta` `[value_len]`.
    pub fn apply(&mut self, delta: &[V]) {
        self.expect(State::Main, "a delta meets its owner");
        accumulate(self.value, delta);
        *self.version = self.version.next();
    }

    /// Main: clears the dirty bit; whether it was set, so that all holders are stale.
    #[must_use]
    pub fn take_dirty(&mut self) -> bool {
        self.expect(State::Main, "only a main copy tells holders");
        let dirty = self.packed.is_dirty();
        self.packed.set_flag(DIRTY, false);
        dirty
    }

    /// Main: notes whether there are holders, so that local pushes are told to them.
    pub fn watch(&mut self, watched: bool) {
        self.expect(State::Main, "only a main copy is watched");
        self.packed.set_flag(WATCHED, watched);
        if !watched {
            self.packed.set_flag(DIRTY, false);
        }
    }

    /// `Main` to `None`: the main copy leaves for `to`, whose value must have been read in the same
    /// latched step.
    pub fn hand_over(&mut self, to: Location) {
        self.expect(State::Main, "only an owner hands over");
        *self.packed = PackedState::EMPTY;
        self.packed.set_location(to);
    }

    /// Not `Main`: learns where the key is; the higher counter wins.
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
