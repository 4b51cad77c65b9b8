//! Schedules from seeds: phase 1 is hardship (any step, any order), phase 2 drains the cluster and
//! checks it at rest.
//!
//! Everything about a run follows from its seed: nodes, workers, keys, system, bounds and every
//! step.

mod schedule;

use std::collections::BTreeSet;
use std::sync::Arc;

use adapm_core::id::{ChannelId, Key, NodeId};
use adapm_core::layout::Layout;
use adapm_core::policy::{Bound, Bounded, By, Policy, System, SystemPolicy};

use crate::network::Pairs;
use crate::rng::Rng;
use crate::setup::Setup;
use crate::violation::Violation;
use schedule::Schedule;

pub use crate::random_policy::RandomPolicy;

/// Number of steps of the first phase of a full run.
pub const STEPS: usize = 200;

/// Returns the systems whose workers do not wait for each other.
pub(crate) fn unbounded() -> impl Iterator<Item = System> {
    System::ALL.into_iter().filter(|system| system.policy(1).bound().is_none())
}

/// Returns the cluster of a seed: at least 3 nodes, 2 workers per node, 8 keys.
#[must_use]
pub fn setup(seed: u64) -> Setup {
    let mut rng = Rng::new(seed ^ SETUP_SALT);
    let nodes = rng.within(3..5);
    let workers = rng.within(2..4);
    let free: Vec<System> = unbounded().collect();
    let at = rng.within(0..free.len() + 2);
    let system = free.get(at).copied();
    let mut setup = Setup::new(system.unwrap_or_default(), nodes, workers, 8);
    if system.is_none() {
        setup.policy = Arc::new(move |node| {
            Box::new(RandomPolicy::new(seed ^ u64::from(node.0))) as SystemPolicy
        });
        (setup.adaptive, setup.sequential) = (false, false);
    }
    setup.location_caches = rng.chance(67);
    setup.block_bytes_max = rng.choose(&[4 << 20, 128, 16]);
    setup.parked_max = rng.choose(&[1 << 16, 1, 0]);
    let sparse = rng.chance(25);
    let channels = rng.choose(&[1, 1, 1, 2]);
    // At least 8 keys in each channel.
    let keys = if channels == 1 { 4 } else { 10 };
    let extents = [(keys, 5), (keys, 3)];
    let layout = if sparse { Layout::sparse(&extents) } else { Layout::dense(&extents) };
    setup.layout = layout.expect("a cluster has keys");
    setup.channel = (ChannelId(rng.within(0..channels) as u16), channels);
    if setup.hot.is_some() {
        setup.hot = Some(vec![hot(seed, &setup); nodes]);
    }
    setup.grants_max = rng.choose(&[512, 2, 1]);
    setup.requests_max = rng.choose(&[1 << 16, 3, 1]);
    let looks = Rng::new(seed ^ LOOK_SALT).chance(50);
    setup.unresponsive_nanos = Some(UNRESPONSIVE_NANOS).filter(|_| looks);
    setup.table = table(seed, nodes, setup.layout.keys().end.0);
    // Changes wait for more only in runs that have lasted.
    setup.ran_nanos = Rng::new(seed ^ RAN_SALT).choose(&[0, 500_000_000, 5_000_000_000]);
    setup
}

/// Returns the hot keys of a seed, under a system that has them for all nodes alike.
fn hot(seed: u64, setup: &Setup) -> BTreeSet<Key> {
    let mut rng = Rng::new(seed ^ HOT_SALT);
    setup.keys().filter(|_| rng.chance(HOT_PERCENT)).collect()
}

/// Returns the hot keys of each node for a seed, under a system in which each has its own: of the
/// keys whose homes are elsewhere.
#[must_use]
pub fn hot_by_node(seed: u64, setup: &Setup) -> Vec<BTreeSet<Key>> {
    let mut rng = Rng::new(seed ^ HOT_SALT);
    let of_node = |node| {
        let elsewhere = setup.keys().filter(|key| setup.home(*key) != NodeId(node));
        elsewhere.filter(|_| rng.chance(HOT_PERCENT)).collect()
    };
    (0..setup.nodes as u16).map(of_node).collect()
}

