//! A cluster's parts and history, as its checkers and tests see it. Nothing here changes it.

use std::collections::BTreeSet;

use adapm_core::engine::{Intent, OpId};
use adapm_core::id::{Counter, Key, NodeId, WorkerId};
use adapm_core::layout::Kind;
use adapm_core::slot::{PackedState, State};
use adapm_core::wire::Message;

use crate::calls::Calls;
use crate::cut::Cut;
use crate::digits::Seen;
use crate::flight::{self, Entry};
use crate::losses::Losses;
use crate::member::{Member, Row, Told};
use crate::network::Network;
use crate::oracle::{NodeWorker, Oracle};
use crate::setup::Setup;
use crate::violation::Violation;

/// The members of a cluster, the messages between them, and the record of calls, reads, losses and
/// events.
///
/// Checkers borrow it; only the [`Cluster`](crate::cluster::Cluster) that owns it changes it.
pub struct Picture {
    pub(crate) setup: Setup,
    pub(crate) members: Vec<Member>,
    pub(crate) network: Network,
    pub(crate) oracle: Oracle,
    pub(crate) calls: Calls,
    pub(crate) losses: Losses,
    /// Events of the last step, with their nodes.
    pub(crate) told: Vec<(NodeId, Told)>,
    /// Nodes that ever localized a key: for them it may leave an owner with intent.
    pub(crate) localized: BTreeSet<(NodeId, Key)>,
    /// Nodes that have got a copy of a hot key: they must keep one.
    pub(crate) arrived: BTreeSet<(NodeId, Key)>,
    /// Replicas that have been set up, with their nodes.
    pub(crate) set_up: BTreeSet<(NodeId, Key)>,
    /// Intents signalled and perhaps not yet expired: a node may remember these by invariant 10.
    pub(crate) signalled: Vec<(NodeId, Intent)>,
    /// The counter under which each key's home knew its owner after the last step.
    pub(crate) heard: Vec<Counter>,
    /// Workers that have met, and have not yet begun what comes behind: to wait for a tick, or the
    /// next call of a snapshot.
    pub(crate) met: Vec<NodeWorker>,
    /// The snapshot under way.
    pub(crate) cut: Cut,
}

impl Picture {
    /// Creates a cluster before its first step.
    pub(crate) fn new(setup: Setup) -> Self {
        let keys = setup.layout.keys().end.0;
        let value_lens: Vec<usize> = (0..keys).map(|key| setup.value_len(Key(key))).collect();
        Self {
            members: (0..setup.nodes)
                .map(|node| Member::new(&setup, NodeId(node as u16)))
                .collect(),
            network: Network::new(&setup.layout, setup.nodes, setup.codec),
            oracle: Oracle::new(&value_lens).with_checks(setup.checks),
            calls: Calls::default(),
            losses: Losses::default(),
            told: Vec::new(),
            localized: BTreeSet::new(),
            arrived: BTreeSet::new(),
            set_up: BTreeSet::new(),
            signalled: Vec::new(),
            heard: vec![Counter::default(); value_lens.len()],
            met: Vec::new(),
            cut: Cut::default(),
            setup,
        }
    }

