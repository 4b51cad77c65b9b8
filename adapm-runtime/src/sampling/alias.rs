//! Random numbers with a reproducible sequence, and draws by given weights in constant time: the
//! alias method of Walker (1977), built as Vose (1991) does.
//!
//! # Departure
//! A small table of its own instead of `rand_distr`'s `WeightedAliasIndex`: that adds floats while
//! it pairs columns, so that rounding can leave a column of weight zero without an alias, which is
//! then drawn; and its sequence changes with its version. Here shares are integers whose sum is
//! exact, the table is the same on every machine, and a key takes 8 bytes instead of 12.

use std::fmt;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A source of random numbers with a reproducible sequence, used for samples and free for other
/// uses.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Creates the sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number below `end`, or 0 if `end` is 0. Exact: draws again rather than
    /// favour some numbers.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        loop {
            let product = u128::from(self.bits()) * u128::from(end);
            // `2^64 mod end` of the 2^64 draws would favour some numbers: those with the lowest low
            // halves. They are below `end`, as few draws are, so the division is rare.
            let low = product as u64;
            if low >= end || low >= end.wrapping_neg() % end {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a uniform number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A weight: `u32` and `u64` are counts, `f32` and `f64` proportions.
pub trait Weight: sealed::Amount {}

impl<W: sealed::Amount> Weight for W {}

mod sealed {
    /// The amount of a weight.
    pub trait Amount: Copy + std::fmt::Display {
        /// Returns the scale for [`Amount::units`] if this were the largest weight; `None` if it is
        /// no valid weight.
        fn as_scale(self) -> Option<f64>;
        /// Returns this weight in integer units, whose number per weight is fixed by the largest
        /// scale.
        fn units(self, largest: f64) -> u64;
    }

    impl Amount for u64 {
        fn as_scale(self) -> Option<f64> {
            Some(if self == 0 { 0.0 } else { 1.0 })
        }

        fn units(self, _: f64) -> u64 {
            self
        }
    }

    impl Amount for u32 {
        fn as_scale(self) -> Option<f64> {
            u64::from(self).as_scale()
        }

        fn units(self, _: f64) -> u64 {
            u64::from(self)
        }
    }

    impl Amount for f64 {
        fn as_scale(self) -> Option<f64> {
            (self.is_finite() && self >= 0.0).then_some(self)
        }

        fn units(self, largest: f64) -> u64 {
            // At most 2^63, so that it is exact up to the weight's own precision.
            (self / largest * (1_u64 << 63) as f64) as u64
        }
    }

    impl Amount for f32 {
        fn as_scale(self) -> Option<f64> {
            f64::from(self).as_scale()
        }

        fn units(self, largest: f64) -> u64 {
            f64::from(self).units(largest)
        }
    }
}

/// A table that draws indices by their weights.
///
/// ```
/// use adapm_runtime::{AliasTable, Random};
///
/// let table = AliasTable::new(&[6_u64, 0, 2])?;
/// let mut random = Random::new(1);
/// let draws: Vec<usize> = (0..8_000).map(|_| table.draw(&mut random)).collect();
/// let of = |index| draws.iter().filter(|drawn| **drawn == index).count();
/// assert_eq!(of(1), 0);
/// assert!((5_700..6_300).contains(&of(0)));
/// # Ok::<(), adapm_runtime::WeightError>(())
/// ```
#[derive(Clone)]
pub struct AliasTable {
    columns: Vec<Column>,
    drawable: usize,
}

/// A column: of its 2^32 draws, `own` yield its own index, the rest the alias. A full column is its
/// own alias.
#[derive(Clone, Copy)]
struct Column {
    own: u32,
    alias: u32,
}

impl AliasTable {
    /// Builds the table of `weights`: index `i` is drawn with probability `weights[i]` by the sum
    /// of all, exact up to 2^-32 of an equal share; a weight of 0 is never drawn. Takes 8 bytes per
    /// weight, 16 while it is built.
    ///
    /// # Errors
    /// No weight above 0, a negative or infinite one, a NaN, or more than 2^32 - 1.
    pub fn new<W: Weight>(weights: &[W]) -> Result<Self, WeightError> {
        if u32::try_from(weights.len()).is_err() {
            return Err(WeightError::Many { weights: weights.len() });
        }
        let mut largest: f64 = 0.0;
        for (index, weight) in weights.iter().enumerate() {
            let scale = weight.as_scale();
            largest = largest
                .max(scale.ok_or_else(|| WeightError::Bad { index, weight: weight.to_string() })?);
        }
        if largest == 0.0 {
            return Err(WeightError::Zero);
        }
        let (shares, drawable) = shares(weights, largest);
        Ok(Self { columns: columns(shares), drawable })
    }

    /// Draws an index.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> usize {
        let index = random.below(self.columns.len() as u64) as usize;
        let column = self.columns[index];
        // Uses other bits than those that chose the column.
        if random.bits() as u32 >= column.own { column.alias as usize } else { index }
    }

    /// Returns the number of weights.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns true if there are no weights: never, as at least one is above 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the number of indices that can be drawn.
    #[must_use]
    pub fn drawable(&self) -> usize {
        self.drawable
    }

    /// Returns true if `index` can be drawn.
    #[must_use]
    pub fn can_draw(&self, index: usize) -> bool {
        self.columns
            .get(index)
            .is_some_and(|column| column.own > 0 || column.alias as usize == index)
    }

    /// Returns a digest of the table; tables of different weights share it only by chance.
    pub(crate) fn digest(&self) -> u64 {
        self.columns.iter().fold(self.columns.len() as u64, |digest, column| {
            let column = u64::from(column.own) << 32 | u64::from(column.alias);
            (digest.rotate_left(5) ^ column).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

impl fmt::Debug for AliasTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "weights({:016x} of {})", self.digest(), self.len())
    }
}

/// Splits `len * FULL` by weight, and counts the indices that have a share.
fn shares<W: Weight>(weights: &[W], largest: f64) -> (Vec<u64>, usize) {
    let sum: u128 = weights.iter().map(|weight| u128::from(weight.units(largest))).sum();
    let all = weights.len() as u128 * u128::from(FULL);
    let share = |weight: &W| (u128::from(weight.units(largest)) * all / sum) as u64;
    let mut shares: Vec<u64> = weights.iter().map(share).collect();
    // Each share above 0 was rounded down by less than 1, so there are enough of them to take the
    // remainder.
    let mut left = all - shares.iter().map(|share| u128::from(*share)).sum::<u128>();
    for (share, weight) in shares.iter_mut().zip(weights) {
        if left > 0 && weight.units(largest) > 0 {
            *share += 1;
            left -= 1;
        }
    }
    debug_assert_eq!(left, 0, "the shares add up");
    let drawable = shares.iter().filter(|share| **share > 0).count();
    (shares, drawable)
}

/// Fills up columns that have less than a full share from those that have more.
fn columns(mut shares: Vec<u64>) -> Vec<Column> {
    let full = |index| Column { own: 0, alias: index };
    let mut columns: Vec<Column> = (0..shares.len() as u32).map(full).collect();
    let mut donor = 0;
    for start in 0..shares.len() {
        let mut poor = start;
        while shares[poor] < FULL {
            // There is one, as the mean is full; a donor that was passed by never gets richer.
            while shares[donor] <= FULL {
                donor += 1;
            }
            columns[poor] = Column { own: shares[poor] as u32, alias: donor as u32 };
            shares[donor] -= FULL - shares[poor];
            shares[poor] = FULL;
            // The sweep reaches all others later.
            if donor < start {
                poor = donor;
            }
        }
    }
    columns
}

/// Invalid weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// The number of weights differs from that of the keys.
    #[error("{weights} weights for {keys} keys: give one weight for each key")]
    Count {
        /// Weights given.
        weights: usize,
        /// Keys in the range.
        keys: u64,
    },
    /// There are more weights than a table has room for.
    #[error("{weights} weights: use at most {}", u32::MAX)]
    Many {
        /// Weights given.
        weights: usize,
    },
    /// A weight is negative, infinite or not a number.
    #[error("weight {weight} at place {index}: weights must be finite and not negative")]
    Bad {
        /// The index of the weight.
        index: usize,
        /// The weight as printed.
        weight: String,
    },
    /// There is no weight above 0.
    #[error("no weight is above 0: nothing could be drawn")]
    Zero,
}

