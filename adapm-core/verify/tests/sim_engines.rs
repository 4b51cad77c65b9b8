//! Bare engines with costs: nothing is lost, runs repeat, and the model's limits are right.

use core::time::Duration;
use std::collections::BTreeMap;

use adapm_core::policy::System;
use adapm_core::slot::State;
use adapm_core::store::Store as _;
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_verify::rng::Rng;
use adapm_verify::sim::engines::{Engines, EnginesConfig, LightStore, Machine, Totals};
use adapm_verify::sim::{NodeWorker, Perfect, Program, Simulator, Step, Then};
use adapm_verify::store_suite;

store_suite!(one_thread light, |layout: &Layout| LightStore::new(layout.clone()));

const KEYS: u64 = 400;
const EXTENTS: [(u64, usize); 2] = [(KEYS - 10, 1), (10, 3)];
const WORKERS: usize = 2;
const STEPS: u64 = 60;
const COMPUTE: Duration = Duration::from_micros(700);

/// A program in which every worker signals, reads, computes, writes and advances; a fifth of its
/// accesses go to four hot keys.
struct Random {
    lanes: BTreeMap<NodeWorker, (Rng, Vec<Step>, u64)>,
    pushed: BTreeMap<Key, i64>,
    localizes: bool,
}

impl Random {
    fn new(seed: u64, localizes: bool) -> Self {
        let lane = |who: NodeWorker| {
            (Rng::new(seed ^ u64::from(who.0.0) << 8 ^ u64::from(who.1.0)), Vec::new(), 0)
        };
        let places = (0..8).flat_map(|node| {
            (0..WORKERS as u16).map(move |worker| (NodeId(node), WorkerId(worker)))
        });
        Self {
            lanes: places.map(|who| (who, lane(who))).collect(),
            pushed: BTreeMap::new(),
            localizes,
        }
    }
}

impl Program for Random {
    fn next(&mut self, _now: Instant, who: NodeWorker) -> Option<Step> {
        let (rng, steps, done) = self.lanes.get_mut(&who)?;
        if steps.is_empty() && *done <= STEPS {
            *done += 1;
            if *done > STEPS {
                steps.push(Step::End);
                return steps.pop();
            }
            let mut keys: Vec<Key> = (0..5)
                .map(|_| Key(if rng.chance(20) { rng.number(0..4) } else { rng.number(4..KEYS) }))
                .collect();
            keys.sort_unstable();
            keys.dedup();
            for key in &keys {
                *self.pushed.entry(*key).or_default() += 1;
            }
            // Last in, first out.
            steps.push(Step::Advance(1));
            steps.push(Step::Push(keys.clone(), Then::GoOn));
            steps.push(Step::Compute(COMPUTE));
            steps.push(Step::Pull(keys.clone(), Then::Wait));
            if self.localizes && rng.chance(10) {
                steps.push(Step::Localize(keys.clone(), Then::GoOn));
            }
            steps.push(Step::Intent { keys, ahead: rng.number(0..2), clocks: 2 });
        }
        steps.pop()
    }
}

struct Ran {
    simulator: Simulator<Engines, Perfect>,
    program: Random,
    finished: Instant,
}

impl Ran {
    fn totals(&self) -> Totals {
        self.simulator.under_test().totals()
    }

    fn remote_share(&self) -> f64 {
        let totals = self.totals();
        totals.remote as f64 / (totals.local + totals.waited + totals.remote) as f64
    }
}

fn run(system: System, nodes: usize, machine: Machine, seed: u64) -> Ran {
    run_with(system, nodes, machine, seed, true)
}

fn run_with(system: System, nodes: usize, machine: Machine, seed: u64, localizes: bool) -> Ran {
    let layout = Layout::sparse(&EXTENTS).expect("there are keys");
    run_over(layout, system, nodes, machine, seed, localizes)
}

fn run_over(
    layout: Layout,
    system: System,
    nodes: usize,
    machine: Machine,
    seed: u64,
    localizes: bool,
) -> Ran {
    let config = EnginesConfig {
        nodes,
        workers: WORKERS,
        layout,
        element_bytes: 1_000,
        keys_per_key: 1,
        machine,
        clock: Clock(0),
        round_nanos: None,
    };
    let engines =
        Engines::new(config, |_| system.policy(WORKERS)).expect("the configuration is valid");
    let mut simulator = Simulator::new(engines, Perfect::new(machine.wire(), nodes, seed), seed);
    let mut program = Random::new(seed, localizes);
    let finished =
        simulator.run(&mut program, Duration::from_secs(1_000)).expect("nothing is wrong");
    Ran { simulator, program, finished }
}

