//! Cells that are held out as test where there is no file for it.
//!
//! Which ones follows from the ids of row and column alone: one cell in ten, the same ones in each run and whatever the order of
//! the lines, and repeats of a cell are on one side.

use crate::data::RatingId;
use crate::mf::cell::Cell;
use crate::mf::ids::IdMap;
use crate::mf::ratings::Held;
use crate::run::digest::Digest;

/// Data points that are held out while train is read, with indices of their own: train's are not yet known.
#[derive(Default)]
pub(crate) struct HeldOut {
    pub(crate) cells: Vec<Cell>,
    pub(crate) rows: IdMap,
    pub(crate) columns: IdMap,
}

impl HeldOut {
    /// The data points with the indices of train.
    pub(crate) fn among(self, rows: &IdMap, columns: &IdMap) -> Held {
        let (rows, columns) = (self.rows.among(rows), self.columns.among(columns));
        let mut held = Held::default();
        for cell in self.cells {
            held.take(cell.value, rows[cell.row as usize], columns[cell.column as usize]);
        }
        held
    }

    /// The data points with the indices of their own.
    pub(crate) fn into_parts(self) -> (Vec<Cell>, IdMap, IdMap) {
        (self.cells, self.rows, self.columns)
    }
}

/// Returns true if the cell of this row and column is held out.
pub(crate) fn is_held_out(row: RatingId<'_>, column: RatingId<'_>) -> bool {
    let mut digest = Digest::new();
    for id in [row, column] {
        match id {
            RatingId::Number(number) => digest.word(number),
            RatingId::Name(name) => digest.bytes(name.as_bytes()),
        }
    }
    // The digest alone keeps patterns of the ids; the finalizer of SplitMix64 spreads them over all bits.
    let mixed = (digest.sum() ^ digest.sum() >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31).is_multiple_of(ONE_IN)
}

/// One of so many cells is held out.
const ONE_IN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cell_in_ten_is_held_out_in_each_row_and_column() {
        let held = |row: u64, column: u64| is_held_out(RatingId::Number(row), RatingId::Number(column));
        for row in (0..50).map(|row| row * 1_000) {
            let of_row = (0..1_000).filter(|column| held(row, *column)).count();
            let of_column = (0..1_000).filter(|other| held(*other, row)).count();
            assert!((60..150).contains(&of_row) && (60..150).contains(&of_column), "{of_row} {of_column}");
        }
        let names = (0..1_000)
            .filter(|name| is_held_out(RatingId::Name(&format!("user {name}")), RatingId::Number(3)));
        assert!((60..150).contains(&names.count()));
    }
}
