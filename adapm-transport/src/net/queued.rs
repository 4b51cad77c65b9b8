//! A pipe whose I/O is done elsewhere: two bounded queues between an endpoint and a task.
//!
//! ```text
//!   endpoint:  QueuedPipe    push, flush ──> [ out ] ──> poll_take     PipeTask  :task
//!                                read <── [ in ]  <── poll_deliver
//! ```
//!
//! The task's half uses the interface of `core::task`, so that any executor or thread can serve it.
//! Not here: the task's handling of packets.

use core::mem;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hello::GREETING_BYTES_MAX;
use super::notifier::Notifier;
use super::packet::{Fault, Incoming, Outgoing};

/// The endpoint's half. Dropping it ends the pipe: the task still takes flushed packets.
#[derive(Debug)]
pub(crate) struct QueuedPipe {
    shared: Arc<SharedQueues>,
    /// Packets pushed and not flushed.
    batch: Vec<Outgoing>,
    batch_bytes: usize,
}

/// The task's half; clones serve the same pipe, one for each direction. When the last is dropped,
/// the pipe has ended.
#[derive(Clone, Debug)]
pub(crate) struct PipeTask {
    shared: Arc<SharedQueues>,
    /// Ends the pipe with the last of the task's clones.
    _hold: Arc<Hold>,
}

#[derive(Debug)]
struct SharedQueues {
    notifier: Arc<Notifier>,
    queues: Mutex<Queues>,
}

#[derive(Debug, Default)]
struct Queues {
    outward: VecDeque<Outgoing>,
    outward_bytes: usize,
    inward: VecDeque<Incoming>,
    inward_bytes: usize,
    /// The task that waits for a packet to take.
    taker: Option<Waker>,
    /// The task that waits for room to deliver.
    deliverer: Option<Waker>,
    /// The task that waits for the end or another limit.
    watcher: Option<Waker>,
    /// Largest packet that may be delivered.
    limit: usize,
    /// The endpoint has found no room, and waits for some.
    wants_room: bool,
    /// The endpoint waits until everything was taken.
    wants_flush: bool,
    /// The endpoint has looked for a packet since the last one came, and has found none.
    has_looked: bool,
    /// Bytes that the task has received.
    bytes_in: u64,
    /// The endpoint writes nothing more.
    is_shut: bool,
    /// The endpoint has dropped its half.
    is_dropped: bool,
    /// The reason why nothing more comes.
    fault: Option<Fault>,
    /// The task has dropped its half.
    is_gone: bool,
}

#[derive(Debug)]
struct Hold(Arc<SharedQueues>);

/// Returns both halves of a new pipe, for the endpoint of `notifier`.
pub(crate) fn queued_pipe(notifier: Arc<Notifier>) -> (QueuedPipe, PipeTask) {
    let queues = Queues { limit: GREETING_BYTES_MAX, has_looked: true, ..Queues::default() };
    let shared = Arc::new(SharedQueues { notifier, queues: Mutex::new(queues) });
    let task = PipeTask { shared: Arc::clone(&shared), _hold: Arc::new(Hold(Arc::clone(&shared))) };
    (QueuedPipe { shared, batch: Vec::new(), batch_bytes: 0 }, task)
}

impl QueuedPipe {
    pub(super) fn read(&mut self) -> Result<Option<Incoming>, Fault> {
        let mut queues = self.shared.lock();
        let Some(packet) = queues.inward.pop_front() else {
            queues.has_looked = true;
            let (fault, deliverer) = (queues.fault, queues.deliverer.take());
            drop(queues);
            deliverer.into_iter().for_each(Waker::wake);
            return fault.map_or(Ok(None), Err);
        };
        queues.inward_bytes -= packet.bytes();
        let deliverer = if queues.is_inward_low() { queues.deliverer.take() } else { None };
        drop(queues);
        deliverer.into_iter().for_each(Waker::wake);
        Ok(Some(packet))
    }

    /// Returns true if there is room. If not, the endpoint is notified when there is plenty.
    pub(super) fn has_room(&self) -> bool {
        let mut queues = self.shared.lock();
        let packets = queues.outward.len() + self.batch.len();
        let has_room = packets < PACKETS_MAX && queues.outward_bytes + self.batch_bytes < BYTES_MAX;
        queues.wants_room |= !has_room;
        has_room
    }

    pub(super) fn push(&mut self, packet: Outgoing) {
        self.batch_bytes += packet.len();
        self.batch.push(packet);
    }

    /// Hands on the pushed packets. Returns true if the pipe is broken.
    pub(super) fn flush(&mut self) -> bool {
        let mut queues = self.shared.lock();
        if queues.is_broken() || queues.is_shut || self.batch.is_empty() {
            return queues.fault.is_some();
        }
        queues.outward.extend(self.batch.drain(..));
        queues.outward_bytes += mem::take(&mut self.batch_bytes);
        let (taker, is_broken) = (queues.taker.take(), queues.fault.is_some());
        drop(queues);
        taker.into_iter().for_each(Waker::wake);
        is_broken
    }

    /// Ends pushing: the task notifies the other side after the flushed packets, and goes on
    /// reading for a while.
    pub(super) fn shutdown(&mut self) {
        self.flush();
        let mut queues = self.shared.lock();
        queues.is_shut = true;
        let taker = queues.taker.take();
        drop(queues);
        taker.into_iter().for_each(Waker::wake);
    }

