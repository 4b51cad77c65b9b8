//! Errors of data: who is to blame, where, what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use adapm_transport::error::SystemError;

use crate::data::click_fault::ClickFault;
use crate::data::foreign::{self, Foreign};
use crate::data::graph_fault::GraphFault;
use crate::data::looks::Looks;
use crate::files;

/// Data that cannot be used. Its text is one line: what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A name that is no path and no entry of the data folder.
    #[error(fmt = unknown_name)]
    UnknownName {
        /// The name.
        name: PathBuf,
        /// The folder that was searched, if `ADAPM_DATA` is set.
        searched: Option<PathBuf>,
    },
    /// A folder lacks the file of a required split.
    #[error(
        "no {split}.txt, {split}.tsv, {split}.csv or {split}.del, nor one of them with .gz, in \
         {folder}; give the folder that holds them, or one file of triples"
    )]
    MissingSplit {
        /// The folder.
        folder: PathBuf,
        /// Name of the file without its ending, `train`.
        split: &'static str,
    },
    /// A folder has the files of OpenKE, whose columns are in another order than those of other
    /// files.
    #[error("{path} is OpenKE's, its columns are h t r; read it in the column order htr")]
    OpenKe {
        /// The file of train.
        path: PathBuf,
    },
    /// The columns of a file are `h t r`, by what they hold.
    #[error("the columns of {path} look like h t r; give the column order, htr or hrt")]
    OtherOrder {
        /// The file.
        path: PathBuf,
    },
    /// One part of a folder was given in place of the folder.
    #[error(fmt = one_split)]
    OneSplit {
        /// The file that was given.
        path: PathBuf,
        /// The file of another part.
        other: PathBuf,
    },
    /// The operating system refused.
    #[error("{}", files::unreadable(path, None, *error))]
    Unreadable {
        /// File or folder.
        path: PathBuf,
        /// The reason.
        error: SystemError,
    },
    /// A file that is no text.
    #[error(fmt = not_text)]
    NotText {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: Foreign,
        /// True if the file has this kind once its gzip compression is undone.
        is_compressed: bool,
    },
    /// A compressed file ends before its data does.
    #[error("{path} is cut short; compress or copy it again")]
    CutShort {
        /// The file.
        path: PathBuf,
    },
    /// A compressed file contradicts itself.
    #[error("{path} is damaged; compress or copy it again")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A file became shorter while it was read.
    #[error("{path} became shorter while it was read; leave it as it is during a run")]
    Shrunk {
        /// The file.
        path: PathBuf,
    },
    /// A line that does not have the form of the format.
    #[error(fmt = malformed)]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        column: u64,
        /// The reason.
        reason: Malformation,
    },
    /// A first line that names the columns of ratings, but not which one is which.
    #[error("{path}:{line}: {columns}")]
    UnknownColumns {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The names, and what is missing.
        columns: UnknownColumns,
    },
    /// Data of another task, by what its lines look like.
    #[error(fmt = other_task)]
    OtherTask {
        /// The file or folder.
        path: PathBuf,
        /// Its likely kind.
        looks: Looks,
    },
    /// A file without a single example.
    #[error("no triple in {path}; give data with at least one")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A folder without ratings to train on.
    #[error(
        "no train.txt, ratings.dat, ratings.csv or u.data in {folder}; give the folder or the file that \
         holds ratings"
    )]
    MissingRatings {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder without examples of clicks to train on.
    #[error("no train.* or *.data in {folder}; give the folder or the file that holds examples")]
    MissingClicks {
        /// The folder.
        folder: PathBuf,
    },
    /// A file without a single example.
    #[error("no example in {path}; give data with at least one")]
    NoClick {
        /// The file.
        path: PathBuf,
    },
    /// A file whose lines are of no known form.
    #[error(
        "{path}:{line}:1: neither Criteo's form (40 columns between tabs, {columns} here) nor libsvm's nor \
         libffm's; if it is a table, give its columns, such as --schema age:num,job:cat,income:label"
    )]
    UnknownClicks {
        /// The file.
        path: PathBuf,
        /// Its first line that is not empty.
        line: u64,
        /// Columns of that line.
        columns: usize,
    },
    /// A folder without a file of a graph.
    #[error("no {name} in {folder}; give the folder that holds the files of a graph")]
    MissingGraph {
        /// The folder.
        folder: PathBuf,
        /// The file.
        name: &'static str,
    },
    /// A graph without a node.
    #[error("no node in {path}; give a graph with at least one")]
    NoNode {
        /// The file.
        path: PathBuf,
    },
    /// A graph without a node to train on.
    #[error("no node of {path} is for train; give at least one")]
    NoTrainNode {
        /// The folder.
        path: PathBuf,
    },
    /// A file without a single rating.
    #[error("no rating in {path}; give data with at least one")]
    NoRating {
        /// The file.
        path: PathBuf,
    },
}

