//! The one loop: takes the next event, feeds it to the system under test or the links, and
//! schedules its consequences.
//!
//! `events` has the handlers of events, `failure` the reasons that runs fail.

mod events;
mod failure;

use core::time::Duration;
use std::collections::VecDeque;

use adapm_core::transport::Frame;
use adapm_core::{Instant, NodeId, WorkerId};

use crate::rng::Rng;
use crate::sim::coverage::Coverage;
use crate::sim::event_queue::EventQueue;
use crate::sim::faults::{Fault, Plan, When};
use crate::sim::links::{Effects, Links};
use crate::sim::program::{NodeWorker, Program};
use crate::sim::trace::TraceHash;
use crate::sim::under_test::SystemUnderTest;

pub use failure::Failure;

/// A cluster in virtual time, in one thread.
///
/// Every run follows from its inputs: no clock, no thread, no iteration over hashes.
pub struct Simulator<S: SystemUnderTest, L: Links> {
    under_test: S,
    links: L,
    queue: EventQueue<Event<L::Event>>,
    hosts: Vec<Host>,
    /// Number of workers that have more to do.
    active: usize,
    /// Time of the last step of the last worker.
    finished_at: Instant,
    /// Time since which everything has been at rest.
    calm_since: Option<Instant>,
    /// Faults that strike after a number of steps, first one first.
    plan: VecDeque<(u64, Fault)>,
    rng: Rng,
    effects: Effects<L::Event>,
    trace: TraceHash,
    coverage: Coverage,
    steps: u64,
    events: u64,
    tell: Option<Tell>,
}

/// A listener for events in words.
type Tell = Box<dyn FnMut(&str)>;

enum Event<E> {
    /// A worker takes its next step.
    Turn(NodeWorker),
    /// A node looks at the first item of its inbox.
    Serve(NodeId),
    /// A node asks to be woken, unless the alarm is outdated.
    Alarm(NodeId),
    /// Links have something to do.
    Links(E),
    /// A fault strikes.
    Strike(Fault),
}

/// An input that waits for a node's channel.
enum Item {
    Message(NodeId, Frame),
    Timeout,
    Lost(NodeId),
}

/// The timing state of one node.
#[derive(Default)]
struct Host {
    inbox: VecDeque<Item>,
    /// True if a `Serve` is among the events.
    is_serving: bool,
    /// Time when the channel is done with its last item.
    free_at: Instant,
    /// End of the node's pause.
    paused_until: Instant,
    /// Factor by which the node is slowed down, and the end of that.
    slow: (u32, Instant),
    /// The time of the valid `Alarm` among the events.
    alarm: Option<Instant>,
    is_gone: bool,
    /// True for workers that are finished.
    idle: Vec<bool>,
}

impl Host {
    /// Returns true if it would soon notice new work. A node with intent checks the clocks
    /// repeatedly: being busy with that for a moment is no reason to go on.
    fn is_idle(&self, now: Instant) -> bool {
        let has_only_looks = self.inbox.iter().all(|item| matches!(item, Item::Timeout));
        let is_free_soon = self.free_at <= now.plus_nanos(CALM_NANOS / 2);
        self.is_gone || (has_only_looks && is_free_soon && self.paused_until <= now)
    }
}

impl<S: SystemUnderTest, L: Links> Simulator<S, L> {
    /// Creates a simulation before its first event; its own choices follow from the seed.
    #[must_use]
    pub fn new(under_test: S, links: L, seed: u64) -> Self {
        let host = || Host { idle: vec![true; under_test.workers()], ..Host::default() };
        Self {
            queue: EventQueue::default(),
            hosts: (0..under_test.nodes()).map(|_| host()).collect(),
            active: 0,
            finished_at: Instant::ZERO,
            calm_since: None,
            plan: VecDeque::new(),
            rng: Rng::new(seed),
            effects: Effects::default(),
            trace: TraceHash::default(),
            coverage: Coverage::default(),
            steps: 0,
            events: 0,
            tell: None,
            under_test,
            links,
        }
    }

    /// Adds future faults. Steps are counted from the first run on.
    pub fn plan(&mut self, plan: Plan) {
        for (when, fault) in plan.0 {
            match when {
                When::At(time) => self.queue.at(time, Event::Strike(fault)),
                When::Steps(steps) => self.plan.push_back((steps, fault)),
            }
        }
    }

    /// Calls `tell` with every fault and every description by links.
    pub fn tell(&mut self, tell: impl FnMut(&str) + 'static) {
        self.tell = Some(Box::new(tell));
        self.effects.told = Some(Vec::new());
    }

