//! The ways from workers to a channel thread: a mailbox of commands, and one queue of dirtied keys per worker.
//!
//! Per (worker, channel) both are FIFO. The channel thread takes the mailbox *before* it drains the dirty queues, so
//! everything that a worker dirtied before it posted an operation is known to the engine before the operation is.
//!
//! | posted | wakes the channel thread |
//! | --- | --- |
//! | an operation | if it is the first since the mailbox was taken |
//! | an intent, a dirtied key | only if the thread sleeps for long: it looks by itself at each round |
//!
//! Not here: what the commands mean; see `channel.rs`.

use adapm_core::Key;

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, wait};

/// Commands of many threads for one, in the order in which they came.
///
/// At [`Mailbox::CAPACITY`] a poster waits until the channel thread has taken what is there.
#[derive(Debug)]
pub struct Mailbox<T> {
    inner: Mutex<Inner<T>>,
    room: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    items: Vec<T>,
    urgent: bool,
    closed: bool,
}

/// How soon a command must be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A worker waits for it.
    AtOnce,
    /// At the next round.
    NextRound,
}

impl<T> Mailbox<T> {
    /// Commands that wait at most.
    pub const CAPACITY: usize = 1 << 16;

    /// An empty mailbox.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Mutex::new(Inner { items: Vec::new(), urgent: false, closed: false }),
            room: Condvar::new(),
        }
    }

    /// Appends `item`; whether the channel thread must be woken even if it sleeps for a short time only.
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
        let wake = urgency == Urgency::AtOnce && !inner.urgent;
        inner.urgent |= wake;
        Ok(wake)
    }

    /// Moves everything into `items`, which must be empty.
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

    /// Refuses everything from here on; what is still in it can be taken.
    pub fn close(&self) {
        lock(&self.inner).closed = true;
        self.room.notify_all();
    }

    /// Whether there is something to take.
    #[must_use]
    pub fn has_items(&self) -> bool {
        !lock(&self.inner).items.is_empty()
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Keys that one worker has made dirty on one channel.
///
/// A key enters when its dirty bit is set, so the queue is bounded by the copies held here. The mutex is uncontended but
/// for the moment in which the channel thread drains.
#[derive(Debug, Default)]
pub struct DirtyQueue {
    keys: Mutex<Vec<Key>>,
}

impl DirtyQueue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self { keys: Mutex::new(Vec::new()) }
    }

    /// Appends `keys`.
    pub fn append(&self, keys: impl Iterator<Item = Key>) {
        lock(&self.keys).extend(keys);
    }

    /// Moves all keys behind those in `keys`.
    pub fn drain_into(&self, keys: &mut Vec<Key>) {
        keys.append(&mut lock(&self.keys));
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        lock(&self.keys).is_empty()
    }
}

/// Whether a channel thread sleeps for long, so that even what is not urgent must wake it.
///
/// # Ordering
/// The thread raises the flag and *then* looks into mailbox and queues; a worker fills them and *then* looks at the flag. Both
/// look under the mutex of the same queue: either the thread finds the entry, or the worker finds the flag.
#[derive(Debug, Default)]
pub struct Doorbell {
    asleep: AtomicBool,
}

impl Doorbell {
    /// The thread is awake.
    #[must_use]
    pub fn new() -> Self {
        Self { asleep: AtomicBool::new(false) }
    }

    /// The thread is about to sleep for long; it must look for work once more after this call.
    pub fn doze_off(&self) {
        self.asleep.store(true, Ordering::Release);
    }

    /// The thread is awake.
    pub fn get_up(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Whether the caller, who has just left something, must wake the thread. At most one caller is told so.
    #[must_use]
    pub fn must_ring(&self) -> bool {
        self.asleep.load(Ordering::Acquire) && self.asleep.swap(false, Ordering::AcqRel)
    }
}
