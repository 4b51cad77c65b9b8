//! What can be wrong with data: who is to blame, where, what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use adapm_transport::error::SystemError;

use crate::data::ratings::{RatingFault, UnknownColumns};
use crate::data::{DATA_VARIABLE, Foreign, Looks, foreign};
use crate::files;

/// Data that cannot be used. Its text is one line: what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataError {
    /// A name that is no path and no entry of the data folder.
    UnknownName {
        /// What was asked for.
        name: PathBuf,
        /// The folder that was searched, if `ADAPM_DATA` is set.
        searched: Option<PathBuf>,
    },
    /// A folder lacks the file of a required split.
    MissingSplit {
        /// The folder.
        folder: PathBuf,
        /// Name of the file without its ending, `train`.
        split: &'static str,
    },
    /// A folder has the files of OpenKE, whose columns are in another order than those of other files.
    OpenKe {
        /// The file of train.
        path: PathBuf,
    },
    /// The columns of a file are `h t r`, by what they hold.
    OtherOrder {
        /// The file.
        path: PathBuf,
    },
    /// One part of a folder was given in place of the folder.
    OneSplit {
        /// The file that was given.
        path: PathBuf,
        /// The file of another part.
        other: PathBuf,
    },
    /// The operating system refused.
    Unreadable {
        /// File or folder.
        path: PathBuf,
        /// Why.
        error: SystemError,
    },
    /// A file that is no text.
    NotText {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        kind: Foreign,
        /// It is so behind a compression by gzip, which is undone.
        is_compressed: bool,
    },
    /// A compressed file ends before its data does.
    CutShort {
        /// The file.
        path: PathBuf,
    },
    /// A compressed file contradicts itself.
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A file became shorter while it was read.
    Shrunk {
        /// The file.
        path: PathBuf,
    },
    /// A line that does not have the form of the format.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        column: u64,
        /// What is wrong there.
        reason: Malformation,
    },
    /// A first line that names the columns of ratings, but not which one is which.
    UnknownColumns {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The names, and what is missing.
        columns: UnknownColumns,
    },
    /// Data of another task, by what its lines look like.
    OtherTask {
        /// The file or folder.
        path: PathBuf,
        /// What it looks like.
        looks: Looks,
    },
    /// A file without a single example.
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A folder without ratings to train on.
    MissingRatings {
        /// The folder.
        folder: PathBuf,
    },
    /// A file without a single rating.
    NoRating {
        /// The file.
        path: PathBuf,
    },
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformation {
    /// Fewer than three fields: how many.
    TooFewFields(usize),
    /// A fourth field begins.
    TooManyFields,
    /// A field is empty.
    EmptyField,
    /// A field of an integer file is not a decimal number.
    NotAnInteger,
    /// An integer is above the largest id that is supported, or names nothing in the list of names.
    IdOutOfRange,
    /// An id is listed a second time.
    DuplicateId,
    /// A byte that is part of no character of UTF-8.
    NotUtf8 {
        /// The byte.
        byte: u8,
    },
    /// A zero byte, which no text has.
    Zero,
    /// A row has not as many fields as the first line names.
    OtherFields {
        /// Its fields.
        found: usize,
        /// Those of the first line.
        expected: usize,
    },
    /// A name holds a tab or the end of a line, as behind a quote that is not closed.
    BrokenName,
    /// The first line is not the number of those below.
    NotACount,
    /// There are not as many lines as the first one says.
    OtherCount {
        /// What it says.
        said: u64,
        /// How many there are.
        found: u64,
    },
    /// What is wrong with a line of ratings.
    Rating(RatingFault),
}

