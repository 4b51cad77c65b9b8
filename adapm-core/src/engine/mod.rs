//! The protocol engine of one channel of one node: one door in, one door out.
//!
//! | file | subject |
//! | --- | --- |
//! | [`input`], [`output`] | inputs and outputs |
//! | `steps` | steps in which several machines take part: a round, its answers, an entry, a loss |
//! | `intent` | machine: the keys that this node wants, and the nodes asked for them |
//! | `operations` | machine: operations of own workers, entries of other nodes that wait |
//! | `ownership` | machine: keys owned here: decisions, relocation, replication, the owner's half of a round |
//! | `residences` | machine: a home's knowledge of owners |
//! | `round` | machine: the requester's half of a round |
//! | `collective` | machine: barrier, quiesce, the end of a run, `wait_sync`, and the participants that hold them up |
//! | `watch` | machine: peers that do not answer |
//! | `freeze` | nodes between which no main copy moves |
//! | `ctx`, `effect` | the machines' shared state, and their requests to each other |
//! | `entry`, `outgoing` | entries that nodes send to each other, and those that leave at the end of an input |
//! | `budget` | room in messages, and keys that wait for it |
//! | `inspect` | views for tests |
//!
//! A machine's fields are private to it. Its handlers get the shared state (`ctx`) and, to read,
//! the machines whose facts they need; a request to another machine is an `effect`, which the
//! engine carries out in the same input. No machine calls another one: `steps` defines the order in
//! which several of them act.

mod budget;
mod collective;
mod ctx;
mod effect;
mod entry;
mod freeze;
pub mod input;
#[cfg(feature = "inspect")]
mod inspect;
mod intent;
mod operations;
mod outgoing;
pub mod output;
mod ownership;
mod residences;
mod round;
mod steps;
mod watch;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use ctx::{Initial, create_main_copies};
pub use input::{Input, Intent, Op, OpBody, OpId, SignalId};
#[cfg(feature = "inspect")]
pub use inspect::KeyView;
pub use output::{Absent, Collective, Event, Output, Reason};

use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::error::{ConfigError, Fault, InputError, OpError, ProtocolError};
use crate::id::{Key, NodeId};
use crate::layout::Layout;
use crate::observe::Observe;
use crate::policy::Policy;
use crate::stats::Stats;
use crate::store::Store;
use crate::time::Instant;
use crate::wire::message::{Body, Mark};
use crate::wire::{Message, shape};

use collective::{Begun, Collectives};
use ctx::Ctx;
use effect::{Effect, PassOn};
use entry::{Access, AskedFor, Entry};
use intent::Intents;
use operations::Operations;
use ownership::Ownership;
use residences::Residences;
use round::Round;
use watch::Watch;

/// The protocol engine of one channel of one node.
///
/// A [`Driver`](crate::driver::Driver) feeds it one [`Input`], drains [`Engine::poll_output`] until
/// [`Output::Wait`], then feeds the next. All that is due around an engine is a checklist: [drive an
/// engine](crate::docs::driving).
pub struct Engine<S: Store, P: Policy> {
    ctx: Ctx<(S, P)>,
    intents: Intents,
    operations: Operations<S::Value>,
    ownership: Ownership,
    residences: Residences,
    round: Round,
    collectives: Collectives,
    watch: Watch,
}

