//! One workload under one system on one cluster, measured over a slice of an epoch: workers signal,
//! localize, read, compute, write and advance, all of them in a window that is measured.

use core::time::Duration;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use adapm_core::error::ConfigError;
use adapm_core::{Clock, Instant, Key, NodeId, WorkerId};
use adapm_verify::sim::engines::{
    EngineError, Engines, EnginesConfig, LightStore, Machine, SharedState, Totals,
};
use adapm_verify::sim::{Failure, NodeWorker, Perfect, Program, Simulator, Step, Then};
use rand::RngExt as _;
use rand::distr::Distribution as _;
use rand_distr::Binomial;
use serde::{Serialize, Serializer};

use crate::measure::simulate::pattern::{Facts, Pattern, Sampled, Work, pattern};
use crate::measure::simulate::{Chance, Contender, Task, chance};

/// A run to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The workload.
    pub task: Task,
    /// The system.
    pub contender: Contender,
    /// Number of nodes.
    pub nodes: usize,
    /// Workers of each node.
    pub workers: usize,
    /// The costs of machines and network.
    pub machine: Machine,
    /// Factor on the assumed time of a worker's computation, more than 0.
    pub compute: f64,
    /// From the start of one round to the next at the least, in nanoseconds. `None`: what engines
    /// do by themselves.
    pub round_nanos: Option<u64>,
    /// Seed of all choices.
    pub seed: u64,
}

/// The figures of a run. Those of an epoch are those of the slice, scaled. `simulate --json` writes
/// them: names are an interface.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Seconds of an epoch.
    #[serde(skip)]
    pub epoch_seconds: f64,
    /// Data points a second, all nodes together.
    #[serde(skip)]
    pub points_per_second: f64,
    /// Bytes that a node sends in an epoch.
    pub bytes_per_node: f64,
    /// Share of reads that were local.
    pub local_share: f64,
    /// Share of reads that waited for a copy on its way.
    pub waited_share: f64,
    /// Share of reads that asked another node.
    pub remote_share: f64,
    /// Relocations for a thousand data points.
    #[serde(rename = "relocations_per_1000_points")]
    pub relocations: f64,
    /// Replicas set up for a thousand data points.
    #[serde(rename = "replicas_per_1000_points")]
    pub replicas: f64,
    /// Mean time since the oldest change that a replica lacked when it was refreshed, in seconds.
    #[serde(rename = "staleness_mean")]
    pub staleness: f64,
    /// Mean time between two checks of a replica's owner (the measure of AdaPM §5.6), in seconds.
    #[serde(rename = "check_age_mean")]
    pub check_age: f64,
    /// Messages that a node sends in a second.
    #[serde(rename = "messages_per_node_and_second")]
    pub messages_per_node: f64,
    /// Share of time that a node's channels are busy.
    #[serde(rename = "channel_busy_share")]
    pub busy_share: f64,
    /// Share of a node's outgoing bandwidth in use; 0 if that is unlimited.
    #[serde(rename = "wire_busy_share")]
    pub wire_share: f64,
    /// Data points in the slice.
    pub points: u64,
    /// Reads in the slice.
    pub reads: u64,
    /// A fingerprint of everything that happened.
    #[serde(serialize_with = "hexadecimal")]
    pub trace: u64,
}

fn hexadecimal<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:016x}"))
}

/// An error of simulating.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The cluster cannot be.
    #[error("{0}")]
    Config(ConfigError),
    /// A defect of the model or of an engine.
    #[error("{0}")]
    Failed(Failure<EngineError>),
}

/// Runs the slice.
///
/// # Errors
/// If the cluster cannot be.
pub fn simulate(run: &Run) -> Result<Figures, SimulateError> {
    let mut pattern = pattern(run.task, run.nodes, run.contender.settles());
    let facts = pattern.facts().clone();
    let clock = Clock(TIMED_STEPS * facts.clocks);
    let config = EnginesConfig {
        nodes: run.nodes,
        workers: run.workers,
        layout: facts.layout.clone(),
        element_bytes: facts.element_bytes,
        keys_per_key: facts.keys_per_key,
        machine: run.machine,
        clock,
        round_nanos: run.round_nanos,
    };
    let dense = pattern.dense();
    let policy = |_| run.contender.policy(run.workers, (clock, facts.clocks), dense.clone());
    let engines = Engines::new(config, policy).map_err(SimulateError::Config)?;
    let shared = engines.shared();
    let links = Perfect::new(run.machine.wire(), run.nodes, run.seed);
    let mut simulator = Simulator::new(engines, links, run.seed);
    let mut trainer = Trainer::new(&mut *pattern, run, shared.clone());
    simulator.run(&mut trainer, PATIENCE).map_err(SimulateError::Failed)?;
    let steps = trainer.measured().unwrap_or(0);
    let totals = shared.totals();
    let [from, to] = totals.as_slice() else {
        unreachable!("a run that comes to rest was measured")
    };
    Ok(figures(run, &facts, steps, from, to, simulator.trace()))
}

