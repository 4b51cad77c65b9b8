//! The control side of a group's node without thread and endpoint: the test puts frames in and
//! takes sent ones out.

use core::convert::Infallible;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Loss, Received, SendError, Transport, Wake};

use super::control;
use super::error::GroupError;
use super::membership::Membership;
use super::mesh::Mesh;
use super::message::Message;
use super::place;
use super::shared::{Request, Shared};

/// A node's control side.
pub struct ControlSide {
    control: control::Control<Hand>,
    shared: Arc<Shared>,
}

/// A manual endpoint: every way has room for a few frames, which the test takes.
struct Hand {
    ways: Vec<VecDeque<Frame>>,
    is_up: bool,
}

#[derive(Clone)]
struct NoWait;

impl ControlSide {
    /// Creates node `node` of `nodes`; its links are up if `is_up`.
    #[must_use]
    pub fn new(node: NodeId, nodes: usize, is_up: bool) -> Self {
        let membership = Membership::new(node, nodes, String::new());
        let shared = Arc::new(Shared::new(membership));
        let hand = Hand { ways: (0..nodes).map(|_| VecDeque::new()).collect(), is_up };
        Self {
            control: control::Control::new(node, nodes, hand, Arc::clone(&shared), Duration::ZERO),
            shared,
        }
    }

    /// Requests a collective; the one before must be over.
    ///
    /// # Errors
    /// The error that ends the control thread.
    pub fn begin(&mut self, label: &str, to_all: bool, bytes: &[u8]) -> Result<(), GroupError> {
        let request = Request { label: label.to_owned(), to_all, bytes: bytes.to_vec() };
        self.shared.ask(|state| state.request = Some(request));
        self.control.take_requests()?;
        self.control.progress_join();
        self.control.send()
    }

    /// Receives a frame of `from`.
    ///
    /// # Errors
    /// The error that ends the control thread.
    pub fn hear(&mut self, from: NodeId, frame: Frame) -> Result<(), GroupError> {
        self.control.frame = frame;
        self.control.handle_frame(from)?;
        self.control.progress_join();
        self.control.send()
    }

    /// Learns that a node is lost.
    pub fn lose(&mut self, node: NodeId, loss: Loss) {
        self.control.lose(node, loss);
        self.control.decide(Instant::now());
    }

    /// Lets the time pass for which parts of a collective are awaited after a loss.
    pub fn await_no_parts(&mut self) {
        self.control.await_no_parts();
    }

    /// Returns the next frame that this node has sent to `to`.
    pub fn take_sent(&mut self, to: NodeId) -> Option<Frame> {
        self.control.mesh.ways[to.index()].pop_front()
    }

    /// Returns the outcome of a collective, once.
    #[must_use]
    pub fn take_outcome(&self) -> Option<Vec<Vec<u8>>> {
        self.shared.lock().outcome.take()
    }

    /// Returns the failure, if there is one.
    #[must_use]
    pub fn failure(&self) -> Option<GroupError> {
        self.shared.lock().failure.clone()
    }

    /// Returns the maximum number of messages queued for one peer.
    #[must_use]
    pub fn waiting_max(&self) -> usize {
        self.control.waiting_max()
    }
}

impl Transport for Hand {
    type Error = Infallible;
    type Waker = NoWait;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Infallible>> {
        let nodes = self.ways.len();
        let way = &mut self.ways[to.index()];
        if way.len() == WAY_FRAMES {
            return Err(SendError::Full);
        }
        Message::decode(frame, nodes).expect("a node sends what nodes can read");
        way.push_back(core::mem::take(frame));
        Ok(())
    }

    fn recv(&mut self, _: Option<Duration>, _: &mut Frame) -> Result<Received, Infallible> {
        Ok(Received::TimedOut)
    }

    fn waker(&self) -> NoWait {
        NoWait
    }
}

impl Wake for NoWait {
    fn wake(&self) {}
}

impl Mesh for Hand {
    fn info(&self) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], 4157)))
    }

    fn meet(&mut self, _: &[Option<SocketAddr>]) {}

    fn seek(&mut self, _: NodeId, _: &[SocketAddr]) {}

    fn is_up(&self, _: NodeId) -> bool {
        self.is_up
    }

    fn rtt(&self, _: NodeId) -> Option<Duration> {
        None
    }

    fn fault(&self, _: NodeId) -> Option<String> {
        None
    }

    fn run(&self) -> Option<u64> {
        None
    }

    fn own_trouble(&self, _: NodeId) -> Option<String> {
        None
    }

    fn poll_refusal(&mut self) -> Option<(String, u32)> {
        None
    }
}

pub(crate) fn rendezvous(text: &str) -> Option<SocketAddr> {
    place::Place::of(text).map(|place| place.address)
}

pub(crate) fn host_and_port(text: &str) -> Result<(), String> {
    place::check(text).map_err(|error| error.to_string())
}

/// Frames for which a way has room.
const WAY_FRAMES: usize = 4;
