//! A sound transport with every plausible mistake of a transport author, as filters over it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport, Wake};

use crate::channels::{self, ChannelEnd, ChannelWaker};

/// The mistake of a [`Careless`] transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    LosesAFrame,
    RepeatsAFrame,
    SwapsTwoFrames,
    NamesAnotherSender,
    EndsAWaitForEver,
    CutsLongHeads,
    AppendsToTheArgument,
    LeavesStaleValues,
    HasNoBound,
    BoundsFramesOnly,
    BlocksInSend,
    EmptiesARefusedFrame,
    DeliversARefusedFrame,
    SaysNothingOfRoom,
    DoesNotLookAgain,
    HasOneBoundForAll,
    ForgetsAWakeBetweenWaits,
    ClearsTheWakeLate,
    ReadsTheNotifierLate,
    WakesForEver,
    ServesWakesFirst,
    ServesFramesFirst,
    SwallowsAWakeBehindAFrame,
    WakesOutOfBoredom,
    SaysNothingOfALoss,
    TellsALossAgain,
    TakesAnEndForALoss,
    DropsWhatIsQueued,
    FailsAsFinished,
    LooksAtTheEndLast,
    ForgetsWhomItLost,
    WakerNeedsItsEndpoint,
}

use Mistake::*;

/// One of so many frames is affected.
const RARELY: usize = 50;

pub(crate) struct Careless {
    inner: ChannelEnd,
    node: usize,
    mistake: Option<Mistake>,
    /// Frames sent or received.
    frames: usize,
    is_full: bool,
    /// The report that is delivered again, or later.
    kept: Option<(Received, Frame)>,
    /// Frames that wait to be sent.
    held: VecDeque<(NodeId, Frame)>,
    is_woken_for_ever: bool,
    /// Swallows a wake.
    swallows: bool,
    has_left: bool,
    /// Of all nodes.
    shared: Arc<[Shared]>,
    wakers: Arc<[ChannelWaker]>,
}

/// State shared by an endpoint, its wakers and its peers.
#[derive(Default)]
struct Shared {
    is_waiting: AtomicBool,
    /// Wakes that were not received yet.
    wakes: AtomicUsize,
    is_gone: AtomicBool,
    /// Frames that wait for it, and whether a sender was refused.
    queued: AtomicUsize,
    refused: AtomicBool,
    /// Counts what has come, for a wait until it moves.
    count: Mutex<u64>,
    moved: Condvar,
}

#[derive(Clone)]
pub(crate) struct CarelessWaker {
    inner: ChannelWaker,
    node: usize,
    mistake: Option<Mistake>,
    shared: Arc<[Shared]>,
}

pub(crate) fn network(nodes: usize, mistake: Option<Mistake>) -> Vec<Careless> {
    let shared: Arc<[Shared]> = (0..nodes).map(|_| Shared::default()).collect();
    let ends = channels::network(nodes);
    let wakers: Arc<[_]> = ends.iter().map(Transport::waker).collect();
    ends.into_iter()
        .enumerate()
        .map(|(node, inner)| Careless {
            inner,
            node,
            mistake,
            frames: 0,
            is_full: false,
            kept: None,
            held: VecDeque::new(),
            is_woken_for_ever: false,
            swallows: false,
            has_left: false,
            shared: Arc::clone(&shared),
            wakers: Arc::clone(&wakers),
        })
        .collect()
}

impl Wake for CarelessWaker {
    fn wake(&self) {
        let has = |mistake| self.mistake == Some(mistake);
        let shared = &self.shared[self.node];
        if has(WakerNeedsItsEndpoint) {
            assert!(!shared.is_gone.load(SeqCst), "the endpoint is there");
        }
        if !has(ForgetsAWakeBetweenWaits) || shared.is_waiting.load(SeqCst) {
            shared.wakes.fetch_add(1, SeqCst);
            self.inner.wake();
        }
    }
}

