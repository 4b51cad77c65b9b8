//! Vectors of a matrix in memory that may hold more than them.

/// Rows of a matrix: vectors of the same length, `stride` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

impl<'a> Rows<'a> {
    /// Returns the first `dim` elements of each row.
    pub(super) fn vectors(self, dim: usize) -> impl Iterator<Item = &'a [f32]> {
        self.data.chunks(self.stride).take(self.count).map(move |row| &row[..dim])
    }
}