#[test]
fn what_was_pushed_is_in_the_main_copies() {
    let layouts = [Layout::sparse(&EXTENTS), Layout::dense(&EXTENTS)];
    for (system, layout) in System::ALL
        .into_iter()
        .flat_map(|system| layouts.clone().map(|layout| (system, layout.expect("there are keys"))))
    {
        let ran = run_over(layout, system, 4, Machine::PAPER, 3, true);
        let shared = ran.simulator.under_test().shared();
        let mut found = BTreeMap::new();
        for node in (0..4).map(NodeId) {
            shared.store(node).visit(Key(0)..Key(KEYS), |key, slot| {
                if slot.packed.state() == State::Main && slot.value[0] != 0 {
                    assert!(
                        slot.value.iter().all(|element| *element == slot.value[0]),
                        "{system} {key}"
                    );
                    assert_eq!(
                        found.insert(key, slot.value[0]),
                        None,
                        "{system}: two owners of {key}"
                    );
                }
            });
        }
        assert_eq!(found, ran.program.pushed, "{system}");
    }
}

#[test]
fn equal_seeds_give_equal_runs_and_other_seeds_other_ones() {
    let trace = |seed| run(System::Adapm, 4, Machine::ETHERNET, seed).simulator.trace();
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn one_node_sends_nothing_and_takes_what_computation_takes() {
    for system in System::ALL {
        let ran = run(system, 1, Machine::PAPER, 5);
        let totals = ran.totals();
        assert_eq!(
            (totals.messages, totals.bytes, totals.waited, totals.remote),
            (0, 0, 0, 0),
            "{system}"
        );
        assert_eq!(
            ran.finished,
            Instant::ZERO.plus_nanos(STEPS * COMPUTE.as_nanos() as u64),
            "{system}"
        );
    }
}

#[test]
fn on_an_ideal_machine_remote_access_takes_no_time() {
    let ran = run_with(System::Classic, 4, Machine::IDEAL, 5, false);
    assert_eq!(ran.finished, Instant::ZERO.plus_nanos(STEPS * COMPUTE.as_nanos() as u64));
    assert!(ran.remote_share() > 0.5);
}

#[test]
fn a_static_partition_is_remote_for_all_but_one_of_n_accesses() {
    for nodes in [2, 4, 8] {
        let remote = run_with(System::Classic, nodes, Machine::PAPER, 7, false).remote_share();
        let expected = (nodes - 1) as f64 / nodes as f64;
        assert!((remote - expected).abs() < 0.03, "{nodes} nodes: {remote} for {expected}");
    }
}

#[test]
fn slower_wires_and_machines_take_longer() {
    let finished = |machine| run(System::Classic, 4, machine, 9).finished;
    let slow_wire = Machine { latency_nanos: 2 * Machine::PAPER.latency_nanos, ..Machine::PAPER };
    let slow_channel =
        Machine { message_nanos: 10 * Machine::PAPER.message_nanos, ..Machine::PAPER };
    let base = finished(Machine::PAPER);
    assert!(finished(slow_wire) > base);
    assert!(finished(slow_channel) > base);
    assert!(finished(Machine::IDEAL) < base);
}

#[test]
fn what_is_shared_is_listed_while_it_is() {
    // A localize that brought a replica lasts for many rounds: there is none here.
    let ran = run_with(System::Adapm, 4, Machine::PAPER, 11, false);
    let shared = ran.simulator.under_test().shared();
    for node in (0..4).map(NodeId) {
        // All intents have expired with their workers.
        assert_eq!(
            (shared.store(node).shared_len(), shared.store(node).replicas()),
            (0, 0),
            "{node}"
        );
    }
    let local: u64 = (0..4).map(|node| shared.store(NodeId(node)).local_len(KEYS)).sum();
    assert_eq!(local, 4 * KEYS, "as many main copies arrived somewhere as left elsewhere");
    assert!(ran.totals().engines.replicas > 0 && ran.totals().engines.relocations > 0);
}
