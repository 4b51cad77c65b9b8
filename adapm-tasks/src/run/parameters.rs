//! The little of a parameter manager that a step and an evaluation need, and what a loader tells it ahead.
//!
//! A worker of the runtime is [`Parameters`], and so are plain arrays ([`crate::run::managed`]).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};
use adapm_runtime::{Random, Sampling, Scheme};

/// Access to the parameters, as one worker has it.
pub(crate) trait Parameters {
    /// Why an operation failed.
    type Error;
    /// A prepared set of sampled keys.
    type Sample: Send;

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
    type Sample: Send;

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

/// A distribution over a range of keys, whose values are equally long.
#[derive(Clone)]
pub(crate) enum Draws {
    /// Every key is as likely as any other.
    Uniform(Range<Key>),
    /// As a function draws: keys of the range.
    By(Range<Key>, Arc<dyn Fn(&mut Random) -> Key + Send + Sync>),
}

impl Draws {
    /// How a manager samples.
    pub(crate) fn sampling(&self, scheme: Scheme, seed: u64) -> Sampling {
        match self {
            Self::Uniform(keys) => Sampling::uniform(scheme, keys.clone(), seed),
            Self::By(keys, draw) => {
                let draw = Arc::clone(draw);
                Sampling::drawn(scheme, keys.clone(), seed, move |random| draw(random))
            }
        }
    }

    /// The next key.
    pub(crate) fn draw(&self, random: &mut Random) -> Key {
        match self {
            Self::Uniform(keys) => Key(keys.start.0 + random.below(keys.end.0 - keys.start.0)),
            Self::By(_, draw) => draw(random),
        }
    }
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform(keys) => f.debug_tuple("Uniform").field(keys).finish(),
            Self::By(keys, _) => f.debug_tuple("By").field(keys).finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_of_the_range_and_as_the_function_says() {
        let mut random = Random::new(1);
        let uniform = Draws::Uniform(Key(3)..Key(5));
        let drawn: Vec<Key> = (0..100).map(|_| uniform.draw(&mut random)).collect();
        let threes = drawn.iter().filter(|key| **key == Key(3)).count();
        assert!((30..70).contains(&threes) && drawn.iter().all(|key| [Key(3), Key(4)].contains(key)));
        let by = Draws::By(Key(0)..Key(9), Arc::new(|random: &mut Random| Key(7 + random.below(1))));
        assert_eq!(by.draw(&mut random), Key(7));
    }
}
