//! The two kinds of [`Parameters`]: workers of the parameter manager ([`crate::run::inter`]), whose
//! intent handles are [`IntentSignaler`]s, and plain arrays.
//!
//! After training a process has the best parameters ([`BestParameters`]): all of them, or those at
//! home in it if nodes are processes.
//!
//! An evaluation starts from them on every node, and no node needs more than its own: a manager
//! asks for the values of keys at their home. Only a checkpoint needs all, on node 0.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, NodeId};
use adapm_runtime::checkpoint::{Part, Restored};
use adapm_runtime::trace::Tracer;
use adapm_runtime::{
    Builder, Cluster, IntentHandle, Nodes, Populating, Random, Sample, Scheme, System,
};
use adapm_transport::group::Group;

use crate::run::config::Pacing;
use crate::run::error::TaskError;
use crate::run::hot::Hot;
use crate::run::parameters::{IntentSignaler, Parameters, SamplingDistribution, Shape, Snapshot};
use crate::run::peers::Peers;
use crate::run::task::Tell;
use crate::run::topology::{Topology, home, is_here};
use crate::run::values::Values;

/// The setup of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) system: System,
    pub(crate) nodes: usize,
    /// Of each node.
    pub(crate) workers: &'a [usize],
    pub(crate) pacing: Pacing,
    pub(crate) seed: u64,
    /// The group that joins the nodes, if they are processes.
    pub(crate) group: Option<&'a Arc<Group>>,
    /// The sampling scheme; `None`: the usual one of the system.
    pub(crate) scheme: Option<Scheme>,
    /// The tracer of some keys.
    pub(crate) trace: Option<&'a Tracer>,
    /// Keys that nodes hold for the whole run.
    pub(crate) hot: Hot,
    /// Keys that all workers change in each step.
    pub(crate) dense: Range<Key>,
    /// The home of each key; `None`: by hash.
    pub(crate) homes: Option<Arc<[u16]>>,
}

impl<'a> Setup<'a> {
    /// Returns a setup in which nothing is chosen for the task.
    pub(crate) fn plain(
        system: System,
        (nodes, workers): (usize, &'a [usize]),
        pacing: Pacing,
        seed: u64,
        group: Option<&'a Arc<Group>>,
    ) -> Self {
        let (scheme, trace, homes) = (None, None, None);
        let (hot, dense) = (Hot::none(), Key(0)..Key(0));
        Self { system, nodes, workers, pacing, seed, group, scheme, trace, hot, dense, homes }
    }

    /// Returns the setup of the nodes of this process; `None` if no manager takes part.
    pub(crate) fn of(topology: Topology<'a>, seed: u64) -> Option<Self> {
        let Topology { system, nodes, workers, pacing, peers } = topology;
        let (system, group) = (system?, peers.group());
        Some(Self::plain(system, (nodes, workers), pacing, seed, group))
    }

    /// Starts a cluster for parameters of `shape`, with samples from `distribution` if there is
    /// one. Reports to `tell` how many of all keys have their initial values.
    pub(crate) fn start(
        self,
        shape: &Shape,
        distribution: Option<&SamplingDistribution>,
        initial: impl Fn(Key, &mut [f32]) + Send + Sync + 'static,
        tell: &Tell<'_>,
    ) -> Result<Cluster<f32>, TaskError> {
        let layout = shape.layout()?;
        let nodes = self.group.map_or(Nodes::from(self.nodes), Nodes::from);
        let builder = Builder::<f32>::new(layout).nodes(nodes).workers(self.workers.to_vec());
        let builder = self.hot.given_to(self.pacing.of(builder)).dense_keys(self.dense);
        let builder = self.homes.into_iter().fold(builder, Builder::homes);
        let builder = self.trace.into_iter().fold(builder, Builder::trace);
        let scheme = self.scheme.unwrap_or(Scheme::of(self.system));
        let sampling = distribution.map(|distribution| distribution.sampling(scheme, self.seed));
        let builder = sampling.into_iter().fold(builder, Builder::sampling);
        let tell = &mut |Populating { done, keys, .. }: Populating| tell(done, keys);
        Ok(builder.system(self.system).initial(initial).build_telling(tell)?)
    }
}

/// The announcement of accesses that a system understands.
pub(crate) enum ManagedSignaler {
    /// Intent with its window (AdaPM §3); ignored by systems that do not heed it.
    Intent(IntentHandle<f32>),
    /// The keys are brought here at once (Lapse §3.2).
    Localize(IntentHandle<f32>),
}

impl IntentSignaler for ManagedSignaler {
    type Sample = Sample;

