//! An endpoint under watch: each call is timed, and each frame that arrives is compared with those
//! sent, so that every rule notices faults beside its own claim.
//!
//! Not here: the handling of faults ([`super::check`]).

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use adapm_core::id::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport};
use foldhash::fast::FixedState;

use crate::silence::patience;

/// An endpoint of the transport under test. Every rule gets these instead of the endpoints
/// themselves.
pub struct Watched<T> {
    /// Present until the drop.
    inner: Option<T>,
    node: NodeId,
    /// Peers that were reported as lost.
    lost: Vec<bool>,
    log: Arc<Log>,
}

/// The record of calls and frames of one network.
pub(super) struct Log {
    began: Instant,
    /// By node: the call in progress, see [`Call::pack`]; 0: none.
    calls: Vec<AtomicU64>,
    /// Calls that have begun or ended.
    pub(super) activity: AtomicU64,
    /// The way from node `i` to node `j` is at `i * nodes + j`.
    ways: Vec<Mutex<Way>>,
    /// By node: its close reason.
    left: Vec<Mutex<Option<CloseReason>>>,
    fault: Mutex<Option<String>>,
}

/// One node's frames to another.
#[derive(Default)]
struct Way {
    /// Frames taken and not received, oldest first.
    in_flight: VecDeque<Print>,
    received: u64,
    /// The last received frames.
    latest: VecDeque<Print>,
    /// True if the last frame was refused, and its sender has not been woken since.
    is_refused: bool,
    /// The last refused frame.
    refused: Option<Print>,
}

/// The fingerprint of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Print {
    head: usize,
    values: usize,
    hash: u64,
}

/// A call in progress.
#[derive(Clone, Copy)]
enum Call {
    Send(NodeId),
    Recv(Option<Duration>),
    Leave,
    Drop,
}

impl<T: Transport> Watched<T> {
    /// Wraps the endpoints of a network, in node order. Returns them with their log.
    ///
    /// # Panics
    /// If there are more or fewer than `nodes`.
    pub(super) fn wrap(ends: Vec<T>, nodes: usize) -> (Vec<Self>, Arc<Log>) {
        assert_eq!(ends.len(), nodes, "a network of {nodes} nodes has {} endpoints", ends.len());
        let log = Arc::new(Log::new(nodes));
        let watch = |(node, inner)| Self {
            inner: Some(inner),
            node: NodeId(node),
            lost: vec![false; nodes],
            log: Arc::clone(&log),
        };
        ((0..).zip(ends).map(watch).collect(), log)
    }

    fn inner(&mut self) -> &mut T {
        self.inner.as_mut().expect("present until the drop")
    }

    /// Returns what `run` returns, timed.
    fn call<R>(&mut self, call: Call, run: impl FnOnce(&mut T) -> R) -> R {
        self.log.begin(self.node, call);
        let result = run(self.inner());
        self.log.end(self.node);
        result
    }

    /// Records that `node` is lost: once, and after the frames that it sent before it left.
    fn lose(&mut self, node: NodeId, loss: Loss) {
        let own = self.node;
        let Some(is_lost) = self.lost.get_mut(node.index()).filter(|_| node != own) else {
            self.log.fail(&format!("`recv` of {own} told that {node} is lost: no such peer"));
        };
        if std::mem::replace(is_lost, true) {
            self.log.fail(&format!("`recv` of {own} told twice that {node} is lost"));
        }
        let way = self.log.way(node, own);
        let (waiting, next) = (way.in_flight.len(), way.received);
        drop(way);
        if waiting > 0 && self.log.left(node).is_some() && loss == Loss::Failed {
            self.log.fail(&format!(
                "`recv` of {own} told that {node} is lost, before frame {next} and {} others that {node} \
                 sent before it left",
                waiting - 1
            ));
        }
    }
}