    /// Runs `program` until every worker is finished and the cluster is at rest, for at most
    /// `patience`. Returns the time of the last worker's end.
    ///
    /// # Errors
    /// The first failure, including a run that does not come to rest within `patience`.
    pub fn run(
        &mut self,
        program: &mut dyn Program,
        patience: Duration,
    ) -> Result<Instant, Failure<S::Violation>> {
        let deadline = self.now().plus_nanos(patience.as_nanos() as u64);
        let events_max = self.events.saturating_add(EVENTS_MAX);
        self.calm_since = None;
        self.finished_at = self.now();
        self.links.open(self.queue.now(), &mut self.effects);
        self.take_effects();
        for node in 0..self.hosts.len() {
            if self.hosts[node].is_gone {
                continue;
            }
            for worker in 0..self.hosts[node].idle.len() {
                self.hosts[node].idle[worker] = false;
                self.active += 1;
                self.queue
                    .at(self.now(), Event::Turn((NodeId(node as u16), WorkerId(worker as u16))));
            }
        }
        while !self.is_calm() {
            let Some(event) = self.queue.pop() else { return self.at_the_end() };
            self.events += 1;
            if self.now() > deadline || self.events > events_max {
                return Err(Failure::Stuck(self.waiting()));
            }
            self.handle(event, program)?;
        }
        Ok(self.finished_at)
    }

    /// Heals all faults, including those still planned by steps.
    pub fn heal(&mut self) {
        self.plan.clear();
        let now = self.now();
        for host in &mut self.hosts {
            host.paused_until = host.paused_until.min(now);
            host.slow = (1, now);
        }
        self.links.heal(now, &mut self.effects);
        self.take_effects();
    }

    /// Makes all links send goodbyes, and runs until each goodbye has arrived, for at most
    /// `patience`.
    ///
    /// # Errors
    /// The first failure.
    pub fn close(&mut self, patience: Duration) -> Result<(), Failure<S::Violation>> {
        self.links.close(self.queue.now(), &mut self.effects).map_err(Failure::Links)?;
        self.take_effects();
        self.run(&mut |_, _| None, patience).map(|_| ())
    }

    /// Returns the virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.queue.now()
    }

    /// Returns the system under test.
    #[must_use]
    pub fn under_test(&self) -> &S {
        &self.under_test
    }

    /// Returns the system under test, for changes between runs.
    pub fn under_test_mut(&mut self) -> &mut S {
        &mut self.under_test
    }

    /// Returns the links.
    #[must_use]
    pub fn links(&self) -> &L {
        &self.links
    }

    /// Returns the fingerprint of everything so far.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.trace.value()
    }

    /// Returns counts of faults by the situations that they struck.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Returns the number of steps of workers, without [`crate::sim::Step::Compute`].
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the number of events so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns true if all work is done, and has been at rest for long enough that nothing follows
    /// from it.
    fn is_calm(&mut self) -> bool {
        let now = self.queue.now();
        let rests = self.active == 0
            && self.hosts.iter().all(|host| host.is_idle(now))
            && self.links.is_at_rest()
            && self.under_test.is_at_rest();
        if !rests {
            self.calm_since = None;
            return false;
        }
        let since = *self.calm_since.get_or_insert(self.queue.now());
        self.queue.now().nanos_since(since) >= CALM_NANOS
    }

    /// Ends a run without future events: then all work must be done.
    fn at_the_end(&self) -> Result<Instant, Failure<S::Violation>> {
        let rests = self.active == 0 && self.links.is_at_rest() && self.under_test.is_at_rest();
        if rests { Ok(self.finished_at) } else { Err(Failure::Stuck(self.waiting())) }
    }

    fn waiting(&self) -> String {
        let busy = |(node, host): (usize, &Host)| {
            let workers = host.idle.iter().filter(|idle| !**idle).count();
            (workers > 0).then(|| format!("n{node} has {workers} workers with work left"))
        };
        let mut waiting: Vec<String> = self.hosts.iter().enumerate().filter_map(busy).collect();
        waiting.extend(
            [self.under_test.waiting(), self.links.waiting()]
                .into_iter()
                .filter(|what| !what.is_empty()),
        );
        format!("after {} events, at {:?}: {}", self.events, self.now(), waiting.join("; "))
    }
}

/// Time for which everything must be at rest: four rounds.
const CALM_NANOS: u64 = 2_000_000;
/// Number of events after which a run counts as one that never ends.
const EVENTS_MAX: u64 = 1_000_000_000;
