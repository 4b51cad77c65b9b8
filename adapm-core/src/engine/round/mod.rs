//! The requester's half of a round: one grouped request to each peer as needed, at most one
//! unanswered per peer (AdaPM §B.1.2, AdaPM §B.2.1, AdaPM §B.2.2; protocol, "Rounds").
//!
//! A key changes state, and a delta is taken, only in the step that puts its entry into a request
//! that is sent at once; otherwise the key is examined again.

mod pace;
mod undue;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::mem;

use crate::engine::budget::{Candidate, Deferred, RequestDraft, RequestDrafts};
use crate::engine::ctx::{Ctx, Env};
use crate::engine::entry::{Request, low_bits};
use crate::engine::intent::Intents;
use crate::engine::operations::{Front, Operations};
use crate::engine::output::Reason;
use crate::error::Fault;
use crate::id::{Key, NodeId};
use crate::node_set::NodeSet;
use crate::route;
use crate::slot::{PackedState, Slot, State};
use crate::store::{self, Store};
use crate::time::Instant;
use crate::value::Value;
use crate::wire::Message;
use crate::wire::message::{Body, Grants, Mark, SyncResponse};

use pace::Pace;
use undue::Undue;

/// Requests of this node, and pending changes of replicas.
#[derive(Debug)]
pub(super) struct Round {
    pace: Pace,
    peers: Vec<Peer>,
    /// Replicas that may have lost their last interest; may contain duplicates and obsolete
    /// entries.
    release: Vec<Key>,
    /// Keys made dirty by workers; may contain duplicates and obsolete entries.
    dirty: Vec<Key>,
    /// Replicas of those that wait.
    undue: Undue,
    /// The last round that began with all requests answered which an earlier such round found or
    /// sent.
    answered: u64,
}

/// Requests and waiting changes for one other node.
#[derive(Debug, Default)]
struct Peer {
    /// The one unanswered request to it.
    outstanding: Option<Outstanding>,
    /// True if it has announced news for this node, its last response was cut, or it must show that
    /// it answers.
    news: bool,
    /// This node's mark, if one is in flight.
    mark: SyncMark,
    /// Replicas held here of keys that it owns.
    replicas: usize,
    /// Replicas whose change waits until the peer can be asked.
    deferred: Deferred,
    /// True if changes of replicas come before intents and localizes when not everything fits into
    /// the next request.
    changes_first: bool,
}

/// The mark towards one peer ([`crate::engine::collective`], `wait_sync`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum SyncMark {
    /// No mark.
    #[default]
    Absent,
    /// To be sent with the last sealed change.
    Sealed(Mark),
    /// The peer has not yet reported everything that was due when the mark arrived there.
    Asked,
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Outstanding {
    round: u64,
    pub(super) releases: Vec<Key>,
    pub(super) sets: Vec<Key>,
    pub(super) localizes: Vec<Key>,
}

/// The number of the round of a request outside of any.
const NO_ROUND: u64 = u64::MAX;

/// A replica's part of a request to its owner.
#[derive(Clone, Copy)]
pub(super) struct Change {
    is_dirty: bool,
    /// True if a set or renewal waits at the front of its queue.
    pub(super) has_front: bool,
    release: bool,
    /// Number of elements of the value.
    pub(super) len: usize,
}

impl Round {
    pub(super) fn new(nodes: usize) -> Self {
        let peers = (0..nodes).map(|_| Peer::default()).collect();
        let (pace, undue) = (Pace::default(), Undue::default());
        Self { pace, peers, release: Vec::new(), dirty: Vec::new(), undue, answered: 0 }
    }

    /// Returns true if a round could have something to report on replicas, or to ask a peer for.
    pub(super) fn has_work(&self, now: Instant) -> bool {
        let waits =
            |peer: &Peer| peer.outstanding.is_none() && (peer.news || !peer.deferred.is_empty());
        !self.release.is_empty()
            || !self.dirty.is_empty()
            || self.undue.next_look().is_some_and(|look| look <= now)
            || self.peers.iter().any(waits)
    }

    /// Returns true if no request is unanswered, and nothing is pending for a live peer.
    pub(super) fn is_at_rest(&self, ctx: &Ctx<impl Env>) -> bool {
        let rests =
            |peer: &Peer| peer.outstanding.is_none() && !peer.news && peer.deferred.is_empty();
        let mut peers = ctx.nodes().zip(&self.peers);
        self.release.is_empty()
            && self.dirty.is_empty()
            && self.undue.is_empty()
            && peers.all(|(node, peer)| ctx.is_lost(node) || rests(peer))
    }

