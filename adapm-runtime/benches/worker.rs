//! The cost of a worker's calls beside their floors, measured in turns in one run; medians.
//!
//! | what | floor |
//! | --- | --- |
//! | local pull and push, per key | copying and adding the same random rows of one flat array: no latch, no directory, no checks |
//! | intent, per key | pushing the keys to a `Vec` |
//! | remote pull in process, per call | a token through the same four hand-overs between threads, by channels of std |
//!
//! `cargo bench -p adapm-runtime --bench worker`; with `-- 10k` without the rows of 1 M keys.

use std::hint::black_box;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Instant;

use adapm_core::{Clock, Key, Layout, NodeId};
use adapm_runtime::{Builder, LayoutStore, Random, System, Worker};

type Floats = Worker<LayoutStore<f32>>;

fn main() {
    let small = std::env::args().any(|argument| argument == "10k");
    println!("| keys | len | access | floor ns/key | worker ns/key | ratio | difference |");
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: |");
    for keys in [10_000, 1_000_000].into_iter().take(if small { 1 } else { 2 }) {
        for len in [25, 100, 500] {
            local(keys, len);
        }
    }
    intent();
    for keys in [1, 100] {
        remote(keys);
    }
}

/// Pulls and pushes of one worker on one node.
fn local(keys: u64, len: usize) {
    let builder = Builder::<f32>::new(Layout::dense(&[(keys, len)]).expect("a valid layout"));
    let cluster = builder.initial(|_, value| value.fill(1.0)).build().expect("a valid cluster");
    let accesses = (20_000_000 / len / BATCH).clamp(100, 5_000) * BATCH;
    let mut random = Random::new(1);
    let order: Vec<Key> = (0..accesses).map(|_| Key(random.below(keys))).collect();
    // Written, so that it has memory of its own.
    let flat = Mutex::new((0..keys as usize * len).map(|i| i as f32).collect::<Vec<f32>>());
    let done = cluster.run(|mut worker| {
        let mut flat = flat.lock().expect("one worker");
        for batch in [1, BATCH] {
            pull(&mut worker, &mut flat, &order, batch, len);
            push(&mut worker, &mut flat, &order, batch, len);
        }
    });
    done.expect("no failure");
}

fn pull(worker: &mut Floats, flat: &mut [f32], order: &[Key], batch: usize, len: usize) {
    let mut room = vec![0.0; batch * len];
    let mut values = vec![0.0; batch * len];
    let medians = turns(
        order.len(),
        || {
            for keys in order.chunks(batch) {
                for (key, room) in keys.iter().zip(room.chunks_mut(len)) {
                    room.copy_from_slice(&flat[key.0 as usize * len..][..len]);
                }
                black_box(&mut room);
            }
        },
        || {
            for keys in order.chunks(batch) {
                worker.pull(keys, &mut values).expect("known keys");
                black_box(&mut values);
            }
        },
    );
    report("pull", flat.len() / len, len, batch, medians);
}

fn push(worker: &mut Floats, flat: &mut [f32], order: &[Key], batch: usize, len: usize) {
    let update = vec![0.25; batch * len];
    let medians = turns(
        order.len(),
        || {
            for keys in order.chunks(batch) {
                for (key, update) in keys.iter().zip(update.chunks(len)) {
                    let row = &mut flat[key.0 as usize * len..][..len];
                    row.iter_mut().zip(update).for_each(|(value, update)| *value += update);
                }
            }
        },
        || {
            for keys in order.chunks(batch) {
                worker.push(keys, &update).expect("known keys");
            }
        },
    );
    report("push", flat.len() / len, len, batch, medians);
}

fn report(what: &str, keys: usize, len: usize, batch: usize, (floor, ours): (f64, f64)) {
    let kind = if batch == 1 { "single" } else { "batch" };
    let (ratio, more) = (ours / floor, ours - floor);
    println!("| {keys} | {len} | {what}, {kind} | {floor:.1} | {ours:.1} | {ratio:.2} | {more:.1} |");
}

