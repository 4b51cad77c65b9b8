//! How a worker's accesses are served: one pass over the local keys, then the rest goes to the engines.
//!
//! Prefetching and the order of the steps are the business of this file; what an access means is the slot's.

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use adapm_core::Key;
use adapm_core::engine::OpBody;
use adapm_core::error::OpError;
use adapm_core::slot::Pushed;
use adapm_core::store::{ENTRY_AHEAD, SLOT_AHEAD, Store, prefetch_ahead};

use super::Worker;
use crate::stats::WorkerCounters;
use crate::ticket::{Place, Promise, Report, Ticket, scatter};

/// What a call does with its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Pull,
    Push,
    Set,
}

/// Who will see how a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// The calling thread, at once.
    Here,
    /// Whoever has the ticket, if anybody.
    Later,
}

/// A promise with the places of the values in each of its parts.
type Submitted<V> = (Arc<Promise<V>>, Vec<Vec<Place>>);

impl<S: Store> Worker<S> {
    /// Checks that `keys` are known and that their values have `given` elements together.
    #[inline]
    pub(super) fn check(&self, keys: &[Key], given: usize) -> Result<(), OpError> {
        if let Some(extent) = &self.uniform
            && given == keys.len() * extent.value_len
            && keys.iter().all(|key| *key < extent.keys.end)
        {
            return Ok(());
        }
        self.shared.check(keys, given)
    }

    /// Copies what is local to `values`; the rest is in `self.slow` afterwards.
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

    /// Adds `updates` to what is local; the rest is in `self.slow` afterwards.
    pub(super) fn push_local(&mut self, keys: &[Key], updates: &[S::Value]) {
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

    /// Copies the value of one key if it is local and no operation of this worker on it is in flight.
    #[inline(always)] // A call costs as much as the access to a short value.
    pub(super) fn try_pull(&mut self, key: Key, value: &mut [S::Value]) -> bool {
        !self.order.blocks(key) && self.store.with_slot(key, |slot| slot.pull(value))
    }

    /// Adds to the value of one key if it is local and no operation of this worker on it is in flight.
    #[inline(always)] // A call costs as much as the access to a short value.
    pub(super) fn try_push(&mut self, key: Key, update: &[S::Value]) -> Pushed {
        if self.order.blocks(key) {
            return Pushed::Refused;
        }
        self.store.push(key, update)
    }

    /// Leaves a key to the engines, which closes the fast path for it.
    #[cold]
    pub(super) fn refuse(&mut self, key: Key, place: Place) {
        self.order.mark(key);
        self.slow.push((key, place));
    }

    /// Leaves all keys to the engines.
    pub(super) fn refuse_all(&mut self, keys: &[Key]) {
        let mut offset = 0;
        for key in keys {
            let place = Place { offset, len: self.value_len(*key) };
            offset += place.len;
            self.refuse(*key, place);
        }
    }

    /// Hands over what was refused, blocks until it is done, and puts the values of a pull into place.
    pub(super) fn finish_pull(&mut self, values: &mut [S::Value]) -> Result<(), OpError> {
        let start = Instant::now();
        let (promise, places) = self.submit(Access::Pull, &[], Waits::Here);
        let outcome = self.wait_for(&promise, start);
        scatter(&outcome?, &places, values);
        Ok(())
    }

    /// Hands over what was refused of a push or set and blocks until it is done.
    pub(super) fn finish_write(&mut self, access: Access, values: &[S::Value]) -> Result<(), OpError> {
        let start = Instant::now();
        let (promise, _) = self.submit(access, values, Waits::Here);
        self.wait_for(&promise, start).map(drop)
    }

    /// Blocks until a call is done that the fast path left at `start`.
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

    /// Hands over what was refused; the ticket fills it into `values`.
    pub(super) fn ticket(
        &mut self,
        access: Access,
        given: &[S::Value],
        values: Vec<S::Value>,
    ) -> Ticket<S::Value> {
        if self.slow.is_empty() {
            return Ticket::served(values);
        }
        let (promise, places) = self.submit(access, given, Waits::Later);
        match access {
            Access::Pull => Ticket::of_pull(promise, places, values),
            Access::Push | Access::Set => Ticket::without_values(Some(promise)),
        }
    }

    /// One operation without keys on the first `channels` channels, waited for.
    pub(super) fn on_channels(&mut self, channels: usize, body: &OpBody<S::Value>) -> Result<(), OpError> {
        let alive = self.shared.alive(self.id)?;
        let promise = Arc::new(Promise::new(channels, None));
        for (part, port) in self.shared.ports[..channels].iter().enumerate() {
            port.post_op(&promise, part, self.id, body.clone());
        }
        drop(alive);
        promise.wait().map(drop)
    }

    pub(super) fn counters(&self) -> &WorkerCounters {
        &self.shared.workers[self.id.index()].counters
    }

    /// Empties `self.slow` into one operation per channel.
    fn submit(&mut self, access: Access, given: &[S::Value], waits: Waits) -> Submitted<S::Value> {
        self.order.wait_until_at_most(CALLS_MAX - 1);
        let call = self.order.next_call();
        self.order.track(call, self.slow.iter().map(|(key, _)| *key).collect());
        let completions = Arc::clone(self.order.completions());
        let report = Report { completions, call, with_error: waits == Waits::Later };

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
                    let body = body_of(access, keys, &places, given);
                    self.shared.ports[channel].post_op(&promise, part, self.id, body);
                }
                Err(error) => promise.finish(part, Err(error.clone())),
            }
            all_places.push(places);
        }
        (promise, all_places)
    }

    #[cold]
    pub(super) fn tell_dirtied(&mut self) {
        if let [port] = self.shared.ports.as_slice() {
            port.append_dirty(self.id, self.dirtied.drain(..));
            return;
        }
        for key in self.dirtied.drain(..) {
            self.shared.port_of(key).append_dirty(self.id, iter::once(key));
        }
    }

    #[inline]
    fn value_len(&self, key: Key) -> usize {
        match &self.uniform {
            Some(extent) => extent.value_len,
            None => self.store.value_len(key),
        }
    }

    #[inline]
    fn prefetch_first(&self, keys: &[Key]) {
        if keys.len() > 1 {
            keys.iter().take(ENTRY_AHEAD).for_each(|key| self.store.prefetch_entry(*key));
        }
        keys.iter().take(SLOT_AHEAD).for_each(|key| self.store.prefetch(*key));
    }

    #[inline]
    fn prefetch_ahead(&self, keys: &[Key], index: usize) {
        prefetch_ahead(&self.store, index, |at| keys.get(at).copied());
    }
}

fn body_of<V: Copy>(access: Access, keys: Vec<Key>, places: &[Place], given: &[V]) -> OpBody<V> {
    let values = || {
        let mut values = Vec::with_capacity(places.iter().map(|place| place.len).sum());
        for place in places {
            values.extend_from_slice(&given[place.offset..place.offset + place.len]);
        }
        values
    };
    match access {
        Access::Pull => OpBody::Pull { keys },
        Access::Push => OpBody::Push { updates: values(), keys },
        Access::Set => OpBody::Set { values: values(), keys },
    }
}

/// Asynchronous calls in flight at which the next one first waits for one to end.
const CALLS_MAX: usize = 1 << 16;
