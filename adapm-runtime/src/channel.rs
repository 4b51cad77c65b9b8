//! The thread of one channel of one node: feeds the engine, drains it, and sleeps in the transport.
//!
//! ```text
//!   commands of workers ─┐                             ┌─> frames to peers
//!   dirtied keys ────────┤  one input, all its outputs │
//!   frames of peers ─────┼──────────> Engine ──────────┼─> ends of operations, told after the totals are published
//!   clocks when due ─────┘                             └─> when to wake up
//! ```
//!
//! The mailbox is taken before the dirty queues are drained, and the engine gets the dirtied keys first: whatever a worker
//! dirtied before it posted an operation is known to the engine when the operation is.
//!
//! A lost peer is told to the engines of all channels of the process, which fail what can no longer be done; the thread ends when
//! its node leaves, in vain or not, and only then says farewell to the peers.
//!
//! Not here: decisions of any kind.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adapm_core::engine::{Engine, Event, Input, Op, OpBody, OpId, Output, Reason};
use adapm_core::error::{InputError, OpError};
use adapm_core::policy::SystemPolicy;
use adapm_core::store::Store;
use adapm_core::transport::{Farewell, Loss, Received};
use adapm_core::wire::message::Body;
use adapm_core::{ChannelId, Clock, Instant, Key, NodeId};
use foldhash::fast::FixedState;

use crate::failure::{Failure, LostPeer};
use crate::link::Link;
use crate::node::{Command, NodeShared, Port};
use crate::ticket::Waiter;
use crate::{Notice, RunError, priority};

/// Receives what happens outside of any call of a worker.
pub(crate) type Report = Arc<dyn Fn(Notice) + Send + Sync>;

/// An operation that has ended, with whom to tell how.
type Ended<V> = (Waiter<V>, Result<Vec<V>, OpError>);

/// What one channel thread owns.
pub(crate) struct Channel<S: Store> {
    pub(crate) id: ChannelId,
    pub(crate) shared: Arc<NodeShared<S>>,
    pub(crate) engine: Engine<Arc<S>, SystemPolicy>,
    pub(crate) link: Link,
    pub(crate) failure: Arc<Failure>,
    pub(crate) report: Report,
    /// The origin of time, one for the cluster.
    pub(crate) origin: std::time::Instant,
    pub(crate) state: State<S::Value>,
}

/// What a channel thread keeps between inputs.
pub(crate) struct State<V> {
    ops: HashMap<OpId, Waiter<V>, FixedState>,
    next_op: u64,
    /// The operation that ends this thread.
    leave: Option<OpId>,
    /// How it ended; told when the peers have heard.
    left: Option<Ended<V>>,
    /// To be told when there are links to all peers.
    connected: Option<Waiter<V>>,
    /// Lost peers that the engine knows of.
    lost_seen: usize,
    farewell: Farewell,
    until: Option<Instant>,
    /// Whether there is something to say already in the next round, which begins at `until`, or as soon as the open one has ended:
    /// signals and dirtied keys cannot make it begin earlier.
    awaits_round: bool,
    ended: Vec<Ended<V>>,
    commands: Vec<Command<V>>,
    dirty: Vec<Key>,
    clocks: Vec<Clock>,
}

impl<V> Default for State<V> {
    fn default() -> Self {
        Self {
            ops: HashMap::default(),
            next_op: 0,
            leave: None,
            left: None,
            connected: None,
            lost_seen: 0,
            farewell: Farewell::Failed,
            until: None,
            awaits_round: false,
            ended: Vec::new(),
            commands: Vec::new(),
            dirty: Vec::new(),
            clocks: Vec::new(),
        }
    }
}

impl<S: Store> Channel<S> {
    /// Connects with all peers, and serves until the node has left or the cluster fails.
    pub(crate) fn run(mut self, connected: Waiter<S::Value>) {
        priority::give_way();
        self.state.connected = Some(connected);
        match self.serve() {
            Ok(farewell) => self.state.farewell = farewell,
            Err(error) => {
                // Whatever goes wrong after a loss is but its consequence.
                let lost = self.failure.lost(0).filter(|lost| lost.node != self.shared.node);
                self.state.farewell = lost.map_or(Farewell::Failed, |lost| Farewell::Lost(lost.node));
                self.failure.raise(error);
            }
        }
    }

    /// Serves until the node has left; what to tell the peers then.
    fn serve(&mut self) -> Result<Farewell, RunError> {
        while !self.failure.is_raised() {
            if !self.handle_losses()? {
                break;
            }
            self.look_at_links();
            self.handle_commands()?;
            let now = self.now();
            if self.state.until.is_some_and(|until| until <= now) {
                self.look_at_ways(now)?;
                self.read_clocks();
                let clocks = std::mem::take(&mut self.state.clocks);
                self.feed_own(Input::Timeout(&clocks))?;
                self.state.clocks = clocks;
            }
            self.tell();
            if let Some((_, outcome)) = &self.state.left {
                // Who is lost after that has taken nothing away.
                match self.failure.lost(0).filter(|_| outcome.is_err()) {
                    Some(lost) => return Ok(Farewell::Lost(lost.node)),
                    None if self.link.is_flushed() => return Ok(Farewell::Finished),
                    None => {}
                }
            }
            self.receive()?;
        }
        Ok(Farewell::Failed)
    }

