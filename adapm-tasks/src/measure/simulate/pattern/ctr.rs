//! Click-through-rate prediction: Wide & Deep of dimension 128 on Criteo Kaggle, batches of 128 (AdaPM App. C).

use adapm_core::{Key, Layout};
use adapm_verify::sim::Who;

use super::{Facts, Pattern, Work};
use crate::measure::simulate::Chance;
use crate::measure::simulate::zipf::Ranks;

/// Values of each categorical feature; with a wide and a deep part each, the stated 67 M keys.
const FEATURES: [u64; 26] = [
    1_460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5_683, 8_351_593, 3_194, 27, 14_992,
    5_461_306, 10, 5_652, 2_173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];
/// Training examples: the stated 85.7 % of 46 M.
const EXAMPLES: u64 = 39_400_000;
/// Examples of a batch (stated).
const BATCH: u64 = 128;
/// Modelled keys stand for so many: a modelled batch has so many times fewer examples.
const KEYS_PER_KEY: u64 = 8;
/// Bytes of the deep and the wide value of a feature with their AdaGrad parts: the stated 32.5 GB over half the stated keys.
const VALUE_BYTES: u64 = 1_032;
/// Dense layers: the stated 52 % of all accesses, against 26 x 128 sparse ones; in this many long values.
const DENSE: u64 = 60;
const DENSE_ELEMENTS: usize = 8;
/// Time for a batch: 57.5 minutes (stated) for an epoch on 256 workers, taken for computation.
const BATCH_NANOS: u64 = 2_880_000_000;

/// Batches of examples with features by rank, the same on all nodes; all batches use the dense layers.
pub(super) struct Ctr {
    facts: Facts,
    features: Vec<(u64, Ranks)>,
    dense: u64,
}

impl Ctr {
    pub(super) fn new() -> Self {
        let mut start = 0;
        let mut features = Vec::new();
        for values in FEATURES {
            // The exponent is assumed.
            let ranks = Ranks::new(values / KEYS_PER_KEY, 1.1, 0);
            features.push((start, ranks));
            start += (values / KEYS_PER_KEY).max(1);
        }
        let layout = Layout::sparse(&[(start, 1), (DENSE, DENSE_ELEMENTS)]).expect("there are keys");
        let facts = Facts::of_batches(layout, VALUE_BYTES, KEYS_PER_KEY, EXAMPLES, BATCH);
        Self { facts, features, dense: start }
    }
}

impl Pattern for Ctr {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, _who: Who, chance: &mut Chance) -> Work {
        let mut keys: Vec<Key> = (self.dense..self.dense + DENSE).map(Key).collect();
        for (start, ranks) in &self.features {
            keys.extend((0..BATCH / KEYS_PER_KEY).map(|_| Key(start + ranks.draw(chance))));
        }
        Work::of(keys, BATCH_NANOS, chance)
    }
}
