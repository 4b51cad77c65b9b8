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
    /// Bits that count changes of the main copy; those above count what a replica has not sent.
    const MAIN: u64 = (1 << 48) - 1;
    const UNSENT: u32 = Self::MAIN.trailing_ones();

    /// Returns the version after one more change.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1) & Self::MAIN)
    }

    /// Returns the changes of the main copy that a copy has seen, without the pushes that a replica
    /// has not sent.
    #[must_use]
    pub fn of_main(self) -> Self {
        Self(self.0 & Self::MAIN)
    }

    /// Returns the number of pushes to a replica that it has not sent, 65,535 for any more.
    #[must_use]
    pub fn unsent(self) -> u32 {
        (self.0 >> Self::UNSENT) as u32
    }

    /// Returns the number of changes of the main copy since it had version `earlier`.
    pub(crate) fn changes_since(self, earlier: Self) -> u32 {
        u32::try_from(self.0.wrapping_sub(earlier.0) & Self::MAIN).unwrap_or(u32::MAX)
    }

    /// Counts a push that is not sent.
    pub(crate) fn push(&mut self) {
        self.0 = self.0.checked_add(1 << Self::UNSENT).unwrap_or(self.0);
    }

    /// Forgets pushes that are not sent: they leave, or there are none.
    pub(crate) fn send(&mut self) {
        self.0 &= Self::MAIN;
    }

    /// Takes the changes that `main` has seen, whatever is not sent here.
    pub(crate) fn see(&mut self, main: Self) {
        self.0 = (self.0 & !Self::MAIN) | (main.0 & Self::MAIN);
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
