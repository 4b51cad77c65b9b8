//! A node with one worker and no threads: the loop around an engine and a line, which turns while
//! the worker waits.
//!
//! ```text
//!   worker ──fast path──> store          port: clock, bytes
//!      │                    ^                  │
//!      └──operation──> engine <──frames──> line
//! ```
//!
//! As there is only one context, the order rule (protocol, "Operations") holds by itself: a worker
//! that waits for an operation does not use the fast path. Not here: the worker's task
//! ([`crate::task`]).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use adapm_core::config::NodeConfig;
use adapm_core::driver::{Driver, Host};
use adapm_core::engine::{Engine, Event, Initial, Input, Intent, Op, OpBody, OpId, SignalId};
use adapm_core::error::{ConfigError, DecodeError, InputError, OpError};
use adapm_core::link::Event as LinkEvent;
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::slot::Pushed;
use adapm_core::stats::Stats;
use adapm_core::store::Store;
use adapm_core::transport::{CloseReason, Frame};
use adapm_core::wire::Message;
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId, wire};

use crate::line::{FRAME_BYTES_MAX, Line, LineError, LineStats};

/// The interface of a node to its board.
pub trait Port {
    /// Returns the time since some origin.
    fn now(&mut self) -> Instant;
    /// Appends the received bytes; does not wait.
    fn read(&mut self, bytes: &mut Vec<u8>);
    /// Writes all bytes, however long it takes.
    fn write(&mut self, bytes: &[u8]);
    /// Sleeps until bytes come, a millisecond at most.
    fn idle(&mut self);
}

/// Reasons why a node ended before its work was done.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeError {
    /// Invalid settings.
    Config(ConfigError),
    /// The line has failed.
    Line(LineError),
    /// The other end has ended first.
    Left(CloseReason),
    /// Bytes that are not a frame.
    Frame(DecodeError),
    /// The engine has refused a message or an operation.
    Input(InputError),
    /// An operation has failed.
    Op(OpError),
}

/// Accesses of the worker: served by a local copy, and by the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    /// Served by the store at once.
    pub local: u64,
    /// Served by the engine.
    pub engine: u64,
}

/// Bytes of one part of a message. A frame has two, and some lists of fixed length: see
/// [`NodeConfig::frame_bytes_max`].
const BLOCK_BYTES_MAX: usize = FRAME_BYTES_MAX / 16 * 7;

/// An ended operation and its outcome.
type Ended<V> = (OpId, Result<Vec<V>, OpError>);

/// The surroundings of the engine.
struct Outside<V> {
    /// Keys that the worker has dirtied.
    dirty: Vec<Key>,
    /// Frames for which the line had no room; bounded by the unanswered requests of the engine.
    backlog: VecDeque<Frame>,
    ended: Option<Ended<V>>,
}

impl<V> Host<V> for Outside<V> {
    fn take_dirty(&mut self, keys: &mut Vec<Key>) {
        keys.append(&mut self.dirty);
    }

    fn transmit(&mut self, _to: NodeId, message: Message) {
        let mut frame = Frame::default();
        wire::encode(message, &mut frame);
        self.backlog.push_back(frame);
    }

    fn tell(&mut self, event: Event<V>) {
        match event {
            Event::Done { op, values } => self.ended = Some((op, Ok(values))),
            Event::Failed { op, error } => self.ended = Some((op, Err(error))),
            _ => {}
        }
    }
}

/// A node of a cluster of two, with one worker, at one end of a line.
pub struct SerialNode<S: Store, P: Port> {
    driver: Driver<S, SystemPolicy>,
    outside: Outside<S::Value>,
    port: P,
    line: Line,
    peer: NodeId,
    clock: Clock,
    ops: u64,
    has_drained: bool,
    /// The other end's goodbye.
    left: Option<CloseReason>,
    accesses: Accesses,
    received: Vec<u8>,
    outgoing: Vec<u8>,
}

