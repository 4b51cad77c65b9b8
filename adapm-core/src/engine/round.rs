//! The requester's half of a round: one grouped request to every peer that there is business with, at most one unanswered
//! per peer (AdaPM §B.1.2, AdaPM §B.2.1, AdaPM §B.2.2; protocol, section 3).
//!
//! A key changes state, and a delta is taken, only in the step that puts its entry into a request that leaves at once; else
//! the key stays on the agenda.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::mem;

use crate::engine::Engine;
use crate::engine::intent::Verdict;
use crate::engine::late::{self, Late};
use crate::engine::room::{Draft, Entry, Requests, entry};
use crate::engine::state::{Access, Item, Outstanding, Peer, ROUND_BITS, SyncMark};
use crate::id::{Counter, Key, NodeId};
use crate::policy::Policy;
use crate::route;
use crate::slot::{Location, Slot, State, Word};
use crate::store::{self, Store};
use crate::value::Value;
use crate::wire::Message;
use crate::wire::message::Body;

/// An intent or localize, and the counter of the fact by which the receiver is asked.
#[derive(Clone, Copy)]
struct Want {
    counter: Counter,
    localize: bool,
    /// Whether a replica is here.
    is_here: bool,
}

/// What a replica tells its owner.
#[derive(Clone, Copy)]
struct Change {
    is_dirty: bool,
    /// The set at the front of its queue.
    set: Option<Item>,
    release: bool,
    /// Elements of the value.
    len: usize,
}

impl<S: Store, P: Policy> Engine<S, P> {
    /// Whether a round could have something to say.
    pub(super) fn has_something_to_say(&self) -> bool {
        !self.agenda.is_empty()
            || self.intents.has_listed()
            || self.intents.has_signals()
            || self.wants_mark()
            || self
                .peers
                .iter()
                .any(|peer| peer.outstanding.is_none() && (peer.news || !peer.late.is_empty()))
    }

    /// How long after its start the next round may begin: at once where somebody waits for a mark, which nothing else brings.
    pub(super) fn round_interval(&self) -> u64 {
        if self.wants_mark() { 0 } else { self.round.interval(&self.ctx.config, self.ctx.round) }
    }

    pub(super) fn round_may_begin(&self) -> bool {
        let elapsed = self.ctx.now.nanos_since(self.round.started);
        let least = self.ctx.config.round_nanos_min;
        self.has_something_to_say()
            && (self.ctx.round == 0 || elapsed >= self.round_interval())
            && (!self.round.is_open() || elapsed >= self.round.patience(least))
    }

    /// Starts a round. What the last one still waits for is left behind: its keys wait, other peers go on.
    pub(super) fn begin_round(&mut self) {
        self.ctx.round += 1;
        self.round.started = self.ctx.now;
        self.round.peers = 0;
        self.round.grants = 0;
        self.ctx.stats.rounds += 1;
        self.intents.update(&mut self.ctx);
        self.follow_effects();
        self.intents.expire_wishes(&mut self.ctx);
        self.follow_effects();
        self.resend();
        let mut drafts = (0..self.ctx.config.nodes).map(|_| None).collect::<Vec<Option<Box<Draft>>>>();
        let mut wanted = self.wanted(&mut drafts);
        let mut changed = self.changed(&mut drafts);
        if !self.ops.is_empty() || self.collectives.waits_for_sync() {
            self.round.awaited = self.ctx.round;
        }
        self.round.carries(wanted.len() + changed.len(), self.ctx.round);
        if drafts.iter().flatten().any(|draft| draft.exceeds(self.ctx.config.block_bytes_max)) {
            self.share(&mut wanted, &mut drafts, |turn| (&mut turn.wanted, !turn.changes_first));
            self.share(&mut changed, &mut drafts, |turn| (&mut turn.changed, true));
            self.share(&mut wanted, &mut drafts, |turn| (&mut turn.wanted, turn.changes_first));
        }
        self.draft_requests(&wanted, &mut drafts);
        self.draft_changes(&changed, &mut drafts);
        for (index, draft) in drafts.into_iter().enumerate() {
            let node = NodeId(u16::try_from(index).expect("node ids are 16 bits wide"));
            if node != self.ctx.config.node {
                self.send_request(node, draft);
            }
        }
    }