fn figures(
    run: &Run,
    facts: &Facts,
    steps: u64,
    from: &Totals,
    to: &Totals,
    trace: u64,
) -> Figures {
    let points = steps * facts.points;
    let seconds = to.now.nanos_since(from.now) as f64 / 1e9;
    let nodes = run.nodes as f64;
    let of_epoch = facts.epoch_points as f64 / points as f64;
    let sum = |read: fn(&Totals) -> u64| (read(to) - read(from)) as f64;
    let reads = sum(|totals| totals.local + totals.waited + totals.remote);
    let share = |count: f64| if reads > 0.0 { count / reads } else { 0.0 };
    let per_thousand = |count: f64| count * facts.keys_per_key as f64 * 1_000.0 / points as f64;
    let mean = |count: f64, nanos: f64| if count > 0.0 { nanos / count / 1e9 } else { 0.0 };
    let bytes = sum(|totals| totals.bytes);
    Figures {
        epoch_seconds: seconds * of_epoch,
        points_per_second: points as f64 / seconds,
        bytes_per_node: bytes * of_epoch / nodes,
        local_share: share(sum(|totals| totals.local)),
        waited_share: share(sum(|totals| totals.waited)),
        remote_share: share(sum(|totals| totals.remote)),
        reads: reads as u64,
        relocations: per_thousand(sum(|totals| totals.engines.relocations)),
        replicas: per_thousand(sum(|totals| totals.engines.replicas)),
        staleness: mean(
            sum(|totals| totals.engines.staleness.count()),
            sum(|totals| totals.engines.staleness.sum),
        ),
        check_age: mean(
            sum(|totals| totals.engines.check_age.count()),
            sum(|totals| totals.engines.check_age.sum),
        ),
        messages_per_node: sum(|totals| totals.messages) / seconds / nodes,
        busy_share: sum(|totals| totals.busy_nanos) / 1e9 / seconds / nodes,
        wire_share: match run.machine.bytes_per_second {
            0 => 0.0,
            rate => bytes / seconds / nodes / rate as f64,
        },
        points,
        trace,
    }
}

/// Ticks in the window that is measured, of systems that have some.
const TICKS_MEASURED: u64 = 3;

/// The steps of a worker.
#[derive(Clone, Copy)]
struct Window {
    /// From one tick to the next, under a bound.
    tick_steps: Option<u64>,
    /// Before measuring begins.
    warm_up: u64,
    /// While measuring, on average.
    measured: u64,
}

impl Window {
    fn of(facts: &Facts, contender: Contender, nodes: usize) -> Self {
        let haste = contender.haste();
        let tick_steps = contender.ticks().then_some(facts.tick_steps);
        let warm_up = facts.warm_up.div_ceil(haste).max(tick_steps.unwrap_or(0));
        // One node costs little to simulate, and few workers give few steps.
        let more = if nodes == 1 { 8 } else { 1 };
        let least = tick_steps.map_or(2, |steps| TICKS_MEASURED * steps);
        let measured = (facts.measured * more).div_ceil(haste).max(least);
        Self { tick_steps, warm_up, measured }
    }
}

/// The workers of a run.
pub(super) struct Trainer<'a> {
    pattern: &'a mut dyn Pattern,
    contender: Contender,
    window: Window,
    nodes: usize,
    workers: usize,
    compute: f64,
    shared: Rc<SharedState>,
    stores: Vec<Rc<LightStore>>,
    /// Keys that a static choice replicates everywhere.
    hot: HashSet<Key>,
    hot_list: Vec<Key>,
    lanes: Vec<Lane>,
    /// Workers that have not warmed up.
    cold: usize,
    steps: u64,
    /// Steps done by all when measuring began, and ended.
    began: Option<u64>,
    ended: Option<u64>,
}

