//! Examples of clicks, in memory or in a temporary file if they are many.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::data::spill::{Gathering, Kept};

/// A feature of an example. 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Feature {
    pub(crate) key: u32,
    pub(crate) field: u32,
    pub(crate) value: f32,
}

/// Examples in the order in which they were read; in memory, or in a temporary file if they are
/// many.
#[derive(Clone)]
pub(crate) struct Examples {
    labels: Vec<bool>,
    /// The start of each example's features; one more.
    starts: Kept<u64>,
    features: Kept<Feature>,
    numbers: Kept<f32>,
    /// Numbers of an example.
    width: usize,
}

/// Examples while they are read.
#[derive(Debug)]
pub(crate) struct Gathered {
    labels: Vec<bool>,
    starts: Gathering<u64>,
    features: Gathering<Feature>,
    numbers: Gathering<f32>,
    width: usize,
}

/// What reading has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Features of train that occur too rarely to have a key of their own.
    pub(crate) rare: u64,
    /// Features of valid and test that train does not have.
    pub(crate) unknown: u64,
    /// Features of the examples that a model is asked about for which it has no key of their own.
    pub(crate) keyless: u64,
}

impl Gathered {
    /// Holds up to `features_max` features in memory.
    pub(crate) fn new(width: usize, features_max: usize) -> Self {
        let mut starts = Gathering::new(features_max);
        starts.push(0);
        Self {
            labels: Vec::new(),
            starts,
            features: Gathering::new(features_max),
            numbers: Gathering::new(features_max),
            width,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Adds an example with as many numbers as all have.
    pub(crate) fn push(&mut self, label: bool, features: &[Feature], numbers: &[f32]) {
        self.labels.push(label);
        features.iter().for_each(|feature| self.features.push(*feature));
        numbers.iter().for_each(|number| self.numbers.push(*number));
        self.starts.push(self.features.len() as u64);
    }

    /// Returns all examples, once `features` and `numbers` have changed theirs; they are given the
    /// start of each example's features.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn finish(
        self,
        features: impl FnOnce(&[u64], &mut [Feature]),
        numbers: impl FnOnce(&mut [f32]),
    ) -> io::Result<Examples> {
        let starts = self.starts.finish(|_| {})?;
        Ok(Examples {
            labels: self.labels,
            features: self.features.finish(|all| features(&starts, all))?,
            numbers: self.numbers.finish(numbers)?,
            width: self.width,
            starts,
        })
    }
}

impl Examples {
    pub(crate) fn label(&self, row: usize) -> bool {
        self.labels[row]
    }

    pub(crate) fn features(&self, row: usize) -> &[Feature] {
        &self.features[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    pub(crate) fn numbers(&self, row: usize) -> &[f32] {
        &self.numbers[row * self.width..(row + 1) * self.width]
    }

    /// Returns true if they are in a temporary file.
    pub(crate) fn are_spilled(&self) -> bool {
        self.features.is_spilled()
    }

    /// Returns the size of the temporary files that have them; `None` if they are in memory.
    #[cfg(any(test, feature = "cli"))]
    pub(crate) fn spilled_bytes(&self) -> Option<u64> {
        let size = size_of_val::<[Feature]>(&self.features) + size_of_val::<[u64]>(&self.starts);
        self.are_spilled().then_some(size as u64)
    }
}

/// Features that are held in memory: 48 MiB.
pub(crate) const HELD_FEATURES_MAX: usize = 4 << 20;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns so many examples, of which the features have the key of their number; from 500 on
    /// they are in a file.
    pub(in crate::ctr) fn examples(count: usize) -> Examples {
        let mut gathered = Gathered::new(1, 1000);
        for row in 0..count as u32 {
            let feature = Feature { key: row, field: 0, value: 1.0 };
            gathered.push(row % 3 == 0, &[feature; 2], &[row as f32]);
        }
        gathered.finish(|_, _| {}, |_| {}).expect("no file is broken")
    }

    #[test]
    fn examples_come_back_from_memory_and_from_a_file() {
        for count in [3, 2_000] {
            let examples = examples(count);
            assert_eq!(examples.spilled_bytes().is_some(), count > 500);
            for row in 0..count {
                assert_eq!(examples.label(row), row % 3 == 0);
                assert!(examples.features(row).iter().all(|feature| feature.key == row as u32));
                assert_eq!(
                    (examples.features(row).len(), examples.numbers(row)[0]),
                    (2, row as f32)
                );
            }
        }
    }
}
