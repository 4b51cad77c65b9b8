//! Products of small dense matrices in f32, on plain slices that the compiler vectorises; and sums
//! of other [`Term`]s than products, such as of differences.
//!
//! Every element of a product is one sum in the order of the inner index, of terms that are
//! computed apart, never fused and never split: the result has the same bits for every shape of the
//! matrices, machine and instruction set. Evaluation relies on that: a candidate's score must
//! not depend on the block it was pulled in.

use std::hint::black_box;
use std::marker::PhantomData;

use crate::simd::{self, Kernel};

/// Number of columns of a panel.
pub(crate) const PANEL: usize = 16;

/// The right-hand matrix of a product, `[inner x columns]`, stored as panels of [`PANEL`] columns,
/// the last one padded with zeros.
#[derive(Debug, Default)]
pub(crate) struct Panels {
    data: Vec<f32>,
    inner: usize,
    columns: usize,
}

impl Panels {
    /// Stores the rows of `source` (`stride` apart, `inner` long) as the columns of the matrix.
    pub(crate) fn fill_transposed(
        &mut self,
        source: &[f32],
        stride: usize,
        inner: usize,
        columns: usize,
    ) {
        self.reset(inner, columns);
        for (column, row) in source.chunks(stride).take(columns).enumerate() {
            let start = column / PANEL * PANEL * inner + column % PANEL;
            for (cell, value) in self.data[start..].iter_mut().step_by(PANEL).zip(&row[..inner]) {
                *cell = *value;
            }
        }
    }

    /// Stores the rows of `source` (`stride` apart, `columns` long) as the rows of the matrix.
    pub(crate) fn fill(&mut self, source: &[f32], stride: usize, inner: usize, columns: usize) {
        self.reset(inner, columns);
        for (k, row) in source.chunks(stride).take(inner).enumerate() {
            for (panel, part) in row[..columns].chunks(PANEL).enumerate() {
                let start = (panel * inner + k) * PANEL;
                self.data[start..start + part.len()].copy_from_slice(part);
            }
        }
    }

    fn reset(&mut self, inner: usize, columns: usize) {
        self.inner = inner;
        self.columns = columns;
        self.data.clear();
        self.data.resize(columns.div_ceil(PANEL) * PANEL * inner, 0.0);
    }
}

/// The left-hand matrix of a product, element `(row, k)` at `row * row_stride + k * inner_stride`.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) row_stride: usize,
    pub(crate) inner_stride: usize,
}

/// What is summed over the inner index.
pub(crate) trait Term {
    /// Parts of the vectors of which a term takes an element each: 1, or 2 if real parts stand
    /// before imaginary ones.
    const PARTS: usize;

    /// Returns the term of an element of left and one of right; the second ones are of the second
    /// parts, or the first again.
    fn of(left: [f32; 2], right: [f32; 2]) -> f32;
}

/// `a b`.
pub(crate) struct Product;

impl Term for Product {
    const PARTS: usize = 1;

    #[inline(always)]
    fn of([left, _]: [f32; 2], [right, _]: [f32; 2]) -> f32 {
        left * right
    }
}

/// `(a - b)^2`.
pub(crate) struct SquaredDifference;

impl Term for SquaredDifference {
    const PARTS: usize = 1;

    #[inline(always)]
    fn of([left, _]: [f32; 2], [right, _]: [f32; 2]) -> f32 {
        (left - right) * (left - right)
    }
}

/// `|a - b|` of complex numbers.
pub(crate) struct Modulus;

impl Term for Modulus {
    const PARTS: usize = 2;

    #[inline(always)]
    fn of([left_re, left_im]: [f32; 2], [right_re, right_im]: [f32; 2]) -> f32 {
        let (re, im) = (left_re - right_re, left_im - right_im);
        (re * re + im * im).sqrt()
    }
}

/// Overwrites `product` (`[left.rows x columns]`, row-major) with `left * right`. `scratch` is
/// overwritten; it is passed in to reuse its memory.
pub(crate) fn multiply(
    left: Left<'_>,
    right: &Panels,
    product: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    sums::<Product>(left, right, product, scratch);
}