/// A fault of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformation {
    /// Fewer than three fields: how many.
    #[error(
        "a triple has three fields, this line has {0}; separate them by tabs, spaces or commas"
    )]
    TooFewFields(usize),
    /// A fourth field begins.
    #[error("a triple has three fields, a fourth begins here; use tabs if names contain spaces")]
    TooManyFields,
    /// A field is empty.
    #[error("this field is empty; put a name between the separators")]
    EmptyField,
    /// A field of an integer file is not a decimal number.
    #[error("not a decimal id; name the file .txt or .tsv if it holds names")]
    NotAnInteger,
    /// An integer is above the largest id that is supported, or names nothing in the list of names.
    #[error("this id is too large; ids count from 0 and are in the list of names")]
    IdOutOfRange,
    /// An id is listed a second time.
    #[error("this id has a name already; list every id once")]
    DuplicateId,
    /// A byte that is part of no character of UTF-8.
    #[error("the byte {byte:02X} is not UTF-8; convert the file from its encoding, ")]
    NotUtf8 {
        /// The byte.
        byte: u8,
    },
    /// A zero byte, which no text has.
    #[error("a zero byte, which no text has; remove it, or give a text file")]
    Zero,
    /// A row has not as many fields as the first line names.
    #[error("the first line names {expected} columns, this line has {found}; give it as many")]
    OtherFields {
        /// Its fields.
        found: usize,
        /// Those of the first line.
        expected: usize,
    },
    /// A name holds a tab or the end of a line, as after a quote that is not closed.
    #[error("a name holds a tab or the end of a line; close the quote before it, or remove it")]
    BrokenName,
    /// The first line is not the number of those below.
    #[error(
        "this is not the number of the lines below, with which files of OpenKE begin; write it here"
    )]
    NotACount,
    /// There are not as many lines as the first one says.
    #[error("{said} lines should follow, {found} do; copy the file again")]
    OtherCount {
        /// The number said.
        said: u64,
        /// The number of lines.
        found: u64,
    },
    /// A fault of a line of ratings.
    #[error("{0}")]
    Rating(RatingFault),
    /// A fault of a line of clicks.
    #[error("{0}")]
    Click(ClickFault),
    /// A fault of a line of a graph.
    #[error("{0}")]
    Graph(GraphFault),
}

fn unknown_name(
    name: &Path,
    searched: &Option<PathBuf>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let name = name.display();
    match searched.as_deref().map(Path::display) {
        Some(folder) => {
            write!(
                f,
                "no data {name}: neither a path nor a folder in {folder}; give a path, or a name that is there"
            )
        }
        None => write!(
            f,
            "no data {name}: the path does not exist; give a path that does, or set {DATA_VARIABLE} to look up names"
        ),
    }
}

fn one_split(path: &Path, other: &Path, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).display();
    let (path, name) = (path.display(), other.file_name().unwrap_or_default().display());
    write!(f, "{path} is one part of a graph, {name} is another; give the folder {folder}")
}

fn not_text(
    path: &Path,
    kind: &Foreign,
    is_compressed: &bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "{} ", path.display())?;
    kind.describe(path, *is_compressed, f)
}

fn malformed(
    path: &Path,
    line: &u64,
    column: &u64,
    reason: &Malformation,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "{}:{line}:{column}: {reason}", path.display())?;
    match reason {
        Malformation::NotUtf8 { .. } | Malformation::Rating(RatingFault::NotUtf8 { .. }) => {
            write!(f, "such as: {}", foreign::conversion(path, "WINDOWS-1252"))
        }
        _ => Ok(()),
    }
}

fn other_task(path: &Path, looks: &Looks, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{} looks like {looks}; use it with ", path.display())?;
    match looks {
        Looks::Vectors => f.write_str("adapm eval wv --load"),
        _ => write!(f, "adapm train {}", looks.task()),
    }
}

