//! Local access through the dense store beside its floor: the same random rows of one flat array,
//! without latch and directory. Prints medians in nanoseconds per key, and the distance of the
//! store from the floor.
//!
//! `cargo bench -p adapm-store` runs all cases (some minutes, 5 GB); `cargo bench -p adapm-store --
//! 10k 25` those with 10 k keys of 25 elements.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use adapm_core::slot::{Pushed, Slot};
use adapm_core::store::Store;
use adapm_core::{Key, Layout};
use adapm_store::DenseStore;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let chosen = |all: &[&str], name: &str| {
        let mut asked =
            arguments.iter().filter(|argument| all.contains(&argument.as_str())).peekable();
        asked.peek().is_none() || asked.any(|asked| asked == name)
    };
    println!("ns per key, medians of {RUNS} runs each, floor and store in turns");
    println!(
        "goal: single <= max(1.5 x, + 10 ns), batch <= max(1.25 x, + 8 ns), 2 threads: scales >= 0.95 x as well\n"
    );
    println!("| keys | len | access | floor | store | ratio | difference | goal |");
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |");
    for (keys, keys_name) in [(10_000, "10k"), (1_000_000, "1M")] {
        for (len, len_name) in [(25, "25"), (100, "100"), (500, "500")] {
            if chosen(&["10k", "1M"], keys_name) && chosen(&["25", "100", "500"], len_name) {
                let mut case = Case::new(keys, len, format!("| {keys_name} | {len} |"));
                let alone = case.pull_single();
                case.push_single();
                case.pull_batch();
                case.push_batch();
                case.pull_by_two("halves", |key| key.0 < keys / 2, alone);
                case.pull_by_two("every other key", |key| key.0 % 2 == 0, alone);
            }
        }
    }
}

/// Keys with one length, in a flat array and in a store.
struct Case {
    name: String,
    len: usize,
    flat: Vec<f32>,
    store: DenseStore<f32>,
    /// The keys that a run accesses, random.
    keys: Vec<Key>,
    update: Vec<f32>,
    out: Vec<f32>,
}

/// Medians of nanoseconds per key.
#[derive(Clone, Copy)]
struct Medians {
    floor: f64,
    store: f64,
}

impl Case {
    fn new(keys: u64, len: usize, name: String) -> Self {
        let store = DenseStore::new(&Layout::dense(&[(keys, len)]).expect("a legal layout"));
        for key in (0..keys).map(Key) {
            store.reserve(key, false);
            store.with_slot(key, |mut slot| slot.create_main_copy());
        }
        let accesses = (RUN_ELEMENTS / len).next_multiple_of(BATCH);
        Self {
            name,
            len,
            // Written, so that it has memory of its own: unwritten pages all share one page of
            // zeros.
            flat: (0..keys as usize * len).map(|i| i as f32).collect(),
            store,
            keys: (0..accesses as u64).map(|i| Key(random(i) % keys)).collect(),
            update: (0..BATCH * len).map(|i| i as f32).collect(),
            out: vec![0.0; BATCH * len],
        }
    }

    fn pull_single(&mut self) -> Medians {
        let Self { len, flat, store, keys, out, .. } = self;
        let len = *len;
        let (floor_out, store_out) = out.split_at_mut(len);
        let medians = measure(
            keys.len(),
            || keys.iter().for_each(|key| floor_pull(flat, *key, len, floor_out)),
            || keys.iter().for_each(|key| store_pull(store, *key, &mut store_out[..len])),
        );
        self.report("pull, single", medians, SINGLE);
        medians
    }

    fn push_single(&mut self) {
        let Self { len, flat, store, keys, update, .. } = self;
        let (len, update) = (*len, &update[..*len]);
        let medians = measure(
            keys.len(),
            || keys.iter().for_each(|key| floor_push(flat, *key, len, update)),
            || keys.iter().for_each(|key| store_push(store, *key, update)),
        );
        self.report("push, single", medians, SINGLE);
    }

    fn pull_batch(&mut self) {
        let Self { len, flat, store, keys, out, .. } = self;
        let len = *len;
        let mut store_out = vec![0.0; out.len()];
        let medians = measure(
            keys.len(),
            || {
                for keys in keys.chunks(BATCH) {
                    for (key, out) in keys.iter().zip(out.chunks_mut(len)) {
                        floor_pull(flat, *key, len, out);
                    }
                }
            },
            || {
                for keys in keys.chunks(BATCH) {
                    for (keys, out) in keys.chunks(GROUP).zip(store_out.chunks_mut(GROUP * len)) {
                        keys.iter().for_each(|key| store.prefetch(*key));
                        for (key, out) in keys.iter().zip(out.chunks_mut(len)) {
                            store_pull(store, *key, out);
                        }
                    }
                }
            },
        );
        self.report("pull, batch", medians, BATCHED);
    }

