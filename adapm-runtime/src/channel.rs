//! The thread of one channel of one node: feeds the engine, drains it, and sleeps in the transport.
//!
//! ```text
//!   commands of workers ─┐                             ┌─> frames to peers
//!   dirtied keys ────────┤  one input, all its outputs │
//!   frames of peers ─────┼──────────> Engine ──────────┼─> ends of operations, reported after the totals
//!   clocks when due ─────┘                             └─> when to wake up
//! ```
//!
//! The mailbox is taken before an operation is fed, and the [`Driver`] drains the dirty queues in
//! between: every key that a worker dirtied before it posted an operation is known to the engine
//! before the operation.
//!
//! A lost peer is reported to the engines of all channels of the process, which fail operations
//! that can no longer be done. The thread ends when its node leaves, successfully or not, and only
//! then sends the close reason to the peers.
//!
//! Not here: decisions of any kind.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adapm_core::driver::{Driver, Host};
use adapm_core::engine::{Engine, Event, Input, Op, OpBody, OpId, Reason};
use adapm_core::error::{InputError, OpError};
use adapm_core::policy::SystemPolicy;
use adapm_core::stats::Stats as EngineStats;
use adapm_core::store::Store;
use adapm_core::transport::{CloseReason, Loss, Received};
use adapm_core::wire::Message;
use adapm_core::{ChannelId, Clock, Instant, Key, NodeId};
use adapm_transport::error::PeerLoss;
use foldhash::fast::FixedState;

use crate::failure::Failure;
use crate::link::Link;
use crate::node::{Command, NodeShared, Port};
use crate::promise::Waiter;
use crate::{Notice, RunError};

/// A callback for notices, which belong to no call of a worker.
pub(crate) type Report = Arc<dyn Fn(Notice) + Send + Sync>;

/// An ended operation: its waiter and its outcome.
type Ended<V> = (Waiter<V>, Result<Vec<V>, OpError>);

/// The state of one channel thread.
pub(crate) struct Channel<S: Store> {
    driver: Driver<Arc<S>, SystemPolicy>,
    outside: Outside<S>,
    /// Waiter for the links to all peers.
    connected: Option<Waiter<S::Value>>,
    /// Number of lost peers that the engine knows of.
    lost_seen: usize,
    next_op: u64,
    close_reason: CloseReason,
    commands: Vec<Command<S::Value>>,
    clocks: Vec<Clock>,
    /// The origin of time, one for the cluster.
    origin: std::time::Instant,
}

/// The surroundings of the engine: workers and peers.
struct Outside<S: Store> {
    id: ChannelId,
    shared: Arc<NodeShared<S>>,
    link: Link,
    failure: Arc<Failure>,
    report: Report,
    ops: HashMap<OpId, Waiter<S::Value>, FixedState>,
    /// The operation that ends this thread.
    leave: Option<OpId>,
    /// The outcome of `leave`, reported after the peers have been notified.
    left: Option<Ended<S::Value>>,
    /// Operations that have ended since workers were last notified.
    ended: Vec<Ended<S::Value>>,
    /// The reason why nothing can be sent any more.
    broken: Option<RunError>,
    /// Longest time for which a peer may owe an answer.
    unresponsive: Duration,
}

/// The initial state of a channel thread.
pub(crate) struct Beginning<S: Store> {
    pub(crate) id: ChannelId,
    pub(crate) shared: Arc<NodeShared<S>>,
    pub(crate) engine: Engine<Arc<S>, SystemPolicy>,
    pub(crate) link: Link,
    pub(crate) failure: Arc<Failure>,
    pub(crate) report: Report,
    /// The origin of time, one for the cluster.
    pub(crate) origin: std::time::Instant,
}

impl<S: Store> Host<S::Value> for Outside<S> {
    fn take_dirty(&mut self, keys: &mut Vec<Key>) {
        self.port().mailbox.take_dirty(keys);
    }

    fn transmit(&mut self, to: NodeId, message: Message) {
        if self.broken.is_none()
            && let Err(message) = self.link.send(to, message)
        {
            self.broken = Some(self.broken_by(message));
        }
    }