/// Returns the table of homes of a seed, in every third cluster; in every second table, one node is
/// the home of no key. (Draws of its own: what else follows from a seed stays as it is.)
fn table(seed: u64, nodes: usize, keys: u64) -> Option<Arc<[u16]>> {
    let mut rng = Rng::new(seed ^ TABLE_SALT);
    if !rng.chance(33) {
        return None;
    }
    let homes = rng.choose(&[nodes, nodes - 1]);
    Some((0..keys).map(|_| rng.within(0..homes) as u16).collect())
}

/// Returns the cluster of a seed, in which one or two nodes vanish.
#[must_use]
pub fn setup_with_losses(seed: u64) -> Setup {
    let mut setup = setup(seed);
    setup.losses = Rng::new(seed ^ LOSS_SALT).within(1..3);
    setup
}

/// Returns the cluster of a seed, in which signals are taken back; in every second one, nodes
/// vanish too.
#[must_use]
pub fn setup_with_take_backs(seed: u64) -> Setup {
    let mut setup = if seed.is_multiple_of(2) { setup(seed) } else { setup_with_losses(seed) };
    setup.takes_back = true;
    setup
}

/// Returns the cluster of a seed under a policy that bounds how far workers are apart: a system of
/// that kind, or any other with a bound.
#[must_use]
pub fn setup_with_ticks(seed: u64) -> Setup {
    let mut rng = Rng::new(seed ^ TICK_SALT);
    let staleness = rng.within(0..4) as u32;
    let system = match rng.within(0..8) {
        0 | 1 => System::Ssp { staleness },
        2 | 3 => System::Essp { staleness },
        4 => System::BoundedDelay { delay: staleness },
        5 | 6 => System::HetGmp { staleness },
        _ => return bounded(setup(seed), staleness),
    };
    let like = setup(seed);
    let of_system = Setup::new(system, like.nodes, like.workers, 8);
    let Setup { policy, adaptive, sequential, bound, keeps, lag, .. } = of_system;
    // Of all systems with ticks, this one alone has hot keys.
    let hot = of_system.hot.map(|_| hot_by_node(seed, &like));
    Setup { policy, adaptive, sequential, hot, bound, keeps, lag, ..like }
}

/// Returns the cluster of a seed as [`setup_with_ticks`] does, in which one or two nodes vanish.
#[must_use]
pub fn setup_with_ticks_and_losses(seed: u64) -> Setup {
    Setup { losses: setup_with_losses(seed).losses, ..setup_with_ticks(seed) }
}

/// Puts a bound on the policy of `setup`, which has none.
#[must_use]
pub fn bounded(mut setup: Setup, ticks: u32) -> Setup {
    let free = setup.policy;
    setup.policy = Arc::new(move |node| {
        Box::new(Bounded { policy: free(node), ticks: ticks.into() }) as SystemPolicy
    });
    setup.bound = Some(Bound { ticks: ticks.into(), by: By::Refresh });
    setup
}

/// Runs the schedule of `seed` in `setup` with `steps` steps of hardship; adds the arrivals of
/// entries, by kind and state, to `pairs`.
///
/// # Errors
/// The first violation.
pub fn run(setup: Setup, seed: u64, steps: usize, pairs: &mut Pairs) -> Result<(), Violation> {
    let mut schedule = Schedule::new(setup, seed);
    let result = schedule.hardship(steps).and_then(|()| schedule.drain());
    pairs.merge(schedule.cluster().pairs());
    result
}

/// Runs the schedule of `seed` and calls `tell` with each step in words.
///
/// # Errors
/// The first violation.
pub fn tell(
    setup: Setup,
    seed: u64,
    steps: usize,
    tell: impl FnMut(&str) + 'static,
) -> Result<(), Violation> {
    let mut schedule = Schedule::new(setup, seed);
    schedule.tell_steps(tell);
    schedule.hardship(steps).and_then(|()| schedule.drain())
}

const SETUP_SALT: u64 = 0x5e70_95a1_7000_0001;
/// Much longer than a schedule runs before it drains.
const UNRESPONSIVE_NANOS: u64 = 1_000_000_000;
const LOSS_SALT: u64 = 0x1055_95a1_7000_0002;
const TICK_SALT: u64 = 0x71c5_95a1_7000_0004;
const HOT_SALT: u64 = 0x4075_95a1_7000_0005;
const HOT_PERCENT: u64 = 40;
const LOOK_SALT: u64 = 0x100c_95a1_7000_0003;
const TABLE_SALT: u64 = 0x7ab1_95a1_7000_0004;
const RAN_SALT: u64 = 0x72_616e;