/// One worker.
struct Lane {
    chance: Chance,
    /// Steps drawn and not done, the next one first.
    works: VecDeque<Work>,
    /// The number of them that were localized.
    localized: usize,
    done: u64,
    out: VecDeque<Step>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Read,
    Write,
    Ended,
}

impl<'a> Trainer<'a> {
    pub(super) fn new(pattern: &'a mut dyn Pattern, run: &Run, shared: Rc<SharedState>) -> Self {
        let Run { contender, nodes, workers, compute, seed, .. } = *run;
        let has_hot = contender.has_hot_keys() && nodes > 1;
        let hot_list = if has_hot { pattern.hot() } else { Vec::new() };
        let window = Window::of(pattern.facts(), contender, nodes);
        let places = (0..nodes as u16)
            .flat_map(|node| (0..workers as u16).map(move |worker| (node, worker)));
        Self {
            stores: (0..nodes as u16).map(|node| shared.store(NodeId(node))).collect(),
            hot: hot_list.iter().copied().collect(),
            hot_list,
            lanes: places.map(|(node, worker)| Lane::new(chance(seed, node, worker))).collect(),
            cold: nodes * workers,
            steps: 0,
            began: None,
            ended: None,
            pattern,
            contender,
            window,
            nodes,
            workers,
            compute,
            shared,
        }
    }

    /// Steps done by all workers within the measured window.
    pub(super) fn measured(&self) -> Option<u64> {
        Some(self.ended? - self.began?)
    }

    /// Fills the worker's list of steps.
    fn fill(&mut self, who: NodeWorker) {
        let at = who.0.index() * self.workers + who.1.index();
        match self.lanes[at].stage {
            Stage::Start => {
                self.start(who, at);
                self.lanes[at].stage = Stage::Read;
            }
            Stage::Read if self.ended.is_some() => {
                self.lanes[at].out.push_back(Step::End);
                self.lanes[at].stage = Stage::Ended;
            }
            Stage::Read => {
                self.read(who, at);
                self.lanes[at].stage = Stage::Write;
            }
            Stage::Write => {
                self.write(who, at);
                self.lanes[at].stage = Stage::Read;
            }
            Stage::Ended => {}
        }
    }

    /// Workers start somewhere in a step.
    fn start(&mut self, who: NodeWorker, at: usize) {
        if who.1 == WorkerId(0) && !self.hot_list.is_empty() {
            let (keys, clocks) = (self.hot_list.clone(), u64::MAX);
            self.lanes[at].out.push_back(Step::Intent { keys, ahead: 0, clocks });
        }
        self.prepare(who, at);
        let lane = &mut self.lanes[at];
        let nanos = lane.works.front().map_or(0, |work| work.nanos);
        let wait = lane.chance.random_range(0..=nanos);
        lane.out.push_back(Step::Compute(Duration::from_nanos(wait)));
    }

    /// Draws steps ahead, signals intent for them or localizes their keys.
    fn prepare(&mut self, who: NodeWorker, at: usize) {
        let facts = self.pattern.facts();
        let (clocks, sample_keys) = (facts.clocks, facts.sample_keys);
        let ahead = if self.nodes == 1 { 1 } else { facts.ahead };
        while self.lanes[at].works.len() < ahead as usize {
            let lane = &mut self.lanes[at];
            let mut work = self.pattern.draw(who, &mut lane.chance);
            work.nanos = (work.nanos as f64 * self.compute) as u64;
            if !self.contender.samples_locally() {
                sample_naively(&mut work, sample_keys, &mut lane.chance);
            }
            if self.contender.signals() {
                if !work.lasting.is_empty() {
                    let keys = work.lasting.clone();
                    lane.out.push_back(Step::Intent { keys, ahead: 0, clocks: u64::MAX });
                }
                let ahead = lane.works.len() as u64 * clocks;
                lane.out.push_back(Step::Intent { keys: work.keys.clone(), ahead, clocks });
            }
            lane.works.push_back(work);
        }
        if let Some(ahead) = self.contender.localize_ahead() {
            self.localize(at, ahead as usize);
        }
    }

    fn localize(&mut self, at: usize, ahead: usize) {
        let lane = &mut self.lanes[at];
        while lane.localized < lane.works.len().min(ahead + 1) {
            let mut keys = lane.works[lane.localized].keys.clone();
            keys.retain(|key| !self.hot.contains(key));
            lane.localized += 1;
            if !keys.is_empty() {
                lane.out.push_back(Step::Localize(keys, Then::GoOn));
            }
        }
    }

