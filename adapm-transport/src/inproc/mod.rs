//! All nodes in one process: frames are moved from one thread to another, never copied.
//!
//! Each endpoint has one inbox behind one lock. A sender holds the receiver's lock while it moves a
//! frame in; a receiver takes all queued frames out at once and serves them without a lock. Not
//! here: encoding, and any delay or loss.

mod inbox;

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Received, SendError, Transport, Wake};

use crate::error::Error;
use inbox::{Batch, Inbox, Offer, keep_spare};

/// Creates a network of `nodes` endpoints, that of node `i` at index `i`; one network serves one
/// channel.
///
/// ```
/// use adapm_core::NodeId;
/// use adapm_core::transport::{Frame, Received, Transport};
/// use adapm_transport::inproc;
///
/// let mut ends = inproc::network(2);
/// let mut frame = Frame { head: vec![1, 2, 3], ..Frame::default() };
/// ends[0].send(NodeId(1), &mut frame)?;
/// assert_eq!(ends[1].recv(None, &mut frame), Ok(Received::Frame(NodeId(0))));
/// assert_eq!(frame.head, [1, 2, 3]);
/// # Ok::<(), adapm_core::transport::SendError<adapm_transport::Error>>(())
/// ```
///
/// # Panics
/// If there are more nodes than node ids.
#[must_use]
pub fn network(nodes: usize) -> Vec<InProc> {
    assert!(nodes <= usize::from(u16::MAX), "node ids are 16 bits wide");
    let ends: Arc<[End]> = (0..nodes).map(|_| End::new(nodes)).collect();
    let ids = (0..nodes).map(|node| NodeId(node as u16));
    ids.map(|node| InProc {
        ends: Arc::clone(&ends),
        node,
        batch: VecDeque::new(),
        spares: Vec::new(),
        refused: Vec::new(),
        just_woken: false,
    })
    .collect()
}

/// One node's endpoint of an in-process network.
///
/// At most 256 frames and 32 MiB wait for one peer (a larger frame goes alone), and as much again
/// that the peer has taken out but not served yet; then [`Transport::send`] returns `Full`. Senders
/// are served in the order in which they sent. After an endpoint is dropped, sends to it fail with
/// [`Error::PeerGone`]; frames that it sent still arrive.
#[derive(Debug)]
pub struct InProc {
    ends: Arc<[End]>,
    node: NodeId,
    /// Frames taken out of the inbox, not served yet.
    batch: Batch,
    /// Memory on its way back to the senders.
    spares: Vec<Frame>,
    /// Scratch of [`InProc::fetch`], empty between calls.
    refused: Vec<NodeId>,
    /// True if the last `recv` returned `Woken`: then a queued frame goes first.
    just_woken: bool,
}

/// Ends the wait of one endpoint of an in-process network. Harmless after the endpoint is gone.
#[derive(Clone, Debug)]
pub struct InProcWaker {
    ends: Arc<[End]>,
    node: NodeId,
}

/// The shared part of one endpoint, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct End {
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    woken: AtomicBool,
}

impl Transport for InProc {
    type Error = Error;
    type Waker = InProcWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Error>> {
        let nodes = self.ends.len();
        let Some(end) = self.ends.get(to.index()) else {
            return Err(SendError::Transport(Error::UnknownNode { node: to, nodes }));
        };
        let mut inbox = end.lock();
        match inbox.offer(self.node, frame) {
            Offer::Taken => {
                let waiting = inbox.waiting;
                drop(inbox);
                if waiting {
                    end.arrived.notify_one();
                }
                Ok(())
            }
            Offer::Full => Err(SendError::Full),
            Offer::Gone => Err(SendError::Transport(Error::PeerGone { node: to })),
        }
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Error> {
        if self.batch.is_empty() {
            self.fetch(wait);
        }
        let frame_first = self.just_woken && !self.batch.is_empty();
        self.just_woken = !frame_first && self.end().take_wake();
        if self.just_woken {
            return Ok(Received::Woken);
        }
        let Some((from, received)) = self.batch.pop_front() else { return Ok(Received::TimedOut) };
        keep_spare(&mut self.spares, mem::replace(frame, received));
        Ok(Received::Frame(from))
    }

    fn waker(&self) -> InProcWaker {
        InProcWaker { ends: Arc::clone(&self.ends), node: self.node }
    }
}

impl InProc {
    /// Returns the node of this endpoint.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the number of nodes of the network.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.ends.len()
    }

    fn end(&self) -> &End {
        &self.ends[self.node.index()]
    }