    fn tell(&mut self, event: Event<S::Value>) {
        match event {
            Event::Done { op, values } => self.end_op(op, Ok(values)),
            Event::Failed { op, error } => self.end_op(op, Err(error)),
            Event::Missing { call, absent } => (self.report)(Notice::Missing { call, absent }),
            Event::Unresponsive { node } => self.lose(node, Loss::Unresponsive(self.unresponsive)),
            _ => {}
        }
    }
}

impl<S: Store> Outside<S> {
    fn port(&self) -> &Arc<Port<S::Value>> {
        &self.shared.ports[self.id.index()]
    }

    /// Reports the loss to all engines of the process, this one included.
    fn lose(&self, node: NodeId, loss: Loss) {
        self.failure.lose(PeerLoss { node, address: self.link.address(node), loss });
    }

    fn end_op(&mut self, op: OpId, outcome: Result<Vec<S::Value>, OpError>) {
        let waiter = self.ops.remove(&op).expect("an operation ends once");
        let outcome = outcome.map_err(|error| self.with_address(error));
        if self.leave == Some(op) {
            self.left = Some((waiter, outcome));
        } else {
            self.ended.push((waiter, outcome));
        }
    }

    /// Adds the peer's address, which the engine does not know.
    fn with_address(&self, error: OpError) -> OpError {
        match error {
            OpError::PeerLost { node, address: None } => {
                OpError::PeerLost { node, address: self.link.address(node) }
            }
            other => other,
        }
    }

    /// Publishes the totals, then completes waiters, so that workers find their own operations
    /// counted.
    fn tell_workers(&mut self, stats: &EngineStats) {
        self.port().published.publish(stats, self.link.sent());
        for (waiter, outcome) in self.ended.drain(..) {
            waiter.tell(outcome);
        }
    }

    fn broken_by(&self, message: String) -> RunError {
        RunError::Transport { node: self.shared.node, channel: self.id, message }
    }
}

impl<S: Store> Channel<S> {
    pub(crate) fn new(beginning: Beginning<S>) -> Self {
        let Beginning { id, shared, engine, link, failure, report, origin } = beginning;
        let unresponsive =
            Duration::from_nanos(engine.config().unresponsive_nanos.unwrap_or_default());
        Self {
            driver: Driver::new(engine),
            outside: Outside {
                id,
                shared,
                link,
                failure,
                report,
                ops: HashMap::default(),
                leave: None,
                left: None,
                ended: Vec::new(),
                broken: None,
                unresponsive,
            },
            connected: None,
            lost_seen: 0,
            next_op: 0,
            close_reason: CloseReason::Failed,
            commands: Vec::new(),
            clocks: Vec::new(),
            origin,
        }
    }

    /// Connects with all peers, and serves until the node has left or the cluster fails.
    pub(crate) fn run(mut self, connected: Waiter<S::Value>) {
        give_way();
        self.connected = Some(connected);
        match self.serve() {
            Ok(close_reason) => self.close_reason = close_reason,
            Err(error) => {
                // Any error after a loss is a consequence of the loss.
                let Outside { failure, shared, .. } = &self.outside;
                let lost = failure.lost(0).filter(|lost| lost.node != shared.node);
                self.close_reason =
                    lost.map_or(CloseReason::Failed, |lost| CloseReason::Lost(lost.node));
                self.outside.failure.raise(error);
            }
        }
    }

    /// Serves until the node has left. Returns the close reason for the peers.
    fn serve(&mut self) -> Result<CloseReason, RunError> {
        while !self.outside.failure.is_raised() {
            if !self.handle_losses()? {
                break;
            }
            self.look_at_links();
            self.handle_commands()?;
            let now = self.now();
            if self.driver.until().is_some_and(|until| until <= now) {
                self.look_at_ways(now)?;
                self.read_clocks();
                let clocks = std::mem::take(&mut self.clocks);
                self.feed_own(Input::Timeout(&clocks))?;
                self.clocks = clocks;
            }
            self.outside.tell_workers(self.driver.engine().stats());
            if let Some((_, outcome)) = &self.outside.left {
                // A loss after a successful leave takes nothing away.
                match self.outside.failure.lost(0).filter(|_| outcome.is_err()) {
                    Some(lost) => return Ok(CloseReason::Lost(lost.node)),
                    None if self.outside.link.is_flushed() => return Ok(CloseReason::Finished),
                    None => {}
                }
            }
            self.receive()?;
        }
        Ok(CloseReason::Failed)
    }