    fn read(&mut self, who: NodeWorker, at: usize) {
        self.prepare(who, at);
        let lane = &mut self.lanes[at];
        let Some(work) = lane.works.front() else { return };
        lane.out.push_back(Step::Pull(work.keys.clone(), Then::Wait));
        lane.out.push_back(Step::Compute(Duration::from_nanos(work.nanos)));
    }

    fn write(&mut self, who: NodeWorker, at: usize) {
        let facts = self.pattern.facts();
        let clocks = facts.clocks;
        let Window { tick_steps, warm_up, measured } = self.window;
        let homed = facts.sample_keys / self.nodes as u64;
        let lane = &mut self.lanes[at];
        let Some(work) = lane.works.pop_front() else { return };
        lane.localized = lane.localized.saturating_sub(1);
        let mut keys = work.keys;
        let store = &self.stores[who.0.index()];
        sample_locally(&work.sampled, store, homed, facts.sample_keys, &mut lane.chance, &mut keys);
        lane.out.push_back(Step::Push(keys, Then::GoOn));
        lane.out.push_back(Step::Advance(clocks));
        lane.done += 1;
        if tick_steps.is_some_and(|steps| lane.done.is_multiple_of(steps)) {
            lane.out.push_back(Step::Tick);
        }
        self.steps += 1;
        if lane.done == warm_up {
            self.cold -= 1;
        }
        if self.cold == 0 && self.began.is_none() {
            self.began = Some(self.steps);
            self.shared.want_totals();
        }
        let enough = self.began.map(|began| began + measured * (self.nodes * self.workers) as u64);
        if self.ended.is_none() && enough.is_some_and(|enough| self.steps >= enough) {
            self.ended = Some(self.steps);
            self.shared.want_totals();
        }
    }
}

impl Lane {
    fn new(chance: Chance) -> Self {
        Self {
            chance,
            works: VecDeque::new(),
            localized: 0,
            done: 0,
            out: VecDeque::new(),
            stage: Stage::Start,
        }
    }
}

impl Program for Trainer<'_> {
    fn next(&mut self, _now: Instant, who: NodeWorker) -> Option<Step> {
        let at = who.0.index() * self.workers + who.1.index();
        while self.lanes[at].out.is_empty() {
            if self.lanes[at].stage == Stage::Ended {
                return None;
            }
            self.fill(who);
        }
        self.lanes[at].out.pop_front()
    }
}

/// Negatives become keys like any other, wherever they are.
fn sample_naively(work: &mut Work, sample_keys: u64, chance: &mut Chance) {
    match core::mem::take(&mut work.sampled) {
        Sampled::Nothing => {}
        Sampled::Uniform(count) => {
            work.keys.extend((0..count).map(|_| Key(chance.random_range(0..sample_keys))));
        }
        Sampled::Drawn(keys) => work.keys.extend(keys),
    }
    work.keys.sort_unstable();
    work.keys.dedup();
}

/// Appends those sampled local keys that other nodes hold too. Sampling the other local keys causes
/// no messages.
///
/// Draws only the number of uniform draws that meet such keys, then the keys. A drawn key that is
/// not local is replaced by a local one near it, which most likely no other node holds.
fn sample_locally(
    sampled: &Sampled,
    store: &LightStore,
    homed: u64,
    sample_keys: u64,
    chance: &mut Chance,
    keys: &mut Vec<Key>,
) {
    let positives = keys.len();
    match sampled {
        Sampled::Nothing => return,
        Sampled::Uniform(count) => {
            let shared = store.shared_len();
            let share = shared as f64 / store.local_len(homed).max(1) as f64;
            let hits = Binomial::new(*count, share.min(1.0))
                .expect("a share is a probability")
                .sample(chance);
            for _ in 0..hits {
                let key = store.shared_at(chance.random_range(0..shared));
                keys.extend(key.filter(|key| key.0 < sample_keys));
            }
        }
        Sampled::Drawn(drawn) => keys.extend(drawn.iter().filter(|key| store.is_shared(**key))),
    }
    if keys.len() > positives {
        keys.sort_unstable();
        keys.dedup();
    }
}

/// Steps that the action timer has seen when a run begins: its first estimate is forgotten by then.
const TIMED_STEPS: u64 = 64;

/// More virtual time than any slice takes.
const PATIENCE: Duration = Duration::from_secs(100_000);