/// Does what [`multiply`] does with terms that need not be products.
pub(crate) fn sums<T: Term>(
    left: Left<'_>,
    right: &Panels,
    sums: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    simd::run(Sums { left, right, sums, scratch, term: PhantomData::<T> });
}

/// The loop of [`sums`].
struct Sums<'a, T> {
    left: Left<'a>,
    right: &'a Panels,
    sums: &'a mut [f32],
    scratch: &'a mut Vec<f32>,
    term: PhantomData<T>,
}

impl<T: Term> Kernel for Sums<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { left, right, sums, scratch, .. } = self;
        if WIDE {
            sum_blocks::<T, 4>(left, right, sums, scratch);
        } else {
            sum_blocks::<T, 2>(left, right, sums, scratch);
        }
    }
}

/// Takes `ROWS` rows of `left` at a time.
#[inline(always)]
fn sum_blocks<T: Term, const ROWS: usize>(
    left: Left<'_>,
    right: &Panels,
    product: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    let (inner, columns) = (right.inner, right.columns);
    if inner == 0 || columns == 0 {
        product.fill(0.0);
        return;
    }
    let block_len = ROWS * inner;
    scratch.clear();
    scratch.resize(left.rows.div_ceil(ROWS) * block_len, 0.0);
    for (block, first) in scratch.chunks_exact_mut(block_len).zip((0..left.rows).step_by(ROWS)) {
        gather::<ROWS>(left, first, ROWS.min(left.rows - first), block);
    }
    // A panel stays in the L1 cache while the blocks of rows stream by.
    for (panel, right) in right.data.chunks_exact(PANEL * inner).enumerate() {
        let column = panel * PANEL;
        let width = PANEL.min(columns - column);
        for (block, first) in scratch.chunks_exact(block_len).zip((0..left.rows).step_by(ROWS)) {
            let sums = tile::<T, ROWS>(block, right);
            for (row, sums) in sums.iter().take(left.rows - first).enumerate() {
                let at = (first + row) * columns + column;
                product[at..at + width].copy_from_slice(&sums[..width]);
            }
        }
    }
}

/// Copies `rows` rows of `left` next to each other, inner index outermost; rows of the block beyond
/// `rows` are not written.
#[inline(always)]
fn gather<const ROWS: usize>(left: Left<'_>, first: usize, rows: usize, block: &mut [f32]) {
    let (blocks, _) = block.as_chunks_mut::<ROWS>();
    if left.row_stride == 1 {
        for (k, cells) in blocks.iter_mut().enumerate() {
            let at = first + k * left.inner_stride;
            cells[..rows].copy_from_slice(&left.data[at..at + rows]);
        }
    } else {
        for row in 0..rows {
            let values =
                left.data[(first + row) * left.row_stride..].iter().step_by(left.inner_stride);
            for (cells, value) in blocks.iter_mut().zip(values) {
                cells[row] = *value;
            }
        }
    }
}

/// Returns one tile of the sums: `ROWS` rows by one panel.
#[inline(always)]
fn tile<T: Term, const ROWS: usize>(left: &[f32], right: &[f32]) -> [[f32; PANEL]; ROWS] {
    let mut sums = [[0.0; PANEL]; ROWS];
    let (left, _) = left.as_chunks::<ROWS>();
    let (right, _) = right.as_chunks::<PANEL>();
    let terms = left.len() / T::PARTS;
    let second = (T::PARTS - 1) * terms;
    let (left, left_second) = (&left[..terms], &left[second..][..terms]);
    let (right, right_second) = (&right[..terms], &right[second..][..terms]);
    // Row by row without a loop: the compiler unrolls one of products, but none of longer terms,
    // and then sums in memory instead of registers.
    const { assert!(ROWS <= 4, "no more rows are summed below") };
    for k in 0..terms {
        let (left, left_second) = (&left[k], &left_second[k]);
        let right = (&right[k], &right_second[k]);
        if ROWS > 0 {
            add_terms::<T>(&mut sums[0], [left[0], left_second[0]], right);
        }
        if ROWS > 1 {
            add_terms::<T>(&mut sums[1], [left[1], left_second[1]], right);
        }
        if ROWS > 2 {
            add_terms::<T>(&mut sums[2], [left[2], left_second[2]], right);
        }
        if ROWS > 3 {
            add_terms::<T>(&mut sums[3], [left[3], left_second[3]], right);
        }
    }
    sums
}

