//! The best of many scored candidates.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A candidate and its score, the better the greater: a higher score, and of equal ones the smaller
/// index. NaN is below every number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) score: f64,
    pub(crate) index: u32,
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.partial_cmp(&other.score).unwrap_or_else(|| {
            // A number before NaN, and one NaN as good as another.
            other.score.is_nan().cmp(&self.score.is_nan())
        });
        by_score.then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scored {}

/// The best `count` of the candidates so far, whatever their order.
#[derive(Clone, Debug)]
pub(crate) struct Top {
    count: usize,
    best: BinaryHeap<Reverse<Scored>>,
}

impl Top {
    /// Returns one without candidates.
    pub(crate) fn new(count: usize) -> Self {
        Self { count, best: BinaryHeap::new() }
    }

    /// Takes a candidate into account. Most of many candidates cost a comparison.
    pub(crate) fn offer(&mut self, score: f64, index: u32) {
        let offered = Scored { score, index };
        if self.best.len() < self.count {
            self.best.push(Reverse(offered));
        } else if let Some(mut worst) = self.best.peek_mut()
            && offered > worst.0
        {
            *worst = Reverse(offered);
        }
    }

    /// Returns the best, the best one first.
    pub(crate) fn into_vec(self) -> Vec<Scored> {
        self.best.into_sorted_vec().into_iter().map(|Reverse(scored)| scored).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top(count: usize, scores: &[f64]) -> Vec<u32> {
        let mut top = Top::new(count);
        for (index, score) in (0..).zip(scores) {
            top.offer(*score, index);
        }
        top.into_vec().iter().map(|scored| scored.index).collect()
    }

    #[test]
    fn the_best_come_first_and_of_equal_ones_the_first() {
        let scores = [1.0, 3.0, f64::NAN, 2.0, 3.0, -0.0, 0.0, f64::NEG_INFINITY];
        assert_eq!(top(3, &scores), [1, 4, 3]);
        assert_eq!(top(99, &scores), [1, 4, 3, 0, 5, 6, 7, 2]);
        assert_eq!(top(0, &scores), [0; 0]);
        assert_eq!(top(2, &[f64::NAN; 3]), [0, 1]);
    }

    #[test]
    fn the_order_in_which_candidates_come_does_not_count() {
        let scores: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 50)).collect();
        let expected = top(7, &scores);
        let mut backwards = Top::new(7);
        (0..100).rev().for_each(|index| backwards.offer(scores[index as usize], index));
        let found: Vec<u32> = backwards.into_vec().iter().map(|scored| scored.index).collect();
        assert_eq!(found, expected);
    }
}
