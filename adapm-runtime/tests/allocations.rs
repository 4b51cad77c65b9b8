//! Allocations of a worker: local accesses never allocate, for any number of keys.
//!
//! Only the worker's own thread is counted, as engines allocate.

use adapm_core::update::AdaGrad;
use adapm_core::{Clock, Key, Layout, NodeId};
use adapm_runtime::{Builder, Worker};
use allocation_counter::{AllocationInfo, measure};

const KEYS: u64 = 1_000;
const LEN: usize = 25;
const BATCH: usize = 100;
const CALLS: usize = 500;

type Floats = Worker<f32>;

fn builder() -> Builder<f32> {
    Builder::new(Layout::dense(&[(KEYS, LEN)]).expect("a legal layout")).channels(1)
}

/// Pulls and pushes all keys, `batch` keys per call.
fn access(worker: &mut Floats, batch: usize, values: &mut [f32]) {
    let mut keys = [Key(0); BATCH];
    for call in 0..CALLS {
        for (at, key) in keys[..batch].iter_mut().enumerate() {
            *key = Key(((call * 7 + at * 13) % KEYS as usize) as u64);
        }
        worker.pull(&keys[..batch], &mut values[..batch * LEN]).expect("known keys");
        worker.push(&keys[..batch], &values[..batch * LEN]).expect("known keys");
    }
}

/// Counts the allocations of calls with one key, and of calls with many, once buffers have grown.
fn counted(worker: &mut Floats) -> [AllocationInfo; 2] {
    let mut values = vec![0.0; BATCH * LEN];
    [1, BATCH].map(|batch| {
        access(worker, batch, &mut values);
        measure(|| access(worker, batch, &mut values))
    })
}

#[test]
fn what_is_measured_is_seen() {
    let info = measure(|| drop(std::hint::black_box(vec![0_u8; 1_000])));
    assert_eq!((info.count_total, info.bytes_total), (1, 1_000));
}

#[test]
fn pulls_and_pushes_of_main_copies_allocate_nothing() {
    let cluster = builder().build().expect("a legal cluster");
    let counted = cluster.run(|mut worker| counted(&mut worker)).expect("no failure").remove(0);
    assert_eq!(counted.map(|info| info.count_total), [0, 0], "{counted:?}");
}

#[test]
fn steps_on_main_copies_allocate_nothing() {
    let layout = Layout::dense(&[(KEYS, 2 * LEN)]).expect("a legal layout");
    let builder = Builder::new(layout).channels(1).initial(|_, value: &mut [f32]| value.fill(1.0));
    let cluster = builder.build().expect("a legal cluster");
    let counts = cluster.run(|mut worker| {
        let keys: Vec<Key> = (0..KEYS).map(Key).collect();
        let gradients = [0.25; BATCH * LEN];
        let mut steps = || {
            for keys in keys.chunks(BATCH).cycle().take(CALLS) {
                let rule = AdaGrad { learning_rate: 0.1 };
                worker.update(keys, &gradients, &rule).expect("known keys");
                worker.update(&keys[..1], &gradients[..LEN], &rule).expect("a known key");
            }
        };
        steps();
        measure(steps).count_total
    });
    assert_eq!(counts.expect("no failure"), [0]);
}

#[test]
fn pulls_of_replicas_allocate_nothing() {
    let cluster = builder().nodes(2).build().expect("a legal cluster");
    let counts = cluster.run(|mut worker| {
        let keys: Vec<Key> = (0..KEYS).map(Key).collect();
        worker.intent(&keys, Clock(0)..Clock(1_000)).expect("a window");
        let mut value = [0.0; LEN];
        for key in &keys {
            while !worker.pull_if_local(*key, &mut value).expect("known keys") {
                std::thread::yield_now();
            }
        }
        worker.barrier().expect("no failure");
        let mut values = vec![0.0; BATCH * LEN];
        let info = measure(|| {
            for keys in keys.chunks(BATCH).cycle().take(CALLS) {
                worker.pull(keys, &mut values).expect("known keys");
            }
        });
        worker.barrier().expect("no failure");
        (worker.node(), info.count_total)
    });
    assert_eq!(counts.expect("no failure"), [(NodeId(0), 0), (NodeId(1), 0)]);
}
