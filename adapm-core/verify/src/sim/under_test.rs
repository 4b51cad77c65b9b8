//! The system under test: nodes that take steps and messages, and return messages and busy times.

use core::fmt;

use adapm_core::transport::Frame;
use adapm_core::{Instant, NodeId};

use super::coverage::Facts;
use super::program::{NodeWorker, Step};
use crate::rng::Rng;

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The worker may go on.
    Done,
    /// The worker waits until [`SystemUnderTest::poll_ready`] names it.
    Waits,
}

/// The cost of a worker's step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The outcome.
    pub outcome: Outcome,
    /// Time for which the worker itself was busy, in nanoseconds.
    pub worker_nanos: u64,
    /// Time for which its node's channel is busy with it, in nanoseconds.
    pub node_nanos: u64,
}

impl Turn {
    /// Creates the cost of a step that took no time.
    #[must_use]
    pub const fn free(outcome: Outcome) -> Self {
        Self { outcome, worker_nanos: 0, node_nanos: 0 }
    }
}

/// A message that a node has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// True if it is a request, which the receiver has to answer.
    pub asks: bool,
    /// Size on the wire in bytes.
    pub bytes: usize,
    /// Its content. A system that keeps the content to itself leaves this empty: messages arrive in
    /// order.
    pub frame: Frame,
}

/// A system under test.
///
/// It is fed in the order of virtual time. After each call that changes it, the simulator drains
/// [`SystemUnderTest::poll_sent`] and [`SystemUnderTest::poll_ready`], and calls
/// [`SystemUnderTest::wake_at`] for the node concerned. A number returned by a call is the time, in
/// nanoseconds, for which the node's channel is busy: messages of the call leave after that, and
/// the node gets no other input until then.
pub trait SystemUnderTest {
    /// The type of its failures.
    type Violation: fmt::Display + fmt::Debug;

    /// Returns the number of nodes.
    fn nodes(&self) -> usize;

    /// Returns the number of workers of each node.
    fn workers(&self) -> usize;

    /// Lets a worker take a step, any but [`Step::Compute`].
    ///
    /// # Errors
    /// A violation after it.
    fn step(&mut self, now: Instant, who: NodeWorker, step: Step) -> Result<Turn, Self::Violation>;

    /// Delivers the next message from `from` to `to`: the oldest that has not arrived.
    ///
    /// # Errors
    /// A violation after it.
    fn deliver(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        frame: Frame,
    ) -> Result<u64, Self::Violation>;

    /// Wakes `node` at the time that it asked for.
    ///
    /// # Errors
    /// A violation after it.
    fn timeout(&mut self, now: Instant, node: NodeId) -> Result<u64, Self::Violation>;

    /// Returns the time at which `node` checks its peers in its next [`SystemUnderTest::timeout`];
    /// `None` if it does not.
    fn next_peer_check(&self, node: NodeId) -> Option<Instant> {
        let _ = node;
        None
    }

    /// Reports to `node`, which is about to check its peers, that links hold up the answer of
    /// `peer`: it is then not unresponsive.
    ///
    /// # Errors
    /// A violation after it.
    fn note_held_up(
        &mut self,
        now: Instant,
        node: NodeId,
        peer: NodeId,
    ) -> Result<(), Self::Violation> {
        let _ = (now, node, peer);
        Ok(())
    }

    /// Returns the next message sent, in the order in which its node sent it.
    fn poll_sent(&mut self) -> Option<Sent>;

    /// Returns the next worker that waited and may go on.
    fn poll_ready(&mut self) -> Option<NodeWorker>;

    /// Returns the time for which `node` wants [`SystemUnderTest::timeout`]; `None` if it waits for
    /// other inputs.
    fn wake_at(&self, node: NodeId) -> Option<Instant>;

    /// Returns true if nothing is in flight and nothing waits. Called after each event once all
    /// workers are finished.
    fn is_at_rest(&self) -> bool;

    /// Describes pending work: called when the simulation does not come to rest.
    fn waiting(&self) -> String;

    /// Returns the situation at `node`, for the counts of faults.
    fn facts(&self, node: NodeId) -> Facts {
        let _ = node;
        Facts::default()
    }

    /// Makes `node` vanish, or stop working. The first `arriving(peer)` of its messages in flight
    /// to each peer still arrive.
    ///
    /// # Errors
    /// A violation after it.
    fn vanish(
        &mut self,
        now: Instant,
        node: NodeId,
        arriving: &dyn Fn(NodeId) -> usize,
    ) -> Result<(), Self::Violation> {
        let _ = (now, node, arriving);
        Ok(())
    }

    /// Reports to `survivor` that its link session has given `peer` up; nothing of it arrives any
    /// more.
    ///
    /// # Errors
    /// A violation after it.
    fn lose(
        &mut self,
        now: Instant,
        survivor: NodeId,
        peer: NodeId,
    ) -> Result<u64, Self::Violation> {
        let _ = (now, survivor, peer);
        Ok(0)
    }

    /// Feeds `to` a message that no sound node sends, as if from `from`.
    ///
    /// # Errors
    /// A violation after it.
    fn lie(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        rng: &mut Rng,
    ) -> Result<(), Self::Violation> {
        let _ = (now, from, to, rng);
        Ok(())
    }
}
