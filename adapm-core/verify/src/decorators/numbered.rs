//! Frames with numbers, so that a lost one is named instead of waited for in silence.
//!
//! Not here: the content of frames, and a link that stops delivering anything at all.

use core::net::SocketAddr;
use core::time::Duration;
use std::time::Instant;

use adapm_core::id::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport, Way};

/// A transport whose frames carry numbers: `recv` fails if one was lost, repeated or overtaken, and
/// names it.
///
/// All endpoints of a network must be wrapped. Each frame is 9 bytes longer; an endpoint that has
/// received nothing for a tenth of a second reports its number of sent frames to its peers, so that
/// the loss of the last one is noticed.
///
/// ```
/// use adapm_core::NodeId;
/// use adapm_core::transport::{Frame, Received, Transport};
/// use adapm_transport::inproc;
/// use adapm_verify::Numbered;
///
/// let mut ends = Numbered::network(inproc::network(2));
/// let mut frame = Frame { head: vec![1, 2, 3], ..Frame::default() };
/// ends[0].send(NodeId(1), &mut frame)?;
/// // The same, sent by a transport that loses a frame, would end in
/// // "frame 0 of n0 never came: n0 has sent 1".
/// assert_eq!(ends[1].recv(None, &mut frame)?, Received::Frame(NodeId(0)));
/// assert_eq!(frame.head, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Numbered<T> {
    inner: T,
    /// By node id, as far as it was met.
    peers: Vec<Numbers>,
    /// Time when the last frame was sent.
    sent_at: Instant,
}

/// The frames to and from one peer.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    sent: u64,
    /// The number of sent frames that was reported to the peer.
    told: u64,
    received: u64,
}

/// The error of a [`Numbered`] transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberedError<E> {
    /// A frame was lost or overtaken. Numbers start at 0.
    #[error("frame {number} of {from} never came: {from} has sent {sent}")]
    NeverCame {
        /// The sender.
        from: NodeId,
        /// The frame that was due.
        number: u64,
        /// Frames that the sender had sent by then.
        sent: u64,
    },
    /// A frame came twice, or after a later one.
    #[error("frame {number} of {from} came again: frame {due} was due")]
    CameAgain {
        /// The sender.
        from: NodeId,
        /// The frame that came.
        number: u64,
        /// The frame that was due.
        due: u64,
    },
    /// A frame was cut or changed, or its sender is not [`Numbered`].
    #[error("a frame of {from} has no number")]
    NotNumbered {
        /// The sender.
        from: NodeId,
    },
    /// The transport below has failed.
    #[error("{0}")]
    Transport(E),
}

impl<T: Transport> Numbered<T> {
    /// Wraps one endpoint.
    #[must_use]
    pub fn new(inner: T) -> Self {
        Self { inner, peers: Vec::new(), sent_at: Instant::now() }
    }

    /// Wraps the endpoints of a network.
    #[must_use]
    pub fn network(ends: Vec<T>) -> Vec<Self> {
        ends.into_iter().map(Self::new).collect()
    }

    fn peer(&mut self, node: NodeId) -> &mut Numbers {
        if self.peers.len() <= node.index() {
            self.peers.resize(node.index() + 1, Numbers::default());
        }
        &mut self.peers[node.index()]
    }

    /// Checks the number of a received frame. Returns true if the frame is for the user.
    fn check(&mut self, from: NodeId, frame: &mut Frame) -> Result<bool, NumberedError<T::Error>> {
        let (number, kind) = read(frame).ok_or(NumberedError::NotNumbered { from })?;
        let peer = self.peer(from);
        let due = peer.received;
        // A loss is reported once.
        peer.received = due.max(if kind == FRAME { number.saturating_add(1) } else { number });
        match kind {
            FRAME if number == due => Ok(true),
            FRAME if number < due => Err(NumberedError::CameAgain { from, number, due }),
            _ if number <= due && kind == COUNT => Ok(false),
            _ => {
                Err(NumberedError::NeverCame { from, number: due, sent: self.peer(from).received })
            }
        }
    }

    /// Reports to peers how many frames they must have by now.
    fn tell_counts(&mut self) {
        for (node, peer) in (0..).map(NodeId).zip(&mut self.peers) {
            if peer.told == peer.sent {
                continue;
            }
            let mut count = Frame::default();
            write(&mut count, peer.sent, COUNT);
            // Without room there are frames to come, and the count is sent later.
            if self.inner.send(node, &mut count).is_ok() {
                peer.told = peer.sent;
            }
        }
    }
}

impl<T: Transport> Transport for Numbered<T> {
    type Error = NumberedError<T::Error>;
    type Waker = T::Waker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Self::Error>> {
        let (number, head) = (self.peer(to).sent, frame.head.len());
        write(frame, number, FRAME);
        let sent = self.inner.send(to, frame);
        self.sent_at = Instant::now();
        match sent {
            Ok(()) => {
                self.peer(to).sent += 1;
                return Ok(());
            }
            Err(_) => frame.head.truncate(head),
        }
        sent.map_err(|error| match error {
            SendError::Full => SendError::Full,
            SendError::Transport(error) => SendError::Transport(NumberedError::Transport(error)),
        })
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Self::Error> {
        let end = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let step = left.map_or(QUIET, |left| left.min(QUIET));
            match self.inner.recv(Some(step), frame).map_err(NumberedError::Transport)? {
                Received::Frame(from) => {
                    if self.check(from, frame)? {
                        return Ok(Received::Frame(from));
                    }
                    frame.clear();
                }
                Received::TimedOut => {
                    if self.sent_at.elapsed() >= QUIET {
                        self.tell_counts();
                    }
                    if left.is_some_and(|left| left <= step) {
                        return Ok(Received::TimedOut);
                    }
                }
                received => return Ok(received),
            }
        }
    }

    fn waker(&self) -> T::Waker {
        self.inner.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.tell_counts();
        self.inner.leave(reason);
    }

    fn way(&self, node: NodeId) -> Way {
        self.inner.way(node)
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        self.inner.address(node)
    }
}

/// Appends a number and what it counts to the head.
fn write(frame: &mut Frame, number: u64, kind: u8) {
    frame.head.extend_from_slice(&number.to_le_bytes());
    frame.head.push(kind);
}

/// Takes both out again; `None` if there are none.
fn read(frame: &mut Frame) -> Option<(u64, u8)> {
    let (_, trailer) = frame.head.split_last_chunk::<TRAILER_BYTES>()?;
    let (number, kind) = (trailer.first_chunk().copied()?, trailer[TRAILER_BYTES - 1]);
    frame.head.truncate(frame.head.len() - TRAILER_BYTES);
    (kind <= COUNT).then_some((u64::from_le_bytes(number), kind))
}

/// The number is that of this frame.
const FRAME: u8 = 0;
/// The number is that of all frames so far, and this is none of them.
const COUNT: u8 = 1;
const TRAILER_BYTES: usize = 9;
/// Time without frames after which the counts of sent frames are sent to the peers.
const QUIET: Duration = Duration::from_millis(100);
