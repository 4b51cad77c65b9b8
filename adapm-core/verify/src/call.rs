//! Operations of workers: fast path first, the rest to the engine, as the runtime does it.

use adapm_core::engine::{Input, Op, OpBody, OpId};
use adapm_core::id::Key;

use crate::check::Checks;
use crate::cluster::Cluster;
use crate::digits::{self, Seen};
use crate::invariants;
use crate::oracle::{AccessId, Who};
use crate::violation::{Violation, hold};

/// All operations of all workers.
#[derive(Default)]
pub struct Calls {
    calls: Vec<Call>,
    unfinished: usize,
}

/// One operation.
struct Call {
    who: Who,
    kind: CallKind,
    /// The accesses that the engine does, in the order of the operation's keys.
    slow: Vec<AccessId>,
    /// What a pull read, in the order of its keys.
    read: Vec<Option<Seen>>,
    /// The places of the engine's accesses among the keys.
    places: Vec<usize>,
    done: bool,
    /// It ended without a result.
    failed: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum CallKind {
    Pull,
    Write,
    Localize,
    /// What each main copy contained when it was called, and which pushes of the node were made.
    WaitSync {
        mains: Vec<Option<Seen>>,
        own: Vec<u128>,
    },
    /// Which pushes of the whole cluster were made when it was called.
    Quiesce {
        pushes: Vec<u128>,
    },
    /// The number of the barrier, counted per worker.
    Barrier {
        number: usize,
    },
    Control,
}

impl Calls {
    /// Operations not yet done.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Whether the operation has ended.
    #[must_use]
    pub fn is_done(&self, op: OpId) -> bool {
        self.calls[op.0 as usize].done
    }

    /// Whether the operation has failed.
    #[must_use]
    pub fn is_failed(&self, op: OpId) -> bool {
        self.calls[op.0 as usize].failed
    }

    /// Whether the operation exists and has not ended.
    #[must_use]
    pub fn is_open(&self, op: OpId) -> bool {
        self.calls.get(op.0 as usize).is_some_and(|call| !call.done)
    }

    /// The unfinished operations, with their workers.
    pub fn open(&self) -> impl Iterator<Item = (OpId, Who)> + '_ {
        let calls = self.calls.iter().enumerate().filter(|(_, call)| !call.done);
        calls.map(|(id, call)| (OpId(id as u64), call.who))
    }

    /// Whether the operation waits for other workers.
    #[must_use]
    pub fn is_collective(&self, op: OpId) -> bool {
        matches!(
            self.calls[op.0 as usize].kind,
            CallKind::Quiesce { .. } | CallKind::Barrier { .. } | CallKind::Control
        )
    }

    /// Keys named by unfinished operations, by worker; a key may occur more than once.
    pub fn open_keys(&self) -> impl Iterator<Item = (Who, Key)> + '_ {
        let open = self.calls.iter().filter(|call| !call.done);
        open.flat_map(|call| call.slow.iter().map(|access| (call.who, access.key)))
    }

    /// How many barriers the worker has called.
    pub(super) fn barriers(&self, who: Who) -> usize {
        let is_barrier = |call: &&Call| call.who == who && matches!(call.kind, CallKind::Barrier { .. });
        self.calls.iter().filter(is_barrier).count()
    }

    fn begin(&mut self, who: Who, kind: CallKind) -> OpId {
        let (slow, read, places) = (Vec::new(), Vec::new(), Vec::new());
        let call = Call { who, kind, slow, read, places, done: false, failed: false };
        self.calls.push(call);
        self.unfinished += 1;
        OpId(self.calls.len() as u64 - 1)
    }

    fn finish(&mut self, op: OpId) {
        self.calls[op.0 as usize].done = true;
        self.unfinished -= 1;
    }

    /// Ends the operation without a result: whose it was, and what the engine had not done.
    pub(super) fn give_up(&mut self, op: OpId) -> (Who, Vec<AccessId>) {
        self.finish(op);
        let call = &mut self.calls[op.0 as usize];
        call.failed = true;
        (call.who, core::mem::take(&mut call.slow))
    }
}

