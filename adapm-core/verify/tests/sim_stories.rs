//! Liveness, told one story at a time: whatever goes wrong, once it heals everything asked for
//! ends, and no node waits without a reason that can be named.

use core::time::Duration;

use adapm_core::link::LinkConfig;
use adapm_core::policy::{Patience, System};
use adapm_core::slot::State;
use adapm_core::{Instant, Key, NodeId, WorkerId};
use adapm_verify::Setup;
use adapm_verify::sim::checked::{CheckedCluster, Costs, RunFailure};
use adapm_verify::sim::faults::{Fault, FaultyLinks, Plan, When};
use adapm_verify::sim::{
    Fact, Failure, FaultKind, NodeWorker, Program, Script, Simulator, Step, Then, WireConfig,
};

type Simulation = Simulator<CheckedCluster, FaultyLinks>;

/// Latency of a message; a peer is given up after 200 ms of silence, and suspected after 40.
const LATENCY: Duration = Duration::from_millis(1);
const DEAD_AFTER: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(10);
const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);

/// Creates three nodes with one worker each.
fn simulation(system: System) -> Simulation {
    with_window(system, 4_096)
}

fn with_window(system: System, window_packets: usize) -> Simulation {
    of(Setup::new(system, 3, 1, 8), window_packets)
}

fn of(setup: Setup, window_packets: usize) -> Simulation {
    let wire = WireConfig {
        latency_nanos: LATENCY.as_nanos() as u64,
        jitter_nanos: 0,
        bytes_per_second: 0,
    };
    let mut link = LinkConfig::with_dead_after(DEAD_AFTER);
    link.window_packets = window_packets;
    let costs = Costs { access_nanos: 0, input_nanos: 10_000 };
    Simulator::new(CheckedCluster::new(setup, costs), FaultyLinks::new(link, wire, 3, 7), 7)
}

