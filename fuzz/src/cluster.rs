//! Target `cluster`: no order of steps breaks an invariant of the protocol (protocol, section 8).
//!
//! The input chooses a small cluster and then, step by step, who acts and which message arrives; the lockstep cluster
//! checks all invariants after each step. In the end everything is delivered and checked at rest. The same steps as in
//! the random schedules of `adapm-core/tests/properties.rs`, but led by coverage instead of chance, and on few keys.

use std::sync::Arc;

use adapm_core::policy::{System, SystemPolicy};
use adapm_core::testing::arb::Choices;
use adapm_core::testing::oracle::Who;
use adapm_core::testing::random::RandomPolicy;
use adapm_core::testing::{Cluster, Setup, Violation};
use adapm_core::{Key, NodeId, WorkerId};

/// Keys of the cluster, at least one a node.
const KEYS: u64 = 4;

/// Steps of one input at most.
const STEPS_MAX: usize = 200;

/// Runs the steps that `bytes` choose; true if a main copy moved or a replica was set up.
pub fn cluster(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let mut cluster = Cluster::new(setup(&mut choices));
    let result = run(&mut cluster, &mut choices);
    if let Err(violation) = result {
        panic!("{violation}");
    }
    let stats = |node: NodeId| cluster.member(node).node.stats();
    cluster.nodes().any(|node| stats(node).relocations + stats(node).replicas > 0)
}

/// Two or three nodes under any system, or under a policy that answers at random.
fn setup(choices: &mut Choices<'_>) -> Setup {
    let nodes = 2 + choices.below(2) as usize;
    let workers = 1 + choices.below(2) as usize;
    let system = System::ALL.get(choices.below(8) as usize).copied();
    let mut setup = Setup::new(system.unwrap_or_default(), nodes, workers, KEYS);
    if system.is_none() {
        let seed = choices.below(256);
        setup.policy =
            Arc::new(move |node| Box::new(RandomPolicy::new(seed ^ u64::from(node.0))) as SystemPolicy);
        (setup.adaptive, setup.sequential) = (false, false);
    }
    setup.location_caches = choices.flag();
    setup.block_bytes_max = [4 << 20, 16][choices.below(2) as usize];
    setup.parked_max = [1 << 16, 1, 0][choices.below(3) as usize];
    setup
}

fn run(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    for _ in 0..STEPS_MAX {
        if choices.is_exhausted() {
            break;
        }
        step(cluster, choices)?;
    }
    // Without replication, nodes with concurrent intent take turns for as long as it lasts.
    let workers: Vec<Who> = cluster.workers().collect();
    for who in &workers {
        cluster.advance_clock(*who, 1_000);
    }
    cluster.settle()?;
    for who in workers {
        cluster.quiesce(who)?;
    }
    cluster.settle()
}

fn step(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    match choices.below(16) {
        0..6 => deliver(cluster, choices),
        6..10 => access(cluster, choices),
        10..12 => {
            let who = worker(cluster, choices);
            let clock = cluster.member(who.0).workers[who.1.index()].clock.0;
            let start = clock + choices.below(4) * choices.below(16);
            cluster.intent(who, &[key(choices)], start..start + 1 + choices.below(4))
        }
        12 => {
            let who = worker(cluster, choices);
            cluster.advance_clock(who, 1 + choices.below(2) * 30);
            Ok(())
        }
        13 => cluster.round(node(cluster, choices)),
        14 => cluster.drain(node(cluster, choices)),
        _ => cluster.timeout(node(cluster, choices)),
    }
}

/// Delivers the first message of one of the pairs that have any.
fn deliver(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    let loaded = cluster.air().loaded();
    let Some(&(from, to)) = loaded.get(choices.below(loaded.len() as u64) as usize) else {
        return cluster.round(node(cluster, choices));
    };
    cluster.advance_time(choices.below(4) * 100_000);
    cluster.deliver(from, to).map(|_| ())
}

fn access(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    let who = worker(cluster, choices);
    if cluster.member(who.0).workers[who.1.index()].blocked.is_some() {
        return deliver(cluster, choices);
    }
    let keys = [key(choices)];
    let op = match choices.below(8) {
        0..3 => cluster.pull(who, &keys),
        3..6 => cluster.push(who, &keys),
        // One key is enough to overwrite: what else is pushed must stay.
        6 => cluster.set(who, &[Key(1)]),
        _ => match choices.below(4) {
            0..3 => cluster.localize(who, &keys),
            _ => cluster.wait_sync(who),
        },
    }?;
    if choices.flag() {
        cluster.block(who, op);
    }
    Ok(())
}

fn worker(cluster: &Cluster, choices: &mut Choices<'_>) -> Who {
    let setup = cluster.setup();
    let node = NodeId(choices.below(setup.nodes as u64) as u16);
    (node, WorkerId(choices.below(setup.workers as u64) as u16))
}

fn node(cluster: &Cluster, choices: &mut Choices<'_>) -> NodeId {
    NodeId(choices.below(cluster.setup().nodes as u64) as u16)
}

/// Mostly the first two keys: what nobody shares proves nothing.
fn key(choices: &mut Choices<'_>) -> Key {
    Key([0, 0, 0, 1, 1, 1, 2, 3][choices.below(8) as usize])
}
