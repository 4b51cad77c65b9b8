//! Reads ratings from a file, or from the files of a folder.
//!
//! # Held out
//! Where there is no file for it, cells are held out as test.
//!
//! Which ones follows from the ids of row and column alone: one cell in ten, the same ones in each
//! run and whatever the order of the lines, and repeats of a cell are on one side.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::data::RatingFault;
use crate::data::ratings::{Found, Rating, read};
use crate::data::{DataError, Looks, RatingId, bytes, looks_like};
use crate::files;
use crate::mf::cells::{self, Cell, Cells, Gathering, HELD_CELLS_MAX};
use crate::mf::checkpoint::Checkpoint;
use crate::mf::ids::{IdMap, Ids};
use crate::mf::ratings::{
    Held, RatingCounts, Ratings, RatingsSource, Train, Unseen, sort_by_column,
};
use crate::run::config::Split;
use crate::run::consistency::Digest;

/// The files of a data set.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    train: PathBuf,
    valid: Option<PathBuf>,
    /// Without, some of train is held out.
    test: Option<PathBuf>,
}

impl Ratings {
    /// Reads ratings: a file, with one in ten data points held out as test; or a folder with
    ///
    /// - `train`, `test` and perhaps `valid` (or `validation`, `val`, `dev`), each as `.txt`,
    ///   `.tsv`, `.csv`, `.dat`, `.mmc` or `.mtx`,
    /// - `NAME.tr.txt` and `NAME.te.txt`, as libmf's demo,
    /// - `ratings.dat`, `ratings.csv` or `u.data`, as MovieLens, held out as above,
    /// - a single file with `rating` in its name, or a single one of those endings, held out as
    ///   above.
    ///
    /// Each may be compressed by gzip, with `.gz` at the end of its name or not. The form of each
    /// file is recognised ([`RatingFormat`](crate::data::RatingFormat)). Ids are mapped: a row or
    /// column that occurs in train gets an index, in the order of the ids, so that large ids cost
    /// nothing; ids that are names are kept as names.
    ///
    /// # Errors
    ///
    /// A file or folder that is missing or unreadable, a malformed line (with file, line, column),
    /// a file without ratings.
    pub fn load(path: &Path) -> Result<Self, DataError> {
        load(path)
    }

    /// Reads ratings to predict with the parameters of `checkpoint`: as [`load`](Self::load) if
    /// they are the data that it was trained on. Else what was learnt is used by the ids: of a
    /// folder the file of `split`, of a single file all cells.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); a folder without a file of `split`.
    pub fn load_for(path: &Path, checkpoint: &Checkpoint, split: Split) -> Result<Self, DataError> {
        load_for(path, checkpoint, split)
    }
}

/// [`Ratings::load`].
fn load(path: &Path) -> Result<Ratings, DataError> {
    let read = || assemble(&Files::of(path)?, &FileCache::default(), HELD_CELLS_MAX);
    read().map_err(|error| explain(error, path))
}

/// [`Ratings::load_for`].
fn load_for(path: &Path, checkpoint: &Checkpoint, split: Split) -> Result<Ratings, DataError> {
    let read = || {
        let files = Files::of(path)?;
        let cache = FileCache::of(&files)?;
        let ratings = assemble(&files, &cache, HELD_CELLS_MAX)?;
        if ratings.train_digest() == checkpoint.trained_on {
            return Ok(ratings);
        }
        let Files { train, valid, test } = files;
        let is_single = valid.is_none() && test.is_none();
        let file = match split {
            Split::Valid => valid,
            Split::Test => test,
        };
        match file.or(is_single.then_some(train)) {
            Some(file) => predicted(file, &cache, checkpoint, split),
            None => Ok(Ratings { valid: Held::default(), test: Held::default(), ..ratings }),
        }
    };
    read().map_err(|error| explain(error, path))
}

