//! One node: an engine, its workers, and the keys that they dirtied.

use std::collections::HashMap;
use std::rc::Rc;

use adapm_core::clock::Tick;
use adapm_core::driver::order::InFlight;
use adapm_core::driver::{self, Host};
use adapm_core::engine::{Event, Input, Intent, Op, OpBody, OpId, Reason, SignalId};
use adapm_core::error::InputError;
use adapm_core::policy::SystemPolicy;
use adapm_core::slot::{PackedState, Pushed, State};
use adapm_core::store::Store;
use adapm_core::wire::Message;
use adapm_core::{Clock, Instant, Key, NodeId, WorkerId};
use foldhash::fast::FixedState;

use super::LightStore;

/// An engine over the store that its workers share.
type Engine = adapm_core::engine::Engine<Rc<LightStore>, SystemPolicy>;

type Driver = driver::Driver<Rc<LightStore>, SystemPolicy>;

/// A worker as in the runtime.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) clock: Clock,
    /// Ticks that it has reached.
    ticks: u64,
    /// Its unfinished operations: it uses the slow path for their keys.
    order: InFlight<OpId>,
    /// The operation for which it waits.
    blocked: Option<OpId>,
}

pub(super) struct Member {
    pub(super) driver: Driver,
    pub(super) store: Rc<LightStore>,
    pub(super) around: Around,
    next_op: u64,
}

/// The environment of the engine.
#[derive(Default)]
pub(super) struct Around {
    pub(super) workers: Vec<Worker>,
    pub(super) sent: Vec<(NodeId, Message)>,
    pub(super) ready: Vec<WorkerId>,
    dirty: Vec<Key>,
    /// Unfinished operations.
    ops: HashMap<OpId, WorkerId, FixedState>,
}

impl Host<i64> for Around {
    fn take_dirty(&mut self, keys: &mut Vec<Key>) {
        keys.append(&mut self.dirty);
    }

    fn transmit(&mut self, to: NodeId, message: Message) {
        self.sent.push((to, message));
    }

    fn tell(&mut self, event: Event<i64>) {
        let (Event::Done { op, .. } | Event::Failed { op, .. }) = event else { return };
        let Some(id) = self.ops.remove(&op) else { return };
        let worker = &mut self.workers[id.index()];
        worker.order.finish(&op);
        if worker.blocked == Some(op) {
            worker.blocked = None;
            self.ready.push(id);
        }
    }
}

/// The result of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accessed {
    /// Keys served by the fast path.
    pub(super) fast: u64,
    /// Keys handed to the engine.
    pub(super) slow: u64,
    /// True if the worker waits.
    pub(super) waits: bool,
}

impl Member {
    pub(super) fn new(engine: Engine, store: Rc<LightStore>, clock: Clock) -> Self {
        let config = engine.config();
        let workers = (0..config.workers).map(|_| Worker { clock, ..Worker::default() }).collect();
        Self {
            driver: Driver::new(engine),
            store,
            around: Around { workers, ..Around::default() },
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
        // An engine that is due anyway takes them then; a sleeping one is woken by the first.
        if !self.around.dirty.is_empty() && self.driver.until().is_none() {
            self.driver.look_at_dirty_keys(&mut self.around);
        }
        let updates = vec![1; slow.iter().map(|key| self.store.value_len(*key)).sum()];
        self.hand_over(now, worker, slow, wait, |keys| OpBody::Push { keys, updates }, all)
    }

    /// Localizes those of `keys` that are absent.
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
        let start = self.around.workers[worker.index()].clock + ahead;
        let intent =
            Intent { worker, id: SignalId::default(), keys, clocks: start..start + clocks };
        self.feed(now, Input::Intent(intent))
    }

    /// Takes a step without keys.
    pub(super) fn collective(
        &mut self,
        now: Instant,
        worker: WorkerId,
        body: OpBody<i64>,
        wait: bool,
    ) -> Result<Accessed, InputError> {
        if matches!(body, OpBody::End) {
            self.around.workers[worker.index()].clock = Clock::INFINITY;
        }
        let waits = self.operate(now, worker, Vec::new(), body, wait)?;
        Ok(Accessed { waits, ..Accessed::default() })
    }

