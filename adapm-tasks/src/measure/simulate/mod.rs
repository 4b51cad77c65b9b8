//! A model of the paper's five workloads on clusters of any size: real protocol engines in virtual
//! time, on machines and a network that cost what they are said to cost (AdaPM §5).
//!
//! | file | subject |
//! | --- | --- |
//! | [`pattern`] | which keys workers access, and what that takes on one node |
//! | [`zipf`] | ranks by frequency |
//! | [`contender`] | the systems that are compared |
//! | [`run`] | one workload under one system on one cluster: steps of the workers, measured |
//! | [`paper`] | what the paper states, and how that compares |
//!
//! Not here: learning. Values are counted, not trained, so nothing is said about quality or
//! effective speed-up.

pub mod contender;
pub mod paper;
pub mod pattern;
pub mod run;
pub mod zipf;

use core::fmt;
use core::str::FromStr;

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

pub use adapm_verify::sim::engines::Machine;
pub use contender::{Contender, InvalidContender};
pub use run::{Figures, Run, SimulateError, simulate};

/// The random source of a workload's choices: one for each worker.
pub type Chance = Xoshiro256PlusPlus;

/// A workload of the paper (AdaPM §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Knowledge graph embeddings.
    Kge,
    /// Word vectors.
    Wv,
    /// Matrix factorization.
    Mf,
    /// Click-through-rate prediction.
    Ctr,
    /// Graph neural networks.
    Gnn,
}

impl Task {
    /// All workloads, in the paper's order.
    pub const ALL: [Self; 5] = [Self::Kge, Self::Wv, Self::Mf, Self::Ctr, Self::Gnn];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kge => "kge",
            Self::Wv => "wv",
            Self::Mf => "mf",
            Self::Ctr => "ctr",
            Self::Gnn => "gnn",
        }
    }

    /// Returns the name in headings.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kge => "knowledge graph embeddings",
            Self::Wv => "word vectors",
            Self::Mf => "matrix factorization",
            Self::Ctr => "click-through-rate prediction",
            Self::Gnn => "graph neural networks",
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Task {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|task| task.name() == name).ok_or(())
    }
}

/// Returns the choices of worker `worker` of node `node`.
fn chance(seed: u64, node: u16, worker: u16) -> Chance {
    Chance::seed_from_u64(seed ^ u64::from(node) << 32 ^ u64::from(worker) << 48)
}

/// Returns a time 20 % around `nanos`: no two workers march in step.
fn vary(nanos: u64, chance: &mut Chance) -> u64 {
    let fifth = nanos / 5;
    chance.random_range(nanos - fifth..=nanos + fifth)
}