    fn signal_intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        match self {
            Self::Intent(handle) => handle.intent(keys, clocks),
            // The ticket is not needed: an access waits for a key that is on its way.
            Self::Localize(handle) => handle.localize_async(keys).map(drop),
        }
    }

    fn skip_samples(&mut self, samples: u64) {
        let (Self::Intent(handle) | Self::Localize(handle)) = self;
        handle.skip_samples(samples);
    }

    fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<Sample, OpError> {
        let (Self::Intent(handle) | Self::Localize(handle)) = self;
        handle.prepare_sample(n, clocks)
    }
}

/// All parameters in one array: one worker, no manager. The baseline of what a manager costs.
#[derive(Clone, Debug)]
pub(crate) struct Arrays {
    shape: Shape,
    values: Vec<f32>,
    distribution: Option<SamplingDistribution>,
}

impl Arrays {
    /// Fills the values by `initial`, called once per key.
    #[cfg(test)]
    pub(crate) fn new(
        shape: Shape,
        distribution: Option<SamplingDistribution>,
        initial: impl Fn(Key, &mut [f32]),
    ) -> Self {
        Self::fill(shape, distribution, initial, &|_, _| {})
    }

    /// Fills the values by `initial`, called once per key, and reports to `tell` how many keys have
    /// theirs.
    pub(crate) fn fill(
        shape: Shape,
        distribution: Option<SamplingDistribution>,
        initial: impl Fn(Key, &mut [f32]),
        tell: &Tell<'_>,
    ) -> Self {
        let mut values = vec![0.0; shape.total()];
        let mut rest = values.as_mut_slice();
        for key in (0..shape.keys()).map(Key) {
            let (value, behind) = rest.split_at_mut(shape.len_of(key));
            initial(key, value);
            rest = behind;
            if key.0 % KEYS_A_TELLING == KEYS_A_TELLING - 1 {
                tell(key.0 + 1, shape.keys());
            }
        }
        Self { shape, values, distribution }
    }
}

