//! Measures round trips and bandwidth of every pair of nodes, one pair at a time, over any
//! transport.
//!
//! Node 0 asks one node after the other to measure its way to each other node and to report; a node
//! that is not asked answers what comes. So at most two nodes are busy at any time, and all others
//! keep their links alive by waiting.
//!
//! ```text
//! node 0            node 1              node 2
//!   |--- Measure(2) --->|                   |
//!   |                   |--- Ping --------->|
//!   |                   |<-- Pong ----------|   again and again
//!   |                   |--- Bulk, Bulk --->|   64 KiB at first, up to 4 MiB as long as answers come soon
//!   |                   |<-- Got(bytes) ----|
//!   |<-- Report --------|                   |
//! ```

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Loss, Received, SendError, Transport};
use serde::{Deserialize, Serialize};

/// The measured link from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Seconds from a small frame to its answer: half of all took at most this long.
    pub(super) rtt_median: f64,
    /// Seconds that all but one in a hundred took at most.
    pub(super) rtt_p99: f64,
    /// Bytes of values a second that arrived.
    pub(super) bandwidth: f64,
}

/// An error of a measurement.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError<E> {
    #[error("{0}")]
    Transport(E),
    #[error("node {node}{} was lost: {loss}; start again", at(*address))]
    Lost { node: NodeId, address: Option<SocketAddr>, loss: Loss },
    /// The process runs but does not answer.
    #[error("node {node}{} has not answered for {:.0} s; start again", at(*address), waited.as_secs_f64())]
    Silent { node: NodeId, address: Option<SocketAddr>, waited: Duration },
    /// It has sent a message that no node sends here.
    #[error("node {node} does not run check-net; run the same command on all nodes")]
    Odd { node: NodeId },
    /// The run was asked to stop.
    #[error("stopped")]
    Stopped,
}

/// A message between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Word {
    Ping,
    Pong,
    /// With values, and true if the receiver is to report how many have come.
    Bulk(bool),
    /// Bytes of values since the last time.
    Got(u64),
    /// Measure the way to that node for this many microseconds.
    Measure(u16, u64),
    Report(Measured),
    Finish,
}

/// A word, whose it is, and the bytes of values that came with it.
type Came = (NodeId, Word, usize);

/// One node's end of the measurements.
pub(super) struct Probe<'a, T> {
    transport: &'a mut T,
    node: NodeId,
    nodes: usize,
    stop: &'a AtomicBool,
    frame: Frame,
    /// Bytes of values that came from each node and were not yet reported.
    untold: Vec<u64>,
    /// A node that answers at all does so within this time.
    patience: Duration,
    /// Messages that came while a way was full.
    waiting: VecDeque<Came>,
}

