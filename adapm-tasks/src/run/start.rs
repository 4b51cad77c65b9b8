//! The circumstances of a run, and its start: what is asked for makes sense, all processes mean the
//! same, and it is known who takes part.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use adapm_transport::group::Group;

use crate::files::NEVER;
use crate::run::checkpoints::CheckpointFolder;
use crate::run::config::{ClusterConfig, Config, ConfigError};
use crate::run::consistency::{self, RunFingerprint};
use crate::run::error::TaskError;
use crate::run::observer::{NoProgress, Observer};
use crate::run::parameters::Shape;
use crate::run::peers::Peers;
use crate::run::report::{EvalReport, TrainReport};
use crate::run::settings::Settings;
use crate::run::survey::Survey;
use crate::run::task::{Evaluation, Task};
use crate::run::topology::{self, Topology};
use crate::run::training::Started;
use crate::run::values::Values;

/// The circumstances of a run: whether its nodes are processes, who observes it, what stops it.
/// `F` are the figures of its evaluations.
///
/// If nodes are processes, a run is collective: every process makes the same call with the same
/// data and the same choices, or all end with the name of the node that differs. What fails in one
/// process fails in all, with its reason. A stop flag that is raised in one process ends the run in
/// all, in this one within a batch of work, in the others at the end of their epoch;
/// [`Group::on_stop`] raises it everywhere at once.
pub struct Run<'a, F> {
    peers: Peers<'a>,
    observer: &'a dyn Observer<F>,
    stop: &'a AtomicBool,
    survey: Option<&'a Survey>,
    checkpoints: Option<&'a CheckpointFolder>,
}

impl<'a, F> Run<'a, F> {
    /// Returns a run with all nodes in this process, without observer and stop flag.
    #[must_use]
    pub fn alone() -> Self {
        Self::by(Peers::alone())
    }

    /// Returns a run as one node of `group`.
    #[must_use]
    pub fn in_group(group: &'a Arc<Group>) -> Self {
        Self::by(Peers::of(group))
    }

    /// Returns a run of these processes.
    pub(crate) fn by(peers: Peers<'a>) -> Self {
        Self { peers, observer: &NoProgress, stop: &NEVER, survey: None, checkpoints: None }
    }

    /// Returns the same run, reported to `observer`.
    #[must_use]
    pub fn observed_by(self, observer: &'a dyn Observer<F>) -> Self {
        Self { observer, ..self }
    }

    /// Returns the same run, which ends within a batch of work once `stop` is raised, with the
    /// results so far.
    #[must_use]
    pub fn stopped_by(self, stop: &'a AtomicBool) -> Self {
        Self { stop, ..self }
    }

    /// Returns the same run, which writes checkpoints into a folder while it trains, or goes on
    /// from the last one there. Where nodes are processes all see the folder.
    #[must_use]
    pub fn checkpointed_in(self, folder: &'a CheckpointFolder) -> Self {
        Self { checkpoints: Some(folder), ..self }
    }

    /// Returns the same run, which notes in `survey` what it would train on, and ends as if it was
    /// stopped before its first epoch.
    #[cfg(feature = "cli")]
    pub(crate) fn surveyed_by(self, survey: &'a Survey) -> Self {
        Self { survey: Some(survey), ..self }
    }

    /// Trains the task that `task` returns for the number of workers of each node. Valid is
    /// evaluated after every `valid_every` epochs, at least 1, and after the last. `name` is the
    /// task's; all processes compare it. `data` is a number that differs between data that differ
    /// ([`Digest`](crate::run::Digest)). The parameters come in key order, each as long as
    /// [`Task::best_shape`] says.
    ///
    /// # Errors
    ///
    /// A configuration that makes no sense, parameters that cannot be laid out over the nodes,
    /// training that diverges, data that cannot be read, or a cluster that fails: in all processes
    /// if in one.
    pub fn train<T>(
        &self,
        name: &str,
        data: u64,
        config: &impl Config,
        (epochs, valid_every): (u32, u32),
        task: impl FnOnce(Vec<usize>) -> T,
    ) -> Result<TrainReport<F, Values>, TaskError>
    where
        T: Task<Evaluation: Evaluation<Figures = F>>,
        F: Clone + Send,
    {
        let cluster = config.cluster();
        self.start(
            cluster,
            config.run().check(cluster).and_then(|()| config.check()).map_err(TaskError::from),
            || {
                RunFingerprint::of_training(name, format!("{data:016x}"), config)
                    .with("epochs of the run", epochs.to_string())
                    .with("epochs between evaluations", valid_every.to_string())
            },
            |started| {
                let mut task = task(started.topology.workers.to_vec());
                if task.examples() == 0 {
                    return Err(ConfigError::NothingToTrain.into());
                }
                started.train(&mut task, Settings::of(config, epochs, valid_every))
            },
        )
    }

