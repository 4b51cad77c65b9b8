//! One run: its program and its costs.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use adapm_core::policy::{Supply, System};
use adapm_core::stats::ValueBytes;
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_verify::sim::engines::{Engines, EnginesConfig, Machine, SharedState, Totals};
use adapm_verify::sim::{NodeWorker, Perfect, Program, Simulator, Step, Then};

use crate::pattern::{KEYS, NODES, Pattern};

/// The parameters that a claim varies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) clocks: u64,
    /// Clocks from a signal to the access.
    pub(crate) ahead: u64,
    /// Keys accessed more often than this many times the mean are hot, where a system has some.
    pub(crate) hot: u64,
}

impl Default for Setting {
    fn default() -> Self {
        // NuPS's untuned choice (AdaPM §5.3).
        Self { clocks: 400, ahead: 20, hot: 100 }
    }
}

/// The costs of a run, for all nodes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) nanos: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Those before the first clock included.
    pub(crate) value_bytes: ValueBytes,
    /// Keys read.
    pub(crate) local: u64,
    pub(crate) waited: u64,
    pub(crate) remote: u64,
    pub(crate) relocations: u64,
    pub(crate) replicas: u64,
    /// Integral of the number of replicas over time.
    pub(crate) replica_nanos: u128,
    /// The mean.
    pub(crate) staleness_nanos: u64,
}

impl Cost {
    pub(crate) fn reads(&self) -> u64 {
        self.local + self.waited + self.remote
    }

    pub(crate) fn local_share(&self) -> f64 {
        self.local as f64 / self.reads() as f64
    }

    /// Returns the mean over time.
    pub(crate) fn replicas_held(&self) -> f64 {
        self.replica_nanos as f64 / self.nanos as f64
    }
}

/// Runs `pattern` under `system`.
pub(crate) fn cost(pattern: Pattern, system: System, setting: Setting) -> Cost {
    let machine = Machine::ETHERNET;
    let on_a_node = pattern.workers().count() / NODES;
    let config = EnginesConfig {
        nodes: NODES,
        workers: on_a_node,
        // Sparse: main copies are created at their homes on first access.
        layout: Layout::sparse(&[(KEYS, 1)]).expect("there are keys"),
        element_bytes: 400,
        keys_per_key: 1,
        machine,
        clock: Clock(0),
        round_nanos: None,
    };
    let engines =
        Engines::new(config, |_| system.policy(on_a_node)).expect("the configuration is valid");
    let shared = engines.shared();
    let mut simulator = Simulator::new(engines, Perfect::new(machine.wire(), NODES, 0), 0);
    let mut workers = Workers::new(pattern, system, setting, shared);
    let end = simulator.run(&mut workers, Duration::from_secs(1_000)).expect("nothing is wrong");
    let totals = simulator.under_test().totals();
    let before = workers.shared.totals().first().copied().unwrap_or_default();
    let since = |count: fn(&Totals) -> u64| count(&totals) - count(&before);
    let refreshes = since(|totals| totals.engines.staleness.count());
    Cost {
        nanos: end.nanos_since(workers.began),
        messages: since(|totals| totals.messages),
        bytes: since(|totals| totals.bytes),
        value_bytes: totals.engines.value_bytes,
        local: since(|totals| totals.local),
        waited: since(|totals| totals.waited),
        remote: since(|totals| totals.remote),
        relocations: since(|totals| totals.engines.relocations),
        replicas: since(|totals| totals.engines.replicas),
        replica_nanos: workers.replica_nanos,
        staleness_nanos: since(|totals| totals.engines.staleness.sum) / refreshes.max(1),
    }
}

/// All workers.
struct Workers {
    pattern: Pattern,
    system: System,
    setting: Setting,
    /// Keys that every node holds for the whole run.
    replicated: BTreeSet<Key>,
    shared: Rc<SharedState>,
    lanes: BTreeMap<NodeWorker, Lane>,
    /// Time when the first worker began to work.
    began: Instant,
    has_begun: bool,
    looked: Instant,
    replica_nanos: u128,
}

#[derive(Default)]
struct Lane {
    clock: u64,
    is_ready: bool,
    steps: VecDeque<Step>,
}

impl Workers {
    fn new(pattern: Pattern, system: System, setting: Setting, shared: Rc<SharedState>) -> Self {
        Self {
            pattern,
            system,
            setting,
            replicated: replicated(pattern, system, setting),
            shared,
            lanes: pattern.workers().map(|who| (who, Lane::default())).collect(),
            began: Instant::ZERO,
            has_begun: false,
            looked: Instant::ZERO,
            replica_nanos: 0,
        }
    }

