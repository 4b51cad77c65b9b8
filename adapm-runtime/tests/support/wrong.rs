//! Wrong copies of shared state: each does the steps of its original, on loom's primitives, with
//! one plausible mistake. The models must fail with them, and pass with a copy that has none.

#![allow(dead_code, reason = "each suite uses the copies of what it models")]

use std::mem;

use adapm_core::driver::order;
use adapm_core::{Clock, Key, WorkerId};
use adapm_runtime::model::{CallId, Clocks, InFlight, Mailbox, Urgency};
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::sync::{Condvar, Mutex};

/// The queues to a channel thread, with the interface of [`Mailbox`].
pub(crate) trait Ways<T>: Send + Sync + 'static {
    fn post(&self, item: T, urgency: Urgency) -> bool;
    fn append_dirty(&self, key: Key) -> bool;
    fn take(&self) -> (Vec<T>, Vec<Key>);
    fn doze_off(&self) -> bool;
    fn get_up(&self);
}

impl<T: Send + 'static> Ways<T> for Mailbox<T> {
    fn post(&self, item: T, urgency: Urgency) -> bool {
        Mailbox::post(self, item, urgency).ok().expect("the mailbox is open")
    }

    fn append_dirty(&self, key: Key) -> bool {
        Mailbox::append_dirty(self, WorkerId(0), [key].into_iter())
    }

    fn take(&self) -> (Vec<T>, Vec<Key>) {
        let (mut items, mut keys) = (Vec::new(), Vec::new());
        Mailbox::take(self, &mut items);
        self.take_dirty(&mut keys);
        (items, keys)
    }

    fn doze_off(&self) -> bool {
        Mailbox::doze_off(self)
    }

    fn get_up(&self) {
        Mailbox::get_up(self);
    }
}

/// The mistake of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The channel thread looks for work before it announces its sleep.
    LookBeforeDozing,
    /// A worker checks whether the channel thread sleeps before it leaves its work.
    LookBeforePosting,
    /// The dirty queues are drained before the mailbox is taken.
    DirtyFirst,
    /// A taken mailbox still counts as urgent.
    StayUrgent,
    /// An item that fills the mailbox wakes no thread.
    SleepWhileFull,
    /// Posters are not woken when a full mailbox has room again.
    ForgetRoom,
}

/// A copy of [`Mailbox`] with one worker.
pub(crate) struct WrongMailbox<T> {
    mistake: Option<Mistake>,
    inner: Mutex<(Vec<T>, bool)>,
    room: Condvar,
    dirty: Mutex<Vec<Key>>,
    asleep: AtomicBool,
}

impl<T> WrongMailbox<T> {
    pub(crate) fn new(mistake: Option<Mistake>) -> Self {
        let (inner, dirty) = (Mutex::new((Vec::new(), false)), Mutex::new(Vec::new()));
        Self { mistake, inner, room: Condvar::new(), dirty, asleep: AtomicBool::new(false) }
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn must_wake(&self) -> bool {
        self.asleep.load(Ordering::Acquire) && self.asleep.swap(false, Ordering::AcqRel)
    }

    fn is_empty(&self) -> bool {
        self.inner.lock().expect("no panic").0.is_empty()
            && self.dirty.lock().expect("no panic").is_empty()
    }

    fn take_items(&self) -> Vec<T> {
        let mut inner = self.inner.lock().expect("no panic");
        let items = mem::take(&mut inner.0);
        inner.1 &= self.has(Mistake::StayUrgent);
        drop(inner);
        if items.len() >= Mailbox::<T>::CAPACITY && !self.has(Mistake::ForgetRoom) {
            self.room.notify_all();
        }
        items
    }

    fn take_keys(&self) -> Vec<Key> {
        mem::take(&mut *self.dirty.lock().expect("no panic"))
    }
}

impl<T: Send + 'static> Ways<T> for WrongMailbox<T> {
    fn post(&self, item: T, urgency: Urgency) -> bool {
        let mut inner = self.inner.lock().expect("no panic");
        while inner.0.len() >= Mailbox::<T>::CAPACITY {
            inner = self.room.wait(inner).expect("no panic");
        }
        inner.0.push(item);
        let first = urgency == Urgency::AtOnce && !inner.1;
        inner.1 |= first;
        let full = inner.0.len() == Mailbox::<T>::CAPACITY && !self.has(Mistake::SleepWhileFull);
        drop(inner);
        first || full || self.must_wake()
    }