    /// Tells once that there are links to all peers.
    fn look_at_links(&mut self) {
        if self.state.connected.is_some() && self.link.is_connected() {
            self.state.connected.take().into_iter().for_each(|waiter| waiter.tell(Ok(Vec::new())));
        }
    }

    /// Tells the engine, which is about to look at its peers, for which of them the way may be slow.
    fn look_at_ways(&mut self, now: Instant) -> Result<(), RunError> {
        if self.engine.next_look_at().is_none_or(|at| at > now) {
            return Ok(());
        }
        let nodes = (0..self.shared.nodes).map(|index| NodeId(u16::try_from(index).expect("a node id")));
        let own = self.shared.node;
        for node in nodes.filter(|node| *node != own) {
            if self.link.holds_up(node) {
                self.feed_own(Input::Heard(node))?;
            }
        }
        Ok(())
    }

    /// Tells the engine of peers that any thread of this process has lost; false if this node is given up itself.
    fn handle_losses(&mut self) -> Result<bool, RunError> {
        while let Some(LostPeer { node, .. }) = self.failure.lost(self.state.lost_seen) {
            self.state.lost_seen += 1;
            // Whoever waits for replicas waits in vain.
            self.port().published.end();
            if node == self.shared.node {
                return Ok(false);
            }
            self.link.forget(node);
            self.feed_own(Input::PeerLost(node))?;
        }
        Ok(true)
    }

    fn handle_commands(&mut self) -> Result<(), RunError> {
        let mut commands = std::mem::take(&mut self.state.commands);
        let mut dirty = std::mem::take(&mut self.state.dirty);
        self.port().mailbox.take(&mut commands, &mut dirty);
        if !dirty.is_empty() {
            self.feed_own(Input::Dirty(&dirty))?;
            dirty.clear();
        }
        for command in commands.drain(..) {
            match command {
                Command::Intent(intent) => self.feed_own(Input::Intent(intent))?,
                Command::TakeBack(intent) => self.feed_own(Input::TakeBack(intent))?,
                Command::Op { waiter, worker, body } => {
                    self.state.next_op += 1;
                    let id = OpId(self.state.next_op);
                    if matches!(body, OpBody::Leave) {
                        self.state.leave = Some(id);
                    }
                    self.state.ops.insert(id, waiter);
                    let fed = self.engine.handle_input(self.now(), Input::Op(Op { id, worker, body }));
                    if let Err(InputError::Caller(error)) = fed {
                        self.end_op(id, Err(error));
                    }
                    self.drain()?;
                }
            }
        }
        (self.state.commands, self.state.dirty) = (commands, dirty);
        Ok(())
    }