    /// Waits until there is a frame, a waker is called or the wait is over, and takes all queued
    /// frames.
    fn fetch(&mut self, wait: Option<Duration>) {
        let end = &self.ends[self.node.index()];
        let mut inbox = end.lock();
        if inbox.is_empty() && wait != Some(Duration::ZERO) {
            inbox = end.wait(inbox, wait);
        }
        inbox.take(&mut self.batch, &mut self.spares, &mut self.refused);
        drop(inbox);
        for sender in self.refused.drain(..) {
            self.ends[sender.index()].wake();
        }
    }
}

impl Drop for InProc {
    fn drop(&mut self) {
        let refused = self.end().lock().close();
        for sender in refused {
            self.ends[sender.index()].wake();
        }
    }
}

impl Wake for InProcWaker {
    fn wake(&self) {
        self.ends[self.node.index()].wake();
    }
}

impl End {
    fn new(nodes: usize) -> Self {
        Self {
            inbox: Mutex::new(Inbox::new(nodes)),
            arrived: Condvar::new(),
            woken: AtomicBool::new(false),
        }
    }

    /// Makes a `recv` of this endpoint return `Woken`.
    ///
    /// # Ordering
    /// The flag is set before the lock is taken: a receiver that holds the lock either sees the
    /// flag before it waits, or has `waiting` set by the time the lock is free. If the flag was set
    /// already, another waker notifies. The read-modify-writes release the earlier work of the
    /// waker's thread, and [`End::take_wake`] acquires it.
    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) && self.lock().waiting {
            self.arrived.notify_one();
        }
    }

    /// Returns true if a waker was called since this last returned true.
    fn take_wake(&self) -> bool {
        self.woken.load(Ordering::Relaxed) && self.woken.swap(false, Ordering::AcqRel)
    }

    /// Waits until the inbox holds a frame, a waker is called, or `wait` is over.
    fn wait<'a>(
        &self,
        mut inbox: MutexGuard<'a, Inbox>,
        wait: Option<Duration>,
    ) -> MutexGuard<'a, Inbox> {
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        while inbox.is_empty() && !self.woken.load(Ordering::Relaxed) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break;
            }
            inbox.waiting = true;
            inbox = match left {
                None => self.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    self.arrived.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            inbox.waiting = false;
        }
        inbox
    }

    /// Locks the inbox; a panic of another thread that held the lock cannot leave it half changed.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_endpoint_refuses_frames_and_delivers_its_own() {
        let mut ends = network(2);
        let mut last = ends.pop().expect("two endpoints");
        let mut frame = Frame { head: vec![1], ..Frame::default() };
        last.send(NodeId(0), &mut frame).expect("the peer is there");
        drop(last);
        let mut refused = Frame { head: vec![2], ..Frame::default() };
        let gone = Err(SendError::Transport(Error::PeerGone { node: NodeId(1) }));
        assert_eq!(ends[0].send(NodeId(1), &mut refused), gone);
        assert_eq!(refused.head, [2]);
        assert_eq!(ends[0].recv(None, &mut frame), Ok(Received::Frame(NodeId(1))));
        assert_eq!(frame.head, [1]);
    }

    #[test]
    fn a_drop_wakes_senders_that_were_refused() {
        let mut ends = network(2);
        let last = ends.pop().expect("two endpoints");
        let mut frame = Frame { head: vec![1], ..Frame::default() };
        while ends[0].send(NodeId(1), &mut frame) != Err(SendError::Full) {
            frame.head.push(1);
        }
        drop(last);
        assert_eq!(ends[0].recv(None, &mut frame), Ok(Received::Woken));
    }

    #[test]
    fn unknown_nodes_are_named() {
        let unknown = Error::UnknownNode { node: NodeId(7), nodes: 1 };
        assert_eq!(
            unknown.to_string(),
            "node n7 is not in a network of 1 nodes: nodes are numbered from 0"
        );
        let mut ends = network(1);
        assert_eq!(
            ends[0].send(NodeId(7), &mut Frame::default()),
            Err(SendError::Transport(unknown))
        );
    }

    #[test]
    fn frames_are_moved_and_their_memory_comes_back() {
        let mut ends = network(2);
        let mut frame = Frame { head: vec![1; 10], ..Frame::default() };
        frame.values.push(&[1.0_f64; 100]);
        let (head, values) = (frame.head.as_ptr(), frame.values.bytes().as_ptr());
        ends[0].send(NodeId(1), &mut frame).expect("room");
        let mut received = Frame { head: Vec::with_capacity(500), ..Frame::default() };
        assert_eq!(ends[1].recv(None, &mut received), Ok(Received::Frame(NodeId(0))));
        assert_eq!((received.head.as_ptr(), received.values.bytes().as_ptr()), (head, values));
        assert_eq!(ends[1].recv(Some(Duration::ZERO), &mut received), Ok(Received::TimedOut));
        ends[0].send(NodeId(1), &mut received).expect("room");
        assert!(received.is_empty() && received.head.capacity() >= 500);
    }
}
