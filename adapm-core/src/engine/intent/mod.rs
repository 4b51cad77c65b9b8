//! "This node wants key k": signals of own workers, aggregated per key, and localizes (AdaPM §3,
//! AdaPM §B.2.1; Lapse §3.2).
//!
//! A node keeps inactive intents to itself. Signals that the action timer lets through
//! (AdaPM §4.2.1) raise the key's reference count; signals that expire or are taken back lower it.
//! Other nodes only learn that the count has left zero or reached it.
//!
//! This is the only home of the facts which keys are wanted, and which of them were asked for and
//! not answered.

mod asking;
mod kept;
mod signals;
mod state;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use hashbrown::hash_map::Entry;

use crate::clock::{Clock, Tick};
use crate::engine::budget::Deferred;
use crate::engine::ctx::{Ctx, Env, KeyMap};
use crate::engine::effect::Effect;
use crate::engine::entry::Request;
use crate::engine::input::{Intent, OpId};
use crate::error::OpError;
use crate::id::{Key, NodeId, WorkerId};
use crate::policy::Policy;
use crate::slot::State;
use crate::store::{self, Look, Store};

use kept::Kept;
use signals::Signals;
use state::{IntentFlag, IntentState, Localizes};

/// Rounds after which a localize that brought a replica instead of ownership ends, if the node has
/// no other intent. Counted in rounds, not in time: an idle node begins no rounds and keeps the
/// replica, which costs no messages as long as the main copy does not change. So these replicas are
/// at most those of the localizes of this many rounds.
const LOCALIZE_ROUNDS: u64 = 1_024;

/// The keys that this node wants.
#[derive(Debug, Default)]
pub(super) struct Intents {
    signals: Signals,
    /// By worker: the clock at which the policy was asked last, and what it said.
    bounds: Vec<(Clock, Clock)>,
    /// True if the last round has left work to the next one.
    is_behind: bool,
    /// Keys with acted-on intent, a localize, or an unanswered entry for one.
    states: KeyMap<IntentState>,
    /// Localizes of keys that are not owned here yet; flagged in their [`IntentState`].
    localizes: Localizes,
    /// Keys that may need an intent or localize entry, each once, in the order in which they were
    /// listed.
    listed: VecDeque<Key>,
    /// Listed keys that wait until their peer can be asked, by peer.
    deferred: Vec<Deferred>,
    /// Number of unanswered entries of absent keys.
    unanswered: usize,
    /// Copies that pulls have set up.
    kept: Kept,
    /// As a home: the nodes asked for keys that are reported to have moved since.
    asked_before: KeyMap<NodeId>,
}

impl Intents {
    pub(super) fn new(nodes: usize, workers: usize) -> Self {
        Self {
            signals: Signals::new(workers),
            bounds: alloc::vec![Default::default(); workers],
            deferred: (0..nodes).map(|_| Deferred::default()).collect(),
            ..Self::default()
        }
    }

    /// Returns true if a signal is not yet let through, retired or forgotten.
    pub(super) fn has_signals(&self) -> bool {
        self.signals.any()
    }

    /// Returns true if the next round has something to ask for or examine; peers for which `owes`
    /// is true cannot be asked.
    pub(super) fn has_work(&self, owes: impl Fn(NodeId) -> bool) -> bool {
        let mut deferred = (0..).map(NodeId).zip(&self.deferred);
        !self.listed.is_empty()
            || self.has_signals()
            || deferred.any(|(node, deferred)| !deferred.is_empty() && !owes(node))
    }

    /// Returns the number of unanswered entries of absent keys.
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Returns true if nothing is listed or unanswered, and no due signal is left to examine.
    pub(super) fn is_at_rest(&self, ctx: &Ctx<impl Env>) -> bool {
        let mut deferred = ctx.nodes().zip(&self.deferred);
        !self.is_behind
            && self.unanswered == 0
            && self.listed.is_empty()
            && deferred.all(|(node, deferred)| deferred.is_empty() || ctx.is_lost(node))
    }

