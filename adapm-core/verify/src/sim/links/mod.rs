//! What is between the nodes of a simulation: takes messages, and says when which arrive.

mod perfect;

use adapm_core::transport::Frame;
use adapm_core::{Instant, NodeId};

use super::faults::Fault;
use super::under_test::Sent;

pub use perfect::Perfect;

/// Carries messages in order between any two nodes.
pub trait Links {
    /// Something that links do later.
    type Event;

    /// A run begins: links that need to be made are made, once.
    fn open(&mut self, now: Instant, effects: &mut Effects<Self::Event>) {
        let _ = (now, effects);
    }

    /// A message leaves `sent.from` at `when`, which is `now` or later; never earlier than those
    /// before it.
    ///
    /// # Errors
    /// What is wrong.
    fn send(
        &mut self,
        now: Instant,
        when: Instant,
        sent: Sent,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken>;

    /// The time of an event of theirs has come.
    ///
    /// # Errors
    /// What is wrong.
    fn handle(
        &mut self,
        now: Instant,
        event: Self::Event,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken>;

    /// Three numbers that say what the event is, for the fingerprint of the run.
    fn trace(&self, event: &Self::Event) -> [u64; 3];

    /// A fault strikes. Those that links know nothing of do nothing to them.
    ///
    /// # Errors
    /// What is wrong.
    fn strike(
        &mut self,
        now: Instant,
        fault: &Fault,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken> {
        let _ = (now, fault, effects);
        Ok(())
    }

    /// All faults heal.
    fn heal(&mut self, now: Instant, effects: &mut Effects<Self::Event>) {
        let _ = (now, effects);
    }

    /// All nodes say goodbye to all others.
    ///
    /// # Errors
    /// What is wrong.
    fn close(&mut self, now: Instant, effects: &mut Effects<Self::Event>) -> Result<(), Broken> {
        let _ = (now, effects);
        Ok(())
    }

    /// Whether nothing is to be done: everything has arrived, and every goodbye that was said.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// Whether the answer of `peer` to the last request of `node` may be late because of the links;
    /// asked once before each look.
    fn holds_up(&mut self, node: NodeId, peer: NodeId) -> bool {
        let _ = (node, peer);
        false
    }

    /// Whether `node` has sent what no peer has acknowledged, and whether it has to wait for room.
    fn backlog(&self, node: NodeId) -> (bool, bool) {
        let _ = node;
        (false, false)
    }

    /// What is in the way of rest, for people.
    fn waiting(&self) -> String {
        String::new()
    }
}

/// What links do at once, and what they will do.
#[derive(Debug)]
pub struct Effects<E> {
    /// Events of theirs to come.
    pub later: Vec<(Instant, E)>,
    /// Messages that arrive: sender, receiver, content.
    pub arrived: Vec<(NodeId, NodeId, Frame)>,
    /// Survivors that give a peer up.
    pub lost: Vec<(NodeId, NodeId)>,
    /// What happened, in words; nobody listens if there is none.
    pub told: Option<Vec<String>>,
}

impl<E> Default for Effects<E> {
    fn default() -> Self {
        Self { later: Vec::new(), arrived: Vec::new(), lost: Vec::new(), told: None }
    }
}

impl<E> Effects<E> {
    /// Tells something to whoever listens.
    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(what());
        }
    }
}

/// A promise of links that does not hold; one line for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub String);
