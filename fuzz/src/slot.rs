//! Target `slot`: any legal sequence of transitions on the two copies of one key keeps their states
//! consistent and loses no update (AdaPM §4.1, AdaPM §B.1.2; Lapse §3.2).
//!
//! The input chooses the steps; a step that the protocol never takes in the current state is
//! skipped, as the transitions' own rules forbid it. A model of plain integers predicts the memory
//! after every step. Not here: messages and their order, which are the engine's.

use adapm_core::slot::{Location, PackedState, Pushed, Slot, State};
use adapm_core::{Counter, NodeId, Version};
use adapm_verify::arb::Choices;

/// Elements of the value.
const LEN: usize = 2;

/// Runs the steps that `bytes` choose. Returns true if a copy was moved or merged at least once.
pub fn slot(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let mut pair = Pair::new();
    while !choices.is_exhausted() {
        pair.step(&mut choices);
        pair.check();
    }
    pair.exchanges > 0
}

/// One node's copy, as a store keeps it.
struct Copy {
    packed: PackedState,
    version: Version,
    value: [i64; LEN],
    delta: [i64; LEN],
}

impl Copy {
    fn slot(&mut self) -> Slot<'_, i64> {
        Slot {
            packed: &mut self.packed,
            version: &mut self.version,
            value: &mut self.value,
            delta: &mut self.delta,
        }
    }

    fn state(&self) -> State {
        self.packed.state()
    }
}

/// The expected content of the holder's copy.
#[derive(Clone, Copy, Default)]
struct Held {
    received: i64,
    pending: i64,
    dirty: bool,
}

/// Both copies, and their expected content.
struct Pair {
    copies: [Copy; 2],
    owner: usize,
    relocations: u64,
    main: i64,
    held: Option<Held>,
    pushed: i64,
    exchanges: u32,
}

impl Pair {
    fn new() -> Self {
        let copy = || Copy {
            packed: PackedState::EMPTY,
            version: Version(0),
            value: [0; LEN],
            delta: [0; LEN],
        };
        let mut copies = [copy(), copy()];
        copies[0].slot().create_main_copy();
        Self { copies, owner: 0, relocations: 0, main: 0, held: None, pushed: 0, exchanges: 0 }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let other = self.copies[1 - self.owner].state();
        match (choices.below(11), other) {
            (0, _) => self.push(self.owner, amount(choices)),
            (1, _) => self.push(1 - self.owner, amount(choices)),
            (2, _) => self.learn(choices.below(256)),
            (3, State::None) => self.other().request(),
            (4, State::Requested) => self.other().refuse(),
            (5, State::Requested) => self.install(),
            (6, State::Requested) => self.relocate(),
            (7, State::Replica) => self.exchange(),
            (8, State::Replica) => self.release(),
            (9, State::Replica) => self.hand_over(amount(choices)),
            (10, State::Replica) => self.abandon(),
            _ => {}
        }
    }

    fn push(&mut self, at: usize, amount: i64) {
        let pushed = self.copies[at].slot().push(&[amount, -amount]);
        let expected = match &mut self.held {
            _ if at == self.owner => {
                self.main += amount;
                if self.held.is_some() { None } else { Some(Pushed::Done) }
            }
            None => {
                assert_eq!(pushed, Pushed::Refused, "a push without a copy");
                return;
            }
            Some(held) => {
                held.pending += amount;
                let first = !std::mem::replace(&mut held.dirty, true);
                Some(if first { Pushed::Dirtied } else { Pushed::Done })
            }
        };
        // The model does not track whether a watched main copy was clean; it is dirty afterwards.
        match expected {
            Some(expected) => assert_eq!(pushed, expected, "a push at n{at}"),
            None => {
                assert!(
                    self.copies[at].packed.is_dirty(),
                    "a push into a watched main copy leaves it dirty"
                )
            }
        }
        self.pushed += amount;
    }

    /// Learns of a former place of the key: never newer than the truth.
    fn learn(&mut self, age: u64) {
        let counter = Counter(self.relocations.saturating_sub(age));
        let before = self.other_copy().packed.counter();
        // Relocations go back and forth between the two nodes.
        let node = NodeId((counter.0 % 2) as u16);
        self.other().learn(Location { node, counter });
        let after = self.other_copy().packed.counter();
        assert_eq!(after, before.max(counter), "the higher counter wins");
    }

    fn install(&mut self) {
        let (version, value, here) = self.main_copy();
        self.owner().watch(true);
        self.other().install(version, &value, here);
        self.held = Some(Held { received: self.main, ..Held::default() });
        self.exchanges += 1;
    }

    fn relocate(&mut self) {
        let (version, value, _) = self.main_copy();
        let to = self.next_place();
        self.owner().hand_over(to);
        self.other().arrive(version, Some(&value), to);
        self.moved();
    }