    /// Sleeps until a frame comes, somebody wakes the thread, or the engine wants to; handles the frames that are there.
    fn receive(&mut self) -> Result<(), RunError> {
        let now = self.now();
        let mut wait = self.state.until.map(|until| Duration::from_nanos(until.nanos_since(now)));
        let port = Arc::clone(self.port());
        if self.state.connected.is_some() {
            wait = Some(wait.map_or(CONNECT_LOOK, |wait| wait.min(CONNECT_LOOK)));
        }
        // What is signaled or dirtied until then is for that round too: whatever begins it ends the sleep.
        let long = !self.state.awaits_round && wait.is_none_or(|wait| wait > SHORT_SLEEP);
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

    /// Whether there may be more to receive at once.
    fn handle_received(&mut self, received: Received) -> Result<bool, RunError> {
        match received {
            Received::Frame(from) => self.handle_frame(from)?,
            Received::Lost(node, loss) => {
                self.failure.lose(LostPeer { node, address: self.link.address(node), loss });
                // The engines hear of it before anything else is received.
                return Ok(false);
            }
            Received::Woken | Received::TimedOut => {
                while let Some(notice) = self.link.poll_notice() {
                    (self.report)(notice);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.link.flush().map_err(|message| self.broken(message))
    }

    fn handle_frame(&mut self, from: NodeId) -> Result<(), RunError> {
        let node = self.shared.node;
        if self.link.has_lost(from) {
            return Ok(());
        }
        let message = self.link.message().map_err(|error| RunError::Frame { node, from, error })?;
        if matches!(&*message.body, Body::SyncRequest(request) if request.sync) {
            // What was pushed here before that `wait_sync` began must be known to the engine that answers it.
            self.handle_commands()?;
        }
        let fed = self.engine.handle_input(self.now(), Input::Message(from, message));
        if let Err(InputError::Peer(error)) = fed {
            return Err(RunError::Protocol { node, error });
        }
        self.drain()
    }

    /// Feeds an input that this crate has checked.
    fn feed_own(&mut self, input: Input<'_, S::Value>) -> Result<(), RunError> {
        let fed = self.engine.handle_input(self.now(), input);
        fed.expect("workers check keys and windows, and clocks are read for all workers");
        self.drain()
    }

    fn drain(&mut self) -> Result<(), RunError> {
        loop {
            match self.engine.poll_output() {
                Output::Transmit(to, message) => {
                    self.link.send(to, message).map_err(|message| self.broken(message))?;
                }
                Output::Event(Event::Done { op, values }) => self.end_op(op, Ok(values)),
                Output::Event(Event::Failed { op, error }) => self.end_op(op, Err(error)),
                Output::Event(Event::Missing { call, absent }) => {
                    (self.report)(Notice::Missing { call, absent });
                }
                Output::Event(Event::Unresponsive { node }) => self.lose_unresponsive(node),
                Output::Event(_) => {}
                Output::Wait { until, reason } => {
                    self.state.until = until;
                    self.state.awaits_round =
                        matches!(reason, Reason::Round { more: true } | Reason::NextRound);
                    return Ok(());
                }
            }
        }
    }

    /// The engine hears of the loss as of any other.
    fn lose_unresponsive(&self, node: NodeId) {
        let nanos = self.engine.config().unresponsive_nanos.unwrap_or_default();
        let loss = Loss::Unresponsive(Duration::from_nanos(nanos));
        self.failure.lose(LostPeer { node, address: self.link.address(node), loss });
    }

    fn end_op(&mut self, op: OpId, outcome: Result<Vec<S::Value>, OpError>) {
        let waiter = self.state.ops.remove(&op).expect("an operation ends once");
        let outcome = outcome.map_err(|error| self.with_address(error));
        if self.state.leave == Some(op) {
            self.state.left = Some((waiter, outcome));
        } else {
            self.state.ended.push((waiter, outcome));
        }
    }

    /// The engine does not know where its peers are reached.
    fn with_address(&self, error: OpError) -> OpError {
        match error {
            OpError::PeerLost { node, address: None } => {
                OpError::PeerLost { node, address: self.link.address(node) }
            }
            other => other,
        }
    }

    /// Publishes the totals, then tells workers, who so find their own operations counted.
    fn tell(&mut self) {
        self.port().published.publish(self.engine.stats(), self.link.sent(), self.link.net_stats());
        for (waiter, outcome) in self.state.ended.drain(..) {
            waiter.tell(outcome);
        }
    }

    fn read_clocks(&mut self) {
        let clocks = &mut self.state.clocks;
        self.shared.clocks.read(clocks);
        if self.shared.replicates_fully && clocks.iter().any(|clock| !clock.is_ended()) {
            // The node's intent for everything was signaled by this worker, and lasts as long as anybody works here.
            clocks[0] = Clock(0);
        }
    }

    fn recv(&mut self, wait: Option<Duration>) -> Result<Received, RunError> {
        self.link.recv(wait).map_err(|message| self.broken(message))
    }

    fn broken(&self, message: String) -> RunError {
        RunError::Transport { node: self.shared.node, channel: self.id, message }
    }

    fn now(&self) -> Instant {
        let nanos = self.origin.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).expect("a run ends within 584 years"))
    }

    fn port(&self) -> &Arc<Port<S::Value>> {
        &self.shared.ports[self.id.index()]
    }
}

impl<S: Store> Drop for Channel<S> {
    /// Whatever ended the thread, nobody waits for it in vain.
    fn drop(&mut self) {
        if thread::panicking() {
            self.failure.raise(RunError::ChannelPanicked { node: self.shared.node, channel: self.id });
        }
        let port = Arc::clone(self.port());
        port.mailbox.close();
        // Waiters that are dropped say that the cluster has ended.
        port.mailbox.take(&mut Vec::new(), &mut Vec::new());
        self.tell();
        port.published.end();
        // Whoever waits for links hears it before the goodbyes, which take time.
        self.state.connected = None;
        self.link.leave(if thread::panicking() { Farewell::Failed } else { self.state.farewell });
        if let Some((waiter, outcome)) = self.state.left.take() {
            waiter.tell(outcome);
        }
    }
}

/// The longest sleep during which intents and dirtied keys wait, but for the next round: two of the shortest rounds.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// How often the links are looked at before they are up.
const CONNECT_LOOK: Duration = Duration::from_millis(5);

/// Frames handled before the thread looks at its mailbox again.
const FRAMES_AT_ONCE: usize = 16;