/// Signals of windows far ahead, on one of two nodes.
fn intent() {
    let layout = Layout::dense(&[(100_000, 4)]).expect("a valid layout");
    let cluster = Builder::<f32>::new(layout).nodes(2).channels(1).build().expect("a valid cluster");
    let mut random = Random::new(1);
    let order: Vec<Key> = (0..200_000).map(|_| Key(random.below(100_000))).collect();
    let done = cluster.run(|mut worker| {
        if worker.node() == NodeId(1) {
            return;
        }
        let floor = || {
            let mut list = Vec::new();
            order.chunks(BATCH).for_each(|keys| list.extend(keys.iter().copied()));
            black_box(list);
        };
        let signal = || {
            for keys in order.chunks(BATCH) {
                worker.intent(keys, Clock(1_000_000)..Clock(1_000_001)).expect("a window");
            }
        };
        let (floor, ours) = turns(order.len(), floor, signal);
        println!("\nintent, {BATCH} keys a call: {ours:.1} ns/key; pushing to a Vec: {floor:.1} ns/key");
    });
    done.expect("no failure");
}

/// Synchronous pulls of keys of the other node, whose worker has ended.
fn remote(keys: usize) {
    let layout = Layout::dense(&[(1_000, 25)]).expect("a valid layout");
    let builder = Builder::<f32>::new(layout).nodes(2).channels(1).system(System::Classic);
    let cluster = builder.build().expect("a valid cluster");
    let far = (0..1_000).map(Key).filter(|key| Layout::home(*key, 2) == NodeId(1));
    let far: Vec<Key> = far.take(keys).collect();
    let done = cluster.run(|mut worker| {
        if worker.node() == NodeId(1) {
            return;
        }
        let mut values = vec![0.0; keys * 25];
        let token = Token::new();
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..3_000 {
            let start = Instant::now();
            token.pass();
            times[0].push(start.elapsed().as_nanos() as f64 / 1e3);
            let start = Instant::now();
            worker.pull(&far, &mut values).expect("known keys");
            times[1].push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        let [floor, ours] = times.map(|mut times| (quantile(&mut times, 0.5), quantile(&mut times, 0.99)));
        println!("remote pull, {keys} keys: p50 {:.1} us, p99 {:.1} us", ours.0, ours.1);
        println!("    four hand-overs: p50 {:.1} us, p99 {:.1} us", floor.0, floor.1);
        println!("    ratio of p50: {:.2}", ours.0 / floor.0);
    });
    done.expect("no failure");
}

/// A token that goes to one thread, to a second, back to the first, and back.
struct Token {
    out: mpsc::Sender<()>,
    back: mpsc::Receiver<()>,
}

impl Token {
    fn new() -> Self {
        let (out, first_in) = mpsc::channel();
        let (first_out, second_in) = mpsc::channel();
        let (second_out, first_again) = mpsc::channel();
        let (home, back) = mpsc::channel();
        thread::spawn(move || {
            while first_in.recv().is_ok() {
                if first_out.send(()).is_err() || first_again.recv().is_err() || home.send(()).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || while second_in.recv().is_ok_and(|()| second_out.send(()).is_ok()) {});
        Self { out, back }
    }

    fn pass(&self) {
        self.out.send(()).expect("the threads live as long as the token");
        self.back.recv().expect("the threads live as long as the token");
    }
}

/// Medians of nanoseconds per access of `floor` and `ours`, run in turns.
fn turns(accesses: usize, mut floor: impl FnMut(), mut ours: impl FnMut()) -> (f64, f64) {
    let mut times = [Vec::new(), Vec::new()];
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64 / accesses as f64
    };
    // The first turn warms up.
    for turn in 0..=RUNS {
        let taken = [time(&mut floor), time(&mut ours)];
        if turn > 0 {
            times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
        }
    }
    let [floor, ours] = times.map(|mut times| quantile(&mut times, 0.5));
    (floor, ours)
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(times.len() as f64 * share) as usize]
}

/// Runs of each measurement.
const RUNS: usize = 9;

/// Keys of a call that has several.
const BATCH: usize = 100;
