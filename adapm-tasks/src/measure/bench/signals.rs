//! Signals of a worker: intent, and its clock.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Builder, Random};

use super::figure::{Figure, Goal};
use super::rows::{BATCH, Floats};
use crate::measure::bench::figure::{self, BenchError, Desk};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
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

const KEYS: u64 = 100_000;
const TICKS: usize = 100_000;
