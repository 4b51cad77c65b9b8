//! `quiesce` and the end of a run (protocol, section 7): waves over all nodes, which node 0 coordinates.
//!
//! After every live worker has called `quiesce`, two waves *settle*: each node reports once all is done that had begun there when
//! the probe arrived ([`crate::engine::sync`]). After the first, every push made before the calls is in its main copy; after
//! the second, it is in every replica as well. What begins later is not waited for, so a thread that goes on localizing or
//! writing keeps no quiesce from ending.
//!
//! At the end of a run, after all nodes have begun to leave, waves look for *rest*: each node reports how it stands. Two
//! successive waves in which no node has anything waiting and messages sent equal messages applied, with the same totals in
//! both, prove that nothing is on its way.
//!
//! # What a peer may claim
//! Only a node itself knows that its workers have called, that nothing waits there and what it has sent and applied. Whoever
//! adds to its own totals what is under way between others ends a quiesce early, whoever is always busy lets none end: sums
//! cannot tell. Refused is what contradicts them or this node: totals that shrink, that are below what has come from that
//! node, or that none can reach; a second arrival; an end for which nobody here has called.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::barrier::COORDINATOR;
use crate::engine::input::OpId;
use crate::engine::missing::Patience;
use crate::engine::state::Totals;
use crate::error::Fault;
use crate::id::{ChannelId, NodeId, WorkerId};
use crate::node_set::NodeSet;
use crate::policy::Policy;
use crate::store::Store;
use crate::time::Instant;
use crate::wire::Message;
use crate::wire::message::{Body, Quiesce};

/// Quiesces of this node, and of all nodes if it coordinates.
#[derive(Debug, Default)]
pub(super) struct Quiesces {
    calls: Vec<(WorkerId, OpId)>,
    told: bool,
    number: u64,
    leave: Vec<OpId>,
    /// A probe to be answered at the end of the input: the wave, and whether it settles.
    probe: Option<(u64, bool)>,
    arrived: NodeSet,
    leaving: NodeSet,
    wave: Option<Wave>,
    waves: u64,
    next_wave: Option<Instant>,
    /// Waiting for own workers.
    pub(super) own: Patience,
    /// Coordinator: waiting for nodes to call.
    pub(super) all: Patience,
}

/// One wave that the coordinator runs.
#[derive(Debug)]
struct Wave {
    number: u64,
    kind: WaveKind,
    reported: NodeSet,
    busy: bool,
    sent: u64,
    applied: u64,
}

/// What a wave is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WaveKind {
    /// A quiesce: the first or the second of its waves.
    Settle { is_second: bool },
    /// The end of the run, with the total of the wave before if it found rest.
    Rest { before: Option<u64> },
}

impl Quiesces {
    pub(super) fn is_waiting(&self) -> bool {
        !self.calls.is_empty() || !self.leave.is_empty()
    }

    /// Own workers that wait.
    pub(super) fn callers(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.calls.iter().map(|(worker, _)| *worker)
    }

    /// Coordinator: nodes that have arrived at the current quiesce.
    pub(super) fn arrived(&self) -> &NodeSet {
        &self.arrived
    }

    /// When the coordinator starts the next wave.
    pub(super) fn next_wave_at(&self) -> Option<Instant> {
        self.next_wave
    }

