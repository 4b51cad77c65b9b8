//! One run from one seed, in two phases.
//!
//! First *hardship*: a random program under random faults, until the cluster is at rest. Then all
//! faults heal, and the workers take a barrier and a quiesce, end, and leave; the main copies and
//! replicas are checked at rest after each.

use core::fmt;
use core::time::Duration;

use adapm_core::link::LinkConfig;
use adapm_core::{Instant, Key, WorkerId};

use super::{CheckedCluster, Costs, Finding, Hardship};
use crate::network::Pairs;
use crate::rng::Rng;
use crate::sim::coverage::Coverage;
use crate::sim::faults::{Fault, FaultyLinks, Plan, When};
use crate::sim::program::{NodeWorker, Program, Step};
use crate::sim::simulator::{Failure, Simulator};
use crate::sim::wire::WireConfig;
use crate::{Bug, Checks, LinkBug, Setup, random};

/// Number of operations of the first phase of a full run.
pub const OPERATIONS: u64 = 500;

/// The description of a run. Everything random about it follows from the seed.
#[derive(Clone)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// The cluster.
    pub setup: Setup,
    /// Least number of operations of all workers together, in the first phase.
    pub operations: u64,
    /// The mistake planted in every link session.
    pub link_bug: Option<LinkBug>,
    /// The choice of faults.
    pub conditions: Conditions,
    /// True to print each step on standard output.
    pub tells: bool,
}

/// The choice of faults in a run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Conditions {
    /// Random faults, none so long that a live node is given up.
    #[default]
    Any,
    /// All links of one node are slow from the start; one of them is cut, and a node is paused. No
    /// node is given up.
    SlowLinks,
    /// On one link large packets never arrive, though handshakes or single bytes do: its ends give
    /// each other up. Where no packet is large, each may pass just in time; nobody is given up
    /// then.
    DeadLink,
    /// As `Any`; also the engine of one node stops while its links stay alive (in the glossary:
    /// unresponsive), and nodes that wait for it notice.
    Mute,
}

/// The results of a run that kept every invariant.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Report {
    /// A hash of all events in order: equal for equal runs.
    pub trace: u64,
    /// Counts of faults by kind and by the situations in which they struck.
    pub coverage: Coverage,
    /// Counts of delivered message entries by kind and by the state of their key at the receiver.
    pub pairs: Pairs,
    /// Operations begun in the first phase.
    pub operations: u64,
    /// Number of keys that were set with replication off: for each of them an order that explains
    /// all accesses was searched.
    pub set_histories: u64,
    /// The most accesses of such a key.
    pub set_accesses: u64,
    /// Number of steps of workers.
    pub steps: u64,
    /// Number of events of the simulator.
    pub events: u64,
    /// Virtual time at the end.
    pub time: Instant,
}

/// The failure of a run.
pub type RunFailure = Failure<Finding>;

type Simulation = Simulator<CheckedCluster, FaultyLinks>;

