//! The loss of one answer among its negatives, and its gradient in every score.

use crate::kge::config::LossKind;
use crate::matrix::exponentiate;

/// Returns the loss of one query. Overwrites `negatives`, its scores, by their score gradients and
/// returns the loss and the slope of the answer. A score of minus infinity takes no part.
///
/// Softmax is the cross entropy of the answer among answer and negatives; logistic the sum of the
/// binary cross entropies of all of them (AdaPM §5.1).
pub(crate) fn loss(kind: LossKind, answer: f32, negatives: &mut [f32]) -> (f64, f32) {
    match kind {
        LossKind::Softmax => softmax(answer, negatives),
        LossKind::Logistic => logistic(answer, negatives),
    }
}

fn softmax(answer: f32, negatives: &mut [f32]) -> (f64, f32) {
    // `f32::max` drops NaN, but exponentials keep it: it reaches the sum, hence the loss.
    let max = negatives.iter().fold(answer, |max, score| if *score > max { *score } else { max });
    let others = exponentiate(negatives, max);
    let mine = (answer - max).exp();
    let sum = mine + others;
    let scale = 1.0 / sum;
    negatives.iter_mut().for_each(|slope| *slope *= scale);
    let loss = f64::from(sum).ln() - f64::from(answer - max);
    (loss, -others * scale)
}

fn logistic(answer: f32, negatives: &mut [f32]) -> (f64, f32) {
    let mut sum = softplus(-answer);
    for score in negatives.iter_mut() {
        sum += softplus(*score);
        *score = sigmoid(*score);
    }
    (sum, -sigmoid(-answer))
}

/// `ln(1 + e^x)` without overflow.
fn softplus(x: f32) -> f64 {
    let x = f64::from(x);
    x.max(0.0) + (-x.abs()).exp().ln_1p() + if x.is_nan() { x } else { 0.0 }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_gradients_equal_finite_differences() {
        for kind in [LossKind::Softmax, LossKind::Logistic] {
            let scores = [0.5f32, -1.0, 2.0, 0.25];
            let at = |scores: [f32; 4]| {
                let mut negatives = [scores[1], scores[2], scores[3]];
                let (loss, slope) = loss(kind, scores[0], &mut negatives);
                (loss, [slope, negatives[0], negatives[1], negatives[2]])
            };
            let (_, score_gradients) = at(scores);
            for i in 0..4 {
                let moved = |step: f32| {
                    let mut moved = scores;
                    moved[i] += step;
                    at(moved).0
                };
                let expected = (moved(0.01) - moved(-0.01)) / 0.02;
                assert!(
                    (f64::from(score_gradients[i]) - expected).abs() < 1e-3,
                    "{kind} {i}: {} {expected}",
                    score_gradients[i]
                );
            }
        }
    }

    #[test]
    fn large_scores_stay_finite_and_nan_shows() {
        for kind in [LossKind::Softmax, LossKind::Logistic] {
            let (large, slope) = loss(kind, -500.0, &mut [500.0, -500.0]);
            assert!(large.is_finite() && large > 999.0 && (slope + 1.0).abs() < 1e-6);
            assert!(loss(kind, f32::NAN, &mut [0.0]).0.is_nan());
            assert!(loss(kind, 0.0, &mut [f32::NAN]).0.is_nan());
        }
    }

    #[test]
    fn a_masked_negative_takes_no_part() {
        for kind in [LossKind::Softmax, LossKind::Logistic] {
            let mut with = [1.0, f32::NEG_INFINITY];
            let (masked, _) = loss(kind, 0.0, &mut with);
            let (alone, _) = loss(kind, 0.0, &mut [1.0]);
            assert!((masked - alone).abs() < 1e-6 && with[1].abs() < 1e-30);
        }
    }
}
