//! What a test may see of a [`Cluster`]. Nothing here changes it.

use adapm_core::engine::OpId;
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::layout::Kind;
use adapm_core::slot::{State, Word};
use adapm_core::time::Instant;
use adapm_core::wire::Message;

use crate::air::{Air, Pairs};
use crate::cluster::Cluster;
use crate::flight::{self, Entry};
use crate::member::{Member, Row};
use crate::oracle::{Oracle, Who};
use crate::setup::Setup;

impl Cluster {
    /// All nodes, in order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.setup.nodes as u16).map(NodeId)
    }

    /// All keys of the channel, in order.
    pub fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        self.setup.keys()
    }

    /// All keys of the layout, in order.
    pub(super) fn all_keys(&self) -> impl Iterator<Item = Key> + use<> {
        (0..self.setup.layout.keys().end.0).map(Key)
    }

    /// All workers, in order.
    pub fn workers(&self) -> impl Iterator<Item = Who> + use<> {
        let workers = self.setup.workers as u16;
        self.nodes().flat_map(move |node| (0..workers).map(move |worker| (node, WorkerId(worker))))
    }

    /// What the cluster consists of.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// A node with its engine and workers.
    #[must_use]
    pub fn member(&self, node: NodeId) -> &Member {
        &self.members[node.index()]
    }

    /// The node alone, for inputs that a cluster would not feed.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn into_member(mut self, node: NodeId) -> Member {
        self.members.swap_remove(node.index())
    }

    /// What `node` has of `key`.
    #[must_use]
    pub fn row(&self, node: NodeId, key: Key) -> &Row {
        &self.members[node.index()].rows[key.0 as usize]
    }

    /// The state of `key` at `node`.
    #[must_use]
    pub fn state(&self, node: NodeId, key: Key) -> State {
        self.row(node, key).state()
    }

    /// The owner of `key`, unless ownership is on its way.
    #[must_use]
    pub fn owner(&self, key: Key) -> Option<NodeId> {
        self.nodes().find(|node| self.state(*node, key) == State::Main)
    }

    /// Whether the main copy of `key` has yet to come into being: a sparse layout, and nobody has touched the key at its home.
    #[must_use]
    pub fn is_untouched(&self, key: Key) -> bool {
        let home = self.setup.home(key);
        let sparse = self.setup.layout.kind() == Kind::Sparse;
        sparse && !self.losses.is_gone(home) && self.row(home, key).view.word == Word::EMPTY
    }

    /// The value of the main copy of `key`, be it on its way.
    #[must_use]
    pub fn main_value(&self, key: Key) -> Option<Vec<i64>> {
        if let Some(owner) = self.owner(key) {
            return Some(self.row(owner, key).value.clone());
        }
        let grant = self.air.about(key).iter().find(|aloft| aloft.entry.kind.is_ownership())?;
        Some(self.granted_value(grant.to, &grant.entry))
    }

    /// The main copy that an ownership entry on its way to `to` stands for: without a value it is the receiver's replica.
    pub(super) fn granted_value(&self, to: NodeId, entry: &Entry) -> Vec<i64> {
        if !entry.value.is_empty() {
            return entry.value.clone();
        }
        let row = self.row(to, entry.key);
        if row.state() != State::Replica {
            // The grant of that replica is on its way before it.
            let grants = self.air.about(entry.key).iter().map(|aloft| (aloft.to, &aloft.entry));
            let mut grants = grants
                .filter(|(receiver, grant)| *receiver == to && grant.kind == flight::Kind::GrantReplica);
            return grants
                .next()
                .map_or_else(|| vec![0; self.setup.value_len(entry.key)], |(_, grant)| grant.value.clone());
        }
        row.value.iter().zip(&row.delta).map(|(value, delta)| value - delta).collect()
    }

    /// Messages on their way.
    #[must_use]
    pub fn air(&self) -> &Air {
        &self.air
    }

    /// What workers did and saw.
    #[must_use]
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// How often which entry met which state.
    #[must_use]
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether an entry of `kind` about `key` is on its way from `from` to `to`.
    #[must_use]
    pub fn is_aloft(&self, kind: flight::Kind, key: Key, from: NodeId, to: NodeId) -> bool {
        self.air
            .about(key)
            .iter()
            .any(|aloft| aloft.entry.kind == kind && aloft.from == from && aloft.to == to)
    }

    /// Whether the operation has ended.
    #[must_use]
    pub fn is_done(&self, op: OpId) -> bool {
        self.calls.is_done(op)
    }

    /// Whether the operation has failed, because a node was lost.
    #[must_use]
    pub fn is_failed(&self, op: OpId) -> bool {
        self.calls.is_failed(op)
    }

    /// Calls `tell` with every step in words, before it is done.
    pub fn tell_steps(&mut self, tell: impl FnMut(&str) + 'static) {
        self.tell = Some(Box::new(tell));
    }

    pub(super) fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if let Some(mut tell) = self.tell.take() {
            tell(&line(self));
            self.tell = Some(tell);
        }
    }

    /// One line about a message for people.
    #[must_use]
    pub fn describe(&self, message: &Message) -> String {
        flight::describe(message, |key| self.setup.value_len(key))
    }
}
