//! Sampling: values match their keys, distributions are as documented, every scheme terminates,
//! seeds repeat, nothing is held for longer than intended (NuPS; AdaPM §A.5).

#[path = "../support/channels.rs"]
mod channels;
mod determinism;
mod distribution;
mod finish;
mod hints;
mod intent;
mod local;
mod misuse;

use std::ops::Range;

use adapm_core::{Clock, Key, Layout, NodeId};
use adapm_runtime::{Builder, Cluster, Sample, Sampling, Scheme, System, Worker};

type Ints = Cluster<i64>;
type IntWorker = Worker<i64>;

const KEYS: u64 = 200;
const LEN: usize = 5;
const WINDOW: Range<Clock> = Clock(0)..Clock(1);

/// The schemes whose keys follow from the seed.
const EXACT: [Scheme; 3] = [Scheme::Naive, Scheme::Preloc, Scheme::Pool { size: 50, reuse: 4 }];

fn cluster(system: System, nodes: usize, workers: usize, sampling: Sampling) -> Ints {
    cluster_of(
        Layout::dense(&[(KEYS, LEN)]).expect("a valid layout"),
        system,
        nodes,
        workers,
        sampling,
    )
}

fn cluster_of(
    layout: Layout,
    system: System,
    nodes: usize,
    workers: usize,
    sampling: Sampling,
) -> Ints {
    let builder = Builder::<i64>::new(layout)
        .nodes(nodes)
        .workers(workers)
        .channels(channels::draw())
        .system(system);
    let initial = |key: Key, value: &mut [i64]| {
        value.iter_mut().enumerate().for_each(|(i, v)| *v = 100 * key.0 as i64 + i as i64);
    };
    builder.sampling(sampling).initial(initial).build().expect("a valid cluster")
}

/// Pulls `n` keys of a sample and checks their values.
fn pull(worker: &mut IntWorker, sample: &mut Sample, n: usize) -> Vec<Key> {
    let (mut keys, mut values) = (vec![Key(u64::MAX); n], vec![0; LEN * n]);
    worker.pull_sample(sample, &mut keys, &mut values).expect("keys are left");
    for (key, value) in keys.iter().zip(values.chunks(LEN)) {
        let expected: Vec<i64> = (0..LEN as i64).map(|i| 100 * key.0 as i64 + i).collect();
        assert_eq!(value, expected, "{key}");
    }
    keys
}

/// Takes `samples` samples of `n` keys, prepared a few ahead and pulled at most `step` at a time,
/// and returns their keys.
fn take(worker: &mut IntWorker, samples: usize, n: usize, step: usize) -> Vec<Key> {
    let mut all = Vec::new();
    let mut prepared = Vec::new();
    for index in 0..samples {
        prepared.push(worker.prepare_sample(n, WINDOW).expect("sampling is configured"));
        if prepared.len() < 4 && index + 1 < samples {
            continue;
        }
        for mut sample in prepared.drain(..) {
            while sample.left() > 0 {
                let taken = step.min(sample.left());
                all.extend(pull(worker, &mut sample, taken));
            }
        }
    }
    all
}

/// Returns the keys that each worker of a cluster takes.
fn sampled(cluster: &Ints, samples: usize, n: usize, step: usize) -> Vec<Vec<Key>> {
    cluster.run(|mut worker| take(&mut worker, samples, n, step)).expect("no failure")
}

fn home(key: u64, nodes: usize) -> NodeId {
    Layout::home(Key(key), nodes)
}

/// Returns weights by key: 1 for keys whose home is `node` of 2, else 0.
fn at(node: u16) -> Vec<u64> {
    (0..KEYS).map(|key| u64::from(home(key, 2) == NodeId(node))).collect()
}

fn is_local(worker: &mut IntWorker, key: Key) -> bool {
    worker.pull_if_local(key, &mut [0; LEN]).expect("a known key")
}

/// Repeats round by round until `holds` returns true.
fn eventually(worker: &mut IntWorker, claim: &str, mut holds: impl FnMut(&mut IntWorker) -> bool) {
    for _ in 0..20_000 {
        if holds(worker) {
            return;
        }
        worker.wait_sync().expect("no failure");
        std::thread::yield_now();
    }
    panic!("{claim}: not in 20,000 attempts");
}
