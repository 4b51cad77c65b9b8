//! Parameters in plain arrays.

use std::convert::Infallible;

use adapm_core::Key;
use adapm_runtime::Random;

use crate::run::draws::Draws;
use crate::run::parameters::Parameters;
use crate::run::shape::Shape;
use crate::run::task::Tell;

/// All parameters in one array: one worker, no manager. What a manager costs is measured against it.
#[derive(Clone, Debug)]
pub(crate) struct Arrays {
    shape: Shape,
    values: Vec<f32>,
    draws: Option<Draws>,
    random: Random,
}

impl Arrays {
    /// Fills the values by `initial`, called once per key; `seed` is that of the sampled keys.
    #[cfg(test)]
    pub(crate) fn new(
        shape: Shape,
        draws: Option<Draws>,
        seed: u64,
        initial: impl Fn(Key, &mut [f32]),
    ) -> Self {
        Self::fill(shape, draws, seed, initial, &|_, _| {})
    }

    /// Fills the values by `initial`, called once per key, and tells how many keys have theirs; `seed` is that of the sampled keys.
    pub(crate) fn fill(
        shape: Shape,
        draws: Option<Draws>,
        seed: u64,
        initial: impl Fn(Key, &mut [f32]),
        tell: &Tell<'_>,
    ) -> Self {
        let mut values = vec![0.0; shape.total()];
        let mut rest = values.as_mut_slice();
        for key in (0..shape.keys()).map(Key) {
            let (value, behind) = rest.split_at_mut(shape.len_of(key));
            initial(key, value);
            rest = behind;
            if key.0 % KEYS_A_TELLING == KEYS_A_TELLING - 1 {
                tell(key.0 + 1, shape.keys());
            }
        }
        Self { shape, values, draws, random: Random::new(seed) }
    }
}

impl Parameters for Arrays {
    type Error = Infallible;
    type Sample = ();

    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), Infallible> {
        let mut rest = values;
        for key in keys {
            let (value, behind) = rest.split_at_mut(self.shape.len_of(*key));
            let start = self.shape.offset(*key);
            value.copy_from_slice(&self.values[start..start + value.len()]);
            rest = behind;
        }
        Ok(())
    }

    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), Infallible> {
        let mut rest = updates;
        for key in keys {
            let (update, behind) = rest.split_at(self.shape.len_of(*key));
            let start = self.shape.offset(*key);
            for (value, update) in self.values[start..start + update.len()].iter_mut().zip(update) {
                *value += update;
            }
            rest = behind;
        }
        Ok(())
    }

    /// # Panics
    ///
    /// If the task says nothing to draw from.
    fn pull_sample(&mut self, _: &mut (), keys: &mut [Key], values: &mut [f32]) -> Result<(), Infallible> {
        let draws = self.draws.as_ref().expect("a task that samples says what from");
        keys.fill_with(|| draws.draw(&mut self.random));
        self.pull(keys, values)
    }

    fn advance_clock(&mut self) {}

    fn quiesce(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Keys that have their values before that is told again: some megabytes.
const KEYS_A_TELLING: u64 = 1 << 16;