/// A fault of a line of ratings. Its text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RatingFault {
    /// Fewer fields than a rating has in this file.
    #[error("a rating has {expected} fields in this file, this line has {found}; complete it")]
    TooFewFields {
        /// Fields of the line.
        found: usize,
        /// Fields of a rating.
        expected: usize,
    },
    /// More fields than a rating has in this file: the first of them begins here.
    #[error("a rating has {expected} fields in this file, another begins here; remove it")]
    TooManyFields {
        /// Fields of a rating.
        expected: usize,
    },
    /// More fields than rows, columns, values and times, without names in the first line.
    #[error(
        "{found} fields, and no line of names says which are row, column and value; put one first, such \
         as user,item,rating and a name for each other field"
    )]
    NoNames {
        /// Fields of the line.
        found: usize,
    },
    /// The file is JSON.
    #[error("this is JSON; write a table of user, item and rating, such as CSV")]
    Json,
    /// Without names in the first line, the third field is a time and the fourth is not.
    #[error(
        "a time where the value is expected; put a line of names first, such as user,item,time,rating"
    )]
    TimeBeforeValue,
    /// A field is empty.
    #[error("this field is empty; fill it in, or remove the line")]
    EmptyField,
    /// An id holds a tab, a line end or another control character.
    #[error(
        "an id with a tab, a line end or another control character; remove it, or close the quote \
         before it"
    )]
    ControlInId,
    /// An id has a byte that is part of no character of UTF-8.
    #[error("{}", Malformation::NotUtf8 { byte: *byte })]
    NotUtf8 {
        /// The byte.
        byte: u8,
    },
    /// A quote is not closed in its line.
    #[error("a line of this rating ends within quotes; close the quote, or double it")]
    OpenQuote,
    /// An id is negative.
    #[error("this id is negative; number rows and columns from 1")]
    NegativeId,
    /// An id is not a decimal number.
    #[error("not a decimal id; number rows and columns from 1")]
    NotAnId,
    /// An id is above the largest that is supported.
    #[error("this id is 2^64 or more; use smaller numbers")]
    IdTooLarge,
    /// A value is not a number.
    #[error("not a number; give a decimal value")]
    NotANumber,
    /// A value is NaN or infinite, or too large for the arithmetic.
    #[error("not a finite number; remove the rating or give it a value")]
    NotFinite,
    /// A line has no end within reason.
    #[error("a line without end, or a quote that is not closed; give a rating per line")]
    LineTooLong,
    /// More comments before the first rating than are looked through.
    #[error("16 MiB of comments and no rating; remove them")]
    EndlessComments,
    /// More than 2^32 - 1 different rows or columns.
    #[error("more than 2^32 - 1 rows or columns; give fewer")]
    TooManyIds,
    /// The banner of a MatrixMarket file names a kind of matrix that is no set of ratings.
    #[error(
        "no matrix of ratings; give one that is coordinate, real or integer, general or symmetric"
    )]
    UnsupportedMatrix,
    /// The line of sizes of a MatrixMarket file is missing or malformed.
    #[error("no sizes; give rows, columns and entries in this line")]
    NoSizes,
    /// More entries than the matrix has places.
    #[error("more entries than rows x columns; correct the sizes")]
    TooManyForSizes,
    /// An id is 0 or above the size that the header declares.
    #[error("outside of the matrix, whose header declares 1 to {size}; correct one of them")]
    OutsideOfMatrix {
        /// The size.
        size: u64,
    },
    /// The file ends before as many entries as its header declares.
    #[error("the file ends after {found} of {declared} entries declared; get all of it")]
    FewerEntries {
        /// Entries declared.
        declared: u64,
        /// Entries found.
        found: u64,
    },
    /// Here begins an entry beyond those that the header declares.
    #[error("more than the {declared} entries declared; correct the header")]
    MoreEntries {
        /// Entries declared.
        declared: u64,
    },
}

/// An error of the names of columns, which leave open which one is which.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problem.told(&shown(found)))]
pub struct UnknownColumns {
    /// The names found.
    pub(super) found: Vec<String>,
    pub(super) problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// No column, or several, may be this one of the three.
    Missing(usize),
    /// Two columns have the same name for this one.
    Twice(usize),
}

impl Problem {
    /// Returns the problem of the names that are `shown`.
    fn told(self, shown: &str) -> String {
        match self {
            Self::Missing(part) => format!(
                "no name of a column of {} among {shown}; name the columns user, item and rating, \
                 or {} (a line of values has a number)",
                PARTS[part], EXAMPLES[part]
            ),
            Self::Twice(part) => format!(
                "two columns of {} among {shown}; name the other one differently",
                PARTS[part]
            ),
        }
    }
}

/// Returns the first names, none of them too long to be shown.
fn shown(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN_MAX).map(|name| match name.char_indices().nth(CHARS_MAX) {
        None => format!("`{name}`"),
        Some((end, _)) => format!("`{}...`", &name[..end]),
    });
    let mut shown = shown.collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN_MAX {
        shown.push_str(", ...");
    }
    shown
}

/// Names that an error shows.
const SHOWN_MAX: usize = 12;
/// Characters of each.
const CHARS_MAX: usize = 40;

const PARTS: [&str; 3] = ["users (rows)", "items (columns)", "values"];
const EXAMPLES: [&str; 3] =
    ["uid, userId, row", "iid, movieId, isbn, column", "score, stars, value"];

/// Environment variable that names the folder in which data is looked up by name.
pub const DATA_VARIABLE: &str = "ADAPM_DATA";
