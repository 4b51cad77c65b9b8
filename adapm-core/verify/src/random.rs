//! Schedules from seeds: phase 1 is hardship (any step, any order), phase 2 drains the cluster and
//! checks it at rest.
//!
//! Everything about a run follows from its seed: nodes, workers, keys, system, bounds and every
//! step.

mod schedule;

use std::sync::Arc;

use adapm_core::id::ChannelId;
use adapm_core::layout::Layout;
use adapm_core::policy::{System, SystemPolicy};

use crate::network::Pairs;
use crate::rng::Rng;
use crate::setup::Setup;
use crate::violation::Violation;
use schedule::Schedule;

pub use crate::random_policy::RandomPolicy;

/// Number of steps of the first phase of a full run.
pub const STEPS: usize = 200;

/// Returns the cluster of a seed: at least 3 nodes, 2 workers per node, 8 keys.
#[must_use]
pub fn setup(seed: u64) -> Setup {
    let mut rng = Rng::new(seed ^ SETUP_SALT);
    let nodes = rng.within(3..5);
    let workers = rng.within(2..4);
    let at = rng.within(0..System::ALL.len() + 2);
    let system = System::ALL.get(at).copied();
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
    setup.grants_max = rng.choose(&[512, 2, 1]);
    setup.requests_max = rng.choose(&[1 << 16, 3, 1]);
    let looks = Rng::new(seed ^ LOOK_SALT).chance(50);
    setup.unresponsive_nanos = Some(UNRESPONSIVE_NANOS).filter(|_| looks);
    setup.table = table(seed, nodes, setup.layout.keys().end.0);
    setup
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
const LOOK_SALT: u64 = 0x100c_95a1_7000_0003;
const TABLE_SALT: u64 = 0x7ab1_95a1_7000_0004;
