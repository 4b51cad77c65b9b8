//! A custom transport: the other node is at the end of a serial line, here the pipes of a child
//! process or of a test.
//!
//! ```text
//!   channel thread:  send, recv ── Line ──bytes──> writing thread ──noise──> line
//!                                   ^── happenings <── reading thread <──noise── line
//! ```

use std::io::{Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::link::Event;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport, Wake};
use serial_node::line::{End, Line, LineError, LineStats};

use crate::noise::Noise;

/// An event that ends the wait of an endpoint.
enum Happening {
    Bytes(Vec<u8>),
    Woken,
    /// Nothing more will come.
    Ended,
}

/// The traffic of the line, as of the last update.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<LineStats>>);

/// Node 0's endpoint at a serial line to node 1.
pub struct Serial {
    line: Line,
    origin: Instant,
    happenings: Receiver<Happening>,
    waker: Waker,
    writing: Option<Sender<Vec<u8>>>,
    /// Signals the end of the writing thread.
    written: Receiver<()>,
    meter: Meter,
    outgoing: Vec<u8>,
    is_lost: bool,
    has_ended: bool,
    has_drained: bool,
}

/// A handle that ends a wait.
#[derive(Clone)]
pub struct Waker(Sender<Happening>);

impl Meter {
    /// Returns the totals.
    #[must_use]
    pub fn read(&self) -> LineStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serial {
    /// Creates an endpoint that reads and writes these, with noise in both directions.
    pub fn new(
        (mut from, mut to): (impl Read + Send + 'static, impl Write + Send + 'static),
        terms: u64,
        dead_after: Duration,
        mut noise: Noise,
    ) -> Self {
        let (happen, happenings) = mpsc::channel();
        let (writing, to_write) = mpsc::channel::<Vec<u8>>();
        let (done, written) = mpsc::channel();
        let waker = Waker(happen.clone());
        let mut noise_in = noise;
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(len @ 1..) = from.read(&mut bytes) {
                // Even if nothing receives any more: the other end must get rid of its last bytes.
                happen.send(Happening::Bytes(noise_in.spoil(&bytes[..len]))).ok();
            }
            happen.send(Happening::Ended).ok();
        });
        thread::spawn(move || {
            for bytes in to_write {
                if to.write_all(&noise.spoil(&bytes)).and_then(|()| to.flush()).is_err() {
                    break;
                }
            }
            done.send(()).ok();
        });
        Self {
            line: Line::new(End::Dialing, terms, dead_after),
            origin: Instant::now(),
            happenings,
            waker,
            writing: Some(writing),
            written,
            meter: Meter::default(),
            outgoing: Vec::new(),
            is_lost: false,
            has_ended: false,
            has_drained: false,
        }
    }

    /// Returns a handle to the totals while the endpoint is in use elsewhere.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    fn now(&self) -> adapm_core::Instant {
        adapm_core::Instant::from_nanos(
            u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX),
        )
    }

    /// Writes the bytes that are due.
    fn write(&mut self) {
        let now = self.now();
        self.line.poll_bytes(now, &mut self.outgoing);
        if !self.outgoing.is_empty()
            && let Some(writing) = &self.writing
        {
            writing.send(std::mem::take(&mut self.outgoing)).ok();
        }
        *self.meter.0.lock().unwrap_or_else(PoisonError::into_inner) = self.line.stats();
    }

    /// Waits for bytes until `until` or the line's own deadline. Returns true if the waker was
    /// called.
    fn wait(&mut self, until: Option<Instant>) -> bool {
        let deadline =
            self.line.deadline().map(|at| self.origin + Duration::from_nanos(at.nanos()));
        let until = [until, deadline].into_iter().flatten().min();
        let happening = match until {
            Some(until) => {
                self.happenings.recv_timeout(until.saturating_duration_since(Instant::now()))
            }
            None => self.happenings.recv().map_err(RecvTimeoutError::from),
        };
        match happening {
            Ok(Happening::Bytes(bytes)) => {
                let now = self.now();
                self.line.handle_bytes(now, &bytes);
            }
            Ok(Happening::Woken) => return true,
            Ok(Happening::Ended) => self.has_ended = true,
            Err(_) => {}
        }
        false
    }

    fn lose(&mut self, loss: Loss) -> Option<Received> {
        (!std::mem::replace(&mut self.is_lost, true)).then_some(Received::Lost(PEER, loss))
    }

    /// Returns a report that precedes any wait.
    fn news(&mut self) -> Result<Option<Received>, LineError> {
        while let Some(event) = self.line.poll_event() {
            let news = match event {
                Event::Room => Some(Received::Woken),
                Event::Left(CloseReason::Failed) => self.lose(Loss::Failed),
                Event::Left(CloseReason::Lost(by)) => self.lose(Loss::Reported(by)),
                Event::Drained => {
                    self.has_drained = true;
                    None
                }
                _ => None,
            };
            if news.is_some() {
                return Ok(news);
            }
        }
        Ok(match self.line.error() {
            Some(LineError::Lost(loss)) => self.lose(loss),
            Some(LineError::Restarted) => self.lose(Loss::Restarted),
            Some(LineError::Misbehaved(_)) => self.lose(Loss::Misbehaved),
            Some(error) => return Err(error),
            None if self.has_ended && !self.has_drained => self.lose(Loss::Failed),
            None => None,
        })
    }
}

impl Transport for Serial {
    type Error = LineError;
    type Waker = Waker;

    fn send(&mut self, _to: NodeId, frame: &mut Frame) -> Result<(), SendError<LineError>> {
        match self.line.send(frame) {
            Ok(true) => Ok(()),
            Ok(false) => Err(SendError::Full),
            Err(error @ (LineError::Terms { .. } | LineError::FrameLen { .. })) => {
                Err(SendError::Transport(error))
            }
            // Reported as a loss by `recv`: frames to a lost node are dropped.
            Err(_) => Ok(()),
        }
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, LineError> {
        let until = wait.map(|wait| Instant::now() + wait);
        loop {
            self.write();
            if let Some(next) = self.line.poll_frame() {
                *frame = next;
                return Ok(Received::Frame(PEER));
            }
            if let Some(news) = self.news()? {
                return Ok(news);
            }
            if self.wait(until) {
                return Ok(Received::Woken);
            }
            if until.is_some_and(|until| until <= Instant::now()) && !self.line.has_frame() {
                return Ok(Received::TimedOut);
            }
        }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.line.close(reason);
        let until = Instant::now() + GOODBYE;
        while !self.has_drained && !self.has_ended && !self.is_lost && Instant::now() < until {
            self.write();
            self.wait(Some(until));
            if self.news().is_err() {
                break;
            }
        }
        // The acknowledgement of the other end's goodbye.
        self.write();
        self.writing = None;
        self.written.recv_timeout(GOODBYE).ok();
    }
}

impl Wake for Waker {
    fn wake(&self) {
        self.0.send(Happening::Woken).ok();
    }
}

const PEER: NodeId = NodeId(1);

/// Time for the other end to acknowledge the goodbye.
const GOODBYE: Duration = Duration::from_secs(2);
