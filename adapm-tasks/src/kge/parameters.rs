//! The little of a parameter manager that a step and an evaluation need, and plain arrays that offer it.
//!
//! Entity `e` is key `e`, relation `r` is key `entities + r`.

use std::convert::Infallible;
use std::ops::Range;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Access to the parameters, as one worker has it.
pub(crate) trait Parameters {
    /// Why an operation failed.
    type Error;
    /// A prepared set of sampled keys.
    type Sample;

    /// Reads the values of `keys`, concatenated in their order.
    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), Self::Error>;
    /// Adds `updates`, concatenated in the order of `keys`.
    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), Self::Error>;
    /// May choose the keys of a sample that is pulled in the next step, so that they are here then.
    fn choose_sample(&mut self, sample: &mut Self::Sample) -> Result<(), Self::Error> {
        let _ = sample;
        Ok(())
    }
    /// Writes the next `keys.len()` keys of a sample and reads their values.
    fn pull_sample(
        &mut self,
        sample: &mut Self::Sample,
        keys: &mut [Key],
        values: &mut [f32],
    ) -> Result<(), Self::Error>;
    /// Ends a step.
    fn advance_clock(&mut self);
    /// Waits until everything that any worker pushed is applied everywhere, and all workers have called this.
    fn quiesce(&mut self) -> Result<(), Self::Error>;
    /// Waits until what was announced before has been acted on as far as it is due.
    fn settle(&mut self) -> Result<(), Self::Error>;
}

/// What a loader thread tells the parameter manager ahead of its worker.
pub(crate) trait Announcer {
    /// A prepared set of sampled keys.
    type Sample;

    /// The worker will access `keys` while its clock is in `clocks`. Fails once the worker has ended.
    fn announce(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError>;
    /// Prepares a sample of `n` keys for these clocks.
    fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<Self::Sample, OpError>;
}

/// Announces to nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unannounced;

impl Announcer for Unannounced {
    type Sample = ();

    fn announce(&mut self, _: &[Key], _: Range<Clock>) -> Result<(), OpError> {
        Ok(())
    }

    fn prepare_sample(&mut self, _: usize, _: Range<Clock>) -> Result<(), OpError> {
        Ok(())
    }
}

/// Which key has a value of which length: entities first, then relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) entities: u64,
    pub(crate) relations: u64,
    /// Floats of an entity's value.
    pub(crate) entity_len: usize,
    /// Floats of a relation's value.
    pub(crate) relation_len: usize,
}

impl Shape {
    /// Number of keys.
    pub(crate) fn keys(self) -> u64 {
        self.entities + self.relations
    }

    /// Floats of the value of `key`.
    pub(crate) fn len_of(self, key: Key) -> usize {
        if key.0 < self.entities { self.entity_len } else { self.relation_len }
    }

    /// Where the value of `key` starts if all values lie behind each other; also defined one behind the last key.
    pub(crate) fn offset(self, key: Key) -> usize {
        let entities = key.0.min(self.entities) as usize;
        let relations = key.0.saturating_sub(self.entities) as usize;
        entities * self.entity_len + relations * self.relation_len
    }
}

/// All parameters in one array: one worker, no manager. What a manager costs is measured against it.
#[derive(Clone, Debug)]
pub(crate) struct Arrays {
    shape: Shape,
    values: Vec<f32>,
    random: Xoshiro256PlusPlus,
}

impl Arrays {
    /// Fills the values by `initial`, called once per key; `seed` is that of the sampled keys.
    pub(crate) fn new(shape: Shape, seed: u64, initial: impl Fn(Key, &mut [f32])) -> Self {
        let mut values = vec![0.0; shape.offset(Key(shape.keys()))];
        for key in (0..shape.keys()).map(Key) {
            let start = shape.offset(key);
            initial(key, &mut values[start..start + shape.len_of(key)]);
        }
        Self { shape, values, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
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

    fn pull_sample(&mut self, _: &mut (), keys: &mut [Key], values: &mut [f32]) -> Result<(), Infallible> {
        let entities = self.shape.entities;
        keys.fill_with(|| Key(self.random.random_range(0..entities)));
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
