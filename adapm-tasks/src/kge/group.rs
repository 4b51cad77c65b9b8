//! Training and evaluation as one node of a group of processes.
//!
//! Every process of the group makes the same calls with the same data and the same choices, or all end with the name of the
//! node that differs. What a process needs is what it owns: only `TrainReport::checkpoint` brings a model together.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use adapm_transport::group::Group;

use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{EvalConfig, TrainConfig};
use crate::kge::evaluation;
use crate::kge::graph::Graph;
use crate::kge::report::{EvalReport, Progress, TrainReport};
use crate::kge::training;
use crate::run::error::TaskError;
use crate::run::peers::Peers;

/// [`train`](crate::kge::train) as one node of `group`; collective. The report is the same on all nodes, but for the
/// checkpoint, which is on node 0.
///
/// Raising `stop` in one process ends the run in all, in this one within a chunk, in the others at the end of their epoch;
/// [`Group::on_stop`] raises it everywhere at once.
///
/// # Errors
///
/// As [`train`](crate::kge::train), on all nodes if on one; data or choices that differ between nodes; a node that is lost.
pub fn train_in_group(
    graph: &Graph,
    config: &TrainConfig,
    group: &Arc<Group>,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| training::run(graph, config, &peers, progress, stop))
}

/// [`evaluate`](crate::kge::evaluate) as one node of `group`; collective. The report is the same on all nodes.
///
/// # Errors
///
/// As [`evaluate`](crate::kge::evaluate), on all nodes if on one; data, parameters or choices that differ between nodes; a
/// node that is lost.
pub fn evaluate_in_group(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    group: &Arc<Group>,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| evaluation::run(graph, checkpoint, config, &peers, progress, stop))
}
