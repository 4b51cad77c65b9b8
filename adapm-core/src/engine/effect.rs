//! Requests from one machine to the others. Machines never call each other; the engine does
//! ([`super::Engine`]).

use alloc::boxed::Box;

use crate::engine::entry::Asker;
use crate::engine::input::OpId;
use crate::id::{Counter, Key, NodeId};
use crate::route::Hop;

/// A request to another machine, carried out in the same input.
#[derive(Debug)]
pub(super) enum Effect {
    /// To the round: a worker waits, so the next rounds begin as early as allowed.
    Hurry,
    /// To the round: ask the peer for an answer even if there is nothing to send.
    Ask(NodeId),
    /// To the holder of the key: intent for it has ended.
    Unwanted(Key),
    /// To the intents: the main copy of `key` has left. `is_turn`: the signals for it have had
    /// their turn.
    Left { key: Key, is_turn: bool },
    /// To the operations of peers: pass on an intent or localize of a key that is not owned here.
    PassOn(Box<PassOn>),
    /// To the operations of peers: retry entries that wait for news of `key`.
    Unpark(Key),
    /// To the intents: `asked` was asked for `key`, which is reported to have moved since.
    AskedBefore { key: Key, asked: NodeId },
    /// To the intents: a pull waits for `key`, which is absent, and its copy is to be kept.
    Keep(Key),
    /// To the operations: one key of this operation is done.
    Finish(OpId),
    /// To the round: a replica of `key` has become dirty.
    Dirtied(Key),
    /// To the ownership: operations of this node have changed the main copy of `key`.
    Changed(Key),
    /// To the intents: the next round checks if `key` has to be asked for.
    AskLater(Key),
    /// To the machine that wants `key`: its intent or localize entry came back, turned away.
    TurnedAway(Key),
}

/// An entry to be passed on: rare, and larger than all other effects.
#[derive(Debug)]
pub(super) struct PassOn {
    pub(super) hop: Hop,
    pub(super) asker: Asker,
    pub(super) key: Key,
    pub(super) counter: Counter,
    pub(super) localize: bool,
}

const _: () = assert!(size_of::<Effect>() <= 24, "several a key that moves");
