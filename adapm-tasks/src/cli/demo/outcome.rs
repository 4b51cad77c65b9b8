//! Outcomes of the jobs of the demo, system by system.

use crate::System;
use crate::run::ManagerStats;

/// The outcome of a job under one system.
pub(crate) struct Outcome {
    pub(super) system: System,
    /// The figure of merit; `None` if the run was stopped.
    pub(super) figure: Option<f64>,
    /// Of training, all epochs.
    pub(super) seconds: f64,
    pub(super) stats: ManagerStats,
}

/// The outcomes of a job under all systems.
pub(crate) struct Compared {
    pub(super) name: &'static str,
    pub(super) is_higher_better: bool,
    pub(super) outcomes: Vec<Outcome>,
}
