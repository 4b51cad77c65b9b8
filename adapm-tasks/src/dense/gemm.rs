//! The product of two matrices: the only caller of `matrixmultiply`.
#![expect(unsafe_code, reason = "the library takes pointers; all sizes are checked before")]

/// A matrix whose rows, or columns, lie one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Returns the matrix whose rows are in `data`.
    pub(super) fn of_rows(data: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "the elements of {rows} x {columns}");
        Self { data, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// Returns the matrix with rows and columns exchanged.
    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// Writes `kept * product + left * right` to `product`, whose rows lie one after the other: shape
/// `[left.rows x right.columns]`. With `kept` 0 nothing of it is read. The sum of an element runs
/// over the inner index in the same order for any number of rows.
pub(super) fn multiply(left: Matrix<'_>, right: Matrix<'_>, kept: f32, product: &mut [f32]) {
    let (rows, inner, columns) = (left.rows, left.columns, right.columns);
    assert_eq!(inner, right.rows, "the inner sizes of a product");
    assert_eq!(product.len(), rows * columns, "the elements of a product");
    let stride = |stride: usize| stride as isize;
    // SAFETY: `Matrix` has as many elements as rows x columns at its strides, and `product` as many
    // as asserted above; `product` is borrowed exclusively, so it overlaps neither of the others.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            inner,
            columns,
            1.0,
            left.data.as_ptr(),
            stride(left.row_stride),
            stride(left.column_stride),
            right.data.as_ptr(),
            stride(right.row_stride),
            stride(right.column_stride),
            kept,
            product.as_mut_ptr(),
            stride(columns),
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::checking::random;

    fn by_hand(left: &[f32], right: &[f32], [rows, inner, columns]: [usize; 3]) -> Vec<f64> {
        let element = |row: usize, column: usize| {
            let of = |k: usize| {
                f64::from(left[row * inner + k]) * f64::from(right[k * columns + column])
            };
            (0..inner).map(of).sum()
        };
        (0..rows * columns).map(|at| element(at / columns, at % columns)).collect()
    }

    fn transpose(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
        (0..rows * columns).map(|at| matrix[at % rows * columns + at / rows]).collect()
    }

    #[test]
    fn products_of_all_transpositions_are_those_by_hand() {
        for sizes @ [rows, inner, columns] in [[1, 1, 1], [3, 5, 2], [17, 300, 9], [64, 33, 70]] {
            let (left, right) = (random(rows * inner, 1), random(inner * columns, 2));
            let expected = by_hand(&left, &right, sizes);
            let (left_t, right_t) =
                (transpose(&left, rows, inner), transpose(&right, inner, columns));
            let lefts = [
                Matrix::of_rows(&left, rows, inner),
                Matrix::of_rows(&left_t, inner, rows).transposed(),
            ];
            let rights = [
                Matrix::of_rows(&right, inner, columns),
                Matrix::of_rows(&right_t, columns, inner).transposed(),
            ];
            for (left, right) in
                lefts.into_iter().flat_map(|left| rights.map(|right| (left, right)))
            {
                let mut product = vec![f32::NAN; rows * columns];
                multiply(left, right, 0.0, &mut product);
                multiply(left, right, 1.0, &mut product);
                for (element, expected) in product.iter().zip(&expected) {
                    assert!((f64::from(*element) - 2.0 * expected).abs() < 1e-3, "{sizes:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_whatever_rows_are_beside_it() {
        let (inner, columns) = (416, 256);
        let (left, right) = (random(130 * inner, 3), random(inner * columns, 4));
        let right = Matrix::of_rows(&right, inner, columns);
        let of = |from: usize, rows: usize| {
            let mut product = vec![0.0; rows * columns];
            let left = &left[from * inner..(from + rows) * inner];
            multiply(Matrix::of_rows(left, rows, inner), right, 0.0, &mut product);
            product
        };
        let all = of(0, 130);
        for (from, rows) in [(0, 1), (5, 1), (3, 7), (100, 30), (129, 1)] {
            let expected = &all[from * columns..(from + rows) * columns];
            assert!(
                of(from, rows).iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits()))
            );
        }
    }

    #[test]
    #[should_panic(expected = "the inner sizes of a product")]
    fn sizes_that_do_not_fit_are_refused() {
        let data = [0.0; 6];
        let left = Matrix::of_rows(&data, 2, 3);
        multiply(left, Matrix::of_rows(&data, 2, 3), 0.0, &mut [0.0; 6]);
    }
}
