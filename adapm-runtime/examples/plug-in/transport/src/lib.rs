//! A transport of your own: a channel of the standard library into each node, with a bound for each
//! pair of nodes.
//!
//! The contract is that of [`Transport`]: frames arrive once, whole and in order; `send` never
//! blocks; a refused sender hears of room; wakes and frames take turns; a peer that ends without a
//! close reason is told as lost. Not here: processes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport, Wake};

/// Frames that may be under way from one node to another.
const FRAMES_MAX: usize = 64;

/// What goes through a channel.
enum Post {
    Frame(NodeId, Frame),
    /// That node ended without saying that all is done.
    Lost(NodeId),
    /// Look at what has changed: a wake, or room.
    Nudge,
}

/// The way from one node to another.
#[derive(Default)]
struct Way {
    queued: AtomicUsize,
    /// Whether the sender was refused and waits for room.
    refused: AtomicBool,
}

/// One node's endpoint.
pub struct ChannelEnd {
    node: NodeId,
    inbox: Receiver<Post>,
    wakers: Arc<[ChannelWaker]>,
    /// The way from node `i` to node `j` is at `i * nodes + j`.
    ways: Arc<[Way]>,
    /// Nodes whose endpoints were dropped.
    gone: Arc<[AtomicBool]>,
    /// Whether the last `recv` returned `Woken`: then a frame that waits goes first.
    just_woken: bool,
    has_left: bool,
}

/// Ends the wait of one endpoint. Harmless after the endpoint is gone.
#[derive(Clone)]
pub struct ChannelWaker {
    sender: Sender<Post>,
    woken: Arc<AtomicBool>,
}

/// A network of `nodes` endpoints, that of node `i` at index `i`.
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
        has_left: false,
    });
    ends.collect()
}

impl Wake for ChannelWaker {
    fn wake(&self) {
        // One nudge is enough for all wakes that nobody has heard yet.
        if !self.woken.swap(true, SeqCst) {
            self.sender.send(Post::Nudge).ok();
        }
    }
}

impl Transport for ChannelEnd {
    type Error = Infallible;
    type Waker = ChannelWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Infallible>> {
        let way = self.way(self.node, to);
        let is_full =
            || way.queued.load(SeqCst) >= FRAMES_MAX && !self.gone[to.index()].load(SeqCst);
        if is_full() {
            // Said first, then looked again: whoever makes room in between hears of it, or we see
            // the room.
            way.refused.store(true, SeqCst);
            if is_full() {
                return Err(SendError::Full);
            }
        }
        way.queued.fetch_add(1, SeqCst);
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
                    *frame = received;
                    self.make_room(from);
                    return Ok(Received::Frame(from));
                }
                Post::Lost(node) => return Ok(Received::Lost(node, Loss::Failed)),
                Post::Nudge => {}
            }
        }
    }

    fn waker(&self) -> ChannelWaker {
        self.wakers[self.node.index()].clone()
    }

    fn leave(&mut self, reason: CloseReason) {
        // What was sent before is in the peers' channels already: nothing to wait for.
        self.has_left |= reason == CloseReason::Finished;
    }
}

impl ChannelEnd {
    fn way(&self, from: NodeId, to: NodeId) -> &Way {
        &self.ways[from.index() * self.wakers.len() + to.index()]
    }

    /// The next post that is here already, nudges apart.
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

    fn make_room(&self, from: NodeId) {
        self.way(from, self.node).queued.fetch_sub(1, SeqCst);
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
        self.gone[self.node.index()].store(true, SeqCst);
        for (node, waker) in
            (0..).map(NodeId).zip(self.wakers.iter()).filter(|(node, _)| *node != self.node)
        {
            self.tell_of_room(node);
            if !self.has_left {
                waker.sender.send(Post::Lost(self.node)).ok();
            }
        }
    }
}