    /// Returns the number of entries in all maps and lists.
    pub(super) fn side_entries(&self) -> usize {
        self.states.values().filter(|state| state.count() > 0).count()
            + self.localizes.len()
            + self.listed.len()
            + self.deferred.iter().map(Deferred::len).sum::<usize>()
            + self.unanswered
            + self.asked_before.len()
            + self.signals.keys()
            + self.kept.len()
    }

    /// Returns the number of active signals for the key, each as often as it names it, plus the
    /// localize.
    #[cfg(feature = "inspect")]
    pub(super) fn count(&self, key: Key) -> usize {
        self.states.get(&key).map_or(0, IntentState::count)
    }

    /// Returns true if acted-on intent or a localize of this node is active.
    pub(super) fn is_interested(&self, key: Key) -> bool {
        self.states.get(&key).is_some_and(|state| state.count() > 0)
    }

    /// Returns true if anything is known of the intent of this node for `key`.
    pub(super) fn knows(&self, key: Key) -> bool {
        self.states.contains_key(&key)
    }

    /// Returns true if the owner of `key` is to be asked while it is not here.
    pub(super) fn is_wanted(&self, key: Key) -> bool {
        self.states.get(&key).is_some_and(IntentState::is_wanted)
    }

    /// Returns true if ownership is wanted and the owner has not been notified.
    pub(super) fn wants_ownership(&self, key: Key) -> bool {
        self.states.get(&key).is_some_and(|state| state.count() > 0 && state.is(IntentFlag::Unsent))
    }

    pub(super) fn handle_intent(
        &mut self,
        ctx: &Ctx<impl Env>,
        intent: Intent,
    ) -> Result<(), OpError> {
        let Some(clock) = ctx.clocks.get(intent.worker.index()) else {
            return Err(OpError::UnknownWorker { worker: intent.worker });
        };
        let (start, end) = (intent.clocks.start, intent.clocks.end);
        if start >= end {
            return Err(OpError::Window { start, end });
        }
        ctx.check_keys(&intent.keys)?;
        // On a single node every key is local.
        if end > *clock && !intent.keys.is_empty() && ctx.config.nodes > 1 {
            self.signals.add(intent);
        }
        Ok(())
    }

    pub(super) fn handle_take_back(
        &mut self,
        ctx: &Ctx<impl Env>,
        intent: Intent,
    ) -> Result<(), OpError> {
        if intent.worker.index() >= ctx.clocks.len() {
            return Err(OpError::UnknownWorker { worker: intent.worker });
        }
        ctx.check_keys(&intent.keys)?;
        // With nothing to forget, no round is needed.
        if self.signals.any() {
            self.signals.take_back(intent);
        }
        Ok(())
    }

    /// Processes signals: forgets those taken back, lets those through that the policy acts on,
    /// then retires those that have expired, so that an intent that continues another keeps the
    /// key. Stops after the signal with which it has examined as many keys as a round may, so that
    /// the end of an intent for millions of keys blocks no peer or worker; the rest waits for the
    /// next rounds. `is_answered`: see [`Round::begin`](crate::engine::round::Round::begin).
    pub(super) fn update(&mut self, ctx: &mut Ctx<impl Env>, is_answered: bool) {
        let mut left = ctx.config.requests_max.max(1);
        let mut is_all = self.forget_taken_back(ctx, &mut left);
        for index in 0..ctx.config.workers {
            let worker = WorkerId(u16::try_from(index).expect("worker ids are 16 bits wide"));
            let clock = ctx.clocks[index];
            if is_answered && !clock.is_ended() {
                self.bounds[index] = (clock, ctx.policy.act_before(worker, clock));
            }
            is_all = is_all
                && self.activate_due(ctx, worker, &mut left)
                && self.expire_due(ctx, worker, &mut left);
        }
        self.is_behind = !is_all && self.signals.any();
    }

