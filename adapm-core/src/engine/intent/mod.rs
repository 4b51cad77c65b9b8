//! "This node wants key k": signals of own workers, aggregated per key, and localizes (AdaPM §3, AdaPM §B.2.1; Lapse §3.2).
//!
//! A node keeps inactive intents to itself. What the action timer lets through (AdaPM §4.2.1) raises the key's reference
//! count, what expires or is taken back lowers it; others learn only that the count has left or reached zero.
//!
//! Here alone it is known which keys are wanted, and of which of them somebody was asked and has not answered.

mod interest;
mod signals;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem;

use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use crate::engine::ctx::Ctx;
use crate::engine::effect::Effect;
use crate::engine::input::{Intent, OpId};
use crate::engine::state::{KeyMap, Request};
use crate::error::OpError;
use crate::id::{Key, NodeId, WorkerId};
use crate::policy::Policy;
use crate::route;
use crate::slot::{Location, State, Word};
use crate::store::{self, Look, Store};

use interest::{Interest, Mark};
use signals::Signals;

/// Rounds after which a localize that brought a replica instead of ownership ends, if the node has no other intent. Counted
/// in rounds, not in time: a node that has nothing to say begins none and keeps the replica, for which nothing is sent either
/// as long as the main copy does not change. So these replicas are at most those of the localizes of this many rounds.
const WISH_ROUNDS: u64 = 1_024;

/// What this node wants.
#[derive(Debug)]
pub(super) struct Intents {
    signals: Signals,
    /// The last round has left something that was due to the next one.
    is_behind: bool,
    /// Keys with acted-on intent or a localize, or with an entry for one that is unanswered.
    interests: KeyMap<Interest>,
    /// Localizes of keys that are not owned here yet.
    wishes: KeyMap<Wish>,
    /// Localizes without ownership, other intent and waiters, by the round in which they may end; a key at most once.
    due: BTreeSet<(u64, Key)>,
    /// Keys that may need an intent or localize entry, once for each interest, in the order in which that was noted.
    listed: VecDeque<Key>,
    /// Entries of keys that are not here, that are unanswered.
    unanswered: usize,
    /// As a home: who was asked for a key that is said to have moved since.
    asked_before: KeyMap<NodeId>,
}

/// A localize of this node that has not brought ownership yet. Its [`Interest`] says so.
#[derive(Debug, Default)]
struct Wish {
    /// Operations that wait for the key to be local.
    waiters: SmallVec<[OpId; 1]>,
    /// The round in which it may end, its place in [`Intents::due`]; `None` while other intent lasts or somebody waits.
    due: Option<u64>,
}

/// What a key that is listed wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Ownership, for a localize.
    pub(super) localize: bool,
    /// Only the home can have the entry passed on.
    asks_home: bool,
}

/// What becomes of a key that was listed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// Nothing: it is listed again when something changes.
    Nothing,
    /// It stays listed: for the next round, or where the caller keeps it.
    Listed {
        /// In the list of this machine.
        here: bool,
    },
    /// Its owner is asked; `is_here`: by the holder of a replica, so that the answer comes with that of the request.
    Asked { is_here: bool },
}

impl Wanted {
    /// Whom to ask for the key, which is not here: by the location that is known, or, if the entry was turned away, the home.
    pub(super) fn asks(self, ctx: &Ctx<impl Store, impl Policy>, key: Key, word: Word) -> Location {
        let home = route::home(key, ctx.config.nodes);
        if self.asks_home && home.node != ctx.config.node { home } else { ctx.first_hop(key, word) }
    }
}