    /// Returns true if everything was taken. If not, the endpoint is notified when it is.
    pub(super) fn is_flushed(&self) -> bool {
        let mut queues = self.shared.lock();
        let is_flushed = queues.is_broken() || (self.batch.is_empty() && queues.outward.is_empty());
        queues.wants_flush |= !is_flushed;
        is_flushed
    }

    pub(super) fn raise_limit(&mut self, limit: usize) {
        let mut queues = self.shared.lock();
        queues.limit = limit;
        let waiting = [queues.deliverer.take(), queues.watcher.take()];
        drop(queues);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    pub(super) fn bytes_in(&self) -> u64 {
        self.shared.lock().bytes_in
    }
}

impl Drop for QueuedPipe {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.is_dropped = true;
        queues.inward.clear();
        let waiting = [queues.taker.take(), queues.deliverer.take(), queues.watcher.take()];
        drop(queues);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl PipeTask {
    /// Returns the next packet to write; `None` after the last one.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        let mut queues = self.shared.lock();
        if let Some(packet) = queues.outward.pop_front() {
            queues.outward_bytes -= packet.len();
            let has_room = queues.is_outward_low() && mem::take(&mut queues.wants_room);
            let is_flushed = queues.outward.is_empty() && mem::take(&mut queues.wants_flush);
            drop(queues);
            if has_room || is_flushed {
                self.shared.notifier.notify();
            }
            return Poll::Ready(Some(packet));
        }
        if queues.has_ended() || queues.is_shut {
            return Poll::Ready(None);
        }
        queues.taker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits until a packet may be delivered. Returns `false` if the pipe has ended.
    ///
    /// While the peer is unknown, waits until the endpoint has handled the previous packet, which
    /// may raise the limit.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut queues = self.shared.lock();
        if queues.is_dropped || queues.fault.is_some() {
            return Poll::Ready(false);
        }
        if queues.has_inward_room() {
            return Poll::Ready(true);
        }
        queues.deliverer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Delivers a packet to the endpoint; wait for room before.
    pub(crate) fn deliver(&self, packet: Incoming) {
        let mut queues = self.shared.lock();
        if queues.is_dropped || queues.fault.is_some() {
            return;
        }
        queues.inward_bytes += packet.bytes();
        queues.inward.push_back(packet);
        queues.has_looked = false;
        drop(queues);
        self.shared.notifier.notify();
    }

    /// Waits until the limit differs from `limit`, and returns it; `None` once the pipe has ended,
    /// as it was dropped or the connection has failed. One task at a time.
    pub(crate) fn poll_change(&self, cx: &mut Context<'_>, limit: usize) -> Poll<Option<usize>> {
        let mut queues = self.shared.lock();
        if queues.has_ended() {
            return Poll::Ready(None);
        }
        if queues.limit != limit {
            return Poll::Ready(Some(queues.limit));
        }
        queues.watcher = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Counts received bytes; even a partial packet shows that the peer lives.
    pub(crate) fn note_bytes(&self, bytes: u64) {
        self.shared.lock().bytes_in += bytes;
    }

    /// Ends delivery; the first reason counts. The endpoint still reads the packets delivered
    /// before and, unless the connection itself has failed, may still write.
    pub(crate) fn end(&self, fault: Fault) {
        self.shared.end(fault);
    }

    /// Returns the largest packet, head and values in bytes, that may be delivered at the moment:
    /// small until the peer is known. Ask before each packet.
    pub(crate) fn limit(&self) -> usize {
        self.shared.lock().limit
    }
}

impl SharedQueues {
    fn end(&self, fault: Fault) {
        let mut queues = self.lock();
        queues.fault.get_or_insert(fault);
        let waiting = [queues.taker.take(), queues.deliverer.take(), queues.watcher.take()];
        drop(queues);
        waiting.into_iter().flatten().for_each(Waker::wake);
        self.notifier.notify();
    }

    /// Locks the queues; a panic of another thread that held the lock cannot leave them half
    /// changed.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    /// Returns true if nothing more can be written.
    fn is_broken(&self) -> bool {
        self.is_gone || matches!(self.fault, Some(Fault::Ended | Fault::EndedWithin | Fault::Io(_)))
    }

    fn has_ended(&self) -> bool {
        self.is_dropped || self.is_broken()
    }

    /// Returns true if the queue is low enough for a wake to pay off.
    fn is_outward_low(&self) -> bool {
        self.outward.len() <= PACKETS_MAX / 2 && self.outward_bytes <= BYTES_MAX / 2
    }

    /// Returns true if the queue is low enough for a wake to pay off.
    fn is_inward_low(&self) -> bool {
        self.has_inward_room()
            && self.inward.len() <= PACKETS_MAX / 2
            && self.inward_bytes <= BYTES_MAX / 2
    }

    fn has_inward_room(&self) -> bool {
        // A handshake has one message in flight, and after its last one the limit changes.
        let may_go_on = self.limit > GREETING_BYTES_MAX || self.has_looked;
        may_go_on && self.inward.len() < PACKETS_MAX && self.inward_bytes < BYTES_MAX
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.lock().is_gone = true;
        self.0.end(Fault::Ended);
    }
}

/// Maximum number of packets that wait in one direction.
const PACKETS_MAX: usize = 256;
/// Bytes from which on a direction takes no further packet; the last one may go beyond.
const BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests;
