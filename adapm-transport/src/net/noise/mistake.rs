//! Mistakes that are easily made in links, planted to see that the tests would find them.

use core::cell::Cell;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Mistake {
    /// The header is not associated with the head.
    HeaderUnbound,
    /// The tag of the head is not associated with the values.
    ValuesUnbound,
    /// A connection has the keys of the one before.
    KeysReused,
    /// A node says who it is before it knows that the other side has the token.
    IdentityFirst,
    /// A member with the token goes on with a link whose secret it does not know.
    LinkUnproved,
    /// A refusal is believed whoever has said it.
    RumoursBelieved,
}

thread_local! {
    static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
}

pub(in crate::net) fn is_planted(mistake: Mistake) -> bool {
    PLANTED.get() == Some(mistake)
}

/// What `run` returns while this thread makes `mistake`.
pub(in crate::net) fn with<R>(mistake: Option<Mistake>, run: impl FnOnce() -> R) -> R {
    PLANTED.set(mistake);
    let result = run();
    PLANTED.set(None);
    result
}
