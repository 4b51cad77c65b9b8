//! Collective calls that wait for long: who is missing is told once (protocol, section 7).
//!
//! A node tells which of its own workers are missing when others of them have called; node 0 tells which nodes are. Who waits in
//! the other call will never come: workers that mix a barrier with a quiesce wait for each other.

use alloc::vec::Vec;

use crate::config::NodeConfig;
use crate::engine::Engine;
use crate::engine::output::{Event, Output};
use crate::id::{ChannelId, NodeId, WorkerId};
use crate::policy::Policy;
use crate::store::Store;
use crate::time::Instant;
use crate::wire::Message;
use crate::wire::message::{Barrier, Body};

use super::barrier::COORDINATOR;

/// A call that ends when all workers of all nodes have made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// [`crate::engine::OpBody::Barrier`].
    Barrier,
    /// [`crate::engine::OpBody::Quiesce`].
    Quiesce,
}

/// A worker or node that a collective call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The node.
    pub node: NodeId,
    /// The worker; `None`: one of the node's at least, which knows more.
    pub worker: Option<WorkerId>,
    /// It waits in the other collective call meanwhile.
    pub elsewhere: bool,
}

/// Since when something is waited for, and whether that was told.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Option<Instant>,
    is_told: bool,
}

impl Patience {
    /// From here on it is waited, or not any more.
    pub(super) fn set(&mut self, waits: bool, now: Instant) {
        if waits {
            self.since.get_or_insert(now);
        } else {
            *self = Self::default();
        }
    }

    /// When to tell, if that is still to be done.
    pub(super) fn until(&self, config: &NodeConfig) -> Option<Instant> {
        self.since.filter(|_| !self.is_told).map(|since| since.plus_nanos(config.barrier_report_nanos))
    }

    /// Returns true once, when it is time to tell.
    fn is_over(&mut self, config: &NodeConfig, now: Instant) -> bool {
        let is_over = self.until(config).is_some_and(|until| until <= now);
        self.is_told |= is_over;
        is_over
    }
}

impl<S: Store, P: Policy> Engine<S, P> {
    /// When some collective call will have waited for long.
    pub(super) fn next_report_at(&self) -> Option<Instant> {
        let all = [&self.barriers.own, &self.barriers.all, &self.quiesces.own, &self.quiesces.all];
        all.into_iter().filter_map(|patience| patience.until(&self.config)).min()
    }

    /// Notes whether own workers wait for others of this node. Of all channels that a quiesce is called on, the first tells.
    pub(super) fn note_own_calls(&mut self) {
        let (live, now) = (self.barriers.live(), self.now);
        let waits = |calls: usize| calls > 0 && calls < live;
        let (barriers, quiesces) = (self.barriers.callers().count(), self.quiesces.callers().count());
        self.barriers.own.set(waits(barriers), now);
        self.quiesces.own.set(waits(quiesces) && self.config.channel == ChannelId(0), now);
    }

    /// Tells who is missing, where a call has waited for long.
    pub(super) fn report_missing(&mut self) {
        let (config, now) = (&self.config, self.now);
        if self.barriers.own.is_over(config, now) {
            let absent = self.absent_workers(|worker| self.barriers.callers().any(|caller| caller == worker));
            self.tell_missing(Collective::Barrier, absent);
        }
        if self.quiesces.own.is_over(&self.config, now) {
            let absent = self.absent_workers(|worker| self.quiesces.callers().any(|caller| caller == worker));
            self.tell_missing(Collective::Quiesce, absent);
        }
        if self.barriers.all.is_over(&self.config, now) {
            let nodes = self.missing_at_barrier();
            let number = self.barriers.number();
            for node in self.barriers.arrived().clone().iter().filter(|node| *node != COORDINATOR) {
                let step = Barrier::Missing { number, nodes: (&nodes).into() };
                self.send(node, Message::bare(Body::Barrier(step)));
            }
            let arrived = self.quiesces.arrived();
            let absent = nodes.iter().map(|node| Absent::node(node, arrived.contains(node))).collect();
            self.tell_missing(Collective::Barrier, absent);
        }
        if self.quiesces.all.is_over(&self.config, now) {
            let arrived = self.barriers.arrived();
            let nodes = (0..self.config.nodes).map(|index| NodeId(index as u16));
            let nodes = nodes.filter(|node| !self.wants_rest_at(*node));
            let absent = nodes.map(|node| Absent::node(node, arrived.contains(node))).collect();
            self.tell_missing(Collective::Quiesce, absent);
        }
    }

    pub(super) fn tell_missing(&mut self, call: Collective, absent: Vec<Absent>) {
        if !absent.is_empty() {
            self.outputs.push_back(Output::Event(Event::Missing { call, absent }));
        }
    }

    /// Own workers that have neither called nor ended.
    fn absent_workers(&self, has_called: impl Fn(WorkerId) -> bool) -> Vec<Absent> {
        let waits = |worker: WorkerId| {
            self.barriers.callers().chain(self.quiesces.callers()).any(|caller| caller == worker)
        };
        let workers = (0..self.config.workers).map(|index| WorkerId(index as u16));
        let absent = workers.filter(|worker| self.barriers.live[worker.index()] && !has_called(*worker));
        let node = self.config.node;
        absent.map(|worker| Absent { node, worker: Some(worker), elsewhere: waits(worker) }).collect()
    }
}

impl Absent {
    /// Some worker of a node.
    pub(super) fn node(node: NodeId, elsewhere: bool) -> Self {
        Self { node, worker: None, elsewhere }
    }
}
