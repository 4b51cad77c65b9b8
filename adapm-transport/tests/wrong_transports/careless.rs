//! The in-process transport with every plausible mistake of a transport author.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport, Wake};
use adapm_transport::Error;
use adapm_transport::inproc::{self, InProc, InProcWaker};

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
    EmptiesARefusedFrame,
    SaysNothingOfRoom,
    HasOneBoundForAll,
    ForgetsAWakeBetweenWaits,
    WakesForEver,
    ServesWakesFirst,
    ServesFramesFirst,
    WakesOutOfBoredom,
    SaysNothingOfALoss,
    TakesAnEndForALoss,
    WakerNeedsItsEndpoint,
}

/// One of so many frames is affected.
const RARELY: usize = 50;

pub(crate) struct Careless {
    inner: InProc,
    mistake: Option<Mistake>,
    /// Frames sent or received.
    frames: usize,
    is_full: bool,
    /// A frame that is delivered again, or later.
    kept: Option<(NodeId, Frame)>,
    is_woken_for_ever: bool,
    shared: Arc<Shared>,
}

/// State shared by an endpoint and its wakers.
#[derive(Default)]
struct Shared {
    is_waiting: AtomicBool,
    /// Wakes that were not received yet.
    wakes: AtomicUsize,
    is_gone: AtomicBool,
}

#[derive(Clone)]
pub(crate) struct CarelessWaker {
    inner: InProcWaker,
    mistake: Option<Mistake>,
    shared: Arc<Shared>,
}

pub(crate) fn network(nodes: usize, mistake: Option<Mistake>) -> Vec<Careless> {
    let ends = inproc::network(nodes).into_iter();
    ends.map(|inner| Careless {
        inner,
        mistake,
        frames: 0,
        is_full: false,
        kept: None,
        is_woken_for_ever: false,
        shared: Arc::default(),
    })
    .collect()
}

impl Wake for CarelessWaker {
    fn wake(&self) {
        let has = |mistake| self.mistake == Some(mistake);
        if has(Mistake::WakerNeedsItsEndpoint) {
            assert!(!self.shared.is_gone.load(Ordering::SeqCst), "the endpoint is there");
        }
        if !has(Mistake::ForgetsAWakeBetweenWaits) || self.shared.is_waiting.load(Ordering::SeqCst)
        {
            self.shared.wakes.fetch_add(1, Ordering::SeqCst);
            self.inner.wake();
        }
    }
}

impl Transport for Careless {
    type Error = Error;
    type Waker = CarelessWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Error>> {
        if self.has(Mistake::HasOneBoundForAll) && self.is_full {
            return Err(SendError::Full);
        }
        if self.has(Mistake::LosesAFrame) && self.is_time() {
            return Ok(());
        }
        if self.has(Mistake::CutsLongHeads) {
            frame.head.truncate(usize::from(u16::MAX));
        }
        let sent = self.inner.send(to, frame);
        match sent {
            Err(SendError::Full) if self.has(Mistake::HasNoBound) => Ok(()),
            Err(SendError::Full) => {
                self.is_full = true;
                if self.has(Mistake::EmptiesARefusedFrame) {
                    frame.clear();
                }
                sent
            }
            Err(SendError::Transport(_)) if self.has(Mistake::SaysNothingOfALoss) => Ok(()),
            sent => sent,
        }
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Error> {
        let before = frame.clone();
        if let Some(received) = self.by_rank(frame)? {
            return Ok(received);
        }
        if let Some((from, kept)) = self.kept.take() {
            *frame = kept;
            return Ok(Received::Frame(from));
        }
        let wait =
            if self.has(Mistake::EndsAWaitForEver) { wait.or(Some(Duration::ZERO)) } else { wait };
        self.shared.is_waiting.store(true, Ordering::SeqCst);
        let received = self.inner.recv(wait, frame)?;
        self.shared.is_waiting.store(false, Ordering::SeqCst);
        match received {
            Received::Frame(from) => self.spoil(from, frame, &before),
            Received::Woken => self.hear(wait, frame),
            Received::TimedOut if self.has(Mistake::WakesOutOfBoredom) => Ok(Received::Woken),
            received => Ok(received),
        }
    }

    fn waker(&self) -> CarelessWaker {
        CarelessWaker {
            inner: self.inner.waker(),
            mistake: self.mistake,
            shared: Arc::clone(&self.shared),
        }
    }

    fn leave(&mut self, reason: CloseReason) {
        if self.has(Mistake::TakesAnEndForALoss) {
            // The peer takes this as the report that the node is lost.
            let mut last = Frame { head: b"lost".to_vec(), ..Frame::default() };
            self.inner.send(NodeId(1), &mut last).expect("the peer is there");
        }
        self.inner.leave(reason);
    }
}

impl Careless {
    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Returns true if this frame is affected.
    fn is_time(&mut self) -> bool {
        self.frames += 1;
        self.frames.is_multiple_of(RARELY)
    }

