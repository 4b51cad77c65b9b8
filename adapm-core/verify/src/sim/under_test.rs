//! What is simulated: nodes that take steps and messages, and say what they send and how long they
//! are busy.

use core::fmt;

use adapm_core::transport::Frame;
use adapm_core::{Instant, NodeId};

use super::coverage::Facts;
use super::program::{Step, Who};
use crate::rng::Rng;

/// Whether a step is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The worker may go on.
    Done,
    /// The worker waits until [`SystemUnderTest::poll_ready`] names it.
    Waits,
}

/// What a step of a worker costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Whether it is over.
    pub outcome: Outcome,
    /// How long the worker itself was busy, in nanoseconds.
    pub worker_nanos: u64,
    /// How long its node's channel is busy with it, in nanoseconds.
    pub node_nanos: u64,
}

impl Turn {
    /// A step that took no time.
    #[must_use]
    pub const fn free(outcome: Outcome) -> Self {
        Self { outcome, worker_nanos: 0, node_nanos: 0 }
    }
}

/// A message that a node has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Who sent it.
    pub from: NodeId,
    /// Who shall receive it.
    pub to: NodeId,
    /// Whether the receiver owes an answer.
    pub asks: bool,
    /// What it weighs on the wire.
    pub bytes: usize,
    /// Its content. A under_test that keeps the content to itself leaves this empty: messages
    /// arrive in order.
    pub frame: Frame,
}

/// What is simulated.
///
/// The under_test is fed in the order of virtual time. After each call that changes it, the
/// simulator drains [`SystemUnderTest::poll_sent`] and [`SystemUnderTest::poll_ready`], and asks
/// [`SystemUnderTest::wake_at`] of the node concerned. A number that a call returns is the time, in
/// nanoseconds, that the node's channel is busy: what the call sent leaves when that is over, and
/// the node is fed nothing else until then.
pub trait SystemUnderTest {
    /// What is wrong, if something is.
    type Violation: fmt::Display + fmt::Debug;

    /// Number of nodes.
    fn nodes(&self) -> usize;

    /// Number of workers of each node.
    fn workers(&self) -> usize;

    /// A worker takes a step, any but [`Step::Compute`].
    ///
    /// # Errors
    /// What is wrong after it.
    fn step(&mut self, now: Instant, who: Who, step: Step) -> Result<Turn, Self::Violation>;

    /// The next message from `from` arrives at `to`: the one that was sent first of those that have
    /// not arrived.
    ///
    /// # Errors
    /// What is wrong after it.
    fn deliver(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        frame: Frame,
    ) -> Result<u64, Self::Violation>;

    /// `node` wanted to be woken.
    ///
    /// # Errors
    /// What is wrong after it.
    fn timeout(&mut self, now: Instant, node: NodeId) -> Result<u64, Self::Violation>;

    /// When `node` looks at its peers in its next [`SystemUnderTest::timeout`]; `None`: it does
    /// not.
    fn looks_at(&self, node: NodeId) -> Option<Instant> {
        let _ = node;
        None
    }

    /// `node`, which is about to look at its peers, hears that links hold up what it waits for of
    /// `peer`.
    ///
    /// # Errors
    /// What is wrong after it.
    fn hear(&mut self, now: Instant, node: NodeId, peer: NodeId) -> Result<(), Self::Violation> {
        let _ = (now, node, peer);
        Ok(())
    }

    /// The next message sent, in the order in which its node sent it.
    fn poll_sent(&mut self) -> Option<Sent>;

    /// The next worker that waited and may go on.
    fn poll_ready(&mut self) -> Option<Who>;

    /// When `node` wants [`SystemUnderTest::timeout`]; `None`: not before something else happens.
    fn wake_at(&self, node: NodeId) -> Option<Instant>;

    /// Whether nothing is on its way and nothing waits. Asked after each event once all workers
    /// have done everything.
    fn is_at_rest(&self) -> bool;

    /// Who waits for what, for people: asked when the simulation does not come to rest.
    fn waiting(&self) -> String;

    /// What is going on at `node`, for the count of what each fault met.
    fn facts(&self, node: NodeId) -> Facts {
        let _ = node;
        Facts::default()
    }

    /// `node` vanishes, or does nothing any more. Of what it has sent to each other node, the first
    /// so many messages are still going to arrive.
    ///
    /// # Errors
    /// What is wrong after it.
    fn vanish(
        &mut self,
        now: Instant,
        node: NodeId,
        arriving: &dyn Fn(NodeId) -> usize,
    ) -> Result<(), Self::Violation> {
        let _ = (now, node, arriving);
        Ok(())
    }

    /// The link session of `survivor` has given `peer` up; nothing of it arrives any more.
    ///
    /// # Errors
    /// What is wrong after it.
    fn lose(
        &mut self,
        now: Instant,
        survivor: NodeId,
        peer: NodeId,
    ) -> Result<u64, Self::Violation> {
        let _ = (now, survivor, peer);
        Ok(0)
    }

    /// `to` gets a message that no sound node sends, as if from `from`.
    ///
    /// # Errors
    /// What is wrong after it.
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
