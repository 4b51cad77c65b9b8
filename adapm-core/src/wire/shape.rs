//! State-independent checks of messages (protocol, "What must hold", invariant 11).
//!
//! A message that passes names only keys of the layout and channel and nodes of the cluster, in
//! lists that fit each other and its value block, so the receiver may index by them. Not here: if
//! the message is possible in the receiver's state, if the sender may send it, and arithmetic on
//! counters at their bound.

use crate::error::Fault;
use crate::id::{ChannelId, Counter, Key, NodeId, Ticket};
use crate::layout::Layout;
use crate::value::Value;
use crate::wire::message::{
    Answer, Asked, Barrier, Body, Forward, GrantKind, Grants, Message, Operation, Owners,
    Residence, Retry, SyncRequest, SyncResponse,
};

/// Checks everything about `message` that does not depend on the receiver's state; elements are of
/// type `V`.
///
/// Takes one pass over the keys.
///
/// # Errors
/// The first fault found: a key that is not of `layout` or not of `channel` among `channels`, a
/// list that is not strictly ascending or has another length than the one it belongs to, a key in
/// two lists that exclude each other, a counter above [`Counter::MAX`], a node outside of
/// `0..nodes`, or a value block whose length is not what the lists need.
pub fn check<V: Value>(
    message: &Message,
    layout: &Layout,
    nodes: usize,
    channel: ChannelId,
    channels: usize,
) -> Result<(), Fault> {
    let ruler = Ruler { layout, nodes, channel, channels };
    let elements = match &*message.body {
        Body::SyncRequest(request) => ruler.request(request)?,
        Body::SyncResponse(response) => ruler.response(response)?,
        Body::Grant(grants) => ruler.grants(grants)?,
        Body::Forward(forward) => ruler.forward(forward)?,
        Body::Operation(operation) => ruler.operation(operation)?,
        Body::Answer(answer) => ruler.answer(answer)?,
        Body::Retry(retry) => ruler.retry(retry)?,
        Body::Residence(residence) => ruler.residence(residence)?,
        Body::Barrier(Barrier::Missing { nodes, .. }) => ruler.missing(nodes)?,
        Body::News | Body::Barrier(_) | Body::Quiesce(_) => 0,
    };
    let (expected, given) = (elements.saturating_mul(size_of::<V>()), message.values.len());
    if expected == given { Ok(()) } else { Err(Fault::BlockLen { expected, given }) }
}

/// The bounds that messages are checked against. Its methods check a part of a message and return
/// the number of elements of all its values; the sum saturates, as no block is that long.
struct Ruler<'a> {
    layout: &'a Layout,
    nodes: usize,
    channel: ChannelId,
    channels: usize,
}

