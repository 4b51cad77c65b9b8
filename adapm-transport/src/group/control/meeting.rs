//! The meeting of a group's control threads.
//!
//! Every node but node 0 dials node 0 and sends its address; node 0 sends all known addresses to
//! all nodes each time that one joins; the nodes dial each other as soon as they know their
//! addresses. A node has joined when it knows all others and has links to all.

use core::net::SocketAddr;
use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::Loss;

use super::{Control, id};
use crate::group::collective::ROOT;
use crate::group::error::GroupError;
use crate::group::membership::{JoinFault, Member, REFUSED_MAX};
use crate::group::mesh::Mesh;
use crate::group::message::{MemberInfo, Message};

impl<T: Mesh> Control<T> {
    pub(super) fn handle_here(&mut self, from: NodeId, info: MemberInfo) {
        if self.node != ROOT || !is_sound(&info) {
            return self.lose(from, Loss::Misbehaved);
        }
        self.infos[from.index()] = Some(info);
        let table = Message::Table(self.infos.clone());
        for peer in &mut self.peers {
            // An older table is obsolete.
            peer.queue.retain(|message| !matches!(message, Message::Table(_)));
        }
        self.broadcast(&table);
    }

    pub(super) fn handle_table(&mut self, from: NodeId, infos: Vec<Option<MemberInfo>>) {
        let sound = infos.iter().flatten().all(is_sound);
        if from != ROOT || infos.len() != self.infos.len() || !sound {
            return self.lose(from, Loss::Misbehaved);
        }
        for (index, info) in infos.into_iter().enumerate() {
            if index != self.node.index() && info.is_some() {
                self.infos[index] = info;
            }
        }
        let mut addresses: Vec<Option<SocketAddr>> =
            self.infos.iter().map(|info| info.as_ref().map(|info| info.address)).collect();
        // The way that has led to node 0 is the one to keep.
        addresses[ROOT.index()] = None;
        self.mesh.meet(&addresses);
    }

    /// Updates the membership while joining, and records when it is done.
    pub(in crate::group) fn progress_join(&mut self) {
        let refused = self.mesh.poll_refusal();
        if self.joined && refused.is_none() {
            return;
        }
        if let Some(message) = self.own_trouble().filter(|_| !self.joined) {
            // The others would wait in vain, and this node would report them missing.
            self.shared.fail(GroupError::System { message });
        }
        let known = self.mesh.info().is_none() || self.infos.iter().all(Option::is_some);
        self.joined |= known && self.others().all(|node| self.mesh.is_up(node));
        let members = self
            .infos
            .iter()
            .zip((0..).map(id))
            .map(|(info, node)| info.clone().map(|info| Member::of(info, self.mesh.rtt(node))));
        let members: Vec<_> = members.collect();
        let is_apart =
            |node: &NodeId| self.infos[node.index()].is_some() && !self.mesh.is_up(*node);
        let first_apart = self.others().find(is_apart);
        let fault = if self.joined { None } else { self.fault() };
        let mut state = self.shared.lock();
        let changed = (state.joined, &state.membership.members, &state.membership.fault)
            != (self.joined, &members, &fault)
            || refused.is_some();
        if let Some((refused, times)) = refused {
            state.membership.refusals += u64::from(times);
            state.membership.refused.push(refused);
            let surplus = state.membership.refused.len().saturating_sub(REFUSED_MAX);
            state.membership.refused.drain(..surplus);
        }
        // A node that leaves because of another one is not to blame.
        state.apart = state.apart.filter(is_apart).or(first_apart);
        if changed {
            state.joined = self.joined;
            state.run = self.mesh.run();
            (state.membership.members, state.membership.fault) = (members, fault);
            drop(state);
            self.shared.tell(|_| ());
        }
    }

    /// Returns why this node has no link to a node that it knows of.
    fn fault(&self) -> Option<JoinFault> {
        let mut apart = self.others().filter(|node| !self.mesh.is_up(*node));
        apart.find_map(|node| {
            let reason = self.unreachable(node).or_else(|| self.mesh.fault(node))?;
            Some(JoinFault { node: Some(node), reason })
        })
    }

    /// Returns why this node is to blame for a missing link, if it is.
    fn own_trouble(&self) -> Option<String> {
        self.others().find_map(|node| self.mesh.own_trouble(node))
    }

    /// Returns why a node can only be reached on its own machine, if that is another one.
    fn unreachable(&self, node: NodeId) -> Option<String> {
        let [there, here] = [node, self.node].map(|node| self.infos[node.index()].as_ref());
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
        (0..self.infos.len()).map(id).filter(move |node| *node != own)
    }

    pub(super) fn missing(&self, missing: Vec<NodeId>, waited: Duration) -> GroupError {
        let joined = self.infos.len().saturating_sub(missing.len());
        let rendezvous = self.shared.lock().membership.rendezvous.clone();
        GroupError::Missing { joined, missing, waited, rendezvous, hint: None }
    }
}

/// Returns true if a member's data can be shown to people.
fn is_sound(info: &MemberInfo) -> bool {
    info.host.len() <= HOST_BYTES_MAX && !info.host.contains(char::is_control)
}

/// Bytes of a host name that are accepted.
const HOST_BYTES_MAX: usize = 256;
