//! The protocol engine of one channel of one node: one door in, one door out.
//!
//! | file | subject |
//! | --- | --- |
//! | [`input`], [`output`] | what enters and leaves |
//! | `state` | side maps: only keys in which something is going on |
//! | `access` | operations of own workers |
//! | `operate` | operations of other nodes, answers |
//! | `intent` | which keys this node wants: signals, action timing, reference counts, localizes |
//! | `round` | the requester's half of a round |
//! | `receive` | what answers and grants bring the requester |
//! | `ownership` | keys owned here: decisions, relocation, replication, the owner's half of a round |
//! | `residences` | what a home knows of owners |
//! | `outgoing` | grouped outgoing entries |
//! | `pending` | forwarding and parking |
//! | `collective` | barrier, quiesce, the end of a run, `wait_sync`, and who holds them up |
//! | `ctx`, `effect` | what machines share, and ask of each other |
//! | `lost` | what the loss of a peer ends |
//! | `watch` | peers that do not answer |
//! | `inspect` | what tests and statistics see |
//!
//! `intent`, `ownership`, `residences`, `collective`, `outgoing` and `watch` are machines: nobody else reaches their fields, their handlers get what all share
//! (`ctx`), and what they ask of the rest they say as an `effect`, which the engine follows in the same input. They never call it.
//! The other files work on the engine's fields.

/// Whether a mistake is planted: a run-time value of the feature `testing`, `false` without it.
macro_rules! planted {
    ($ctx:expr, $bug:ident) => {{
        #[cfg(feature = "testing")]
        let planted = $ctx.bug == Some(crate::testing::Bug::$bug);
        #[cfg(not(feature = "testing"))]
        let planted = false;
        planted
    }};
}

mod access;
mod collective;
mod ctx;
mod effect;
pub mod input;
mod inspect;
mod intent;
mod late;
mod lost;
mod operate;
mod outgoing;
pub mod output;
mod ownership;
mod pending;
mod populate;
mod receive;
mod residences;
mod room;
mod round;
mod state;
mod watch;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use input::{Input, Intent, Op, OpBody, OpId, SignalId};
#[cfg(feature = "testing")]
pub use inspect::KeyView;
pub use output::{Absent, Collective, Event, Output, Reason};
pub use populate::{Initial, found};

use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::error::{ConfigError, Fault, InputError, OpError, ProtocolError};
use crate::id::{Key, NodeId};
use crate::layout::Layout;
use crate::observe::Observe;
use crate::policy::Policy;
use crate::slot::State;
use crate::stats::Stats;
use crate::store::{Look, Store};
use crate::time::Instant;
use crate::wire::message::Body;
use crate::wire::{Message, shape};

use collective::{Begun, Collectives};
use ctx::Ctx;
use effect::{Effect, PassOn};
use intent::Intents;
use outgoing::Outgoing;
use ownership::Ownership;
use residences::Residences;
use state::{Access, Agenda, AskedFor, KeyMap, OpMap, OpState, Parked, Peer, Queue, Round};
use watch::Watch;

