//! Access patterns of the paper's five workloads, generated from seeds (AdaPM §5.1, AdaPM App. C, AdaPM Table 3).
//!
//! Key spaces have the paper's size: an engine keeps only what was touched. What is cut is the epoch: workers do a slice of it
//! from the middle, and figures are scaled to the whole. Two patterns touch so many keys a batch that one modelled key stands
//! for several ([`Facts::keys_per_key`]): space, batch and value width are scaled together, so that the chance that two
//! nodes want the same key stays what it is.

mod ctr;
mod gnn;
mod kge;
mod mf;
mod wv;

use adapm_core::{Key, Layout, NodeId};
use adapm_verify::sim::Who;

use super::{Chance, Task, vary};

/// What one step of a worker accesses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Keys read and written, each once, ascending; intent is signaled ahead.
    pub keys: Vec<Key>,
    /// Keys that the node will access again and again from here on: intent is signaled once, for the rest of the run.
    pub lasting: Vec<Key>,
    /// Keys written besides, by sampling.
    pub sampled: Sampled,
    /// Time it takes on one node, accesses included, in nanoseconds.
    pub nanos: u64,
}

/// Negatives: which keys are sampled (AdaPM App. C).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sampled {
    /// None.
    #[default]
    Nothing,
    /// So many of the first [`Facts::sample_keys`] keys, all with the same chance.
    Uniform(u64),
    /// These, or local ones near them.
    Drawn(Vec<Key>),
}

/// What is fixed for a workload.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Keys and lengths in modelled elements.
    pub layout: Layout,
    /// Bytes of a modelled element.
    pub element_bytes: u64,
    /// Keys that a modelled key stands for.
    pub keys_per_key: u64,
    /// Data points of an epoch.
    pub epoch_points: u64,
    /// Data points of one step.
    pub points: u64,
    /// Clocks of one step.
    pub clocks: u64,
    /// Keys among which negatives are drawn.
    pub sample_keys: u64,
    /// Steps that intent is signaled ahead: more than any action window, fewer than the paper's (AdaPM App. C), which makes
    /// no difference to adaptive timing (AdaPM §5.8).
    pub ahead: u64,
    /// Steps that every worker has done when measuring begins.
    pub warm_up: u64,
    /// Steps of a worker while measuring, on average.
    pub measured: u64,
}

impl Facts {
    /// Those of a workload whose step is a batch of `points` examples, with one clock. Batches take so long that all
    /// copies are where they belong long before the first is done, and touch so many keys that two are enough to measure.
    fn of_batches(
        layout: Layout,
        value_bytes: u64,
        keys_per_key: u64,
        epoch_points: u64,
        points: u64,
    ) -> Self {
        Self {
            layout,
            element_bytes: value_bytes * keys_per_key,
            keys_per_key,
            epoch_points,
            points,
            clocks: 1,
            sample_keys: 0,
            ahead: 16,
            warm_up: 1,
            measured: 2,
        }
    }
}

impl Work {
    /// A step of about `nanos` on `keys`.
    fn of(keys: Vec<Key>, nanos: u64, chance: &mut Chance) -> Self {
        Self { keys: distinct(keys), nanos: vary(nanos, chance), ..Self::default() }
    }
}

/// Generates what workers do.
pub trait Pattern {
    /// What is fixed.
    fn facts(&self) -> &Facts;

    /// The next step of a worker.
    fn draw(&mut self, who: Who, chance: &mut Chance) -> Work;

    /// Keys with at least a hundred times the mean frequency: what a static choice of techniques replicates.
    fn hot(&self) -> Vec<Key> {
        Vec::new()
    }
}

/// The pattern of `task` on `nodes` nodes. `settled`: keys with locality lie where a system
/// that relocates has brought them in earlier epochs; else at their homes.
#[must_use]
pub fn pattern(task: Task, nodes: usize, settled: bool) -> Box<dyn Pattern> {
    match task {
        Task::Kge => Box::new(kge::Kge::new()),
        Task::Wv => Box::new(wv::Wv::new()),
        Task::Mf => Box::new(mf::Mf::new(nodes, settled)),
        Task::Ctr => Box::new(ctr::Ctr::new()),
        Task::Gnn => Box::new(gnn::Gnn::new(nodes, settled)),
    }
}

/// Names for keys of `owner`: `base` itself, or one of the names set aside for it whose home is `owner`.
fn settled_key(base: u64, owner: NodeId, nodes: usize) -> Key {
    let names = (0_u64..).map(|name| Key(base | name << SETTLED_SHIFT));
    let mut names = names.take(1 << SETTLED_BITS);
    names.find(|key| Layout::home(*key, nodes) == owner).unwrap_or(Key(base))
}

/// Names of keys below this many bits are a pattern's own, and so many bits above tell settled names apart.
const SETTLED_SHIFT: u32 = 40;
const SETTLED_BITS: u32 = 16;

/// A layout of all names that a pattern with locality may use.
fn settled_layout() -> Layout {
    Layout::sparse(&[(1 << (SETTLED_SHIFT + SETTLED_BITS), 1)]).expect("there are keys")
}

/// Sorts keys and drops repetitions.
fn distinct(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    keys
}
