//! Mistakes planted in a link session on purpose, to prove that its tests find them.

use crate::testing::link::Claim;

/// A planted mistake. The claim that it breaks is [`LinkBug::claim`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkBug {
    /// A packet that comes again is handed on again.
    RepeatDelivery,
    /// On a new pipe the session goes on behind what it wrote to the old one, whatever had arrived.
    ForgetUnacknowledged,
    /// Packets acknowledge one more than has arrived, as if the next were as good as here.
    AcknowledgeAhead,
    /// The window is not looked at.
    IgnoreWindow,
    /// Nobody is told that there is room again.
    ForgetRoom,
    /// A goodbye counts as received when it is said.
    DrainEarly,
    /// A new pipe does not count as a sign of life.
    DeafToResume,
}

impl LinkBug {
    /// All bugs.
    pub const ALL: [Self; 7] = [
        Self::RepeatDelivery,
        Self::ForgetUnacknowledged,
        Self::AcknowledgeAhead,
        Self::IgnoreWindow,
        Self::ForgetRoom,
        Self::DrainEarly,
        Self::DeafToResume,
    ];

    /// The claim that the bug breaks.
    #[must_use]
    pub fn claim(self) -> Claim {
        match self {
            Self::RepeatDelivery => Claim::Once,
            Self::ForgetUnacknowledged => Claim::Refusal,
            Self::AcknowledgeAhead => Claim::Acknowledged,
            Self::IgnoreWindow => Claim::Memory,
            Self::ForgetRoom => Claim::Room,
            Self::DrainEarly => Claim::Farewell,
            Self::DeafToResume => Claim::Vigil,
        }
    }
}