impl Intents {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            signals: Signals::new(workers),
            is_behind: false,
            interests: KeyMap::default(),
            wishes: KeyMap::default(),
            due: BTreeSet::new(),
            listed: VecDeque::new(),
            unanswered: 0,
            asked_before: KeyMap::default(),
        }
    }

    /// Returns true if a signal is not yet let through, retired or forgotten.
    pub(super) fn has_signals(&self) -> bool {
        self.signals.any()
    }

    /// Returns true if a key waits to be asked for.
    pub(super) fn has_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Entries of keys that are not here, that are unanswered.
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Returns true if nothing is listed or unanswered, and no signal was due and not looked at.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.is_behind && self.unanswered == 0 && self.listed.is_empty()
    }

    /// Entries in all maps and lists.
    pub(super) fn side_entries(&self) -> usize {
        self.interests.values().filter(|interest| interest.count() > 0).count()
            + self.wishes.len()
            + self.due.len()
            + self.listed.len()
            + self.unanswered
            + self.asked_before.len()
            + self.signals.keys()
    }

    /// Active signals, each as often as it names the key, and the localize.
    #[cfg(feature = "testing")]
    pub(super) fn count(&self, key: Key) -> usize {
        self.interests.get(&key).map_or(0, Interest::count)
    }

    /// Returns true if acted-on intent or a localize of this node is active.
    pub(super) fn is_interested(&self, key: Key) -> bool {
        self.interests.get(&key).is_some_and(|interest| interest.count() > 0)
    }

    /// Returns true if the owner of `key` is to be asked while it is not here.
    pub(super) fn is_wanted(&self, key: Key) -> bool {
        self.interests.get(&key).is_some_and(Interest::is_wanted)
    }

    /// Returns true if ownership is wanted and the owner has not been told.
    pub(super) fn wants_ownership(&self, key: Key) -> bool {
        self.interests.get(&key).is_some_and(|interest| interest.count() > 0 && interest.is(Mark::Unsent))
    }

    pub(super) fn handle_intent(
        &mut self,
        ctx: &Ctx<impl Store, impl Policy>,
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
        // On a single node every key is local, whatever is signaled.
        if end > *clock && !intent.keys.is_empty() && ctx.config.nodes > 1 {
            self.signals.add(intent);
        }
        Ok(())
    }

    pub(super) fn handle_take_back(
        &mut self,
        ctx: &Ctx<impl Store, impl Policy>,
        intent: Intent,
    ) -> Result<(), OpError> {
        if intent.worker.index() >= ctx.clocks.len() {
            return Err(OpError::UnknownWorker { worker: intent.worker });
        }
        ctx.check_keys(&intent.keys)?;
        // Where there is nothing to forget, there need not be a round either.
        if self.signals.any() {
            self.signals.take_back(intent);
        }
        Ok(())
    }

    /// Forgets what is taken back, lets through what the policy acts on, then retires what has expired: an intent that
    /// continues another keeps the key. Stops behind the signal with which it has looked at as many keys as a round may: so
    /// what ends for millions of keys at once holds up nobody, and what comes later in this order waits for the next rounds.
    pub(super) fn update(&mut self, ctx: &mut Ctx<impl Store, impl Policy>) {
        let mut left = ctx.config.requests_max.max(1);
        let mut is_all = self.forget_taken_back(ctx, &mut left);
        for index in 0..ctx.config.workers {
            let worker = WorkerId(u16::try_from(index).expect("worker ids are 16 bits wide"));
            is_all = is_all
                && self.activate_due(ctx, worker, &mut left)
                && self.expire_due(ctx, worker, &mut left);
        }
        self.is_behind = !is_all && self.signals.any();
    }

    /// Forgets what is taken back; false: there may be more.
    fn forget_taken_back(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, left: &mut usize) -> bool {
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

    /// Lets through what the policy acts on of a worker; false: there may be more.
    fn activate_due(
        &mut self,
        ctx: &mut Ctx<impl Store, impl Policy>,
        worker: WorkerId,
        left: &mut usize,
    ) -> bool {
        let clock = ctx.clocks[worker.index()];
        let before = if clock.is_ended() { clock } else { ctx.policy.act_before(worker, clock) };
        // Whatever has started is looked at, so that what a policy never acts on is forgotten when it expires.
        let mut late = Vec::new();
        let mut is_all = true;
        while is_all && let Some((place, batch)) = self.signals.next_started(worker, clock, before) {
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

    /// Retires what has expired of a worker; false: there may be more.
    fn expire_due(
        &mut self,
        ctx: &mut Ctx<impl Store, impl Policy>,
        worker: WorkerId,
        left: &mut usize,
    ) -> bool {
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

    fn activate(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        let interest = self.interests.entry(key).or_default();
        let first = interest.count() == 0;
        interest.signals += 1;
        let had_turn = interest.take(Mark::HadTurn);
        let has_wish = interest.is(Mark::Wished);
        if has_wish {
            self.schedule_wish(key, None);
        }
        // Most keys are here. One that leaves, or is answered, is looked at again then.
        let is_held = || matches!(ctx.store.look(key), Look::Held { .. });
        let is_absent = || !is_held() && ctx.state(key) == State::None;
        if (first || had_turn) && (has_wish || is_absent()) {
            self.ask_later(key);
        }
        if first {
            ctx.observe(|observer, now| observer.on_intent(now, key, true));
        }
    }

    fn expire(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        let Entry::Occupied(mut entry) = self.interests.entry(key) else { return };
        let interest = entry.get_mut();
        debug_assert!(interest.signals > 0, "each active signal was counted");
        interest.signals = interest.signals.saturating_sub(1);
        if interest.signals > 0 {
            return;
        }
        if !interest.is(Mark::Wished) {
            if interest.end() {
                entry.remove();
            }
            ended(ctx, key);
        } else if self.wishes.get(&key).is_some_and(|wish| wish.waiters.is_empty()) {
            self.schedule_wish(key, Some(ctx.round + WISH_ROUNDS));
        }
    }

    /// The reference count of `key` reaches zero.
    fn end(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        self.schedule_wish(key, None);
        self.wishes.remove(&key);
        if let Entry::Occupied(mut entry) = self.interests.entry(key) {
            if entry.get_mut().end() {
                entry.remove();
            }
            ended(ctx, key);
        }
    }

    /// A worker wants `key` here; `waiter` ends when it is local. Until then the localize is due in no round.
    pub(super) fn wish(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key, waiter: OpId) {
        let interest = self.interests.entry(key).or_default();
        let first = interest.count() == 0;
        interest.put(Mark::Wished);
        interest.put(Mark::Unsent);
        let is_listed = interest.put(Mark::Listed);
        let wish = self.wishes.entry(key).or_default();
        wish.waiters.push(waiter);
        let is_due = wish.due.is_some();
        if !is_listed {
            self.listed.push_back(key);
        }
        if is_due {
            self.schedule_wish(key, None);
        }
        if first {
            ctx.observe(|observer, now| observer.on_intent(now, key, true));
        }
    }

    /// The key is local: ends the localizes that wait for it.
    pub(super) fn end_waiters(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        let Some(wish) = self.wishes.get_mut(&key) else { return };
        let waiters = mem::take(&mut wish.waiters);
        if self.interests.get(&key).is_some_and(|interest| interest.signals == 0) {
            self.schedule_wish(key, Some(ctx.round + WISH_ROUNDS));
        }
        waiters.into_iter().for_each(|waiter| ctx.ask(Effect::Finish(waiter)));
    }

    /// The next round looks whether somebody has to be asked for `key`, if it is wanted. However often it comes and goes until
    /// then, it is noted once.
    pub(super) fn ask_later(&mut self, key: Key) {
        if let Some(interest) = self.interests.get_mut(&key)
            && interest.is_wanted()
            && !interest.put(Mark::Listed)
        {
            self.listed.push_back(key);
        }
    }

    /// Notes when the localize of `key` may end, if there is one.
    fn schedule_wish(&mut self, key: Key, due: Option<u64>) {
        let Some(wish) = self.wishes.get_mut(&key) else { return };
        if let Some(due) = mem::replace(&mut wish.due, due) {
            self.due.remove(&(due, key));
        }
        self.due.extend(due.map(|due| (due, key)));
    }

    /// Ends localizes that have brought no ownership for long while nothing else wants the key.
    pub(super) fn expire_wishes(&mut self, ctx: &mut Ctx<impl Store, impl Policy>) {
        while let Some(&(due, key)) = self.due.first() {
            if due > ctx.round {
                break;
            }
            debug_assert!(
                self.wishes.get(&key).is_none_or(|wish| wish.waiters.is_empty()),
                "who waits clears the date"
            );
            if self.interests.get(&key).is_some_and(|interest| interest.is(Mark::Unsent)) {
                self.schedule_wish(key, Some(ctx.round + 1));
            } else {
                self.end(ctx, key);
            }
        }
    }

    /// Takes listed keys out, of as many as one round looks at: what is signalled at once for millions does not cost each round a
    /// look at all that are left.
    pub(super) fn take_listed(&mut self, most: usize) -> impl Iterator<Item = Key> + '_ {
        self.listed.drain(..most.min(self.listed.len()))
    }

    /// Nothing is asked for any more.
    pub(super) fn clear_listed(&mut self) {
        self.listed.clear();
    }

    /// Looks at a key that was listed; if it is wanted, `decide` says what becomes of it.
    pub(super) fn look(
        &mut self,
        ctx: &Ctx<impl Store, impl Policy>,
        key: Key,
        decide: impl FnOnce(Wanted) -> Verdict,
    ) {
        let Some(interest) = self.interests.get_mut(&key) else { return };
        interest.take(Mark::Listed);
        if !interest.is_wanted() {
            return;
        }
        let wanted = Wanted { localize: interest.is(Mark::Unsent), asks_home: interest.is(Mark::AskHome) };
        match decide(wanted) {
            Verdict::Nothing => {}
            Verdict::Listed { here } => {
                interest.put(Mark::Listed);
                if here {
                    self.listed.push_back(key);
                }
            }
            Verdict::Asked { is_here } => {
                interest.take(Mark::Unsent);
                if !is_here {
                    interest.ask(Request { round: ctx.round as u32, localize: wanted.localize });
                    self.unanswered += 1;
                }
            }
        }
    }

    /// There was no room for an entry that [`Self::look`] has taken for asked: the key stays listed where the caller keeps it.
    pub(super) fn unask(&mut self, key: Key, localize: bool) {
        let Some(interest) = self.interests.get_mut(&key) else { return };
        if interest.take_request().is_some() {
            self.unanswered -= 1;
        }
        interest.put(Mark::Listed);
        if localize {
            interest.put(Mark::Unsent);
        }
    }

    /// Whom this node has asked for `key`, which is `Requested`, and the low bits of the round in which it did.
    pub(super) fn asked_for(
        &self,
        ctx: &Ctx<impl Store, impl Policy>,
        key: Key,
        word: Word,
    ) -> Option<(NodeId, u32)> {
        let interest = self.interests.get(&key)?;
        let round = interest.asked_in()?;
        let before = if self.asked_before.is_empty() { None } else { self.asked_before.get(&key) };
        let wanted = Wanted { localize: false, asks_home: interest.is(Mark::AskHome) };
        Some((before.copied().unwrap_or_else(|| wanted.asks(ctx, key, word).node), round))
    }

    /// As a home: `key`, which is `Requested`, is said to have moved. `asked` was asked for it.
    pub(super) fn note_asked_before(&mut self, key: Key, asked: NodeId) {
        self.asked_before.entry(key).or_insert(asked);
    }

    /// As a home: after a loss all is believed of where keys are.
    pub(super) fn forget_asked_before(&mut self) {
        self.asked_before.clear();
    }

    /// The entry for `key` is answered.
    fn take_request(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) -> Option<Request> {
        let Entry::Occupied(mut entry) = self.interests.entry(key) else { return None };
        let request = entry.get_mut().take_request()?;
        if entry.get().count() == 0 {
            entry.remove();
        }
        self.note_answered(ctx, key, request);
        Some(request)
    }

    fn note_answered(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key, request: Request) {
        if !self.asked_before.is_empty() {
            self.asked_before.remove(&key);
        }
        self.unanswered -= 1;
        ctx.ask(Effect::Answered(request));
    }

    /// Ownership of `key` has arrived: nothing more is wanted.
    pub(super) fn note_owned(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        let Entry::Occupied(mut entry) = self.interests.entry(key) else { return };
        let interest = entry.get_mut();
        interest.take(Mark::HadTurn);
        interest.take(Mark::Unsent);
        let request = interest.take_request();
        let is_granted = interest.take(Mark::Wished);
        let is_last = interest.signals == 0;
        if is_last {
            entry.remove();
        }
        if is_granted {
            self.grant_wish(ctx, key);
            if is_last {
                ended(ctx, key);
            }
        }
        if let Some(request) = request {
            self.note_answered(ctx, key, request);
        }
    }

    /// The localize of `key` has brought ownership.
    fn grant_wish(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        let Some(wish) = self.wishes.remove(&key) else { return };
        if let Some(due) = wish.due {
            self.due.remove(&(due, key));
        }
        wish.waiters.into_iter().for_each(|waiter| ctx.ask(Effect::Finish(waiter)));
    }

    /// A replica of `key` was granted.
    pub(super) fn note_replica(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        self.take_request(ctx, key);
        self.end_waiters(ctx, key);
    }

    /// The owner keeps `key`, which is used where it is.
    pub(super) fn note_refused(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        self.take_request(ctx, key);
        if let Some(interest) = self.interests.get_mut(&key) {
            interest.put(Mark::Refused);
        }
    }

    /// The entry for `key` was turned away: the key is found again in a later round, by its home.
    pub(super) fn note_turned_away(&mut self, ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
        let Some(request) = self.take_request(ctx, key) else { return };
        let Some(interest) = self.interests.get_mut(&key) else { return };
        if request.localize && interest.is(Mark::Wished) {
            interest.put(Mark::Unsent);
        }
        interest.put(Mark::AskHome);
    }

    /// `key` leaves under a policy that does not replicate it: it is not asked for again under the same signals.
    pub(super) fn note_turn_over(&mut self, key: Key) {
        if let Some(interest) = self.interests.get_mut(&key) {
            interest.put(Mark::HadTurn);
        }
    }

    /// A peer is lost: nothing is asked for any more, and localizes end.
    pub(super) fn give_up(&mut self, ctx: &mut Ctx<impl Store, impl Policy>) {
        self.unanswered = 0;
        self.listed = VecDeque::new();
        self.due.clear();
        self.wishes.clear();
        let mut over = Vec::new();
        for (key, interest) in &mut self.interests {
            interest.take_request();
            interest.take(Mark::Unsent);
            if interest.take(Mark::Wished) && interest.count() == 0 {
                over.push(*key);
            }
        }
        over.sort_unstable();
        for key in over {
            self.end(ctx, key);
        }
        self.interests.retain(|_, interest| interest.count() > 0);
    }
}

/// Intent for `key` has ended.
fn ended(ctx: &mut Ctx<impl Store, impl Policy>, key: Key) {
    ctx.observe(|observer, now| observer.on_intent(now, key, false));
    ctx.ask(Effect::Unwanted(key));
}

/// Takes keys off those that a round may still look at; false: none are left.
fn spend(left: &mut usize, keys: usize) -> bool {
    *left = left.saturating_sub(keys);
    *left > 0
}