impl<S: Store, P: Port> SerialNode<S, P> {
    /// Creates node `node` of two, with its main copies.
    ///
    /// # Errors
    /// If the layout has fewer keys than there are nodes, or values so long that a frame with one
    /// would exceed [`FRAME_BYTES_MAX`].
    pub fn new(
        node: NodeId,
        (layout, store, initial): (Layout, S, Initial<S::Value>),
        (port, line): (P, Line),
    ) -> Result<Self, NodeError> {
        let mut config = NodeConfig::new(node, 2, 1);
        config.block_bytes_max = BLOCK_BYTES_MAX;
        let bytes = config.frame_bytes_max::<S::Value>(&layout);
        if bytes > FRAME_BYTES_MAX {
            return Err(NodeError::Line(LineError::FrameLen { bytes }));
        }
        let engine = Engine::new(config, layout, store, System::Adapm.policy(1), initial)
            .map_err(NodeError::Config)?;
        engine.populate();
        Ok(Self {
            driver: Driver::new(engine),
            outside: Outside { dirty: Vec::new(), backlog: VecDeque::new(), ended: None },
            port,
            line,
            peer: NodeId(1 - node.0),
            clock: Clock(0),
            ops: 0,
            has_drained: false,
            left: None,
            accesses: Accesses::default(),
            received: Vec::new(),
            outgoing: Vec::new(),
        })
    }

    /// Raises the worker's clock by one.
    pub fn advance_clock(&mut self) {
        self.clock = self.clock + 1;
    }

    /// Signals that the worker will access `keys` while its clock is in `clocks`.
    ///
    /// # Errors
    /// An unknown key or an empty window.
    pub fn intent(&mut self, keys: Vec<Key>, clocks: Range<Clock>) -> Result<(), NodeError> {
        self.feed(Input::Intent(Intent { worker: WORKER, id: SignalId::default(), keys, clocks }))
    }

    /// Adds `update` `[value_len]` to the value of `key`.
    ///
    /// # Errors
    /// The error that ends the node.
    pub fn push(&mut self, key: Key, update: &[S::Value]) -> Result<(), NodeError> {
        match self.driver.engine().store().with_slot(key, |mut slot| slot.push(update)) {
            Pushed::Refused => {
                self.accesses.engine += 1;
                self.op(OpBody::Push { keys: [key].into(), updates: update.into() }).map(drop)
            }
            pushed => {
                self.accesses.local += 1;
                if pushed == Pushed::Dirtied {
                    self.outside.dirty.push(key);
                    self.driver.look_at_dirty_keys(&mut self.outside);
                }
                Ok(())
            }
        }
    }

    /// Overwrites the value of `key` with `value` `[value_len]`.
    ///
    /// # Errors
    /// The error that ends the node.
    pub fn set(&mut self, key: Key, value: &[S::Value]) -> Result<(), NodeError> {
        self.accesses.engine += 1;
        self.op(OpBody::Set { keys: [key].into(), values: value.into() }).map(drop)
    }

    /// Reads the value of `key`.
    ///
    /// # Errors
    /// The error that ends the node.
    pub fn pull(&mut self, key: Key) -> Result<Vec<S::Value>, NodeError> {
        let mut value =
            alloc::vec![S::Value::default(); self.driver.engine().store().value_len(key)];
        if self.driver.engine().store().with_slot(key, |slot| slot.pull(&mut value)) {
            self.accesses.local += 1;
            return Ok(value);
        }
        self.accesses.engine += 1;
        self.op(OpBody::Pull { keys: [key].into() })
    }

    /// Runs an operation that needs no value: `WaitSync`, `Barrier`, `Quiesce`.
    ///
    /// # Errors
    /// The error that ends the node.
    pub fn collective(&mut self, body: OpBody<S::Value>) -> Result<(), NodeError> {
        self.op(body).map(drop)
    }

