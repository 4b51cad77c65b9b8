//! Scaling of local access from one worker to two.

use std::sync::{Barrier, Mutex};

use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Random};
use rand::SeedableRng as _;
use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::measure::bench::figure::{BenchError, Desk, Figure, Goal, TURNS, median, nanos_per};
use crate::measure::bench::rows::{Access, BATCH, Floats, Rows};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    for (keys, name) in SIZES.into_iter().take(if desk.plan.is_quick { 1 } else { SIZES.len() }) {
        let what = format!("{name} keys of {LEN} floats");
        // The store, the flat array that is read, and one for each thread that is written.
        if !desk.has_room(&what, 4 * keys as usize * LEN * size_of::<f32>()) {
            continue;
        }
        for share in [Share::Ranges, Share::Others, Share::All, Share::Zipf] {
            for figure in scaling(keys, share)? {
                desk.add(Figure { what: format!("{}, {what}", figure.what), ..figure })?;
            }
        }
    }
    Ok(())
}

/// The keys that two workers access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// Each a half of its own, side by side.
    Ranges,
    /// Each every other: where keys share a line of cache, so do the workers.
    Others,
    /// Both all, each as often.
    All,
    /// Both all, few of them often.
    Zipf,
}

impl Share {
    fn name(self) -> &'static str {
        match self {
            Self::Ranges => "disjoint ranges of keys",
            Self::Others => "disjoint keys, every other",
            Self::All => "shared keys",
            Self::Zipf => "shared keys, Zipf 1.1",
        }
    }

    fn is_disjoint(self) -> bool {
        matches!(self, Self::Ranges | Self::Others)
    }

    /// Returns the keys that a worker accesses, in order.
    fn keys(self, keys: u64, worker: usize) -> Vec<Key> {
        let mut random = Random::new(worker as u64 + 1);
        match self {
            Self::Ranges | Self::Others => {
                let mut of_half = || random.below(keys / 2);
                let mut key = || match self {
                    Self::Ranges => worker as u64 * (keys / 2) + of_half(),
                    _ => 2 * of_half() + worker as u64,
                };
                (0..ACCESSES).map(|_| Key(key())).collect()
            }
            Self::All => (0..ACCESSES).map(|_| Key(random.below(keys))).collect(),
            Self::Zipf => {
                let zipf = Zipf::new(keys as f64, 1.1).expect("a legal distribution");
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(worker as u64);
                // Keys that are accessed often do not lie side by side.
                let key = |rank: f64| (rank as u64 - 1).wrapping_mul(SCATTER) % keys;
                (0..ACCESSES).map(|_| Key(key(zipf.sample(&mut rng)))).collect()
            }
        }
    }
}

/// Measures the speed-up of two workers over one, for pulls and for pushes.
fn scaling(keys: u64, share: Share) -> Result<[Figure; 2], BenchError> {
    let layout = Layout::dense(&[(keys, LEN)]).expect("few keys, short values");
    let cluster =
        Builder::<f32>::new(layout).workers(2).initial(|_, value| value.fill(1.0)).build()?;
    let shared: Vec<f32> = (0..keys as usize * LEN).map(|i| i as f32).collect();
    let slots =
        [0, 1].map(|worker| Mutex::new((share.keys(keys, worker), vec![1.0; shared.len()])));
    let gate = Barrier::new(2);
    let work = |mut worker: Floats| {
        let index = worker.id().index();
        let mut slot = slots[index].lock().expect("a worker has a slot of its own");
        let (order, own) = &mut *slot;
        let mut rows = Rows::new(order, BATCH, LEN);
        Access::ALL.map(|access| {
            let mut floor = |rows: &mut Rows<'_>| match access {
                Access::Pull => rows.copy(&shared),
                Access::Push => rows.add(own),
            };
            let mut ours =
                |rows: &mut Rows<'_>| rows.access(access, &mut worker).expect("all keys are local");
            let mut times = [const { Vec::new() }; 4];
            for turn in 0..=TURNS {
                let taken = [
                    alone(index, &gate, || floor(&mut rows)),
                    alone(index, &gate, || ours(&mut rows)),
                    together(&gate, || floor(&mut rows)),
                    together(&gate, || ours(&mut rows)),
                ];
                if turn > 0 {
                    times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
                }
            }
            times.map(median)
        })
    };
    let [first, second] = <[_; 2]>::try_from(cluster.run(work)?).expect("there are two workers");
    Ok([0, 1].map(|at| {
        let [floor_alone, ours_alone, floor, ours] = first[at];
        let [_, _, floor_too, ours_too] = second[at];
        let floor = 2.0 * floor_alone / f64::midpoint(floor, floor_too);
        let what = format!("{}, {}", Access::ALL[at].name(), share.name());
        let ours = 2.0 * ours_alone / f64::midpoint(ours, ours_too);
        let figure = Figure::new(what, "x of 1 worker", ours).beside(floor);
        // Who shares keys pays for taking turns; a flat array that two threads add to is wrong, not
        // fast.
        if share.is_disjoint() { figure.towards(Goal::AtLeast(0.95 * floor)) } else { figure }
    }))
}

/// Times the first of two threads while the other waits.
fn alone(index: usize, gate: &Barrier, work: impl FnOnce()) -> f64 {
    gate.wait();
    let nanos = if index == 0 { nanos_per(ACCESSES, work) } else { 0.0 };
    gate.wait();
    nanos
}

/// Times each of two threads that begin together.
fn together(gate: &Barrier, work: impl FnOnce()) -> f64 {
    gate.wait();
    let nanos = nanos_per(ACCESSES, work);
    gate.wait();
    nanos
}

const SIZES: [(u64, &str); 2] = [(10_000, "10 k"), (1_000_000, "1 M")];
const LEN: usize = 100;

/// Keys that a worker accesses in a turn.
const ACCESSES: usize = 200_000;

/// Odd, and so a way to visit all keys of a power of two; good enough for others.
const SCATTER: u64 = 0x9e37_79b1;
