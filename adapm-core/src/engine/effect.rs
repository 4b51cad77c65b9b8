//! What a machine asks of the others: it never calls them, the engine does ([`super::Engine`]).

use alloc::boxed::Box;

use crate::engine::entry::Asker;
use crate::engine::input::OpId;
use crate::id::{Counter, Key, NodeId};
use crate::route::Hop;

/// Something that another machine has to do, in the same input.
#[derive(Debug)]
pub(super) enum Effect {
    /// To the round: somebody waits, so the next ones begin as early as they may.
    Hurry,
    /// To the round: the peer is asked for an answer, whether there is something to say or not.
    Ask(NodeId),
    /// To whoever has the key: intent for it has ended.
    Unwanted(Key),
    /// To the intents: the main copy of `key` has left. `is_turn`: the signals for it have had
    /// their turn.
    Left { key: Key, is_turn: bool },
    /// To the operations of peers: an intent or localize of a key that is not owned here goes on.
    PassOn(Box<PassOn>),
    /// To the operations of peers: what waits for news of `key` is looked at again.
    Unpark(Key),
    /// To the intents: `asked` was asked for `key`, which is said to have moved since.
    AskedBefore { key: Key, asked: NodeId },
    /// To the operations: one key of this one is done.
    Finish(OpId),
    /// To the round: a replica of `key` has become dirty.
    Dirtied(Key),
    /// To the owner's part: operations of this node have changed the main copy of `key`.
    Changed(Key),
    /// To the intents: the next round looks whether somebody has to be asked for `key`.
    AskLater(Key),
    /// To whoever wants `key`: its intent or localize entry came back, turned away.
    TurnedAway(Key),
}

/// An entry that goes on: rare, and larger than all else that is asked.
#[derive(Debug)]
pub(super) struct PassOn {
    pub(super) hop: Hop,
    pub(super) asker: Asker,
    pub(super) key: Key,
    pub(super) counter: Counter,
    pub(super) localize: bool,
}

const _: () = assert!(size_of::<Effect>() <= 24, "several a key that moves");