    /// Receives all wakes before frames, or all frames before wakes.
    fn by_rank(&mut self, frame: &mut Frame) -> Result<Option<Received>, Error> {
        if self.has(Mistake::WakesForEver) && self.is_woken_for_ever {
            return Ok(Some(Received::Woken));
        }
        if self.has(Mistake::ServesWakesFirst) && self.shared.wakes.swap(0, Ordering::SeqCst) > 0 {
            return Ok(Some(Received::Woken));
        }
        if !self.has(Mistake::ServesFramesFirst) {
            return Ok(None);
        }
        for _ in 0..2 {
            if let received @ Received::Frame(_) = self.inner.recv(Some(Duration::ZERO), frame)? {
                return Ok(Some(received));
            }
        }
        let is_woken = self.shared.wakes.swap(0, Ordering::SeqCst) > 0;
        Ok(is_woken.then_some(Received::Woken))
    }

    fn spoil(
        &mut self,
        from: NodeId,
        frame: &mut Frame,
        before: &Frame,
    ) -> Result<Received, Error> {
        let is_time = self.is_time();
        match self.mistake {
            Some(Mistake::RepeatsAFrame) if is_time => self.kept = Some((from, frame.clone())),
            Some(Mistake::SwapsTwoFrames) if is_time => {
                let mut next = Frame::default();
                if let Received::Frame(from_next) =
                    self.inner.recv(Some(Duration::ZERO), &mut next)?
                {
                    self.kept = Some((from, mem::replace(frame, next)));
                    return Ok(Received::Frame(from_next));
                }
            }
            Some(Mistake::NamesAnotherSender) if is_time => {
                return Ok(Received::Frame(NodeId((from.0 + 1) % self.inner.nodes() as u16)));
            }
            Some(Mistake::AppendsToTheArgument) => {
                frame.head = [&before.head[..], &frame.head].concat()
            }
            Some(Mistake::LeavesStaleValues) if frame.values.is_empty() => {
                frame.values.clone_from(&before.values);
            }
            Some(Mistake::TakesAnEndForALoss) if frame.head == b"lost" => {
                return Ok(Received::Lost(from, Loss::Failed));
            }
            _ => {}
        }
        Ok(Received::Frame(from))
    }

    /// Handles `Woken` of the transport: a waker was called, or there is room.
    fn hear(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Error> {
        let was_called = self.shared.wakes.swap(0, Ordering::SeqCst) > 0;
        self.is_woken_for_ever = true;
        if !was_called {
            self.is_full = false;
        }
        let was_heard = self.has(Mistake::ServesWakesFirst) || self.has(Mistake::ServesFramesFirst);
        if !was_called && (was_heard || self.has(Mistake::SaysNothingOfRoom)) {
            return self.recv(wait, frame);
        }
        Ok(Received::Woken)
    }
}

impl Drop for Careless {
    fn drop(&mut self) {
        self.shared.is_gone.store(true, Ordering::SeqCst);
    }
}
