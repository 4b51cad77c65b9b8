//! All nodes in one process: frames are moved from one thread to another, never copied.
//!
//! Each endpoint has one inbox behind one lock. A sender holds the receiver's lock while it moves a
//! frame in; a receiver takes all queued frames out at once and serves them without a lock. An
//! endpoint that fails reports that to the inboxes of its peers. Not here: encoding, any delay, and
//! lost frames.

mod inbox;

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport, Wake};

use crate::error::Error;
use inbox::{Batch, Inbox, Intake, Losses, Offer, keep_spare};

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
        batch: Batch::new(),
        losses: Losses::new(),
        spares: Vec::new(),
        refused: Vec::new(),
        just_woken: false,
        has_left: false,
    })
    .collect()
}

/// One node's endpoint of an in-process network.
///
/// At most 256 frames and 32 MiB wait for one peer (a larger frame goes alone), and as much again
/// that the peer has taken out but not served yet; then [`Transport::send`] returns `Full`. Senders
/// are served in the order in which they sent.
///
/// | an endpoint ends | its peers |
/// | --- | --- |
/// | `leave(Finished)`, then dropped | receive the frames that it sent; sends to it fail with [`Error::PeerGone`] |
/// | dropped without `leave`, also by a panic | receive the frames that it sent, then [`Received::Lost`] with [`Loss::Failed`]; frames to it are dropped |
/// | `leave` with another [`CloseReason`] | the same, with the losses of that reason |
///
/// A transport that wraps this one has to pass `leave` on, or each of its ends counts as a failure.
#[derive(Debug)]
pub struct InProc {
    ends: Arc<[End]>,
    node: NodeId,
    /// Frames taken out of the inbox, not served yet.
    batch: Batch,
    /// Losses taken out with them, served when all of the batch is.
    losses: Losses,
    /// Memory on its way back to the senders.
    spares: Vec<Frame>,
    /// Scratch of [`InProc::fetch`], empty between calls.
    refused: Vec<NodeId>,
    /// True if the last `recv` returned `Woken`: then a queued frame or loss goes first.
    just_woken: bool,
    has_left: bool,
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
        if self.is_served() {
            self.fetch(wait);
        }
        let wakes_last = self.just_woken && !self.is_served();
        self.just_woken = !wakes_last && self.end().take_wake();
        if self.just_woken {
            return Ok(Received::Woken);
        }
        let Some((from, received)) = self.batch.pop_front() else {
            let loss = self.losses.pop_front();
            return Ok(loss.map_or(Received::TimedOut, |(node, loss)| Received::Lost(node, loss)));
        };
        keep_spare(&mut self.spares, mem::replace(frame, received));
        Ok(Received::Frame(from))
    }

    fn waker(&self) -> InProcWaker {
        InProcWaker { ends: Arc::clone(&self.ends), node: self.node }
    }

    /// Never waits: what was sent is in the inboxes of the peers. The first call counts.
    fn leave(&mut self, reason: CloseReason) {
        if mem::replace(&mut self.has_left, true) {
            return;
        }
        let given_up = match reason {
            CloseReason::Finished => return,
            CloseReason::Failed => None,
            CloseReason::Lost(node) => self.ends.get(node.index()).map(|end| (node, end)),
        };
        self.close(Intake::Dropping);
        let own = self.node;
        let ends = (0..).map(NodeId).zip(self.ends.iter());
        for (peer, end) in ends.filter(|(peer, _)| *peer != own) {
            match given_up {
                Some((node, _)) if node == peer => end.lose(own, Loss::GaveUp),
                Some((node, given_up)) if node != own => {
                    given_up.lock().drop_frames_of(peer);
                    end.lose(node, Loss::Reported(own));
                    end.lose(own, Loss::Failed);
                }
                _ => end.lose(own, Loss::Failed),
            }
        }
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

    /// Returns true if all that was taken out of the inbox is served.
    fn is_served(&self) -> bool {
        self.batch.is_empty() && self.losses.is_empty()
    }

    /// Waits until there is a frame or a loss, a waker is called or the wait is over, and takes all
    /// queued frames and losses.
    fn fetch(&mut self, wait: Option<Duration>) {
        let end = &self.ends[self.node.index()];
        let mut inbox = end.lock();
        if inbox.is_empty() && wait != Some(Duration::ZERO) {
            inbox = end.wait(inbox, wait);
        }
        inbox.take(&mut self.batch, &mut self.losses, &mut self.spares, &mut self.refused);
        drop(inbox);
        for sender in self.refused.drain(..) {
            self.ends[sender.index()].wake();
        }
    }

    /// Closes the inbox, and wakes the senders that wait for room in it.
    fn close(&self, intake: Intake) {
        let refused = self.end().lock().close(intake);
        for sender in refused {
            self.ends[sender.index()].wake();
        }
    }
}