impl Ruler<'_> {
    fn request(&self, request: &SyncRequest) -> Result<usize, Fault> {
        let deltas = self.keys(&request.deltas)?;
        let sets = self.keys(&request.sets)?;
        self.keys(&request.releases)?;
        self.keys(&request.renews)?;
        self.asked(&request.intents)?;
        self.asked(&request.localizes)?;
        apart(&request.releases, &request.renews)?;
        apart(&request.releases, &request.intents.keys)?;
        apart(&request.releases, &request.localizes.keys)?;
        apart(&request.intents.keys, &request.localizes.keys)?;
        Ok(deltas.saturating_add(sets))
    }

    fn response(&self, response: &SyncResponse) -> Result<usize, Fault> {
        let granted = self.grants(&response.grants)?;
        // Keys granted in a response were requested without a forward, so their grants need no
        // tickets.
        if !response.grants.tickets.is_empty() {
            return Err(Fault::Malformed);
        }
        let refreshed = self.keys(&response.refreshes)?;
        same_len(&response.refreshes, &response.versions)?;
        let handed_over = self.owners(&response.hand_overs)?;
        apart(&response.grants.at.keys, &response.hand_overs.at.keys)?;
        Ok(granted.saturating_add(refreshed).saturating_add(handed_over))
    }

    fn grants(&self, grants: &Grants) -> Result<usize, Fault> {
        self.asked(&grants.at)?;
        same_len(&grants.at.keys, &grants.kinds)?;
        same_len(&grants.at.keys, &grants.versions)?;
        some_tickets(grants.at.len(), &grants.tickets)?;
        let kinds = grants.at.keys.iter().zip(&grants.kinds);
        Ok(self
            .elements(kinds.filter(|(_, kind)| **kind != GrantKind::Remote).map(|(key, _)| *key)))
    }

    fn owners(&self, owners: &Owners) -> Result<usize, Fault> {
        self.asked(&owners.at)?;
        same_len(&owners.at.keys, &owners.versions)?;
        same_len(&owners.at.keys, &owners.with_value)?;
        let marks = owners.at.keys.iter().zip(&owners.with_value);
        Ok(self.elements(marks.filter(|(_, with_value)| **with_value).map(|(key, _)| *key)))
    }

    fn forward(&self, forward: &Forward) -> Result<usize, Fault> {
        self.node(forward.origin)?;
        self.asked(&forward.intents)?;
        self.asked(&forward.localizes)?;
        apart(&forward.intents.keys, &forward.localizes.keys)?;
        let elements = self.operation(&forward.operation)?;
        let has_all =
            forward.tickets.len() == forward.len() && !forward.tickets.contains(&Ticket::NONE);
        let has_one = forward.operation.ticket != Ticket::NONE;
        if has_all && !has_one { Ok(elements) } else { Err(Fault::Malformed) }
    }

    fn operation(&self, operation: &Operation) -> Result<usize, Fault> {
        self.asked(&operation.pulls)?;
        let pushes = self.asked(&operation.pushes)?;
        let sets = self.asked(&operation.sets)?;
        Ok(pushes.saturating_add(sets))
    }

    fn answer(&self, answer: &Answer) -> Result<usize, Fault> {
        let pulls = self.asked(&answer.pulls)?;
        self.asked(&answer.done)?;
        some_tickets(answer.pulls.len() + answer.done.len(), &answer.tickets)?;
        Ok(pulls)
    }

    fn retry(&self, retry: &Retry) -> Result<usize, Fault> {
        self.keys(&retry.intents)?;
        self.keys(&retry.operations)?;
        some_tickets(retry.intents.len() + retry.operations.len(), &retry.tickets)?;
        Ok(0)
    }

    fn residence(&self, residence: &Residence) -> Result<usize, Fault> {
        self.asked(&residence.at)?;
        same_len(&residence.at.keys, &residence.owners)?;
        residence.owners.iter().try_for_each(|owner| self.node(*owner))?;
        Ok(0)
    }

    fn missing(&self, nodes: &[NodeId]) -> Result<usize, Fault> {
        nodes.iter().try_for_each(|node| self.node(*node))?;
        if nodes.is_sorted_by(|a, b| a < b) { Ok(0) } else { Err(Fault::Malformed) }
    }

    /// Checks keys with a counter each. Returns the number of elements of their values.
    fn asked(&self, asked: &Asked) -> Result<usize, Fault> {
        let elements = self.keys(&asked.keys)?;
        same_len(&asked.keys, &asked.counters)?;
        match asked.iter().find(|(_, counter)| *counter > Counter::MAX) {
            Some((key, _)) => Err(Fault::Counter(key)),
            None => Ok(elements),
        }
    }

    /// Checks a list of keys. Returns the number of elements of their values.
    fn keys(&self, keys: &[Key]) -> Result<usize, Fault> {
        let mut elements = 0_usize;
        let mut last = None;
        for &key in keys {
            if last.is_some_and(|last| last >= key) {
                return Err(Fault::Malformed);
            }
            last = Some(key);
            let value_len = self.layout.value_len(key).ok_or(Fault::UnknownKey(key))?;
            if Layout::channel(key, self.channels) != self.channel {
                return Err(Fault::UnknownKey(key));
            }
            elements = elements.saturating_add(value_len);
        }
        Ok(elements)
    }

    /// Returns the number of elements of the values of checked keys.
    fn elements(&self, keys: impl Iterator<Item = Key>) -> usize {
        keys.filter_map(|key| self.layout.value_len(key)).fold(0, usize::saturating_add)
    }

    fn node(&self, node: NodeId) -> Result<(), Fault> {
        if node.index() < self.nodes { Ok(()) } else { Err(Fault::UnknownNode(node)) }
    }
}

fn same_len<A, B>(keys: &[A], others: &[B]) -> Result<(), Fault> {
    if keys.len() == others.len() { Ok(()) } else { Err(Fault::Malformed) }
}

/// Checks that there is a ticket for each of `entries`, or none at all.
fn some_tickets(entries: usize, tickets: &[Ticket]) -> Result<(), Fault> {
    if tickets.is_empty() || tickets.len() == entries { Ok(()) } else { Err(Fault::Malformed) }
}

/// Checks that no key is in both ascending lists: two such entries, applied one after the other,
/// would contradict.
fn apart(a: &[Key], b: &[Key]) -> Result<(), Fault> {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        match x.cmp(y) {
            core::cmp::Ordering::Less => i += 1,
            core::cmp::Ordering::Greater => j += 1,
            core::cmp::Ordering::Equal => return Err(Fault::Malformed),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
