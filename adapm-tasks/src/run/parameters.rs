//! The part of a parameter manager that a step and an evaluation need, and the announcements of a
//! loader; the length of each key's value; and the distribution that samples are drawn from
//! ([`SamplingDistribution`]).
//!
//! Workers of the runtime ([`crate::run::inter`]) and plain arrays ([`crate::run::managed`]) are
//! [`Parameters`].

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout};
use adapm_runtime::checkpoint::{Part, Restored};
use adapm_runtime::tables::Tables;
use adapm_runtime::{Random, Sampling, Scheme};

use crate::run::error::TaskError;

/// Access to the parameters, as one worker has it.
pub trait Parameters {
    /// An error of an operation.
    type Error;
    /// A prepared set of sampled keys.
    type Sample: Send;

    /// Reads the values of `keys`, each there once, concatenated in their order: as many floats as
    /// [`Shape`] says. A key that is here costs little more than a copy; others are waited for.
    ///
    /// # Errors
    ///
    /// An operation that the manager refuses or cannot do.
    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), Self::Error>;

    /// Adds `updates` to the values of `keys`, concatenated in their order. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`pull`](Self::pull).
    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), Self::Error>;

    /// May choose the keys of a sample that is pulled in the next step, so that they are here then.
    ///
    /// # Errors
    ///
    /// As [`pull`](Self::pull).
    fn choose_sample(&mut self, sample: &mut Self::Sample) -> Result<(), Self::Error> {
        let _ = sample;
        Ok(())
    }

    /// Writes the next `keys.len()` keys of a sample and reads their values.
    ///
    /// # Errors
    ///
    /// As [`pull`](Self::pull), and a sample of fewer keys.
    fn pull_sample(
        &mut self,
        sample: &mut Self::Sample,
        keys: &mut [Key],
        values: &mut [f32],
    ) -> Result<(), Self::Error>;

    /// Ends a step: advances the worker's clock by 1.
    fn advance_clock(&mut self);

    /// Waits until everything that any worker pushed is applied everywhere, and all workers have
    /// called this.
    ///
    /// # Errors
    ///
    /// As [`pull`](Self::pull).
    fn quiesce(&mut self) -> Result<(), Self::Error>;

    /// Waits until intent signaled before has been acted on as far as it is due.
    ///
    /// # Errors
    ///
    /// As [`pull`](Self::pull).
    fn settle(&mut self) -> Result<(), Self::Error>;
}

/// Parameters of which all workers together can take a copy.
pub(crate) trait Snapshot: Parameters {
    /// Copies this worker's part of all parameters, at one moment, once all workers have called
    /// this; into the memory of an earlier part, if it suffices. Each key is in one part.
    ///
    /// # Errors
    ///
    /// As [`pull`](Parameters::pull).
    fn snapshot(&mut self, room: Vec<f32>) -> Result<Part, Self::Error>;

    /// Sets the values of those of `keys` that were read and have their home elsewhere, each as
    /// long as `len_of` says. Some are on their way in the end.
    ///
    /// # Errors
    ///
    /// As [`pull`](Parameters::pull).
    fn hand_over(
        &mut self,
        keys: impl Iterator<Item = Key>,
        rows: &Restored,
        len_of: &dyn Fn(Key) -> usize,
    ) -> Result<(), Self::Error>;
}

/// The intent signals of a loader thread, ahead of its worker.
pub trait IntentSignaler {
    /// A prepared set of sampled keys.
    type Sample: Send;

    /// Signals that the worker will access `keys`, each there once, while its clock is in `clocks`.
    ///
    /// # Errors
    ///
    /// Once the worker has ended.
    fn signal_intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError>;

    /// Leaves out so many samples, as if they had been prepared: where a run goes on.
    fn skip_samples(&mut self, samples: u64);

    /// Prepares a sample of `n` keys for these clocks.
    ///
    /// # Errors
    ///
    /// Once the worker has ended, and for a task without a sampling distribution.
    fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<Self::Sample, OpError>;
}

