//! Keys owned here: their holders, pending refreshes, and the moves of their main copies
//! (AdaPM §4.1, AdaPM §B.1, AdaPM §B.2.4; protocol, "Rounds" and "Decisions").
//!
//! The policy proposes between relocation and replication; the mechanism lets the main copy move
//! only when no node other than the receiver holds a replica. The owner is the hub of all replicas
//! of its keys.
//!
//! # Departure
//! In Lapse the home starts a relocation. Here the owner gives the key away and notifies the home
//! afterwards, so that a node that asks the owner directly leaves the home out (AdaPM §B.1.1).

mod answer;
mod holder;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use smallvec::SmallVec;

use crate::engine::budget::Budget;
use crate::engine::ctx::{Ctx, Env, KeyMap};
use crate::engine::effect::Effect;
use crate::engine::entry::{AskedFor, Asker, Entry};
use crate::engine::intent::Intents;
use crate::engine::outgoing::GrantDraft;
use crate::id::{Counter, Key, NodeId, Version};
use crate::node_set::NodeSet;
use crate::policy::{Placement, Policy, View};
use crate::route::{self, Hop};
use crate::slot::{Location, PackedState, State};
use crate::store::{Look, Store};
use crate::time::Instant;
use crate::value::{Block, Value};
use crate::wire::Message;
use crate::wire::message::{Body, GrantKind, Owners, SyncRequest};

use holder::Holder;

/// Holders of keys owned here, and pending reports to them.
pub(super) struct Ownership {
    /// Only keys that have holders.
    replica_sets: KeyMap<ReplicaSet>,
    holders: Vec<Holder>,
    /// Peers for which this input may have brought news.
    newsworthy: Vec<NodeId>,
    /// A request whose answer is incomplete.
    answering: Option<Box<Answering>>,
    /// Keys that were to be handed over while this node is frozen.
    postponed: Vec<Key>,
}

/// A request with an incomplete answer.
#[derive(Debug)]
struct Answering {
    from: NodeId,
    request: SyncRequest,
    /// Its intents and localizes in key order; true: a localize.
    asked: Vec<(Key, Counter, bool)>,
    /// Number of them that are answered.
    done: usize,
    /// Keys that `from` has a replica of and asks to own.
    handing: Vec<Key>,
}

/// The owner's record of a key's holders.
#[derive(Debug, Default)]
struct ReplicaSet {
    /// Nodes with a replica, or a replica grant on its way.
    nodes: NodeSet,
    /// Holders that lack a change, ascending.
    stale: SmallVec<[Stale; 1]>,
    /// The version up to which changes are marked, where updates are counted.
    marked: Version,
    /// True if a hand-over to the single holder is decided and waits for its request.
    hand_over: bool,
}

/// A holder that lacks changes.
#[derive(Clone, Copy, Debug)]
struct Stale {
    node: NodeId,
    /// The number of changes that it lacks, or of updates if changes wait for more; 1 for any
    /// number if it is refreshed after each, 0 if it has asked for a refresh without lacking any.
    changes: u32,
    /// The time of the oldest of them.
    since: Instant,
}

const _: () = assert!(size_of::<Stale>() == 16, "one for each holder of each key that changes");

/// The outcome of serving an entry.
#[derive(Debug)]
pub(super) enum Served<V> {
    /// Served; its answer is queued.
    Done,
    /// An operation of this node, executed; carries the value that a pull read.
    Own(Vec<V>),
    /// The key is not owned here.
    Elsewhere(Hop),
    /// Its sender cannot have passed it on: its origin must ask again.
    Refused,
}

