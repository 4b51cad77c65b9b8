//! What a machine asks of the others: it never calls them, the engine does ([`super::Engine`]).

use crate::engine::input::OpId;
use crate::engine::intent::Request;
use crate::id::{Key, NodeId};

/// Something that another machine has to do, in the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// To the round: somebody waits, so the next ones begin as early as they may.
    Hurry,
    /// To the round: the peer is asked for an answer, whether there is something to say or not.
    Ask(NodeId),
    /// To whoever has the key: intent for it has ended.
    Unwanted(Key),
    /// To the operations: one key of this one is done.
    Finish(OpId),
    /// To the round and to calls that wait: an intent or localize of this node, of a key that was not here, is answered.
    Answered(Request),
}
