//! The protocol engine of one channel of one node: one door in, one door out.
//!
//! | file | subject |
//! | --- | --- |
//! | [`input`], [`output`] | what enters and leaves |
//! | `state` | side maps: only keys in which something is going on |
//! | `access` | operations of own workers |
//! | `operate` | operations of other nodes, answers |
//! | `intents` | signals, action timing, reference counts |
//! | `round` | the requester's half of a round |
//! | `receive` | what answers and grants bring the requester |
//! | `respond` | the owner's half of a round |
//! | `place` | decisions on intents and localizes |
//! | `relocate`, `replicate` | the two techniques |
//! | `residence` | what a home knows of owners |
//! | `drafts` | grouped outgoing entries |
//! | `pending` | forwarding and parking |
//! | `barrier`, `quiesce`, `sync` | collective operations |
//! | `missing` | who holds them up |
//! | `lost` | what the loss of a peer ends |
//! | `watch` | peers that do not answer |
//! | `inspect` | what tests and statistics see |

/// Whether a mistake is planted: a run-time value of the feature `testing`, `false` without it.
macro_rules! planted {
    ($node:expr, $bug:ident) => {{
        #[cfg(feature = "testing")]
        let planted = $node.bug == Some(crate::testing::Bug::$bug);
        #[cfg(not(feature = "testing"))]
        let planted = false;
        planted
    }};
}

mod access;
mod barrier;
mod drafts;
pub mod input;
mod inspect;
mod intents;
mod interest;
mod late;
mod lost;
mod missing;
mod operate;
pub mod output;
mod pending;
mod place;
mod populate;
mod quiesce;
mod receive;
mod relocate;
mod replicate;
mod residence;
mod respond;
mod room;
mod round;
mod state;
mod sync;
mod watch;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub use input::{Input, Intent, Op, OpBody, OpId, SignalId};
#[cfg(feature = "testing")]
pub use inspect::KeyView;
pub use missing::{Absent, Collective};
pub use output::{Event, Output, Reason};
pub use populate::found;

use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::error::{ConfigError, Fault, InputError, OpError, ProtocolError};
use crate::id::{Key, NodeId};
use crate::layout::{Kind, Layout};
use crate::observe::Observe;
use crate::policy::Policy;
use crate::route;
use crate::slot::{Location, State, Word};
use crate::stats::Stats;
use crate::store::{Look, Store};
use crate::ticket::Tickets;
use crate::time::Instant;
use crate::value::Value;
use crate::wire::message::Body;
use crate::wire::{Message, shape};

use barrier::Barriers;
use drafts::Drafts;
use intents::Signals;
use interest::Interest;
use quiesce::Quiesces;
use residence::Fact;
use respond::Answering;
use state::{Agenda, Holding, KeyMap, OpMap, OpState, Parked, Peer, Queue, Round, Wish};
use sync::SyncWait;
use watch::Watch;

/// Writes the initial value of a key, `[value_len]` zeros before: a pure function of the key, the same on every node.
pub type Initial<V> = Arc<dyn Fn(Key, &mut [V]) + Send + Sync>;

/// The protocol engine of one channel of one node.
///
/// Feed one [`Input`], then drain [`Engine::poll_output`] until [`Output::Wait`], then feed the next.
pub struct Engine<S: Store, P: Policy> {
    config: NodeConfig,
    layout: Layout,
    store: S,
    policy: P,
    initial: Initial<S::Value>,
    now: Instant,
    clocks: Vec<Clock>,
    signals: Signals,
    holdings: KeyMap<Holding>,
    interests: KeyMap<Interest>,
    wishes: KeyMap<Wish>,
    /// Intents and localizes of this node, of keys that are not here, that are unanswered.
    requested: usize,
    queues: KeyMap<Queue<S::Value>>,
    parked: KeyMap<Vec<Parked<S::Value>>>,
    /// As a home: what does not follow on what is known of a key yet.
    early: KeyMap<Vec<Fact>>,
    /// As a home: who was asked for a key that is said to have moved since.
    asked_before: KeyMap<NodeId>,
    /// A request whose answer is not complete.
    answering: Option<Box<Answering>>,
    ops: OpMap<OpState<S::Value>>,
    peers: Vec<Peer>,
    tickets: Tickets,
    /// Peers for which something may have come up while this input is handled.
    newsworthy: Vec<NodeId>,
    /// The first peer that was lost: from then on nothing is asked of other nodes.
    first_lost: Option<NodeId>,
    round: Round,
    agenda: Agenda,
    drafts: Drafts<S::Value>,
    syncs: Vec<SyncWait>,
    barriers: Barriers,
    quiesces: Quiesces,
    watch: Watch,
    outputs: VecDeque<Output<S::Value>>,
    observer: Option<Box<dyn Observe + Send>>,
    stats: Stats,
    #[cfg(feature = "testing")]
    bug: Option<crate::testing::Bug>,
}

