//! A cluster for trying claims, with a record of its messages.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use adapm_core::policy::System;
use adapm_core::slot::State;
use adapm_core::{Key, NodeId, WorkerId};
use adapm_verify::oracle::NodeWorker;
use adapm_verify::{Cluster, Setup, Violation};

pub(crate) type Claim = Result<(), Violation>;

pub(crate) const N0: NodeId = NodeId(0);
pub(crate) const N1: NodeId = NodeId(1);
pub(crate) const N2: NodeId = NodeId(2);
pub(crate) const N3: NodeId = NodeId(3);

/// Returns worker 0 of a node.
pub(crate) fn of(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

/// Four nodes with two workers each, and their messages.
pub(crate) struct Play {
    cluster: Cluster,
    said: Rc<RefCell<Vec<String>>>,
}

impl Play {
    pub(crate) fn new(system: System) -> Self {
        Self::with(Setup::new(system, 4, 2, 64))
    }

    pub(crate) fn with(setup: Setup) -> Self {
        let mut cluster = Cluster::new(setup);
        let said = Rc::new(RefCell::new(Vec::new()));
        let ear = said.clone();
        cluster.tell_steps(move |step| {
            if let Some((_, message)) =
                step.split_once(' ').filter(|(_, rest)| rest.contains(" -> "))
            {
                ear.borrow_mut().push(message.to_string());
            }
        });
        Self { cluster, said }
    }

    /// Runs the cluster until it is at rest. Returns the messages delivered meanwhile, as "n1 ->
    /// n0: News".
    pub(crate) fn run(&mut self) -> Result<Vec<String>, Violation> {
        self.said.take();
        self.cluster.settle()?;
        Ok(self.said.take())
    }

    /// Runs the cluster until it is at rest. Returns the links of the messages, as "n1 -> n0".
    pub(crate) fn ways(&mut self) -> Result<Vec<String>, Violation> {
        Ok(self
            .run()?
            .iter()
            .map(|message| message.split(':').next().unwrap_or_default().to_string())
            .collect())
    }

    /// Returns the first key whose home is n0.
    pub(crate) fn key(&self) -> Key {
        self.cluster.setup().key_of(N0)
    }

    /// Returns some keys whose home is `node`.
    pub(crate) fn keys_of(&self, node: NodeId, count: usize) -> Vec<Key> {
        let at_home = |key: &Key| self.cluster.setup().home(*key) == node;
        self.cluster.keys().filter(at_home).take(count).collect()
    }

    /// Signals intent of worker 0 of `node` and runs until at rest.
    pub(crate) fn signal(&mut self, node: NodeId, key: Key, clocks: std::ops::Range<u64>) -> Claim {
        self.cluster.intent(of(node), &[key], clocks)?;
        self.cluster.settle()
    }

    /// Raises the clock of worker 0 of `node` and runs until at rest.
    pub(crate) fn tick(&mut self, node: NodeId, clocks: u64) -> Claim {
        self.cluster.advance_clock(of(node), clocks);
        self.cluster.settle()
    }

    /// Returns the state of `key` at all nodes.
    pub(crate) fn states(&self, key: Key) -> [State; 4] {
        [N0, N1, N2, N3].map(|node| self.cluster.state(node, key))
    }
}

impl Deref for Play {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl DerefMut for Play {
    fn deref_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }
}
