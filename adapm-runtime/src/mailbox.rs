//! Queues from workers to a channel thread: a mailbox of commands, and one queue of dirtied keys
//! per worker.
//!
//! Both are FIFO per (worker, channel). The channel thread takes the mailbox first, and drains the
//! dirty queues before it feeds an operation ([`adapm_core::driver`]), so every key that a worker
//! dirtied before it posted an operation is known to the engine before the operation.
//!
//! | posted | wakes the channel thread |
//! | --- | --- |
//! | an operation | if it is the first since the mailbox was taken |
//! | an intent, a dirtied key | only during a long sleep that does not end at the next round |
//! | an item that fills the mailbox | always: the next poster would have to wait for room |
//!
//! Not here: the meaning of commands; see `channel.rs`.

use adapm_core::{Key, WorkerId};

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, wait};

/// Commands of many threads for one, and the keys that workers dirtied.
///
/// # Ordering
/// A thread that is about to sleep for long raises `asleep` and *then* looks for work; a worker
/// leaves its work and *then* looks at `asleep`. Both look at the work under the same mutex: either
/// the thread finds the work, or the worker finds the flag. All writes of the flag are swaps.
/// Stores would do, as a worker's swap directly follows its load; but loom does not know that, and
/// beyond three preemptions would let the worker read its own swap after the thread's later store.
#[derive(Debug)]
pub struct Mailbox<T> {
    inner: Mutex<Inner<T>>,
    room: Condvar,
    /// One queue per worker. A key enters when its dirty bit is set, so a queue is bounded by the
    /// copies held here. The mutex is uncontended except while the channel thread drains.
    dirty: Vec<Mutex<Vec<Key>>>,
    asleep: AtomicBool,
}

#[derive(Debug)]
struct Inner<T> {
    items: Vec<T>,
    urgent: bool,
    closed: bool,
}

/// Urgency of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A worker waits for it.
    AtOnce,
    /// At the next round.
    NextRound,
}

impl<T> Mailbox<T> {
    /// Maximum number of waiting commands; at the bound, posters wait until the channel thread
    /// takes them. Four in a model.
    pub const CAPACITY: usize = if cfg!(adapm_loom) { 4 } else { 1 << 16 };

    /// Creates an empty mailbox for `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            inner: Mutex::new(Inner { items: Vec::new(), urgent: false, closed: false }),
            room: Condvar::new(),
            dirty: (0..workers).map(|_| Mutex::new(Vec::new())).collect(),
            asleep: AtomicBool::new(false),
        }
    }

    /// Appends `item`. Returns true if the caller must wake the channel thread.
    ///
    /// # Errors
    /// The item, if the mailbox is closed.
    pub fn post(&self, item: T, urgency: Urgency) -> Result<bool, T> {
        let mut inner = lock(&self.inner);
        while inner.items.len() >= Self::CAPACITY && !inner.closed {
            inner = wait(&self.room, inner);
        }
        if inner.closed {
            return Err(item);
        }
        inner.items.push(item);
        let first = urgency == Urgency::AtOnce && !inner.urgent;
        inner.urgent |= first;
        let full = inner.items.len() == Self::CAPACITY;
        drop(inner);
        Ok(first || full || self.must_wake())
    }

    /// Appends keys that `worker` dirtied. Returns true if the caller must wake the channel thread.
    pub fn append_dirty(&self, worker: WorkerId, keys: impl Iterator<Item = Key>) -> bool {
        lock(&self.dirty[worker.index()]).extend(keys);
        self.must_wake()
    }

    /// Moves all commands into `items`, which must be empty.
    pub fn take(&self, items: &mut Vec<T>) {
        debug_assert!(items.is_empty(), "what was taken before has been handled");
        let mut inner = lock(&self.inner);
        std::mem::swap(&mut inner.items, items);
        inner.urgent = false;
        drop(inner);
        if items.len() >= Self::CAPACITY {
            self.room.notify_all();
        }
    }

    /// Appends all dirtied keys to `keys`.
    pub fn take_dirty(&self, keys: &mut Vec<Key>) {
        for queue in &self.dirty {
            keys.append(&mut lock(queue));
        }
    }

    /// Prepares for a long sleep. Returns false if there is something to take instead.
    #[must_use]
    pub fn doze_off(&self) -> bool {
        self.asleep.swap(true, Ordering::AcqRel);
        self.is_empty()
    }

    /// Ends a long sleep.
    pub fn get_up(&self) {
        self.asleep.swap(false, Ordering::Relaxed);
    }

    /// Refuses all further items; those already posted can still be taken.
    pub fn close(&self) {
        lock(&self.inner).closed = true;
        self.room.notify_all();
    }

    fn is_empty(&self) -> bool {
        lock(&self.inner).items.is_empty() && self.dirty.iter().all(|queue| lock(queue).is_empty())
    }

    /// Returns true, to one caller, if the channel thread sleeps for long.
    fn must_wake(&self) -> bool {
        self.asleep.load(Ordering::Acquire) && self.asleep.swap(false, Ordering::AcqRel)
    }
}
