//! Target `cluster`: no order of steps breaks an invariant of the protocol (protocol, "What must
//! hold").
//!
//! The input chooses a small cluster and then, step by step, the acting node, the arriving message,
//! a vanishing node, or a node that learns of a loss; the lockstep cluster checks all invariants
//! after each step. In the end everything is delivered and checked at rest. The same steps as in
//! the random schedules of `adapm-core/tests/properties.rs` and `loss.rs`, but guided by coverage
//! instead of chance, and on few keys. A finding prints its steps in the words of a scenario.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use adapm_core::policy::{Supply, System, SystemPolicy};
use adapm_core::{Key, NodeId, WorkerId};
use adapm_verify::arb::Choices;
use adapm_verify::oracle::NodeWorker;
use adapm_verify::random::{self, RandomPolicy};
use adapm_verify::{Cluster, Setup, Violation};

use crate::planted;

/// Keys of the cluster, at least one per node.
const KEYS: u64 = 4;

/// Two or three nodes, one or two workers each, a loss or none; in the higher half a table of
/// homes. (All draws of the cluster fit the bytes of the first inputs, which keep their systems.)
const SHAPES: u64 = 256;
/// Shapes from which on there is a table of homes.
const TABLES: u64 = 128;
/// Shapes with equal numbers of nodes, workers and losses.
const SIZES: u64 = 8;
/// All systems, and a policy that answers at random.
const SYSTEMS: u64 = System::ALL.len() as u64 + 1;
/// Parameters of a system, or ticks of a bound.
const PARAMETERS: u64 = 4;
/// In one of so many clusters a policy without a bound gets one.
const BOUNDS: u64 = 3;

/// Maximum number of steps in one input.
const STEPS_MAX: usize = 200;

/// Runs the steps that `bytes` choose. Returns true if a main copy moved or a replica was set up.
pub fn cluster(bytes: &[u8]) -> bool {
    let (cluster, result) = play(bytes, |_| {});
    if let Err(violation) = result {
        panic!("{violation}; its steps:\n{}", story(bytes));
    }
    let stats = |node: NodeId| cluster.member(node).node.engine().stats();
    cluster.nodes().any(|node| stats(node).relocations + stats(node).replicas > 0)
}

/// Returns the steps in words.
fn story(bytes: &[u8]) -> String {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let heard = Rc::clone(&lines);
    let _ = play(bytes, |cluster| {
        heard.borrow_mut().push(describe(bytes, cluster.setup()));
        cluster.tell_steps(move |line| heard.borrow_mut().push(line.to_owned()));
    });
    lines.take().join("\n")
}

/// Describes the cluster, in the words of a scenario as far as possible.
fn describe(bytes: &[u8], setup: &Setup) -> String {
    let mut choices = Choices::from_bytes(bytes);
    let _shape = choices.below(SHAPES);
    let (system, _) = system(&mut choices);
    let system = system.map_or_else(|| String::from("a random policy"), |one| one.to_string());
    let bound = setup.bound.map_or_else(String::new, |bound| format!(" within {bound:?}"));
    let hot =
        |key: Key| setup.hot_nodes(key).map(|node| format!(" hot {node}")).collect::<String>();
    let homes: Vec<String> =
        setup.keys().map(|key| format!("{key} home {}{}", setup.home(key), hot(key))).collect();
    format!(
        "nodes {}, workers {}, system {system}{bound}, caches {}, blocks of {} B, {} granted and {} asked for at a time, {} parked at most; {}",
        setup.nodes,
        setup.workers,
        if setup.location_caches { "on" } else { "off" },
        setup.block_bytes_max,
        setup.grants_max,
        setup.requests_max,
        setup.parked_max,
        homes.join(", ")
    )
}

fn play(bytes: &[u8], begin: impl FnOnce(&mut Cluster)) -> (Cluster, Result<(), Violation>) {
    let mut choices = Choices::from_bytes(bytes);
    let mut cluster = Cluster::new(setup(&mut choices));
    begin(&mut cluster);
    let result = run(&mut cluster, &mut choices);
    (cluster, result)
}

