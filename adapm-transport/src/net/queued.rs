//! A pipe whose I/O is done elsewhere: two bounded queues between an endpoint and a task.
//!
//! ```text
//!   endpoint:  QueuedPipe    push, flush ──> [ out ] ──> poll_take     PipeTask  :task
//!                                read <── [ in ]  <── deliver
//! ```
//!
//! A task whose connection can be written from any thread without waiting lends its writing side
//! ([`PipeTask::lend`]): then `flush` writes by itself what is short if no packet waits to be read,
//! which saves waking another thread. The task writes all else, and what the connection did not
//! take at once. The one of the two that has taken the [`Writer`] out of the queues writes.
//!
//! The task's half uses the interface of `core::task`, so that any executor or thread can serve it.
//! Not here: the task's handling of packets.

use core::fmt;
use core::mem;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hello::GREETING_BYTES_MAX;
use super::notifier::Notifier;
use super::packet::{Fault, Incoming, Outgoing, PacketWriter};

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
    /// The writing side, if the task lends it and none of the two writes at the moment.
    writer: Option<Writer>,
    /// A packet has left the queue.
    has_written: bool,
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

/// The writing side of a connection, with packets that it has not taken yet.
pub(crate) struct Writer {
    packets: PacketWriter,
    /// Fails with [`io::ErrorKind::WouldBlock`] instead of waiting, on any thread.
    connection: Box<dyn Write + Send>,
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

    /// Writes the pushed packets, or hands them on to the task. Returns true if the pipe is broken.
    pub(super) fn flush(&mut self) -> bool {
        let mut queues = self.shared.lock();
        if queues.is_broken() || queues.is_shut || self.batch.is_empty() {
            return queues.fault.is_some();
        }
        // With packets left to handle, or large ones to write, the endpoint goes on meanwhile.
        let is_prompt = queues.inward.is_empty() && self.batch_bytes <= DIRECT_BYTES_MAX;
        if is_prompt && let Some(writer) = queues.take_idle_writer() {
            drop(queues);
            return self.write(writer);
        }
        queues.outward.extend(self.batch.drain(..));
        queues.outward_bytes += mem::take(&mut self.batch_bytes);
        let (taker, is_broken) = (queues.taker.take(), queues.fault.is_some());
        drop(queues);
        taker.into_iter().for_each(Waker::wake);
        is_broken
    }

    /// Writes the pushed packets. Returns true if the pipe is broken.
    fn write(&mut self, mut writer: Writer) -> bool {
        self.batch.drain(..).for_each(|packet| writer.packets.push(packet));
        self.batch_bytes = 0;
        match writer.write() {
            Ok(is_done) => {
                let mut queues = self.shared.lock();
                let is_broken = queues.fault.is_some();
                let unused = queues.put_back(writer);
                let taker = if is_done { None } else { queues.taker.take() };
                drop(queues);
                drop(unused);
                taker.into_iter().for_each(Waker::wake);
                is_broken
            }
            Err(error) => {
                self.shared.end(Fault::Io(error.into()));
                true
            }
        }
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
            let is_awaited = queues.note_taken();
            drop(queues);
            if is_awaited {
                self.shared.notifier.notify();
            }
            return Poll::Ready(Some(packet));
        }
        queues.poll_end(cx)
    }

    /// Lends the writing side of the connection to the endpoint, or gives it back.
    pub(crate) fn lend(&self, writer: Writer) {
        let unused = self.shared.lock().put_back(writer);
        drop(unused);
    }

    /// Returns the lent writing side once there are packets that the endpoint has not written:
    /// write them and lend it again. Returns `None` after the last packet.
    pub(crate) fn poll_writer(&self, cx: &mut Context<'_>) -> Poll<Option<Writer>> {
        let mut queues = self.shared.lock();
        let is_needed = !queues.outward.is_empty();
        let Some(mut writer) = queues.writer.take_if(|writer| is_needed || !writer.is_idle())
        else {
            return queues.poll_end(cx);
        };
        while writer.packets.bytes() < BYTES_MAX
            && let Some(packet) = queues.outward.pop_front()
        {
            queues.outward_bytes -= packet.len();
            writer.packets.push(packet);
        }
        let is_awaited = queues.note_taken();
        drop(queues);
        if is_awaited {
            self.shared.notifier.notify();
        }
        Poll::Ready(Some(writer))
    }

    /// Closes the writing side, if it was lent and none of the two writes. Returns true if packets
    /// have left the pipe.
    pub(crate) fn close_writer(&self) -> bool {
        let mut queues = self.shared.lock();
        let (writer, has_written) = (queues.writer.take(), queues.has_written);
        drop(queues);
        drop(writer);
        has_written
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

impl Writer {
    /// Returns the writing side of `connection`, which fails instead of waiting, on any thread.
    pub(crate) fn new(connection: impl Write + Send + 'static) -> Self {
        Self { packets: PacketWriter::default(), connection: Box::new(connection) }
    }

    /// Writes as much as the connection takes. Returns true if nothing is left.
    pub(crate) fn write(&mut self) -> io::Result<bool> {
        self.packets.write(&mut self.connection)
    }

    fn is_idle(&self) -> bool {
        self.packets.packets() == 0
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("packets", &self.packets).finish_non_exhaustive()
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

    /// Takes the writing side if nothing waits to be written before the endpoint's next packets.
    fn take_idle_writer(&mut self) -> Option<Writer> {
        let is_first = self.outward.is_empty();
        let writer = self.writer.take_if(|writer| is_first && writer.is_idle());
        self.has_written |= writer.is_some();
        writer
    }

    /// Keeps the writing side until one of the two writes. Returns it if the task has gone.
    fn put_back(&mut self, writer: Writer) -> Option<Writer> {
        if self.is_gone { Some(writer) } else { self.writer.replace(writer) }
    }

    /// Records that packets were taken. Returns true if the endpoint waits for that.
    fn note_taken(&mut self) -> bool {
        self.has_written = true;
        let has_room = self.is_outward_low() && mem::take(&mut self.wants_room);
        let is_flushed = self.outward.is_empty() && mem::take(&mut self.wants_flush);
        has_room || is_flushed
    }

    /// Returns `Ready(None)` if no packet comes any more, else remembers the task.
    fn poll_end<T>(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if self.has_ended() || self.is_shut {
            return Poll::Ready(None);
        }
        self.taker = Some(cx.waker().clone());
        Poll::Pending
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
        let mut queues = self.0.lock();
        queues.is_gone = true;
        let writer = queues.writer.take();
        drop(queues);
        drop(writer);
        self.0.end(Fault::Ended);
    }
}

/// Maximum number of packets that wait in one direction.
const PACKETS_MAX: usize = 256;
/// Bytes from which on a direction takes no further packet; the last one may go beyond.
const BYTES_MAX: usize = 1 << 20;
/// Bytes that cost the endpoint less to write than to wake another thread for.
const DIRECT_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests;