    /// Runs a round: the delta leaves, is applied, and comes back as part of a refresh.
    fn exchange(&mut self) {
        self.send_delta();
        let _ = self.owner().take_dirty();
        let (version, value, _) = self.main_copy();
        self.other().refresh(version, &value);
        let held = self.held.as_mut().expect("the other copy is a replica");
        held.received = self.main;
        self.exchanges += 1;
    }

    fn release(&mut self) {
        self.send_delta();
        self.other().release();
        self.owner().watch(false);
        self.other().released();
        self.held = None;
        self.exchanges += 1;
    }

    /// Makes the holder lose its owner, and with it its unsent updates; it then asks anew from
    /// scratch.
    fn abandon(&mut self) {
        self.other().abandon();
        let other = self.other_copy();
        assert_eq!(other.state(), State::None, "what is abandoned is not held");
        assert!(!other.packed.is_dirty() && other.delta == [0; LEN], "what was not sent is gone");
        let held = self.held.take().expect("the other copy is a replica");
        self.pushed -= held.pending;
        self.owner().watch(false);
        self.exchanges += 1;
    }

    /// Moves ownership to the holder, which has pushed `late` since its delta left; with a value
    /// only if it needs one.
    fn hand_over(&mut self, late: i64) {
        let current = !self.copies[self.owner].packed.is_dirty() && late % 2 == 0;
        self.send_delta();
        // After its own delta alone the replica is current if nothing else has changed the main
        // copy.
        let held = self.held.expect("the other copy is a replica");
        let without_value = current && held.received == self.main;
        self.push(1 - self.owner, late);
        let _ = self.owner().take_dirty();
        let (version, value, _) = self.main_copy();
        let to = self.next_place();
        self.owner().watch(false);
        self.owner().hand_over(to);
        self.other().arrive(version, (!without_value).then_some(&value[..]), to);
        self.main += late;
        self.held = None;
        self.moved();
    }

    /// Takes the holder's delta and applies it at the owner.
    fn send_delta(&mut self) {
        let mut delta = [0; LEN];
        self.other().take_delta(&mut delta);
        let held = self.held.as_mut().expect("the other copy is a replica");
        assert_eq!(
            delta,
            [held.pending, -held.pending],
            "the delta is what was pushed since the last one"
        );
        self.main += held.pending;
        held.received += held.pending;
        held.pending = 0;
        held.dirty = false;
        self.owner().apply(&delta);
    }

    fn moved(&mut self) {
        self.owner = 1 - self.owner;
        self.relocations += 1;
        self.exchanges += 1;
    }

    /// Checks the invariants that hold after every step.
    fn check(&mut self) {
        let owner = &self.copies[self.owner];
        let other = &self.copies[1 - self.owner];
        assert_eq!(owner.state(), State::Main, "there is one owner");
        assert_ne!(other.state(), State::Main, "there is one owner");
        assert_eq!(owner.value, [self.main, -self.main], "the main copy holds what reached it");
        assert_eq!(
            owner.packed.counter(),
            Counter(self.relocations),
            "the main copy counts its relocations"
        );
        assert_eq!(
            owner.packed.is_watched(),
            self.held.is_some(),
            "a main copy is watched while there is a holder"
        );
        let pending = self.held.map_or(0, |held| held.pending);
        assert_eq!(self.main + pending, self.pushed, "no push is lost, none counted twice");
        let Some(held) = self.held else { return };
        assert_eq!(other.state(), State::Replica, "a holder has a replica");
        let value = held.received + held.pending;
        assert_eq!(other.value, [value, -value], "a replica shows its own pushes");
        assert_eq!(other.delta, [held.pending, -held.pending], "a delta holds what was not sent");
        assert_eq!(other.packed.is_dirty(), held.dirty, "a replica is dirty while it has a delta");
        let mut read = [0; LEN];
        assert!(self.other().pull(&mut read), "a replica is read");
        assert_eq!(read, [value, -value], "a pull reads the value");
    }

    fn main_copy(&self) -> (Version, [i64; LEN], Location) {
        let copy = &self.copies[self.owner];
        let here = Location { node: NodeId(self.owner as u16), counter: Counter(self.relocations) };
        (copy.version, copy.value, here)
    }

    fn next_place(&self) -> Location {
        Location { node: NodeId(1 - self.owner as u16), counter: Counter(self.relocations).next() }
    }

    fn owner(&mut self) -> Slot<'_, i64> {
        self.copies[self.owner].slot()
    }

    fn other(&mut self) -> Slot<'_, i64> {
        self.copies[1 - self.owner].slot()
    }

    fn other_copy(&self) -> &Copy {
        &self.copies[1 - self.owner]
    }
}

/// Chooses an update: never negative, so that a sum that is too small is a loss.
fn amount(choices: &mut Choices<'_>) -> i64 {
    choices.below(256) as i64
}
