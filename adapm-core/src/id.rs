//! Ids and counters, each a type of its own, printed short (`n2`, `w0`, `k17`, `v4`).
//!
//! Not here: logical time ([`crate::clock`]) and physical time ([`crate::time`]).

use core::fmt;
use core::ops::Add;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    };
}

id! {
    /// The id of a parameter, printed `k17`.
    Key(u64), "k"
}
id! {
    /// One participant with a store, printed `n2`. Node ids are `0..nodes`.
    NodeId(u16), "n"
}
id! {
    /// One training thread of a node, printed `w0`. Worker ids are `0..workers` on every node.
    WorkerId(u16), "w"
}
id! {
    /// One partition of the keys with a protocol engine of its own, printed `c1`.
    ChannelId(u16), "c"
}
id! {
    /// The number of changes a main copy has seen, or the one a replica was brought up to, printed
    /// `v4`.
    Version(u64), "v"
}
id! {
    /// Proof that an entry was received: the secret of a message, or the ticket of one of its
    /// entries ([`crate::ticket`]).
    Ticket(u64), "t"
}
id! {
    /// A relocation counter: the number of relocations of a key, printed `r3`. At most
    /// [`Counter::MAX`].
    Counter(u64), "r"
}

impl From<u64> for Key {
    fn from(key: u64) -> Self {
        Self(key)
    }
}

/// Adds to a key.
///
/// ```
/// use adapm_core::Key;
///
/// assert_eq!(Key::from(40) + 2, Key(42));
/// ```
///
/// # Panics
/// On overflow, as for `u64`, in debug builds.
impl Add<u64> for Key {
    type Output = Self;

    fn add(self, keys: u64) -> Self {
        Self(self.0 + keys)
    }
}

impl Counter {
    /// The largest relocation counter that fits into a [`crate::slot::PackedState`]: 2^40 - 1
    /// relocations of one key.
    pub const MAX: Self = Self((1 << 40) - 1);

    /// Returns the counter after one more relocation.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Version {
    /// Returns the version after one more change.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl NodeId {
    /// Returns the id as an index into a per-node table.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl WorkerId {
    /// Returns the id as an index into a per-worker table.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl ChannelId {
    /// Returns the id as an index into a per-channel table.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