impl Drop for InProc {
    /// An endpoint that is dropped before it has left has failed.
    fn drop(&mut self) {
        self.leave(CloseReason::Failed);
        self.close(Intake::Closed);
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

    /// Reports a lost peer to this endpoint, unless it is known.
    fn lose(&self, node: NodeId, loss: Loss) {
        let mut inbox = self.lock();
        inbox.lose(node, loss);
        let waiting = inbox.waiting;
        drop(inbox);
        if waiting {
            self.arrived.notify_one();
        }
    }

    /// Waits until the inbox holds a frame or a loss, a waker is called, or `wait` is over.
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
    use std::sync::mpsc;
    use std::thread;

    use adapm_verify::silence::{Silence, patience};

    use super::*;

    fn ends<const N: usize>() -> [InProc; N] {
        network(N).try_into().expect("as many as asked for")
    }

    /// Returns all that is told without a wait, each frame by its head.
    fn told(end: &mut InProc) -> Vec<(Received, Vec<u8>)> {
        let mut frame = Frame::default();
        let mut told = Vec::new();
        loop {
            match end.recv(Some(Duration::ZERO), &mut frame).expect("nothing fails in `recv`") {
                Received::TimedOut => return told,
                received @ Received::Frame(_) => told.push((received, frame.head.clone())),
                received => told.push((received, vec![])),
            }
        }
    }

    fn send(end: &mut InProc, to: u16, head: u8) -> Result<(), SendError<Error>> {
        end.send(NodeId(to), &mut Frame { head: vec![head], ..Frame::default() })
    }

    fn frame(from: u16, head: u8) -> (Received, Vec<u8>) {
        (Received::Frame(NodeId(from)), vec![head])
    }

    fn lost(node: u16, loss: Loss) -> (Received, Vec<u8>) {
        (Received::Lost(NodeId(node), loss), vec![])
    }

    #[test]
    fn a_finished_endpoint_refuses_frames_and_delivers_its_own() {
        let [mut a, mut b] = ends();
        assert_eq!(send(&mut b, 0, 1), Ok(()));
        b.leave(CloseReason::Finished);
        b.leave(CloseReason::Failed);
        drop(b);
        let mut refused = Frame { head: vec![2], ..Frame::default() };
        let gone = Err(SendError::Transport(Error::PeerGone { node: NodeId(1) }));
        assert_eq!(a.send(NodeId(1), &mut refused), gone);
        assert_eq!(refused.head, [2]);
        assert_eq!(told(&mut a), [frame(1, 1)], "what it sent, and no loss");
    }

    #[test]
    fn a_dropped_endpoint_is_lost_behind_its_frames() {
        let [mut a, mut b, mut c] = ends();
        for head in [1, 2] {
            assert_eq!(send(&mut b, 0, head), Ok(()));
        }
        drop(b);
        assert_eq!(send(&mut a, 1, 3), Ok(()), "a frame to it is dropped");
        assert_eq!(send(&mut c, 0, 4), Ok(()));
        assert_eq!(told(&mut a), [frame(1, 1), frame(1, 2), frame(2, 4), lost(1, Loss::Failed)]);
        assert_eq!(told(&mut c), [lost(1, Loss::Failed)]);
        assert_eq!((send(&mut a, 1, 5), told(&mut a)), (Ok(()), vec![]));
    }

    #[test]
    fn wakes_go_before_losses_and_starve_none() {
        let [mut a, b] = ends();
        drop(b);
        let mut frame = Frame::default();
        for expected in [Received::Woken, Received::Lost(NodeId(1), Loss::Failed), Received::Woken]
        {
            a.waker().wake();
            assert_eq!(a.recv(None, &mut frame), Ok(expected));
        }
    }

    #[test]
    fn a_loss_ends_a_wait_in_progress() {
        let [mut a, b] = ends();
        let shared = Arc::clone(&a.ends);
        let (tell, told) = mpsc::channel();
        thread::spawn(move || tell.send(a.recv(None, &mut Frame::default())));
        // A wait that has not begun by then would find the loss without a notification.
        let mut silence = Silence::new();
        while !shared[0].lock().waiting {
            assert!(!silence.is_too_long(()), "n0 does not wait");
            thread::yield_now();
        }
        drop(b);
        let lost = Ok(Received::Lost(NodeId(1), Loss::Failed));
        assert_eq!(told.recv_timeout(patience()), Ok(lost), "n0 waits on");
    }

    #[test]
    fn a_node_that_was_given_up_is_cut_off_from_those_that_know() {
        let [mut a, mut b, mut c] = ends();
        c.leave(CloseReason::Lost(NodeId(1)));
        assert_eq!((send(&mut a, 1, 1), send(&mut b, 0, 2)), (Ok(()), Ok(())));
        let [reported, failed] = [Loss::Reported(NodeId(2)), Loss::Failed];
        assert_eq!(told(&mut a), [lost(1, reported), lost(2, failed)]);
        assert_eq!(told(&mut b), [lost(2, Loss::GaveUp)]);
        b.leave(CloseReason::Lost(NodeId(2)));
        assert_eq!(told(&mut a), [], "both are known to be lost");
        a.leave(CloseReason::Failed);
    }

    #[test]
    fn a_node_that_was_given_up_is_told_of_later_losses() {
        let [mut a, mut b, mut c] = ends();
        c.leave(CloseReason::Lost(NodeId(1)));
        a.leave(CloseReason::Lost(NodeId(1)));
        assert_eq!(told(&mut b), [lost(2, Loss::GaveUp), lost(0, Loss::GaveUp)]);
    }

    #[test]
    fn a_reason_that_names_no_peer_is_a_failure() {
        for unknown in [0, 7] {
            let [mut a, mut b] = ends();
            a.leave(CloseReason::Lost(NodeId(unknown)));
            assert_eq!(told(&mut b), [lost(0, Loss::Failed)], "n{unknown}");
        }
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
        assert_eq!(ends[0].send(NodeId(1), &mut frame), Ok(()));
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