impl Parameters for Arrays {
    type Error = Infallible;
    type Sample = Random;

    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), Infallible> {
        let mut rest = values;
        for key in keys {
            let (value, behind) = rest.split_at_mut(self.shape.len_of(*key));
            let start = self.shape.offset(*key);
            value.copy_from_slice(&self.values[start..start + value.len()]);
            rest = behind;
        }
        Ok(())
    }

    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), Infallible> {
        let mut rest = updates;
        for key in keys {
            let (update, behind) = rest.split_at(self.shape.len_of(*key));
            let start = self.shape.offset(*key);
            for (value, update) in self.values[start..start + update.len()].iter_mut().zip(update) {
                *value += update;
            }
            rest = behind;
        }
        Ok(())
    }

    /// # Panics
    ///
    /// If the task has no sampling distribution.
    fn pull_sample(
        &mut self,
        sample: &mut Random,
        keys: &mut [Key],
        values: &mut [f32],
    ) -> Result<(), Infallible> {
        let distribution =
            self.distribution.as_ref().expect("a task that samples has a distribution");
        keys.fill_with(|| distribution.draw(sample));
        self.pull(keys, values)
    }

    fn advance_clock(&mut self) {}

    fn quiesce(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Snapshot for Arrays {
    fn snapshot(&mut self, mut room: Vec<f32>) -> Result<Part, Infallible> {
        room.clone_from(&self.values);
        Ok(Part::new((0..self.shape.keys()).map(Key), room))
    }

    fn hand_over(
        &mut self,
        _: impl Iterator<Item = Key>,
        _: &Restored,
        _: &dyn Fn(Key) -> usize,
    ) -> Result<(), Infallible> {
        // All are at home here.
        Ok(())
    }
}

/// Parameters of the chosen epoch, without accumulators.
#[derive(Debug)]
pub(crate) struct BestParameters {
    shape: Shape,
    /// Keys that are here, ascending; `None`: all.
    keys: Option<Arc<Vec<Key>>>,
    /// Their values, in the order of keys.
    values: Arc<Vec<f32>>,
}

impl BestParameters {
    /// Joins the copies of the workers of this process, in order; `shape` is that of values
    /// without accumulators.
    pub(crate) fn new(shape: Shape, mut parts: Vec<Vec<f32>>, peers: &Peers<'_>) -> Self {
        let (node, processes) = (peers.node(), peers.processes());
        let keys = (processes > 1).then(|| {
            let keys = (0..shape.keys()).map(Key).filter(|key| is_here(*key, node, processes));
            Arc::new(keys.collect())
        });
        // One worker's part is not copied again.
        let values = if parts.len() == 1 { parts.swap_remove(0) } else { parts.concat() };
        Self { shape, keys, values: Arc::new(values) }
    }

    /// Returns a function that writes the value of a key that is here, and leaves other values as
    /// they are.
    pub(crate) fn initial(&self) -> impl Fn(Key, &mut [f32]) + Send + Sync + 'static {
        let (shape, keys, values) =
            (self.shape.clone(), self.keys.clone(), Arc::clone(&self.values));
        move |key, value| {
            let start = match &keys {
                None => shape.offset(key),
                Some(keys) => {
                    let Ok(at) = keys.binary_search(&key) else { return };
                    shape.offset_among(keys, at)
                }
            };
            value.copy_from_slice(&values[start..start + value.len()]);
        }
    }

    /// Returns the first key here that has a float which is NaN or infinite.
    pub(crate) fn find_not_finite(&self) -> Option<Key> {
        if self.values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let all = || (0..self.shape.keys()).map(Key).collect();
        let keys = self.keys.clone().unwrap_or_else(|| Arc::new(all()));
        self.shape.find_not_finite(&keys, &self.values)
    }

    /// Gathers all values at node 0, in key order, a piece of a few MiB at a time; `None` on other
    /// nodes. Collective.
    pub(crate) fn gather(
        self,
        peers: &Peers<'_>,
        floats_max: usize,
        tell: &Tell<'_>,
    ) -> Result<Option<Values>, TaskError> {
        let Some(keys) = &self.keys else { return Ok(Some(self.values.into())) };
        let shape = &self.shape;
        let mut gathered = Vec::new();
        if peers.node() == 0 {
            gathered.reserve_exact(shape.total());
        }
        let mut next = Key(0);
        while next.0 < shape.keys() {
            let end = piece_end(shape, next, floats_max);
            let bound =
                |key: Key| shape.offset_among(keys, keys.partition_point(|other| *other < key));
            let own: Vec<u8> = self.values[bound(next)..bound(end)]
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            if let Some(pieces) = peers.gather(&own)? {
                merge(shape, next..end, &pieces, &mut gathered)?;
            }
            next = end;
            tell(next.0, shape.keys());
        }
        Ok((peers.node() == 0).then(|| gathered.into()))
    }
}

/// Returns the first key after a piece of at most `floats_max` floats over all nodes, at least one
/// key.
fn piece_end(shape: &Shape, start: Key, floats_max: usize) -> Key {
    let (mut end, mut floats) = (start.0 + 1, shape.len_of(start));
    while end < shape.keys() && floats + shape.len_of(Key(end)) <= floats_max {
        floats += shape.len_of(Key(end));
        end += 1;
    }
    Key(end)
}

/// Appends the values of `keys` in order, each from the piece of its home.
fn merge(
    shape: &Shape,
    keys: Range<Key>,
    pieces: &[Vec<u8>],
    gathered: &mut Vec<f32>,
) -> Result<(), TaskError> {
    let mut rests: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    let unintelligible = |node: usize| {
        let node = NodeId(u16::try_from(node).unwrap_or(u16::MAX));
        TaskError::Unintelligible { node }
    };
    for key in (keys.start.0..keys.end.0).map(Key) {
        let node = home(key, pieces.len());
        let value =
            rests[node].split_off(..4 * shape.len_of(key)).ok_or_else(|| unintelligible(node))?;
        gathered.extend(value.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)));
    }
    match rests.iter().position(|rest| !rest.is_empty()) {
        None => Ok(()),
        Some(node) => Err(unintelligible(node)),
    }
}

/// Keys that are filled between two reports of progress: some megabytes.
const KEYS_A_TELLING: u64 = 1 << 16;

/// Floats of a piece of [`BestParameters::gather`] over all nodes.
pub(crate) const PIECE_FLOATS: usize = 1 << 20;
