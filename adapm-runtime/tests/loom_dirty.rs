//! The dirty queue under loom: each unsent delta has its key in the queue, or an engine is about to
//! look at it.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-runtime
//! --test 'loom_*'`

#![cfg(adapm_loom)]

use std::sync::Arc;

use adapm_core::slot::{Location, Pushed};
use adapm_core::store::Store;
use adapm_core::{Counter, Key, Layout, NodeId, Version, WorkerId};
use adapm_runtime::model::{Mailbox, Urgency};
use adapm_store::DenseStore;
use loom::thread;

const KEY: Key = Key(0);
const OTHER: Key = Key(1);
const OWNER: Location = Location { node: NodeId(1), counter: Counter(1) };

/// A node that holds replicas of two keys, and the queues to its channel thread.
struct Shared {
    store: DenseStore<i64>,
    mailbox: Mailbox<&'static str>,
}

impl Shared {
    fn new(workers: usize) -> Arc<Self> {
        let store = DenseStore::new(&Layout::dense(&[(2, 1)]).expect("a legal layout"));
        for key in [KEY, OTHER] {
            store.with_slot(key, |mut slot| slot.request());
            store.reserve(key, true);
            store.with_slot(key, |mut slot| slot.install(Version(1), &[0], OWNER));
        }
        Arc::new(Self { store, mailbox: Mailbox::new(workers) })
    }

    /// Pushes like a worker: under the latch, then into the queue, with the latch released.
    fn push(&self, worker: WorkerId, key: Key) {
        match self.store.push(key, &[1]) {
            Pushed::Dirtied => drop(self.mailbox.append_dirty(worker, [key].into_iter())),
            Pushed::Done => {}
            Pushed::Refused => panic!("the replica stays"),
        }
    }

    /// Sends like an engine: keys of the queue that are dirty. A key may still be queued although
    /// its delta has been taken.
    fn send(&self, sent: &mut i64) -> Vec<&'static str> {
        let (mut items, mut keys) = (Vec::new(), Vec::new());
        self.mailbox.take(&mut items);
        self.mailbox.take_dirty(&mut keys);
        for key in keys {
            self.store.with_slot(key, |mut slot| {
                if slot.packed.is_dirty() {
                    let mut delta = [0];
                    slot.take_delta(&mut delta);
                    *sent += delta[0];
                }
            });
        }
        items
    }
}

#[test]
fn every_delta_is_sent_once() {
    loom::model(|| {
        let shared = Shared::new(1);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                [KEY, KEY].into_iter().for_each(|key| shared.push(WorkerId(0), key))
            })
        };
        let mut sent = 0;
        shared.send(&mut sent);
        worker.join().expect("the worker is done");
        shared.send(&mut sent);
        assert_eq!(sent, 2);
        shared.store.with_slot(KEY, |slot| assert!(!slot.packed.is_dirty() && slot.delta == [0]));
    });
}

#[test]
fn a_mark_that_another_worker_set_is_told_by_that_worker() {
    loom::model(|| {
        let shared = Shared::new(2);
        let workers = [WorkerId(0), WorkerId(1)].map(|id| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.push(id, KEY))
        });
        let mut sent = 0;
        shared.send(&mut sent);
        workers.into_iter().for_each(|worker| worker.join().expect("the worker is done"));
        shared.send(&mut sent);
        assert_eq!(sent, 2, "one key in one queue stands for the pushes of both");
    });
}

/// A worker that pushes, then posts `wait_sync`, or the tick of its clock: the engine that takes
/// the operation has sent the delta.
fn pushes_before_it_waits(push: fn(&Shared), then: fn(&Shared)) {
    loom::model(move || {
        let shared = Shared::new(1);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                push(&shared);
                then(&shared);
            })
        };
        let mut sent = 0;
        let items = shared.send(&mut sent);
        assert!(items.is_empty() || sent == 1, "an operation has overtaken the push before it");
        worker.join().expect("the worker is done");
    });
}

fn push(shared: &Shared) {
    shared.push(WorkerId(0), KEY);
}

fn wait_sync(shared: &Shared) {
    shared.mailbox.post("wait_sync", Urgency::AtOnce).expect("the mailbox is open");
}

#[test]
fn what_was_pushed_before_an_operation_is_sent_with_it() {
    pushes_before_it_waits(push, wait_sync);
}

#[test]
#[should_panic(expected = "overtaken")]
fn planted_an_operation_posted_before_the_push_is_found() {
    pushes_before_it_waits(wait_sync, push);
}