impl Run {
    /// Creates the run of a seed: any system or a random policy, in every fourth run one that
    /// bounds how far workers are apart; 3 or more nodes, 2 or more workers, 8 or more keys.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let is_bounded = seed.is_multiple_of(4);
        let setup = if is_bounded { random::setup_with_ticks } else { random::setup };
        Self {
            seed,
            setup: setup(seed),
            operations: OPERATIONS,
            link_bug: None,
            conditions: Conditions::Any,
            tells: false,
        }
    }

    /// Creates the run of a seed in which one node vanishes.
    #[must_use]
    pub fn with_loss(seed: u64) -> Self {
        let mut run = Self::new(seed);
        run.setup.losses = 1;
        // The vanished node leaves a part of its share undone; with more operations about as many
        // as in other runs are done.
        run.operations = OPERATIONS * 8 / 5;
        run
    }

    /// Creates the run of a seed under other conditions.
    #[must_use]
    pub fn under(seed: u64, conditions: Conditions) -> Self {
        let run =
            if conditions == Conditions::Mute { Self::with_loss(seed) } else { Self::new(seed) };
        Self { conditions, ..run }
    }

    /// Plants a mistake in every engine, and sets the checks.
    #[must_use]
    pub fn with_bug(mut self, bug: Bug, checks: Checks) -> Self {
        (self.setup.bug, self.setup.checks) = (Some(bug), checks);
        self
    }

    /// Describes the cluster in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let Setup { nodes, workers, adaptive, sequential, location_caches, .. } = &self.setup;
        let Setup {
            block_bytes_max, grants_max, requests_max, parked_max, layout, channel, ..
        } = &self.setup;
        let (kind, keys) = (layout.kind(), self.setup.keys().count());
        let policy = (self.setup.policy)(adapm_core::NodeId(0));
        let under_intent =
            self.setup.keys().filter(|key| policy.relocates_under_intent(*key)).count();
        format!(
            "{nodes} nodes with {workers} workers, {keys} keys ({kind:?}), channel {} of {}; adaptive {adaptive}, \
             sequential {sequential}, relocates {under_intent} keys under intent, location caches {location_caches}; \
             blocks of {block_bytes_max} bytes, {grants_max} granted and {requests_max} asked for at a time, {parked_max} parked",
            channel.0, channel.1
        )
    }

    /// Executes the run.
    ///
    /// # Errors
    /// The first failure.
    pub fn run(&self) -> Result<Report, RunFailure> {
        let mut report = Report::default();
        self.run_into(&mut report).map(|()| report)
    }

    /// Executes the run like [`Run::run`]; `report` has the results up to a failure, too.
    ///
    /// # Errors
    /// The first failure.
    pub fn run_into(&self, report: &mut Report) -> Result<(), RunFailure> {
        let mut rng = Rng::new(self.seed ^ RUN_SALT);
        let mut simulation = self.simulation(&mut rng);
        let result = self.hardship(&mut simulation, &mut rng, report);
        self.conclude(result, simulation, rng, report)
    }

    /// Runs `program` in place of a random one, under the same faults: for custom access patterns.
    ///
    /// All faults strike before the workers have taken [`operations`](Self::operations) steps. The
    /// report does not count the operations.
    ///
    /// # Errors
    /// The first failure.
    pub fn follow(&self, program: &mut dyn Program) -> Result<Report, RunFailure> {
        let (mut rng, mut report) = (Rng::new(self.seed ^ RUN_SALT), Report::default());
        let mut simulation = self.simulation(&mut rng);
        let result = simulation.run(program, TIME_MAX).and_then(|_| check_at_rest(&mut simulation));
        self.conclude(result, simulation, rng, &mut report).map(|()| report)
    }

    /// Runs the second phase if the first succeeded, and completes the report.
    fn conclude(
        &self,
        result: Result<(), RunFailure>,
        mut simulation: Simulation,
        mut rng: Rng,
        report: &mut Report,
    ) -> Result<(), RunFailure> {
        let result = result.and_then(|()| self.drain(&mut simulation, &mut rng));
        report.trace = simulation.trace();
        report.coverage = simulation.coverage().clone();
        report.pairs = simulation.under_test().cluster().pairs().clone();
        self.note_sets(&simulation, report);
        (report.steps, report.events) = (simulation.steps(), simulation.events());
        report.time = simulation.now();
        result
    }

    /// Creates the cluster, its links, and the plan of faults.
    fn simulation(&self, rng: &mut Rng) -> Simulation {
        let nodes = self.setup.nodes;
        let costs = Costs {
            access_nanos: rng.choose(&[0, 200, 5_000]),
            input_nanos: rng.choose(&[0, 2_000, 2_000, 40_000]),
        };
        let wire = WireConfig {
            latency_nanos: rng.choose(&[5_000, 50_000, 200_000]),
            jitter_nanos: rng.choose(&[0, 20_000, 200_000]),
            bytes_per_second: rng.choose(&[0, 1_000_000_000, 10_000_000]),
        };
        let mut link = LinkConfig::with_dead_after(Duration::from_millis(rng.choose(&DEAD_MILLIS)));
        link.packet_bytes = rng.choose(&[16 << 10, 256, 40]);
        link.window_packets = rng.choose(&[4_096, 16, 2, 1]);
        let mut links = FaultyLinks::new(link, wire, nodes, rng.bits());
        if let Some(bug) = self.link_bug {
            links.plant(bug);
        }
        let mut setup = self.setup.clone();
        setup.unresponsive_nanos =
            Some(UNRESPONSIVE_DEAD_TIMES * link.dead_after.as_nanos() as u64);
        let mut under_test = CheckedCluster::new(setup, costs);
        if self.tells {
            under_test.tell(|line| println!("{line}"));
        }
        let mut simulation = Simulator::new(under_test, links, rng.bits());
        if self.tells {
            simulation.tell(|line| println!("{line}"));
        }
        // A live node must not be given up: the faults of one link together last less than the dead
        // time.
        let longest = link.dead_after / 4;
        // Many of the faults strike a vanished node and have no effect.
        let count = rng.number(4..9) + 6 * self.setup.losses as u64;
        let steps = self.operations / 10..self.operations;
        let mut plan = match self.conditions {
            Conditions::Any | Conditions::Mute => {
                Plan::random(rng, nodes, count, steps.clone(), longest)
            }
            Conditions::SlowLinks => {
                Plan::slow_links(rng, nodes, link.dead_after, 0..self.operations / 4)
            }
            Conditions::DeadLink => {
                Plan::dead_link(rng, nodes, link.dead_after, 0..self.operations / 4)
            }
        };
        if self.setup.losses > 0 {
            let moment = rng.number(steps.clone());
            let node = rng.choose(&simulation.under_test().cluster().nodes().collect::<Vec<_>>());
            let fault = if self.conditions == Conditions::Mute {
                Fault::Mute(node)
            } else {
                Fault::Vanish(node)
            };
            plan = plan.and((When::Steps(moment), fault));
            // A run whose faults all strike the lost node would test little.
            while plan.count_elsewhere(node) < LIVE_FAULTS_MIN {
                let more = Plan::random(rng, nodes, 1, steps.clone(), longest);
                plan = more.0.into_iter().fold(plan, Plan::and);
            }
        }
        simulation.plan(plan);
        simulation
    }

    /// Counts the keys whose histories [`Run`] checks by a search for an order.
    fn note_sets(&self, simulation: &Simulation, report: &mut Report) {
        if !self.setup.sequential || self.setup.losses > 0 {
            return;
        }
        let cluster = simulation.under_test().cluster();
        let checked = |key: &Key| cluster.oracle().was_set(*key) && self.setup.is_sequential(*key);
        for key in cluster.keys().filter(checked) {
            report.set_histories += 1;
            report.set_accesses =
                report.set_accesses.max(cluster.oracle().accesses(key).len() as u64);
        }
    }

    /// Runs the first phase.
    fn hardship(
        &self,
        simulation: &mut Simulation,
        rng: &mut Rng,
        report: &mut Report,
    ) -> Result<(), RunFailure> {
        let cluster = simulation.under_test().cluster();
        let (keys, workers) =
            (cluster.keys().collect(), cluster.workers().collect::<Vec<NodeWorker>>());
        let mut program = Hardship::new(rng.bits(), keys, &workers, self.operations);
        // A node notices an unresponsive one only while it waits for it, so under `Mute` each
        // worker ends with a quiesce, to which every engine must answer. A barrier would not do:
        // a node that stops after it has answered would keep owners from rest for good.
        let mut unquiesced = if self.conditions == Conditions::Mute { workers } else { Vec::new() };
        let mut then_quiesce = |now: Instant, who: NodeWorker| {
            let step = program.next(now, who);
            if matches!(step, None | Some(Step::End))
                && let Some(at) = unquiesced.iter().position(|other| *other == who)
            {
                unquiesced.swap_remove(at);
                return step.or(Some(Step::Quiesce));
            }
            step
        };
        let time_max = match self.conditions {
            Conditions::DeadLink => TIME_MAX_OVER_A_DEAD_LINK,
            _ => TIME_MAX,
        };
        let result = simulation.run(&mut then_quiesce as &mut dyn Program, time_max);
        report.operations = program.operations();
        result?;
        check_at_rest(simulation)
    }

    /// Runs the second phase.
    fn drain(&self, simulation: &mut Simulation, rng: &mut Rng) -> Result<(), RunFailure> {
        simulation.heal();
        for step in [Step::Barrier, Step::Quiesce] {
            all_take(simulation, &step)?;
        }
        all_take(simulation, &Step::End)?;
        // In half of the runs faults strike during the goodbyes, too.
        if self.setup.losses == 0 && rng.chance(50) {
            let nodes = self.setup.nodes;
            let last = Plan::random(rng, nodes, 4, 0..300_000, Duration::from_millis(1));
            simulation.plan(last.after(simulation.now()));
        }
        one_each_takes(simulation, &Step::Leave)?;
        simulation.heal();
        simulation.close(TIME_MAX)
    }
}

