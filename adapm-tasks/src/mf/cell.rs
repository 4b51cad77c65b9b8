//! An observed cell of the matrix.

/// A data point: the value of the matrix at a row and column. 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Index of the row.
    pub row: u32,
    /// Index of the column.
    pub column: u32,
    /// What was observed there.
    pub value: f32,
}