impl Ownership {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            replica_sets: KeyMap::default(),
            holders: (0..nodes).map(|_| Holder::default()).collect(),
            newsworthy: Vec::new(),
            answering: None,
            postponed: Vec::new(),
        }
    }

    /// Returns true if no report to a live holder is pending.
    pub(super) fn is_at_rest(&self, ctx: &Ctx<impl Env>) -> bool {
        let waits = ctx.patience().is_some();
        let nothing_due = |(node, holder): (NodeId, &Holder)| {
            let is_due = holder.is_due() || waits && holder.waits_since().is_some();
            !is_due || ctx.is_lost(node)
        };
        self.answering.is_none() && ctx.nodes().zip(&self.holders).all(nothing_due)
    }

    /// Returns the number of entries in all maps and lists.
    pub(super) fn side_entries(&self) -> usize {
        let replica_sets = self
            .replica_sets
            .values()
            .map(|replicas| 1 + replicas.nodes.len() + replicas.stale.len());
        let sets = replica_sets.chain(self.holders.iter().map(Holder::len));
        sets.sum::<usize>() + self.postponed.len()
    }

    /// Returns the nodes with a replica of `key`, and those of them that lack a change.
    #[cfg(feature = "inspect")]
    pub(super) fn holders_of(&self, key: Key) -> [Vec<NodeId>; 2] {
        let Some(replicas) = self.replica_sets.get(&key) else { return [Vec::new(), Vec::new()] };
        [replicas.nodes.iter().collect(), replicas.stale.iter().map(|stale| stale.node).collect()]
    }

    /// Returns true if another node holds a replica of `key`.
    pub(super) fn has_holders(&self, key: Key) -> bool {
        self.replica_sets.contains_key(&key)
    }

    pub(super) fn is_holder(&self, key: Key, node: NodeId) -> bool {
        self.replica_sets.get(&key).is_some_and(|replicas| replicas.nodes.contains(node))
    }

    fn is_only_holder(&self, key: Key, node: NodeId) -> bool {
        self.replica_sets.get(&key).is_some_and(|replicas| replicas.nodes.as_slice() == [node])
    }

    /// Decides an intent or localize of `origin`, which holds no replica, for a key owned here
    /// whose dirty flag was just taken: sends the main copy, a replica or neither, and drafts the
    /// answer.
    pub(super) fn grant(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        intents: &Intents,
        (key, counter): (Key, Counter),
        origin: NodeId,
        localize: bool,
        draft: &mut GrantDraft,
    ) {
        let owner_has_intent = intents.is_interested(key);
        let movable = counter < Counter::MAX;
        let none = NodeSet::new();
        let holders = self.replica_sets.get(&key).map_or(&none, |replicas| &replicas.nodes);
        let placement = if localize {
            // The worker's own decision, under every policy (Lapse §3.2).
            if holders.is_empty() && movable { Placement::Relocate } else { Placement::Replicate }
        } else {
            let view =
                View::new(key, origin).with_holders(holders).with_owner_intent(owner_has_intent);
            let wanted = ctx.policy.place(&view);
            let safe = movable
                && holders.is_empty()
                && (!owner_has_intent || ctx.policy.relocates_under_intent(key));
            match wanted {
                Placement::Relocate if !safe => {
                    ctx.stats.coerced += 1;
                    Placement::Replicate
                }
                wanted => wanted,
            }
        };
        match placement {
            Placement::Relocate => self.relocate(ctx, intents, (key, counter), origin, draft),
            Placement::Replicate => self.replicate(ctx, key, counter, origin, draft),
            Placement::Keep => {
                ctx.stats.refusals += 1;
                draft.add(key, counter, GrantKind::Remote, |_| (Version(0), ()));
            }
        }
    }

    /// Serves an entry of some node if its key is owned here (Lapse §3.3). Only an owner executes
    /// another node's operation; a replica neither answers nor absorbs it.
    pub(super) fn serve<V: Value>(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        entry: &Entry<&[V]>,
    ) -> Served<V> {
        let Entry { asker, key, counter, asked } = *entry;
        let moves = asked.is_request();
        // A main copy is certainly here; the operation is executed in the step that takes its dirty
        // flag.
        if !moves && ctx.store.look(key) == (Look::Held { with_delta: false }) {
            return self.execute(ctx, asker, key, asked);
        }
        let packed = self.without_dirty(ctx, key);
        let hop = route::next_hop(packed, key, counter, ctx.config.node, &ctx.config.homes);
        if moves && hop != Hop::Park && !may_have_passed(ctx, asker, key, packed) {
            return Served::Refused;
        }
        if hop != Hop::Here {
            return Served::Elsewhere(hop);
        }
        if !moves {
            return self.execute(ctx, asker, key, asked);
        }
        ctx.count_served(key, asker.origin, asker.hops);
        // A node that has become owner needs no grant from itself; a holder gets its answer as a
        // hand-over.
        if asker.origin != ctx.config.node && !self.is_holder(key, asker.origin) {
            let mut draft = ctx.outgoing.take_grant_draft(asker.origin);
            draft.ticket = asker.reply();
            let localize = asked == AskedFor::Localize;
            self.grant(ctx, intents, (key, packed.counter()), asker.origin, localize, &mut draft);
            ctx.outgoing.put_grant_draft(asker.origin, draft);
        }
        Served::Done
    }

    /// Executes an operation on a main copy held here.
    fn execute<V: Value>(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        asker: Asker,
        key: Key,
        asked: AskedFor<&[V]>,
    ) -> Served<V> {
        let origin = asker.origin;
        ctx.count_served(key, origin, asker.hops);
        let is_own = origin == ctx.config.node;
        if !is_own && asked == AskedFor::Pull {
            if ctx.outgoing.answer_pull(&ctx.store, origin, key, asker.reply()) {
                self.mark_stale(ctx, (key, ctx.version(key)), None);
            }
            return Served::Done;
        }
        let mut value = Vec::new();
        let (is_changed, version, counter) = ctx.store.with_slot(key, |mut slot| {
            let is_changed = slot.take_dirty();
            match asked {
                AskedFor::Push(update) => slot.apply(update),
                AskedFor::Set(new) => slot.set(new),
                _ => value.extend_from_slice(slot.value),
            }
            (is_changed, *slot.version, slot.packed.counter())
        });
        if asked != AskedFor::Pull {
            self.mark_changes(ctx, (key, version), is_changed, None);
        } else if is_changed {
            self.mark_stale(ctx, (key, version), None);
        }
        if is_own {
            return Served::Own(value);
        }
        ctx.outgoing.answer_done(origin, key, counter, asker.reply());
        Served::Done
    }

    /// Grants `to` the main copy of `key`, owned here under `counter` and held nowhere else.
    fn relocate(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        intents: &Intents,
        (key, counter): (Key, Counter),
        to: NodeId,
        draft: &mut GrantDraft,
    ) {
        let there = Location { node: to, counter: counter.next() };
        draft.add(key, there.counter, GrantKind::Owner, |block| {
            ctx.store.with_slot(key, |mut slot| {
                block.push(slot.value);
                slot.hand_over(there);
                (*slot.version, ())
            })
        });
        self.leave(ctx, key, there);
        // Most keys leave a node that has no intent for them.
        if intents.knows(key) {
            ctx.ask(Effect::Left { key, is_turn: ctx.policy.relocates_under_intent(key) });
        }
    }

    /// Grants `to` a replica of `key`, owned here.
    fn replicate(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        key: Key,
        counter: Counter,
        to: NodeId,
        draft: &mut GrantDraft,
    ) {
        let version = draft.add(key, counter, GrantKind::Replica, |block| {
            ctx.store.with_slot(key, |mut slot| {
                slot.watch(true);
                block.push(slot.value);
                (*slot.version, *slot.version)
            })
        });
        let replicas = self.replica_sets.entry(key).or_default();
        replicas.marked = version;
        replicas.nodes.insert(to);
        replicas.hand_over = false;
        ctx.observe(|observer, now| observer.on_replica_set_up(now, key, to));
    }

    /// Hands `key` over to its single holder, with a value if `is_stale` or workers here have
    /// changed it since. Returns false, and keeps the key, if the value is needed and there is no
    /// `room` for it; a `room` of `None` means that room is reserved.
    fn write_hand_over(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        (key, to): (Key, NodeId),
        is_stale: bool,
        room: Option<&mut Budget>,
        owners: &mut Owners,
        block: &mut Block,
    ) -> bool {
        let bytes_max = ctx.config.block_bytes_max;
        let there = Location { node: to, counter: ctx.packed(key).counter().next() };
        let handed_over = ctx.store.with_slot(key, |mut slot| {
            let with_value = is_stale || slot.packed.is_dirty();
            let bytes = if with_value { size_of_val(slot.value) } else { 0 };
            if room.is_some_and(|room| !room.widen(bytes, bytes_max)) {
                return None;
            }
            if with_value {
                block.push(slot.value);
            }
            slot.hand_over(there);
            Some((*slot.version, with_value))
        });
        let Some((version, with_value)) = handed_over else { return false };
        owners.at.push(key, there.counter);
        owners.versions.push(version);
        owners.with_value.push(with_value);
        ctx.count_served(key, to, 0);
        self.leave(ctx, key, there);
        ctx.ask(Effect::Left { key, is_turn: false });
        true
    }

    /// Cleans up after the main copy of `key` has left.
    fn leave(&mut self, ctx: &mut Ctx<impl Env>, key: Key, there: Location) {
        ctx.store.release(key);
        if !self.replica_sets.is_empty() {
            self.replica_sets.remove(&key);
        }
        let home = ctx.config.homes.home(key);
        if home != ctx.config.node && home != there.node {
            ctx.outgoing.add_residence(home, key, there);
        }
        ctx.observe(|observer, now| observer.on_relocation(now, key, there.node, there.counter));
    }

    /// Asks the policy about the single remaining holder of a key for which the owner has no active
    /// intent.
    pub(super) fn reconsider(&mut self, ctx: &mut Ctx<impl Env>, intents: &Intents, key: Key) {
        let Some(replicas) = self.replica_sets.get(&key) else { return };
        if intents.is_interested(key) || ctx.state(key) != State::Main {
            return;
        }
        let [holder] = *replicas.nodes.as_slice() else { return };
        if replicas.hand_over {
            return;
        }
        let view = View::new(key, holder);
        if is_movable(ctx, key) && ctx.policy.place(&view) == Placement::Relocate {
            self.decide_hand_over(key, holder);
        }
    }

    /// Decides to hand the key over to its single holder with the response to that node's next
    /// request.
    fn decide_hand_over(&mut self, key: Key, holder: NodeId) {
        if let Some(replicas) = self.replica_sets.get_mut(&key) {
            replicas.hand_over = true;
            self.holders[holder.index()].make_due(key);
            self.newsworthy.push(holder);
        }
    }

    /// Hands over what was postponed while this node was frozen.
    pub(super) fn hand_over_postponed(&mut self) {
        let mut keys = mem::take(&mut self.postponed);
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let holder = self.replica_sets.get(&key).filter(|replicas| replicas.hand_over);
            if let Some([holder]) = holder.map(|replicas| replicas.nodes.as_slice()) {
                self.decide_hand_over(key, *holder);
            }
        }
    }

    /// Notes that every holder of `key`, of `version` now, lacks a change of workers here, or one
    /// of a holder, `from`; and that those are due that lack more than the policy tolerates.
    pub(super) fn mark_stale(
        &mut self,
        ctx: &Ctx<impl Env>,
        (key, version): (Key, Version),
        from: Option<NodeId>,
    ) {
        let Some(replicas) = self.replica_sets.get_mut(&key) else { return };
        let (lag, lacked) = match ctx.patience() {
            Some(patience) => {
                (patience.updates.saturating_sub(1), replicas.count(version, from, ctx))
            }
            None => (ctx.policy.lag(key), 1),
        };
        let ReplicaSet { nodes, stale, .. } = replicas;
        // With many holders, most are stale already when the next change comes.
        if lag == 0 && stale.len() == nodes.len() {
            return;
        }
        let mut at = 0;
        for node in nodes.iter().filter(|node| Some(*node) != from) {
            while stale.get(at).is_some_and(|stale| stale.node < node) {
                at += 1;
            }
            let holder = &mut self.holders[node.index()];
            let before = match stale.get_mut(at).filter(|stale| stale.node == node) {
                Some(_) if lag == 0 => continue,
                Some(stale) => {
                    let before = stale.changes;
                    stale.changes = before.saturating_add(lacked);
                    before
                }
                None => {
                    stale.insert(at, Stale { node, changes: lacked, since: ctx.now });
                    if lag > 0 {
                        holder.wait(key, ctx.now);
                    }
                    0
                }
            };
            if before <= lag && before.saturating_add(lacked) > lag {
                holder.make_due(key);
                self.newsworthy.push(node);
            }
        }
    }

    /// Returns the time at which a change that waits for more is due, at the latest; if all go
    /// `at_once`, now.
    pub(super) fn next_due_at(&self, ctx: &Ctx<impl Env>, at_once: bool) -> Option<Instant> {
        let patience = ctx.patience()?;
        let oldest = self.holders.iter().filter_map(Holder::waits_since).min();
        oldest.map(|since| if at_once { ctx.now } else { patience.due_at_owner(since) })
    }

    /// Makes changes due that have waited for long enough; all that wait if `at_once`.
    pub(super) fn end_waits(&mut self, ctx: &Ctx<impl Env>, at_once: bool) {
        let Some(patience) = ctx.patience() else { return };
        let is_over = |since| at_once || patience.due_at_owner(since) <= ctx.now;
        for (node, holder) in ctx.nodes().zip(&mut self.holders) {
            if holder.end_waits(is_over) {
                self.newsworthy.push(node);
            }
        }
    }

    /// Notes that the holders of `key` but `from` lack a change that has come, and those of workers
    /// here before it, if there are any: another change, where changes are counted.
    pub(super) fn mark_changes(
        &mut self,
        ctx: &Ctx<impl Env>,
        change: (Key, Version),
        by_workers: bool,
        from: Option<NodeId>,
    ) {
        if by_workers {
            self.mark_stale(ctx, change, None);
        }
        if !by_workers || ctx.patience().is_some() || ctx.policy.lag(change.0) > 0 {
            self.mark_stale(ctx, change, from);
        }
    }

    /// Marks the holders of `key` as stale if it is owned here and workers have changed it since
    /// they were last marked. Returns its packed state.
    pub(super) fn take_dirty(&mut self, ctx: &Ctx<impl Env>, key: Key) -> PackedState {
        let (is_changed, version, packed) = ctx.store.with_slot(key, |mut slot| {
            let is_changed = slot.packed.state() == State::Main && slot.take_dirty();
            (is_changed, *slot.version, *slot.packed)
        });
        if is_changed {
            self.mark_stale(ctx, (key, version), None);
        }
        packed
    }

    /// Returns the key's packed state, as [`Ctx::packed`] does, and takes its dirty flag if `key`
    /// is owned here.
    pub(super) fn without_dirty(&mut self, ctx: &Ctx<impl Env>, key: Key) -> PackedState {
        if let Look::Held { .. } = ctx.store.look(key) {
            return self.take_dirty(ctx, key);
        }
        match ctx.packed(key) {
            packed if packed.state() == State::Main => self.take_dirty(ctx, key),
            packed => packed,
        }
    }

    fn drop_holder(&mut self, ctx: &mut Ctx<impl Env>, intents: &Intents, key: Key, node: NodeId) {
        let Some(replicas) = self.replica_sets.get_mut(&key) else { return };
        replicas.nodes.remove(node);
        if let Ok(at) = replicas.stale.binary_search_by_key(&node, |stale| stale.node) {
            replicas.stale.remove(at);
        }
        self.holders[node.index()].forget(key);
        replicas.hand_over = false;
        if replicas.nodes.is_empty() {
            self.replica_sets.remove(&key);
            ctx.store.with_slot(key, |mut slot| slot.watch(false));
        }
        ctx.observe(|observer, now| observer.on_replica_dropped(now, key, node));
        self.reconsider(ctx, intents, key);
    }

    /// Removes a lost peer as a holder.
    pub(super) fn forget_peer(&mut self, ctx: &mut Ctx<impl Env>, intents: &Intents, node: NodeId) {
        self.holders[node.index()] = Holder::default();
        let held = self.replica_sets.iter().filter(|(_, replicas)| replicas.nodes.contains(node));
        let mut keys: Vec<Key> = held.map(|(key, _)| *key).collect();
        keys.sort_unstable();
        for key in keys {
            self.drop_holder(ctx, intents, key, node);
        }
    }

    /// Notifies peers for which something has come up since their last request, each once.
    pub(super) fn send_news(&mut self, ctx: &mut Ctx<impl Env>) {
        let mut nodes = mem::take(&mut self.newsworthy);
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes.drain(..) {
            if self.holders[node.index()].tell() {
                ctx.send(node, Message::bare(Body::News));
            }
        }
        self.newsworthy = nodes;
    }
}

