//! `barrier`: all workers of all nodes that have not ended; node 0 coordinates (protocol, section 7).
//!
//! That its workers have arrived or ended only a node itself can know, and is believed; for others it cannot speak.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::input::OpId;
use crate::engine::missing::{Absent, Collective, Patience};
use crate::error::Fault;
use crate::id::{NodeId, WorkerId};
use crate::node_set::NodeSet;
use crate::policy::Policy;
use crate::store::Store;
use crate::wire::Message;
use crate::wire::message::{Barrier, Body};

/// The node that coordinates barriers and waves.
pub(super) const COORDINATOR: NodeId = NodeId(0);

/// Barriers of this node, and of all nodes if it coordinates.
#[derive(Debug)]
pub(super) struct Barriers {
    /// Workers that have not ended.
    pub(super) live: Vec<bool>,
    /// Own workers that wait, with their operations.
    calls: Vec<(WorkerId, OpId)>,
    /// Barriers passed.
    number: u64,
    /// Whether this node's arrival is known to the coordinator.
    told: bool,
    /// Coordinator: nodes that have arrived at the current barrier.
    arrived: NodeSet,
    /// Coordinator: nodes without live workers.
    pub(super) ended: NodeSet,
    /// Waiting for own workers.
    pub(super) own: Patience,
    /// Coordinator: waiting for nodes.
    pub(super) all: Patience,
}

impl Barriers {
    pub(super) fn new(workers: usize) -> Self {
        Self::of(alloc::vec![true; workers])
    }

    /// No barrier passed, with these workers live.
    pub(super) fn of(live: Vec<bool>) -> Self {
        Self {
            live,
            calls: Vec::new(),
            number: 0,
            told: false,
            arrived: NodeSet::new(),
            ended: NodeSet::new(),
            own: Patience::default(),
            all: Patience::default(),
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn live(&self) -> usize {
        self.live.iter().filter(|live| **live).count()
    }

    /// Own workers that wait.
    pub(super) fn callers(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.calls.iter().map(|(worker, _)| *worker)
    }

    /// Barriers passed.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Coordinator: nodes that have arrived at the current barrier.
    pub(super) fn arrived(&self) -> &NodeSet {
        &self.arrived
    }

    /// Gives up the calls that wait.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + '_ {
        self.calls.drain(..).map(|(_, op)| op)
    }
}

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn call_barrier(&mut self, worker: WorkerId, op: OpId) {
        self.barriers.calls.push((worker, op));
        self.progress_barrier();
        self.note_own_calls();
    }

    /// The worker has ended: its intents expire with its clock, and nobody waits for it.
    pub(super) fn end_worker(&mut self, worker: WorkerId, op: OpId) {
        self.barriers.live[worker.index()] = false;
        self.done(op, Vec::new());
        if self.barriers.live() == 0 && self.first_lost.is_none() {
            self.tell_coordinator(Barrier::Ended);
        }
        self.progress_barrier();
        self.progress_quiesce_calls();
        self.note_own_calls();
    }

    fn progress_barrier(&mut self) {
        let calls = self.barriers.calls.len();
        if calls > 0 && !self.barriers.told && calls >= self.barriers.live() {
            self.barriers.told = true;
            let number = self.barriers.number;
            self.tell_coordinator(Barrier::Arrived { number });
        }
    }

    fn tell_coordinator(&mut self, step: Barrier) {
        if self.config.node == COORDINATOR {
            self.coordinate_barrier(COORDINATOR, &step);
        } else {
            self.send(COORDINATOR, Message::bare(Body::Barrier(step)));
        }
    }

    pub(super) fn handle_barrier(&mut self, from: NodeId, step: Barrier) -> Result<(), Fault> {
        let coordinates = self.config.node == COORDINATOR;
        let number = self.barriers.number;
        match step {
            Barrier::Arrived { number: given }
                if coordinates && given == number && !self.barriers.arrived.contains(from) => {}
            Barrier::Ended if coordinates => {}
            Barrier::Passed { number: given }
                if from == COORDINATOR && given == number && self.barriers.told =>
            {
                self.pass_barrier();
                return Ok(());
            }
            Barrier::Missing { number: given, nodes }
                if from == COORDINATOR && given == number && self.may_miss(&nodes) =>
            {
                let absent = nodes.into_iter().map(|node| Absent::node(node, false)).collect();
                self.tell_missing(Collective::Barrier, absent);
                return Ok(());
            }
            _ => return Err(Fault::Unexpected),
        }
        self.coordinate_barrier(from, &step);
        Ok(())
    }

    /// Whether a barrier that this node waits at can wait for `nodes`, ascending.
    fn may_miss(&self, nodes: &[NodeId]) -> bool {
        self.barriers.told && !nodes.is_empty() && nodes.binary_search(&self.config.node).is_err()
    }

    fn coordinate_barrier(&mut self, from: NodeId, step: &Barrier) {
        match step {
            Barrier::Ended => {
                self.barriers.ended.insert(from);
                self.progress_waves();
            }
            _ => {
                self.barriers.arrived.insert(from);
                self.barriers.all.set(true, self.now);
            }
        }
        let may_miss = usize::from(planted!(self, BarrierEarly));
        let complete = self.missing_at_barrier().len() <= may_miss && !self.barriers.arrived.is_empty();
        if !complete {
            return;
        }
        let number = self.barriers.number;
        for node in core::mem::take(&mut self.barriers.arrived).iter() {
            if node == self.config.node {
                self.pass_barrier();
            } else {
                self.send(node, Message::bare(Body::Barrier(Barrier::Passed { number })));
            }
        }
        self.barriers.number = number + 1;
        self.barriers.all.set(false, self.now);
    }

    pub(super) fn missing_at_barrier(&self) -> NodeSet {
        let nodes = (0..self.config.nodes).map(|index| NodeId(index as u16));
        nodes
            .filter(|node| !self.barriers.arrived.contains(*node) && !self.barriers.ended.contains(*node))
            .collect()
    }

    fn pass_barrier(&mut self) {
        self.barriers.number += 1;
        self.barriers.told = false;
        for (_, op) in core::mem::take(&mut self.barriers.calls) {
            self.done(op, Vec::new());
        }
    }
}
