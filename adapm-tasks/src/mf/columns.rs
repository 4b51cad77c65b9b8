//! The training cells of some rows, by column: 8 bytes a cell, and 8 a column.

use std::ops::Range;

use crate::mf::ratings::Ratings;

/// Cells by column; within a column by row.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// Where the cells of a column start; also defined one behind the last column.
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f32>,
}

impl Columns {
    /// The cells of `rows`. Goes over them twice instead of keeping them twice.
    pub(crate) fn of(ratings: &Ratings, rows: Range<u32>) -> Self {
        let cells = ratings.cells_in(rows.clone()) as usize;
        let mut starts = vec![0; ratings.columns as usize + 1];
        ratings.for_each(rows.clone(), |cell| starts[cell.column as usize + 1] += 1);
        for column in 1..starts.len() {
            starts[column] += starts[column - 1];
        }
        let mut columns = Self { starts, rows: vec![0; cells], values: vec![0.0; cells] };
        // While it fills, the start of a column is its end so far; then every one is its successor's.
        ratings.for_each(rows, |cell| {
            let place = &mut columns.starts[cell.column as usize];
            (columns.rows[*place], columns.values[*place]) = (cell.row, cell.value);
            *place += 1;
        });
        columns.starts.rotate_right(1);
        columns.starts[0] = 0;
        columns
    }

    /// Number of cells of a column.
    pub(crate) fn len_of(&self, column: u32) -> usize {
        self.range(column).len()
    }

    /// Rows and values of the cells of a column.
    pub(crate) fn cells_of(&self, column: u32) -> (&[u32], &[f32]) {
        let range = self.range(column);
        (&self.rows[range.clone()], &self.values[range])
    }

    /// The columns that have cells, ascending.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = u32> {
        (0..self.starts.len() as u32 - 1).filter(|column| self.len_of(*column) > 0)
    }

    /// Deals the columns that have cells to `parts` parts of about equal numbers of cells, and of columns: each, from the
    /// longest to the shortest, to the part with the fewest cells.
    pub(crate) fn deal(&self, parts: usize) -> Vec<Vec<u32>> {
        let mut order: Vec<u32> = self.occupied().collect();
        order.sort_by_key(|column| std::cmp::Reverse(self.len_of(*column)));
        let mut dealt = vec![Vec::new(); parts];
        let mut cells = vec![0; parts];
        for column in order {
            let least = (0..parts).min_by_key(|part| cells[*part]).unwrap_or(0);
            cells[least] += self.len_of(column);
            dealt[least].push(column);
        }
        dealt
    }

    fn range(&self, column: u32) -> Range<usize> {
        self.starts[column as usize]..self.starts[column as usize + 1]
    }
}

/// Cuts the rows into `parts` contiguous ranges with about equal numbers of cells: the bounds, of which there is one more.
pub(crate) fn row_bounds(ratings: &Ratings, parts: usize) -> Vec<u32> {
    let total = u128::from(ratings.train_len());
    let mut bounds = vec![0];
    let mut before: u64 = 0;
    for row in 0..ratings.rows {
        if bounds.len() >= parts {
            break;
        }
        before += ratings.cells_in(row..row + 1);
        while bounds.len() < parts && u128::from(before) * parts as u128 >= total * bounds.len() as u128 {
            bounds.push(row + 1);
        }
    }
    bounds.resize(parts + 1, ratings.rows);
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::planted::PlantedConfig;

    fn ratings() -> Ratings {
        let config = PlantedConfig { rows: 60, columns: 40, cells: 500, ..PlantedConfig::default() };
        Ratings::planted(config).expect("valid")
    }

    #[test]
    fn columns_have_the_cells_of_their_rows() {
        let ratings = ratings();
        let columns = Columns::of(&ratings, 10..40);
        let mut expected = Vec::new();
        ratings.for_each(10..40, |cell| expected.push((cell.column, cell.row, cell.value.to_bits())));
        expected.sort_unstable();
        let cells = (0..40).flat_map(|column| {
            let (rows, values) = columns.cells_of(column);
            assert!(rows.is_sorted());
            rows.iter().zip(values).map(move |(row, value)| (column, *row, value.to_bits()))
        });
        assert_eq!(cells.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn columns_are_dealt_once_and_evenly() {
        let columns = Columns::of(&ratings(), 0..60);
        let dealt = columns.deal(3);
        let mut all: Vec<u32> = dealt.iter().flatten().copied().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(columns.occupied()));
        for part in &dealt {
            let cells: usize = part.iter().map(|column| columns.len_of(*column)).sum();
            assert!((160..=174).contains(&cells), "{cells}");
        }
    }

    #[test]
    fn rows_are_cut_where_the_cells_are() {
        let ratings = ratings();
        for parts in [1, 2, 4, 7, 100] {
            let bounds = row_bounds(&ratings, parts);
            assert!(bounds.is_sorted() && bounds.len() == parts + 1);
            assert_eq!((bounds[0], bounds[parts]), (0, 60));
            let most = bounds.windows(2).map(|two| ratings.cells_in(two[0]..two[1])).max();
            assert!(most.expect("a part") <= 500 / parts as u64 + 30, "{parts}");
        }
    }
}