    fn append_dirty(&self, key: Key) -> bool {
        let looked = self.has(Mistake::LookBeforePosting).then(|| self.must_wake());
        self.dirty.lock().expect("no panic").push(key);
        looked.unwrap_or_else(|| self.must_wake())
    }

    fn take(&self) -> (Vec<T>, Vec<Key>) {
        if self.has(Mistake::DirtyFirst) {
            let keys = self.take_keys();
            return (self.take_items(), keys);
        }
        let items = self.take_items();
        (items, self.take_keys())
    }

    fn doze_off(&self) -> bool {
        let looked = self.has(Mistake::LookBeforeDozing).then(|| self.is_empty());
        self.asleep.swap(true, Ordering::AcqRel);
        looked.unwrap_or_else(|| self.is_empty())
    }

    fn get_up(&self) {
        self.asleep.swap(false, Ordering::Relaxed);
    }
}

/// The order rule between threads, with the interface of [`InFlight`] and its completions.
pub(crate) trait Order: Send + 'static {
    fn begin(&mut self, key: Key) -> CallId;
    fn blocks(&mut self, key: Key) -> bool;
    /// Returns the function by which the channel thread reports a finished call.
    fn finisher(&self) -> Box<dyn Fn(CallId) + Send>;
}

impl Order for InFlight {
    fn begin(&mut self, key: Key) -> CallId {
        let call = self.next_call();
        self.mark(key);
        self.track(call, vec![key]);
        call
    }

    fn blocks(&mut self, key: Key) -> bool {
        InFlight::blocks(self, key)
    }

    fn finisher(&self) -> Box<dyn Fn(CallId) + Send> {
        let completions = std::sync::Arc::clone(self.completions());
        Box::new(move |call| completions.finish(call, None))
    }
}

/// A copy of [`InFlight`]. With `forgets`, it reports that it has taken all calls after releasing
/// the list that it took them from.
pub(crate) struct WrongOrder {
    forgets: bool,
    order: order::InFlight<u64>,
    next: u64,
    finished: std::sync::Arc<(AtomicBool, Mutex<Vec<u64>>)>,
}

impl WrongOrder {
    pub(crate) fn new(forgets: bool) -> Self {
        Self { forgets, order: order::InFlight::default(), next: 0, finished: Default::default() }
    }
}

impl Order for WrongOrder {
    fn begin(&mut self, key: Key) -> CallId {
        self.next += 1;
        self.order.mark(key);
        self.order.track(self.next, vec![key]);
        CallId(self.next)
    }

    fn blocks(&mut self, key: Key) -> bool {
        let (any, list) = &*self.finished;
        if self.order.blocks(key) && any.load(Ordering::Acquire) {
            let mut finished = list.lock().expect("no panic");
            let taken = mem::take(&mut *finished);
            let finished = Some(finished).filter(|_| !self.forgets);
            any.store(false, Ordering::Relaxed);
            drop(finished);
            taken.iter().for_each(|call| assert!(self.order.finish(call)));
        }
        self.order.blocks(key)
    }

    fn finisher(&self) -> Box<dyn Fn(CallId) + Send> {
        let finished = std::sync::Arc::clone(&self.finished);
        Box::new(move |call| {
            let mut list = finished.1.lock().expect("no panic");
            list.push(call.0);
            finished.0.store(true, Ordering::Release);
        })
    }
}

/// The clock of a worker, with the interface of [`Clocks`].
pub(crate) trait OneClock: Send + Sync + 'static {
    fn set(&self, clock: Clock);
    fn get(&self) -> Clock;
}

impl OneClock for Clocks {
    fn set(&self, clock: Clock) {
        Clocks::set(self, WorkerId(0), clock);
    }

    fn get(&self) -> Clock {
        self.clock(WorkerId(0))
    }
}

/// A copy of a clock with other orderings.
pub(crate) struct WrongClock {
    clock: AtomicU64,
    stores: Ordering,
    loads: Ordering,
}

impl WrongClock {
    pub(crate) fn new(stores: Ordering, loads: Ordering) -> Self {
        Self { clock: AtomicU64::new(0), stores, loads }
    }
}

impl OneClock for WrongClock {
    fn set(&self, clock: Clock) {
        self.clock.store(clock.0, self.stores);
    }

    fn get(&self) -> Clock {
        Clock(self.clock.load(self.loads))
    }
}
