//! A pipe whose I/O is done elsewhere: two bounded queues between an endpoint and a task.
//!
//! ```text
//!   endpoint:  Carried    push, flush ──> [ out ] ──> poll_take     Porter  :task
//!                                read <── [ in ]  <── poll_deliver
//! ```
//!
//! The task's half speaks the language of `core::task`, so that any executor can serve it, and so can a thread. Not here:
//! what a task does with packets.

use core::mem;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bell::Bell;
use super::hello::GREETING_BYTES_MAX;
use super::packet::{Fault, Outgoing, Packet};

/// The endpoint's half. Dropping it ends the pipe: packets that were flushed are still taken by the task.
#[derive(Debug)]
pub(crate) struct Carried {
    shared: Arc<Shared>,
    /// Pushed and not flushed.
    batch: Vec<Outgoing>,
    batch_bytes: usize,
}

/// The task's half; clones serve the same pipe, one for each direction. When the last is dropped, the pipe has ended.
#[derive(Clone, Debug)]
pub(crate) struct Porter {
    shared: Arc<Shared>,
    /// Ends the pipe with the last of the task's clones.
    _hold: Arc<Hold>,
}

#[derive(Debug)]
struct Shared {
    bell: Arc<Bell>,
    queues: Mutex<Queues>,
}

#[derive(Debug)]
struct Queues {
    outward: VecDeque<Outgoing>,
    outward_bytes: usize,
    inward: VecDeque<Packet>,
    inward_bytes: usize,
    /// The task that waits for a packet to take.
    taker: Option<Waker>,
    /// The task that waits for room to deliver.
    deliverer: Option<Waker>,
    /// The task that waits for the end or another limit.
    watcher: Option<Waker>,
    /// Largest packet that may be delivered.
    limit: usize,
    /// The endpoint has looked for a packet since the last one came, and has found none.
    has_looked: bool,
    /// Bytes that the task has received.
    bytes_in: u64,
    /// The endpoint has dropped its half.
    is_dropped: bool,
    /// Why the task can carry nothing more.
    fault: Option<Fault>,
}

#[derive(Debug)]
struct Hold(Arc<Shared>);

/// Both halves of a new pipe, for the endpoint that `bell` belongs to.
pub(crate) fn carried(bell: Arc<Bell>) -> (Carried, Porter) {
    let queues = Queues {
        outward: VecDeque::new(),
        outward_bytes: 0,
        inward: VecDeque::new(),
        inward_bytes: 0,
        taker: None,
        deliverer: None,
        watcher: None,
        limit: GREETING_BYTES_MAX,
        has_looked: true,
        bytes_in: 0,
        is_dropped: false,
        fault: None,
    };
    let shared = Arc::new(Shared { bell, queues: Mutex::new(queues) });
    let porter = Porter { shared: Arc::clone(&shared), _hold: Arc::new(Hold(Arc::clone(&shared))) };
    (Carried { shared, batch: Vec::new(), batch_bytes: 0 }, porter)
}

impl Carried {
    pub(super) fn read(&mut self) -> Result<Option<Packet>, Fault> {
        let mut queues = self.shared.lock();
        let Some(packet) = queues.inward.pop_front() else {
            queues.has_looked = true;
            let (fault, deliverer) = (queues.fault, queues.deliverer.take());
            drop(queues);
            deliverer.into_iter().for_each(Waker::wake);
            return fault.map_or(Ok(None), Err);
        };
        queues.inward_bytes -= packet.frame.len();
        let deliverer = if queues.has_inward_room() { queues.deliverer.take() } else { None };
        drop(queues);
        deliverer.into_iter().for_each(Waker::wake);
        Ok(Some(packet))
    }

    pub(super) fn has_room(&self) -> bool {
        let queues = self.shared.lock();
        let packets = queues.outward.len() + self.batch.len();
        packets < PACKETS_MAX && queues.outward_bytes + self.batch_bytes < BYTES_MAX
    }

    pub(super) fn push(&mut self, packet: Outgoing) {
        self.batch_bytes += packet.len();
        self.batch.push(packet);
    }