/// Adds the terms of an element of left with a row of a panel.
#[inline(always)]
fn add_terms<T: Term>(
    sums: &mut [f32; PANEL],
    left: [f32; 2],
    (right, right_second): (&[f32; PANEL], &[f32; PANEL]),
) {
    // A copy in and out lets the compiler keep all sums in registers.
    let mut lanes = *sums;
    // Each loop is the one that the compiler vectorises for these terms. `zip` would do for both,
    // but is called, not inlined, as tests are built, and takes forty times as long there.
    if T::PARTS == 1 {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += T::of(left, [right[lane], right_second[lane]]);
        }
    } else {
        for lane in 0..PANEL {
            lanes[lane] += T::of(left, [right[lane], right_second[lane]]);
        }
    }
    *sums = lanes;
}

/// Adds `factor * row` to `sum`.
pub(crate) fn add_scaled(sum: &mut [f32], factor: f32, row: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += factor * value;
    }
}

/// Returns the inner product, summed in lanes that the compiler vectorises; the order of the
/// additions depends on the length alone.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum::<Product>(a, b)
}

/// Does what [`dot`] does with terms that need not be products.
#[inline(always)]
pub(crate) fn sum<T: Term>(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let terms = a.len() / T::PARTS;
    let second = (T::PARTS - 1) * terms;
    let [(a, a_rest), (a_second, a_second_rest)] =
        [&a[..terms], &a[second..]].map(|part| part.as_chunks::<LANES>());
    let [(b, b_rest), (b_second, b_second_rest)] =
        [&b[..terms], &b[second..]].map(|part| part.as_chunks::<LANES>());
    for ((a, a_second), (b, b_second)) in a.iter().zip(a_second).zip(b.iter().zip(b_second)) {
        for lane in 0..LANES {
            sums[lane] += T::of([a[lane], a_second[lane]], [b[lane], b_second[lane]]);
        }
    }
    let (a, b) = (a_rest.iter().zip(a_second_rest), b_rest.iter().zip(b_second_rest));
    let rest: f32 = a.zip(b).map(|(a, b)| T::of([*a.0, *a.1], [*b.0, *b.1])).sum();
    sums.iter().sum::<f32>() + rest
}

/// Returns the sum of all lanes, by halves.
///
/// Without the calls of `black_box` the compiler vectorizes the additions two lanes at a time, and
/// carries that back into the loop that computed the lanes, which then loses its wide vectors.
#[inline(always)]
pub(crate) fn total(lanes: [f32; PANEL]) -> f32 {
    let (lanes, mut eight, mut four) = (black_box(lanes), [0.0; PANEL / 2], [0.0; PANEL / 4]);
    for lane in 0..PANEL / 2 {
        eight[lane] = lanes[lane] + lanes[lane + PANEL / 2];
    }
    let eight = black_box(eight);
    for lane in 0..PANEL / 4 {
        four[lane] = eight[lane] + eight[lane + PANEL / 4];
    }
    let four = black_box(four);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Returns the sum as [`sums`] computes it: in order, the same bits as an element of its result.
pub(crate) fn ordered_sum<T: Term>(a: &[f32], b: &[f32]) -> f32 {
    let terms = a.len() / T::PARTS;
    let second = (T::PARTS - 1) * terms;
    (0..terms).fold(0.0, |sum, k| sum + T::of([a[k], a[k + second]], [b[k], b[k + second]]))
}

/// Replaces each value `x` by `exp(x - max)` and returns the sum of the results; relative error
/// below 1e-6. Values above `max` are not allowed.
pub(crate) fn exponentiate(values: &mut [f32], max: f32) -> f32 {
    simd::run(Exponentials { values, max })
}

/// The loop of [`exponentiate`].
struct Exponentials<'a> {
    values: &'a mut [f32],
    max: f32,
}

