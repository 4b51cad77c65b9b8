//! Parameters of dense layers as keys: a slice cut into chunks, each the value of a key with an
//! accumulator for each parameter behind.

use std::ops::Range;

use adapm_core::update::AdaGrad;
use adapm_core::{Clock, Key};
use adapm_runtime::tables::Table;

use crate::optim::{self, ADAGRAD};
use crate::run::{IntentSignaler, Over, WorkerSlot};

/// So many parameters in chunks, which are the keys from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    pub(crate) first: u64,
    pub(crate) parameters: usize,
}

impl Chunks {
    /// Returns the tables of whole chunks and of the last one, if it is shorter, with an
    /// accumulator for each parameter.
    pub(crate) fn tables(self) -> [Table; 2] {
        let (whole, rest) = (self.parameters / self.len(), self.parameters % self.len());
        let table = |name, rows, len| Table::new(name, rows, len).with_state(ADAGRAD, len);
        [table("layers", whole as u64, self.len()), table("layers.rest", u64::from(rest > 0), rest)]
    }

    /// Returns the keys, ascending.
    pub(crate) fn keys(self) -> impl Iterator<Item = Key> {
        let Range { start, end } = self.key_range();
        (start.0..end.0).map(Key)
    }

    /// Returns the first key, and the one behind the last.
    pub(crate) fn key_range(self) -> Range<Key> {
        Key(self.first)..Key(self.first + self.parameters.div_ceil(self.len()) as u64)
    }

    /// Returns the parameters in the value of a key; empty for another key.
    pub(crate) fn parameters_of(self, key: Key) -> Range<usize> {
        let chunk = usize::try_from(key.0.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let bound = |chunk: usize| chunk.saturating_mul(self.len()).min(self.parameters);
        if key.0 < self.first { 0..0 } else { bound(chunk)..bound(chunk.saturating_add(1)) }
    }

    /// Writes the parameters in the `values` of all keys, of which each has `halves` times as many
    /// floats as parameters.
    pub(crate) fn unpack(self, values: &[f32], halves: usize, parameters: &mut Vec<f32>) {
        parameters.clear();
        for value in values.chunks(halves * self.len()) {
            parameters.extend_from_slice(&value[..value.len() / halves]);
        }
    }

    /// Writes the updates of all keys for these gradients of the parameters, of which so many
    /// `steps` are taken at once ([`AdaGrad::step_among`]). Returns the first key that would get
    /// one that is no finite number.
    pub(crate) fn update(
        self,
        rule: AdaGrad,
        steps: f32,
        values: &[f32],
        gradients: &[f32],
        updates: &mut [f32],
    ) -> Result<(), Key> {
        let len = self.len();
        let values = values.chunks(2 * len).zip(updates.chunks_mut(2 * len));
        for ((key, gradient), (value, update)) in self.keys().zip(gradients.chunks(len)).zip(values)
        {
            if !optim::step_among(rule, steps, value, gradient, update) {
                return Err(key);
            }
        }
        Ok(())
    }

    /// Reads the parameters by `pull` to `pulled`, if that is empty: an evaluating worker needs
    /// them once. `values` is room that is used again.
    pub(crate) fn pull_once<E>(
        self,
        halves: usize,
        pulled: &mut Vec<f32>,
        values: &mut Vec<f32>,
        pull: impl FnOnce(&[Key], &mut [f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        if pulled.is_empty() {
            let keys: Vec<Key> = self.keys().collect();
            values.resize(halves * self.parameters, 0.0);
            pull(&keys, values)?;
            self.unpack(values, halves, pulled);
        }
        Ok(())
    }

    /// Parameters of a key, but for the last.
    fn len(self) -> usize {
        self.parameters.div_ceil(KEYS_MIN).clamp(1, LEN)
    }
}

/// The intent for all keys of the layers and the whole run, which the first worker of each node
/// signals once.
#[derive(Debug)]
pub(crate) struct WholeRunIntent {
    /// It is signaled, or is another worker's.
    is_done: bool,
}

impl WholeRunIntent {
    /// Returns that of the worker in `slot`.
    pub(crate) fn of(slot: WorkerSlot) -> Self {
        Self { is_done: slot.id > 0 }
    }

    /// Signals it, from `clock` on, if that is still to be done.
    pub(crate) fn signal(
        &mut self,
        chunks: Chunks,
        clock: Clock,
        signaler: &mut impl IntentSignaler,
    ) -> Result<(), Over> {
        if std::mem::replace(&mut self.is_done, true) {
            return Ok(());
        }
        let keys: Vec<Key> = chunks.keys().collect();
        Ok(signaler.signal_intent(&keys, clock..Clock(u64::MAX))?)
    }
}

/// Parameters of a key at most: 8 KiB, or 16 with accumulators.
const LEN: usize = 2048;
/// Keys of few parameters, so that each of some nodes can own one.
const KEYS_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Shape;
    use adapm_runtime::tables::Tables;

    #[test]
    fn all_parameters_are_in_one_key_each_and_come_back() {
        for parameters in [1, LEN - 1, LEN, LEN + 1, 3 * LEN + 5] {
            let chunks = Chunks { first: 7, parameters };
            let keys: Vec<Key> = chunks.keys().collect();
            let tables = [Table::new("features", 7, 3)].into_iter().chain(chunks.tables());
            let shape = Shape::of(&Tables::new(tables).expect("names are there once"));
            assert_eq!((keys[0], keys.len() as u64 + 7), (Key(7), shape.keys()));
            let ranges: Vec<_> = keys.iter().flat_map(|key| chunks.parameters_of(*key)).collect();
            assert!(ranges.into_iter().eq(0..parameters));
            assert!(chunks.parameters_of(Key(6)).is_empty());
            assert!(chunks.parameters_of(Key(u64::MAX)).is_empty());

            let values: Vec<f32> = keys
                .iter()
                .flat_map(|key| {
                    let range = chunks.parameters_of(*key);
                    assert_eq!(shape.len_of(*key), 2 * range.len());
                    let accumulators = vec![AdaGrad::INITIAL; range.len()];
                    range.map(|at| at as f32).chain(accumulators)
                })
                .collect();
            let mut unpacked = Vec::new();
            chunks.unpack(&values, 2, &mut unpacked);
            assert!(unpacked.iter().copied().eq((0..parameters).map(|at| at as f32)));

            let (mut updates, mut gradients) = (vec![0.0; values.len()], vec![1.0; parameters]);
            let rule = AdaGrad { learning_rate: 0.5 };
            assert_eq!(chunks.update(rule, 1.0, &values, &gradients, &mut updates), Ok(()));
            let mut steps = Vec::new();
            chunks.unpack(&updates, 2, &mut steps);
            assert!(steps.iter().all(|step| (step + 0.5).abs() < 1e-3));
            gradients[parameters - 1] = f32::NAN;
            let outcome = chunks.update(rule, 1.0, &values, &gradients, &mut updates);
            assert_eq!(outcome, Err(keys[keys.len() - 1]));
        }
    }
}
