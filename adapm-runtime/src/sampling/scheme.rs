//! The names of the sampling schemes, and which one goes with which system.

use std::fmt;
use std::str::FromStr;

use adapm_core::policy::System;

/// How the keys of a sample are chosen (NuPS; AdaPM §A.5). Printed by its name, parsed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// Draw, then pull, wherever the key is.
    Naive,
    /// Draw early and signal intent for the drawn keys in the sample's window.
    Preloc,
    /// As `Preloc`, but draw a pool of keys and use each several times.
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

    /// Draws of the largest pool.
    pub const POOL_SIZE_MAX: u32 = 1 << 24;

    /// The scheme to use under `system` unless something speaks for another: `Naive` under static partitioning, where the local
    /// keys are always the same ones and make poor samples (AdaPM App. C), else `Local`.
    #[must_use]
    pub const fn of(system: System) -> Self {
        match system {
            System::Classic => Self::Naive,
            _ => Self::Local,
        }
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Preloc => "preloc",
            Self::Pool { .. } => "pool",
            Self::Local => "local",
        }
    }

    /// Whether keys are signalled when a sample is prepared.
    pub(crate) const fn announces(self) -> bool {
        matches!(self, Self::Preloc | Self::Pool { .. })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no scheme has; compare [`Scheme::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownScheme;

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name).ok_or(UnknownScheme)
    }
}

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such sampling scheme: use one of naive, preloc, pool, local")
    }
}

impl std::error::Error for UnknownScheme {}

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
    fn only_static_partitioning_samples_naively_by_itself() {
        for system in System::ALL {
            assert_eq!(Scheme::of(system) == Scheme::Naive, system == System::Classic, "{system}");
        }
    }
}