    /// Ends the node in order: once both nodes leave and everything is applied, the other end is
    /// notified.
    ///
    /// # Errors
    /// The error that ends the node before.
    pub fn leave(&mut self) -> Result<(), NodeError> {
        // Its intents expire: no node can leave before.
        self.clock = Clock::INFINITY;
        self.op(OpBody::End)?;
        self.op(OpBody::Leave)?;
        self.line.close(CloseReason::Finished);
        let until = self.port.now().plus_nanos(GOODBYE_NANOS);
        while !self.has_drained && self.line.error().is_none() && self.port.now() < until {
            self.turn()?;
        }
        // An acknowledgement of the other end's goodbye may still be due.
        self.write();
        Ok(())
    }

    /// Returns the accesses of the worker so far.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// Returns the totals of the engine.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        self.driver.engine().stats()
    }

    /// Returns the totals of the line.
    #[must_use]
    pub fn line_stats(&self) -> LineStats {
        self.line.stats()
    }

    /// Feeds the engine an operation and turns the loop until it has ended.
    fn op(&mut self, body: OpBody<S::Value>) -> Result<Vec<S::Value>, NodeError> {
        self.ops += 1;
        let id = OpId(self.ops);
        self.feed(Input::Op(Op { id, worker: WORKER, body }))?;
        loop {
            if let Some((_, outcome)) = self.outside.ended.take_if(|(ended, _)| *ended == id) {
                return outcome.map_err(NodeError::Op);
            }
            if let Some(reason) = self.left {
                return Err(NodeError::Left(reason));
            }
            self.turn()?;
        }
    }

    /// Turns the loop once: handles input and timers, and sends what is due.
    fn turn(&mut self) -> Result<(), NodeError> {
        let mut received = core::mem::take(&mut self.received);
        self.port.read(&mut received);
        let now = self.port.now();
        self.line.handle_bytes(now, &received);
        let is_quiet = received.is_empty();
        received.clear();
        self.received = received;
        if let Some(error) = self.line.error() {
            // The other end learns why.
            self.write();
            return Err(NodeError::Line(error));
        }
        while let Some(mut frame) = self.line.poll_frame() {
            let message = wire::decode(&mut frame).map_err(NodeError::Frame)?;
            self.feed(Input::Message(self.peer, message))?;
        }
        if self.driver.until().is_some_and(|until| until <= now) {
            self.feed(Input::Timeout(&[self.clock]))?;
        }
        while let Some(event) = self.line.poll_event() {
            match event {
                LinkEvent::Room => self.flush()?,
                LinkEvent::Drained => self.has_drained = true,
                LinkEvent::Left(reason) => self.left = Some(reason),
                LinkEvent::Dead(_)
                | LinkEvent::Stuck(_)
                | LinkEvent::Suspect
                | LinkEvent::Stalled
                | LinkEvent::Recovered => {}
            }
        }
        self.write();
        if let Some(error) = self.line.error() {
            return Err(NodeError::Line(error));
        }
        if is_quiet {
            self.port.idle();
        }
        Ok(())
    }

    fn write(&mut self) {
        let now = self.port.now();
        self.line.poll_bytes(now, &mut self.outgoing);
        self.port.write(&self.outgoing);
        self.outgoing.clear();
    }

    fn feed(&mut self, input: Input<'_, S::Value>) -> Result<(), NodeError> {
        let now = self.port.now();
        self.driver.feed(now, input, &mut self.outside).map_err(NodeError::Input)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), NodeError> {
        while let Some(frame) = self.outside.backlog.front_mut() {
            if !self.line.send(frame).map_err(NodeError::Line)? {
                break;
            }
            self.outside.backlog.pop_front();
        }
        Ok(())
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Line(error) => error.fmt(f),
            Self::Left(reason) => write!(f, "the other end has ended first: {reason:?}"),
            Self::Frame(error) => error.fmt(f),
            Self::Input(error) => error.fmt(f),
            Self::Op(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for NodeError {}

const WORKER: WorkerId = WorkerId(0);

/// Time for the other end to acknowledge the goodbye.
const GOODBYE_NANOS: u64 = 2_000_000_000;