/// Draws of a full column.
const FULL: u64 = 1 << 32;

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the share of each index over all columns.
    fn drawn_shares(table: &AliasTable) -> Vec<u64> {
        let mut shares = vec![0; table.len()];
        for (index, column) in table.columns.iter().enumerate() {
            shares[index] += u64::from(column.own);
            shares[column.alias as usize] += FULL - u64::from(column.own);
        }
        shares
    }

    proptest! {
        #[test]
        fn columns_hold_exactly_the_shares_of_counts(
            weights in prop::collection::vec(prop_oneof![Just(0), 1..9_u64, 0..1_000_000_u64, Just(1 << 40), any::<u64>()], 1..60),
        ) {
            let Ok(table) = AliasTable::new(&weights) else {
                prop_assert!(weights.iter().all(|weight| *weight == 0));
                return Ok(());
            };
            let sum: f64 = weights.iter().map(|weight| *weight as f64).sum();
            for (index, share) in drawn_shares(&table).into_iter().enumerate() {
                let expected = weights[index] as f64 / sum * (table.len() as f64 * FULL as f64);
                prop_assert!((share as f64 - expected).abs() <= 1.0 + expected * 1e-12, "{index}: {share} for {expected}");
                prop_assert!(weights[index] > 0 || share == 0, "weight 0 at {index} is drawn");
                prop_assert_eq!(table.can_draw(index), share > 0);
            }
        }

        #[test]
        fn floats_weigh_as_counts_do(weights in prop::collection::vec(0..1_000_u32, 1..60)) {
            let floats: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) * 1e-300).collect();
            let tables = (AliasTable::new(&weights), AliasTable::new(&floats));
            let (Ok(counts), Ok(floats)) = tables else {
                prop_assert_eq!((tables.0.err(), tables.1.err()), (Some(WeightError::Zero), Some(WeightError::Zero)));
                return Ok(());
            };
            for (count, float) in drawn_shares(&counts).into_iter().zip(drawn_shares(&floats)) {
                prop_assert!(count.abs_diff(float) <= 1 + (count >> 40), "{} beside {}", count, float);
            }
        }
    }

    #[test]
    fn rounding_leaves_no_column_to_a_weight_of_zero() {
        // Thirds and tenths are no binary fractions: sums of floats miss the whole.
        let weights: Vec<f64> =
            (0..3_000).map(|i| if i % 3 == 0 { 0.0 } else { 0.1 / f64::from(1 + i % 7) }).collect();
        let table = AliasTable::new(&weights).expect("weights");
        assert_eq!(table.drawable(), 2_000);
        let shares = drawn_shares(&table);
        assert!(shares.iter().step_by(3).all(|share| *share == 0));
        assert_eq!(
            shares.iter().map(|share| u128::from(*share)).sum::<u128>(),
            3_000 * u128::from(FULL)
        );
    }

    #[test]
    fn what_cannot_be_a_weight_is_told_with_its_place() {
        for (weights, index, weight) in [
            (vec![1.0, f64::NAN], 1, "NaN"),
            (vec![-0.5, 1.0], 0, "-0.5"),
            (vec![1.0, 2.0, f64::INFINITY], 2, "inf"),
        ] {
            let bad = WeightError::Bad { index, weight: weight.to_owned() };
            assert_eq!(AliasTable::new(&weights).map(drop), Err(bad));
        }
        assert_eq!(AliasTable::new::<f64>(&[]).map(drop), Err(WeightError::Zero));
        assert_eq!(AliasTable::new(&[0_u32, 0]).map(drop), Err(WeightError::Zero));
        assert_eq!(AliasTable::new(&[-0.0_f32, 0.0]).map(drop), Err(WeightError::Zero));
        assert!(AliasTable::new(&[f64::MAX, f64::MAX]).is_ok(), "a sum beyond the largest float");
        assert!(AliasTable::new(&[u64::MAX; 3]).is_ok(), "a sum beyond the largest count");
    }
}