    /// Forgets signals that were taken back. Returns false if there may be more.
    fn forget_taken_back(&mut self, ctx: &mut Ctx<impl Env>, left: &mut usize) -> bool {
        while let Some(intent) = self.signals.next_taken_back() {
            let keys = intent.keys.len();
            for key in self.signals.forget(intent) {
                self.expire(ctx, key);
            }
            if !spend(left, keys) {
                return false;
            }
        }
        true
    }

    /// Lets signals of a worker through that the policy acts on. Returns false if there may be
    /// more.
    fn activate_due(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        worker: WorkerId,
        left: &mut usize,
    ) -> bool {
        let clock = ctx.clocks[worker.index()];
        let before = match self.bounds[worker.index()] {
            _ if clock.is_ended() => clock,
            // Until the policy is asked again, it looks as far ahead.
            (then, bound) if bound > then => bound + clock.since(then),
            (_, never) => never,
        };
        // Examines everything that has started, so that signals that a policy never acts on are
        // forgotten when they expire.
        let mut late = Vec::new();
        let mut is_all = true;
        while is_all && let Some((place, batch)) = self.signals.next_started(worker, clock, before)
        {
            let (start, ..) = place;
            if start >= before {
                late.push((place, batch));
                continue;
            }
            for (at, &key) in batch.keys.iter().enumerate() {
                store::prefetch_entry_ahead(&ctx.store, at, |at| batch.keys.get(at).copied());
                self.activate(ctx, key);
            }
            is_all = spend(left, batch.keys.len());
            self.signals.note_active(worker, place, batch);
        }
        self.signals.put_back(worker, late);
        is_all
    }

    /// Retires expired signals of a worker. Returns false if there may be more.
    fn expire_due(&mut self, ctx: &mut Ctx<impl Env>, worker: WorkerId, left: &mut usize) -> bool {
        while let Some(batch) = self.signals.next_expired(worker, ctx.clocks[worker.index()]) {
            for (at, &key) in batch.keys.iter().enumerate() {
                store::prefetch_entry_ahead(&ctx.store, at, |at| batch.keys.get(at).copied());
                self.expire(ctx, key);
            }
            if !spend(left, batch.keys.len()) {
                return false;
            }
        }
        true
    }

    fn activate(&mut self, ctx: &mut Ctx<impl Env>, key: Key) {
        let state = self.states.entry(key).or_default();
        let first = state.count() == 0;
        state.signals += 1;
        let had_turn = state.take(IntentFlag::HadTurn);
        let is_localized = state.is(IntentFlag::Localize);
        if is_localized {
            self.localizes.schedule(key, None);
        }
        // Most keys are here. A key that leaves or is answered is examined again then.
        let is_held = || matches!(ctx.store.look(key), Look::Held { .. });
        let is_absent = || !is_held() && ctx.state(key) == State::None;
        if (first || had_turn) && (is_localized || is_absent()) {
            self.ask_later(key);
        }
        if first {
            ctx.observe(|observer, now| observer.on_intent(now, key, true));
        }
    }

    fn expire(&mut self, ctx: &mut Ctx<impl Env>, key: Key) {
        let Entry::Occupied(mut entry) = self.states.entry(key) else { return };
        let state = entry.get_mut();
        debug_assert!(state.signals > 0, "each active signal was counted");
        state.signals = state.signals.saturating_sub(1);
        if state.signals > 0 {
            return;
        }
        if !state.is(IntentFlag::Localize) {
            if state.end() {
                entry.remove();
            }
            ended(ctx, key);
        } else if self.localizes.is_unawaited(key) {
            self.localizes.schedule(key, Some(ctx.round + LOCALIZE_ROUNDS));
        }
    }

