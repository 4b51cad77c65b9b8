//! The network of a simulation: takes messages, and schedules their arrivals.

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

    /// Begins a run: makes links that must be made, once.
    fn open(&mut self, now: Instant, effects: &mut Effects<Self::Event>) {
        let _ = (now, effects);
    }

    /// Sends a message from `sent.from` at `when`, which is `now` or later, and never earlier than
    /// for those before it.
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

    /// Makes all nodes say goodbye to all others.
    ///
    /// # Errors
    /// A broken promise.
    fn close(&mut self, now: Instant, effects: &mut Effects<Self::Event>) -> Result<(), Broken> {
        let _ = (now, effects);
        Ok(())
    }

    /// Returns true if nothing is pending: everything has arrived, and every goodbye that was said.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// Returns true if the answer of `peer` to the last request of `node` may be late because of
    /// the links; asked once before each check.
    fn holds_up(&mut self, node: NodeId, peer: NodeId) -> bool {
        let _ = (node, peer);
        false
    }

    /// Returns true if `node` has unacknowledged data; then true if it has to wait for room.
    fn backlog(&self, node: NodeId) -> (bool, bool) {
        let _ = node;
        (false, false)
    }

    /// Describes unfinished work.
    fn waiting(&self) -> String {
        String::new()
    }
}

/// Immediate effects of links, and their future events.
#[derive(Debug)]
pub struct Effects<E> {
    /// Future events.
    pub later: Vec<(Instant, E)>,
    /// Messages that arrive: sender, receiver, content.
    pub arrived: Vec<(NodeId, NodeId, Frame)>,
    /// Survivors that give a peer up.
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
    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(what());
        }
    }
}

/// A broken promise of links; one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub String);