/// Returns the ratings of a file that `checkpoint` was not trained on.
fn predicted(
    file: PathBuf,
    cache: &FileCache,
    checkpoint: &Checkpoint,
    split: Split,
) -> Result<Ratings, DataError> {
    let (row_ids, column_ids) = (checkpoint.row_ids.clone(), checkpoint.column_ids.clone());
    let index = |ids: &Ids, id: RatingId<'_>| ids.find(id).map(|index| index as u32);
    let mut held = Held::default();
    let Found { format, comments } = cache.read(&file, &mut |rating| {
        held.take(rating.value, index(&row_ids, rating.row), index(&column_ids, rating.column));
        Ok(())
    })?;
    if held.len() == 0 {
        return Err(DataError::NoRating { path: file });
    }
    sort_by_column(&mut held.cells);
    let unseen = held.unseen.len() as u64;
    let (mut valid, mut test) = (Held::default(), Held::default());
    let mut counts = RatingCounts { comments, ..RatingCounts::default() };
    match split {
        Split::Valid => (valid, counts.unseen_valid) = (held, unseen),
        Split::Test => (test, counts.unseen_test) = (held, unseen),
    }
    Ok(Ratings {
        train: Train::Cells(Cells::none(row_ids.len())),
        valid,
        test,
        rows: row_ids.len() as u32,
        columns: column_ids.len() as u32,
        row_ids,
        column_ids,
        // There is no training data.
        mean: f64::NAN,
        range: checkpoint.range,
        counts,
        source: RatingsSource::Other { file, format },
    })
}

/// Explains an error of `path`, which may be data of another task.
fn explain(error: DataError, path: &Path) -> DataError {
    // A pipe can be read once.
    if !is_of_lines(&error) || files::is_shared(path) {
        return error;
    }
    match looks_like(path) {
        // This takes precedence over the file's faults as ratings.
        Some(looks) if looks != Looks::Ratings => {
            DataError::OtherTask { path: path.to_path_buf(), looks }
        }
        _ => error,
    }
}

/// Returns true if what is wrong may be that the lines are no ratings.
fn is_of_lines(error: &DataError) -> bool {
    matches!(
        error,
        DataError::Malformed { .. }
            | DataError::UnknownColumns { .. }
            | DataError::MissingRatings { .. }
    )
}

