//! One node: an engine, its workers, and the keys that they dirtied.

use std::collections::HashMap;
use std::rc::Rc;

use adapm_core::engine::{Event, Input, Intent, Op, OpBody, OpId, Output, Reason, SignalId};
use adapm_core::error::InputError;
use adapm_core::policy::SystemPolicy;
use adapm_core::slot::{Pushed, State, Word};
use adapm_core::store::Store;
use adapm_core::wire::Message;
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};
use foldhash::fast::FixedState;

use super::LightStore;

/// An engine over the store that its workers share.
type Engine = adapm_core::engine::Engine<Rc<LightStore>, SystemPolicy>;

/// A worker as the runtime has it.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) clock: Clock,
    /// Keys on which operations of its own are unfinished: with these it uses the slow path.
    unfinished: HashMap<Key, u32, FixedState>,
    /// The operation for which it waits.
    blocked: Option<OpId>,
}

/// An unfinished operation.
#[derive(Debug)]
struct Pending {
    worker: WorkerId,
    keys: Vec<Key>,
}

pub(super) struct Member {
    pub(super) engine: Engine,
    pub(super) store: Rc<LightStore>,
    pub(super) workers: Vec<Worker>,
    pub(super) until: Option<Instant>,
    pub(super) reason: Reason,
    pub(super) sent: Vec<(NodeId, Message)>,
    pub(super) ready: Vec<WorkerId>,
    dirty: Vec<Key>,
    ops: HashMap<OpId, Pending, FixedState>,
    next_op: u64,
    nodes: usize,
}

/// How an access ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accessed {
    /// Keys served by the fast path.
    pub(super) fast: u64,
    /// Keys handed to the engine.
    pub(super) slow: u64,
    /// Whether the worker waits.
    pub(super) waits: bool,
}

impl Member {
    pub(super) fn new(engine: Engine, store: Rc<LightStore>, clock: Clock) -> Self {
        let config = engine.config();
        let workers = (0..config.workers).map(|_| Worker { clock, ..Worker::default() }).collect();
        Self {
            nodes: config.nodes,
            engine,
            store,
            workers,
            until: None,
            reason: Reason::Idle,
            sent: Vec::new(),
            ready: Vec::new(),
            dirty: Vec::new(),
            ops: HashMap::default(),
            next_op: 0,
        }
    }

    /// Reads `keys`.
    pub(super) fn pull(
        &mut self,
        now: Instant,
        worker: WorkerId,
        keys: Vec<Key>,
        wait: bool,
    ) -> Result<Accessed, InputError> {
        let all = keys.len() as u64;
        let is_local = |state| matches!(state, State::Main | State::Replica);
        let slow = self.left_over(worker, keys, |member, key| member.touch(key, is_local));
        self.hand_over(now, worker, slow, wait, |keys| OpBody::Pull { keys }, all)
    }

    /// Adds one to every element of `keys`.
    pub(super) fn push(
        &mut self,
        now: Instant,
        worker: WorkerId,
        keys: Vec<Key>,
        wait: bool,
    ) -> Result<Accessed, InputError> {
        let all = keys.len() as u64;
        let slow = self.left_over(worker, keys, Self::push_here);
        // An engine that is due anyway takes them then; one that sleeps is woken by the first.
        if !self.dirty.is_empty() && self.until.is_none() {
            self.feed_dirty(now)?;
        }
        let updates = vec![1; slow.iter().map(|key| self.store.value_len(*key)).sum()];
        self.hand_over(now, worker, slow, wait, |keys| OpBody::Push { keys, updates }, all)
    }

    /// Asks for the main copies of those of `keys` that are not here.
    pub(super) fn localize(
        &mut self,
        now: Instant,
        worker: WorkerId,
        keys: Vec<Key>,
        wait: bool,
    ) -> Result<Accessed, InputError> {
        let all = keys.len() as u64;
        let mut slow = keys;
        slow.retain(|key| !self.touch(*key, |state| state == State::Main));
        self.hand_over(now, worker, slow, wait, |keys| OpBody::Localize { keys }, all)
    }

    pub(super) fn intent(
        &mut self,
        now: Instant,
        worker: WorkerId,
        keys: Vec<Key>,
        ahead: u64,
        clocks: u64,
    ) -> Result<(), InputError> {
        let start = self.workers[worker.index()].clock.plus(ahead);
        let intent = Intent { worker, id: SignalId::default(), keys, clocks: start..start.plus(clocks) };
        self.feed(now, Input::Intent(intent))
    }

    /// A step without keys.
    pub(super) fn collective(
        &mut self,
        now: Instant,
        worker: WorkerId,
        body: OpBody<i64>,
        wait: bool,
    ) -> Result<Accessed, InputError> {
        if matches!(body, OpBody::End) {
            self.workers[worker.index()].clock = Clock::INFINITY;
        }
        self.feed_dirty(now)?;
        let waits = self.operate(now, worker, Vec::new(), body, wait)?;
        Ok(Accessed { waits, ..Accessed::default() })
    }

    pub(super) fn advance(&mut self, worker: WorkerId, clocks: u64) {
        let clock = &mut self.workers[worker.index()].clock;
        *clock = clock.plus(clocks);
    }

    pub(super) fn deliver(&mut self, now: Instant, from: NodeId, message: Message) -> Result<(), InputError> {
        let marked =
            matches!(&*message.body, adapm_core::wire::message::Body::SyncRequest(request) if request.sync);
        if marked {
            self.feed_dirty(now)?;
        }
        self.feed(now, Input::Message(from, message))
    }