    /// Ends the kept copies that must not be read from `tick` on.
    pub(super) fn end_kept(&mut self, ctx: &mut Ctx<impl Env>, tick: Tick) {
        while let Some((end, keys)) = self.kept.take_ended(tick) {
            for key in keys {
                self.expire(ctx, key);
                let lingers = matches!(ctx.state(key), State::Replica | State::Requested);
                if lingers && !self.is_interested(key) {
                    self.kept.await_end(key, end);
                }
            }
        }
    }

    /// Returns the keys that pulls have asked for and that are unanswered, in order.
    pub(super) fn asked_at_once(&self) -> impl ExactSizeIterator<Item = Key> + '_ {
        self.kept.asked()
    }

    /// Returns the least tick from which a copy that is still here or on its way must not be read.
    pub(super) fn oldest_kept(&self) -> Option<Tick> {
        self.kept.oldest()
    }

    /// Records that no replica of `key` is here, and none on its way.
    pub(super) fn note_gone(&mut self, key: Key) {
        self.kept.note_gone(key);
    }

    /// Ends all intent for `key`.
    fn end(&mut self, ctx: &mut Ctx<impl Env>, key: Key) {
        self.localizes.remove(key);
        if let Entry::Occupied(mut entry) = self.states.entry(key) {
            if entry.get_mut().end() {
                entry.remove();
            }
            ended(ctx, key);
        }
    }

    /// Makes `op`, a localize (Lapse §3.2), want `keys` here. Returns the number of keys that it
    /// waits for; `op` is finished once for each.
    pub(super) fn localize(&mut self, ctx: &mut Ctx<impl Env>, op: OpId, keys: &[Key]) -> usize {
        let mut awaited = 0;
        for &key in keys {
            let state = ctx.state(key);
            if state == State::Main || (state == State::Replica && ctx.first_lost.is_some()) {
                continue;
            }
            awaited += 1;
            self.want_ownership(ctx, key, op);
            if state == State::Replica {
                self.end_waiters(ctx, key);
            }
        }
        awaited
    }

    /// Makes `key` wanted here; `waiter` ends when it is local.
    fn want_ownership(&mut self, ctx: &mut Ctx<impl Env>, key: Key, waiter: OpId) {
        let state = self.states.entry(key).or_default();
        let first = state.count() == 0;
        state.put(IntentFlag::Localize);
        state.put(IntentFlag::Unsent);
        if !state.put(IntentFlag::Listed) {
            self.listed.push_back(key);
        }
        self.localizes.add(key, waiter);
        if first {
            ctx.observe(|observer, now| observer.on_intent(now, key, true));
        }
    }

    /// Ends the localizes that wait for the key, which is local.
    fn end_waiters(&mut self, ctx: &mut Ctx<impl Env>, key: Key) {
        let Some(waiters) = self.localizes.take_waiters(key) else { return };
        if self.states.get(&key).is_some_and(|state| state.signals == 0) {
            self.localizes.schedule(key, Some(ctx.round + LOCALIZE_ROUNDS));
        }
        waiters.into_iter().for_each(|waiter| ctx.ask(Effect::Finish(waiter)));
    }

    /// Lists `key`, if it is wanted, for the next round to ask for. Listed once, however often it
    /// comes and goes until then.
    pub(super) fn ask_later(&mut self, key: Key) {
        if let Some(state) = self.states.get_mut(&key)
            && state.is_wanted()
            && !state.put(IntentFlag::Listed)
        {
            self.listed.push_back(key);
        }
    }

    /// Ends localizes that have brought no ownership for long, if there is no other intent for the
    /// key.
    pub(super) fn expire_localizes(&mut self, ctx: &mut Ctx<impl Env>) {
        while let Some(key) = self.localizes.due_in(ctx.round) {
            debug_assert!(self.localizes.is_unawaited(key), "who waits clears the date");
            if self.states.get(&key).is_some_and(|state| state.is(IntentFlag::Unsent)) {
                self.localizes.schedule(key, Some(ctx.round + 1));
            } else {
                self.end(ctx, key);
            }
        }
    }

    /// Records, as a home, that `asked` was asked for `key`, which is `Requested` and reported to
    /// have moved.
    pub(super) fn note_asked_before(&mut self, key: Key, asked: NodeId) {
        self.asked_before.entry(key).or_insert(asked);
    }

    /// Forgets, as a home, the nodes asked before a move: after a loss all reports of locations are
    /// believed.
    pub(super) fn forget_asked_before(&mut self) {
        self.asked_before.clear();
    }

    /// Clears requests for `key`, whose ownership has arrived. Returns the entry that this answers,
    /// if one was unanswered.
    pub(super) fn note_owned(&mut self, ctx: &mut Ctx<impl Env>, key: Key) -> Option<Request> {
        let Entry::Occupied(mut entry) = self.states.entry(key) else { return None };
        let state = entry.get_mut();
        state.take(IntentFlag::HadTurn);
        state.take(IntentFlag::Unsent);
        let request = state.take_request().map(|request| self.kept.name(key, request));
        let is_localized = state.take(IntentFlag::Localize);
        let is_last = state.signals == 0;
        if is_last {
            entry.remove();
        }
        if is_localized {
            let waiters = self.localizes.remove(key);
            waiters.into_iter().for_each(|waiter| ctx.ask(Effect::Finish(waiter)));
            if is_last {
                ended(ctx, key);
            }
        }
        if request.is_some() {
            self.note_answered(key);
        }
        request
    }

    /// Records that a replica of `key` was granted. Returns the entry that this answers.
    pub(super) fn note_replica(&mut self, ctx: &mut Ctx<impl Env>, key: Key) -> Option<Request> {
        let request = self.take_request(key);
        self.end_waiters(ctx, key);
        request
    }

    /// Records that the owner keeps `key`, which is accessed remotely. Returns the entry that this
    /// answers.
    pub(super) fn note_refused(&mut self, key: Key) -> Option<Request> {
        let request = self.take_request(key);
        if let Some(state) = self.states.get_mut(&key) {
            state.put(IntentFlag::Refused);
        }
        request
    }

    /// Records that the entry for `key` was turned away; a later round asks the home. Returns the
    /// entry.
    pub(super) fn note_turned_away(&mut self, key: Key) -> Option<Request> {
        let request = self.take_request(key)?;
        if let Some(state) = self.states.get_mut(&key) {
            if request.localize && state.is(IntentFlag::Localize) {
                state.put(IntentFlag::Unsent);
            }
            state.put(IntentFlag::AskHome);
        }
        Some(request)
    }

    /// Records that `key` leaves under a policy that does not replicate it: the same signals do not
    /// ask for it again.
    pub(super) fn note_turn_over(&mut self, key: Key) {
        if let Some(state) = self.states.get_mut(&key) {
            state.put(IntentFlag::HadTurn);
        }
    }

    /// Gives up all requests and localizes after the loss of a peer.
    pub(super) fn give_up(&mut self, ctx: &mut Ctx<impl Env>) {
        self.unanswered = 0;
        self.kept = Kept::default();
        self.listed = VecDeque::new();
        self.deferred.iter_mut().for_each(Deferred::clear);
        self.localizes.clear();
        let mut over = Vec::new();
        for (key, state) in &mut self.states {
            state.take_request();
            state.take(IntentFlag::Unsent);
            if state.take(IntentFlag::Localize) && state.count() == 0 {
                over.push(*key);
            }
        }
        over.sort_unstable();
        for key in over {
            self.end(ctx, key);
        }
        self.states.retain(|_, state| state.count() > 0);
    }
}

/// Reports that intent for `key` has ended.
fn ended(ctx: &mut Ctx<impl Env>, key: Key) {
    ctx.observe(|observer, now| observer.on_intent(now, key, false));
    ctx.ask(Effect::Unwanted(key));
}

/// Takes `keys` off the budget of a round. Returns false if none is left.
fn spend(left: &mut usize, keys: usize) -> bool {
    *left = left.saturating_sub(keys);
    *left > 0
}
