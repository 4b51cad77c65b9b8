//! Accesses of a worker: one pass over the local keys, then the rest goes to the engines.
//!
//! A processor runs ahead of a value that it waits for by some hundred instructions. The fewer of
//! them a call has, the more calls of a loop wait for their values together: with a million keys
//! that is most of their time. So a call with one local key has its own, shortest possible path,
//! and every other case takes the path of several keys from the start.
//!
//! Prefetching and the order of the steps belong here; the meaning of an access belongs to the
//! slot.

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use adapm_core::engine::OpBody;
use adapm_core::error::OpError;
use adapm_core::id::Version;
use adapm_core::layout::Extent;
use adapm_core::slot::{Pushed, Slot, State};
#[cfg(feature = "checkpoint")]
use adapm_core::store::Look;
use adapm_core::store::{ENTRY_AHEAD, SLOT_AHEAD, Store, prefetch_ahead};
use adapm_core::update::UpdateRule;
use adapm_core::{Key, WorkerId};

#[cfg(feature = "checkpoint")]
use crate::checkpoint::Part;
use crate::node::NodeShared;
use crate::order::InFlight;
use crate::promise::{Promise, Report};
use crate::stats::WorkerCounters;
use crate::ticket::{Done, Place, Pull, scatter};

/// The accesses of one worker, and its calls in flight.
pub(super) struct Access<S: Store> {
    shared: Arc<NodeShared<S>>,
    store: Arc<S>,
    /// The extent of the layout if it has only one: cached, as each call looks at it.
    uniform: Option<Extent>,
    id: WorkerId,
    order: InFlight,
    /// Keys of the current call that the fast path refused, with their places.
    slow: Vec<(Key, Place)>,
    /// Keys that the current call dirtied.
    dirtied: Vec<Key>,
}

/// The kinds of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Pull,
    Push,
    Set,
    Renew,
}

/// The receiver of a call's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// The calling thread, at once.
    Here,
    /// The holder of the ticket, if any.
    Later,
}

/// A promise with the places of the values in each of its parts.
type Submitted<V> = (Arc<Promise<V>>, Vec<Vec<Place>>);

impl<S: Store> Access<S> {
    pub(super) fn new(shared: Arc<NodeShared<S>>, id: WorkerId) -> Self {
        Self {
            store: Arc::clone(&shared.store),
            uniform: match shared.layout.extents() {
                [extent] => Some(extent.clone()),
                _ => None,
            },
            id,
            order: InFlight::new(Arc::clone(&shared.workers[id.index()].completions)),
            slow: Vec::new(),
            dirtied: Vec::new(),
            shared,
        }
    }