impl<S: Store, P: Policy> Engine<S, P> {
    /// Creates an engine over `store`, which it shares with the workers of the node.
    ///
    /// In a dense layout its main copies come next: by [`Engine::populate`], or
    /// [`create_main_copies`]. Without them the first input is refused.
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
        Ok(Self {
            intents: Intents::new(config.nodes, config.workers),
            operations: Operations::new(config.nodes),
            ownership: Ownership::new(config.nodes),
            residences: Residences::new(config.nodes),
            round: Round::new(config.nodes),
            collectives: Collectives::new(config.nodes, config.workers, policy.bound()),
            watch: Watch::new(config.nodes),
            ctx: Ctx::new(config, layout, store, policy, initial),
        })
    }

    /// Feeds one input at time `now`; then drain [`Engine::poll_output`].
    ///
    /// # Errors
    /// An invalid input, with the party to blame, or a dense layout without its main copies
    /// ([`Engine::populate`]); nothing of it has been applied.
    pub fn handle_input(
        &mut self,
        now: Instant,
        input: Input<'_, S::Value>,
    ) -> Result<(), InputError> {
        self.ctx.check_populated()?;
        self.ctx.pass_to(now);
        while self.ownership.is_answering() {
            self.go_on();
        }
        match input {
            Input::Message(from, message) => self.handle_message(from, message)?,
            Input::Op(op) => self.handle_op(op)?,
            Input::Intent(intent) => self.intents.handle_intent(&self.ctx, intent)?,
            Input::TakeBack(intent) => self.intents.handle_take_back(&self.ctx, intent)?,
            Input::Timeout(clocks) => self.handle_timeout(clocks)?,
            Input::PeerLost(node) => self.handle_peer_lost(node)?,
            Input::Heard(node) => self.watch.handle_heard(&self.ctx, node)?,
        }
        self.follow_effects();
        self.go_on();
        if self.watch.may_begin(&self.ctx) && (self.waits_for_others() || self.round.is_owed()) {
            self.watch.begin(&self.ctx);
        }
        Ok(())
    }

    /// Adds keys that workers have made dirty.
    pub(crate) fn note_dirty(&mut self, keys: &[Key]) {
        self.ctx.note_changes(keys);
        self.round.note_dirty(keys);
    }

    /// Returns the next output. Drain until [`Output::Wait`]: unfinished work on an input continues
    /// when no output is left.
    pub fn poll_output(&mut self) -> Output<S::Value> {
        loop {
            match self.ctx.outputs.pop_front() {
                Some(output) => return output,
                None if !self.ownership.is_answering() => return self.wait(),
                None => self.go_on(),
            }
        }
    }

    /// Returns the time of the next check for unresponsive peers: the first [`Input::Timeout`] from
    /// then on counts (protocol, "Links"). `None` if nothing is waited for, a peer is lost, or
    /// [`unresponsive_nanos`](NodeConfig::unresponsive_nanos) is not set. A driver that knows of
    /// slow links feeds [`Input::Heard`] before that.
    #[must_use]
    pub fn next_look_at(&self) -> Option<Instant> {
        self.watch.next_look_at(&self.ctx)
    }

    /// Sends single events to `observer` from here on, each after the policy's own observer
    /// ([`Policy::observer`]) if there is one. Replaces an earlier observer.
    pub fn set_observer(&mut self, observer: Box<dyn Observe + Send>) {
        self.ctx.observer = Some(observer);
    }

    /// Returns the engine's place and bounds.
    pub fn config(&self) -> &NodeConfig {
        &self.ctx.config
    }

    /// Returns the layout.
    pub fn layout(&self) -> &Layout {
        &self.ctx.layout
    }

    /// Returns the store.
    pub fn store(&self) -> &S {
        &self.ctx.store
    }

    /// Returns the policy.
    pub fn policy(&self) -> &P {
        &self.ctx.policy
    }

    /// Returns the totals since the engine was made.
    pub fn stats(&self) -> &Stats {
        &self.ctx.stats
    }

    /// Continues work on the last input, up to the next output at most; when it is done, sends
    /// everything that it has produced.
    fn go_on(&mut self) {
        if self.ownership.is_answering() {
            self.ownership.answer_on(&mut self.ctx, &self.intents);
            self.follow_effects();
        }
        if !self.ownership.is_answering() {
            self.progress_syncs();
            self.progress_ticks();
            self.progress_freezes();
            self.ctx.flush();
            self.ownership.send_news(&mut self.ctx);
            self.answer_probes();
        }
    }

    /// Carries out the effects that machines have asked for.
    fn follow_effects(&mut self) {
        while let Some(effect) = self.ctx.effects.pop_front() {
            match effect {
                Effect::Hurry => self.round.hurry(),
                Effect::Ask(node) => self.round.ask_next(node),
                Effect::Unwanted(key) => self.note_unwanted(key),
                Effect::Left { key, is_turn } => {
                    if is_turn {
                        self.intents.note_turn_over(key);
                    }
                    self.intents.ask_later(key);
                }
                Effect::PassOn(entry) => {
                    let PassOn { hop, asker, key, counter, localize } = *entry;
                    let asked = if localize { AskedFor::Localize } else { AskedFor::Intent };
                    self.operations.pass_on(
                        &mut self.ctx,
                        hop,
                        Entry { asker, key, counter, asked },
                    );
                }
                Effect::Unpark(key) => {
                    for entry in self.operations.take_parked(key) {
                        self.serve(entry.borrowed());
                    }
                }
                Effect::AskedBefore { key, asked } => self.intents.note_asked_before(key, asked),
                Effect::Keep(key) => self.keep(key),
                Effect::Finish(op) => self.operations.finish(&mut self.ctx, op),
                Effect::Dirtied(key) => self.round.note_dirty(&[key]),
                Effect::Changed(key) => {
                    self.ownership.mark_stale(&self.ctx, (key, self.ctx.version(key)), None);
                }
                Effect::AskLater(key) => self.intents.ask_later(key),
                Effect::TurnedAway(key) => self.note_turned_away(key),
            }
        }
    }

    /// Answers probes of waves with the state after this input.
    fn answer_probes(&mut self) {
        self.collectives.start_due_wave(&mut self.ctx);
        while let Some((wave, settles)) = self.collectives.take_probe() {
            if settles {
                let begun = self.begun(|_| true);
                self.collectives.settle(wave, begun);
                self.progress_syncs();
                continue;
            }
            // Intents of workers that have ended still have replicas to release.
            let unretired = self.collectives.is_leaving() && self.intents.has_signals();
            let busy = unretired || !self.is_at_rest();
            self.collectives.report(&mut self.ctx, wave, busy);
        }
    }

    /// Returns the work that has begun here and is unfinished; of operations, those for which
    /// `is_meant` returns true.
    fn begun(&self, is_meant: impl Fn(Option<Access>) -> bool) -> Begun {
        let ops = self.operations.unfinished(is_meant);
        let asked: Vec<Key> = self.intents.asked_at_once().collect();
        let requests = self.intents.unanswered() - asked.len();
        Begun { ops, round: self.ctx.round, requests, asked }
    }

    /// Advances calls of `wait_sync`.
    fn progress_syncs(&mut self) {
        if !self.collectives.waits_for_sync() {
            return;
        }
        let (operations, round) = (&self.operations, &self.round);
        let nodes = self.ctx.nodes();
        let (ctx, settles_only) = (&self.ctx, self.collectives.settles_only());
        let concerned = |mark| match mark {
            Mark::Check if settles_only => round.unsettled(ctx),
            _ => nodes.clone().filter(|node| round.is_concerned(*node)).collect(),
        };
        let done = self.collectives.progress_syncs(|op| operations.is_unfinished(op), concerned);
        self.collectives.end_syncs(&mut self.ctx, done);
    }

    /// Advances workers that wait for a tick.
    fn progress_ticks(&mut self) {
        while self.collectives.is_bounded() {
            if let Some(tick) = self.collectives.next_expiry() {
                self.intents.end_kept(&mut self.ctx, tick);
                self.follow_effects();
            }
            self.collectives.pass_ticks(&mut self.ctx, self.intents.oldest_kept());
            if !self.collectives.may_settle_ticks() {
                return;
            }
            self.note_changes_before_tick();
            let begun = self.begun(|access| matches!(access, Some(Access::Push | Access::Set)));
            self.collectives.settle_ticks(begun);
            self.progress_syncs();
        }
    }

    /// Ends calls of `freeze` once nothing that this node has asked for is unanswered.
    fn progress_freezes(&mut self) {
        if self.ctx.freezes.is_waiting() && self.intents.unanswered() == 0 && !self.round.is_owed()
        {
            for op in self.ctx.freezes.take_waiting() {
                self.ctx.done(op, Vec::new());
            }
        }
    }

    /// Has what own workers have pushed to main copies count as a change, where changes are
    /// counted: what they push behind the tick is another.
    fn note_changes_before_tick(&mut self) {
        for &key in self.round.dirty() {
            if self.ctx.policy.lag(key) > 0 {
                self.ownership.take_dirty(&self.ctx, key);
            }
        }
    }

    fn handle_message(&mut self, from: NodeId, message: Message) -> Result<(), ProtocolError> {
        let blame = |fault| ProtocolError { peer: from, fault };
        let config = &self.ctx.config;
        if from == config.node || from.index() >= config.nodes {
            return Err(blame(Fault::UnknownNode(from)));
        }
        if self.ctx.is_lost(from) {
            return Ok(());
        }
        shape::check::<S::Value>(
            &message,
            &self.ctx.layout,
            config.nodes,
            config.channel,
            config.channels,
        )
        .map_err(blame)?;
        self.watch.hear(from);
        let control = message.is_control();
        let Message { body, values } = message;
        let values = values.values::<S::Value>();
        let verdict = match *body {
            Body::SyncRequest(request) => {
                self.ctx.note_changes(&request.deltas);
                let (dirty, asked) = (self.round.dirty(), (from, request));
                self.ownership.handle_request(&mut self.ctx, &self.intents, dirty, asked, values)
            }
            Body::SyncResponse(response) => self.handle_sync_response(from, response, values),
            Body::Grant(grants) => self.handle_grant(from, grants, values),
            Body::News => {
                self.round.ask_next(from);
                Ok(())
            }
            Body::Forward(forward) => self.handle_forward(from, forward, values),
            Body::Operation(operation) => self.handle_operation(from, operation, values),
            Body::Answer(answer) => {
                self.operations.handle_answer(&mut self.ctx, &self.intents, from, answer, values);
                Ok(())
            }
            Body::Retry(retry) => self.handle_retry(from, retry),
            Body::Residence(residence) => {
                self.residences.handle_residence(&mut self.ctx, from, residence)
            }
            Body::Barrier(_) | Body::Quiesce(_) if self.ctx.first_lost.is_some() => Ok(()),
            Body::Barrier(barrier) => self.collectives.handle_barrier(&mut self.ctx, from, barrier),
            Body::Quiesce(quiesce) => self.collectives.handle_quiesce(&mut self.ctx, from, quiesce),
        };
        verdict.map_err(blame)?;
        if !control {
            self.collectives.note_applied(from);
            self.ctx.stats.messages_applied += 1;
        }
        Ok(())
    }

    fn handle_timeout(&mut self, clocks: &[Clock]) -> Result<(), OpError> {
        if clocks.len() != self.ctx.clocks.len() {
            return Err(OpError::ValueLen { expected: self.ctx.clocks.len(), given: clocks.len() });
        }
        self.ctx.clocks.copy_from_slice(clocks);
        self.collectives.report_missing(&mut self.ctx);
        let waits = self.watch.is_due(&self.ctx) && self.waits_for_others();
        let round = &self.round;
        self.watch.look(&mut self.ctx, waits, |node| round.owes(node));
        self.follow_effects();
        self.ownership.end_waits(&self.ctx, self.goes_at_once());
        if self.ctx.freezes.is_frozen() {
            if waits {
                self.round.ask_without_round(&mut self.ctx);
            }
        } else if self.has_work() && self.round.may_begin(&self.ctx, self.wants_mark()) {
            self.begin_round();
        }
        Ok(())
    }

    /// Returns true if an operation of this node, collective or not, an intent or a localize is
    /// unanswered.
    fn waits_for_others(&self) -> bool {
        self.operations.any()
            || self.intents.unanswered() > 0
            || self.ctx.freezes.is_waiting()
            || self.collectives.waits_for_sync()
            || self.collectives.waits_for_nodes()
    }

    /// Returns the output when nothing is left to do: how long to wait, and for what.
    fn wait(&self) -> Output<S::Value> {
        let (until, reason) = self.round.wait(&self.ctx, self.has_work(), self.wants_mark());
        let others = [
            self.collectives.next_step_at(&self.ctx),
            self.watch.next_look_at(&self.ctx),
            self.ownership.next_due_at(&self.ctx, self.goes_at_once()),
        ];
        let until = others.into_iter().flatten().chain(until).min();
        let waits = self.collectives.waits_for_nodes();
        let reason = reason.unwrap_or(if waits { Reason::Others } else { Reason::Idle });
        Output::Wait { until, reason }
    }

    /// Creates, in dense layouts, the main copies of this channel's keys at their home, if that is
    /// this node. Does nothing in sparse layouts, whose main copies are created on first access.
    ///
    /// Call it once, before the first input, which is refused otherwise
    /// ([`InputError::NotPopulated`]).
    pub fn populate(&self) {
        self.ctx.populate();
    }

    /// Returns true if nothing is pending: no dirty keys, releases, sets, stale holders, parked or
    /// unanswered entries, and no signals that a round was due to examine.
    pub fn is_at_rest(&self) -> bool {
        self.ownership.is_at_rest(&self.ctx)
            && self.round.is_at_rest(&self.ctx)
            && self.intents.is_at_rest(&self.ctx)
            && self.operations.is_at_rest()
            && !self.collectives.waits_for_sync()
    }

    /// Returns the number of entries in all side maps and queues, a measure of the memory for
    /// protocol state.
    pub fn side_entries(&self) -> usize {
        self.intents.side_entries()
            + self.operations.side_entries()
            + self.ownership.side_entries()
            + self.residences.side_entries()
            + self.round.side_entries()
    }

    /// Returns the engine's state for `key`.
    #[cfg(feature = "inspect")]
    pub fn inspect(&self, key: Key) -> KeyView {
        let (packed, version) =
            self.ctx.store.with_slot(key, |slot| (*slot.packed, slot.version.of_main()));
        let [holders, stale] = self.ownership.holders_of(key);
        let (unanswered, waiting, parked) = self.operations.view(key);
        let intent_count = self.intents.count(key);
        KeyView { packed, version, holders, stale, intent_count, parked, unanswered, waiting }
    }
}