impl<T: Transport> Transport for Watched<T> {
    type Error = T::Error;
    type Waker = T::Waker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<T::Error>> {
        let (own, print) = (self.node, Print::of(frame));
        // Noted before: the frame may arrive before `send` returns.
        self.log.way(own, to).in_flight.push_back(print);
        let result = self.call(Call::Send(to), |inner| inner.send(to, frame));
        let mut way = self.log.way(own, to);
        way.is_refused = matches!(result, Err(SendError::Full));
        if result.is_ok() {
            return result;
        }
        way.refused = Some(print);
        let number = way.received + way.in_flight.len() as u64;
        let taken_back = way.in_flight.pop_back();
        drop(way);
        if taken_back != Some(print) {
            self.log.fail(&format!(
                "`send` of {own} refused a frame to {to}, which received it all the same"
            ));
        }
        if Print::of(frame) != print {
            self.log.fail(&format!(
                "`send` of {own} refused frame {} to {to} and changed it: it had {print}, it has {}",
                number - 1,
                Print::of(frame)
            ));
        }
        result
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, T::Error> {
        let received = self.call(Call::Recv(wait), |inner| inner.recv(wait, frame));
        match received {
            Ok(Received::Frame(from)) => {
                if self.lost.get(from.index()) == Some(&true) {
                    let own = self.node;
                    self.log
                        .fail(&format!("`recv` of {own} told a frame of {from}, which is lost"));
                }
                self.log.receive(from, self.node, Print::of(frame));
            }
            Ok(Received::Woken) => self.log.note_woken(self.node),
            Ok(Received::Lost(node, loss)) => self.lose(node, loss),
            Ok(Received::TimedOut) if wait.is_none() => {
                let own = self.node;
                self.log.fail(&format!("`recv` of {own} without a limit returned `TimedOut`"));
            }
            Ok(Received::TimedOut) | Err(_) => {}
        }
        received
    }

    fn waker(&self) -> T::Waker {
        self.inner.as_ref().expect("present until the drop").waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        *lock(&self.log.left[self.node.index()]) = Some(reason);
        self.call(Call::Leave, |inner| inner.leave(reason));
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.log.begin(self.node, Call::Drop);
        self.inner = None;
        self.log.end(self.node);
    }
}

impl Log {
    fn new(nodes: usize) -> Self {
        Self {
            began: Instant::now(),
            calls: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            activity: AtomicU64::new(0),
            ways: (0..nodes * nodes).map(|_| Mutex::default()).collect(),
            left: (0..nodes).map(|_| Mutex::default()).collect(),
            fault: Mutex::default(),
        }
    }

    /// Returns the first fault, or the call that should have returned long ago.
    pub(super) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone().or_else(|| self.overdue())
    }

    /// Describes the calls and waits of each endpoint.
    pub(super) fn state(&self) -> String {
        let nodes = self.calls.len();
        let ids = || (0..nodes as u16).map(NodeId);
        let mut parts = Vec::new();
        for node in ids() {
            if let Some((call, _)) = Call::unpack(self.calls[node.index()].load(Ordering::Relaxed))
            {
                parts.push(format!("{node} is in {call}"));
            }
        }
        for (from, to) in ids().flat_map(|from| ids().map(move |to| (from, to))) {
            let way = self.way(from, to);
            if !way.in_flight.is_empty() {
                let next = way.received;
                let last = next + way.in_flight.len() as u64 - 1;
                parts.push(format!("frames {next} to {last} of {from} never came to {to}"));
            }
            if way.is_refused {
                parts.push(format!(
                    "{from} was refused by the way to {to} (`Full`) and not told of room"
                ));
            }
        }
        parts.join("; ")
    }

    /// Records the fault and ends the thread.
    fn fail(&self, text: &str) -> ! {
        lock(&self.fault).get_or_insert_with(|| text.to_string());
        panic!("{text}");
    }