    /// Returns the number of entries in all lists.
    pub(super) fn side_entries(&self) -> usize {
        let deferred: usize = self.peers.iter().map(|peer| peer.deferred.len()).sum();
        deferred + self.release.len() + self.dirty.len() + self.undue.len()
    }

    /// Returns the time at which the next round may begin, and the reason to wait. `has_work`: it
    /// would have something to send. `at_once`: a caller waits for a mark, so there is no interval.
    pub(super) fn wait(
        &self,
        ctx: &Ctx<impl Env>,
        has_work: bool,
        at_once: bool,
    ) -> (Option<Instant>, Option<Reason>) {
        let next = || self.pace.next_at(&ctx.config, at_once);
        let look = || self.undue.next_look().filter(|_| !ctx.freezes.is_frozen());
        let until = if has_work { Some(next()) } else { look().map(|look| look.max(next())) };
        let reason = match (self.pace.is_open(), has_work) {
            (true, more) => Some(Reason::Round { more }),
            (false, true) => Some(Reason::NextRound),
            (false, false) => None,
        };
        (until, reason)
    }

    /// Returns true if a round with something to send may begin.
    pub(super) fn may_begin(&self, ctx: &Ctx<impl Env>, at_once: bool) -> bool {
        self.pace.may_begin(&ctx.config, ctx.now, at_once)
    }

