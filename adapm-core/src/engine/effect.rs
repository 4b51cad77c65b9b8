//! What a machine asks of the others: it never calls them, the engine does ([`super::Engine`]).

/// Something that another machine has to do, in the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// To the round: somebody waits, so the next ones begin as early as they may.
    Hurry,
}