    pub(super) fn timeout(&mut self, now: Instant) -> Result<(), InputError> {
        self.feed_dirty(now)?;
        let clocks: Vec<Clock> = self.workers.iter().map(|worker| worker.clock).collect();
        self.feed(now, Input::Timeout(&clocks))
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.ops.is_empty() && self.dirty.is_empty() && self.reason == Reason::Idle
    }

    /// Whether the node waits for operations of its own, for people.
    pub(super) fn waiting(&self) -> String {
        format!("{} operations, {} dirty keys, {:?}", self.ops.len(), self.dirty.len(), self.reason)
    }

    /// Looks at the local copy of `key`, which comes into being if this is its untouched home.
    fn touch(&self, key: Key, look: impl Fn(State) -> bool) -> bool {
        self.found_at_home(key);
        self.store.with_slot(key, |slot| look(slot.word.state()))
    }

    /// Creates the main copy that a dense layout would have had from the start.
    fn found_at_home(&self, key: Key) {
        let untouched = self.store.with_slot(key, |slot| *slot.word == Word::EMPTY);
        if untouched && Layout::home(key, self.nodes) == self.engine.config().node {
            self.store.reserve(key, false);
            self.store.with_slot(key, |mut slot| slot.found());
        }
    }

    /// The `keys` that the fast path does not serve: `serve` cannot, or operations of the worker on them are unfinished.
    fn left_over(
        &mut self,
        worker: WorkerId,
        mut keys: Vec<Key>,
        mut serve: impl FnMut(&mut Self, Key) -> bool,
    ) -> Vec<Key> {
        keys.retain(|key| self.workers[worker.index()].unfinished.contains_key(key) || !serve(self, *key));
        keys
    }

    /// Adds one to every element of the local copy of `key`; false if there is none.
    fn push_here(&mut self, key: Key) -> bool {
        self.found_at_home(key);
        let pushed = self.store.with_slot(key, |mut slot| {
            let ones = [1; ELEMENTS_MAX];
            let len = slot.value.len();
            slot.push(&ones[..len])
        });
        if pushed == Pushed::Dirtied {
            self.dirty.push(key);
        }
        pushed != Pushed::Refused
    }

    fn hand_over(
        &mut self,
        now: Instant,
        worker: WorkerId,
        slow: Vec<Key>,
        wait: bool,
        body: impl FnOnce(Vec<Key>) -> OpBody<i64>,
        all: u64,
    ) -> Result<Accessed, InputError> {
        let handed = slow.len() as u64;
        if slow.is_empty() {
            return Ok(Accessed { fast: all, ..Accessed::default() });
        }
        self.feed_dirty(now)?;
        let waits = self.operate(now, worker, slow.clone(), body(slow), wait)?;
        Ok(Accessed { fast: all - handed, slow: handed, waits })
    }

    /// Feeds an operation; whether the worker waits for it.
    fn operate(
        &mut self,
        now: Instant,
        worker: WorkerId,
        keys: Vec<Key>,
        body: OpBody<i64>,
        wait: bool,
    ) -> Result<bool, InputError> {
        self.next_op += 1;
        let id = OpId(self.next_op);
        let known = &mut self.workers[worker.index()];
        // A localize reads and writes nothing that later accesses could overtake.
        let keys = if matches!(body, OpBody::Localize { .. }) { Vec::new() } else { keys };
        for key in &keys {
            *known.unfinished.entry(*key).or_default() += 1;
        }
        known.blocked = wait.then_some(id);
        self.ops.insert(id, Pending { worker, keys });
        self.feed(now, Input::Op(Op { id, worker, body }))?;
        let known = &mut self.workers[worker.index()];
        let waits = known.blocked == Some(id);
        if !waits {
            // It was done at once: nobody has to be told.
            self.ready.retain(|ready| *ready != worker);
        }
        Ok(waits)
    }

    fn feed_dirty(&mut self, now: Instant) -> Result<(), InputError> {
        if self.dirty.is_empty() {
            return Ok(());
        }
        let dirty = std::mem::take(&mut self.dirty);
        let fed = self.feed(now, Input::Dirty(&dirty));
        self.dirty = dirty;
        self.dirty.clear();
        fed
    }

    fn feed(&mut self, now: Instant, input: Input<'_, i64>) -> Result<(), InputError> {
        self.engine.handle_input(now, input)?;
        loop {
            match self.engine.poll_output() {
                Output::Transmit(to, message) => self.sent.push((to, message)),
                Output::Event(Event::Done { op, .. } | Event::Failed { op, .. }) => self.end(op),
                Output::Event(_) => {}
                Output::Wait { until, reason } => {
                    (self.until, self.reason) = (until, reason);
                    return Ok(());
                }
            }
        }
    }

    fn end(&mut self, op: OpId) {
        let Some(pending) = self.ops.remove(&op) else { return };
        let worker = &mut self.workers[pending.worker.index()];
        for key in &pending.keys {
            if let Some(count) = worker.unfinished.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    worker.unfinished.remove(key);
                }
            }
        }
        if worker.blocked == Some(op) {
            worker.blocked = None;
            self.ready.push(pending.worker);
        }
    }
}

/// The longest modelled value in elements.
pub(super) const ELEMENTS_MAX: usize = 64;