impl DataError {
    /// What is wrong with the parts of a graph.
    fn of_parts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingSplit { folder, split } => {
                write!(
                    f,
                    "no {split}.txt, {split}.tsv, {split}.csv or {split}.del, nor one of them with .gz, "
                )?;
                write!(f, "in {}; give the folder that holds them, or one file of triples", folder.display())
            }
            Self::OpenKe { path } => {
                write!(
                    f,
                    "{} is OpenKE's, its columns are h t r; read it in the column order htr",
                    path.display()
                )
            }
            Self::OtherOrder { path } => {
                write!(
                    f,
                    "the columns of {} look like h t r; give the column order, htr or hrt",
                    path.display()
                )
            }
            Self::OneSplit { path, other } => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                let name = other.file_name().unwrap_or_default();
                write!(f, "{} is one part of a graph, {} is another", path.display(), name.display())?;
                write!(f, "; give the folder {}", folder.display())
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for DataError {}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name, searched: Some(folder) } => {
                write!(f, "no data {}: neither a path nor a folder in {}", name.display(), folder.display())?;
                f.write_str("; give a path, or a name that is there")
            }
            Self::UnknownName { name, searched: None } => {
                write!(f, "no data {}: the path does not exist", name.display())?;
                write!(f, "; give a path that does, or set {DATA_VARIABLE} to look up names")
            }
            Self::MissingSplit { .. }
            | Self::OpenKe { .. }
            | Self::OtherOrder { .. }
            | Self::OneSplit { .. } => self.of_parts(f),
            Self::Unreadable { path, error } => f.write_str(&files::unreadable(path, None, *error)),
            Self::NotText { path, kind, is_compressed } => {
                write!(f, "{} ", path.display())?;
                kind.describe(path, *is_compressed, f)
            }
            Self::CutShort { path } => {
                write!(f, "{} is cut short; compress or copy it again", path.display())
            }
            Self::Damaged { path } => {
                write!(f, "{} is damaged; compress or copy it again", path.display())
            }
            Self::Shrunk { path } => {
                write!(
                    f,
                    "{} became shorter while it was read; leave it as it is during a run",
                    path.display()
                )
            }
            Self::Malformed { path, line, column, reason } => {
                write!(f, "{}:{line}:{column}: {reason}", path.display())?;
                match reason {
                    Malformation::NotUtf8 { .. } | Malformation::Rating(RatingFault::NotUtf8 { .. }) => {
                        write!(f, "such as: {}", foreign::conversion(path, "WINDOWS-1252"))
                    }
                    _ => Ok(()),
                }
            }
            Self::UnknownColumns { path, line, columns } => {
                write!(f, "{}:{line}: {columns}", path.display())
            }
            Self::OtherTask { path, looks } => {
                write!(f, "{} looks like {looks}; use it with ", path.display())?;
                match looks {
                    Looks::Vectors => f.write_str("adapm eval wv --load"),
                    _ => write!(f, "adapm train {}", looks.task()),
                }
            }
            Self::Empty { path } => write!(f, "no triple in {}; give data with at least one", path.display()),
            Self::MissingRatings { folder } => {
                write!(f, "no train.txt, ratings.dat, ratings.csv or u.data in {}", folder.display())?;
                f.write_str("; give the folder or the file that holds ratings")
            }
            Self::NoRating { path } => {
                write!(f, "no rating in {}; give data with at least one", path.display())
            }
        }
    }
}

impl fmt::Display for Malformation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewFields(fields) => {
                write!(
                    f,
                    "a triple has three fields, this line has {fields}; separate them by tabs, spaces or commas"
                )
            }
            Self::TooManyFields => f.write_str(
                "a triple has three fields, a fourth begins here; use tabs if names contain spaces",
            ),
            Self::EmptyField => f.write_str("this field is empty; put a name between the separators"),
            Self::NotAnInteger => {
                f.write_str("not a decimal id; name the file .txt or .tsv if it holds names")
            }
            Self::IdOutOfRange => {
                f.write_str("this id is too large; ids count from 0 and are in the list of names")
            }
            Self::DuplicateId => f.write_str("this id has a name already; list every id once"),
            Self::NotUtf8 { byte } => {
                write!(f, "the byte {byte:02X} is not UTF-8; convert the file from its encoding, ")
            }
            Self::Zero => f.write_str("a zero byte, which no text has; remove it, or give a text file"),
            Self::OtherFields { found, expected } => {
                write!(f, "the first line names {expected} columns, this line has {found}; give it as many")
            }
            Self::BrokenName => f.write_str(
                "a name holds a tab or the end of a line; close the quote before it, or remove it",
            ),
            Self::NotACount => f.write_str(
                "this is not the number of the lines below, with which files of OpenKE begin; write it here",
            ),
            Self::OtherCount { said, found } => {
                write!(f, "{said} lines should follow, {found} do; copy the file again")
            }
            Self::Rating(fault) => fault.fmt(f),
        }
    }
}