impl Files {
    /// Returns the files of a folder, or a single one.
    fn of(path: &Path) -> Result<Self, DataError> {
        if !path.is_dir() {
            return Ok(Self { train: path.to_path_buf(), valid: None, test: None });
        }
        let names = names_in(path).map_err(|error| bytes::failure(path, &error))?;
        find(path, &names).ok_or_else(|| DataError::MissingRatings { folder: path.to_path_buf() })
    }
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

/// Finds the files of a folder that are the data, given the sorted names in it.
fn find(folder: &Path, names: &[String]) -> Option<Files> {
    let named = |name: &str| {
        let is_it = |other: &&String| other.strip_suffix(".gz").unwrap_or(other) == name;
        names.iter().find(is_it).map(|name| folder.join(name))
    };
    let split = |stem: &str| ENDINGS.iter().find_map(|ending| named(&format!("{stem}.{ending}")));
    if let Some(train) = split("train") {
        let valid = ["valid", "validation", "val", "dev"].into_iter().find_map(split);
        return Some(Files { train, valid, test: split("test") });
    }
    if let Some(stem) = names.iter().find_map(|name| name.strip_suffix(".tr.txt")) {
        let part = |part: &str| named(&format!("{stem}.{part}.txt"));
        return Some(Files { train: part("tr")?, valid: part("va"), test: part("te") });
    }
    let whole = MOVIE_LENS
        .iter()
        .find_map(|name| named(name))
        .or_else(|| only(names).map(|name| folder.join(name)));
    whole.map(|train| Files { train, valid: None, test: None })
}

/// Returns the only name with "rating" in it, or that is of a kind of file in which they may be.
fn only(names: &[String]) -> Option<&String> {
    let may_be = |name: &&String| {
        let stem = name.strip_suffix(".gz").unwrap_or(name);
        ENDINGS.iter().any(|ending| stem.ends_with(&format!(".{ending}")))
    };
    let one = |is: &dyn Fn(&&String) -> bool| {
        let mut found = names.iter().filter(|name| may_be(name) && is(name));
        found.next().filter(|_| found.next().is_none())
    };
    one(&|name| name.to_lowercase().contains("rating")).or_else(|| one(&|_| true))
}

/// Reads the files, with up to `held_max` cells of train in memory.
fn assemble(files: &Files, cache: &FileCache, held_max: usize) -> Result<Ratings, DataError> {
    let (mut rows, mut columns) = (IdMap::default(), IdMap::default());
    let mut cells = Gathering::new(held_max);
    let mut held_out = HeldOut::default();
    let is_held_out = files.test.is_none();
    let Found { format, mut comments } = cache.read(&files.train, &mut |rating| {
        if is_held_out && is_in_test(rating.row, rating.column) {
            let HeldOut { cells, rows, columns } = &mut held_out;
            cells.push(cell(rating, rows, columns)?);
        } else {
            cells.push(cell(rating, &mut rows, &mut columns)?);
        }
        Ok(())
    })?;
    if cells.len() == 0 {
        // Of very few cells all may be held out.
        let held_out = std::mem::take(&mut held_out);
        (cells, rows, columns) = (held_out.cells.into(), held_out.rows, held_out.columns);
    }
    if cells.len() == 0 {
        return Err(DataError::NoRating { path: files.train.clone() });
    }
    let mut test = held_out.among(&rows, &columns);
    let mut valid = Held::default();
    for (split, path) in [(&mut valid, &files.valid), (&mut test, &files.test)] {
        let Some(path) = path else { continue };
        let found = cache.read(path, &mut |rating| {
            split.take(rating.value, rows.find(rating.row), columns.find(rating.column));
            Ok(())
        })?;
        comments += found.comments;
        if split.len() == 0 {
            return Err(DataError::NoRating { path: path.clone() });
        }
    }
    let source = RatingsSource::Files { train: files.train.clone(), format, is_held_out };
    let finished = finish(cells, [valid, test], rows, columns, source);
    let mut ratings = finished.map_err(|error| bytes::failure(&std::env::temp_dir(), &error))?;
    ratings.counts.comments = comments;
    Ok(ratings)
}

/// Returns a data point, with preliminary indices.
fn cell(rating: Rating<'_>, rows: &mut IdMap, columns: &mut IdMap) -> Result<Cell, RatingFault> {
    let row = rows.add(rating.row).ok_or(RatingFault::TooManyIds)?;
    let column = columns.add(rating.column).ok_or(RatingFault::TooManyIds)?;
    Ok(Cell { row, column, value: rating.value })
}

/// Puts rows and columns into the order of their ids, and cells into the order of rows.
fn finish(
    cells: Gathering,
    [mut valid, mut test]: [Held; 2],
    rows: IdMap,
    columns: IdMap,
    source: RatingsSource,
) -> io::Result<Ratings> {
    let ((row_ids, row_index), (column_ids, column_index)) = (rows.in_order(), columns.in_order());
    for cell in valid.cells.iter_mut().chain(&mut test.cells) {
        (cell.row, cell.column) =
            (row_index[cell.row as usize], column_index[cell.column as usize]);
    }
    for point in valid.unseen.iter_mut().chain(&mut test.unseen) {
        point.row = point.row.map(|row| row_index[row as usize]);
        point.column = point.column.map(|column| column_index[column as usize]);
    }
    sort_by_column(&mut valid.cells);
    sort_by_column(&mut test.cells);
    let cells = cells::in_order(cells, &row_index, &column_index)?;
    let repeats =
        cells.windows(2).filter(|two| (two[0].row, two[0].column) == (two[1].row, two[1].column));
    let trained = |held: &Held| {
        let is_trained = |cell: &&Cell| {
            let row = &cells[cells.places(cell.row..cell.row + 1)];
            row.binary_search_by_key(&cell.column, |cell| cell.column).is_ok()
        };
        held.cells.iter().filter(is_trained).count() as u64
    };
    let counts = RatingCounts {
        comments: 0,
        repeated: repeats.count() as u64,
        trained_valid: trained(&valid),
        trained_test: trained(&test),
        unseen_valid: valid.unseen.len() as u64,
        unseen_test: test.unseen.len() as u64,
    };
    let mean = cells.iter().map(|cell| f64::from(cell.value)).sum::<f64>() / cells.len() as f64;
    let range = cells.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(least, largest), cell| {
        (least.min(cell.value), largest.max(cell.value))
    });
    let (rows, columns) = (row_ids.len() as u32, column_ids.len() as u32);
    let train = Train::Cells(cells);
    Ok(Ratings {
        train,
        valid,
        test,
        row_ids,
        column_ids,
        rows,
        columns,
        mean,
        range,
        counts,
        source,
    })
}