    /// Whether `to` still owes an answer: at most one request to a peer is under way.
    fn owes_answer(&self, to: NodeId) -> bool {
        self.peers[to.index()].outstanding.is_some()
    }

    /// Keys that waited, in the list that `of` gives with the key to begin with, for peers which can be asked now: of each as many as a
    /// round looks at. If some are left, the peer's turn begins with the first of them.
    fn take_late(&mut self, of: fn(&mut Peer) -> (&mut BTreeSet<Key>, &mut Key)) -> Vec<Key> {
        if planted!(self.ctx, ForgetLate) {
            self.peers.iter_mut().for_each(|peer| peer.late = Late::default());
        }
        let most = self.ctx.config.requests_max.max(1);
        let free = self.peers.iter_mut().filter(|peer| peer.outstanding.is_none());
        free.flat_map(|peer| {
            let (keys, first) = of(peer);
            late::take(keys, first, most)
        })
        .collect()
    }

    fn resend(&mut self) {
        for key in sorted(&mut self.agenda.resend) {
            if self.queues.get(&key).is_some_and(|queue| queue.unanswered.is_some()) {
                self.transmit_again(key);
            }
        }
    }

    /// Keys that are wanted and not here, in order, of as many as one round looks at: what is signalled at once for millions does
    /// not cost each round a look at all that are left. Level-triggered: a key that left, or whose release was answered, is
    /// simply found again.
    fn wanted(&mut self, drafts: &mut Requests) -> Vec<Entry<Want>> {
        if self.ctx.first_lost.is_some() {
            self.intents.clear_listed();
            return Vec::new();
        }
        let mut keys = self.take_late(|peer| (&mut peer.late.wanted, &mut peer.turn.wanted));
        keys.extend(self.intents.take_listed(self.ctx.config.requests_max.max(1)));
        let keys = sorted(&mut keys);
        let mut entries = Vec::with_capacity(keys.len());
        for (at, &key) in keys.iter().enumerate() {
            store::prefetch_entry_ahead(&self.ctx.store, at, |at| keys.get(at).copied());
            let (ctx, queues, peers) = (&self.ctx, &self.queues, &mut self.peers);
            self.intents.look(ctx, key, |wanted| {
                let localize = wanted.localize;
                let (word, queue) = (ctx.word(key), queues.get(&key));
                // On a replica, only a set can wait.
                let waiting_set = queue.is_some();
                let unanswered = queue.is_some_and(|queue| queue.unanswered.is_some());
                match word.state() {
                    State::None if !unanswered => {}
                    State::Replica if localize && !waiting_set => {}
                    State::Replica if localize => return Verdict::Listed { here: true },
                    // Found again when what it waits for is answered.
                    _ => return Verdict::Nothing,
                }
                let is_here = word.state() == State::Replica;
                let Location { node, counter } = if is_here {
                    route::believed(word, key, ctx.config.nodes)
                } else {
                    wanted.asks(ctx, key, word)
                };
                let peer = &mut peers[node.index()];
                if peer.outstanding.is_some() {
                    peer.late.wanted.insert(key);
                    return Verdict::Listed { here: false };
                }
                let want = Want { counter, localize, is_here };
                entries.push(entry(drafts, key, node, ctx.value_bytes(key), want));
                Verdict::Asked { is_here }
            });
        }
        entries
    }

