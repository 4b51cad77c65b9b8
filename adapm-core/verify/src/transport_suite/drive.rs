//! Drivers of endpoints in tests: frames whose content follows from a number, and loops that end in
//! a panic instead of a hang.

use core::time::Duration;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use adapm_core::id::NodeId;
use adapm_core::transport::{Frame, Received, SendError, Transport};

use crate::arb::Choices;
use crate::silence::patience;

/// One turn of driving an idle endpoint.
pub(super) const TURN: Duration = Duration::from_millis(1);
/// Number of frames of [`LOAD_BYTES`], or as many bytes in larger ones, after which a link that is
/// not full has no bound.
pub(super) const LOADS_MAX: u64 = 4_096;
/// More wakes than are ever requested at once.
const WAKES_MAX: usize = 30_000;
/// Size of a frame that fills a link, in bytes.
pub(super) const LOAD_BYTES: usize = 64 << 10;

/// Returns the number of turns of driving until a frame counts as lost: in most of them two
/// endpoints wait.
pub(super) fn turns_max() -> usize {
    (patience().as_millis() / (2 * TURN.as_millis())) as usize
}

/// One node of the crowd: its progress with each peer.
pub(super) struct Party {
    node: u16,
    peers: Vec<u16>,
    sent: Vec<u64>,
    received: Vec<u64>,
    /// Refused sends, not yet repeated.
    refused: VecDeque<(usize, Frame)>,
    scratch: Frame,
}

impl Party {
    pub(super) fn new(node: u16, nodes: u16) -> Self {
        let peers: Vec<u16> = (0..nodes).filter(|peer| *peer != node).collect();
        let zeros = vec![0; peers.len()];
        let (sent, received) = (zeros.clone(), zeros);
        Self { node, peers, sent, received, refused: VecDeque::new(), scratch: Frame::default() }
    }

    pub(super) fn is_done(&self, frames: u64) -> bool {
        self.refused.is_empty()
            && self.sent.iter().chain(&self.received).all(|count| *count == frames)
    }

    /// Sends to every peer until its link is full or all is sent.
    pub(super) fn send_all<T: Transport>(&mut self, end: &mut T, frames: u64) {
        for _ in 0..self.refused.len() {
            let (at, frame) = self.refused.pop_front().expect("counted");
            self.send(end, at, frame);
        }
        for at in 0..self.peers.len() {
            while self.sent[at] < frames && self.refused.iter().all(|(refused, _)| *refused != at) {
                let frame = numbered(self.node, self.peers[at], self.sent[at]);
                self.sent[at] += 1;
                self.send(end, at, frame);
            }
        }
    }

    fn send<T: Transport>(&mut self, end: &mut T, at: usize, mut frame: Frame) {
        match end.send(NodeId(self.peers[at]), &mut frame) {
            Ok(()) => {}
            Err(SendError::Full) => self.refused.push_back((at, frame)),
            Err(SendError::Transport(error)) => panic!("send failed: {error}"),
        }
    }

    pub(super) fn receive<T: Transport>(&mut self, end: &mut T) {
        match expect(end.recv(None, &mut self.scratch)) {
            Received::Frame(from) => {
                let at = self.peers.iter().position(|peer| *peer == from.0);
                self.received[at.expect("the watch has looked at the sender")] += 1;
            }
            Received::Woken => {}
            received => panic!("{received:?} came to n{} instead of a frame", self.node),
        }
    }
}

/// Sends frames with so many bytes of values to `to`, with nothing in flight to it, until the link
/// is full. Returns the number of frames sent, and the refused one.
pub(super) fn fill<T: Transport>(end: &mut T, to: NodeId, bytes: usize) -> (u64, Frame) {
    let most = LOADS_MAX * LOAD_BYTES as u64 / bytes as u64;
    for number in 0..most {
        let mut frame = filled(8, bytes, number);
        match end.send(to, &mut frame) {
            Ok(()) => {}
            Err(SendError::Full) => return (number, frame),
            Err(SendError::Transport(error)) => panic!("`send` to {to} failed: {error}"),
        }
    }
    panic!(
        "the way to {to} took {most} frames of {bytes} bytes that nobody received: it needs a bound in \
         bytes"
    );
}

