//! Examples of clicks: a label, features of fields, and numbers.
//!
//! ```text
//!   train file [ 0 ............. | valid | test ]   the last seventh is test, of the rest the last
//!                                                   tenth valid, if they have no files of their own
//! ```

use std::fmt;
use std::ops::Range;

use rand::seq::SliceRandom as _;

use crate::ctr::encoder::Encoder;
use crate::ctr::examples::{Examples, Findings};
use crate::ctr::synthetic::{self, Generated, Optimum, SyntheticConfig};
use crate::run::topology::WorkerSlot;
use crate::run::{Split, TaskError, generator};

/// Examples to train, to select and to report on.
#[derive(Clone)]
pub struct Clicks {
    pub(crate) examples: Examples,
    pub(crate) train: Range<usize>,
    pub(crate) valid: Range<usize>,
    pub(crate) test: Range<usize>,
    pub(crate) encoder: Encoder,
    pub(crate) origin: Origin,
    pub(crate) digest: u64,
    pub(crate) findings: Findings,
}

/// The origin of examples.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// Files, in words.
    Files(String),
    /// The generator; with the best that is possible on test.
    Generated(SyntheticConfig, Optimum),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(text) => f.write_str(text),
            Self::Generated(config, _) => {
                write!(f, "generated clicks of {} features", config.features)
            }
        }
    }
}

impl Clicks {
    /// Generates clicks.
    ///
    /// # Errors
    ///
    /// Sizes that there cannot be, and a temporary file that cannot be read.
    pub fn synthetic(config: SyntheticConfig) -> Result<Self, TaskError> {
        let Generated { examples, ends: [train, valid, test], encoder, optimum, digest } =
            synthetic::generate(config)?;
        Ok(Self {
            examples,
            train: 0..train,
            valid: train..valid,
            test: valid..test,
            encoder,
            origin: Origin::Generated(config, optimum),
            digest,
            findings: Findings::default(),
        })
    }

    /// Returns the examples of a part.
    pub(crate) fn part(&self, split: Split) -> Range<usize> {
        match split {
            Split::Valid => self.valid.clone(),
            Split::Test => self.test.clone(),
        }
    }

    /// Returns the number of examples to train on.
    #[must_use]
    pub fn train_len(&self) -> usize {
        self.train.len()
    }

    /// Returns the number of examples of a part.
    #[must_use]
    pub fn len_of(&self, split: Split) -> usize {
        self.part(split).len()
    }

    /// Returns the number of keys that features have, and the number of fields.
    #[must_use]
    pub fn features(&self) -> (u64, usize) {
        (self.encoder.keys(), self.encoder.fields.len())
    }

    /// Returns true if they are generated, which has to be stated wherever a figure of them is
    /// printed.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        matches!(self.origin, Origin::Generated(..))
    }

    /// Returns the best that is possible on test, where it is known: on generated examples.
    #[cfg(any(test, feature = "cli"))]
    pub(crate) fn optimum(&self) -> Option<Optimum> {
        match self.origin {
            Origin::Generated(_, optimum) => Some(optimum),
            Origin::Files(_) => None,
        }
    }

    /// Returns the examples that a worker trains on in an epoch, in order.
    ///
    /// Those in memory are dealt one by one. Those in a file are dealt in blocks, which are read
    /// front to back, and mixed within a window of several blocks from anywhere.
    pub(crate) fn dealt(&self, slot: WorkerSlot, seed: u64, epoch: u32) -> Vec<u32> {
        let block = if self.examples.are_spilled() { BLOCK } else { 1 };
        self.dealt_in_blocks(block, slot, seed, epoch)
    }

    fn dealt_in_blocks(&self, block: usize, slot: WorkerSlot, seed: u64, epoch: u32) -> Vec<u32> {
        let blocks = slot.deal(self.train.len().div_ceil(block), seed, epoch);
        let rows = |at: &usize| {
            let from = self.train.start + at * block;
            from as u32..(from + block).min(self.train.end) as u32
        };
        let mut dealt = Vec::new();
        for (window, blocks) in (0..).zip(blocks.chunks(WINDOW)) {
            let from = dealt.len();
            dealt.extend(blocks.iter().flat_map(rows));
            if block > 1 {
                let parts = [MIXED, u64::from(epoch), slot.number as u64, window];
                dealt[from..].shuffle(&mut generator(seed, parts));
            }
        }
        dealt
    }
}

impl fmt::Debug for Clicks {
    /// Sizes instead of all examples.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [train, valid, test] = [&self.train, &self.valid, &self.test].map(Range::len);
        write!(f, "Clicks of {train} / {valid} / {test}, {:?}", self.origin)
    }
}

/// Examples of a block of a file.
const BLOCK: usize = 4096;
/// Blocks whose examples are mixed.
const WINDOW: usize = 16;
/// The purpose of the generator that mixes blocks.
const MIXED: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctr::examples::tests::examples;

    fn clicks(count: usize) -> Clicks {
        let examples = examples(count);
        let (train, valid, test) = (0..count, 0..0, 0..0);
        let (encoder, origin) = (Encoder::default(), Origin::Files(String::new()));
        let (digest, findings) = (0, Findings::default());
        Clicks { examples, train, valid, test, encoder, origin, digest, findings }
    }

    #[test]
    fn every_example_is_dealt_once_an_epoch_in_blocks_too() {
        let clicks = clicks(1_003);
        for block in [1, 7, 64, 2_000] {
            let dealt = |epoch| {
                let dealt = |slot| clicks.dealt_in_blocks(block, slot, 5, epoch);
                WorkerSlot::all_of(&[2, 1], false).map(dealt).collect::<Vec<_>>()
            };
            let mut all = dealt(1).concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..1_003), "{block}");
            assert_ne!(dealt(1), dealt(2), "{block}");
            assert_eq!(dealt(2), dealt(2), "{block}");
        }
    }
}
