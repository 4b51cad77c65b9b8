//! Figures of merit that tasks report.
//!
//! Ranking: the rank of an answer among its competitors, with ties counted half, and the means over
//! all queries. Two classes: the area under the ROC curve. Not here: how competitors and examples
//! are scored, which is a task's.

use serde::{Deserialize, Serialize};

/// The rank of an answer among its competitors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Competitors that score higher than the answer.
    pub better: u32,
    /// Competitors that score the same as the answer, the answer not counted.
    pub tied: u32,
}

impl Rank {
    /// Returns the rank that counts: `1 + G + floor(T / 2)` with `T` the number tied, the answer
    /// included.
    #[must_use]
    pub fn mean(self) -> u32 {
        self.better.saturating_add(self.tied.div_ceil(2)).saturating_add(1)
    }

    /// Returns the rank if the answer won every tie.
    #[must_use]
    pub fn optimistic(self) -> u32 {
        self.better.saturating_add(1)
    }

    /// Returns the rank if the answer lost every tie.
    #[must_use]
    pub fn pessimistic(self) -> u32 {
        self.better.saturating_add(self.tied).saturating_add(1)
    }
}

/// Means over the ranks of all queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankMetrics {
    /// Number of queries (two per triple: object side and subject side).
    pub queries: u64,
    /// Mean reciprocal rank.
    pub mrr: f64,
    /// Mean reciprocal rank if answers won every tie.
    pub mrr_optimistic: f64,
    /// Mean reciprocal rank if answers lost every tie.
    pub mrr_pessimistic: f64,
    /// Share of queries with rank 1.
    pub hits_at_1: f64,
    /// Share of queries with rank up to 3.
    pub hits_at_3: f64,
    /// Share of queries with rank up to 10.
    pub hits_at_10: f64,
}

impl RankMetrics {
    /// Computes the means; all are 0 if there is no rank. The sum runs in the order of `ranks`.
    #[must_use]
    pub fn of(ranks: &[Rank]) -> Self {
        let queries = ranks.len() as u64;
        let over = 1.0 / (queries.max(1) as f64);
        let mean = |of: &dyn Fn(&Rank) -> f64| ranks.iter().map(of).sum::<f64>() * over;
        let hits = |limit: u32| mean(&|rank| f64::from(u8::from(rank.mean() <= limit)));
        Self {
            queries,
            mrr: mean(&|rank| 1.0 / f64::from(rank.mean())),
            mrr_optimistic: mean(&|rank| 1.0 / f64::from(rank.optimistic())),
            mrr_pessimistic: mean(&|rank| 1.0 / f64::from(rank.pessimistic())),
            hits_at_1: hits(1),
            hits_at_3: hits(3),
            hits_at_10: hits(10),
        }
    }

    /// Returns true if ties decide anything: the optimistic and the pessimistic end differ.
    #[must_use]
    pub fn has_ties(&self) -> bool {
        self.mrr_optimistic != self.mrr_pessimistic
    }
}

/// The area under the ROC curve: the share of pairs of a positive and a negative item whose scores
/// are in the right order, ties counted half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Auc {
    /// Number of items.
    pub items: u64,
    /// The area, in 0..=1; NaN if all items are positive, or none is.
    pub auc: f64,
}

impl Auc {
    /// Computes the area of items with these scores, of which some are positive. Sorts them once.
    #[must_use]
    pub fn of(scores: &[f32], are_positive: impl IntoIterator<Item = bool>) -> Self {
        let mut items: Vec<(f32, bool)> = scores.iter().copied().zip(are_positive).collect();
        items.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (mut negatives, mut positives, mut right) = (0.0, 0.0, 0.0);
        for tied in items.chunk_by(|(a, _), (b, _)| a == b) {
            let positive = tied.iter().filter(|(_, is_positive)| *is_positive).count() as f64;
            let negative = tied.len() as f64 - positive;
            right += positive * (negatives + 0.5 * negative);
            negatives += negative;
            positives += positive;
        }
        Self { items: items.len() as u64, auc: right / (positives * negatives) }
    }
}

/// How well clicks are predicted, by logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClickMetrics {
    /// Number of examples.
    pub items: u64,
    /// The area under the ROC curve ([`Auc`]), in 0..=1; NaN if all examples are clicks, or none.
    pub auc: f64,
    /// Mean of `-ln p` of clicks and `-ln(1 - p)` of others, with `p` in `1e-7..=1 - 1e-7`.
    pub log_loss: f64,
    /// Sum of probabilities per click: 1 is right on average; NaN without a click.
    pub calibration: f64,
}