/// The protocol engine of one channel of one node.
///
/// Feed one [`Input`], then drain [`Engine::poll_output`] until [`Output::Wait`], then feed the next.
pub struct Engine<S: Store, P: Policy> {
    ctx: Ctx<S, P>,
    intents: Intents,
    ownership: Ownership,
    residences: Residences,
    queues: KeyMap<Queue<S::Value>>,
    parked: KeyMap<Vec<Parked<S::Value>>>,
    ops: OpMap<OpState<S::Value>>,
    peers: Vec<Peer>,
    round: Round,
    agenda: Agenda,
    outgoing: Outgoing<S::Value>,
    collectives: Collectives,
    watch: Watch,
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
            intents: Intents::new(config.workers),
            ownership: Ownership::new(config.nodes),
            residences: Residences::new(config.nodes),
            queues: KeyMap::default(),
            parked: KeyMap::default(),
            ops: OpMap::default(),
            peers,
            round: Round::default(),
            agenda: Agenda::default(),
            outgoing: Outgoing::default(),
            collectives: Collectives::new(config.nodes, config.workers),
            watch: Watch::new(config.nodes),
            ctx: Ctx::new(config, layout, store, policy, initial),
        })
    }

    /// Feeds one input at time `now`; then drain [`Engine::poll_output`].
    ///
    /// # Errors
    /// Who is to blame for an input that cannot be; nothing of it has been applied.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_, S::Value>) -> Result<(), InputError> {
        self.ctx.now = self.ctx.now.max(now);
        while self.ownership.is_answering() {
            self.go_on();
        }
        match input {
            Input::Message(from, message) => self.handle_message(from, message)?,
            Input::Op(op) => self.handle_op(op)?,
            Input::Intent(intent) => self.intents.handle_intent(&self.ctx, intent)?,
            Input::TakeBack(intent) => self.intents.handle_take_back(&self.ctx, intent)?,
            Input::Dirty(keys) => self.agenda.dirty.extend_from_slice(keys),
            Input::Timeout(clocks) => self.handle_timeout(clocks)?,
            Input::PeerLost(node) => self.handle_peer_lost(node)?,
            Input::Heard(node) => self.watch.handle_heard(&self.ctx, node)?,
        }
        self.follow_effects();
        self.go_on();
        let (ops, intents, collectives) = (&self.ops, &self.intents, &self.collectives);
        let is_owed = || self.peers.iter().any(|peer| peer.outstanding.is_some());
        self.watch.begin(&self.ctx, || waits_for_others(ops, intents, collectives) || is_owed());
        Ok(())
    }

    /// The next output. Drain until [`Output::Wait`]: an input that is not done goes on when no output is left.
    pub fn poll_output(&mut self) -> Output<S::Value> {
        loop {
            match self.ctx.outputs.pop_front() {
                Some(output) => return output,
                None if !self.ownership.is_answering() => return self.wait(),
                None => self.go_on(),
            }
        }
    }

    /// When the peers are looked at next: the first [`Input::Timeout`] from then on counts (protocol, section 9). `None`: nothing is
    /// waited for, a peer is lost, or [`unresponsive_nanos`](NodeConfig::unresponsive_nanos) is not set. A driver that knows of slow ways feeds
    /// [`Input::Heard`] before that.
    #[must_use]
    pub fn next_look_at(&self) -> Option<Instant> {
        self.watch.next_look_at(&self.ctx)
    }

    /// Receives single events from here on.
    pub fn set_observer(&mut self, observer: Box<dyn Observe + Send>) {
        self.ctx.observer = Some(observer);
    }

    /// The engine's place and bounds.
    pub fn config(&self) -> &NodeConfig {
        &self.ctx.config
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.ctx.layout
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.ctx.store
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.ctx.policy
    }

    /// Totals since the engine was made.
    pub fn stats(&self) -> &Stats {
        &self.ctx.stats
    }

    /// Goes on with what the last input asks for, as far as the next output at most; once it is done, sends what has come up on the
    /// way.
    fn go_on(&mut self) {
        if self.ownership.is_answering() {
            self.ownership.answer_on(&mut self.ctx, &self.intents);
            self.follow_effects();
        }
        if !self.ownership.is_answering() {
            self.progress_syncs();
            self.outgoing.flush(&mut self.ctx);
            self.ownership.send_news(&mut self.ctx);
            self.answer_probes();
        }
    }

    /// Does what machines have asked of each other.
    fn follow_effects(&mut self) {
        while let Some(effect) = self.ctx.effects.pop_front() {
            match effect {
                Effect::Hurry => self.round.awaited = self.ctx.round,
                Effect::Ask(node) => self.peers[node.index()].news = true,
                Effect::Unwanted(key) => self.note_unwanted(key),
                Effect::Left { key, is_turn } => {
                    if is_turn {
                        self.intents.note_turn_over(key);
                    }
                    self.intents.ask_later(key);
                }
                Effect::TellHome { home, key, owner } => self.outgoing.add_residence(home, key, owner),
                Effect::PassOn(entry) => {
                    let PassOn { hop, asker, key, counter, localize } = *entry;
                    let asked = if localize { AskedFor::Localize } else { AskedFor::Intent };
                    self.pass_on(hop, asker, key, counter, asked);
                }
                Effect::Unpark(key) => self.unpark(key),
                Effect::AskedBefore { key, asked } => self.intents.note_asked_before(key, asked),
                Effect::Finish(op) => self.finish(op),
                Effect::Answered(request) => {
                    self.collectives.note_answered(request);
                    self.close_round(request.round.into(), 0, 1);
                }
            }
        }
    }

    /// Intent for `key` has ended: a replica is given up, a main copy may go to who holds a replica, operations need not wait any more.
    fn note_unwanted(&mut self, key: Key) {
        // Of a main copy nobody else holds, there is nothing to decide.
        if self.ctx.store.look(key) == (Look::Held { with_delta: false }) && !self.ownership.has_holders(key)
        {
            return;
        }
        match self.ctx.state(key) {
            State::Replica if planted!(self.ctx, ForgetRelease) => {}
            State::Replica => self.agenda.release.push(key),
            State::Main => self.ownership.reconsider(&mut self.ctx, &self.intents, key),
            State::None => self.advance(key),
            State::Requested | State::Releasing => {}
        }
    }

    /// At the end of an input: answers probes of waves with the state that it left.
    fn answer_probes(&mut self) {
        self.collectives.start_due_wave(&mut self.ctx);
        while let Some((wave, settles)) = self.collectives.take_probe() {
            if settles {
                let is_meant = !planted!(self.ctx, QuiesceWhileBusy);
                let begun = self.begun(|_| is_meant);
                self.collectives.settle(wave, begun);
                self.progress_syncs();
                continue;
            }
            // Intents of workers that have ended still have replicas to release.
            let unretired = self.collectives.is_leaving() && self.intents.has_signals();
            let busy = (unretired || !self.is_at_rest()) && !planted!(self.ctx, QuiesceWhileBusy);
            self.collectives.report(&mut self.ctx, wave, busy);
        }
    }

    /// What has begun here and is not done; of operations those with an access that is meant.
    fn begun(&self, is_meant: impl Fn(Option<Access>) -> bool) -> Begun {
        let meant = self.ops.iter().filter(|(_, state)| is_meant(state.access));
        let mut ops: Vec<OpId> = meant.map(|(id, _)| *id).collect();
        ops.sort_unstable();
        Begun { ops, round: self.ctx.round, requests: self.intents.unanswered() }
    }

    /// Moves calls of `wait_sync` on.
    fn progress_syncs(&mut self) {
        if !self.collectives.waits_for_sync() {
            return;
        }
        let (ops, peers) = (&self.ops, &self.peers);
        // A peer is concerned if replicas of its keys are here, or a request to it may carry their last deltas.
        let is_concerned = |peer: &Peer| peer.replicas > 0 || peer.outstanding.is_some();
        let nodes = self.ctx.nodes();
        let concerned =
            || nodes.clone().zip(peers).filter(|(_, peer)| is_concerned(peer)).map(|(node, _)| node);
        self.collectives.progress_syncs(&mut self.ctx, |op| ops.contains_key(&op), concerned);
    }

    fn handle_message(&mut self, from: NodeId, message: Message) -> Result<(), ProtocolError> {
        let blame = |fault| ProtocolError { peer: from, fault };
        let config = &self.ctx.config;
        if from == config.node || from.index() >= config.nodes {
            return Err(blame(Fault::UnknownNode(from)));
        }
        if self.ctx.is_lost(from) && !planted!(self.ctx, HeedLost) {
            return Ok(());
        }
        shape::check::<S::Value>(&message, &self.ctx.layout, config.nodes, config.channel, config.channels)
            .map_err(blame)?;
        if !planted!(self.ctx, DeafToAnswers) {
            self.watch.hear(from);
        }
        let control = message.is_control();
        let answers = planted!(self.ctx, AnswerRefused) && matches!(*message.body, Body::SyncRequest(_));
        let Message { body, values } = message;
        let values = values.values::<S::Value>();
        if planted!(self.ctx, CountRefused) && !control {
            self.ctx.stats.messages_applied += 1;
        }
        let verdict = match *body {
            Body::SyncRequest(request) => {
                let (dirty, asked) = (&self.agenda.dirty, (from, request));
                self.ownership.handle_request(&mut self.ctx, &self.intents, dirty, asked, values)
            }
            Body::SyncResponse(response) => self.handle_sync_response(from, response, values),
            Body::Grant(grants) => self.handle_grant(from, grants, values),
            Body::News => {
                self.peers[from.index()].news = true;
                Ok(())
            }
            Body::Forward(forward) => self.handle_forward(from, forward, values),
            Body::Operation(operation) => self.handle_operation(from, operation, values),
            Body::Answer(answer) => self.handle_answer(from, answer, values),
            Body::Retry(retry) => self.handle_retry(from, retry),
            Body::Residence(residence) => self.residences.handle_residence(&mut self.ctx, from, residence),
            Body::Barrier(_) | Body::Quiesce(_) if self.ctx.first_lost.is_some() => Ok(()),
            Body::Barrier(barrier) => self.collectives.handle_barrier(&mut self.ctx, from, barrier),
            Body::Quiesce(quiesce) => self.collectives.handle_quiesce(&mut self.ctx, from, quiesce),
        };
        if answers && verdict.is_err() {
            self.ctx.send(from, Message::bare(Body::SyncResponse(Default::default())));
        }
        verdict.map_err(blame)?;
        if !control {
            self.collectives.note_applied(from);
            self.ctx.stats.messages_applied += u64::from(!planted!(self.ctx, CountRefused));
        }
        Ok(())
    }

    fn handle_timeout(&mut self, clocks: &[Clock]) -> Result<(), OpError> {
        if clocks.len() != self.ctx.clocks.len() {
            return Err(OpError::ValueLen { expected: self.ctx.clocks.len(), given: clocks.len() });
        }
        self.ctx.clocks.copy_from_slice(clocks);
        self.collectives.report_missing(&mut self.ctx);
        let (ops, intents, collectives) = (&self.ops, &self.intents, &self.collectives);
        let owes = |node: NodeId| self.peers[node.index()].outstanding.is_some();
        self.watch.look(&mut self.ctx, || waits_for_others(ops, intents, collectives), owes);
        self.follow_effects();
        if self.round_may_begin() {
            self.begin_round();
        }
        Ok(())
    }
}

/// Returns true if an operation of this node, collective or not, an intent or a localize is unanswered.
fn waits_for_others<V>(ops: &OpMap<OpState<V>>, intents: &Intents, collectives: &Collectives) -> bool {
    !ops.is_empty()
        || intents.unanswered() > 0
        || collectives.waits_for_sync()
        || collectives.waits_for_nodes()
}
