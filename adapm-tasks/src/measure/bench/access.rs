//! Local pulls and pushes of one worker, and its signals: intent, and its clock.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Builder, Random};

use crate::measure::bench::figure::{self, BenchError, Desk, Figure, Goal};
use crate::measure::bench::rows::{Access, BATCH, Floats, Rows};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    for size in SIZES.iter().take(if desk.plan.is_quick { 1 } else { SIZES.len() }) {
        for (at, len) in
            LENS.into_iter().enumerate().take(if desk.plan.is_quick { 2 } else { LENS.len() })
        {
            let what = format!("{} keys of {len} floats", size.name);
            // The flat array and the store.
            if desk.has_room(&what, 2 * size.keys as usize * len * size_of::<f32>()) {
                for (kind, references) in [("single", size.single), ("batch", size.batch)] {
                    for figure in local(size.keys, len, kind == "batch", references[at])? {
                        desk.add(Figure { what: format!("{}, {what}", figure.what), ..figure })?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Pulls and pushes of random keys.
fn local(
    keys: u64,
    len: usize,
    is_batch: bool,
    references: [&'static str; 2],
) -> Result<Vec<Figure>, BenchError> {
    let layout = Layout::dense(&[(keys, len)]).expect("few keys, short values");
    let cluster = Builder::<f32>::new(layout).initial(|_, value| value.fill(1.0)).build()?;
    let accesses = (ELEMENTS / len / BATCH).clamp(100, 5_000) * BATCH;
    let mut random = Random::new(1);
    let order: Vec<Key> = (0..accesses).map(|_| Key(random.below(keys))).collect();
    // Written, so that it has memory of its own.
    let flat = Mutex::new((0..keys as usize * len).map(|i| i as f32).collect::<Vec<f32>>());
    let rows = || Rows::new(&order, if is_batch { BATCH } else { 1 }, len);
    let work = |mut worker: Floats| {
        let mut flat = flat.lock().expect("there is one worker");
        Access::ALL.map(|access| in_turns(access, &mut rows(), &mut rows(), &mut flat, &mut worker))
    };
    let medians = cluster.run(work)?.remove(0);
    let kind = if is_batch { "batch" } else { "single" };
    let goal = |floor: f64| {
        Goal::AtMost(if is_batch {
            (1.25 * floor).max(floor + 8.0)
        } else {
            (1.5 * floor).max(floor + 10.0)
        })
    };
    let figures = Access::ALL.into_iter().zip(medians).zip(references);
    Ok(figures
        .map(|((access, (floor, ours)), reference)| {
            let figure = Figure::new(format!("{}, {kind}", access.name()), "ns/key", ours);
            figure.beside(floor).towards(goal(floor)).after(reference)
        })
        .collect())
}

fn in_turns(
    access: Access,
    bare: &mut Rows<'_>,
    rows: &mut Rows<'_>,
    flat: &mut [f32],
    worker: &mut Floats,
) -> (f64, f64) {
    let floor = || match access {
        Access::Pull => bare.copy(flat),
        Access::Push => bare.add(flat),
    };
    figure::medians(rows.accesses(), floor, || {
        rows.access(access, worker).expect("all keys are local")
    })
}

/// Keys of a cluster, and nanoseconds per key of the predecessor for each length: pull, push.
struct Size {
    keys: u64,
    name: &'static str,
    single: [[&'static str; 2]; 4],
    batch: [[&'static str; 2]; 4],
}

pub(super) fn measure_signals(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    let [intent, clock] = figures()?;
    let what = format!("intent, {BATCH} keys a call");
    let intent = Figure::new(what, "ns/key", intent.1).beside(intent.0).after("90 to 690");
    desk.add(intent.towards(Goal::AtMost(40.0)))?;
    desk.add(Figure::new("advancing the clock", "ns", clock.1).beside(clock.0).after("6"))
}

/// Medians of floor and figure: of intent, of the clock.
fn figures() -> Result<[(f64, f64); 2], BenchError> {
    let layout = Layout::dense(&[(KEYS, 4)]).expect("few keys, short values");
    let cluster = Builder::<f32>::new(layout).nodes(2).build()?;
    let mut random = Random::new(1);
    let order: Vec<Key> = (0..2 * KEYS).map(|_| Key(random.below(KEYS))).collect();
    let work = |mut worker: Floats| {
        if worker.node() == NodeId(1) {
            return None;
        }
        let clock = figure::medians(
            TICKS,
            || {
                let counter = AtomicU64::new(0);
                (0..TICKS).for_each(|_| _ = black_box(counter.fetch_add(1, Ordering::Release)));
            },
            || (0..TICKS).for_each(|_| _ = black_box(worker.advance_clock())),
        );
        let floor = || {
            let mut list = Vec::new();
            order.chunks(BATCH).for_each(|keys| list.extend(keys.iter().copied()));
            black_box(list);
        };
        // Windows so far ahead that none is acted on.
        let start = worker.clock() + 1_000_000;
        let signal = || {
            for keys in order.chunks(BATCH) {
                worker.intent(keys, start..start + 1).expect("a window");
            }
        };
        let intent = figure::medians(order.len(), floor, signal);
        Some([intent, clock])
    };
    Ok(cluster.run(work)?.into_iter().flatten().next().expect("the first node measures"))
}

const SIZES: [Size; 2] = [
    Size {
        keys: 10_000,
        name: "10 k",
        single: [["23", "37"], ["29", "67"], ["111", "360"], ["323", "797"]],
        batch: [["16", "30"], ["21", "62"], ["89", "306"], ["268", "809"]],
    },
    Size {
        keys: 1_000_000,
        name: "1 M",
        single: [["230", "329"], ["249", "529"], ["422", "1036"], ["805", "1400"]],
        batch: [["152", "327"], ["180", "485"], ["373", "1126"], ["840", "1388"]],
    },
];

const LENS: [usize; 4] = [25, 100, 500, 1_000];

/// Elements that a turn touches, about.
const ELEMENTS: usize = 20_000_000;

const KEYS: u64 = 100_000;
const TICKS: usize = 100_000;