fn worker(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

/// Returns a key whose home is `node`.
fn key_of(simulation: &Simulation, node: NodeId) -> Key {
    simulation.under_test().cluster().setup().key_of(node)
}

fn at(millis: u64, fault: Fault) -> Plan {
    Plan(vec![(When::At(Instant::from_micros(1_000 * millis)), fault)])
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Runs to the end and checks the cluster at rest. Returns the time when the last worker was done.
fn run(simulation: &mut Simulation, mut program: Script) -> Result<Instant, RunFailure> {
    let end = simulation.run(&mut program, PATIENCE)?;
    simulation.under_test_mut().check_at_rest().map_err(Failure::Violation)?;
    Ok(end)
}

#[track_caller]
fn assert_between(end: Instant, from: Duration, to: Duration) {
    let end = Duration::from_nanos(end.nanos());
    assert!(from <= end && end < to, "it ended after {end:?}, not within {from:?}..{to:?}");
}

#[test]
fn a_one_way_partition_heals_and_the_parked_pull_ends() {
    let mut simulation = simulation(System::Adapm);
    let key = key_of(&simulation, N0);
    let asks = [
        Step::Compute(millis(10)),
        Step::Intent { keys: vec![key], ahead: 0, clocks: 5 },
        // The intent leaves with the next round; its grant does not get through.
        Step::Compute(millis(2)),
        Step::Pull(vec![key], Then::Wait),
    ];
    simulation.plan(at(10, Fault::OneWay(N0, N1, millis(30))));
    let end =
        run(&mut simulation, Script::default().with(worker(N1), asks)).expect("nothing is wrong");
    assert_between(end, millis(40), millis(43));
    let cluster = simulation.under_test().cluster();
    assert_eq!(
        cluster.member(N1).node.engine().stats().waited,
        1,
        "the pull waited for the copy on its way"
    );
    assert_eq!(cluster.state(N1, key), State::Main);
}

#[test]
fn a_partition_longer_than_suspicion_replaces_the_pipes_and_loses_nothing() {
    let mut simulation = simulation(System::Classic);
    let key = key_of(&simulation, N0);
    let pushes = |count| (0..count).map(move |_| Step::Push(vec![key], Then::GoOn));
    simulation.plan(at(5, Fault::Partition(vec![N0], millis(90))));
    let program = Script::default()
        .with(worker(N1), [Step::Compute(millis(10))].into_iter().chain(pushes(15)))
        .with(worker(N2), [Step::Compute(millis(30))].into_iter().chain(pushes(15)));
    run(&mut simulation, program).expect("nothing is wrong");
    let cluster = simulation.under_test().cluster();
    assert_eq!(cluster.oracle().pushes(key), 30);
    assert!(simulation.now() >= Instant::from_micros(95_000), "nothing gets through before");
}

#[test]
fn a_barrier_waits_for_a_partition_to_heal_and_no_longer() {
    let mut simulation = simulation(System::Adapm);
    simulation.plan(at(1, Fault::Partition(vec![N2], millis(50))));
    let meets = || [Step::Compute(millis(10)), Step::Barrier];
    let program = Script::default()
        .with(worker(N0), meets())
        .with(worker(N1), meets())
        .with(worker(N2), meets());
    let end = run(&mut simulation, program).expect("nothing is wrong");
    assert_between(end, millis(51), millis(56));
}

#[test]
fn an_owner_that_stands_still_answers_when_it_goes_on() {
    let mut simulation = simulation(System::Classic);
    let key = key_of(&simulation, N0);
    simulation.plan(at(5, Fault::Pause(N0, millis(100))));
    let asks = [
        Step::Compute(millis(10)),
        Step::Push(vec![key], Then::GoOn),
        Step::Pull(vec![key], Then::Wait),
    ];
    let program = Script::default().with(worker(N1), asks.clone()).with(worker(N2), asks);
    let end = run(&mut simulation, program).expect("nothing is wrong");
    assert_between(end, millis(105), millis(112));
}

#[test]
fn a_reset_in_the_middle_of_a_relocation_keeps_one_owner() {
    let mut simulation = simulation(System::Lapse);
    let key = key_of(&simulation, N0);
    let program = Script::default()
        .with(worker(N0), [Step::Push(vec![key], Then::Wait)])
        .with(worker(N1), [Step::Compute(millis(10)), Step::Localize(vec![key], Then::Wait)]);
    // Asked at 10 ms, granted at 11; at 11.5 the main copy is in flight.
    let strikes = When::At(Instant::from_micros(11_500));
    simulation.plan(Plan(vec![(strikes, Fault::Reset(N0, N1))]));
    run(&mut simulation, program).expect("nothing is wrong");
    assert_eq!(simulation.coverage().count(FaultKind::Reset, Fact::RelocationAway), 1);
    assert_eq!(simulation.under_test().cluster().owner(key), Some(N1));
}

#[test]
fn a_slow_owner_delays_its_askers_only() {
    let mut simulation = simulation(System::Classic);
    let (slow, fast) = (key_of(&simulation, N0), key_of(&simulation, N2));
    // It takes 10 ms for work that others do in 10 us.
    simulation.plan(at(0, Fault::Slow(N0, 1_000, millis(1_000))));
    let asks = |key| (0..5).map(move |_| Step::Pull(vec![key], Then::Wait));
    let end = run(&mut simulation, Script::default().with(worker(N1), asks(fast)))
        .expect("nothing is wrong");
    assert_between(end, millis(10), millis(15));
    let start = simulation.now().nanos();
    let end = run(&mut simulation, Script::default().with(worker(N1), asks(slow)))
        .expect("nothing is wrong");
    assert_between(Instant::from_nanos(end.nanos() - start), millis(60), millis(80));
}

/// Rounds with a fast node are short and go on while a slow one owes an answer; keys of the slow
/// one are asked for in time all the same (AdaPM §4.2.1).
#[test]
fn keys_of_a_slow_owner_come_in_time() {
    const CLOCKS: usize = 600;
    const AHEAD: usize = 200;
    let mut simulation = of(Setup::new(System::Adapm, 3, 1, 4 * CLOCKS as u64), 4_096);
    let setup = simulation.under_test().cluster().setup().clone();
    let all: Vec<Key> = simulation.under_test().cluster().keys().collect();
    let keys_of =
        |node| all.iter().copied().filter(|key| setup.home(*key) == node).collect::<Vec<_>>();
    let (slow, fast) = (keys_of(N0), keys_of(N2));
    let keys: Vec<_> =
        slow.into_iter().zip(fast).map(|(slow, fast)| vec![slow, fast]).take(CLOCKS).collect();
    // It takes 30 ms for work that others do in 10 us.
    simulation.plan(at(0, Fault::Slow(N0, 3_000, millis(5_000))));
    let intent = |clock: usize, ahead: usize| Step::Intent {
        keys: keys[clock].clone(),
        ahead: ahead as u64,
        clocks: 1,
    };
    let mut steps: Vec<Step> = (0..AHEAD).map(|clock| intent(clock, clock)).collect();
    for (clock, keys) in keys.iter().enumerate() {
        steps.extend((clock + AHEAD < CLOCKS).then(|| intent(clock + AHEAD, AHEAD)));
        let access = [Step::Pull(keys.clone(), Then::Wait), Step::Compute(millis(1))];
        steps.extend(access.into_iter().chain([Step::Advance(1)]));
    }
    let end =
        run(&mut simulation, Script::default().with(worker(N1), steps)).expect("nothing is wrong");
    // The first keys are waited for.
    assert_between(end, millis(600), millis(700));
}

/// AdaPM §A.3: nobody is more than the staleness ahead of the slowest.
#[test]
fn a_paused_node_stops_the_others_two_ticks_later_under_ssp() {
    a_paused_node_stops_the_others(System::Ssp { staleness: 2 }, 2);
}

/// OSDI'14 §3.5: nobody is more than the delay ahead of the slowest.
#[test]
fn a_paused_node_stops_the_others_two_ticks_later_under_bounded_delay() {
    a_paused_node_stops_the_others(System::BoundedDelay { delay: 2 }, 2);
}

/// Runs a pause of one node, during which the others pass as many ticks as the bound allows, and
/// after which all go on.
fn a_paused_node_stops_the_others(system: System, bound: usize) {
    const CLOCKS: usize = 12;
    const PAUSED_AT: u64 = 23;
    const LASTS: u64 = 100;
    let mut simulation = simulation(system);
    simulation.plan(at(PAUSED_AT, Fault::Pause(N2, millis(LASTS))));
    let keys = vec![key_of(&simulation, N0)];
    let clock = [
        Step::Compute(millis(5)),
        Step::Pull(keys.clone(), Then::Wait),
        Step::Push(keys, Then::Wait),
        Step::Tick,
    ];
    let (mut taken, mut passed) = ([0_usize; 3], [const { Vec::new() }; 3]);
    let mut program = |now: Instant, (node, _): NodeWorker| {
        let taken = &mut taken[node.index()];
        if *taken > 0 && taken.is_multiple_of(clock.len()) {
            passed[node.index()].push(Duration::from_nanos(now.nanos()));
        }
        *taken += 1;
        let step = clock[(*taken - 1) % clock.len()].clone();
        (*taken <= CLOCKS * clock.len()).then_some(step)
    };
    let program: &mut dyn Program = &mut program;
    simulation.run(program, PATIENCE).expect("nothing is wrong");
    simulation.under_test_mut().check_at_rest().expect("nothing is wrong");
    let [n0, n1, n2] = passed;
    let until = |passed: &[Duration], at| passed.iter().filter(|time| **time < at).count();
    // Its next clock ends after the pause.
    let slowest = until(&n2, millis(PAUSED_AT));
    assert!((1..CLOCKS / 2).contains(&slowest), "{n2:?}");
    assert_eq!(until(&n2, millis(PAUSED_AT + LASTS)), slowest, "{n2:?}");
    for others in [n0, n1] {
        assert_eq!(until(&others, millis(PAUSED_AT + LASTS)), slowest + bound, "{others:?}");
        // What it may pass it passes without a wait.
        assert_eq!(until(&others, millis(PAUSED_AT + 30)), slowest + bound, "{others:?}");
        assert_eq!(others.len(), CLOCKS, "{others:?}");
    }
    assert_eq!(n2.len(), CLOCKS, "{n2:?}");
}

#[test]
fn a_way_without_room_fills_and_empties() {
    let mut simulation = with_window(System::Classic, 1);
    let key = key_of(&simulation, N0);
    let keys: Vec<Key> = simulation.under_test().cluster().keys().collect();
    let home = |key: &Key| simulation.under_test().cluster().setup().home(*key) == N0;
    let keys: Vec<Key> = keys.into_iter().filter(home).collect();
    let pushes = (0..30).flat_map(|_| keys.clone()).map(|key| Step::Push(vec![key], Then::GoOn));
    simulation.plan(at(3, Fault::Reset(N0, N1)));
    let program = Script::default()
        .with(worker(N1), pushes)
        .with(worker(N2), [Step::Pull(vec![key], Then::Wait)]);
    run(&mut simulation, program).expect("nothing is wrong");
}

/// A peer that is silent for the dead time is lost on every live side. Two live nodes that give
/// each other up are not simulated: no invariant spans two clusters, so faults in these runs heal
/// in time.
#[test]
fn a_node_that_vanishes_is_lost_when_the_dead_time_has_passed() {
    let mut simulation = simulation(System::Classic);
    let key = key_of(&simulation, N2);
    simulation.plan(at(50, Fault::Vanish(N2)));
    let asks = [Step::Compute(millis(60)), Step::Pull(vec![key], Then::Wait)];
    let program = Script::default()
        .with(worker(N0), asks.clone())
        .with(worker(N1), asks)
        .with(worker(N2), [Step::Compute(millis(500))]);
    let end = run(&mut simulation, program).expect("nothing is wrong");
    // The last heartbeat before it vanished came up to 10 ms earlier.
    assert_between(end, millis(40) + DEAD_AFTER, millis(55) + DEAD_AFTER);
    let losses = simulation.under_test().cluster().losses();
    assert!(losses.knows(N0, N2) && losses.knows(N1, N2));
}

#[test]
fn who_waits_for_ever_is_told_by_name() {
    let mut simulation = simulation(System::Adapm);
    let program =
        Script::default().with(worker(N0), [Step::Barrier]).with(worker(N2), [Step::Barrier]);
    let Err(Failure::Stuck(what)) = run(&mut simulation, program) else { panic!("n1 never comes") };
    assert!(
        what.contains("n0.w0 waits for Barrier") && what.contains("n2.w0 waits for Barrier"),
        "{what}"
    );
    assert!(!what.contains("n1.w0"), "{what}");
}

/// However often a key is changed, and wherever: once its patience, that of its owner and the ways
/// are over, every copy has every change, though nobody waits for any.
#[test]
fn changes_reach_every_copy_in_time_by_themselves() {
    let patience = Patience::USUAL.nanos;
    // Changes are due an eighth of the time later at most, rounds are up to two milliseconds apart;
    // a change goes to the owner, which tells the others, which ask and are answered.
    let slack = 2 * (Duration::from_nanos(patience) / 8 + millis(2)) + millis(2) + 4 * LATENCY;
    for pause in [Duration::from_micros(50), millis(3), millis(30)] {
        let mut simulation = simulation(System::Adapm);
        let keys = [0, 3, 6].map(Key);
        let mut program = Script::default();
        for node in [N0, N1, N2] {
            let intent = Step::Intent { keys: keys.to_vec(), ahead: 0, clocks: 1_000 };
            let before = Step::Compute(100 * Duration::from_nanos(patience));
            let first = Step::Push(keys.to_vec(), Then::Wait);
            program = program.with(worker(node), [intent, first, before]);
            let pushes =
                (0..20).flat_map(|_| [Step::Push(keys.to_vec(), Then::Wait), Step::Compute(pause)]);
            let calm = Step::Compute(Duration::from_nanos(patience * 9 / 8) + slack);
            program = program.with(worker(node), pushes.chain([calm]));
        }
        run(&mut simulation, program).expect("every replica equals its main copy");
        let cluster = simulation.under_test().cluster();
        for node in [N0, N1, N2] {
            let stats = cluster.member(node).node.engine().stats();
            let most = patience + slack.as_nanos() as u64;
            let waited = (stats.delays.max, stats.staleness.max);
            assert!(waited.0 <= most && waited.1 <= most, "{pause:?}, {node}: {waited:?} ns");
            assert!(stats.delta_updates.count() > 0, "{pause:?}: {node} holds replicas");
        }
    }
}