/// Chooses two or three nodes under any system, or under a policy that answers at random, perhaps
/// with a bound or a table of homes; one of them may vanish.
fn setup(choices: &mut Choices<'_>) -> Setup {
    let shape = choices.below(SHAPES);
    let nodes = if shape & 1 == 0 { 3 } else { 2 };
    let workers = 1 + (shape >> 1 & 1) as usize;
    let (system, ticks) = system(choices);
    let mut setup = Setup::new(system.unwrap_or_default(), nodes, workers, KEYS);
    setup.table = table(shape, nodes);
    if system.is_some_and(|system| system.supply() == Supply::Partition) {
        setup.hot = Some(random::hot_by_node(shape / SIZES, &setup));
    }
    if system.is_none() {
        let seed = choices.below(256);
        setup.policy = Arc::new(move |node| {
            Box::new(RandomPolicy::new(seed ^ u64::from(node.0))) as SystemPolicy
        });
        (setup.adaptive, setup.sequential) = (false, false);
    }
    if let (Some(ticks), None) = (ticks, setup.bound) {
        setup = random::bounded(setup, ticks);
    }
    setup.losses = (shape >> 2 & 1) as usize;
    setup.ran_nanos = shape / SIZES % 2 * 5_000_000_000;
    setup.location_caches = choices.flag();
    setup.block_bytes_max = [4 << 20, 16][choices.below(2) as usize];
    let bounds = [(1 << 16, 2, 1), (1, 512, 1 << 16), (0, 1, 2)];
    (setup.parked_max, setup.grants_max, setup.requests_max) = bounds[choices.below(3) as usize];
    setup.bug = planted::protocol();
    setup
}

/// Chooses the system and its parameter, `None` for a policy that answers at random, and the ticks
/// of a bound around it.
fn system(choices: &mut Choices<'_>) -> (Option<System>, Option<u32>) {
    let drawn = choices.below(SYSTEMS * PARAMETERS * BOUNDS);
    let parameter = (drawn / SYSTEMS % PARAMETERS) as u32;
    let system = System::ALL.get((drawn % SYSTEMS) as usize);
    let is_bounded = drawn / SYSTEMS / PARAMETERS == BOUNDS - 1;
    (system.map(|system| system.with_parameter(parameter)), is_bounded.then_some(parameter))
}

/// Returns the homes that a shape stands for; in every second table, one node is the home of no
/// key.
fn table(shape: u64, nodes: usize) -> Option<Arc<[u16]>> {
    let mut drawn = Choices::from_seed(shape / SIZES);
    let homes = nodes as u64 - u64::from(drawn.flag());
    (shape >= TABLES).then(|| (0..KEYS).map(|_| drawn.below(homes) as u16).collect())
}

fn run(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    for _ in 0..STEPS_MAX {
        if choices.is_exhausted() {
            break;
        }
        step(cluster, choices)?;
    }
    while let Some((node, gone)) = cluster.untold().pop() {
        cluster.tell_lost(node, gone)?;
    }
    cluster.catch_up()?;
    cluster.settle()?;
    for who in working(cluster) {
        cluster.snapshot(who)?;
    }
    cluster.settle()?;
    for who in working(cluster) {
        cluster.end(who)?;
    }
    cluster.settle()?;
    for node in cluster.living() {
        cluster.leave((node, WorkerId(0)))?;
    }
    cluster.settle()
}

fn step(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    match choices.below(32) {
        0..12 => deliver(cluster, choices),
        12..20 => access(cluster, choices),
        20..24 => {
            let Some(who) = worker(cluster, choices) else { return Ok(()) };
            let clock = cluster.member(who.0).workers[who.1.index()].clock.0;
            let start = clock + choices.below(4) * choices.below(16);
            cluster.intent(who, &[key(choices)], start..start + 1 + choices.below(4))
        }
        24..26 => {
            let Some(who) = worker(cluster, choices) else { return Ok(()) };
            cluster.advance_clock(who, 1 + choices.below(2) * 30);
            let ticks = cluster.setup().bound.is_some() && is_free(cluster, who);
            if ticks { cluster.tick(who).map(drop) } else { Ok(()) }
        }
        26 | 27 => cluster.round(node(cluster, choices)),
        28 => cluster.drain(node(cluster, choices)),
        29 => cluster.timeout(node(cluster, choices)),
        30 => lose(cluster, choices),
        _ => match (worker(cluster, choices), choices.below(8)) {
            (Some(who), 7) if is_free(cluster, who) => cluster.end(who).map(|_| ()),
            (Some(who), 3..7) => take_back(cluster, who),
            _ => deliver(cluster, choices),
        },
    }
}

