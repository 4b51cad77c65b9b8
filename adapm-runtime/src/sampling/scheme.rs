//! The sampling schemes, their names, the usual scheme of each system, and invalid settings.

use std::fmt;
use std::str::FromStr;

use adapm_core::Key;
use adapm_core::policy::{Supply, System};

/// The choice of a sample's keys (NuPS; AdaPM §A.5). Printed by its name, parsed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// Draw, then pull, wherever the key is.
    Naive,
    /// Draw early and signal intent for the drawn keys in the sample's window.
    Preloc,
    /// Like `Preloc`, but draw a pool of keys and use each several times.
    Pool {
        /// Draws of a pool, 1 to [`Scheme::POOL_SIZE_MAX`].
        size: u32,
        /// Uses of each draw by a worker, at least 1.
        reuse: u32,
    },
    /// Prefer keys that happen to be local.
    Local,
}

impl Scheme {
    /// A pool of 250 draws, each used 16 times.
    pub const POOL: Self = Self::Pool { size: 250, reuse: 16 };

    /// All schemes, with the usual pool.
    pub const ALL: [Self; 4] = [Self::Naive, Self::Preloc, Self::POOL, Self::Local];

    /// Maximum number of draws of a pool.
    pub const POOL_SIZE_MAX: u32 = 1 << 24;

    /// Returns the usual scheme under `system`: `Local` where keys are replicated when they are
    /// needed; `Naive` under static partitioning, where the local keys are always the same and make
    /// poor samples (AdaPM App. C); `Preloc` where keys move, since the local keys are then those
    /// just used, beside hot ones.
    #[must_use]
    pub fn of(system: System) -> Self {
        match system.supply() {
            Supply::Nothing | Supply::Access | Supply::Hot | Supply::Partition => Self::Naive,
            Supply::Localize | Supply::HotAndLocalize => Self::Preloc,
            _ if system.replicates() => Self::Local,
            _ => Self::Preloc,
        }
    }

    /// Returns why samples are poor on several nodes of `system`, in a few words; `None` if nothing
    /// speaks against them.
    #[must_use]
    pub fn caveat(self, system: System) -> Option<&'static str> {
        match (self, Self::of(system)) {
            (Self::Local, Self::Naive) => Some("finds only the node's own part of the keys"),
            (Self::Local, Self::Preloc) => Some("finds only what was just used"),
            _ => None,
        }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Preloc => "preloc",
            Self::Pool { .. } => "pool",
            Self::Local => "local",
        }
    }

    /// Returns true if keys are signalled when a sample is prepared.
    pub(crate) const fn announces(self) -> bool {
        matches!(self, Self::Preloc | Self::Pool { .. })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of a name that no scheme has; compare [`Scheme::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such sampling scheme: use one of {}", Scheme::ALL.map(Scheme::name).join(", "))]
pub struct UnknownScheme;

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name).ok_or(UnknownScheme)
    }
}

/// Invalid sampling settings; the caller is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// The range to sample from is empty or not within the layout.
    #[error(
        "cannot sample from keys {}..{}: use a range that is not empty within 0..{}", start.0, end.0, keys_end.0
    )]
    Keys {
        /// First key of the range.
        start: Key,
        /// End of the range, exclusive.
        end: Key,
        /// End of the layout's keys, which start at 0.
        keys_end: Key,
    },
    /// The keys to sample from differ in value length.
    #[error("cannot sample from keys of several value lengths: key {} differs", key.0)]
    Lens {
        /// The first key whose value length differs from that of the range's first.
        key: Key,
    },
    /// A pool of invalid size or reuse.
    #[error(
        "cannot sample from pools of {size} keys used {reuse} times: use 1 to {} keys, once or more",
        Scheme::POOL_SIZE_MAX
    )]
    Pool {
        /// Draws of a pool.
        size: u32,
        /// Uses of each draw.
        reuse: u32,
    },
}

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_schemes() {
        for scheme in Scheme::ALL {
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
            assert!(UnknownScheme.to_string().contains(scheme.name()));
        }
        assert_eq!("global".parse::<Scheme>(), Err(UnknownScheme));
    }

    #[test]
    fn what_is_local_is_sampled_where_keys_are_replicated_and_a_caveat_tells_where_it_should_not_be()
     {
        for system in System::ALL {
            let usual = match system {
                System::Classic
                | System::Parallax
                | System::Ssp { .. }
                | System::Essp { .. }
                | System::HetGmp { .. }
                | System::Bsp
                | System::BoundedDelay { .. }
                | System::Eventual => Scheme::Naive,
                System::Lapse | System::Nups | System::AdapmNoReplication => Scheme::Preloc,
                _ => Scheme::Local,
            };
            assert_eq!(Scheme::of(system), usual, "{system}");
            assert_eq!(Scheme::Local.caveat(system).is_none(), usual == Scheme::Local, "{system}");
            assert_eq!(usual.caveat(system), None, "{system}");
        }
    }
}
