//! Names of the parameter management systems a task can run under.

use core::fmt;
use core::str::FromStr;

/// A parameter management system of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum System {
    /// Adaptive technique and adaptive timing (AdaPM §4).
    Adapm,
    /// Replication only (AdaPM §5.5).
    AdapmNoRelocation,
    /// Relocation only (AdaPM §5.5).
    AdapmNoReplication,
    /// Acts on intent at once (AdaPM §5.8).
    AdapmImmediate,
    /// Static partition, no copies (AdaPM §A.2, Lapse §2.1).
    Classic,
    /// Every node holds a replica of everything (AdaPM §A.1).
    Full,
    /// Relocation by `localize` only (Lapse §3).
    Lapse,
}

impl System {
    /// Every system, in the order help texts list them.
    pub const ALL: [System; 7] = [
        System::Adapm,
        System::AdapmNoRelocation,
        System::AdapmNoReplication,
        System::AdapmImmediate,
        System::Classic,
        System::Full,
        System::Lapse,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            System::Adapm => "adapm",
            System::AdapmNoRelocation => "adapm-no-relocation",
            System::AdapmNoReplication => "adapm-no-replication",
            System::AdapmImmediate => "adapm-immediate",
            System::Classic => "classic",
            System::Full => "full",
            System::Lapse => "lapse",
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no [`System`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSystem;

impl fmt::Display for UnknownSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown system; known are")?;
        System::ALL.iter().try_for_each(|system| write!(f, " {system}"))
    }
}

impl core::error::Error for UnknownSystem {}

impl FromStr for System {
    type Err = UnknownSystem;

    fn from_str(name: &str) -> Result<Self, UnknownSystem> {
        Self::ALL.into_iter().find(|system| system.name() == name).ok_or(UnknownSystem)
    }
}