impl Cluster {
    /// Reads `keys`; [`Cluster::read`] has the result once the operation is done.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn pull(&mut self, who: Who, keys: &[Key]) -> Result<OpId, Violation> {
        let op = self.calls.begin(who, CallKind::Pull);
        let mut slow = Vec::new();
        for (place, &key) in keys.iter().enumerate() {
            let access = self.oracle.issue_pull(who, key, self.step);
            let mut value = vec![0; self.setup.value_len(key)];
            let fast = self.members[who.0.index()].fast_pull(who.1, key, &mut value);
            self.calls.calls[op.0 as usize].read.push(None);
            if fast {
                self.note_read(op, place, access, &value)?;
            } else {
                slow.push(key);
                self.queue(op, place, access);
            }
        }
        self.submit(op, who, slow.is_empty(), |_| OpBody::Pull { keys: slow })
    }

    /// Adds a push of its own to each of `keys`; keys whose digits are used up are left out.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn push(&mut self, who: Who, keys: &[Key]) -> Result<OpId, Violation> {
        let op = self.calls.begin(who, CallKind::Write);
        let mut slow = Vec::new();
        let mut updates = Vec::new();
        for (place, &key) in keys.iter().enumerate() {
            let Some((access, digit)) = self.oracle.issue_push(who, key, self.step) else { continue };
            let update = digits::update(self.setup.value_len(key), digit);
            if self.members[who.0.index()].fast_push(who.1, key, &update) {
                self.oracle.complete(access, self.step);
            } else {
                slow.push(key);
                updates.extend_from_slice(&update);
                self.queue(op, place, access);
            }
        }
        self.submit(op, who, slow.is_empty(), |_| OpBody::Push { keys: slow, updates })
    }

    /// Overwrites `keys`.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn set(&mut self, who: Who, keys: &[Key]) -> Result<OpId, Violation> {
        let op = self.calls.begin(who, CallKind::Write);
        let mut values = Vec::new();
        for (place, &key) in keys.iter().enumerate() {
            let (access, set) = self.oracle.issue_set(who, key, self.step);
            values.extend_from_slice(&digits::set_value(self.setup.value_len(key), set));
            self.queue(op, place, access);
        }
        self.submit(op, who, keys.is_empty(), |_| OpBody::Set { keys: keys.to_vec(), values })
    }

    /// Asks for the main copies of `keys`.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn localize(&mut self, who: Who, keys: &[Key]) -> Result<OpId, Violation> {
        self.localized.extend(keys.iter().map(|key| (who.0, *key)));
        let op = self.calls.begin(who, CallKind::Localize);
        self.submit(op, who, keys.is_empty(), |_| OpBody::Localize { keys: keys.to_vec() })
    }

    /// Waits for all pushes of the node to arrive and its replicas to be refreshed.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn wait_sync(&mut self, who: Who) -> Result<OpId, Violation> {
        let mains = self.all_keys().map(|key| self.judged_main(key)).collect::<Result<Vec<_>, _>>()?;
        let own = self.all_keys().map(|key| self.pushes_of_node(who.0, key)).collect();
        let op = self.calls.begin(who, CallKind::WaitSync { mains, own });
        self.submit(op, who, false, |_| OpBody::WaitSync)
    }

    /// Waits for all live workers.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn barrier(&mut self, who: Who) -> Result<OpId, Violation> {
        let number = self.calls.barriers(who) + 1;
        let op = self.calls.begin(who, CallKind::Barrier { number });
        self.submit(op, who, false, |_| OpBody::Barrier)
    }

    /// Waits for all live workers, and until everything sent is applied everywhere.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn quiesce(&mut self, who: Who) -> Result<OpId, Violation> {
        let pushes = self.all_keys().map(|key| (1 << self.oracle.pushes(key)) - 1).collect();
        let op = self.calls.begin(who, CallKind::Quiesce { pushes });
        self.submit(op, who, false, |_| OpBody::Quiesce)
    }

    /// Ends a worker.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn end(&mut self, who: Who) -> Result<OpId, Violation> {
        self.members[who.0.index()].workers[who.1.index()].ended = true;
        let op = self.calls.begin(who, CallKind::Control);
        self.submit(op, who, false, |_| OpBody::End)
    }

    /// Announces that no operation follows on the worker's node.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn leave(&mut self, who: Who) -> Result<OpId, Violation> {
        let op = self.calls.begin(who, CallKind::Control);
        self.submit(op, who, false, |_| OpBody::Leave)
    }

    /// Pushes zeros to all copies of the worker's node: they change, though nothing that is counted does. The engine hears of it
    /// when it is next fed.
    pub fn touch(&mut self, who: Who) {
        let keys: Vec<Key> = self.keys().collect();
        for key in keys {
            let zeros = vec![0; self.setup.value_len(key)];
            self.members[who.0.index()].fast_push(who.1, key, &zeros);
        }
    }

    /// Lets the worker do nothing until `op` is done.
    pub fn block(&mut self, who: Who, op: OpId) {
        if !self.calls.is_done(op) {
            self.members[who.0.index()].workers[who.1.index()].blocked = Some(op);
        }
    }

    /// What a pull that is done has read, in the order of its keys.
    ///
    /// # Panics
    /// If it is not done.
    #[must_use]
    pub fn read(&self, op: OpId) -> Vec<Seen> {
        let read = &self.calls.calls[op.0 as usize].read;
        read.iter().map(|seen| seen.expect("only a pull that is done has read")).collect()
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
        hold!(Checks::ALL => EndsOnce, self.calls.is_open(op), "{op:?} ends, but it is none or has ended before");
        let call = &self.calls.calls[op.0 as usize];
        let (who, kind) = (call.who, call.kind.clone());
        let (slow, places) = (call.slow.clone(), call.places.clone());
        self.members[who.0.index()].workers[who.1.index()].order.finish(&op);
        let mut rest = values;
        for (access, place) in slow.into_iter().zip(places) {
            if kind == CallKind::Pull {
                let (value, behind) = rest.split_at(self.setup.value_len(access.key));
                rest = behind;
                self.note_read(op, place, access, value)?;
            } else {
                self.oracle.complete(access, self.step);
            }
        }
        self.unblock(who, op);
        self.calls.finish(op);
        match kind {
            CallKind::WaitSync { mains, own } => self.check_synced(who, &mains, &own),
            CallKind::Quiesce { pushes } => self.check_quiet(op, &pushes),
            CallKind::Barrier { number } => self.check_met(op, number),
            _ => Ok(()),
        }
    }

    fn submit(
        &mut self,
        op: OpId,
        who: Who,
        is_done: bool,
        body: impl FnOnce(&mut Self) -> OpBody<i64>,
    ) -> Result<OpId, Violation> {
        if is_done {
            self.calls.finish(op);
        } else {
            let keys = self.calls.calls[op.0 as usize].slow.iter().map(|access| access.key).collect();
            self.members[who.0.index()].workers[who.1.index()].order.track(op, keys);
            let body = body(self);
            self.feed(who.0, Input::Op(Op { id: op, worker: who.1, body }))?;
        }
        self.finish_step(who.0)?;
        Ok(op)
    }

    fn queue(&mut self, op: OpId, place: usize, access: AccessId) {
        let call = &mut self.calls.calls[op.0 as usize];
        call.slow.push(access);
        call.places.push(place);
        let (node, worker) = call.who;
        self.members[node.index()].workers[worker.index()].order.mark(access.key);
    }

    fn note_read(
        &mut self,
        op: OpId,
        place: usize,
        access: AccessId,
        value: &[i64],
    ) -> Result<(), Violation> {
        self.oracle.complete_pull(access, value, self.step)?;
        let seen = self.oracle.judge(access.key, value)?;
        self.calls.calls[op.0 as usize].read[place] = Some(seen);
        invariants::check_read(self, access)
    }
}
