//! Reads ratings from a file, or from the files of a folder.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::data::ratings::{Rating, RatingFault, read};
use crate::data::{DataError, RatingFormat, bytes};
use crate::mf::cell::Cell;
use crate::mf::ids::Ids;
use crate::mf::ratings::{Held, RatingCounts, Ratings, RatingsSource, Train, sort_by_column};

/// The files of a data set.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    train: PathBuf,
    valid: Option<PathBuf>,
    /// Without, some of train is held out.
    test: Option<PathBuf>,
}

/// [`Ratings::load`].
pub(crate) fn load(path: &Path) -> Result<Ratings, DataError> {
    let files = if path.is_dir() {
        let names = names_in(path).map_err(|error| unreadable(path, &error))?;
        find(path, &names).ok_or_else(|| DataError::MissingRatings { folder: path.to_path_buf() })?
    } else {
        Files { train: path.to_path_buf(), valid: None, test: None }
    };
    assemble(&files)
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        // A name that is no UTF-8 is none of those that are looked for.
        names.extend(entry?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Which files of a folder, given the sorted names in it, are the data.
fn find(folder: &Path, names: &[String]) -> Option<Files> {
    let named = |name: &str| {
        let compressed = format!("{name}.gz");
        let found = names.iter().find(|other| *other == name || **other == compressed);
        found.map(|name| folder.join(name))
    };
    let split = |stem: &str| ENDINGS.iter().find_map(|ending| named(&format!("{stem}.{ending}")));
    if let Some(train) = split("train") {
        return Some(Files { train, valid: split("valid"), test: split("test") });
    }
    if let Some(stem) = names.iter().find_map(|name| name.strip_suffix(".tr.txt")) {
        let part = |part: &str| named(&format!("{stem}.{part}.txt"));
        return Some(Files { train: part("tr")?, valid: part("va"), test: part("te") });
    }
    let train = MOVIE_LENS.iter().find_map(|name| named(name))?;
    Some(Files { train, valid: None, test: None })
}

fn assemble(files: &Files) -> Result<Ratings, DataError> {
    let (mut rows, mut columns) = (Ids::default(), Ids::default());
    let (mut cells, mut held_out) = (Vec::new(), Vec::new());
    let mut random = Xoshiro256PlusPlus::seed_from_u64(HOLD_OUT_SEED);
    let is_held_out = files.test.is_none();
    let format = open(&files.train, &mut |rating| {
        if is_held_out && random.random_ratio(1, HELD_OUT) && !cells.is_empty() {
            held_out.push(rating);
            return Ok(());
        }
        let row = rows.add(rating.row).ok_or(RatingFault::TooManyIds)?;
        let column = columns.add(rating.column).ok_or(RatingFault::TooManyIds)?;
        cells.push(Cell { row, column, value: rating.value });
        Ok(())
    })?;
    if cells.is_empty() {
        return Err(DataError::NoRating { path: files.train.clone() });
    }
    let mut test = Held::default();
    held_out.into_iter().for_each(|rating| test.take(rating, &rows, &columns));
    let mut valid = Held::default();
    for (split, path) in [(&mut valid, &files.valid), (&mut test, &files.test)] {
        let Some(path) = path else { continue };
        open(path, &mut |rating| {
            split.take(rating, &rows, &columns);
            Ok(())
        })?;
        if split.len() == 0 {
            return Err(DataError::NoRating { path: path.clone() });
        }
    }
    let source = RatingsSource::Files { train: files.train.clone(), format, is_held_out };
    Ok(finish(cells, [valid, test], rows, columns, source))
}

/// Puts rows and columns into the order of their ids, and cells into the order of rows.
fn finish(
    mut cells: Vec<Cell>,
    [mut valid, mut test]: [Held; 2],
    rows: Ids,
    columns: Ids,
    source: RatingsSource,
) -> Ratings {
    let ((row_ids, row_index), (column_ids, column_index)) = (rows.in_order(), columns.in_order());
    for cell in cells.iter_mut().chain(&mut valid.cells).chain(&mut test.cells) {
        (cell.row, cell.column) = (row_index[cell.row as usize], column_index[cell.column as usize]);
    }
    sort_by_column(&mut valid.cells);
    sort_by_column(&mut test.cells);
    cells.sort_by_key(|cell| (cell.row, cell.column));
    let mut starts = vec![0; row_ids.len() + 1];
    cells.iter().for_each(|cell| starts[cell.row as usize + 1] += 1);
    for row in 1..starts.len() {
        starts[row] += starts[row - 1];
    }
    let repeats = cells.windows(2).filter(|two| (two[0].row, two[0].column) == (two[1].row, two[1].column));
    let counts = RatingCounts {
        repeated: repeats.count() as u64,
        unseen_valid: valid.unseen.len() as u64,
        unseen_test: test.unseen.len() as u64,
    };
    let mean = cells.iter().map(|cell| f64::from(cell.value)).sum::<f64>() / cells.len() as f64;
    let range = cells.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(least, largest), cell| {
        (least.min(cell.value), largest.max(cell.value))
    });
    let (rows, columns) = (row_ids.len() as u32, column_ids.len() as u32);
    let train = Train::Cells { cells, starts };
    Ratings { train, valid, test, row_ids, column_ids, rows, columns, mean, range, counts, source }
}

impl Held {
    /// Adds a data point, with preliminary indices.
    fn take(&mut self, rating: Rating, rows: &Ids, columns: &Ids) {
        match (rows.find(rating.row), columns.find(rating.column)) {
            (Some(row), Some(column)) => self.cells.push(Cell { row, column, value: rating.value }),
            _ => self.unseen.push(rating.value),
        }
    }
}

fn open(
    path: &Path,
    each: &mut dyn FnMut(Rating) -> Result<(), RatingFault>,
) -> Result<RatingFormat, DataError> {
    let source = bytes::open(path)?;
    read(BufReader::with_capacity(BUFFER_BYTES, source), path, each)
}

fn unreadable(path: &Path, error: &io::Error) -> DataError {
    DataError::Unreadable { path: path.to_path_buf(), error: error.into() }
}

/// Endings of the files of splits, in the order in which they are looked for.
const ENDINGS: [&str; 6] = ["txt", "tsv", "csv", "dat", "mmc", "mtx"];
/// Files of all ratings, in the order in which they are looked for.
const MOVIE_LENS: [&str; 3] = ["ratings.dat", "ratings.csv", "u.data"];
/// One of so many data points is held out if there is no test file.
const HELD_OUT: u32 = 10;
/// Always the same ones.
const HOLD_OUT_SEED: u64 = 0x6d66;
const BUFFER_BYTES: usize = 1 << 18;

#[cfg(test)]
mod tests;