    /// Replicas that changed, are set or are given up, in order. Main copies that changed are folded.
    fn changed(&mut self, drafts: &mut Requests) -> Vec<Entry<Change>> {
        let mut sealed: Vec<Key> = Vec::new();
        if self.peers.iter().any(|peer| !peer.late.sealed.is_empty()) {
            sealed = self.peers.iter().flat_map(|peer| &peer.late.sealed).copied().collect();
            sealed.sort_unstable();
        }
        let mut keys = self.take_late(|peer| (peer.late.changes(), &mut peer.turn.changed));
        keys.append(&mut self.agenda.dirty);
        keys.append(&mut self.agenda.release);
        keys.append(&mut self.agenda.set);
        let mut entries = Vec::new();
        let keys = sorted(&mut keys);
        for (at, &key) in keys.iter().enumerate() {
            store::prefetch_ahead(&self.ctx.store, at, |at| keys.get(at).copied());
            let word = self.ctx.word(key);
            match word.state() {
                State::Main => {
                    self.ownership.fold(&self.ctx, key);
                }
                State::Replica => {
                    if let Some(change) = self.change(key, word) {
                        let is_sealed = sealed.binary_search(&key).is_ok();
                        let values = usize::from(change.is_dirty) + usize::from(change.set.is_some());
                        let bytes = values * change.len * S::Value::WIDTH;
                        let owner = route::believed(word, key, self.ctx.config.nodes).node;
                        if self.owes_answer(owner) {
                            self.peers[owner.index()].late.put_off(key, is_sealed);
                        } else {
                            entries.push(Entry { is_sealed, ..entry(drafts, key, owner, bytes, change) });
                        }
                    }
                }
                State::None | State::Requested | State::Releasing => {}
            }
        }
        entries
    }

    /// What the replica of `key` has to say, if anything.
    fn change(&self, key: Key, word: Word) -> Option<Change> {
        let queue = self.queues.get(&key);
        let front = queue.and_then(|queue| queue.waiting.front().map(|item| (*item, queue.set_sent)));
        let set = front.filter(|(item, sent)| item.access == Access::Set && !sent).map(|(item, _)| item);
        let is_kept = front.is_some() || self.intents.is_interested(key) || self.is_localizing(key, word);
        let (is_dirty, release) = (word.is_dirty(), !is_kept);
        let something = is_dirty || set.is_some() || release;
        something.then(|| Change { is_dirty, set, release, len: self.ctx.value_len(key) })
    }

    /// Whether a localize entry of a replica is on its way: per key at most one entry is unanswered.
    fn is_localizing(&self, key: Key, word: Word) -> bool {
        let Some(location) = word.location() else { return false };
        let outstanding = &self.peers[location.node.index()].outstanding;
        outstanding.as_ref().is_some_and(|outstanding| outstanding.localizes.binary_search(&key).is_ok())
    }

    /// Entries of intents and localizes.
    fn draft_requests(&mut self, entries: &[Entry<Want>], drafts: &mut Requests) {
        for &Entry { key, to, goes, says: Want { counter, localize, is_here }, .. } in entries {
            if !goes {
                // `wanted` took it for sent, but there was no room.
                self.intents.unask(key, localize);
                self.peers[to.index()].late.wanted.insert(key);
                continue;
            }
            let request = &mut drafts[to.index()].get_or_insert_default().request;
            let entries = if localize { &mut request.localizes } else { &mut request.intents };
            entries.push(key, counter);
            if !is_here {
                self.ctx.store.with_slot(key, |mut slot| slot.request());
                self.round.grants += 1;
            }
        }
    }

    /// Deltas, sets and releases of replicas.
    fn draft_changes(&mut self, entries: &[Entry<Change>], drafts: &mut Requests) {
        let mut bytes = alloc::vec![0; drafts.len()];
        entries.iter().filter(|entry| entry.goes).for_each(|entry| bytes[entry.to.index()] += entry.values);
        for (draft, bytes) in drafts.iter_mut().zip(bytes) {
            draft.iter_mut().for_each(|draft| draft.values.reserve(bytes));
        }
        for &Entry { key, to, goes, is_sealed, says, .. } in entries {
            if goes {
                self.draft_change(key, to, says, drafts[to.index()].get_or_insert_default());
            } else {
                self.peers[to.index()].late.put_off(key, is_sealed);
            }
        }
    }