    /// Hands on what was pushed; returns whether the pipe is broken.
    pub(super) fn flush(&mut self) -> bool {
        let mut queues = self.shared.lock();
        if queues.fault.is_some() || self.batch.is_empty() {
            return queues.fault.is_some();
        }
        queues.outward.extend(self.batch.drain(..));
        queues.outward_bytes += mem::take(&mut self.batch_bytes);
        let taker = queues.taker.take();
        drop(queues);
        taker.into_iter().for_each(Waker::wake);
        false
    }

    pub(super) fn is_flushed(&self) -> bool {
        let queues = self.shared.lock();
        queues.fault.is_some() || (self.batch.is_empty() && queues.outward.is_empty())
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

impl Drop for Carried {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.is_dropped = true;
        queues.inward.clear();
        let waiting = [queues.taker.take(), queues.deliverer.take(), queues.watcher.take()];
        drop(queues);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Porter {
    /// The next packet to write. `None`: the endpoint has dropped the pipe, and everything was taken.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        let mut queues = self.shared.lock();
        if let Some(packet) = queues.outward.pop_front() {
            let was_full = !queues.has_outward_room();
            queues.outward_bytes -= packet.len();
            let has_room = was_full && queues.has_outward_room();
            let is_drained = queues.outward.is_empty();
            drop(queues);
            if has_room || is_drained {
                self.shared.bell.ring();
            }
            return Poll::Ready(Some(packet));
        }
        if queues.is_dropped || queues.fault.is_some() {
            return Poll::Ready(None);
        }
        queues.taker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits until a packet may be delivered. `false`: the pipe has ended, nobody wants it.
    ///
    /// While the peer is not known, until the endpoint has dealt with the packet before: it may raise the limit.
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

    /// Hands a packet to the endpoint; wait for room before.
    pub(crate) fn deliver(&self, packet: Packet) {
        let mut queues = self.shared.lock();
        if queues.is_dropped || queues.fault.is_some() {
            return;
        }
        queues.inward_bytes += packet.frame.len();
        queues.inward.push_back(packet);
        queues.has_looked = false;
        drop(queues);
        self.shared.bell.ring();
    }

    /// Waits until the limit is another than `limit`, and returns it; `None` once the pipe has ended. One task at a time.
    pub(crate) fn poll_change(&self, cx: &mut Context<'_>, limit: usize) -> Poll<Option<usize>> {
        let mut queues = self.shared.lock();
        if queues.is_dropped || queues.fault.is_some() {
            return Poll::Ready(None);
        }
        if queues.limit != limit {
            return Poll::Ready(Some(queues.limit));
        }
        queues.watcher = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Tells that bytes have come; a large packet in part shows that the peer lives.
    pub(crate) fn note_bytes(&self, bytes: u64) {
        self.shared.lock().bytes_in += bytes;
    }

    /// The pipe can carry nothing more; the first reason counts. The endpoint still reads what was delivered before.
    pub(crate) fn end(&self, fault: Fault) {
        self.shared.end(fault);
    }

    /// Largest packet, head and values in bytes, that may be delivered at the moment: small until the peer is known. Ask
    /// before each packet.
    pub(crate) fn limit(&self) -> usize {
        self.shared.lock().limit
    }
}

impl Shared {
    fn end(&self, fault: Fault) {
        let mut queues = self.lock();
        queues.fault.get_or_insert(fault);
        let waiting = [queues.taker.take(), queues.deliverer.take(), queues.watcher.take()];
        drop(queues);
        waiting.into_iter().flatten().for_each(Waker::wake);
        self.bell.ring();
    }

    /// The queues; a panic of another thread while it held the lock cannot leave them half changed.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn has_outward_room(&self) -> bool {
        self.outward.len() < PACKETS_MAX && self.outward_bytes < BYTES_MAX
    }

    fn has_inward_room(&self) -> bool {
        // A handshake has one message under way, and behind its last one the limit is another.
        let may_go_on = self.limit > GREETING_BYTES_MAX || self.has_looked;
        may_go_on && self.inward.len() < PACKETS_MAX && self.inward_bytes < BYTES_MAX
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.end(Fault::Ended);
    }
}

/// Packets that wait in one direction at most.
const PACKETS_MAX: usize = 256;
/// Bytes from which on a direction takes no further packet; the last one may go beyond.
const BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use adapm_core::link::Seq;
    use adapm_core::transport::Frame;

    use crate::net::packet::{Greeting, Kind};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn pipe() -> (mio::Poll, Carried, Porter) {
        let poll = mio::Poll::new().expect("a poll");
        let bell = Bell::new(poll.registry(), mio::Token(0)).expect("a bell");
        let (carried, porter) = carried(Arc::new(bell));
        (poll, carried, porter)
    }

    fn packet() -> Packet {
        Packet { kind: Kind::Greeting(Greeting::Hello), seq: Seq(0), ack: Seq(0), frame: Frame::default() }
    }

    #[test]
    fn an_unknown_peer_waits_until_its_packet_was_dealt_with() {
        let (_poll, mut carried, porter) = pipe();
        let wakes = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&waker);
        assert_eq!(porter.poll_room(&mut cx), Poll::Ready(true));
        porter.deliver(packet());
        assert_eq!(porter.poll_room(&mut cx), Poll::Pending);
        assert_eq!(carried.read(), Ok(Some(packet())));
        assert_eq!(porter.poll_room(&mut cx), Poll::Pending, "the endpoint may still raise the limit");
        assert_eq!(carried.read(), Ok(None));
        assert_eq!((wakes.0.load(Ordering::Relaxed), porter.poll_room(&mut cx)), (1, Poll::Ready(true)));
        porter.deliver(packet());
        assert_eq!(porter.poll_room(&mut cx), Poll::Pending);
        assert_eq!(porter.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Pending);
        carried.raise_limit(1 << 20);
        assert_eq!((wakes.0.load(Ordering::Relaxed), porter.poll_room(&mut cx)), (3, Poll::Ready(true)));
        assert_eq!(porter.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Ready(Some(1 << 20)));
    }

    #[test]
    fn a_dropped_pipe_gives_what_was_flushed_and_then_its_end() {
        let (_poll, mut carried, porter) = pipe();
        let mut cx = Context::from_waker(Waker::noop());
        carried.push(Outgoing::new(Kind::Greeting(Greeting::Hello), Seq(0), Seq(0), None));
        assert!(!carried.flush());
        assert_eq!(porter.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Pending);
        drop(carried);
        assert_eq!(porter.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Ready(None));
        assert!(matches!(porter.poll_take(&mut cx), Poll::Ready(Some(_))));
        assert!(matches!(porter.poll_take(&mut cx), Poll::Ready(None)));
        assert_eq!(porter.poll_room(&mut cx), Poll::Ready(false));
    }

    #[test]
    fn both_directions_are_bounded_and_a_fault_comes_behind_what_was_delivered() {
        let (_poll, mut carried, porter) = pipe();
        let mut cx = Context::from_waker(Waker::noop());
        let large = || Frame { head: vec![1; 64 << 10], ..Frame::default() };
        carried.raise_limit(1 << 24);
        let mut delivered = 0;
        while porter.poll_room(&mut cx).is_ready() {
            porter.deliver(Packet { frame: large(), ..packet() });
            delivered += 1;
        }
        let mut pushed = 0;
        while carried.has_room() {
            carried.push(Outgoing::greeting(Kind::Greeting(Greeting::Hello), large().head));
            assert!(!carried.flush());
            pushed += 1;
        }
        assert_eq!((delivered, pushed), (16, 16), "1 MiB each way");
        porter.note_bytes(77);
        assert_eq!((porter.limit(), carried.bytes_in()), (1 << 24, 77));
        porter.end(Fault::Magic);
        assert!(carried.flush());
        for _ in 0..delivered {
            assert!(carried.read().is_ok_and(|packet| packet.is_some()));
        }
        assert_eq!(carried.read(), Err(Fault::Magic));
    }
}