/// A signaler without a manager, whose samples are the seeds of their draws.
#[derive(Debug)]
pub(crate) struct NoSignaler(Random);

impl NoSignaler {
    /// Returns one whose samples follow from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }
}

impl IntentSignaler for NoSignaler {
    type Sample = Random;

    fn signal_intent(&mut self, _: &[Key], _: Range<Clock>) -> Result<(), OpError> {
        Ok(())
    }

    fn skip_samples(&mut self, samples: u64) {
        for _ in 0..samples {
            self.0.bits();
        }
    }

    fn prepare_sample(&mut self, _: usize, _: Range<Clock>) -> Result<Random, OpError> {
        Ok(Random::new(self.0.bits()))
    }
}

/// A distribution over a range of keys, whose values are equally long.
#[derive(Clone)]
pub enum SamplingDistribution {
    /// Every key is as likely as any other.
    Uniform(Range<Key>),
    /// As a function draws: keys of the range.
    By(Range<Key>, Arc<dyn Fn(&mut Random) -> Key + Send + Sync>),
}

impl SamplingDistribution {
    /// Returns the manager's configuration of sampling.
    pub(crate) fn sampling(&self, scheme: Scheme, seed: u64) -> Sampling {
        match self {
            Self::Uniform(keys) => Sampling::uniform(scheme, keys.clone(), seed),
            Self::By(keys, draw) => {
                let draw = Arc::clone(draw);
                Sampling::drawn(scheme, keys.clone(), seed, move |random| draw(random))
            }
        }
    }

    /// Returns the next key.
    pub(crate) fn draw(&self, random: &mut Random) -> Key {
        match self {
            Self::Uniform(keys) => Key(keys.start.0 + random.below(keys.end.0 - keys.start.0)),
            Self::By(_, draw) => draw(random),
        }
    }
}

impl fmt::Debug for SamplingDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform(keys) => f.debug_tuple("Uniform").field(keys).finish(),
            Self::By(keys, _) => f.debug_tuple("By").field(keys).finish_non_exhaustive(),
        }
    }
}

/// Groups of keys, one after the other from key 0; all values of a group are equally long. Cheap to
/// clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    groups: Arc<[Group]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// Its first key.
    first: u64,
    count: u64,
    /// Floats of a value.
    len: usize,
}

impl Group {
    /// Returns the key after its last.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

impl Shape {
    /// Returns the shape of groups of so many keys with so many floats each. What is too much to
    /// count is as much as can be counted, which no manager lays out.
    #[must_use]
    pub fn new(groups: &[(u64, usize)]) -> Self {
        let mut first: u64 = 0;
        let groups = groups.iter().map(|(count, len)| {
            let group = Group { first, count: *count, len: *len };
            first = group.end();
            group
        });
        Self { groups: groups.collect() }
    }

    /// Returns the shape of the rows of tables.
    #[must_use]
    pub fn of(tables: &Tables) -> Self {
        let groups: Vec<_> =
            tables.as_slice().iter().map(|table| (table.rows(), table.row_len())).collect();
        Self::new(&groups)
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.groups.last().map_or(0, Group::end)
    }

    /// Returns the floats of the value of `key`, 0 if there is no such key.
    #[must_use]
    pub fn len_of(&self, key: Key) -> usize {
        self.groups.iter().find(|group| key.0 < group.end()).map_or(0, |group| group.len)
    }

    /// Returns the start of `key`'s value if all values are contiguous; also defined one past the
    /// last key.
    #[must_use]
    pub fn offset(&self, key: Key) -> usize {
        self.floats(|group| key.0.clamp(group.first, group.end()) - group.first)
    }

    /// Returns the start, in floats, of the value of the key at position `at` of `keys`, which
    /// ascend, if their values are contiguous; one past the last key, the floats of all of them.
    /// Two binary searches in `keys` for each group.
    #[must_use]
    pub fn offset_among(&self, keys: &[Key], at: usize) -> usize {
        let position = |key: u64| keys.partition_point(|other| other.0 < key);
        self.floats(|group| {
            let (first, end) = (position(group.first), position(group.end()));
            (at.clamp(first, end) - first) as u64
        })
    }

