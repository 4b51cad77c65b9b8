//! Mistakes planted in a link session on purpose, to prove that its tests find them.

use core::fmt;
use std::env;

use crate::testing::link::Claim;

/// Declares the bugs: each with the claim that it breaks and what the mistake is.
macro_rules! bugs {
    ($($bug:ident breaks $claim:ident: $mistake:literal;)+) => {
        /// A planted mistake. The claim that it breaks is [`LinkBug::claim`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum LinkBug {
            $(#[doc = $mistake] $bug,)+
        }

        impl LinkBug {
            /// All bugs.
            pub const ALL: [Self; [$(Self::$bug),+].len()] = [$(Self::$bug),+];

            /// The claim that the bug breaks.
            #[must_use]
            pub fn claim(self) -> Claim {
                match self {
                    $(Self::$bug => Claim::$claim,)+
                }
            }

            /// What the mistake is, in one sentence.
            #[must_use]
            pub fn mistake(self) -> &'static str {
                match self {
                    $(Self::$bug => $mistake,)+
                }
            }
        }
    };
}

bugs! {
    RepeatDelivery breaks Once: "A packet that comes again is handed on again.";
    ForgetUnacknowledged breaks Refusal: "On a new pipe the session goes on behind what it wrote to the old one, whatever had arrived.";
    AcknowledgeAhead breaks Acknowledged: "Packets acknowledge one more than has arrived, as if the next were as good as here.";
    IgnoreWindow breaks Memory: "The window is not looked at.";
    ForgetRoom breaks Room: "Nobody is told that there is room again.";
    DrainEarly breaks Farewell: "A goodbye counts as received when it is said.";
    ResumeCountsAsLife breaks Vigil: "A new pipe counts as a sign of life.";
    DeafToBytes breaks Vigil: "Bytes do not count as life, only whole packets.";
    IgnoreStall breaks Vigil: "A peer lives as long as it is heard of, whether or not it acknowledges.";
    ForgetParts breaks Once: "On a new pipe the parts of a frame that had come are forgotten.";
    IgnorePace breaks Pace: "Packets are written as fast as the pipe takes them.";
}

impl LinkBug {
    /// The bug that the environment variable `ADAPM_BUG` names: what a [`super::Pair`] without another one has.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let name = env::var("ADAPM_BUG").ok()?;
        Self::ALL.into_iter().find(|bug| std::format!("{bug:?}") == name)
    }
}

impl fmt::Display for LinkBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