impl Kernel for Exponentials<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> f32 {
        exponentiate_lanes(self.values, self.max)
    }
}

#[inline(always)]
fn exponentiate_lanes(values: &mut [f32], max: f32) -> f32 {
    let mut sums = [0.0f32; PANEL];
    let (lanes, rest) = values.as_chunks_mut::<PANEL>();
    for lane in lanes {
        for (value, sum) in lane.iter_mut().zip(&mut sums) {
            *value = exp(*value - max);
            *sum += *value;
        }
    }
    for (value, sum) in rest.iter_mut().zip(&mut sums) {
        *value = exp(*value - max);
        *sum += *value;
    }
    sums.iter().sum()
}

/// Returns `e^x` for `x <= 0` without a branch: `2^n * e^r` with `|r| <= ln 2 / 2`, `e^r` by its
/// Taylor polynomial.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Below -87 the result would be subnormal; the comparison keeps NaN.
    let x = if x < -87.0 { -87.0 } else { x };
    let n = (x * core::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let high = 1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0));
    let low = 0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * high));
    let mantissa = 1.0 + r * (1.0 + r * low);
    // Adding `ROUND` leaves `n` in the low bits of the sum: SSE2 has no saturating conversion to
    // `i32`.
    let exponent = (n + ROUND).to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    mantissa * f32::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, mut state: u32) -> Vec<f32> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 16_777_216.0 - 0.5
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn every_element_is_one_sum_in_order_whatever_the_shape() {
        let mut scratch = Vec::new();
        for (rows, inner, columns) in
            [(1, 1, 1), (3, 7, 5), (13, 33, 16), (30, 64, 50), (12, 5, 48)]
        {
            let (a, b) = (numbers(rows * inner, 1), numbers(columns * inner, 2));
            let mut right = Panels::default();
            right.fill_transposed(&b, inner, inner, columns);
            let mut product = vec![f32::NAN; rows * columns];
            let left = Left { data: &a, rows, row_stride: inner, inner_stride: 1 };
            multiply(left, &right, &mut product, &mut scratch);
            for row in 0..rows {
                for column in 0..columns {
                    let expected = ordered_sum::<Product>(
                        &a[row * inner..][..inner],
                        &b[column * inner..][..inner],
                    );
                    assert_eq!(product[row * columns + column].to_bits(), expected.to_bits());
                }
            }
        }
    }

    #[test]
    fn transposed_left_and_plain_right_are_read_by_their_strides() {
        // left^T is [2 x 3], right is [2 x 3]: product [3 x 3].
        let (left, right) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        let mut panels = Panels::default();
        panels.fill(&right, 3, 2, 3);
        let mut product = [0.0; 9];
        let left = Left { data: &left, rows: 3, row_stride: 1, inner_stride: 3 };
        multiply(left, &panels, &mut product, &mut Vec::new());
        assert_eq!(product, [1.0, 4.0, 5.0, 2.0, 5.0, 7.0, 3.0, 6.0, 9.0]);
    }

    #[test]
    fn exponentials_are_accurate_and_keep_nan() {
        let mut values: Vec<f32> = (0..2000).map(|i| -(i as f32) * 0.04).collect();
        let exact: Vec<f64> = values.iter().map(|x| f64::from(*x).exp()).collect();
        let sum = exponentiate(&mut values, 0.0);
        for (value, exact) in values.iter().zip(&exact) {
            assert!((f64::from(*value) / exact - 1.0).abs() < 1e-6, "{value} is not {exact}");
        }
        assert!((f64::from(sum) / exact.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        assert!(exponentiate(&mut [0.0, f32::NAN], 0.0).is_nan());
        assert!(exponentiate(&mut [f32::NEG_INFINITY], 0.0) < 1e-37);
    }
}