    /// Counts the replicas held since the last call.
    fn look(&mut self, now: Instant) {
        let held: u64 =
            (0..NODES as u16).map(|node| self.shared.store(NodeId(node)).replicas()).sum();
        self.replica_nanos += u128::from(now.nanos_since(self.looked)) * u128::from(held);
        self.looked = now;
    }

    /// Returns the steps before the first clock: the replicas that are held for the whole run.
    fn prepare(&self, who: NodeWorker) -> VecDeque<Step> {
        let supply = self.system.supply();
        let mut steps = VecDeque::new();
        if !self.replicated.is_empty() {
            if who.1 == WorkerId(0) {
                let keys = self.replicated.iter().copied().collect();
                steps.push_back(Step::Intent { keys, ahead: 0, clocks: 1 << 40 });
            }
            steps.extend([Step::Compute(Duration::from_millis(100)), Step::Barrier]);
        } else if supply == Supply::Intent {
            steps.extend((0..self.setting.ahead).map(|ahead| self.signal(who, ahead, ahead)));
        }
        steps
    }

    fn signal(&self, who: NodeWorker, clock: u64, ahead: u64) -> Step {
        Step::Intent { keys: self.pattern.keys(who, clock), ahead, clocks: 1 }
    }

    /// Returns the steps of a worker at a clock, signals of later clocks first.
    fn work(&self, now: Instant, who: NodeWorker, clock: u64) -> VecDeque<Step> {
        let Setting { clocks, ahead, .. } = self.setting;
        let (mut steps, supply) = (VecDeque::new(), self.system.supply());
        let keys = self.pattern.keys(who, clock);
        let computing =
            Step::Compute(self.pattern.computing(who, clock, now.nanos_since(self.began)));
        let localized_ahead = self.pattern.localized_ahead();
        if localized_ahead == 0 {
            steps.push_back(computing.clone());
        }
        if supply.localizes() && clock + localized_ahead < clocks {
            let mut keys = self.pattern.keys(who, clock + localized_ahead);
            keys.retain(|key| !self.replicated.contains(key));
            if !keys.is_empty() {
                steps.push_back(Step::Localize(keys, Then::GoOn));
            }
        } else if supply == Supply::Intent && clock + ahead < clocks {
            steps.push_back(self.signal(who, clock + ahead, ahead));
        }
        steps.push_back(Step::Pull(keys.clone(), Then::Wait));
        if localized_ahead > 0 {
            steps.push_back(computing);
        }
        steps.extend([Step::Push(keys, Then::Wait), Step::Advance(1)]);
        if self.system.bound().is_some()
            && (clock + 1).is_multiple_of(self.pattern.clocks_per_tick())
        {
            steps.push_back(Step::Tick);
        }
        steps
    }
}

/// Returns the keys that every node holds under `system`: all of them, or those accessed more often
/// than [`Setting::hot`] times the mean.
fn replicated(pattern: Pattern, system: System, setting: Setting) -> BTreeSet<Key> {
    let supply = system.supply();
    // These workloads have no samples to partition: what is hot is the same for all nodes.
    if !supply.has_hot_keys() && supply != Supply::Partition {
        let all = if supply.lasts_the_run() { KEYS } else { 0 };
        return (0..all).map(Key).collect();
    }
    let mut counts: BTreeMap<Key, u64> = BTreeMap::new();
    for who in pattern.workers() {
        let keys = (0..setting.clocks).flat_map(|clock| pattern.keys(who, clock));
        keys.for_each(|key| *counts.entry(key).or_default() += 1);
    }
    let all: u64 = counts.values().sum();
    let hot = counts.into_iter().filter(|(_, count)| count * KEYS > setting.hot * all);
    hot.map(|(key, _)| key).collect()
}

impl Program for Workers {
    fn next(&mut self, now: Instant, who: NodeWorker) -> Option<Step> {
        let lane = self.lanes.get_mut(&who)?;
        if let Some(step) = lane.steps.pop_front() {
            if self.has_begun {
                self.look(now);
            }
            return Some(step);
        }
        if !std::mem::replace(&mut lane.is_ready, true) {
            let steps = self.prepare(who);
            self.lanes.get_mut(&who)?.steps = steps;
            return self.next(now, who);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            (self.began, self.looked) = (now, now);
            self.shared.want_totals();
        }
        self.look(now);
        let lane = self.lanes.get_mut(&who)?;
        let clock = lane.clock;
        lane.clock += 1;
        let steps = match clock.cmp(&self.setting.clocks) {
            std::cmp::Ordering::Less => self.work(now, who, clock),
            std::cmp::Ordering::Equal => [Step::End].into(),
            std::cmp::Ordering::Greater => return None,
        };
        let lane = self.lanes.get_mut(&who)?;
        lane.steps = steps;
        lane.steps.pop_front()
    }
}