    /// Evaluates `values`, of the keys of `shape` in order: as many floats as that has. `name` and
    /// `data` are as in [`train`](Self::train). Of values in a file each process reads those at
    /// home in it; one process alone reads all, twice: first for the checksum.
    ///
    /// # Errors
    ///
    /// A configuration that makes no sense, values that cannot be read, or a cluster that fails: in
    /// all processes if in one.
    pub fn evaluate<E: Evaluation<Figures = F>>(
        &self,
        name: &str,
        data: u64,
        cluster: &ClusterConfig,
        evaluation: &E,
        shape: Shape,
        values: &Values,
    ) -> Result<EvalReport<F>, TaskError>
    where
        F: Clone + Send,
    {
        let fingerprint = || {
            RunFingerprint::of_evaluation(name, format!("{data:016x}"), cluster, &())
                .with("parameters", format!("{:016x}", values.digest()))
        };
        let (numbers, wanted) = (values.len(), shape.total());
        let fits = if numbers == wanted {
            Ok(())
        } else {
            Err(ConfigError::OtherShape { numbers, wanted }.into())
        };
        self.start(cluster, fits, fingerprint, |started| {
            let (report, answers) = started.evaluate_saved(evaluation, shape, values)?;
            let figures = (!report.stopped).then(|| evaluation.figures(&answers));
            Ok(EvalReport { figures, ..report })
        })
    }

    /// Does `work` with those who take part, once all processes mean the same; tells them if it
    /// fails. `checked` is an error if this process cannot start.
    pub(crate) fn start<R>(
        &self,
        cluster: &ClusterConfig,
        checked: Result<(), TaskError>,
        fingerprint: impl FnOnce() -> RunFingerprint,
        work: impl FnOnce(&Started<'_, F>) -> Result<R, TaskError>,
    ) -> Result<R, TaskError> {
        self.peers.told_of(|| {
            let ClusterConfig { system, ref workers, pacing, .. } = *cluster;
            let nodes = self.nodes(cluster);
            let own = topology::check(system, nodes, workers.as_ref(), &self.peers)
                .and_then(|()| pacing.check(system))
                .map_err(TaskError::from)
                .and(checked)
                .map(|()| fingerprint().with("nodes", nodes.to_string()));
            let agreed = own.as_ref().ok().cloned();
            let keep = consistency::check(&self.peers, own)?;
            let fingerprint = &agreed.expect("who has none has failed");
            let peers = &self.peers;
            // Plain arrays have one worker.
            let workers = match system {
                Some(_) => consistency::workers(peers, workers.as_ref(), nodes)?,
                None => vec![1],
            };
            let (nodes, workers) = (workers.len(), &*workers);
            let topology = Topology { system, nodes, workers, pacing, peers };
            let Self { observer, stop, survey, checkpoints, .. } = *self;
            work(&Started { keep, topology, observer, stop, survey, checkpoints, fingerprint })
        })
    }

    /// Returns the cluster as it will be: with the number of nodes, which are processes if there
    /// are several of these.
    pub(crate) fn cluster(&self, cluster: &ClusterConfig) -> ClusterConfig {
        ClusterConfig { nodes: Some(self.nodes(cluster)), ..cluster.clone() }
    }

    fn nodes(&self, cluster: &ClusterConfig) -> usize {
        self.peers.nodes(cluster.nodes.unwrap_or(1))
    }
}