    #[inline]
    pub(super) fn pull(&mut self, keys: &[Key], values: &mut [S::Value]) -> Result<(), OpError> {
        match keys {
            [key] if self.pull_one(*key, values) => Ok(()),
            _ => self.pull_several(keys, values),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, keys: &[Key], updates: &[S::Value]) -> Result<(), OpError> {
        match keys {
            [key] if self.push_one(*key, updates) => Ok(()),
            _ => self.push_several(keys, updates),
        }
    }

    pub(super) fn set(&mut self, keys: &[Key], values: &[S::Value]) -> Result<(), OpError> {
        self.check(keys, values.len())?;
        self.refuse_all(keys);
        if self.slow.is_empty() { Ok(()) } else { self.finish_write(Call::Set, values) }
    }

    pub(super) fn pull_async(&mut self, keys: &[Key]) -> Result<Pull<S::Value>, OpError> {
        let mut values = vec![S::Value::default(); self.shared.elements(keys)?];
        self.pull_local(keys, &mut values);
        if self.slow.is_empty() {
            return Ok(Pull::served(values));
        }
        let (promise, places) = self.submit(Call::Pull, &[], Waits::Later);
        Ok(Pull::new(promise, places, values))
    }

    pub(super) fn push_async(
        &mut self,
        keys: &[Key],
        updates: &[S::Value],
    ) -> Result<Done, OpError> {
        self.check(keys, updates.len())?;
        self.push_local(keys, updates);
        Ok(self.done(Call::Push, updates))
    }

    pub(super) fn set_async(&mut self, keys: &[Key], values: &[S::Value]) -> Result<Done, OpError> {
        self.check(keys, values.len())?;
        self.refuse_all(keys);
        Ok(self.done(Call::Set, values))
    }

    pub(super) fn localize_async(&mut self, keys: &[Key]) -> Result<Done, OpError> {
        self.shared.check_movable(keys)?;
        let _alive = self.shared.alive(self.id)?;
        let order = &mut self.order;
        order.reap();
        let promise = self.shared.localize(self.id, keys, |parts| {
            let call = order.next_call();
            order.track(call, Vec::new());
            let report =
                Report { completions: Arc::clone(order.completions()), call, with_error: true };
            Arc::new(Promise::new(parts, Some(report)))
        });
        Ok(Done::new(promise))
    }

    pub(super) fn pull_if_local(
        &mut self,
        key: Key,
        value: &mut [S::Value],
    ) -> Result<bool, OpError> {
        self.check(&[key], value.len())?;
        let local = self.try_pull(key, value);
        if local {
            self.counters().add_local(1);
        } else if self.order.has_ended() {
            return Err(OpError::Ended);
        }
        Ok(local)
    }

    pub(super) fn renew(&mut self, keys: &[Key]) -> Result<(), OpError> {
        self.shared.elements(keys)?;
        for key in keys {
            let is_replica = |slot: Slot<'_, S::Value>| slot.packed.state() == State::Replica;
            if self.store.with_slot(*key, is_replica) {
                self.refuse(*key, Place { offset: 0, len: 0 });
            }
        }
        if self.slow.is_empty() { Ok(()) } else { self.finish_write(Call::Renew, &[]) }
    }

    /// Returns the main copies on this node among this worker's part of all keys, as one of so many
    /// workers, ascending. Costs a look at each key of the part. Blocks of keys are dealt in turn,
    /// as a node may own those of a range.
    #[cfg(feature = "checkpoint")]
    pub(super) fn main_copies(&self, workers: usize) -> impl Iterator<Item = Key> + '_ {
        let end = self.shared.layout.keys().end.0;
        let blocks = (0..end.div_ceil(BLOCK)).skip(self.id.index()).step_by(workers);
        let keys = blocks.flat_map(move |block| block * BLOCK..((block + 1) * BLOCK).min(end));
        let is_main = |key: &Key| match self.store.look(*key) {
            Look::Held { with_delta } => !with_delta,
            Look::Absent(_) => false,
            Look::Unknown => self.store.with_slot(*key, |slot| slot.packed.state() == State::Main),
        };
        keys.map(Key).filter(is_main)
    }

    /// Returns the number of elements of all values of a part.
    #[cfg(feature = "checkpoint")]
    pub(super) fn elements(&self, part: &Part) -> usize {
        match &self.uniform {
            Some(extent) => part.count() * extent.value_len,
            None => part.keys().map(|key| self.value_len(key)).sum(),
        }
    }

    /// Writes the version of each key's local copy, `None` where there is none.
    pub(super) fn versions(
        &self,
        keys: &[Key],
        versions: &mut [Option<Version>],
    ) -> Result<(), OpError> {
        self.shared.elements(keys)?;
        if versions.len() != keys.len() {
            return Err(OpError::ValueLen { expected: keys.len(), given: versions.len() });
        }
        self.prefetch_first(keys);
        for (index, (key, version)) in keys.iter().zip(versions).enumerate() {
            self.prefetch_ahead(keys, index);
            *version = self
                .store
                .with_slot(*key, |slot| slot.packed.is_local().then_some(slot.version.of_main()));
        }
        Ok(())
    }

