//! A policy that records each call before it is made, so that a call that panics or does not return
//! can be named.

use core::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use adapm_core::Instant;
use adapm_core::clock::{Clock, Tick};
use adapm_core::id::{Counter, Key, NodeId, WorkerId};
use adapm_core::node_set::NodeSet;
use adapm_core::observe::Observe;
use adapm_core::policy::{Bound, Patience, Placement, Policy, Supply, View};

/// The calls of all policies of a trial: they are made one after the other.
#[derive(Default)]
pub(super) struct Log {
    /// The seed of the schedule that runs.
    pub(super) seed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The call in progress, or that panicked, and its number.
    current: Option<(u64, Call)>,
    calls: u64,
    /// Counts of the answers, in the order of their declaration.
    placements: [u64; 3],
}

#[derive(Clone)]
enum Call {
    /// The constructor.
    Make,
    Place {
        key: Key,
        requester: NodeId,
        holders: NodeSet,
        owner_has_intent: bool,
    },
    ActBefore {
        worker: WorkerId,
        clock: Clock,
    },
    RelocatesUnderIntent(Key),
    /// A method of its observer.
    Observes(&'static str, Key),
}

impl Log {
    /// Returns the call in progress: its number and text.
    pub(super) fn current(&self) -> Option<(u64, String)> {
        self.state(|state| state.current.clone()).map(|(number, call)| (number, call.text()))
    }

    /// Returns the counts of calls for a placement, and of the answers.
    pub(super) fn summary(&self) -> String {
        let [keep, relocate, replicate] = self.state(|state| state.placements);
        let asked = keep + relocate + replicate;
        format!(
            "asked for {asked} placements: {keep} Keep, {relocate} Relocate, {replicate} Replicate"
        )
    }

    fn call<R>(&self, call: Call, run: impl FnOnce() -> R) -> R {
        self.state(|state| {
            state.calls += 1;
            state.current = Some((state.calls, call));
        });
        let result = run();
        self.state(|state| state.current = None);
        result
    }

    fn state<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Call {
    fn text(&self) -> String {
        match self {
            Self::Make => String::from("its constructor"),
            Self::Place { key, requester, holders, owner_has_intent } => format!(
                "place({key} for {requester}, holders {holders:?}, owner_has_intent: {owner_has_intent})"
            ),
            Self::ActBefore { worker, clock } => format!("act_before({worker}, {clock})"),
            Self::RelocatesUnderIntent(key) => format!("relocates_under_intent({key})"),
            Self::Observes(method, key) => format!("{method} of its observer, about {key}"),
        }
    }
}

/// The policy under test.
pub(super) struct Watched<P> {
    inner: P,
    log: Arc<Log>,
}

impl<P> Watched<P> {
    /// Creates the policy by `make`, whose first call that is.
    pub(super) fn new(log: &Arc<Log>, make: impl FnOnce() -> P) -> Self {
        Self { inner: log.call(Call::Make, make), log: Arc::clone(log) }
    }
}

impl<P: Policy> Policy for Watched<P> {
    fn place(&mut self, view: &View<'_>) -> Placement {
        let View { key, requester, holders, owner_has_intent, .. } = *view;
        let call = Call::Place { key, requester, holders: holders.clone(), owner_has_intent };
        let placement = self.log.call(call, || self.inner.place(view));
        self.log.state(|state| state.placements[placement as usize] += 1);
        placement
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.log.call(Call::ActBefore { worker, clock }, || self.inner.act_before(worker, clock))
    }

    fn relocates_under_intent(&self, key: Key) -> bool {
        self.log.call(Call::RelocatesUnderIntent(key), || self.inner.relocates_under_intent(key))
    }

    fn observer(&mut self) -> Option<&mut dyn Observe> {
        if self.inner.observer().is_some() { Some(self) } else { None }
    }

    fn supply(&self) -> Supply {
        self.inner.supply()
    }

    fn replicates(&self) -> bool {
        self.inner.replicates()
    }

    fn bound(&self) -> Option<Bound> {
        self.inner.bound()
    }

    fn keep(&self, least: Tick) -> Option<Tick> {
        self.inner.keep(least)
    }

    fn lag(&self, key: Key) -> u32 {
        self.inner.lag(key)
    }

    fn patience(&self) -> Option<Patience> {
        self.inner.patience()
    }
}

/// The observer of the policy; its calls are recorded too.
impl<P: Policy> Observe for Watched<P> {
    fn on_relocation(&mut self, now: Instant, key: Key, to: NodeId, counter: Counter) {
        self.tell("on_relocation", key, |observer| observer.on_relocation(now, key, to, counter));
    }

    fn on_arrival(&mut self, now: Instant, key: Key, counter: Counter) {
        self.tell("on_arrival", key, |observer| observer.on_arrival(now, key, counter));
    }

    fn on_replica_installed(&mut self, now: Instant, key: Key, owner: NodeId) {
        self.tell("on_replica_installed", key, |observer| {
            observer.on_replica_installed(now, key, owner);
        });
    }

    fn on_replica_released(&mut self, now: Instant, key: Key) {
        self.tell("on_replica_released", key, |observer| observer.on_replica_released(now, key));
    }

    fn on_replica_set_up(&mut self, now: Instant, key: Key, holder: NodeId) {
        self.tell("on_replica_set_up", key, |observer| {
            observer.on_replica_set_up(now, key, holder);
        });
    }

    fn on_replica_dropped(&mut self, now: Instant, key: Key, holder: NodeId) {
        self.tell("on_replica_dropped", key, |observer| {
            observer.on_replica_dropped(now, key, holder);
        });
    }

    fn on_served(&mut self, now: Instant, key: Key, origin: NodeId, hops: u32) {
        self.tell("on_served", key, |observer| observer.on_served(now, key, origin, hops));
    }

    fn on_intent(&mut self, now: Instant, key: Key, active: bool) {
        self.tell("on_intent", key, |observer| observer.on_intent(now, key, active));
    }
}

impl<P: Policy> Watched<P> {
    fn tell(&mut self, method: &'static str, key: Key, tell: impl FnOnce(&mut dyn Observe)) {
        let inner = &mut self.inner;
        self.log.call(Call::Observes(method, key), || inner.observer().map(tell));
    }
}
