//! The network of a simulation: the trait [`Links`], which takes messages and schedules their
//! arrivals, and links without faults. Links with faults are in [`super::faults`].

mod perfect;

use adapm_core::transport::Frame;
use adapm_core::{Instant, NodeId};

use super::faults::Fault;
use super::under_test::Sent;

pub use perfect::Perfect;

/// A network that carries messages in order between any two nodes.
pub trait Links {
    /// A future event of the links.
    type Event;

    /// Connects the nodes; called when a run begins, and again without effect.
    fn open(&mut self, now: Instant, effects: &mut Effects<Self::Event>) {
        let _ = (now, effects);
    }

    /// Sends a message at `when`, the time at which its node has finished it: `now` or later, and
    /// not before earlier messages of the same node.
    ///
    /// # Errors
    /// A broken promise.
    fn send(
        &mut self,
        now: Instant,
        when: Instant,
        sent: Sent,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken>;

    /// Handles an event of the links at its time.
    ///
    /// # Errors
    /// A broken promise.
    fn handle(
        &mut self,
        now: Instant,
        event: Self::Event,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken>;

    /// Returns three numbers that identify the event, for the fingerprint of the run.
    fn trace(&self, event: &Self::Event) -> [u64; 3];

    /// Applies a fault, if it concerns links.
    ///
    /// # Errors
    /// A broken promise.
    fn strike(
        &mut self,
        now: Instant,
        fault: &Fault,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken> {
        let _ = (now, fault, effects);
        Ok(())
    }

    /// Heals all faults.
    fn heal(&mut self, now: Instant, effects: &mut Effects<Self::Event>) {
        let _ = (now, effects);
    }

    /// Makes all nodes send a goodbye to all others.
    ///
    /// # Errors
    /// A broken promise.
    fn close(&mut self, now: Instant, effects: &mut Effects<Self::Event>) -> Result<(), Broken> {
        let _ = (now, effects);
        Ok(())
    }

    /// Returns true if nothing is pending: all messages and goodbyes have arrived.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// Returns true if the answer of `peer` to the last request of `node` may be late because of
    /// the links. Called once before each check for unresponsive peers, as it compares with the
    /// call before.
    fn holds_up(&mut self, node: NodeId, peer: NodeId) -> bool {
        let _ = (node, peer);
        false
    }

    /// Returns (whether `node` has unacknowledged data, whether it waits for room in a link).
    fn backlog(&self, node: NodeId) -> (bool, bool) {
        let _ = node;
        (false, false)
    }

    /// Describes unfinished work, for the report of a simulation that does not come to rest.
    fn waiting(&self) -> String {
        String::new()
    }
}

/// The results of a call of [`Links`]: immediate effects and future events.
#[derive(Debug)]
pub struct Effects<E> {
    /// Future events.
    pub later: Vec<(Instant, E)>,
    /// Messages that arrive: (sender, receiver, content).
    pub arrived: Vec<(NodeId, NodeId, Frame)>,
    /// Losses: (survivor, peer that it gives up).
    pub lost: Vec<(NodeId, NodeId)>,
    /// Descriptions of events; `None` without a listener.
    pub told: Option<Vec<String>>,
}

impl<E> Default for Effects<E> {
    fn default() -> Self {
        Self { later: Vec::new(), arrived: Vec::new(), lost: Vec::new(), told: None }
    }
}

impl<E> Effects<E> {
    /// Describes an event to the listener, if there is one.
    pub fn tell(&mut self, describe: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(describe());
        }
    }
}

/// A broken promise of links, described in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub String);