    fn draft_change(&mut self, key: Key, to: NodeId, change: Change, draft: &mut Draft) {
        let Change { is_dirty, set, release, len } = change;
        let lost = release && planted!(self.ctx, DropDeltaOnRelease);
        let twice = planted!(self.ctx, SendDeltaTwice);
        if is_dirty && !lost {
            draft.request.deltas.push(key);
        }
        let take = |mut slot: Slot<'_, S::Value>| {
            if is_dirty && lost {
                slot.take_delta(&mut alloc::vec![S::Value::default(); len]);
            } else if is_dirty {
                let kept = twice.then(|| slot.delta.to_vec());
                slot.take_delta_with(|delta| draft.values.push(delta));
                if let Some(kept) = kept {
                    slot.delta.copy_from_slice(&kept);
                }
            }
            // A worker that pushed since the word was read keeps the replica for one more round.
            let released = release && !slot.word.is_dirty();
            if released {
                slot.release();
            }
            released
        };
        if self.ctx.store.with_slot(key, take) {
            self.ctx.store.release(key);
            draft.request.releases.push(key);
            self.peers[to.index()].replicas -= 1;
            self.ctx.stats.releases += 1;
            self.ctx.observe(|observer, now| observer.on_replica_released(now, key));
        } else if release {
            self.agenda.dirty.push(key);
        }
        if let Some(item) = set
            && let Some(op) = self.ops.get(&item.op)
        {
            draft.request.sets.push(key);
            draft.sets.push(&op.values[item.offset..item.offset + len]);
            self.queues.get_mut(&key).expect("a waiting set has a queue").set_sent = true;
        }
    }

    /// Whether a round could begin a mark.
    pub(super) fn wants_mark(&self) -> bool {
        self.collectives.wants_mark(|node| {
            let peer = &self.peers[node.index()];
            peer.mark == SyncMark::Absent && peer.outstanding.is_none()
        })
    }

    /// Whether the request to `node` that leaves now carries a mark; what is put off for it now stays behind a mark that begins.
    fn takes_mark(&mut self, node: NodeId) -> bool {
        let peer = &mut self.peers[node.index()];
        if peer.outstanding.is_some() {
            return false;
        }
        if peer.mark == SyncMark::Absent && self.collectives.begin_mark(node) {
            peer.mark = SyncMark::Sealed;
            if !planted!(self.ctx, MarkPastLate) {
                peer.late.seal();
            }
        }
        let leaves = peer.mark == SyncMark::Sealed && peer.late.sealed.is_empty();
        if leaves {
            peer.mark = SyncMark::Asked;
        }
        leaves
    }

    fn send_request(&mut self, node: NodeId, draft: Option<Box<Draft>>) {
        let sync = self.takes_mark(node);
        let peer = &mut self.peers[node.index()];
        let is_empty = draft.as_ref().is_none_or(|draft| draft.is_empty());
        if self.ctx.is_lost(node) || peer.outstanding.is_some() || (is_empty && !peer.news && !sync) {
            return;
        }
        let Draft { mut request, mut values, sets, .. } = *draft.unwrap_or_default();
        request.sync = sync;
        if !request.intents.is_empty() || !request.localizes.is_empty() {
            request.ticket = self.ctx.tickets.of_request(low_bits(self.ctx.round), node);
        }
        values.push(sets.values::<S::Value>());
        peer.news = false;
        peer.turn.changes_first = !peer.turn.changes_first;
        peer.outstanding = Some(Outstanding {
            round: self.ctx.round,
            releases: request.releases.0.clone(),
            sets: request.sets.0.clone(),
            localizes: request.localizes.keys.0.clone(),
        });
        self.round.peers += 1;
        self.ctx.send(node, Message { body: Box::new(Body::SyncRequest(request)), values });
    }

    /// A request or grant of round `round` is here; notes how long the round took once all are.
    pub(super) fn close_round(&mut self, round: u64, peers: usize, grants: usize) {
        if (round ^ self.ctx.round) << (u64::BITS - ROUND_BITS) != 0 || !self.round.is_open() {
            return;
        }
        self.round.peers = self.round.peers.saturating_sub(peers);
        self.round.grants = self.round.grants.saturating_sub(grants);
        if !self.round.is_open() {
            self.round.took(self.ctx.now.nanos_since(self.round.started));
        }
    }
}

/// What is kept of a round's number with an unanswered entry.
pub(super) fn low_bits(round: u64) -> u32 {
    round as u32 & ((1 << ROUND_BITS) - 1)
}

/// Empties `keys` in ascending order, each once.
pub(super) fn sorted(keys: &mut Vec<Key>) -> Vec<Key> {
    let mut keys = mem::take(keys);
    keys.sort_unstable();
    keys.dedup();
    keys
}