    /// Completes the waiter for links, once all peers are linked.
    fn look_at_links(&mut self) {
        if self.connected.is_some() && self.outside.link.is_connected() {
            self.connected.take().into_iter().for_each(|waiter| waiter.tell(Ok(Vec::new())));
        }
    }

    /// Reports to the engine, before it checks its peers, which of them may be late because of a
    /// slow way.
    fn look_at_ways(&mut self, now: Instant) -> Result<(), RunError> {
        if self.driver.engine().next_look_at().is_none_or(|at| at > now) {
            return Ok(());
        }
        let nodes = (0..self.outside.shared.nodes)
            .map(|index| NodeId(u16::try_from(index).expect("a node id")));
        let own = self.outside.shared.node;
        for node in nodes.filter(|node| *node != own) {
            if self.outside.link.holds_up(node) {
                self.feed_own(Input::Heard(node))?;
            }
        }
        Ok(())
    }

    /// Reports to the engine the peers that any thread of this process has lost. Returns false if
    /// this node is given up itself.
    fn handle_losses(&mut self) -> Result<bool, RunError> {
        while let Some(PeerLoss { node, .. }) = self.outside.failure.lost(self.lost_seen) {
            self.lost_seen += 1;
            // A wait for replicas is in vain after a loss.
            self.outside.port().published.end();
            if node == self.outside.shared.node {
                return Ok(false);
            }
            self.outside.link.forget(node);
            self.feed_own(Input::PeerLost(node))?;
        }
        Ok(true)
    }

    fn handle_commands(&mut self) -> Result<(), RunError> {
        let mut commands = std::mem::take(&mut self.commands);
        self.outside.port().mailbox.take(&mut commands);
        self.driver.look_at_dirty_keys(&mut self.outside);
        for command in commands.drain(..) {
            match command {
                Command::Intent(intent) => self.feed_own(Input::Intent(intent))?,
                Command::TakeBack(intent) => self.feed_own(Input::TakeBack(intent))?,
                Command::Op { waiter, worker, body } => {
                    self.next_op += 1;
                    let id = OpId(self.next_op);
                    if matches!(body, OpBody::Leave) {
                        self.outside.leave = Some(id);
                    }
                    self.outside.ops.insert(id, waiter);
                    let op = Input::Op(Op { id, worker, body });
                    if let Err(InputError::Caller(error)) = self.feed(op)? {
                        self.outside.end_op(id, Err(error));
                    }
                }
            }
        }
        self.commands = commands;
        Ok(())
    }

    /// Sleeps until a frame comes, the thread is woken, or the engine's next deadline; handles the
    /// frames that are there.
    fn receive(&mut self) -> Result<(), RunError> {
        let now = self.now();
        let mut wait =
            self.driver.until().map(|until| Duration::from_nanos(until.nanos_since(now)));
        let port = Arc::clone(self.outside.port());
        if self.connected.is_some() {
            wait = Some(wait.map_or(CONNECT_LOOK, |wait| wait.min(CONNECT_LOOK)));
        }
        // Intents and dirtied keys posted until then belong to that round too: the event that
        // begins it ends the sleep.
        let awaits_round =
            matches!(self.driver.reason(), Reason::Round { more: true } | Reason::NextRound);
        let long = !awaits_round && wait.is_none_or(|wait| wait > SHORT_SLEEP);
        if long {
            wait = if port.mailbox.doze_off() { wait } else { Some(Duration::ZERO) };
        }
        let mut received = self.recv(wait)?;
        if long {
            port.mailbox.get_up();
        }
        for _ in 0..FRAMES_AT_ONCE {
            if !self.handle_received(received)? {
                return self.flush();
            }
            received = self.recv(Some(Duration::ZERO))?;
        }
        self.handle_received(received)?;
        self.flush()
    }