    /// Starts a round. The previous one's missing answers are left behind: their keys wait, other
    /// peers go on.
    ///
    /// Returns true if all peers have answered what was sent until the last round for which this
    /// was true. The rounds in between are one for who estimates how long keys take to come: what
    /// is asked for now may also wait for the slowest peer.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<impl Env>) -> bool {
        ctx.round += 1;
        ctx.stats.rounds += 1;
        self.pace.start(ctx.round, ctx.now);
        let mut asked = self.peers.iter().filter_map(|peer| peer.outstanding.as_ref());
        let is_answered = asked.all(|outstanding| outstanding.round > self.answered);
        if is_answered {
            self.answered = ctx.round;
        }
        is_answered
    }

    /// Makes the next rounds begin as early as allowed: a worker waits.
    pub(super) fn hurry(&mut self) {
        self.pace.hurry();
    }

    /// Notes the number of keys of the round.
    pub(super) fn carry(&mut self, keys: usize) {
        self.pace.carry(keys);
    }

    /// Returns true if `node` still owes an answer: at most one request per peer is in flight.
    pub(super) fn owes(&self, node: NodeId) -> bool {
        self.peers[node.index()].outstanding.is_some()
    }

    /// Returns true if some peer owes an answer.
    pub(super) fn is_owed(&self) -> bool {
        self.peers.iter().any(|peer| peer.outstanding.is_some())
    }

    /// Returns true if replicas of keys of `node` are here, or a request to it may carry their last
    /// deltas.
    pub(super) fn is_concerned(&self, node: NodeId) -> bool {
        let peer = &self.peers[node.index()];
        peer.replicas > 0 || peer.outstanding.is_some()
    }

    /// Returns the peers to which changes of replicas may have to be sent, or whose answer to them
    /// is awaited. Costs a look at each key that workers have made dirty since the last round.
    pub(super) fn unsettled(&self, ctx: &Ctx<impl Env>) -> NodeSet {
        let has_changes =
            |(_, peer): &(NodeId, &Peer)| peer.outstanding.is_some() || !peer.deferred.is_empty();
        let mut nodes: NodeSet =
            ctx.nodes().zip(&self.peers).filter(has_changes).map(|(node, _)| node).collect();
        for key in self.dirty.iter().copied().chain(self.undue.keys()) {
            let packed = ctx.packed(key);
            if packed.state() == State::Replica {
                nodes.insert(route::believed(packed, key, &ctx.config.homes).node);
            }
        }
        nodes
    }

    /// Returns true if a mark could begin towards `node`.
    pub(super) fn may_mark(&self, node: NodeId) -> bool {
        let peer = &self.peers[node.index()];
        peer.mark == SyncMark::Absent && peer.outstanding.is_none()
    }

    /// Returns true if changes come first in the next request to `node` when not everything fits.
    pub(super) fn changes_first(&self, node: NodeId) -> bool {
        self.peers[node.index()].changes_first
    }

    /// Adds keys that workers have made dirty.
    pub(super) fn note_dirty(&mut self, keys: &[Key]) {
        self.dirty.extend_from_slice(keys);
    }

    /// Returns keys that workers have made dirty; may contain duplicates and obsolete entries.
    pub(super) fn dirty(&self) -> &[Key] {
        &self.dirty
    }

    /// Makes all changes of replicas due that wait for more.
    pub(super) fn end_waits(&mut self) {
        self.dirty.append(&mut self.undue.end());
    }

    /// Returns true if a change of a replica has not left.
    pub(super) fn has_waits(&self) -> bool {
        !self.undue.is_empty()
    }

    /// Lists the replica of `key` for release, if it has no interest left.
    pub(super) fn release_later(&mut self, key: Key) {
        self.release.push(key);
    }

    /// Makes the next round ask `node`, even with nothing to send.
    pub(super) fn ask_next(&mut self, node: NodeId) {
        self.peers[node.index()].news = true;
    }

    /// Counts an installed replica of a key of `owner`.
    pub(super) fn note_replica(&mut self, owner: NodeId) {
        self.peers[owner.index()].replicas += 1;
    }

    /// Discounts a replica of a key of `owner` that has become a main copy.
    pub(super) fn note_owned(&mut self, owner: NodeId) {
        self.peers[owner.index()].replicas -= 1;
    }

    /// Records the answer to an intent or localize of this node for an absent key.
    pub(super) fn note_answered(&mut self, ctx: &Ctx<impl Env>, request: Request) {
        if !request.at_once {
            self.pace.close(request.round.into(), 0, 1, ctx.now);
        }
    }

    /// Takes the keys of replicas that may have something to report, `fronts` included, in order:
    /// those deferred for peers that can be asked now, as many of each as one round examines, and
    /// all others.
    fn take_changed(&mut self, ctx: &Ctx<impl Env>, fronts: Vec<Key>) -> Vec<Key> {
        let mut keys = fronts;
        for peer in self.peers.iter_mut().filter(|peer| peer.outstanding.is_none()) {
            keys.extend(peer.deferred.take(ctx.config.requests_max.max(1)));
        }
        keys.append(&mut self.dirty);
        keys.append(&mut self.undue.take_looks(ctx.now));
        keys.append(&mut self.release);
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns replicas that are changed, set, renewed or released, in order, as candidates for the
    /// requests of this round. Takes the dirty flags of main copies. `fronts` are replicas on which
    /// a set or renewal waits. `at_once`: no change waits for more.
    pub(super) fn changed<E: Env>(
        &mut self,
        ctx: &Ctx<E>,
        intents: &Intents,
        operations: &Operations<E::Value>,
        (fronts, at_once): (Vec<Key>, bool),
        mut take_dirty: impl FnMut(&Ctx<E>, Key),
        drafts: &mut RequestDrafts,
    ) -> Vec<Candidate<Change>> {
        let sealed: BTreeSet<Key> =
            self.peers.iter().flat_map(|peer| peer.deferred.sealed()).collect();
        let keys = self.take_changed(ctx, fronts);
        let mut candidates = Vec::new();
        for (at, &key) in keys.iter().enumerate() {
            store::prefetch_ahead(&ctx.store, at, |at| keys.get(at).copied());
            let packed = ctx.packed(key);
            match packed.state() {
                State::Main => {
                    self.undue.forget(key);
                    take_dirty(ctx, key);
                }
                State::Replica => {
                    let has_interest =
                        intents.is_interested(key) || self.is_localizing(key, packed);
                    let unsent = operations.unsent_front(key);
                    let change = Change {
                        is_dirty: packed.is_dirty(),
                        has_front: unsent == Some(true),
                        release: unsent.is_none() && !has_interest,
                        len: ctx.value_len(key),
                    };
                    // It may have left and come back since its change waited.
                    if !change.is_dirty {
                        self.undue.forget(key);
                    }
                    if !(change.is_dirty || change.has_front || change.release) {
                        continue;
                    }
                    let goes = at_once || change.has_front || change.release;
                    if change.is_dirty && !self.is_due(ctx, key, goes) {
                        continue;
                    }
                    let is_sealed = !sealed.is_empty() && sealed.contains(&key);
                    let owner = route::believed(packed, key, &ctx.config.homes).node;
                    if self.owes(owner) {
                        self.peers[owner.index()].deferred.put_off(key, is_sealed);
                        continue;
                    }
                    // A renewal's value comes with the answer.
                    let values = usize::from(change.is_dirty) + usize::from(change.has_front);
                    let bytes = values * change.len * size_of::<E::Value>();
                    candidates.push(Candidate {
                        is_sealed,
                        ..drafts.candidate(key, owner, bytes, change)
                    });
                }
                State::None | State::Requested | State::Releasing => {
                    self.undue.forget(key);
                }
            }
        }
        candidates
    }

    /// Returns true if the change of the replica of `key` is due, as it is if it `goes` anyway.
    fn is_due(&mut self, ctx: &Ctx<impl Env>, key: Key, goes: bool) -> bool {
        let Some(patience) = ctx.patience() else { return true };
        let share = if goes { 0 } else { patience.share(ctx.config.nodes) };
        self.undue.is_due(key, ctx.version(key).unsent(), ctx.now, (share, patience))
    }

    /// Returns true if a localize of a replica is unanswered: a key has at most one unanswered
    /// entry.
    fn is_localizing(&self, key: Key, packed: PackedState) -> bool {
        let Some(location) = packed.location() else { return false };
        let outstanding = &self.peers[location.node.index()].outstanding;
        outstanding
            .as_ref()
            .is_some_and(|outstanding| outstanding.localizes.binary_search(&key).is_ok())
    }

    /// Gives room to candidates.
    pub(super) fn share(
        &mut self,
        ctx: &Ctx<impl Env>,
        candidates: &mut [Candidate<Change>],
        drafts: &mut RequestDrafts,
    ) {
        let peers = &self.peers;
        let first = |node: NodeId| Some(peers[node.index()].deferred.next());
        for (node, key) in drafts.share(candidates, ctx.config.block_bytes_max, first) {
            self.peers[node.index()].deferred.begin_with(key);
        }
    }

    /// Writes the delta, set or renewal, and release of a replica into the request, or defers it if
    /// there was no room. Returns true if the replica is released.
    pub(super) fn draft<V: Value>(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        candidate: &Candidate<Change>,
        front: Option<Front<'_, V>>,
        drafts: &mut RequestDrafts,
    ) -> bool {
        let Candidate { key, to, goes, is_sealed, says: Change { is_dirty, release, .. }, .. } =
            *candidate;
        if !goes {
            self.peers[to.index()].deferred.put_off(key, is_sealed);
            return false;
        }
        let draft = drafts.of(to);
        if is_dirty {
            draft.request.deltas.push(key);
            if let Some(since) = self.undue.forget(key) {
                ctx.stats.delays.record(ctx.now.nanos_since(since));
            }
        }
        let mut updates = 0;
        let take = |mut slot: Slot<'_, V>| {
            if is_dirty {
                updates = slot.version.unsent();
                slot.take_delta_with(|delta| draft.values.push(delta));
            }
            // A worker that pushed since the packed state was read keeps the replica for one more
            // round.
            let released = release && !slot.packed.is_dirty();
            if released {
                slot.release();
            }
            released
        };
        let is_released = ctx.store.with_slot(key, take);
        if is_dirty {
            ctx.stats.delta_updates.record(updates.into());
        }
        if is_released {
            ctx.store.release(key);
            draft.request.releases.push(key);
            self.peers[to.index()].replicas -= 1;
            ctx.stats.releases += 1;
            ctx.stats.held.remove();
            ctx.observe(|observer, now| observer.on_replica_released(now, key));
        } else if release {
            self.dirty.push(key);
        }
        match front {
            Some(Front::Set(value)) => {
                draft.request.sets.push(key);
                draft.sets.push(value);
            }
            Some(Front::Renew) => {
                draft.request.renews.push(key);
                ctx.stats.renews += 1;
            }
            None => {}
        }
        is_released
    }

    /// Returns the mark of the next request to `node`. Keys deferred until now are sealed by a mark
    /// that begins. `begin_mark` returns the mark that calls wait for.
    fn take_mark(&mut self, node: NodeId, begin_mark: impl FnOnce() -> Mark) -> Mark {
        let peer = &mut self.peers[node.index()];
        if peer.outstanding.is_some() {
            return Mark::None;
        }
        if peer.mark == SyncMark::Absent {
            let mark = begin_mark();
            if mark != Mark::None {
                peer.mark = SyncMark::Sealed(mark);
                peer.deferred.seal();
            }
        }
        match peer.mark {
            SyncMark::Sealed(mark) if !peer.deferred.has_sealed() => {
                peer.mark = SyncMark::Asked;
                mark
            }
            _ => Mark::None,
        }
    }

    /// Sends the request to `node` if there is one, or an empty one if the node must be asked
    /// anyway.
    pub(super) fn send_request<V: Value>(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        node: NodeId,
        draft: Option<Box<RequestDraft>>,
        begin_mark: impl FnOnce() -> Mark,
    ) {
        let mark = self.take_mark(node, begin_mark);
        let peer = &mut self.peers[node.index()];
        let is_empty = draft.as_ref().is_none_or(|draft| draft.is_empty());
        let has_cause = !is_empty || peer.news || mark != Mark::None;
        if ctx.is_lost(node) || peer.outstanding.is_some() || !has_cause {
            return;
        }
        let RequestDraft { mut request, mut values, sets, .. } = *draft.unwrap_or_default();
        request.mark = mark;
        if !request.intents.is_empty() || !request.localizes.is_empty() {
            request.ticket = ctx.tickets.of_request(low_bits(ctx.round), node);
        }
        values.push(sets.values::<V>());
        peer.news = false;
        peer.changes_first = !peer.changes_first;
        peer.outstanding = Some(Outstanding {
            round: if ctx.freezes.is_frozen() { NO_ROUND } else { ctx.round },
            releases: request.releases.0.clone(),
            sets: request.sets.0.clone(),
            localizes: request.localizes.keys.0.clone(),
        });
        if !ctx.freezes.is_frozen() {
            self.pace.await_request();
        }
        ctx.send(node, Message { body: Box::new(Body::SyncRequest(request)), values });
    }

    /// Sends an empty request to each peer that is to be asked, outside of any round.
    pub(super) fn ask_without_round(&mut self, ctx: &mut Ctx<impl Env>) {
        ctx.peers().for_each(|node| self.send_request(ctx, node, None, || Mark::None));
    }

    /// Awaits grants for keys that the requests of this round have made `Requested`.
    pub(super) fn await_grants(&mut self, grants: usize) {
        self.pace.await_grants(grants);
    }

    /// Checks that a response is possible, and answers the request.
    pub(super) fn check_response(
        &self,
        ctx: &Ctx<impl Env>,
        intents: &Intents,
        from: NodeId,
        response: &SyncResponse,
    ) -> Result<(), Fault> {
        let peer = &self.peers[from.index()];
        let Some(outstanding) = &peer.outstanding else { return Err(Fault::Unexpected) };
        if response.synced && peer.mark != SyncMark::Asked {
            return Err(Fault::Unexpected);
        }
        let asked = Some((from, low_bits(outstanding.round)));
        for key in response.grants.at.keys.iter() {
            let packed = ctx.peek(*key);
            // A response grants only keys of its own request.
            let is_asked =
                ctx.first_lost.is_some() || intents.asked_for(ctx, *key, packed) == asked;
            if packed.state() != State::Requested || !is_asked {
                return Err(Fault::Impossible(*key));
            }
        }
        // Hand-overs of keys not held here are skipped: the sender may have received a forged
        // message in the name of this node.
        for (key, counter) in
            response.hand_overs.at.iter().filter(|(key, _)| ctx.holds_replica_of(from, *key))
        {
            let set = outstanding.sets.binary_search(&key).is_ok();
            if set || counter <= ctx.peek(key).counter() {
                return Err(Fault::Impossible(key));
            }
        }
        Ok(())
    }

    /// Records that the request to `from` is answered. Returns its keys.
    pub(super) fn note_response(
        &mut self,
        ctx: &Ctx<impl Env>,
        from: NodeId,
        response: &SyncResponse,
    ) -> Outstanding {
        let peer = &mut self.peers[from.index()];
        let outstanding = peer.outstanding.take().expect("a response is checked");
        peer.news = response.more;
        if response.synced {
            peer.mark = SyncMark::Absent;
        }
        self.pace.close(outstanding.round, 1, 0, ctx.now);
        self.pace.bring(response.refreshes.len() + response.hand_overs.versions.len());
        outstanding
    }

    /// Counts arrived grants.
    pub(super) fn note_grants(&mut self, grants: &Grants) {
        self.pace.bring(grants.kinds.len());
    }

    /// Drops all requests to a lost peer, and awaits no grants any more.
    pub(super) fn forget_peer(&mut self, ctx: &Ctx<impl Env>, node: NodeId) {
        self.pace.give_up_grants(ctx.now);
        let peer = mem::take(&mut self.peers[node.index()]);
        // May include replicas that have become main copies here.
        self.dirty.extend(peer.deferred.take_all());
        if let Some(outstanding) = peer.outstanding {
            self.pace.close(outstanding.round, 1, 0, ctx.now);
        }
    }
}