impl Transport for Careless {
    type Error = Infallible;
    type Waker = CarelessWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Infallible>> {
        if self.has(HasOneBoundForAll) && self.is_full {
            return Err(SendError::Full);
        }
        if self.has(LosesAFrame) && self.is_time() {
            return Ok(());
        }
        match self.mistake {
            Some(CutsLongHeads) => frame.head.truncate(usize::from(u16::MAX)),
            Some(DropsWhatIsQueued | BoundsFramesOnly) if self.held.len() < HELD_MAX => {
                self.held.push_back((to, mem::take(frame)));
                return Ok(());
            }
            Some(DropsWhatIsQueued | BoundsFramesOnly) => return Err(SendError::Full),
            Some(DoesNotLookAgain) => return self.send_one(to, frame),
            _ => {}
        }
        let before = frame.clone();
        let sent = self.inner.send(to, frame);
        if sent == Err(SendError::Full) {
            self.is_full = true;
            match self.mistake {
                Some(HasNoBound) => return Ok(()),
                Some(EmptiesARefusedFrame) => frame.clear(),
                Some(DeliversARefusedFrame) => self.held.push_back((to, before)),
                Some(BlocksInSend) => {
                    while self.inner.send(to, frame).is_err() {
                        let _ = self.inner.recv(None, &mut Frame::default());
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        if self.has(ReadsTheNotifierLate) {
            let peer = &self.shared[to.index()];
            *peer.count.lock().expect("no panic while it is held") += 1;
            peer.moved.notify_all();
        }
        sent
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Infallible> {
        let before = frame.clone();
        if let Some(received) = self.ahead(wait, frame)? {
            return Ok(received);
        }
        let wait = if self.has(EndsAWaitForEver) { wait.or(Some(Duration::ZERO)) } else { wait };
        self.own().is_waiting.store(true, SeqCst);
        let received = self.inner.recv(wait, frame)?;
        self.own().is_waiting.store(false, SeqCst);
        match received {
            Received::Frame(from) => self.spoil(from, frame, &before),
            Received::Woken => self.hear(wait, frame),
            Received::TimedOut if self.has(WakesOutOfBoredom) => Ok(Received::Woken),
            Received::Lost(..) if self.has(SaysNothingOfALoss) => self.recv(wait, frame),
            Received::Lost(..) if self.has(TellsALossAgain) => {
                self.kept = Some((received, Frame::default()));
                Ok(received)
            }
            received => Ok(received),
        }
    }

    fn waker(&self) -> CarelessWaker {
        CarelessWaker {
            inner: self.inner.waker(),
            node: self.node,
            mistake: self.mistake,
            shared: Arc::clone(&self.shared),
        }
    }

    fn leave(&mut self, reason: CloseReason) {
        // One that drops what is queued forgets `held` here.
        self.has_left = true;
        self.own().is_gone.store(true, SeqCst);
        self.inner.leave(match (self.mistake, reason) {
            (Some(TakesAnEndForALoss), CloseReason::Finished) => CloseReason::Failed,
            (Some(FailsAsFinished), _) => CloseReason::Finished,
            (Some(ForgetsWhomItLost), CloseReason::Lost(_)) => CloseReason::Failed,
            (_, reason) => reason,
        });
    }
}

impl Careless {
    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn own(&self) -> &Shared {
        &self.shared[self.node]
    }

    /// Returns true if this frame is affected.
    fn is_time(&mut self) -> bool {
        self.frames += 1;
        self.frames.is_multiple_of(RARELY)
    }

    /// Sends over a way for one frame. The sender records that it was refused and does not look
    /// again: the receiver may have made room just before, without a wake.
    fn send_one(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Infallible>> {
        let peer = &self.shared[to.index()];
        if peer.queued.load(SeqCst) > 0 {
            pass(SYSTEM_CALL);
            peer.refused.store(true, SeqCst);
            return Err(SendError::Full);
        }
        peer.queued.fetch_add(1, SeqCst);
        self.inner.send(to, frame)
    }

    /// Receives what goes first, where the mistake is one of order.
    fn ahead(
        &mut self,
        wait: Option<Duration>,
        frame: &mut Frame,
    ) -> Result<Option<Received>, Infallible> {
        if let Some((received, kept)) = self.kept.take() {
            *frame = kept;
            return Ok(Some(received));
        }
        while let Some((to, mut held)) = self.held.pop_front() {
            if self.inner.send(to, &mut held).is_err() {
                self.held.push_front((to, held));
                break;
            }
        }
        match self.mistake {
            Some(WakesForEver) if self.is_woken_for_ever => Ok(Some(Received::Woken)),
            Some(ServesWakesFirst) => Ok(self.take_wake().then_some(Received::Woken)),
            Some(ServesFramesFirst) => {
                for _ in 0..2 {
                    let received = self.inner.recv(Some(Duration::ZERO), frame)?;
                    if matches!(received, Received::Frame(_)) {
                        return Ok(Some(received));
                    }
                }
                Ok(self.take_wake().then_some(Received::Woken))
            }
            Some(ClearsTheWakeLate) => {
                let is_woken = self.own().wakes.load(SeqCst) > 0;
                pass(SYSTEM_CALL);
                self.own().wakes.store(0, SeqCst);
                Ok(is_woken.then_some(Received::Woken))
            }
            Some(ReadsTheNotifierLate) if wait.is_none() => {
                let received = self.inner.recv(Some(Duration::ZERO), frame)?;
                if received != Received::TimedOut {
                    return Ok(Some(received));
                }
                pass(SYSTEM_CALL);
                let count = self.own().count.lock().expect("no panic while it is held");
                let seen = *count;
                let moved = self.own().moved.wait_while(count, |count| *count == seen);
                drop(moved.expect("no panic while it is held"));
                Ok(None)
            }
            Some(LooksAtTheEndLast) => {
                let received = self.inner.recv(Some(Duration::ZERO), frame)?;
                pass(SYSTEM_CALL);
                let is_gone = |node: &usize| self.shared[*node].is_gone.load(SeqCst);
                let gone = (0..self.shared.len()).filter(|node| *node != self.node).find(is_gone);
                Ok(match (received, gone) {
                    (Received::TimedOut, Some(gone)) => {
                        Some(Received::Lost(NodeId(gone as u16), Loss::Failed))
                    }
                    (Received::TimedOut, None) => None,
                    (received, _) => Some(received),
                })
            }
            _ => Ok(None),
        }
    }

    fn take_wake(&self) -> bool {
        self.own().wakes.swap(0, SeqCst) > 0
    }

    fn spoil(
        &mut self,
        from: NodeId,
        frame: &mut Frame,
        before: &Frame,
    ) -> Result<Received, Infallible> {
        let is_time = self.is_time();
        let received = Received::Frame(from);
        match self.mistake {
            Some(RepeatsAFrame) if is_time => self.kept = Some((received, frame.clone())),
            Some(SwapsTwoFrames) if is_time => {
                let mut next = Frame::default();
                let second = self.inner.recv(Some(Duration::ZERO), &mut next)?;
                if matches!(second, Received::Frame(_)) {
                    self.kept = Some((received, mem::replace(frame, next)));
                    return Ok(second);
                }
            }
            Some(NamesAnotherSender) if is_time => {
                let other =
                    (0..self.shared.len()).find(|at| *at != self.node && *at != from.index());
                return Ok(Received::Frame(NodeId(other.expect("a third node") as u16)));
            }
            Some(AppendsToTheArgument) => frame.head = [&before.head[..], &frame.head].concat(),
            Some(LeavesStaleValues) if frame.values.is_empty() => {
                frame.values.clone_from(&before.values);
            }
            Some(SwallowsAWakeBehindAFrame) => self.swallows = self.take_wake(),
            Some(DoesNotLookAgain) => {
                self.own().queued.fetch_sub(1, SeqCst);
                if self.own().refused.swap(false, SeqCst) {
                    self.wakers[from.index()].wake();
                }
            }
            _ => {}
        }
        Ok(received)
    }

    /// Handles `Woken` of the transport: a waker was called, or there is room.
    fn hear(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Infallible> {
        let was_called = self.take_wake();
        self.is_woken_for_ever = true;
        if !was_called {
            self.is_full = false;
        }
        let is_silent = match self.mistake {
            Some(ServesWakesFirst | ServesFramesFirst | SaysNothingOfRoom | ClearsTheWakeLate) => {
                !was_called
            }
            Some(SwallowsAWakeBehindAFrame) => mem::take(&mut self.swallows),
            _ => false,
        };
        if is_silent { self.recv(wait, frame) } else { Ok(Received::Woken) }
    }
}

impl Drop for Careless {
    fn drop(&mut self) {
        self.own().is_gone.store(true, SeqCst);
        if !self.has_left {
            self.inner.leave(CloseReason::Failed);
        }
    }
}

/// Passes the time that something else would take at that place. On a busy machine it yields the
/// processor, as a system call may, to the thread that it races with.
fn pass(time: Duration) {
    let start = Instant::now();
    std::thread::yield_now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Frames that a queue in front of the transport holds.
const HELD_MAX: usize = 64;
/// A race of two threads is as wide as this.
const SYSTEM_CALL: Duration = Duration::from_micros(5);
