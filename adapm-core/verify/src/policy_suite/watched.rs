//! A policy that notes each call before it is made, so that a call which panics or does not end has
//! a name.

use core::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use adapm_core::clock::Clock;
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::node_set::NodeSet;
use adapm_core::policy::{Placement, Policy, View};

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
    /// How often each placement was the answer, in the order of their declaration.
    placements: [u64; 3],
}

#[derive(Clone)]
enum Call {
    Place { key: Key, requester: NodeId, holders: NodeSet, owner_has_intent: bool },
    ActBefore { worker: WorkerId, clock: Clock },
    RelocatesUnderIntent,
}

impl Log {
    /// The call in progress: its number, and how it would be written.
    pub(super) fn current(&self) -> Option<(u64, String)> {
        self.state(|state| state.current.clone()).map(|(number, call)| (number, call.text()))
    }

    /// How often the policy was asked for a placement, and what it said.
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
            Self::Place { key, requester, holders, owner_has_intent } => format!(
                "place({key} for {requester}, holders {holders:?}, owner_has_intent: {owner_has_intent})"
            ),
            Self::ActBefore { worker, clock } => format!("act_before({worker}, {clock})"),
            Self::RelocatesUnderIntent => String::from("relocates_under_intent()"),
        }
    }
}

/// The policy under test.
pub(super) struct Watched<P> {
    inner: P,
    log: Arc<Log>,
}

impl<P> Watched<P> {
    pub(super) fn new(inner: P, log: Arc<Log>) -> Self {
        Self { inner, log }
    }
}

impl<P: Policy> Policy for Watched<P> {
    fn place(&mut self, view: &View<'_>) -> Placement {
        let View { key, requester, holders, owner_has_intent } = *view;
        let call = Call::Place { key, requester, holders: holders.clone(), owner_has_intent };
        let placement = self.log.call(call, || self.inner.place(view));
        self.log.state(|state| state.placements[placement as usize] += 1);
        placement
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.log.call(Call::ActBefore { worker, clock }, || self.inner.act_before(worker, clock))
    }

    fn relocates_under_intent(&self) -> bool {
        self.log.call(Call::RelocatesUnderIntent, || self.inner.relocates_under_intent())
    }
}