/// Takes back the latest signal of a worker.
fn take_back(cluster: &mut Cluster, who: NodeWorker) -> Result<(), Violation> {
    let Some(intent) = cluster.latest_intent(who).cloned() else { return Ok(()) };
    cluster.take_back(who, intent.id, &intent.keys, intent.clocks.start.0..intent.clocks.end.0)
}

/// Delivers the first message of one of the pairs that have any.
fn deliver(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    let loaded = cluster.network().loaded();
    let Some(&(from, to)) = loaded.get(choices.below(loaded.len() as u64) as usize) else {
        return cluster.round(node(cluster, choices));
    };
    cluster.advance_time(choices.below(4) * 100_000);
    cluster.deliver(from, to).map(|_| ())
}

fn access(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    let Some(who) = worker(cluster, choices) else { return Ok(()) };
    if !is_free(cluster, who) {
        return deliver(cluster, choices);
    }
    let keys = [key(choices)];
    let op = match choices.below(8) {
        0..3 => cluster.pull(who, &keys),
        3..6 => cluster.push(who, &keys),
        // One key is enough for sets: pushes to the others must stay.
        6 => cluster.set(who, &[Key(1)]),
        _ => match choices.below(6) {
            // Drivers refuse it there: a copy that a localize holds would not end in time.
            0..3 if cluster.setup().keeps => cluster.renew(who, &keys),
            0..3 => cluster.localize(who, &keys),
            3 => cluster.renew(who, &keys),
            4 if cluster.setup().bound.is_some() => return cluster.tick(who).map(|_| ()),
            _ => cluster.wait_sync(who),
        },
    }?;
    if choices.flag() {
        cluster.block(who, op);
    }
    Ok(())
}

/// Makes a node vanish, or one of the others learn of it, if allowed.
fn lose(cluster: &mut Cluster, choices: &mut Choices<'_>) -> Result<(), Violation> {
    if cluster.losses().gone().len() < cluster.setup().losses {
        let node = node(cluster, choices);
        cluster.vanish(node, |_, count| choices.below(count as u64 + 1) as usize);
        return Ok(());
    }
    let untold = cluster.untold();
    match untold.get(choices.below(untold.len() as u64) as usize) {
        Some(&(survivor, gone)) => cluster.tell_lost(survivor, gone),
        None => deliver(cluster, choices),
    }
}

/// Returns the workers that have neither ended nor vanished.
fn working(cluster: &Cluster) -> Vec<NodeWorker> {
    let ended = |who: &NodeWorker| cluster.member(who.0).workers[who.1.index()].ended;
    let gone = |who: &NodeWorker| cluster.losses().is_gone(who.0);
    cluster.workers().filter(|who| !ended(who) && !gone(who)).collect()
}

fn worker(cluster: &Cluster, choices: &mut Choices<'_>) -> Option<NodeWorker> {
    let working = working(cluster);
    working.get(choices.below(working.len() as u64) as usize).copied()
}

fn is_free(cluster: &Cluster, who: NodeWorker) -> bool {
    cluster.member(who.0).workers[who.1.index()].blocked.is_none()
}

/// Chooses a node that has not vanished.
fn node(cluster: &Cluster, choices: &mut Choices<'_>) -> NodeId {
    let living: Vec<NodeId> = cluster.living().collect();
    living[choices.below(living.len() as u64) as usize]
}

/// Chooses a key, mostly one of the first two: unshared keys prove nothing.
fn key(choices: &mut Choices<'_>) -> Key {
    Key([0, 0, 0, 1, 1, 1, 2, 3][choices.below(8) as usize])
}
