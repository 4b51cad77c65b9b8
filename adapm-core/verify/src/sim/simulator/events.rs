//! Handlers of the simulator's events.

use adapm_core::NodeId;

use super::{Event, Item, Simulator};
use crate::sim::coverage::{Fact, Facts};
use crate::sim::faults::Fault;
use crate::sim::links::Links;
use crate::sim::program::{NodeWorker, Program, Step};
use crate::sim::simulator::Failure;
use crate::sim::under_test::{Outcome, SystemUnderTest};

impl<S: SystemUnderTest, L: Links> Simulator<S, L> {
    pub(super) fn handle(
        &mut self,
        event: Event<L::Event>,
        program: &mut dyn Program,
    ) -> Result<(), Failure<S::Violation>> {
        match event {
            Event::Turn(who) => self.turn(who, program),
            Event::Serve(node) => self.serve(node),
            Event::Alarm(node) => {
                self.sound(node);
                Ok(())
            }
            Event::Links(event) => {
                let what = self.links.trace(&event);
                self.trace.add(self.now(), "link", what);
                self.links
                    .handle(self.queue.now(), event, &mut self.effects)
                    .map_err(Failure::Links)?;
                self.take_effects();
                Ok(())
            }
            Event::Strike(fault) => self.strike(&fault),
        }
    }

    /// Lets a worker take its next step.
    fn turn(
        &mut self,
        who: NodeWorker,
        program: &mut dyn Program,
    ) -> Result<(), Failure<S::Violation>> {
        let now = self.now();
        let host = &mut self.hosts[who.0.index()];
        if host.is_gone {
            return Ok(());
        }
        if host.paused_until > now {
            self.queue.at(host.paused_until, Event::Turn(who));
            return Ok(());
        }
        let Some(step) = program.next(now, who) else {
            host.idle[who.1.index()] = true;
            self.active -= 1;
            self.finished_at = now;
            return Ok(());
        };
        if let Step::Compute(duration) = step {
            let nanos = duration.as_nanos() as u64 * self.pace(who.0);
            self.queue.at(now.plus_nanos(nanos), Event::Turn(who));
            return Ok(());
        }
        self.steps += 1;
        self.trace.add(now, "turn", [u64::from(who.0.0), u64::from(who.1.0), self.steps]);
        let turn = self.under_test.step(now, who, step).map_err(Failure::Violation)?;
        self.occupy(who.0, turn.node_nanos);
        if turn.outcome == Outcome::Done {
            let nanos = turn.worker_nanos * self.pace(who.0);
            self.queue.at(now.plus_nanos(nanos), Event::Turn(who));
        }
        self.settle(who.0)?;
        while self.plan.front().is_some_and(|(steps, _)| *steps <= self.steps) {
            let Some((_, fault)) = self.plan.pop_front() else { break };
            self.strike(&fault)?;
        }
        Ok(())
    }

    /// Lets the node's channel take the next item, if it may.
    fn serve(&mut self, node: NodeId) -> Result<(), Failure<S::Violation>> {
        let now = self.now();
        let host = &mut self.hosts[node.index()];
        let from = host.free_at.max(host.paused_until);
        if host.is_gone {
            return Ok(());
        }
        if from > now {
            self.queue.at(from, Event::Serve(node));
            return Ok(());
        }
        host.is_serving = false;
        let Some(item) = host.inbox.pop_front() else { return Ok(()) };
        let nanos = match item {
            Item::Message(from, frame) => {
                self.trace.add(
                    now,
                    "message",
                    [u64::from(from.0), u64::from(node.0), frame.len() as u64],
                );
                self.under_test.deliver(now, from, node, frame)
            }
            Item::Timeout => {
                self.trace.add(now, "timeout", [u64::from(node.0), 0, 0]);
                self.tell_of_links(node)?;
                self.under_test.timeout(now, node)
            }
            Item::Lost(peer) => {
                self.trace.add(now, "lost", [u64::from(node.0), u64::from(peer.0), 0]);
                self.under_test.lose(now, node, peer)
            }
        };
        self.occupy(node, nanos.map_err(Failure::Violation)?);
        self.settle(node)?;
        self.invite(node);
        Ok(())
    }

    /// Reports to a node that is about to check its peers which of them are held up by links, as a
    /// driver does.
    fn tell_of_links(&mut self, node: NodeId) -> Result<(), Failure<S::Violation>> {
        let now = self.now();
        if self.under_test.next_peer_check(node).is_none_or(|at| at > now) {
            return Ok(());
        }
        let nodes = (0..self.hosts.len() as u16).map(NodeId);
        for peer in nodes.filter(|peer| *peer != node) {
            if self.links.holds_up(node, peer) {
                self.under_test.note_held_up(now, node, peer).map_err(Failure::Violation)?;
            }
        }
        Ok(())
    }

    /// Handles an alarm of a node, which may be outdated.
    fn sound(&mut self, node: NodeId) {
        let now = self.now();
        let host = &mut self.hosts[node.index()];
        if host.alarm != Some(now) {
            return;
        }
        host.alarm = None;
        if self.under_test.wake_at(node).is_some_and(|wake| wake <= now) {
            self.put(node, Item::Timeout);
        } else {
            self.arm(node);
        }
    }