impl<S: Store, P: Policy> Engine<S, P> {
    /// An engine over `store`, which workers of the node share.
    ///
    /// # Errors
    /// If the configuration does not fit the layout ([`NodeConfig::check`]).
    pub fn new(
        config: NodeConfig,
        layout: Layout,
        store: S,
        policy: P,
        initial: Initial<S::Value>,
    ) -> Result<Self, ConfigError> {
        config.check(&layout)?;
        config.check_frames::<S::Value>(&layout)?;
        let peers = (0..config.nodes).map(|_| Peer::default()).collect();
        Ok(Self {
            now: Instant::ZERO,
            clocks: alloc::vec![Clock(0); config.workers],
            signals: Signals::new(config.workers),
            holdings: KeyMap::default(),
            interests: KeyMap::default(),
            wishes: KeyMap::default(),
            requested: 0,
            queues: KeyMap::default(),
            parked: KeyMap::default(),
            early: KeyMap::default(),
            asked_before: KeyMap::default(),
            answering: None,
            ops: OpMap::default(),
            peers,
            tickets: Tickets::new(config.secret),
            newsworthy: Vec::new(),
            first_lost: None,
            round: Round::default(),
            agenda: Agenda::default(),
            drafts: Drafts::default(),
            syncs: Vec::new(),
            barriers: Barriers::new(config.workers),
            quiesces: Quiesces::default(),
            watch: Watch::default(),
            outputs: VecDeque::new(),
            observer: None,
            stats: Stats::default(),
            #[cfg(feature = "testing")]
            bug: None,
            config,
            layout,
            store,
            policy,
            initial,
        })
    }

