//! The share of a state in each column of a picture.

use adapm_runtime::trace::Span;

/// Returns the share of each of `columns` equal parts of `window` that `spans` cover; they are in
/// order and do not overlap.
pub(super) fn shares(spans: &[Span], window: Span, columns: usize) -> Vec<f64> {
    let mut shares = vec![0.0; columns];
    let (start, length) = (window.start.nanos() as f64, window.nanos() as f64);
    // In columns from the left edge of the window.
    let place =
        |nanos: u64| ((nanos as f64 - start) / length * columns as f64).clamp(0.0, columns as f64);
    for span in spans {
        let (left, right) = (place(span.start.nanos()), place(span.end.nanos()));
        let touched = left as usize..columns.min(right.ceil() as usize);
        // A span that begins at the right edge touches nothing.
        for (column, share) in touched.clone().zip(shares.get_mut(touched).into_iter().flatten()) {
            let (from, to) = (column as f64, column as f64 + 1.0);
            *share += (right.min(to) - left.max(from)).max(0.0);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use adapm_core::Instant;

    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start: Instant::from_nanos(start), end: Instant::from_nanos(end) }
    }

    #[test]
    fn columns_are_covered_as_long_as_the_spans_last() {
        let spans = [span(0, 5), span(12, 13), span(28, 45), span(90, 200)];
        let expected = [0.5, 0.1, 0.2, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0];
        for (share, expected) in shares(&spans, span(0, 100), 10).iter().zip(expected) {
            assert!((share - expected).abs() < 1e-9, "{share} is not {expected}");
        }
        let zoomed = shares(&spans, span(10, 20), 2);
        assert!((zoomed[0] - 0.2).abs() < 1e-9 && zoomed[1] == 0.0, "{zoomed:?}");
        assert!(shares(&[], span(0, 100), 3).iter().all(|share| *share == 0.0));
    }
}