    /// Returns all nodes, in order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.setup.nodes as u16).map(NodeId)
    }

    /// Returns all keys of the channel, in order.
    pub fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        self.setup.keys()
    }

    /// Returns all keys of the layout, in order.
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = Key> + use<> {
        (0..self.setup.layout.keys().end.0).map(Key)
    }

    /// Returns all workers, in order.
    pub fn workers(&self) -> impl Iterator<Item = NodeWorker> + use<> {
        let workers = self.setup.workers as u16;
        self.nodes().flat_map(move |node| (0..workers).map(move |worker| (node, WorkerId(worker))))
    }

    /// Returns the shape of the cluster.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns a node with its engine and workers.
    #[must_use]
    pub fn member(&self, node: NodeId) -> &Member {
        &self.members[node.index()]
    }

    /// Returns the row of `key` at `node`.
    #[must_use]
    pub fn row(&self, node: NodeId, key: Key) -> &Row {
        &self.members[node.index()].rows[key.0 as usize]
    }

    /// Returns the state of `key` at `node`.
    #[must_use]
    pub fn state(&self, node: NodeId, key: Key) -> State {
        self.row(node, key).state()
    }

    /// Returns the owner of `key`, unless ownership is in flight.
    #[must_use]
    pub fn owner(&self, key: Key) -> Option<NodeId> {
        self.nodes().find(|node| self.state(*node, key) == State::Main)
    }

    /// Returns the counter under which the home of `key` knows its owner.
    pub(crate) fn heard_at_home(&self, key: Key) -> Counter {
        self.row(self.setup.home(key), key).view.packed.counter()
    }

    /// Returns true if the main copy of `key` does not exist yet: the layout is sparse, and the key
    /// is untouched at its home.
    #[must_use]
    pub fn is_untouched(&self, key: Key) -> bool {
        let home = self.setup.home(key);
        let sparse = self.setup.layout.kind() == Kind::Sparse;
        sparse
            && !self.losses.is_gone(home)
            && self.row(home, key).view.packed == PackedState::EMPTY
    }

    /// Returns the value of the main copy of `key`, even in flight.
    #[must_use]
    pub fn main_value(&self, key: Key) -> Option<Vec<i64>> {
        if let Some(owner) = self.owner(key) {
            return Some(self.row(owner, key).value.clone());
        }
        let grant =
            self.network.about(key).iter().find(|in_flight| in_flight.entry.kind.is_ownership())?;
        Some(self.granted_value(grant.to, &grant.entry))
    }

    /// Returns the content of the main copy of `key`, `None` if there is none.
    pub(crate) fn judged_main(&self, key: Key) -> Result<Option<Seen>, Violation> {
        self.main_value(key).map(|value| self.oracle.decode(key, &value)).transpose()
    }

    /// Returns the value of the main copy that an ownership entry in flight to `to` stands for:
    /// without a value it is the receiver's replica.
    pub(crate) fn granted_value(&self, to: NodeId, entry: &Entry) -> Vec<i64> {
        if !entry.value.is_empty() {
            return entry.value.clone();
        }
        let row = self.row(to, entry.key);
        if row.state() != State::Replica {
            // The grant of that replica is in flight before it.
            let grants = self
                .network
                .about(entry.key)
                .iter()
                .map(|in_flight| (in_flight.to, &in_flight.entry));
            let mut grants = grants.filter(|(receiver, grant)| {
                *receiver == to && grant.kind == flight::Kind::GrantReplica
            });
            return grants.next().map_or_else(
                || vec![0; self.setup.value_len(entry.key)],
                |(_, grant)| grant.value.clone(),
            );
        }
        row.value.iter().zip(&row.delta).map(|(value, delta)| value - delta).collect()
    }

    /// Returns the nodes that have not vanished, in order.
    pub fn living(&self) -> impl Iterator<Item = NodeId> + use<> {
        let gone = self.losses.gone().to_vec();
        self.nodes().filter(move |node| !gone.contains(node))
    }

    /// Returns survivors that have not been notified of a loss, with the vanished node.
    #[must_use]
    pub fn untold(&self) -> Vec<(NodeId, NodeId)> {
        let pairs =
            self.living().flat_map(|node| self.losses.gone().iter().map(move |gone| (node, *gone)));
        pairs.filter(|(node, gone)| !self.losses.knows(*node, *gone)).collect()
    }

    /// Returns the record of losses.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the worker's last intent that may not have expired.
    #[must_use]
    pub fn latest_intent(&self, who: NodeWorker) -> Option<&Intent> {
        self.intents_of(who).next()
    }

    /// Returns the worker's intents that may not have expired, the latest first.
    pub(crate) fn intents_of(&self, who: NodeWorker) -> impl Iterator<Item = &Intent> {
        let of_worker = move |(node, intent): &&(NodeId, Intent)| (*node, intent.worker) == who;
        self.signalled.iter().rev().filter(of_worker).map(|(_, intent)| intent)
    }

    /// Returns the messages in flight.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the record of accesses.
    #[must_use]
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Returns true if an entry of `kind` about `key` is in flight from `from` to `to`.
    #[must_use]
    pub fn is_in_flight(&self, kind: flight::Kind, key: Key, from: NodeId, to: NodeId) -> bool {
        self.network.about(key).iter().any(|in_flight| {
            in_flight.entry.kind == kind && in_flight.from == from && in_flight.to == to
        })
    }

    /// Returns true if the operation has ended.
    #[must_use]
    pub fn is_done(&self, op: OpId) -> bool {
        self.calls.is_done(op)
    }

    /// Returns true if the operation has failed, because a node was lost.
    #[must_use]
    pub fn is_failed(&self, op: OpId) -> bool {
        self.calls.is_failed(op)
    }

    /// Returns the result of a finished pull, in the order of its keys.
    ///
    /// # Panics
    /// If it is unfinished.
    #[must_use]
    pub fn read(&self, op: OpId) -> Vec<Seen> {
        self.calls.read(op)
    }

    /// Describes a message in one line.
    #[must_use]
    pub fn describe(&self, message: &Message) -> String {
        flight::describe(message, |key| self.setup.value_len(key))
    }

    /// Returns true if nothing is in flight, no node has anything waiting, and every operation is
    /// done.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.network.is_empty()
            && self.calls.unfinished() == 0
            && self.living().all(|node| self.member(node).is_at_rest())
    }
}