    /// Feeds one input at time `now`; then drain [`Engine::poll_output`].
    ///
    /// # Errors
    /// Who is to blame for an input that cannot be; nothing of it has been applied.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_, S::Value>) -> Result<(), InputError> {
        self.now = self.now.max(now);
        while self.answering.is_some() {
            self.go_on();
        }
        match input {
            Input::Message(from, message) => self.handle_message(from, message)?,
            Input::Op(op) => self.handle_op(op)?,
            Input::Intent(intent) => self.handle_intent(intent)?,
            Input::TakeBack(intent) => self.handle_take_back(intent)?,
            Input::Dirty(keys) => self.agenda.dirty.extend_from_slice(keys),
            Input::Timeout(clocks) => self.handle_timeout(clocks)?,
            Input::PeerLost(node) => self.handle_peer_lost(node)?,
            Input::Heard(node) => self.handle_heard(node)?,
        }
        self.go_on();
        self.begin_watch();
        Ok(())
    }

    /// The next output. Drain until [`Output::Wait`]: an input that is not done goes on when no output is left.
    pub fn poll_output(&mut self) -> Output<S::Value> {
        loop {
            match self.outputs.pop_front() {
                Some(output) => return output,
                None if self.answering.is_none() => return self.wait(),
                None => self.go_on(),
            }
        }
    }

    /// Receives single events from here on.
    pub fn set_observer(&mut self, observer: Box<dyn Observe + Send>) {
        self.observer = Some(observer);
    }

    /// The engine's place and bounds.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Totals since the engine was made.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Goes on with what the last input asks for, as far as the next output at most; once it is done, sends what has come up on the
    /// way.
    fn go_on(&mut self) {
        if let Some(answering) = self.answering.take() {
            self.answer_on(answering);
        }
        if self.answering.is_none() {
            self.flush_drafts();
            self.send_news();
            self.progress_quiesce();
        }
    }

    fn handle_message(&mut self, from: NodeId, message: Message) -> Result<(), ProtocolError> {
        let blame = |fault| ProtocolError { peer: from, fault };
        let config = &self.config;
        if from == config.node || from.index() >= config.nodes {
            return Err(blame(Fault::UnknownNode(from)));
        }
        if self.peers[from.index()].lost && !planted!(self, HeedLost) {
            return Ok(());
        }
        shape::check::<S::Value>(&message, &self.layout, config.nodes, config.channel, config.channels)
            .map_err(blame)?;
        self.hear(from);
        let control = message.is_control();
        let answers = planted!(self, AnswerRefused) && matches!(*message.body, Body::SyncRequest(_));
        let Message { body, values } = message;
        let values = values.values::<S::Value>();
        if planted!(self, CountRefused) && !control {
            self.stats.messages_applied += 1;
        }
        let verdict = match *body {
            Body::SyncRequest(request) => self.handle_sync_request(from, request, values),
            Body::SyncResponse(response) => self.handle_sync_response(from, response, values),
            Body::Grant(grants) => self.handle_grant(from, grants, values),
            Body::News => self.handle_news(from),
            Body::Forward(forward) => self.handle_forward(from, forward, values),
            Body::Operation(operation) => self.handle_operation(from, operation, values),
            Body::Answer(answer) => self.handle_answer(from, answer, values),
            Body::Retry(retry) => self.handle_retry(from, retry),
            Body::Residence(residence) => self.handle_residence(from, residence),
            Body::Barrier(_) | Body::Quiesce(_) if self.first_lost.is_some() => Ok(()),
            Body::Barrier(barrier) => self.handle_barrier(from, barrier),
            Body::Quiesce(quiesce) => self.handle_quiesce(from, quiesce),
        };
        if answers && verdict.is_err() {
            self.send(from, Message::bare(Body::SyncResponse(Default::default())));
        }
        verdict.map_err(blame)?;
        if !control {
            self.peers[from.index()].applied += 1;
            self.stats.messages_applied += u64::from(!planted!(self, CountRefused));
        }
        Ok(())
    }

    fn handle_timeout(&mut self, clocks: &[Clock]) -> Result<(), OpError> {
        if clocks.len() != self.clocks.len() {
            return Err(OpError::ValueLen { expected: self.clocks.len(), given: clocks.len() });
        }
        self.clocks.copy_from_slice(clocks);
        self.report_missing();
        self.look_at_peers();
        if self.round_may_begin() {
            self.begin_round();
        }
        Ok(())
    }

    fn observe(&mut self, tell: impl FnOnce(&mut dyn Observe, Instant)) {
        if let Some(observer) = &mut self.observer {
            tell(observer.as_mut(), self.now);
        }
    }

    fn is_own_channel(&self, key: Key) -> bool {
        self.config.channels == 1 || Layout::channel(key, self.config.channels) == self.config.channel
    }

    /// Elements of the value of a key of the layout.
    fn value_len(&self, key: Key) -> usize {
        self.store.value_len(key)
    }

    /// Bytes of the value of a key of the layout.
    fn value_bytes(&self, key: Key) -> usize {
        self.value_len(key) * S::Value::WIDTH
    }

    /// The key's word. In a sparse layout, a key at its home that nobody has touched is founded first.
    fn word(&self, key: Key) -> Word {
        let word = self.kept(key);
        if self.is_untouched(key, word) {
            self.found(key);
            return Word::MAIN_AT_HOME;
        }
        word
    }

    /// The key's word as [`Self::word`] would give it, without founding anything: for checks, which may end in a refusal.
    fn peek(&self, key: Key) -> Word {
        let word = self.kept(key);
        if self.is_untouched(key, word) { Word::MAIN_AT_HOME } else { word }
    }

    /// The word of a key as the store keeps it.
    fn kept(&self, key: Key) -> Word {
        match self.store.look(key) {
            Look::Absent(word) => word,
            Look::Held { .. } | Look::Unknown => self.store.with_slot(key, |slot| *slot.word),
        }
    }

    fn is_untouched(&self, key: Key, word: Word) -> bool {
        let sparse = self.layout.kind() == Kind::Sparse;
        sparse && word == Word::EMPTY && Layout::home(key, self.config.nodes) == self.config.node
    }

    fn state(&self, key: Key) -> State {
        self.word(key).state()
    }

    /// Where an entry of this node's own goes first.
    fn first_hop(&self, key: Key, word: Word) -> Location {
        route::first_hop(word, key, self.config.node, self.config.nodes, self.config.location_caches)
    }

    /// Learns where a key is, if this node keeps such facts.
    fn learn(&self, key: Key, location: Location) {
        if !self.config.location_caches && Layout::home(key, self.config.nodes) != self.config.node {
            return;
        }
        // Most of what answers tell is known, and the latch of an absent key that has nothing to learn is not needed.
        let is_known =
            matches!(self.store.look(key), Look::Absent(word) if word.counter() >= location.counter);
        if !is_known {
            self.store.with_slot(key, |mut slot| slot.learn(location));
        }
    }
}