impl ReplicaSet {
    /// Counts the updates of a change by workers here, or by a holder, `from`, which sends no more
    /// than its share at a time unless it must.
    fn count(&mut self, version: Version, from: Option<NodeId>, ctx: &Ctx<impl Env>) -> u32 {
        let own = version.changes_since(mem::replace(&mut self.marked, version));
        match (from, ctx.patience()) {
            (Some(_), Some(patience)) => patience.share(ctx.config.nodes),
            _ => own.max(1),
        }
    }
}

/// Returns true if the key's relocation counter has room: a peer may have given it any value.
fn is_movable(ctx: &Ctx<impl Env>, key: Key) -> bool {
    ctx.packed(key).counter() < Counter::MAX
}

/// Returns true if the sender of an intent or localize can have passed it on: the origin, the home,
/// and the node from which this one has the main copy. Others may have known the location, too; but
/// an entry moves the main copy, and a node that never dealt with the key could request that in the
/// name of others.
fn may_have_passed(ctx: &Ctx<impl Env>, asker: Asker, key: Key, packed: PackedState) -> bool {
    let former = packed.location().filter(|_| packed.state() == State::Main);
    asker.by == asker.origin
        || asker.origin == ctx.config.node
        || asker.by == ctx.config.homes.home(key)
        || former.is_some_and(|former| former.node == asker.by)
}