/// Runs a thread. Returns its result, or the text of its panic, through the channel.
pub(super) fn spawn<R: Send + 'static>(
    tell: &mpsc::Sender<thread::Result<R>>,
    run: impl FnOnce() -> R + Send + 'static,
) {
    let tell = tell.clone();
    // No receiver is left once the rule has failed elsewhere.
    thread::spawn(move || drop(tell.send(catch_unwind(AssertUnwindSafe(run)))));
}

/// Drives an endpoint to which no node sends.
pub(super) fn drive<T: Transport>(end: &mut T) {
    let received = expect(end.recv(Some(Duration::ZERO), &mut Frame::default()));
    assert!(!matches!(received, Received::Frame(_)), "{received:?} went to the wrong node");
}

/// Uses up pending wakes. Returns their number, which must be finite.
pub(super) fn hear_wakes<T: Transport>(end: &mut T) -> usize {
    let mut scratch = Frame::default();
    let woken = |_: &usize| expect(end.recv(Some(Duration::ZERO), &mut scratch)) == Received::Woken;
    let heard = (0..WAKES_MAX).take_while(woken).count();
    assert!(heard < WAKES_MAX, "`recv` tells wakes forever: {heard}, and no waker was called");
    heard
}

pub(super) fn send<T: Transport>(end: &mut T, to: NodeId, frame: &mut Frame) {
    for _ in 0..turns_max() {
        match end.send(to, frame) {
            Ok(()) => return,
            Err(SendError::Full) => {
                let received = expect(end.recv(Some(TURN), &mut Frame::default()));
                assert!(!matches!(received, Received::Frame(_)), "nobody sent to {to}'s peer");
            }
            Err(SendError::Transport(error)) => panic!("`send` to {to} failed: {error}"),
        }
    }
    panic!("the way to {to} stays full, though all that was sent before was received");
}

/// Receives one frame while driving `others`, to which no node sends.
pub(super) fn receive<T: Transport>(
    end: &mut T,
    frame: &mut Frame,
    others: &mut [&mut T],
) -> NodeId {
    for _ in 0..turns_max() {
        if let Received::Frame(from) = expect(end.recv(Some(TURN), frame)) {
            return from;
        }
        others.iter_mut().for_each(|other| drive(*other));
    }
    panic!("a frame that was sent did not come");
}

pub(super) fn expect<E: core::error::Error>(received: Result<Received, E>) -> Received {
    received.unwrap_or_else(|error| panic!("`recv` failed: {error}"))
}

/// Returns the frame `number` from one node to another: both ids, the number, and a size and
/// content that follow from them.
fn numbered(from: u16, to: u16, number: u64) -> Frame {
    let seed = u64::from(from) << 48 | u64::from(to) << 32 | number;
    let mut choices = Choices::from_seed(seed);
    let values = match choices.below(10) {
        0 => 0,
        1 => choices.below(200_000) as usize,
        _ => choices.below(2_000) as usize,
    };
    let mut frame = filled(choices.below(300) as usize, values, seed);
    frame.head.extend_from_slice(&seed.to_le_bytes());
    frame
}

/// Returns the frame `number` of those that fill a link.
pub(super) fn load(number: u64) -> Frame {
    filled(8, LOAD_BYTES, number)
}

pub(super) fn filled(head: usize, values: usize, seed: u64) -> Frame {
    let mut choices = Choices::from_seed(seed);
    let mut bytes = seed.to_le_bytes();
    let mut frame = Frame { head: Vec::with_capacity(head), ..Frame::default() };
    frame.head.extend((0..head).map(|at| bytes[at % 8] ^ (at / 8) as u8));
    frame.values.resize(values);
    for chunk in frame.values.bytes_mut().chunks_mut(512) {
        bytes = choices.word().to_le_bytes();
        chunk.iter_mut().zip(bytes.iter().cycle()).for_each(|(to, from)| *to = *from);
    }
    frame
}

pub(super) fn pair<T>(ends: Vec<T>) -> [T; 2] {
    ends.try_into().ok().expect("the constructor returns one endpoint per node")
}

pub(super) fn triple<T>(ends: Vec<T>) -> [T; 3] {
    ends.try_into().ok().expect("the constructor returns one endpoint per node")
}
