//! The record of workers' operations: the keys and values of each, and whether it has ended.

use core::mem;

use adapm_core::clock::Tick;
use adapm_core::engine::OpId;
use adapm_core::id::Key;

use crate::digits::Seen;
use crate::oracle::{AccessId, NodeWorker};

/// All operations of all workers.
#[derive(Default)]
pub struct Calls {
    calls: Vec<Call>,
    unfinished: usize,
}

/// One operation.
struct Call {
    who: NodeWorker,
    kind: CallKind,
    /// The accesses that the engine executes, with their positions among the operation's keys.
    slow: Vec<(AccessId, usize)>,
    /// The result of a pull, in the order of its keys.
    read: Vec<Option<Seen>>,
    done: bool,
    /// True if it ended without a result.
    failed: bool,
}

/// The kind of an operation, with data for the checks at its end.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum CallKind {
    Pull,
    Write,
    Localize,
    /// The content of each main copy and the pushes of the node at the time of the call.
    WaitSync {
        mains: Vec<Option<Seen>>,
        own: Vec<u128>,
    },
    /// The content of the main copy of each key that had a replica at the time of the call.
    Renew {
        mains: Vec<(Key, Seen)>,
    },
    /// The pushes of the whole cluster at the time of the call.
    Quiesce {
        pushes: Vec<u128>,
    },
    /// The number of the barrier, counted per worker.
    Barrier {
        number: usize,
    },
    /// The worker waits to pass the tick.
    Tick {
        tick: Tick,
    },
    /// The worker has its node frozen; `copies`: it then copies its part.
    Freeze {
        copies: bool,
    },
    Control,
}

impl Calls {
    /// Returns the number of unfinished operations.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns true if the operation has ended.
    #[must_use]
    pub fn is_done(&self, op: OpId) -> bool {
        self.calls[op.0 as usize].done
    }

    /// Returns true if the operation has failed.
    #[must_use]
    pub fn is_failed(&self, op: OpId) -> bool {
        self.calls[op.0 as usize].failed
    }

    /// Returns true if the operation exists and has not ended.
    #[must_use]
    pub fn is_open(&self, op: OpId) -> bool {
        self.calls.get(op.0 as usize).is_some_and(|call| !call.done)
    }

    /// Returns the unfinished operations, with their workers.
    pub fn open(&self) -> impl Iterator<Item = (OpId, NodeWorker)> + '_ {
        let calls = self.calls.iter().enumerate().filter(|(_, call)| !call.done);
        calls.map(|(id, call)| (OpId(id as u64), call.who))
    }

    /// Returns true if the operation waits for other workers.
    #[must_use]
    pub fn is_collective(&self, op: OpId) -> bool {
        matches!(
            self.calls[op.0 as usize].kind,
            CallKind::Quiesce { .. }
                | CallKind::Barrier { .. }
                | CallKind::Tick { .. }
                | CallKind::Freeze { .. }
                | CallKind::Control
        )
    }

    /// Returns the keys of unfinished operations, by worker; a key may occur more than once.
    pub fn open_keys(&self) -> impl Iterator<Item = (NodeWorker, Key)> + '_ {
        let open = self.calls.iter().filter(|call| !call.done);
        open.flat_map(|call| call.slow.iter().map(|(access, _)| (call.who, access.key)))
    }

    /// Returns the workers that wait at a tick, with that tick.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = (NodeWorker, Tick)> + '_ {
        let open = self.calls.iter().filter(|call| !call.done);
        open.filter_map(|call| match call.kind {
            CallKind::Tick { tick } => Some((call.who, tick)),
            _ => None,
        })
    }

    /// Returns the number of barriers that the worker has called.
    pub(crate) fn barriers(&self, who: NodeWorker) -> usize {
        let is_barrier =
            |call: &&Call| call.who == who && matches!(call.kind, CallKind::Barrier { .. });
        self.calls.iter().filter(is_barrier).count()
    }

    /// Returns the result of a finished pull, in the order of its keys.
    ///
    /// # Panics
    /// If it is unfinished.
    #[must_use]
    pub fn read(&self, op: OpId) -> Vec<Seen> {
        let read = &self.calls[op.0 as usize].read;
        read.iter().map(|seen| seen.expect("only a pull that is done has read")).collect()
    }

    /// Begins an operation on `places` keys.
    pub(crate) fn begin(&mut self, who: NodeWorker, kind: CallKind, places: usize) -> OpId {
        let read = vec![None; places];
        self.calls.push(Call { who, kind, slow: Vec::new(), read, done: false, failed: false });
        self.unfinished += 1;
        OpId(self.calls.len() as u64 - 1)
    }

    /// Records that the engine executes the access of the key at `place`.
    pub(crate) fn note_slow(&mut self, op: OpId, place: usize, access: AccessId) {
        self.calls[op.0 as usize].slow.push((access, place));
    }

    /// Returns the keys of the accesses that the engine executes.
    pub(crate) fn slow_keys(&self, op: OpId) -> Vec<Key> {
        self.calls[op.0 as usize].slow.iter().map(|(access, _)| access.key).collect()
    }

    /// Records the value read from the key at `place`.
    pub(crate) fn note_read(&mut self, op: OpId, place: usize, seen: Seen) {
        self.calls[op.0 as usize].read[place] = Some(seen);
    }

    /// Ends an operation. Returns its worker, kind, and the accesses that the engine executed.
    pub(crate) fn end(&mut self, op: OpId) -> (NodeWorker, CallKind, Vec<(AccessId, usize)>) {
        let call = &mut self.calls[op.0 as usize];
        call.done = true;
        self.unfinished -= 1;
        (call.who, call.kind.clone(), mem::take(&mut call.slow))
    }

    /// Ends an operation without a result. Returns its worker, and the accesses that the engine had
    /// not executed.
    pub(crate) fn give_up(&mut self, op: OpId) -> (NodeWorker, Vec<(AccessId, usize)>) {
        let (who, _, slow) = self.end(op);
        self.calls[op.0 as usize].failed = true;
        (who, slow)
    }
}