    fn way(&self, from: NodeId, to: NodeId) -> MutexGuard<'_, Way> {
        lock(&self.ways[from.index() * self.calls.len() + to.index()])
    }

    fn left(&self, node: NodeId) -> Option<CloseReason> {
        *lock(&self.left[node.index()])
    }

    fn begin(&self, node: NodeId, call: Call) {
        let until = call.limit().map(|limit| self.began.elapsed().saturating_add(limit));
        self.calls[node.index()].store(call.pack(until), Ordering::Relaxed);
        self.activity.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self, node: NodeId) {
        self.calls[node.index()].store(0, Ordering::Relaxed);
        self.activity.fetch_add(1, Ordering::Relaxed);
    }

    fn overdue(&self) -> Option<String> {
        let now = self.began.elapsed().as_millis() as u64;
        self.calls.iter().zip(0..).find_map(|(call, node)| {
            let (call, until) = Call::unpack(call.load(Ordering::Relaxed))?;
            let rule = match call {
                Call::Send(_) => "it must never block, but refuse with `Full`",
                Call::Recv(_) => "it must end in time",
                Call::Leave => "it waits for a bounded time",
                Call::Drop => "it must not block",
            };
            let is_late = until.is_some_and(|until| until < now);
            is_late
                .then(|| format!("{} is in {call}, which has not returned: {rule}", NodeId(node)))
        })
    }

    fn note_woken(&self, node: NodeId) {
        let nodes = self.calls.len() as u16;
        (0..nodes).for_each(|to| self.way(node, NodeId(to)).is_refused = false);
    }

    /// Compares a frame that has come with the one that is due.
    fn receive(&self, from: NodeId, to: NodeId, print: Print) {
        if from == to || from.index() >= self.calls.len() {
            self.fail(&format!("`recv` of {to} told a frame of {from}: no such peer"));
        }
        let mut way = self.way(from, to);
        let due = way.received;
        if way.in_flight.front() == Some(&print) {
            way.in_flight.pop_front();
            way.received += 1;
            way.latest.push_back(print);
            if way.latest.len() > LATEST_MAX {
                way.latest.pop_front();
            }
            return;
        }
        let ahead = way.in_flight.iter().position(|sent| *sent == print);
        let again = way.latest.iter().rev().position(|seen| *seen == print);
        let (expected, refused) = (way.in_flight.front().copied(), way.refused);
        drop(way);
        let others = (0..self.calls.len() as u16).map(NodeId).filter(|other| *other != from);
        let sender =
            others.into_iter().find(|other| self.way(*other, to).in_flight.front() == Some(&print));
        let text = match (ahead, again, sender, expected) {
            (Some(ahead), ..) => format!(
                "{to} received frame {} of {from} where frame {due} was due, which was lost or overtaken",
                due + ahead as u64
            ),
            (_, Some(again), ..) => {
                format!("{to} received frame {} of {from} twice", due - 1 - again as u64)
            }
            (.., Some(sender), _) => {
                format!("{to} received a frame of {sender} as one of {from}")
            }
            _ if refused == Some(print) => {
                format!("{to} received a frame of {from} that `send` of {from} had refused")
            }
            (.., Some(expected)) => format!(
                "frame {due} of {from} came to {to} changed: {from} sent {expected}, {to} received {print}"
            ),
            (.., None) => {
                format!("{to} received a frame of {from}, which had sent no more: {print}")
            }
        };
        self.fail(&text);
    }
}

impl Call {
    /// Returns the time after which it should have returned, if there is one.
    fn limit(self) -> Option<Duration> {
        match self {
            Self::Recv(wait) => wait.map(|wait| wait.saturating_add(patience())),
            Self::Send(_) | Self::Leave | Self::Drop => Some(patience()),
        }
    }

    /// Packs the call and the time since the beginning at which it should have returned: 45 bits of
    /// milliseconds, 16 of a node, 3 of the kind.
    fn pack(self, until: Option<Duration>) -> u64 {
        let (kind, node) = match self {
            Self::Send(to) => (1, to.0),
            Self::Recv(Some(_)) => (2, 0),
            Self::Recv(None) => (3, 0),
            Self::Leave => (4, 0),
            Self::Drop => (5, 0),
        };
        let millis = until.map_or(0, |until| (until.as_millis() as u64).clamp(1, MILLIS_MAX));
        millis << 19 | u64::from(node) << 3 | kind
    }

    fn unpack(packed: u64) -> Option<(Self, Option<u64>)> {
        let call = match packed & 7 {
            1 => Self::Send(NodeId((packed >> 3) as u16)),
            2 => Self::Recv(Some(Duration::ZERO)),
            3 => Self::Recv(None),
            4 => Self::Leave,
            5 => Self::Drop,
            _ => return None,
        };
        let millis = packed >> 19;
        Some((call, (millis > 0).then_some(millis)))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(to) => write!(f, "`send` to {to}"),
            Self::Recv(Some(_)) => f.write_str("`recv` with a limit"),
            Self::Recv(None) => f.write_str("`recv` without a limit"),
            Self::Leave => f.write_str("`leave`"),
            Self::Drop => f.write_str("the drop"),
        }
    }
}

impl Print {
    fn of(frame: &Frame) -> Self {
        use core::hash::BuildHasher;
        let hash = FixedState::default().hash_one((&frame.head, frame.values.bytes()));
        Self { head: frame.head.len(), values: frame.values.len(), hash }
    }
}

impl fmt::Display for Print {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { head, values, hash } = self;
        write!(f, "{head} + {values} bytes (hash {:04x})", hash >> 48)
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of received frames of one peer that are remembered, to detect repeated ones.
const LATEST_MAX: usize = 64;
const MILLIS_MAX: u64 = (1 << 45) - 1;
