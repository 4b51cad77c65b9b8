//! A transport of your own: a channel of the standard library into each node, with a bound for each
//! pair of nodes.
//!
//! The contract is that of [`Transport`]: frames arrive once, whole and in order; `send` never
//! blocks; a refused sender is woken when there is room; wakes and frames take turns; a peer that
//! ends without a close reason is reported as lost. Not here: processes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport, Wake};

/// Maximum frames in flight from one node to another, and their bytes: a single larger frame goes
/// alone.
const FRAMES_MAX: usize = 64;
const BYTES_MAX: usize = 32 << 20;

/// A message in a channel.
enum Post {
    Frame(NodeId, Frame),
    /// That node ends; comes after all its frames.
    Left(NodeId, CloseReason),
    /// That node is lost.
    Lost(NodeId, Loss),
    /// A wake, or room: look at the flags.
    Nudge,
}

/// The way from one node to another.
#[derive(Default)]
struct Way {
    frames: AtomicUsize,
    bytes: AtomicUsize,
    /// True if the sender was refused and waits for room.
    refused: AtomicBool,
}

/// One node's endpoint.
pub struct ChannelEnd {
    node: NodeId,
    inbox: Receiver<Post>,
    wakers: Arc<[ChannelWaker]>,
    /// The way from node `i` to node `j` is at `i * nodes + j`.
    ways: Arc<[Way]>,
    /// Nodes that have left, or whose endpoints were dropped.
    gone: Arc<[AtomicBool]>,
    /// True if the last `recv` returned `Woken`: then a queued frame goes first.
    just_woken: bool,
    /// Peers that were reported as lost.
    lost: Vec<bool>,
}

/// A handle that ends the wait of one endpoint. Harmless after the endpoint is gone.
#[derive(Clone)]
pub struct ChannelWaker {
    sender: Sender<Post>,
    woken: Arc<AtomicBool>,
}

/// Creates a network of `nodes` endpoints, that of node `i` at index `i`.
#[must_use]
pub fn network(nodes: usize) -> Vec<ChannelEnd> {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..nodes).map(|_| mpsc::channel()).unzip();
    let wakers: Arc<[_]> =
        senders.into_iter().map(|sender| ChannelWaker { sender, woken: Arc::default() }).collect();
    let ways: Arc<[Way]> = (0..nodes * nodes).map(|_| Way::default()).collect();
    let gone: Arc<[AtomicBool]> = (0..nodes).map(|_| AtomicBool::default()).collect();
    let ends = (0..).map(NodeId).zip(inboxes).map(|(node, inbox)| ChannelEnd {
        node,
        inbox,
        wakers: Arc::clone(&wakers),
        ways: Arc::clone(&ways),
        gone: Arc::clone(&gone),
        just_woken: false,
        lost: vec![false; nodes],
    });
    ends.collect()
}

impl Wake for ChannelWaker {
    fn wake(&self) {
        // One nudge is enough for all wakes not received yet.
        if !self.woken.swap(true, SeqCst) {
            self.sender.send(Post::Nudge).ok();
        }
    }
}

impl Transport for ChannelEnd {
    type Error = Infallible;
    type Waker = ChannelWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Infallible>> {
        if self.lost[to.index()] {
            return Ok(());
        }
        let way = self.way(self.node, to);
        let bytes = frame.len();
        let is_full = || {
            let frames = way.frames.load(SeqCst);
            let fits = frames < FRAMES_MAX && way.bytes.load(SeqCst) + bytes <= BYTES_MAX;
            frames > 0 && !fits && !self.gone[to.index()].load(SeqCst)
        };
        if is_full() {
            // First the flag, then a second look: either the receiver that makes room sees the
            // flag, or this sender sees the room.
            way.refused.store(true, SeqCst);
            if is_full() {
                return Err(SendError::Full);
            }
        }
        way.frames.fetch_add(1, SeqCst);
        way.bytes.fetch_add(bytes, SeqCst);
        // Frames to a node that is gone are dropped.
        self.wakers[to.index()].sender.send(Post::Frame(self.node, std::mem::take(frame))).ok();
        Ok(())
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Infallible> {
        let until = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            let post = if self.just_woken { self.waiting() } else { None };
            if post.is_none() && self.wakers[self.node.index()].woken.swap(false, SeqCst) {
                self.just_woken = true;
                return Ok(Received::Woken);
            }
            self.just_woken = false;
            let Some(post) = post.or_else(|| self.next(until)) else {
                return Ok(Received::TimedOut);
            };
            match post {
                Post::Frame(from, received) => {
                    self.make_room(from, received.len());
                    if !self.lost[from.index()] {
                        *frame = received;
                        return Ok(Received::Frame(from));
                    }
                }
                Post::Lost(node, loss) => {
                    if !std::mem::replace(&mut self.lost[node.index()], true) {
                        return Ok(Received::Lost(node, loss));
                    }
                }
                Post::Left(node, reason) => self.hear(node, reason),
                Post::Nudge => {}
            }
        }
    }

    fn waker(&self) -> ChannelWaker {
        self.wakers[self.node.index()].clone()
    }

    fn leave(&mut self, reason: CloseReason) {
        // What was sent before is in the peers' channels already: nothing to wait for.
        if !self.gone[self.node.index()].swap(true, SeqCst) {
            let wakers = (0..).map(NodeId).zip(self.wakers.iter());
            for (node, waker) in wakers.filter(|(node, _)| *node != self.node) {
                self.tell_of_room(node);
                waker.sender.send(Post::Left(self.node, reason)).ok();
            }
        }
    }
}

impl ChannelEnd {
    fn way(&self, from: NodeId, to: NodeId) -> &Way {
        &self.ways[from.index() * self.wakers.len() + to.index()]
    }

    /// Turns the end of a peer into losses for this node, to be reported next.
    fn hear(&self, from: NodeId, reason: CloseReason) {
        let losses = match reason {
            CloseReason::Finished => vec![],
            CloseReason::Failed => vec![(from, Loss::Failed)],
            CloseReason::Lost(node) if node == self.node => vec![(from, Loss::GaveUp)],
            CloseReason::Lost(node) => vec![(node, Loss::Reported(from)), (from, Loss::Failed)],
        };
        for (node, loss) in losses {
            self.wakers[self.node.index()].sender.send(Post::Lost(node, loss)).ok();
        }
    }

    /// Returns the next post that is here already, except nudges.
    fn waiting(&self) -> Option<Post> {
        self.inbox.try_iter().find(|post| !matches!(post, Post::Nudge))
    }

    fn next(&self, until: Option<Instant>) -> Option<Post> {
        match until {
            Some(until) => {
                self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
            }
            // This endpoint holds a sender of its own: its channel stays open.
            None => self.inbox.recv().ok(),
        }
    }

    fn make_room(&self, from: NodeId, bytes: usize) {
        let way = self.way(from, self.node);
        way.bytes.fetch_sub(bytes, SeqCst);
        way.frames.fetch_sub(1, SeqCst);
        self.tell_of_room(from);
    }

    fn tell_of_room(&self, from: NodeId) {
        if self.way(from, self.node).refused.swap(false, SeqCst) {
            self.wakers[from.index()].wake();
        }
    }
}

impl Drop for ChannelEnd {
    /// An endpoint that is dropped before it has left has failed.
    fn drop(&mut self) {
        self.leave(CloseReason::Failed);
    }
}
