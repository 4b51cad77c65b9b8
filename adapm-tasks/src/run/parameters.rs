//! The little of a parameter manager that a step and an evaluation need, and what a loader tells it ahead.
//!
//! A worker of the runtime is [`Parameters`] ([`crate::run::managed`]), and so are plain arrays ([`crate::run::arrays`]).

use std::ops::Range;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};

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