impl Held {
    /// Adds a data point, with the indices of its row and column if train knows them.
    pub(crate) fn take(&mut self, value: f32, row: Option<u32>, column: Option<u32>) {
        match (row, column) {
            (Some(row), Some(column)) => self.cells.push(Cell { row, column, value }),
            (row, column) => self.unseen.push(Unseen { row, column, value }),
        }
    }
}

/// The bytes of files that can be read once only, such as pipes, by path: for whom reads files
/// twice. Others are read where they are.
#[derive(Default)]
struct FileCache(BTreeMap<PathBuf, Arc<[u8]>>);

impl FileCache {
    fn of(files: &Files) -> Result<Self, DataError> {
        let all = [Some(&files.train), files.valid.as_ref(), files.test.as_ref()];
        let read = |path: &PathBuf| match files::read(path) {
            Ok(bytes) => Ok((path.clone(), bytes.into())),
            Err(error) => Err(bytes::failure(path, &error)),
        };
        all.into_iter()
            .flatten()
            .filter(|path| files::is_shared(path))
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Passes every rating of a file to `each`.
    fn read(
        &self,
        path: &Path,
        each: &mut dyn FnMut(Rating<'_>) -> Result<(), RatingFault>,
    ) -> Result<Found, DataError> {
        let source = match self.0.get(path) {
            Some(bytes) => bytes::Source::new(Cursor::new(Arc::clone(bytes)), path)?,
            None => bytes::open(path)?,
        };
        read(BufReader::with_capacity(BUFFER_BYTES, source), path, each)
    }
}

/// Data points that are held out while train is read, with indices of their own: train's are not
/// yet known.
#[derive(Default)]
pub(crate) struct HeldOut {
    pub(crate) cells: Vec<Cell>,
    pub(crate) rows: IdMap,
    pub(crate) columns: IdMap,
}

impl HeldOut {
    /// Returns the data points with the indices of train.
    pub(crate) fn among(self, rows: &IdMap, columns: &IdMap) -> Held {
        let (rows, columns) = (self.rows.among(rows), self.columns.among(columns));
        let mut held = Held::default();
        for cell in self.cells {
            held.take(cell.value, rows[cell.row as usize], columns[cell.column as usize]);
        }
        held
    }
}

/// Returns true if the cell of this row and column is held out.
fn is_in_test(row: RatingId<'_>, column: RatingId<'_>) -> bool {
    let mut digest = Digest::new();
    for id in [row, column] {
        match id {
            RatingId::Number(number) => digest.word(number),
            RatingId::Name(name) => digest.bytes(name.as_bytes()),
        }
    }
    // The digest alone keeps patterns of the ids; the finalizer of SplitMix64 spreads them over all
    // bits.
    let mixed = (digest.sum() ^ digest.sum() >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31).is_multiple_of(ONE_IN)
}

/// Endings of the files of splits, in the order in which they are looked for.
const ENDINGS: [&str; 6] = ["txt", "tsv", "csv", "dat", "mmc", "mtx"];
/// Files of all ratings, in the order in which they are looked for.
const MOVIE_LENS: [&str; 3] = ["ratings.dat", "ratings.csv", "u.data"];
const BUFFER_BYTES: usize = 1 << 18;

/// One of so many cells is held out.
const ONE_IN: u64 = 10;

#[cfg(test)]
mod tests;
