//! Steps of AdaGrad on local keys: by one call of `Worker::update`, and by a pull, the steps and a
//! push.

use std::hint::black_box;
use std::sync::Mutex;

use adapm_core::error::OpError;
use adapm_core::update::AdaGrad;
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Random};

use crate::measure::bench::figure::{self, BenchError, Desk, Figure, Goal};
use crate::measure::bench::rows::{BATCH, Floats};
use crate::optim;

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    for (keys, name) in SIZES.into_iter().take(if desk.plan.is_quick { 1 } else { SIZES.len() }) {
        let what = format!("{name} keys of 2 x {DIM} floats");
        // The flat array and the store.
        if desk.has_room(&what, 2 * keys as usize * LEN * size_of::<f32>()) {
            let [update, by_hand] = steps(keys)?;
            let figure = Figure::new(format!("update, batch, {what}"), "ns/key", update.1);
            desk.add(figure.beside(update.0).towards(Goal::AtMost(25.0)))?;
            let figure =
                Figure::new(format!("pull, step, push, batch, {what}"), "ns/key", by_hand.1);
            desk.add(figure.beside(by_hand.0))?;
        }
    }
    Ok(())
}

/// Returns floor and figure of random keys, in nanoseconds per key: of updates, and of the same by
/// hand.
fn steps(keys: u64) -> Result<[(f64, f64); 2], BenchError> {
    let layout = Layout::dense(&[(keys, LEN)]).expect("few keys, short values");
    let cluster = Builder::<f32>::new(layout).initial(|_, value| value.fill(1.0)).build()?;
    let mut random = Random::new(1);
    let order: Vec<Key> = (0..STEPS).map(|_| Key(random.below(keys))).collect();
    // Written, so that it has memory of its own.
    let flat = Mutex::new((0..keys as usize * LEN).map(|i| 1.0 + i as f32).collect::<Vec<f32>>());
    let work = |mut worker: Floats| {
        let mut flat = flat.lock().expect("there is one worker");
        [update, by_hand].map(|ours| {
            let (floor, ours) = (
                || on_flat(&order, &mut flat),
                || {
                    ours(&order, &mut worker).expect("all keys are local");
                },
            );
            figure::medians(order.len(), floor, ours)
        })
    };
    Ok(cluster.run(work)?.remove(0))
}

/// The floor: steps on the rows of a flat array.
fn on_flat(order: &[Key], flat: &mut [f32]) {
    let (gradient, mut update) = (GRADIENTS[0], [0.0; LEN]);
    for key in order {
        let row = &mut flat[key.0 as usize * LEN..][..LEN];
        optim::step_among(RULE, 1.0, row, &gradient, &mut update);
        row.iter_mut().zip(&update).for_each(|(value, update)| *value += update);
    }
    black_box(flat);
}

fn update(order: &[Key], worker: &mut Floats) -> Result<(), OpError> {
    let gradients = GRADIENTS.as_flattened();
    order.chunks(BATCH).try_for_each(|keys| worker.update(keys, black_box(gradients), &RULE))
}

fn by_hand(order: &[Key], worker: &mut Floats) -> Result<(), OpError> {
    let (mut values, mut updates) = (vec![0.0; BATCH * LEN], vec![0.0; BATCH * LEN]);
    for keys in order.chunks(BATCH) {
        worker.pull(keys, &mut values)?;
        let steps = values.chunks(LEN).zip(updates.chunks_mut(LEN)).zip(black_box(&GRADIENTS));
        for ((value, update), gradient) in steps {
            optim::step_among(RULE, 1.0, value, gradient, update);
        }
        worker.push(keys, &updates)?;
    }
    Ok(())
}

const SIZES: [(u64, &str); 2] = [(10_000, "10 k"), (1_000_000, "1 M")];

/// Parameters of a key.
const DIM: usize = 16;
/// Elements of a value: parameters and accumulators.
const LEN: usize = 2 * DIM;

const RULE: AdaGrad = AdaGrad { learning_rate: 0.1 };
const GRADIENTS: [[f32; DIM]; BATCH] = [[0.01; DIM]; BATCH];

/// Steps of a turn, in whole calls.
const STEPS: usize = 5_000 * BATCH;