/// Makes all live workers take `step`, and checks the cluster at rest.
fn all_take(simulation: &mut Simulation, step: &Step) -> Result<(), RunFailure> {
    take_and_rest(simulation, step, |_| true)
}

/// Makes the first worker of each node take `step`, and checks the cluster at rest.
fn one_each_takes(simulation: &mut Simulation, step: &Step) -> Result<(), RunFailure> {
    take_and_rest(simulation, step, |who| who.1 == WorkerId(0))
}

fn take_and_rest(
    simulation: &mut Simulation,
    step: &Step,
    takes: fn(&NodeWorker) -> bool,
) -> Result<(), RunFailure> {
    let cluster = simulation.under_test().cluster();
    let is_live = |who: &NodeWorker| {
        !cluster.member(who.0).workers[who.1.index()].ended || *step == Step::Leave
    };
    let mut left: Vec<NodeWorker> =
        cluster.workers().filter(|who| takes(who) && is_live(who)).collect();
    let mut program = |_: Instant, who: NodeWorker| {
        let at = left.iter().position(|other| *other == who)?;
        left.swap_remove(at);
        Some(step.clone())
    };
    let program: &mut dyn Program = &mut program;
    simulation.run(program, TIME_MAX)?;
    check_at_rest(simulation)
}

fn check_at_rest(simulation: &mut Simulation) -> Result<(), RunFailure> {
    simulation.under_test_mut().check_at_rest().map_err(Failure::Violation)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, steps, events, time, .. } = self;
        let faults = self.coverage.faults();
        write!(
            f,
            "{operations} operations, {faults} faults, {steps} steps, {events} events in {time:?}"
        )
    }
}

/// Virtual time within which a phase must end.
const TIME_MAX: Duration = Duration::from_secs(20);
/// The same over a link that is nearly dead: where each packet passes just before its sender would
/// be given up, nobody is, and each operation takes about a dead time.
const TIME_MAX_OVER_A_DEAD_LINK: Duration = Duration::from_secs(20 * 60);
/// Dead times of the links after which a peer whose engine does not answer counts as unresponsive:
/// the factor of clusters of processes.
const UNRESPONSIVE_DEAD_TIMES: u64 = 6;
/// Choices of the time after which a silent peer is given up, in milliseconds.
const DEAD_MILLIS: [u64; 3] = [40, 200, 1_000];
/// Least number of faults that strike live nodes in a run in which one is lost.
const LIVE_FAULTS_MIN: usize = 3;
/// Makes the random choices of the run independent of those of its setup, which have the same seed.
const RUN_SALT: u64 = 0x51ac_95a1_7000_0003;