    /// Returns the first of `keys`, which ascend, that has a float which is NaN or infinite among
    /// the contiguous `values` or updates: a step that finds one pushes nothing.
    #[must_use]
    pub fn find_not_finite(&self, keys: &[Key], values: &[f32]) -> Option<Key> {
        let float = values.iter().position(|value| !value.is_finite())?;
        let begins_until = |at: &usize| self.offset_among(keys, *at) <= float;
        (0..keys.len()).take_while(begins_until).last().map(|at| keys[at])
    }

    /// Returns the floats of all values.
    #[must_use]
    pub fn total(&self) -> usize {
        self.floats(|group| group.count)
    }

    /// Returns the manager's layout.
    ///
    /// # Errors
    ///
    /// No key at all, values of no or too many floats, or more of them than can be counted.
    pub(crate) fn layout(&self) -> Result<Layout, TaskError> {
        let extents: Vec<_> = self.groups.iter().map(|group| (group.count, group.len)).collect();
        Layout::dense(&extents).map_err(|error| TaskError::Build(error.into()))
    }

    /// Floats of so many values of each group.
    fn floats(&self, count: impl Fn(&Group) -> u64) -> usize {
        let floats =
            self.groups.iter().map(|group| (count(group) as usize).saturating_mul(group.len));
        floats.fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_of_the_range_and_as_the_function_says() {
        let mut random = Random::new(1);
        let uniform = SamplingDistribution::Uniform(Key(3)..Key(5));
        let drawn: Vec<Key> = (0..100).map(|_| uniform.draw(&mut random)).collect();
        let threes = drawn.iter().filter(|key| **key == Key(3)).count();
        assert!(
            (30..70).contains(&threes) && drawn.iter().all(|key| [Key(3), Key(4)].contains(key))
        );
        let by = SamplingDistribution::By(
            Key(0)..Key(9),
            Arc::new(|random: &mut Random| Key(7 + random.below(1))),
        );
        assert_eq!(by.draw(&mut random), Key(7));
    }

    #[test]
    fn values_lie_behind_each_other_group_by_group() {
        let shape = Shape::new(&[(3, 2), (0, 9), (2, 5), (1, 1)]);
        assert_eq!((shape.keys(), shape.total()), (6, 17));
        let lens: Vec<usize> = (0..7).map(|key| shape.len_of(Key(key))).collect();
        assert_eq!(lens, [2, 2, 2, 5, 5, 1, 0]);
        let mut start = 0;
        for key in (0..7).map(Key) {
            assert_eq!(shape.offset(key), start);
            start += shape.len_of(key);
        }
        let keys = [1, 2, 4, 5].map(Key);
        let among: Vec<usize> = (0..5).map(|at| shape.offset_among(&keys, at)).collect();
        assert_eq!(among, [0, 2, 4, 9, 10]);
        for (float, key) in [(0, keys[0]), (3, keys[1]), (4, keys[2]), (8, keys[2]), (9, keys[3])] {
            let mut values = vec![1.0; 10];
            values[float..].fill(f32::NAN);
            assert_eq!(shape.find_not_finite(&keys, &values), Some(key), "float {float}");
        }
        assert_eq!(shape.find_not_finite(&keys, &[1.0; 10]), None);
    }

    #[test]
    fn what_is_too_much_is_refused_and_not_counted() {
        let shape = Shape::new(&[(u64::MAX, 1), (2, usize::MAX)]);
        assert_eq!((shape.keys(), shape.total()), (u64::MAX, usize::MAX));
        assert!(shape.layout().is_err() && Shape::new(&[]).layout().is_err());
        assert!(Shape::new(&[(3, 2), (0, 9)]).layout().is_ok());
    }
}
