//! Many queries with many candidates against one pair at a time.

use super::*;

const ALL: [Comparison; 3] = [Comparison::InnerProduct, Comparison::Euclidean, Comparison::Moduli];

/// Values as of a store, `stride` apart, of which the first `dim` count.
fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 53 + seed * 29) % 101) as f32 / 50.0 - 1.0).collect()
}

#[test]
fn scores_of_many_are_those_of_pairs_in_order_bit_for_bit_and_near_those_in_lanes() {
    for comparison in ALL {
        for (dim, queries, count) in [(2, 1, 1), (6, 5, 17), (34, 9, 40)] {
            let (stride, left) = (2 * dim, numbers(queries * dim, 1));
            let data = numbers(count * stride, 2);
            let candidates = Rows { data: &data, stride, count };
            let mut scores = vec![f32::NAN; queries * count];
            Comparer::new(comparison, dim).score(&left, candidates, &mut scores);
            for (row, query) in scores.chunks(count).zip(left.chunks(dim)) {
                for (score, candidate) in row.iter().zip(data.chunks(stride)) {
                    let candidate = &candidate[..dim];
                    let expected = comparison.ordered_score(query, candidate);
                    assert_eq!(score.to_bits(), expected.to_bits(), "{comparison:?} {dim}");
                    assert!((score - comparison.score(query, candidate)).abs() < 1e-4);
                }
            }
        }
    }
}

#[test]
fn gradients_of_many_are_the_sums_of_those_of_pairs() {
    for comparison in ALL {
        // More candidates than one block of them.
        for (dim, queries, count) in [(2, 1, 1), (6, 5, 17), (130, 7, 40)] {
            let (stride, left) = (2 * dim, numbers(queries * dim, 3));
            let data = numbers(count * stride, 4);
            let candidates = Rows { data: &data, stride, count };
            let weights = numbers(queries * count, 5);
            let (mut scores, mut score_gradients) = (weights.clone(), weights.clone());
            let mut comparer = Comparer::new(comparison, dim);
            comparer.score(&left, candidates, &mut scores);
            let mut of_queries = vec![f32::NAN; left.len()];
            let mut of_candidates = vec![f32::NAN; count * dim];
            let gradients = (&mut of_queries[..], &mut of_candidates[..]);
            comparer.backward(&left, candidates, &mut score_gradients, gradients);

            let mut expected_of_queries = vec![0.0; left.len()];
            let mut expected_of_candidates = vec![0.0; count * dim];
            for (row, query) in left.chunks(dim).enumerate() {
                for (column, candidate) in data.chunks(stride).enumerate() {
                    let of_query = &mut expected_of_queries[row * dim..][..dim];
                    let of_candidate = &mut expected_of_candidates[column * dim..][..dim];
                    let weight = weights[row * count + column];
                    let pair = (query, &candidate[..dim]);
                    comparison.add_gradients(weight, pair, (of_query, of_candidate));
                }
            }
            let is_near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
            assert!(is_near(&of_queries, &expected_of_queries), "{comparison:?} {dim}");
            assert!(is_near(&of_candidates, &expected_of_candidates), "{comparison:?} {dim}");
        }
    }
}

#[test]
fn equal_vectors_are_at_distance_0_and_pull_nowhere_and_nan_shows() {
    let (same, nan) = (numbers(6, 1), [f32::NAN; 6]);
    for comparison in [Comparison::Euclidean, Comparison::Moduli] {
        let gradients = |query: &[f32], candidate: &[f32]| {
            let mut of = ([0.0; 6], [0.0; 6]);
            comparison.add_gradients(2.0, (query, candidate), (&mut of.0, &mut of.1));
            of
        };
        assert_eq!(comparison.score(&same, &same), 0.0);
        assert_eq!(comparison.ordered_score(&same, &same), 0.0);
        assert_eq!(gradients(&same, &same), ([0.0; 6], [0.0; 6]));
        let (of_query, of_candidate) = gradients(&same, &nan);
        assert!(comparison.score(&same, &nan).is_nan());
        assert!(of_query.iter().chain(&of_candidate).all(|x| x.is_nan()), "{comparison:?}");
    }
}