    /// Returns true if there may be more to receive at once.
    fn handle_received(&mut self, received: Received) -> Result<bool, RunError> {
        match received {
            Received::Frame(from) => self.handle_frame(from)?,
            Received::Lost(node, loss) => {
                // The engines learn of it before anything else is received.
                self.outside.lose(node, loss);
                return Ok(false);
            }
            Received::Woken | Received::TimedOut => {
                while let Some(notice) = self.outside.link.poll_notice() {
                    (self.outside.report)(notice);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.outside.link.flush().map_err(|message| self.outside.broken_by(message))
    }

    fn handle_frame(&mut self, from: NodeId) -> Result<(), RunError> {
        let node = self.outside.shared.node;
        if self.outside.link.has_lost(from) {
            return Ok(());
        }
        let message =
            self.outside.link.message().map_err(|error| RunError::Frame { node, from, error })?;
        match self.feed(Input::Message(from, message))? {
            Err(InputError::Peer(error)) => Err(RunError::Protocol { node, error }),
            _ => Ok(()),
        }
    }

    /// Feeds an input that this crate has checked.
    fn feed_own(&mut self, input: Input<'_, S::Value>) -> Result<(), RunError> {
        self.feed(input)?
            .expect("workers check keys and windows, and clocks are read for all workers");
        Ok(())
    }

    /// Feeds an input. Returns the engine's verdict, or an error if a message could not be sent.
    fn feed(&mut self, input: Input<'_, S::Value>) -> Result<Result<(), InputError>, RunError> {
        let now = self.now();
        let verdict = self.driver.feed(now, input, &mut self.outside);
        match self.outside.broken.take() {
            Some(error) => Err(error),
            None => Ok(verdict),
        }
    }

    fn read_clocks(&mut self) {
        let shared = &self.outside.shared;
        shared.clocks.read(&mut self.clocks);
        if shared.supply.lasts_the_run() && self.clocks.iter().any(|clock| !clock.is_ended()) {
            // The node's intent for the whole run was signaled as worker 0, and lasts as long as
            // any worker works here.
            self.clocks[0] = Clock(0);
        }
    }

    fn recv(&mut self, wait: Option<Duration>) -> Result<Received, RunError> {
        self.outside.link.recv(wait).map_err(|message| self.outside.broken_by(message))
    }

    fn now(&self) -> Instant {
        let nanos = self.origin.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).expect("a run ends within 584 years"))
    }
}

impl<S: Store> Drop for Channel<S> {
    /// Ends every wait on this thread, however it ended.
    fn drop(&mut self) {
        let outside = &mut self.outside;
        if thread::panicking() {
            let (node, channel) = (outside.shared.node, outside.id);
            outside.failure.raise(RunError::ChannelPanicked { node, channel });
        }
        let port = Arc::clone(outside.port());
        port.mailbox.close();
        // Dropped waiters report that the cluster has ended.
        port.mailbox.take(&mut Vec::new());
        outside.tell_workers(self.driver.engine().stats());
        port.published.end();
        // Waiters for links are released before the goodbyes, which take time.
        self.connected = None;
        outside.link.leave(if thread::panicking() {
            CloseReason::Failed
        } else {
            self.close_reason
        });
        if let Some((waiter, outcome)) = outside.left.take() {
            waiter.tell(outcome);
        }
    }
}

/// Lowers the priority of this thread below that of workers: a worker that waits for an engine
/// leaves its core, and a computing worker loses less if messages are handled together later than
/// if each interrupts it.
///
/// On Linux, where each thread has its own nice value: 3 more than that of the starting thread.
/// Elsewhere does nothing.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // Only affects speed.
        let _ = rustix::process::nice(NICE);
    }
}

/// The longest sleep during which intents and dirtied keys wait, unless for the next round: twice
/// the shortest round.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Interval at which the links are checked before they are up.
const CONNECT_LOOK: Duration = Duration::from_millis(5);

/// Frames handled before the thread looks at its mailbox again.
const FRAMES_AT_ONCE: usize = 16;

/// Added to the nice value of the starting thread.
#[cfg(target_os = "linux")]
const NICE: i32 = 3;
