//! How the control threads of a group meet.
//!
//! Every node but node 0 dials node 0 and says where it is; node 0 tells all what it knows each
//! time that somebody comes; the nodes dial each other as soon as they know where. A node has
//! joined when it knows all and has links to all.

use core::net::SocketAddr;
use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::Loss;

use super::{Control, id};
use crate::group::collective::ROOT;
use crate::group::error::GroupError;
use crate::group::mesh::Mesh;
use crate::group::message::{Card, Message};
use crate::group::roster::{Member, REFUSED_MAX, Trouble};

impl<T: Mesh> Control<T> {
    pub(super) fn handle_here(&mut self, from: NodeId, card: Card) {
        if self.node != ROOT || !is_sound(&card) {
            return self.lose(from, Loss::Misbehaved);
        }
        self.cards[from.index()] = Some(card);
        let table = Message::Table(self.cards.clone());
        for peer in &mut self.peers {
            // An older table is of no use to anybody.
            peer.queue.retain(|message| !matches!(message, Message::Table(_)));
        }
        self.broadcast(&table);
    }

    pub(super) fn handle_table(&mut self, from: NodeId, cards: Vec<Option<Card>>) {
        let sound = cards.iter().flatten().all(is_sound);
        if from != ROOT || cards.len() != self.cards.len() || !sound {
            return self.lose(from, Loss::Misbehaved);
        }
        for (index, card) in cards.into_iter().enumerate() {
            if index != self.node.index() && card.is_some() {
                self.cards[index] = card;
            }
        }
        let mut addresses: Vec<Option<SocketAddr>> =
            self.cards.iter().map(|card| card.as_ref().map(|card| card.address)).collect();
        // The way that has led to node 0 is the one to keep.
        addresses[ROOT.index()] = None;
        self.mesh.meet(&addresses);
    }

    /// Shows how the joining goes, and notes when it is done.
    pub(in crate::group) fn progress_join(&mut self) {
        let refused = self.mesh.poll_refusal();
        if self.joined && refused.is_none() {
            return;
        }
        if let Some(message) = self.own_trouble().filter(|_| !self.joined) {
            // The others would wait in vain, and this node would call them missing.
            self.shared.fail(GroupError::System { message });
        }
        let known = self.mesh.card().is_none() || self.cards.iter().all(Option::is_some);
        self.joined |= known && self.others().all(|node| self.mesh.is_up(node));
        let members = self
            .cards
            .iter()
            .zip((0..).map(id))
            .map(|(card, node)| card.clone().map(|card| Member::of(card, self.mesh.rtt(node))));
        let members: Vec<_> = members.collect();
        let is_apart =
            |node: &NodeId| self.cards[node.index()].is_some() && !self.mesh.is_up(*node);
        let first_apart = self.others().find(is_apart);
        let trouble = if self.joined { None } else { self.trouble() };
        let mut state = self.shared.lock();
        let changed = (state.joined, &state.roster.members, &state.roster.trouble)
            != (self.joined, &members, &trouble)
            || refused.is_some();
        if let Some((refused, times)) = refused {
            state.roster.refusals += u64::from(times);
            state.roster.refused.push(refused);
            let surplus = state.roster.refused.len().saturating_sub(REFUSED_MAX);
            state.roster.refused.drain(..surplus);
        }
        // A node that leaves because of another one is not to blame.
        state.apart = state.apart.filter(is_apart).or(first_apart);
        if changed {
            state.joined = self.joined;
            state.run = self.mesh.run();
            (state.roster.members, state.roster.trouble) = (members, trouble);
            drop(state);
            self.shared.tell(|_| ());
        }
    }

    /// Why this node has no link to a node that it knows of.
    fn trouble(&self) -> Option<Trouble> {
        let mut apart = self.others().filter(|node| !self.mesh.is_up(*node));
        apart.find_map(|node| {
            let reason = self.unreachable(node).or_else(|| self.mesh.trouble(node))?;
            Some(Trouble { node: Some(node), reason })
        })
    }

    /// Why it is the fault of this node that others have no link with it.
    fn own_trouble(&self) -> Option<String> {
        self.others().find_map(|node| self.mesh.own_trouble(node))
    }

    /// Why a node can only be reached on its own machine, if that is another one.
    fn unreachable(&self, node: NodeId) -> Option<String> {
        let [there, here] = [node, self.node].map(|node| self.cards[node.index()].as_ref());
        let (there, here) = (there?, here?);
        (there.address.ip().is_loopback() && there.host != here.host).then(|| {
            format!(
                "it is at {}, which only its own machine ({}) reaches: give it --advertise with an address that others reach",
                there.address.ip(),
                there.host
            )
        })
    }

    fn others(&self) -> impl Iterator<Item = NodeId> {
        let own = self.node;
        (0..self.cards.len()).map(id).filter(move |node| *node != own)
    }

    pub(super) fn missing(&self, missing: Vec<NodeId>, waited: Duration) -> GroupError {
        let joined = self.cards.len().saturating_sub(missing.len());
        let rendezvous = self.shared.lock().roster.rendezvous.clone();
        GroupError::Missing { joined, missing, waited, rendezvous, hint: None }
    }
}

/// Whether a card can be shown to people.
fn is_sound(card: &Card) -> bool {
    card.host.len() <= HOST_BYTES_MAX && !card.host.contains(char::is_control)
}

/// Bytes of a host name that are accepted.
const HOST_BYTES_MAX: usize = 256;