    /// Gives up the calls that wait.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + '_ {
        self.calls.drain(..).map(|(_, op)| op).chain(self.leave.drain(..))
    }
}

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn call_quiesce(&mut self, worker: WorkerId, op: OpId) {
        self.quiesces.calls.push((worker, op));
        self.progress_quiesce_calls();
        self.note_own_calls();
    }

    /// No operation follows on this node.
    pub(super) fn leave(&mut self, op: OpId) {
        self.quiesces.leave.push(op);
        self.tell_waves(Quiesce::Leaving);
    }

    pub(super) fn progress_quiesce_calls(&mut self) {
        let calls = self.quiesces.calls.len();
        if calls > 0 && !self.quiesces.told && calls >= self.barriers.live() {
            self.quiesces.told = true;
            let number = self.quiesces.number;
            self.tell_waves(Quiesce::Arrived { number });
        }
    }

    fn tell_waves(&mut self, step: Quiesce) {
        if self.config.node == COORDINATOR {
            self.coordinate_waves(COORDINATOR, &step);
        } else {
            self.send(COORDINATOR, Message::bare(Body::Quiesce(step)));
        }
    }

    pub(super) fn handle_quiesce(&mut self, from: NodeId, step: Quiesce) -> Result<(), Fault> {
        let coordinates = self.config.node == COORDINATOR;
        match step {
            Quiesce::Arrived { number }
                if coordinates && number == self.quiesces.number && !self.quiesces.arrived.contains(from) => {
            }
            Quiesce::Leaving if coordinates => {}
            Quiesce::Report { wave, sent, applied, .. }
                if coordinates
                    && self.awaits_report(from, wave)
                    && self.may_have_counted(from, Totals { sent, applied }) => {}
            Quiesce::Probe { wave, settle } if from == COORDINATOR => {
                self.round.awaited = self.round.number;
                self.quiesces.probe = Some((wave, settle));
            }
            Quiesce::Done { number }
                if from == COORDINATOR && number == self.quiesces.number && self.wants_rest() =>
            {
                self.end_quiesce()
            }
            Quiesce::Left if from == COORDINATOR && !self.quiesces.leave.is_empty() => self.end_leave(),
            _ => return Err(Fault::Unexpected),
        }
        if coordinates {
            self.coordinate_waves(from, &step);
        }
        Ok(())
    }

    /// Whether this node's workers have called, or none of them ever will.
    fn wants_rest(&self) -> bool {
        self.quiesces.told || !self.quiesces.leave.is_empty() || self.barriers.live() == 0
    }

    fn may_have_counted(&self, from: NodeId, totals: Totals) -> bool {
        let peer = &self.peers[from.index()];
        let sent_min = peer.applied.max(peer.reported.sent);
        (sent_min..TOTAL_END).contains(&totals.sent)
            && (peer.reported.applied..TOTAL_END).contains(&totals.applied)
    }

    fn awaits_report(&self, from: NodeId, wave: u64) -> bool {
        self.quiesces.wave.as_ref().is_some_and(|open| open.number == wave && !open.reported.contains(from))
    }

    fn coordinate_waves(&mut self, from: NodeId, step: &Quiesce) {
        match *step {
            Quiesce::Arrived { .. } => {
                self.quiesces.arrived.insert(from);
            }
            Quiesce::Leaving => {
                self.quiesces.leaving.insert(from);
            }
            Quiesce::Report { busy, sent, applied, .. } => {
                self.peers[from.index()].reported = Totals { sent, applied };
                let wave = self.quiesces.wave.as_mut().expect("a report is checked against the wave");
                wave.reported.insert(from);
                wave.busy |= busy;
                wave.sent += sent;
                wave.applied += applied;
            }
            Quiesce::Probe { .. } | Quiesce::Done { .. } | Quiesce::Left => {}
        }
        self.progress_waves();
    }

    /// Whether every node waits for rest: it called, it leaves, or it has no workers left.
    fn all_want_rest(&self) -> bool {
        let someone = !self.quiesces.arrived.is_empty() || self.quiesces.leaving.len() == self.config.nodes;
        someone && (0..self.config.nodes).all(|index| self.wants_rest_at(NodeId(index as u16)))
    }

    /// Coordinator: whether that node waits for rest.
    pub(super) fn wants_rest_at(&self, node: NodeId) -> bool {
        self.quiesces.arrived.contains(node)
            || self.quiesces.leaving.contains(node)
            || self.barriers.ended.contains(node)
    }

    /// Coordinator: starts the first wave, or looks whether the current one is complete.
    pub(super) fn progress_waves(&mut self) {
        if self.config.node != COORDINATOR {
            return;
        }
        let waits = !self.quiesces.arrived.is_empty() && !self.all_want_rest();
        self.quiesces.all.set(waits && self.config.channel == ChannelId(0), self.now);
        let Some(wave) = &self.quiesces.wave else {
            if self.all_want_rest() && self.quiesces.next_wave.is_none() {
                self.start_wave(self.first_wave());
            }
            return;
        };
        if wave.reported.len() < self.config.nodes {
            return;
        }
        let rest = !wave.busy && wave.sent == wave.applied;
        let (kind, total) = (wave.kind, wave.sent);
        self.quiesces.wave = None;
        match kind {
            WaveKind::Settle { is_second: false } if !planted!(self, SettleOnce) => {
                self.start_wave(WaveKind::Settle { is_second: true });
            }
            WaveKind::Settle { .. } => self.announce_rest(),
            WaveKind::Rest { before } if rest && before == Some(total) => self.announce_rest(),
            WaveKind::Rest { .. } if rest => self.start_wave(WaveKind::Rest { before: Some(total) }),
            WaveKind::Rest { .. } => {
                self.quiesces.next_wave = Some(self.now.plus_nanos(self.config.round_nanos_min));
            }
        }
    }

    fn first_wave(&self) -> WaveKind {
        if self.quiesces.arrived.is_empty() {
            WaveKind::Rest { before: None }
        } else {
            WaveKind::Settle { is_second: false }
        }
    }

    fn start_wave(&mut self, kind: WaveKind) {
        self.quiesces.next_wave = None;
        self.quiesces.waves += 1;
        let number = self.quiesces.waves;
        self.quiesces.wave =
            Some(Wave { number, kind, reported: NodeSet::new(), busy: false, sent: 0, applied: 0 });
        let settle = matches!(kind, WaveKind::Settle { .. });
        for index in 0..self.config.nodes {
            let node = NodeId(index as u16);
            if node != self.config.node {
                self.send(node, Message::bare(Body::Quiesce(Quiesce::Probe { wave: number, settle })));
            }
        }
        self.quiesces.probe = Some((number, settle));
    }

    /// At the end of every input: starts a wave that is due, and answers a probe with the state that the input left.
    pub(super) fn progress_quiesce(&mut self) {
        if self.quiesces.next_wave.is_some_and(|at| at <= self.now) {
            self.start_wave(self.first_wave());
        }
        while let Some((wave, settle)) = self.quiesces.probe.take() {
            if settle {
                self.settle(wave);
                continue;
            }
            // Intents of workers that have ended still have replicas to release.
            let unretired = !self.quiesces.leave.is_empty() && self.signals.any();
            self.report(wave, (unretired || !self.is_at_rest()) && !planted!(self, QuiesceWhileBusy));
        }
    }

    /// Tells the coordinator how this node stands in `wave`.
    pub(super) fn report(&mut self, wave: u64, busy: bool) {
        let (sent, applied) = (self.stats.messages_sent, self.stats.messages_applied);
        self.tell_waves(Quiesce::Report { wave, busy, sent, applied });
    }

    fn announce_rest(&mut self) {
        if self.quiesces.arrived.is_empty() {
            for index in 1..self.config.nodes {
                self.send(NodeId(index as u16), Message::bare(Body::Quiesce(Quiesce::Left)));
            }
            return self.end_leave();
        }
        let number = self.quiesces.number;
        self.quiesces.arrived = NodeSet::new();
        for index in 1..self.config.nodes {
            self.send(NodeId(index as u16), Message::bare(Body::Quiesce(Quiesce::Done { number })));
        }
        self.end_quiesce();
        self.progress_waves();
    }

    /// All nodes count quiesces, also those that only took part.
    fn end_quiesce(&mut self) {
        self.quiesces.number += 1;
        self.quiesces.told = false;
        for (_, op) in core::mem::take(&mut self.quiesces.calls) {
            self.done(op, Vec::new());
        }
    }

    fn end_leave(&mut self) {
        self.quiesces.leaving = NodeSet::new();
        for op in core::mem::take(&mut self.quiesces.leave) {
            self.done(op, Vec::new());
        }
    }
}

/// No node counts as many messages, and as many times the most nodes there can be is still a sum of 64 bits.
const TOTAL_END: u64 = 1 << 48;