impl<'a, T: Transport> Probe<'a, T> {
    /// Returns the end of `node`. Raising `stop` ends what it does.
    pub(super) fn new(
        transport: &'a mut T,
        node: NodeId,
        nodes: usize,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            transport,
            node,
            nodes,
            stop,
            frame: Frame::default(),
            untold: vec![0; nodes],
            patience: PATIENCE,
            waiting: VecDeque::new(),
        }
    }

    /// Waits at most so long for an answer.
    pub(super) fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Node 0: has every pair measured, about `slice` each, and passes to `each` in order: from,
    /// to, what was measured.
    pub(super) fn lead(
        &mut self,
        slice: Duration,
        mut each: impl FnMut(NodeId, NodeId, Measured),
    ) -> Result<(), ProbeError<T::Error>> {
        let ids = u16::try_from(self.nodes).unwrap_or(u16::MAX);
        for from in (0..ids).map(NodeId) {
            for to in (0..ids).map(NodeId).filter(|to| *to != from) {
                let measured = if from == self.node {
                    self.measure(to, slice)?
                } else {
                    let micros = u64::try_from(slice.as_micros()).unwrap_or(u64::MAX);
                    self.say(from, Word::Measure(to.0, micros))?;
                    match self.answer(from, self.patience + slice)? {
                        Word::Report(measured) => measured,
                        _ => return Err(ProbeError::Odd { node: from }),
                    }
                };
                each(from, to, measured);
            }
        }
        let own = self.node;
        for to in (0..ids).map(NodeId).filter(|to| *to != own) {
            self.say(to, Word::Finish)?;
        }
        Ok(())
    }

    /// All others: answers, measures when asked to, until node 0 has finished.
    pub(super) fn follow(&mut self) -> Result<(), ProbeError<T::Error>> {
        loop {
            let Some((node, word)) = self.next(self.patience)? else { continue };
            match word {
                Word::Measure(to, micros) if usize::from(to) < self.nodes && to != self.node.0 => {
                    let slice = Duration::from_micros(micros).min(SLICE_MAX);
                    let measured = self.measure(NodeId(to), slice)?;
                    self.say(node, Word::Report(measured))?;
                }
                Word::Finish => return Ok(()),
                _ => return Err(ProbeError::Odd { node }),
            }
        }
    }

    /// Measures the way to `to`: half of the time round trips, half of it bandwidth.
    fn measure(&mut self, to: NodeId, slice: Duration) -> Result<Measured, ProbeError<T::Error>> {
        // The first frames of a link pay for what is set up by them.
        for _ in 0..PINGS_FIRST {
            self.ping(to)?;
        }
        let (begin, mut seconds) = (Instant::now(), Vec::new());
        while seconds.len() < PINGS_MIN
            || (seconds.len() < PINGS_MAX && begin.elapsed() < slice / 2)
        {
            seconds.push(self.ping(to)?.as_secs_f64());
        }
        seconds.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share) as usize];
        Ok(Measured {
            rtt_median: at(0.5),
            rtt_p99: at(0.99),
            bandwidth: self.bandwidth(to, slice / 2)?,
        })
    }

    fn ping(&mut self, to: NodeId) -> Result<Duration, ProbeError<T::Error>> {
        let begin = Instant::now();
        self.say(to, Word::Ping)?;
        match self.answer(to, self.patience)? {
            Word::Pong => Ok(begin.elapsed()),
            _ => Err(ProbeError::Odd { node: to }),
        }
    }

    /// Bytes a second, with few enough under way that a slow link is through with them soon.
    fn bandwidth(&mut self, to: NodeId, time: Duration) -> Result<f64, ProbeError<T::Error>> {
        let (begin, mut under_way, mut arrived) = (Instant::now(), 0, 0);
        let mut told = begin;
        let mut batch = BULK_BYTES;
        loop {
            let goes_on = arrived == 0 || begin.elapsed() < time;
            while goes_on && (under_way == 0 || under_way + batch <= 4 * (batch - BULK_BYTES)) {
                let frames = batch / BULK_BYTES;
                for frame in 1..=frames {
                    self.send(to, Word::Bulk(frame == frames), BULK_BYTES)?;
                }
                under_way += batch;
            }
            if under_way == 0 {
                return Ok(arrived as f64 / begin.elapsed().as_secs_f64().max(1e-9));
            }
            match self.answer(to, self.patience)? {
                Word::Got(bytes) => {
                    arrived += bytes;
                    under_way =
                        under_way.saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
                }
                _ => return Err(ProbeError::Odd { node: to }),
            }
            if told.elapsed() < SOON && batch < BATCH_BYTES_MAX {
                batch *= 2;
            }
            told = Instant::now();
        }
    }

    /// Returns the next word of `node` that asks for no answer.
    fn answer(&mut self, node: NodeId, patience: Duration) -> Result<Word, ProbeError<T::Error>> {
        match self.next(patience)? {
            Some((from, word)) if from == node => Ok(word),
            Some((from, _)) => Err(ProbeError::Odd { node: from }),
            None => Err(ProbeError::Silent {
                node,
                address: self.transport.address(node),
                waited: patience,
            }),
        }
    }

    /// Answers what can be answered and returns the next other word; `None` if there is none for so
    /// long.
    fn next(&mut self, patience: Duration) -> Result<Option<(NodeId, Word)>, ProbeError<T::Error>> {
        let begin = Instant::now();
        while begin.elapsed() < patience {
            let received = match self.waiting.pop_front() {
                Some(waiting) => Some(waiting),
                None => self.receive(LOOK_AGAIN)?,
            };
            match received {
                None => {}
                Some((from, Word::Ping, _)) => self.say(from, Word::Pong)?,
                Some((from, Word::Bulk(tells), bytes)) => {
                    let untold = &mut self.untold[from.index()];
                    *untold += bytes as u64;
                    if tells {
                        let bytes = std::mem::take(untold);
                        self.say(from, Word::Got(bytes))?;
                    }
                }
                Some((from, word, _)) => return Ok(Some((from, word))),
            }
        }
        Ok(None)
    }

    /// Returns a word and the bytes of values that came with it, or nothing for a moment.
    fn receive(&mut self, wait: Duration) -> Result<Option<Came>, ProbeError<T::Error>> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Stopped);
        }
        match self.transport.recv(Some(wait), &mut self.frame).map_err(ProbeError::Transport)? {
            Received::Frame(from) => {
                let word = postcard::from_bytes(&self.frame.head)
                    .ok()
                    .filter(|_| from.index() < self.nodes);
                let word = word.ok_or(ProbeError::Odd { node: from })?;
                Ok(Some((from, word, self.frame.values.len())))
            }
            Received::Woken | Received::TimedOut => Ok(None),
            Received::Lost(node, loss) => {
                Err(ProbeError::Lost { node, address: self.transport.address(node), loss })
            }
        }
    }

    fn say(&mut self, to: NodeId, word: Word) -> Result<(), ProbeError<T::Error>> {
        self.send(to, word, 0)
    }

    /// Sends, and waits while the way is full; what comes meanwhile is answered later.
    fn send(&mut self, to: NodeId, word: Word, bytes: usize) -> Result<(), ProbeError<T::Error>> {
        let head = postcard::to_allocvec(&word).map_err(|_| ProbeError::Odd { node: self.node })?;
        let mut frame = Frame { head, ..Frame::default() };
        frame.values.resize(bytes);
        loop {
            match self.transport.send(to, &mut frame) {
                Ok(()) => return Ok(()),
                Err(SendError::Transport(error)) => return Err(ProbeError::Transport(error)),
                Err(SendError::Full) if self.waiting.len() < WAITING_MAX => {
                    let received = self.receive(LOOK_AGAIN)?;
                    self.waiting.extend(received);
                }
                // No probe sends so much unasked.
                Err(SendError::Full) => return Err(ProbeError::Odd { node: to }),
            }
        }
    }
}

/// Returns the part of a message that says where a node is.
fn at(address: Option<SocketAddr>) -> String {
    address.map_or_else(String::new, |address| format!(" at {address}"))
}

/// Pings that do not count.
const PINGS_FIRST: usize = 10;
const PINGS_MIN: usize = 20;
const PINGS_MAX: usize = 5_000;

/// Values of one frame.
const BULK_BYTES: usize = 64 << 10;
/// Bytes after which a node reports how much has come, on a fast way; four times that fill a
/// gigabit over 30 ms.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// An answer within this time lets the next batch be twice as large.
const SOON: Duration = Duration::from_millis(50);

/// A pair is measured for at most this long, even if node 0 asks for more.
const SLICE_MAX: Duration = Duration::from_secs(60);
/// A node that answers at all does so within this time, also on a slow link.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval at which the stop flag is checked.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// More than all nodes have under way at any time: pings, and a few mebibytes.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests;