    fn strike(&mut self, fault: &Fault) -> Result<(), Failure<S::Violation>> {
        let now = self.now();
        let nodes = fault.nodes();
        if nodes.iter().any(|node| self.hosts[node.index()].is_gone) {
            return Ok(());
        }
        if let Some(tell) = &mut self.tell {
            tell(&format!("{now:?} {fault:?}"));
        }
        self.trace.add(
            now,
            "fault",
            [fault.kind() as u64, u64::from(nodes[0].0), nodes.len() as u64],
        );
        let mut facts = Facts::default();
        for node in &nodes {
            facts = facts.and(self.under_test.facts(*node));
            let (unacknowledged, no_room) = self.links.backlog(*node);
            facts.note(Fact::Unacknowledged, unacknowledged);
            facts.note(Fact::NoRoom, no_room);
        }
        self.coverage.record(fault.kind(), facts);
        self.links.strike(now, fault, &mut self.effects).map_err(Failure::Links)?;
        self.take_effects();
        match fault {
            Fault::Pause(node, lasts) => {
                let host = &mut self.hosts[node.index()];
                host.paused_until = host.paused_until.max(now.plus_nanos(lasts.as_nanos() as u64));
            }
            Fault::Slow(node, factor, lasts) => {
                self.hosts[node.index()].slow = (*factor, now.plus_nanos(lasts.as_nanos() as u64));
            }
            Fault::Lie(from, to) => {
                self.under_test.lie(now, *from, *to, &mut self.rng).map_err(Failure::Violation)?;
                self.settle(*to)?;
            }
            Fault::Vanish(node) => self.vanish(*node)?,
            Fault::Mute(node) => self.stop(*node, &|_| usize::MAX)?,
            Fault::Reset(..)
            | Fault::OneWay(..)
            | Fault::Partition(..)
            | Fault::SlowLink(..)
            | Fault::Hole(..)
            | Fault::Repeat(..) => {}
        }
        Ok(())
    }

    /// Makes the node vanish. Its messages that still arrive are in the inboxes by now.
    fn vanish(&mut self, node: NodeId) -> Result<(), Failure<S::Violation>> {
        let hosts = &self.hosts;
        let arriving = |to: NodeId| {
            let read = |item: &&Item| matches!(item, Item::Message(from, _) if *from == node);
            hosts[to.index()].inbox.iter().filter(read).count()
        };
        let arriving: Vec<usize> = (0..hosts.len() as u16).map(NodeId).map(arriving).collect();
        self.stop(node, &|to| arriving[to.index()])
    }

    /// Stops the node for good; of its messages to each other node, a number still arrive.
    fn stop(
        &mut self,
        node: NodeId,
        arriving: &dyn Fn(NodeId) -> usize,
    ) -> Result<(), Failure<S::Violation>> {
        self.under_test.vanish(self.queue.now(), node, arriving).map_err(Failure::Violation)?;
        let host = &mut self.hosts[node.index()];
        self.active -= host.idle.iter().filter(|idle| !**idle).count();
        host.idle.fill(true);
        host.inbox.clear();
        host.is_gone = true;
        Ok(())
    }

    /// Takes the outputs of the system under test after an input to `node`, and sets the node's
    /// alarm.
    fn settle(&mut self, node: NodeId) -> Result<(), Failure<S::Violation>> {
        let now = self.now();
        while let Some(sent) = self.under_test.poll_sent() {
            let when = self.hosts[sent.from.index()].free_at.max(now);
            self.links.send(now, when, sent, &mut self.effects).map_err(Failure::Links)?;
        }
        while let Some(who) = self.under_test.poll_ready() {
            self.queue.at(self.hosts[who.0.index()].free_at, Event::Turn(who));
        }
        self.take_effects();
        self.arm(node);
        Ok(())
    }

    pub(super) fn take_effects(&mut self) {
        for (when, event) in self.effects.later.drain(..) {
            self.queue.at(when, Event::Links(event));
        }
        for (from, to, frame) in core::mem::take(&mut self.effects.arrived) {
            self.put(to, Item::Message(from, frame));
        }
        for (survivor, peer) in core::mem::take(&mut self.effects.lost) {
            self.put(survivor, Item::Lost(peer));
        }
        if let (Some(tell), Some(told)) = (&mut self.tell, &mut self.effects.told) {
            for line in told.drain(..) {
                tell(&format!("{:?} {line}", self.queue.now()));
            }
        }
    }

    fn put(&mut self, node: NodeId, item: Item) {
        if !self.hosts[node.index()].is_gone {
            self.hosts[node.index()].inbox.push_back(item);
            self.invite(node);
        }
    }

    /// Schedules the node's channel to take its next item as soon as it may.
    fn invite(&mut self, node: NodeId) {
        let host = &mut self.hosts[node.index()];
        if !host.is_serving && !host.inbox.is_empty() {
            host.is_serving = true;
            self.queue.at(host.free_at.max(host.paused_until), Event::Serve(node));
        }
    }

    /// Sets the alarm of a node, unless an earlier one is set.
    fn arm(&mut self, node: NodeId) {
        let Some(wake) = self.under_test.wake_at(node) else { return };
        let wake = wake.max(self.now());
        let host = &mut self.hosts[node.index()];
        if host.alarm.is_none_or(|alarm| alarm > wake) {
            host.alarm = Some(wake);
            self.queue.at(wake, Event::Alarm(node));
        }
    }

    /// Keeps the node's channel busy for this time.
    fn occupy(&mut self, node: NodeId, nanos: u64) {
        let (now, pace) = (self.now(), self.pace(node));
        let host = &mut self.hosts[node.index()];
        host.free_at = host.free_at.max(now).plus_nanos(nanos * pace);
    }

    /// Returns the factor by which the node is slowed down.
    fn pace(&self, node: NodeId) -> u64 {
        let (factor, until) = self.hosts[node.index()].slow;
        if until > self.now() { u64::from(factor) } else { 1 }
    }
}