    /// Blocks until no call is in flight. Returns the first error of an asynchronous call since the
    /// last call of this function.
    pub(super) fn wait_all(&mut self) -> Result<(), OpError> {
        self.order.wait_until_at_most(0);
        self.order.take_error().map_or(Ok(()), Err)
    }

    /// Runs one operation without keys on each of the first `channels` channels, and waits for
    /// them.
    pub(super) fn on_channels(
        &mut self,
        channels: usize,
        body: &OpBody<S::Value>,
    ) -> Result<(), OpError> {
        let alive = self.shared.alive(self.id)?;
        let promise = Arc::new(Promise::new(channels, None));
        for (part, port) in self.shared.ports[..channels].iter().enumerate() {
            port.post_op(&promise, part, self.id, body.clone());
        }
        drop(alive);
        promise.wait().map(drop)
    }

    /// Copies local values to `values`; other keys are refused.
    pub(super) fn pull_local(&mut self, keys: &[Key], values: &mut [S::Value]) {
        self.prefetch_first(keys);
        let mut offset = 0;
        for (index, key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, index);
            let place = Place { offset, len: self.value_len(*key) };
            offset += place.len;
            if !self.try_pull(*key, &mut values[place.offset..offset]) {
                self.refuse(*key, place);
            }
        }
        self.counters().add_local((keys.len() - self.slow.len()) as u64);
    }

    /// Copies the value of one key if it is local and no operation of this worker on it is in
    /// flight.
    #[inline(always)] // A call costs as much as the access to a short value.
    pub(super) fn try_pull(&mut self, key: Key, value: &mut [S::Value]) -> bool {
        !self.order.blocks(key) && self.store.with_slot(key, |slot| slot.pull(value))
    }

    /// Takes a step of `rule` on the value of one key if it is local and no operation of this
    /// worker on it is in flight. Returns `None` if the step is not finite.
    #[inline(always)] // A call costs as much as the access to a short value.
    pub(super) fn try_step(
        &mut self,
        key: Key,
        rule: &dyn UpdateRule<S::Value>,
        gradient: &[S::Value],
        update: &mut [S::Value],
    ) -> Option<Pushed> {
        if self.order.blocks(key) {
            return Some(Pushed::Refused);
        }
        let pushed = self.store.with_slot(key, |mut slot| slot.step(rule, gradient, update));
        if pushed == Some(Pushed::Dirtied) {
            self.dirtied.push(key);
        }
        pushed
    }

    /// Ends a pass of steps on `keys` keys: counts a pull and a push for each that was local, and
    /// reports those that were dirtied.
    pub(super) fn finish_steps(&mut self, keys: usize) {
        self.counters().add_local(2 * (keys - self.slow.len()) as u64);
        if !self.dirtied.is_empty() {
            self.tell_dirtied();
        }
    }

    /// Leaves a key to the engines, which closes the fast path for it.
    #[cold]
    pub(super) fn refuse(&mut self, key: Key, place: Place) {
        self.order.mark(key);
        self.slow.push((key, place));
    }

    /// Returns the number of keys of the current call that were refused so far.
    pub(super) fn refused(&self) -> usize {
        self.slow.len()
    }

    /// Posts the refused keys, blocks until they are served, and puts the values of a pull into
    /// place.
    pub(super) fn finish_pull(&mut self, values: &mut [S::Value]) -> Result<(), OpError> {
        let start = Instant::now();
        let (promise, places) = self.submit(Call::Pull, &[], Waits::Here);
        let outcome = self.wait_for(&promise, start);
        scatter(&outcome?, &places, values);
        Ok(())
    }

    pub(super) fn counters(&self) -> &WorkerCounters {
        &self.shared.workers[self.id.index()].counters
    }

    pub(super) fn shared(&self) -> &Arc<NodeShared<S>> {
        &self.shared
    }

    pub(super) fn id(&self) -> WorkerId {
        self.id
    }

    /// Pulls one key. Returns true if the fast path served it.
    #[inline]
    fn pull_one(&mut self, key: Key, value: &mut [S::Value]) -> bool {
        self.store.prefetch_guess(key);
        let is_done = self.fits(key, value.len()) && self.try_pull(key, value);
        if is_done {
            self.counters().add_local(1);
        }
        is_done
    }

    /// Pushes to one key. Returns true if the fast path served it.
    #[inline]
    fn push_one(&mut self, key: Key, update: &[S::Value]) -> bool {
        self.store.prefetch_guess(key);
        if !self.fits(key, update.len()) {
            return false;
        }
        match self.try_push(key, update) {
            Pushed::Refused => return false,
            Pushed::Dirtied => self.tell_dirtied_one(key),
            Pushed::Done => {}
        }
        self.counters().add_local(1);
        true
    }

    #[inline(never)]
    fn pull_several(&mut self, keys: &[Key], values: &mut [S::Value]) -> Result<(), OpError> {
        self.check(keys, values.len())?;
        self.pull_local(keys, values);
        if self.slow.is_empty() { Ok(()) } else { self.finish_pull(values) }
    }

    #[inline(never)]
    fn push_several(&mut self, keys: &[Key], updates: &[S::Value]) -> Result<(), OpError> {
        self.check(keys, updates.len())?;
        self.push_local(keys, updates);
        if self.slow.is_empty() { Ok(()) } else { self.finish_write(Call::Push, updates) }
    }

    /// Returns true if the layout has that key with that length.
    #[inline]
    fn fits(&self, key: Key, len: usize) -> bool {
        // `value_len` is 0 for unknown keys.
        len > 0 && self.store.value_len(key) == len
    }

    /// Checks that `keys` are known and that their values have `given` elements together.
    #[inline]
    fn check(&self, keys: &[Key], given: usize) -> Result<(), OpError> {
        if let Some(extent) = &self.uniform
            && given == keys.len() * extent.value_len
            && keys.iter().all(|key| *key < extent.keys.end)
        {
            return Ok(());
        }
        self.shared.check(keys, given)
    }

    /// Adds `updates` to local values; other keys are refused.
    fn push_local(&mut self, keys: &[Key], updates: &[S::Value]) {
        self.prefetch_first(keys);
        let mut offset = 0;
        for (index, key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, index);
            let place = Place { offset, len: self.value_len(*key) };
            offset += place.len;
            match self.try_push(*key, &updates[place.offset..offset]) {
                Pushed::Done => {}
                Pushed::Dirtied => self.dirtied.push(*key),
                Pushed::Refused => self.refuse(*key, place),
            }
        }
        self.counters().add_local((keys.len() - self.slow.len()) as u64);
        if !self.dirtied.is_empty() {
            self.tell_dirtied();
        }
    }

    /// Adds to the value of one key if it is local and no operation of this worker on it is in
    /// flight.
    #[inline(always)] // A call costs as much as the access to a short value.
    fn try_push(&mut self, key: Key, update: &[S::Value]) -> Pushed {
        if self.order.blocks(key) {
            return Pushed::Refused;
        }
        self.store.push(key, update)
    }

    /// Leaves all keys to the engines.
    fn refuse_all(&mut self, keys: &[Key]) {
        let mut offset = 0;
        for key in keys {
            let place = Place { offset, len: self.value_len(*key) };
            offset += place.len;
            self.refuse(*key, place);
        }
    }

    /// Posts the refused keys of a push or set and blocks until they are served.
    fn finish_write(&mut self, call: Call, values: &[S::Value]) -> Result<(), OpError> {
        let start = Instant::now();
        let (promise, _) = self.submit(call, values, Waits::Here);
        self.wait_for(&promise, start).map(drop)
    }

    /// Blocks until a call that left the fast path at `start` is done.
    fn wait_for(
        &mut self,
        promise: &Promise<S::Value>,
        start: Instant,
    ) -> Result<Vec<Vec<S::Value>>, OpError> {
        let outcome = promise.wait();
        self.counters().add_blocked(start.elapsed());
        self.order.reap();
        outcome
    }

    /// Posts the refused keys of a push or set.
    fn done(&mut self, call: Call, values: &[S::Value]) -> Done {
        let is_served = self.slow.is_empty();
        Done::new((!is_served).then(|| self.submit(call, values, Waits::Later).0))
    }

    /// Turns `self.slow` into one operation per channel.
    fn submit(&mut self, call: Call, given: &[S::Value], waits: Waits) -> Submitted<S::Value> {
        // Calls whose tickets were waited for are still in the record.
        self.order.reap();
        self.order.wait_until_at_most(CALLS_MAX - 1);
        let name = self.order.next_call();
        self.order.track(name, self.slow.iter().map(|(key, _)| *key).collect());
        let completions = Arc::clone(self.order.completions());
        let report = Report { completions, call: name, with_error: waits == Waits::Later };

        let mut parts: Vec<(usize, Vec<Key>, Vec<Place>)> = Vec::new();
        for (key, place) in self.slow.drain(..) {
            let channel = self.shared.channel(key).index();
            match parts.iter_mut().find(|(of, ..)| *of == channel) {
                Some((_, keys, places)) => {
                    keys.push(key);
                    places.push(place);
                }
                None => parts.push((channel, vec![key], vec![place])),
            }
        }
        let promise = Arc::new(Promise::new(parts.len(), Some(report)));
        let alive = self.shared.alive(self.id);
        let mut all_places = Vec::with_capacity(parts.len());
        for (part, (channel, keys, places)) in parts.into_iter().enumerate() {
            match &alive {
                Ok(_) => {
                    let body = call.body(keys, &places, given);
                    self.shared.ports[channel].post_op(&promise, part, self.id, body);
                }
                Err(error) => promise.finish(part, Err(error.clone())),
            }
            all_places.push(places);
        }
        (promise, all_places)
    }

    #[cold]
    fn tell_dirtied_one(&mut self, key: Key) {
        self.dirtied.push(key);
        self.tell_dirtied();
    }

    #[cold]
    fn tell_dirtied(&mut self) {
        if let [port] = self.shared.ports.as_slice() {
            port.append_dirty(self.id, self.dirtied.drain(..));
            return;
        }
        for key in self.dirtied.drain(..) {
            self.shared.port_of(key).append_dirty(self.id, iter::once(key));
        }
    }

    #[inline]
    pub(super) fn value_len(&self, key: Key) -> usize {
        match &self.uniform {
            Some(extent) => extent.value_len,
            None => self.store.value_len(key),
        }
    }

    #[inline]
    pub(super) fn prefetch_first(&self, keys: &[Key]) {
        if keys.len() > 1 {
            keys.iter().take(ENTRY_AHEAD).for_each(|key| self.store.prefetch_entry(*key));
        }
        keys.iter().take(SLOT_AHEAD).for_each(|key| self.store.prefetch(*key));
    }

    #[inline]
    pub(super) fn prefetch_ahead(&self, keys: &[Key], index: usize) {
        prefetch_ahead(&self.store, index, |at| keys.get(at).copied());
    }
}

impl Call {
    /// Builds the operation on keys whose values have these places among the given ones.
    fn body<V: Copy>(self, keys: Vec<Key>, places: &[Place], given: &[V]) -> OpBody<V> {
        let values = || {
            let mut values = Vec::with_capacity(places.iter().map(|place| place.len).sum());
            for place in places {
                values.extend_from_slice(&given[place.range()]);
            }
            values
        };
        match self {
            Self::Pull => OpBody::Pull { keys },
            Self::Push => OpBody::Push { updates: values(), keys },
            Self::Set => OpBody::Set { values: values(), keys },
            Self::Renew => OpBody::Renew { keys },
        }
    }
}

/// Maximum number of asynchronous calls in flight; the next one first waits for one to end.
const CALLS_MAX: usize = 1 << 16;

/// Keys of a block that one worker copies.
#[cfg(feature = "checkpoint")]
const BLOCK: u64 = 1 << 14;