impl ClickMetrics {
    /// Computes the figures of examples with these logits, of which some are clicks. Sorts them
    /// once; `labels` are as many as `logits`.
    #[must_use]
    pub fn of(logits: &[f32], labels: &[bool]) -> Self {
        let auc = Auc::of(logits, labels.iter().copied()).auc;
        let (mut log_loss, mut sum, mut clicks) = (0.0, 0.0, 0_u64);
        for (logit, is_click) in logits.iter().zip(labels) {
            let probability = 1.0 / (1.0 + (-f64::from(*logit)).exp());
            let clipped = probability.clamp(CLIPPED, 1.0 - CLIPPED);
            log_loss -= if *is_click { clipped.ln() } else { (1.0 - clipped).ln() };
            sum += probability;
            clicks += u64::from(*is_click);
        }
        let items = logits.len() as u64;
        Self { items, auc, log_loss: log_loss / items as f64, calibration: sum / clicks as f64 }
    }
}

/// Distance of probabilities from 0 and 1 in the logarithmic loss, at least.
const CLIPPED: f64 = 1e-7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_in_the_right_order_are_counted_and_ties_half() {
        let of = |scores: &[f32], labels: &str| Auc::of(scores, labels.chars().map(|c| c == '+'));
        assert_eq!(of(&[0.1, 0.4, 0.35, 0.8], "--++"), Auc { items: 4, auc: 0.75 });
        assert_eq!(of(&[1.0, 2.0, 3.0], "-++").auc, 1.0);
        assert_eq!(of(&[1.0, 1.0, 1.0, 0.0], "+-+-").auc, 0.75);
        assert_eq!(of(&[2.0, 1.0], "-+").auc, 0.0);
        assert!(of(&[1.0], "+").auc.is_nan() && of(&[], "").auc.is_nan());
    }

    #[test]
    fn clicks_are_judged_by_order_by_probability_and_by_their_sum() {
        let logits = [0.0, 3f32.ln(), -3f32.ln(), 99.0];
        let metrics = ClickMetrics::of(&logits, &[false, true, false, true]);
        assert_eq!((metrics.items, metrics.auc), (4, 1.0));
        // Probabilities 1/2, 3/4, 1/4 and 1, which is clipped.
        let expected = -(0.5f64.ln() + 2.0 * 0.75f64.ln() + (1.0 - 1e-7f64).ln()) / 4.0;
        assert!((metrics.log_loss - expected).abs() < 1e-8, "{}", metrics.log_loss);
        assert!((metrics.calibration - 1.25).abs() < 1e-7, "{}", metrics.calibration);
        assert!(ClickMetrics::of(&[f32::NAN], &[true]).log_loss.is_nan());
        let wrong = ClickMetrics::of(&[200.0], &[false]);
        assert!((wrong.log_loss - -(1e-7f64.ln())).abs() < 1e-6, "{}", wrong.log_loss);
    }

    #[test]
    fn ties_count_half_with_the_answer_included() {
        let rank = |better, tied| Rank { better, tied };
        // T includes the answer: with no other tied, T = 1 and floor(1 / 2) = 0.
        assert_eq!(rank(0, 0).mean(), 1);
        assert_eq!(rank(0, 1).mean(), 2);
        assert_eq!(rank(0, 2).mean(), 2);
        assert_eq!(rank(3, 3).mean(), 6);
        assert_eq!((rank(3, 3).optimistic(), rank(3, 3).pessimistic()), (4, 7));
    }

    #[test]
    fn ranks_that_nobody_has_are_still_numbers() {
        // Other processes may say anything.
        let rank = Rank { better: u32::MAX, tied: u32::MAX };
        assert_eq!([rank.mean(), rank.optimistic(), rank.pessimistic()], [u32::MAX; 3]);
        assert!(RankMetrics::of(&[rank]).mrr > 0.0);
    }

    #[test]
    fn means_are_over_all_queries() {
        let metrics = RankMetrics::of(&[Rank { better: 0, tied: 0 }, Rank { better: 3, tied: 0 }]);
        assert_eq!((metrics.queries, metrics.mrr), (2, 0.625));
        assert_eq!((metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10), (0.5, 0.5, 1.0));
        assert!(!metrics.has_ties());
        assert_eq!(RankMetrics::of(&[]).mrr, 0.0);
    }
}
