//! Operations of workers: fast path first, the rest by the engine, as in the runtime.

use adapm_core::clock::Tick;
use adapm_core::engine::{Input, Op, OpBody, OpId};
use adapm_core::error::OpError;
use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;

use super::Cluster;
use crate::calls::CallKind;
use crate::check::Checks;
use crate::cut::Stage;
use crate::digits;
use crate::invariants;
use crate::member::Worker;
use crate::oracle::{AccessId, NodeWorker};
use crate::violation::{Violation, hold};

impl Cluster {
    /// Reads `keys`; [`Calls::read`](crate::calls::Calls::read) has the result once the operation
    /// is done.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn pull(&mut self, who: NodeWorker, keys: &[Key]) -> Result<OpId, Violation> {
        let op = self.picture.calls.begin(who, CallKind::Pull, keys.len());
        let mut slow = Vec::new();
        for (place, &key) in keys.iter().enumerate() {
            let access = self.picture.oracle.issue_pull(who, key, self.step);
            let mut value = vec![0; self.picture.setup.value_len(key)];
            let fast = self.picture.members[who.0.index()].fast_pull(who.1, key, &mut value);
            if fast {
                self.note_read(op, place, access, &value)?;
            } else {
                slow.push(key);
                self.queue(who, op, place, access);
            }
        }
        self.submit(op, who, slow.is_empty(), |_| OpBody::Pull { keys: slow })
    }

    /// Pushes a unique update to each of `keys`; skips keys whose digits are used up.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn push(&mut self, who: NodeWorker, keys: &[Key]) -> Result<OpId, Violation> {
        let op = self.picture.calls.begin(who, CallKind::Write, 0);
        let mut slow = Vec::new();
        let mut updates = Vec::new();
        for (place, &key) in keys.iter().enumerate() {
            let Some((access, digit)) = self.picture.oracle.issue_push(who, key, self.step) else {
                continue;
            };
            let update = digits::update(self.picture.setup.value_len(key), digit);
            if self.picture.members[who.0.index()].fast_push(who.1, key, &update) {
                self.picture.oracle.complete(access, self.step);
            } else {
                slow.push(key);
                updates.extend_from_slice(&update);
                self.queue(who, op, place, access);
            }
        }
        self.submit(op, who, slow.is_empty(), |_| OpBody::Push { keys: slow, updates })
    }

    /// Overwrites `keys`.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn set(&mut self, who: NodeWorker, keys: &[Key]) -> Result<OpId, Violation> {
        let op = self.picture.calls.begin(who, CallKind::Write, 0);
        let mut values = Vec::new();
        for (place, &key) in keys.iter().enumerate() {
            let (access, set) = self.picture.oracle.issue_set(who, key, self.step);
            values.extend_from_slice(&digits::set_value(self.picture.setup.value_len(key), set));
            self.queue(who, op, place, access);
        }
        self.submit(op, who, keys.is_empty(), |_| OpBody::Set { keys: keys.to_vec(), values })
    }

    /// Asks for the main copies of `keys`, without those that are hot here, as drivers do.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn localize(&mut self, who: NodeWorker, keys: &[Key]) -> Result<OpId, Violation> {
        let is_cold = |key: &Key| !self.picture.setup.is_hot_at(who.0, *key);
        let keys: Vec<Key> = keys.iter().copied().filter(is_cold).collect();
        self.picture.localized.extend(keys.iter().map(|key| (who.0, *key)));
        let op = self.picture.calls.begin(who, CallKind::Localize, 0);
        self.submit(op, who, keys.is_empty(), |_| OpBody::Localize { keys })
    }

    /// Waits for all pushes of the node to arrive and its replicas to be refreshed.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn wait_sync(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        let mains =
            self.all_keys().map(|key| self.judged_main(key)).collect::<Result<Vec<_>, _>>()?;
        let own = self.all_keys().map(|key| self.picture.oracle.pushes_of(who.0, key)).collect();
        let op = self.picture.calls.begin(who, CallKind::WaitSync { mains, own }, 0);
        self.submit(op, who, false, |_| OpBody::WaitSync)
    }

    /// Refreshes the replicas of `keys`.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn renew(&mut self, who: NodeWorker, keys: &[Key]) -> Result<OpId, Violation> {
        let mut mains = Vec::new();
        for &key in keys {
            let is_replica = self.picture.row(who.0, key).state() == State::Replica;
            if is_replica && let Some(main) = self.judged_main(key)? {
                mains.push((key, main));
            }
        }
        let op = self.picture.calls.begin(who, CallKind::Renew { mains }, 0);
        self.submit(op, who, keys.is_empty(), |_| OpBody::Renew { keys: keys.to_vec() })
    }

    /// Reaches the next tick, and waits until the worker may pass it.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn tick(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        let worker = self.worker_mut(who);
        worker.progress.1 += 1;
        self.wait_at_tick(who)
    }

    /// Lets all live workers reach the tick of the foremost, so that none waits for another.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn catch_up(&mut self) -> Result<(), Violation> {
        let worker = |who: &NodeWorker| &self.picture.members[who.0.index()].workers[who.1.index()];
        let live: Vec<NodeWorker> = self.workers().filter(|who| !worker(who).ended).collect();
        let foremost = live.iter().map(|who| worker(who).progress).max().unwrap_or_default();
        for who in live {
            let worker = self.worker_mut(who);
            if worker.progress < foremost {
                worker.progress = foremost;
                self.wait_at_tick(who)?;
            }
        }
        Ok(())
    }

    /// Waits until the worker may pass the tick that it has reached.
    fn wait_at_tick(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        let tick = self.raise(who);
        let op = self.picture.calls.begin(who, CallKind::Tick { tick }, 0);
        let op = self.submit(op, who, false, |_| OpBody::Tick { tick, waits: true })?;
        self.block(who, op);
        Ok(op)
    }

    fn worker_mut(&mut self, who: NodeWorker) -> &mut Worker {
        &mut self.picture.members[who.0.index()].workers[who.1.index()]
    }

    /// Reaches the tick behind the barrier or quiesce that the worker is about to call: it holds
    /// nobody up.
    fn tick_ahead(&mut self, who: NodeWorker) -> Result<(), Violation> {
        if self.picture.setup.bound.is_none() {
            return Ok(());
        }
        let worker = self.worker_mut(who);
        worker.progress = (worker.progress.0 + 1, 0);
        let tick = self.raise(who);
        let op = self.picture.calls.begin(who, CallKind::Control, 0);
        self.submit(op, who, false, |_| OpBody::Tick { tick, waits: false }).map(drop)
    }

    fn raise(&mut self, who: NodeWorker) -> Tick {
        let worker = &self.picture.members[who.0.index()].workers[who.1.index()];
        let tick = Tick::new(worker.progress.0, worker.progress.1);
        self.picture.oracle.raise(who, tick);
        tick
    }

    /// Makes workers that have met wait for the tick behind, or go on with their snapshot.
    pub(super) fn follow_meetings(&mut self) -> Result<(), Violation> {
        while let Some(who) = self.picture.met.pop() {
            let stage = self.worker_mut(who).snapshot.take();
            // Its call may end at once, and be followed before it returns.
            self.worker_mut(who).snapshot = stage.and_then(Stage::next);
            let op = match stage {
                None | Some(Stage::Tick) => self.wait_at_tick(who)?,
                Some(Stage::Freeze) => self.freeze(who)?,
                Some(Stage::Copy) => self.freeze_to(who, true)?,
                Some(Stage::Meet | Stage::MeetAgain) => self.meet(who)?,
                Some(Stage::Thaw) => self.thaw(who)?,
            };
            self.block(who, op);
        }
        Ok(())
    }

    /// Copies the main copies of all nodes, together with all other workers. Blocks the worker.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn snapshot(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        let is_bounded = self.picture.setup.bound.is_some();
        let first = if is_bounded { Stage::Tick } else { Stage::Freeze };
        self.worker_mut(who).snapshot = Some(first);
        let op = self.quiesce(who)?;
        self.block(who, op);
        Ok(op)
    }

    /// Has the worker's node ask for nothing, and hand nothing over, until it thaws.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn freeze(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        self.freeze_to(who, false)
    }

    fn freeze_to(&mut self, who: NodeWorker, copies: bool) -> Result<OpId, Violation> {
        let op = self.picture.calls.begin(who, CallKind::Freeze { copies }, 0);
        self.submit(op, who, false, |_| OpBody::Freeze)
    }

    /// Lets the worker's node go on, as far as this worker is concerned.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn thaw(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        self.picture.cut.note_thawed(who);
        let op = self.picture.calls.begin(who, CallKind::Control, 0);
        self.submit(op, who, false, |_| OpBody::Thaw)
    }

    /// Copies the part of a worker of the main copies on its node, also of those that do not exist
    /// yet.
    fn copy_part(&mut self, who: NodeWorker) -> Result<(), Violation> {
        let workers = self.picture.setup.workers as u64;
        let is_own = |key: &Key| key.0 % workers == who.1.index() as u64;
        let mut copies = Vec::new();
        for key in self.keys().filter(is_own) {
            let mut value = self.picture.row(who.0, key).value.clone();
            if self.is_untouched(key) && self.picture.setup.home(key) == who.0 {
                value = vec![0; self.picture.setup.value_len(key)];
                digits::initial(key, &mut value);
            } else if self.picture.state(who.0, key) != State::Main {
                continue;
            }
            copies.push((key, self.picture.oracle.decode(key, &value)?));
        }
        self.picture.cut.note_copied(who, copies);
        invariants::check_cut(&self.picture)
    }

    /// Waits for all live workers.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn barrier(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        self.tick_ahead(who)?;
        self.meet(who)
    }

    fn meet(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        let number = self.picture.calls.barriers(who) + 1;
        let op = self.picture.calls.begin(who, CallKind::Barrier { number }, 0);
        self.submit(op, who, false, |_| OpBody::Barrier)
    }

    /// Waits for all live workers, and until everything sent is applied everywhere.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn quiesce(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        self.tick_ahead(who)?;
        let pushes =
            self.all_keys().map(|key| (1 << self.picture.oracle.pushes(key)) - 1).collect();
        let op = self.picture.calls.begin(who, CallKind::Quiesce { pushes }, 0);
        self.submit(op, who, false, |_| OpBody::Quiesce)
    }

    /// Ends a worker.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn end(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        self.worker_mut(who).ended = true;
        self.picture.oracle.raise(who, Tick::INFINITY);
        let op = self.picture.calls.begin(who, CallKind::Control, 0);
        self.submit(op, who, false, |_| OpBody::End)
    }

    /// Begins to leave: no operation follows on the worker's node.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn leave(&mut self, who: NodeWorker) -> Result<OpId, Violation> {
        let op = self.picture.calls.begin(who, CallKind::Control, 0);
        self.submit(op, who, false, |_| OpBody::Leave)
    }

    /// Pushes zeros to all copies of the worker's node: they change, but no count does. The engine
    /// learns of it with its next input.
    pub fn touch(&mut self, who: NodeWorker) {
        let keys: Vec<Key> = self.keys().collect();
        for key in keys {
            let zeros = vec![0; self.picture.setup.value_len(key)];
            self.picture.members[who.0.index()].fast_push(who.1, key, &zeros);
        }
    }

    /// Suspends the worker until `op` is done.
    pub fn block(&mut self, who: NodeWorker, op: OpId) {
        if !self.picture.calls.is_done(op) {
            self.worker_mut(who).blocked = Some(op);
        }
    }

    /// Runs the whole cluster until `op` is done.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn wait(&mut self, op: OpId) -> Result<(), Violation> {
        self.settle()?;
        debug_assert!(self.is_done(op), "a cluster at rest has ended every operation");
        Ok(())
    }

    /// Takes the result of an operation from the engine.
    pub(super) fn done(&mut self, op: OpId, values: &[i64]) -> Result<(), Violation> {
        hold!(Checks::ALL => EndsOnce, self.picture.calls.is_open(op), "{op:?} ends, but it is none or has ended before");
        let (who, kind, slow) = self.picture.calls.end(op);
        let mut rest = values;
        for (access, place) in slow {
            if kind == CallKind::Pull {
                let (value, behind) = rest.split_at(self.picture.setup.value_len(access.key));
                rest = behind;
                self.note_read(op, place, access, value)?;
            } else {
                self.picture.oracle.complete(access, self.step);
            }
        }
        self.release(who, op);
        if kind == (CallKind::Freeze { copies: true }) {
            self.copy_part(who)?;
        }
        let meets = matches!(kind, CallKind::Quiesce { .. } | CallKind::Barrier { .. });
        let waits = meets && self.picture.setup.bound.is_some();
        let is_stage = meets || matches!(kind, CallKind::Tick { .. } | CallKind::Freeze { .. });
        let worker = self.worker_mut(who);
        if !worker.ended && (waits || is_stage && worker.snapshot.is_some()) {
            self.picture.met.push(who);
        }
        match kind {
            CallKind::Tick { tick } => invariants::check_passed(&self.picture, who, tick),
            CallKind::WaitSync { mains, own } => {
                invariants::check_synced(&self.picture, who, &mains, &own)
            }
            CallKind::Renew { mains } => invariants::check_renewed(&self.picture, who, &mains),
            CallKind::Quiesce { pushes } => invariants::check_quiet(&self.picture, op, &pushes),
            CallKind::Barrier { number } => invariants::check_met(&self.picture, op, number),
            _ => Ok(()),
        }
    }

    /// Handles the failure of an operation: only a loss that was reported to the node may be the
    /// reason.
    pub(super) fn failed(
        &mut self,
        node: NodeId,
        op: OpId,
        error: &OpError,
    ) -> Result<(), Violation> {
        let lost = match error {
            OpError::PeerLost { node, address: None } => Some(*node),
            _ => None,
        };
        let told = lost.is_some_and(|lost| self.picture.losses.knows(node, lost));
        hold!(self.picture.setup.checks => FailsForLoss, told, "{node} fails {op:?}: {error}");
        hold!(Checks::ALL => EndsOnce, self.picture.calls.is_open(op), "{op:?} fails, but it is none or has ended before");
        self.give_up(op);
        Ok(())
    }

    /// Ends an operation without a result; its writes may or may not count.
    pub(super) fn give_up(&mut self, op: OpId) {
        let (who, accesses) = self.picture.calls.give_up(op);
        for (access, _) in accesses {
            self.picture.oracle.fail(access);
        }
        self.worker_mut(who).snapshot = None;
        self.picture.cut.note_thawed(who);
        self.release(who, op);
    }

    /// Stops the worker's wait for the operation, and for its later ones on the same keys.
    fn release(&mut self, who: NodeWorker, op: OpId) {
        let worker = self.worker_mut(who);
        worker.order.finish(&op);
        if worker.blocked == Some(op) {
            worker.blocked = None;
        }
    }

    fn submit(
        &mut self,
        op: OpId,
        who: NodeWorker,
        is_done: bool,
        body: impl FnOnce(&mut Self) -> OpBody<i64>,
    ) -> Result<OpId, Violation> {
        if is_done {
            self.picture.calls.end(op);
        } else {
            let keys = self.picture.calls.slow_keys(op);
            self.worker_mut(who).order.track(op, keys);
            let body = body(self);
            self.feed(who.0, Input::Op(Op { id: op, worker: who.1, body }))?;
        }
        self.finish_step(who.0)?;
        Ok(op)
    }

    fn queue(&mut self, who: NodeWorker, op: OpId, place: usize, access: AccessId) {
        self.picture.calls.note_slow(op, place, access);
        self.worker_mut(who).order.mark(access.key);
    }

    fn note_read(
        &mut self,
        op: OpId,
        place: usize,
        access: AccessId,
        value: &[i64],
    ) -> Result<(), Violation> {
        self.picture.oracle.complete_pull(access, value, self.step)?;
        let seen = self.picture.oracle.decode(access.key, value)?;
        self.picture.calls.note_read(op, place, seen);
        invariants::check_read(&self.picture, access)
    }
}