    fn push_batch(&mut self) {
        let Self { len, flat, store, keys, update, .. } = self;
        let len = *len;
        let medians = measure(
            keys.len(),
            || {
                for keys in keys.chunks(BATCH) {
                    for (key, update) in keys.iter().zip(update.chunks(len)) {
                        floor_push(flat, *key, len, update);
                    }
                }
            },
            || {
                for keys in keys.chunks(BATCH) {
                    for (keys, update) in keys.chunks(GROUP).zip(update.chunks(GROUP * len)) {
                        keys.iter().for_each(|key| store.prefetch(*key));
                        for (key, update) in keys.iter().zip(update.chunks(len)) {
                            store_push(store, *key, update);
                        }
                    }
                }
            },
        );
        self.report("push, batch", medians, BATCHED);
    }

    /// Reads from two threads, one with the keys for which `first` is true, one with the others.
    /// Prints the time per key of each thread.
    fn pull_by_two(&self, name: &str, first: impl Fn(&Key) -> bool, alone: Medians) {
        let (ours, theirs): (Vec<Key>, Vec<Key>) = self.keys.iter().copied().partition(first);
        let by_two = |pull: &(dyn Fn(Key, &mut [f32]) + Sync)| {
            let start = Barrier::new(2);
            thread::scope(|scope| {
                for keys in [&ours, &theirs] {
                    let start = &start;
                    scope.spawn(move || {
                        let mut out = vec![0.0; self.len];
                        start.wait();
                        keys.iter().for_each(|key| pull(*key, &mut out));
                    });
                }
            });
        };
        let medians = measure(
            self.keys.len() / 2,
            || by_two(&|key, out| floor_pull(&self.flat, key, self.len, out)),
            || by_two(&|key, out| store_pull(&self.store, key, out)),
        );
        let scaling = (alone.store / medians.store) / (alone.floor / medians.floor);
        let Medians { floor, store } = medians;
        println!(
            "{} pull, single, 2 threads, {name} | {floor:.1} | {store:.1} | {:.2} | {:+.1} | {} scales {scaling:.2} x as well |",
            self.name,
            store / floor,
            store - floor,
            if scaling >= 0.95 { "met" } else { "missed" },
        );
    }

    fn report(&self, access: &str, Medians { floor, store }: Medians, (factor, nanos): (f64, f64)) {
        let goal = if store <= (floor * factor).max(floor + nanos) { "met" } else { "missed" };
        let (ratio, difference) = (store / floor, store - floor);
        println!(
            "{} {access} | {floor:.1} | {store:.1} | {ratio:.2} | {difference:+.1} | {goal} |",
            self.name
        );
    }
}

/// Runs both in turns, [`RUNS`] times after one to warm up.
fn measure(keys: usize, mut floor: impl FnMut(), mut store: impl FnMut()) -> Medians {
    let mut nanos = [Vec::new(), Vec::new()];
    for run in 0..=RUNS {
        let took = [timed(&mut floor), timed(&mut store)];
        if run > 0 {
            nanos.iter_mut().zip(took).for_each(|(all, nanos)| all.push(nanos / keys as f64));
        }
    }
    let [floor, store] = nanos.map(|mut nanos| {
        nanos.sort_by(f64::total_cmp);
        nanos[RUNS / 2]
    });
    Medians { floor, store }
}

fn timed(run: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64
}

#[inline]
fn floor_pull(flat: &[f32], key: Key, len: usize, out: &mut [f32]) {
    let start = key.0 as usize * len;
    black_box(&mut *out).copy_from_slice(&flat[start..start + len]);
}

#[inline]
fn floor_push(flat: &mut [f32], key: Key, len: usize, update: &[f32]) {
    let start = key.0 as usize * len;
    for (value, update) in flat[start..start + len].iter_mut().zip(black_box(update)) {
        *value += update;
    }
}

#[inline]
fn store_pull(store: &DenseStore<f32>, key: Key, out: &mut [f32]) {
    let out = black_box(out);
    assert!(store.with_slot(key, |slot: Slot<'_, f32>| slot.pull(out)), "all keys are held");
}

#[inline]
fn store_push(store: &DenseStore<f32>, key: Key, update: &[f32]) {
    let pushed = store.push(key, black_box(update));
    assert_eq!(pushed, Pushed::Done, "all keys are held");
}

/// Returns a random number by the finisher of SplitMix64: the same keys in every run.
fn random(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Odd, so that there is a median.
const RUNS: usize = 7;
/// Keys of one operation in the batch cases.
const BATCH: usize = 100;
/// Keys that are prefetched together.
const GROUP: usize = 25;
/// Elements that one run moves.
const RUN_ELEMENTS: usize = 20_000_000;
/// Allowed distance from the floor: a factor or nanoseconds, whichever is more.
const SINGLE: (f64, f64) = (1.5, 10.0);
const BATCHED: (f64, f64) = (1.25, 8.0);