    /// Reaches the next tick.
    pub(super) fn tick(&mut self, now: Instant, worker: WorkerId) -> Result<Accessed, InputError> {
        let ticks = &mut self.around.workers[worker.index()].ticks;
        *ticks += 1;
        let tick = Tick::new(0, *ticks);
        self.collective(now, worker, OpBody::Tick { tick, waits: true }, true)
    }

    pub(super) fn advance(&mut self, worker: WorkerId, clocks: u64) {
        let clock = &mut self.around.workers[worker.index()].clock;
        *clock = *clock + clocks;
    }

    pub(super) fn deliver(
        &mut self,
        now: Instant,
        from: NodeId,
        message: Message,
    ) -> Result<(), InputError> {
        self.feed(now, Input::Message(from, message))
    }

    pub(super) fn timeout(&mut self, now: Instant) -> Result<(), InputError> {
        let clocks: Vec<Clock> = self.around.workers.iter().map(|worker| worker.clock).collect();
        self.feed(now, Input::Timeout(&clocks))
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.around.ops.is_empty()
            && self.around.dirty.is_empty()
            && self.driver.reason() == Reason::Idle
    }

    /// Describes the node's own pending operations.
    pub(super) fn waiting(&self) -> String {
        format!(
            "{} operations, {} dirty keys, {:?}",
            self.around.ops.len(),
            self.around.dirty.len(),
            self.driver.reason()
        )
    }

    /// Looks at the local copy of `key`, which is created if this is its untouched home.
    fn touch(&self, key: Key, look: impl Fn(State) -> bool) -> bool {
        self.found_at_home(key);
        self.store.with_slot(key, |slot| look(slot.packed.state()))
    }

    /// Creates the main copy that a dense layout would have had from the start.
    fn found_at_home(&self, key: Key) {
        let config = self.driver.engine().config();
        let untouched = self.store.with_slot(key, |slot| *slot.packed == PackedState::EMPTY);
        if untouched && config.homes.home(key) == config.node {
            self.store.reserve(key, false);
            self.store.with_slot(key, |mut slot| slot.create_main_copy());
        }
    }

    /// Returns the `keys` that the fast path does not serve: `serve` cannot, or operations of the
    /// worker on them are unfinished.
    fn left_over(
        &mut self,
        worker: WorkerId,
        mut keys: Vec<Key>,
        mut serve: impl FnMut(&mut Self, Key) -> bool,
    ) -> Vec<Key> {
        keys.retain(|key| {
            self.around.workers[worker.index()].order.blocks(*key) || !serve(self, *key)
        });
        keys
    }

    /// Adds one to every element of the local copy of `key`. Returns false if there is none.
    fn push_here(&mut self, key: Key) -> bool {
        self.found_at_home(key);
        let pushed = self.store.with_slot(key, |mut slot| {
            let ones = [1; ELEMENTS_MAX];
            let len = slot.value.len();
            slot.push(&ones[..len])
        });
        if pushed == Pushed::Dirtied {
            self.around.dirty.push(key);
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
        let waits = self.operate(now, worker, slow.clone(), body(slow), wait)?;
        Ok(Accessed { fast: all - handed, slow: handed, waits })
    }

    /// Feeds an operation. Returns true if the worker waits for it.
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
        let known = &mut self.around.workers[worker.index()];
        // A localize reads and writes nothing that later accesses could overtake.
        let keys = if matches!(body, OpBody::Localize { .. }) { Vec::new() } else { keys };
        keys.iter().for_each(|key| known.order.mark(*key));
        known.order.track(id, keys);
        known.blocked = wait.then_some(id);
        self.around.ops.insert(id, worker);
        self.feed(now, Input::Op(Op { id, worker, body }))?;
        let known = &mut self.around.workers[worker.index()];
        let waits = known.blocked == Some(id);
        if !waits {
            // It was done at once: no wake-up is needed.
            self.around.ready.retain(|ready| *ready != worker);
        }
        Ok(waits)
    }

    fn feed(&mut self, now: Instant, input: Input<'_, i64>) -> Result<(), InputError> {
        self.driver.feed(now, input, &mut self.around)
    }
}

/// The longest modelled value in elements.
pub(super) const ELEMENTS_MAX: usize = 64;
