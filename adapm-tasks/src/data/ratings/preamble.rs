//! The first lines of a file of ratings: comments to leave out, and what separates fields; and all
//! lines behind them, one at a time ([`Lines`]).

use std::fmt;
use std::io::{BufRead, Read as _};

use memchr::{memmem, memrchr};

use crate::data::lines::csv_fields;
use crate::data::ratings::columns::{Columns, UNTIMED};
use crate::data::ratings::matrix_market::is_banner;
use crate::data::ratings::text::{names_of, rating_len};
use crate::data::ratings::{HEAD_BYTES, LINE_BYTES_MAX, RatingFault, Stop};

/// What stands between the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Separator {
    /// Spaces or tabs, any number of them.
    Blank,
    /// A tab; there may be spaces within fields.
    Tab,
    /// A comma, with or without blanks around it.
    Comma,
    /// A semicolon, with or without blanks around it.
    Semicolon,
    /// `::`, as in MovieLens.
    DoubleColon,
}

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blanks",
            Self::Tab => "tabs",
            Self::Comma => "commas",
            Self::Semicolon => "semicolons",
            Self::DoubleColon => "::",
        })
    }
}

impl Separator {
    /// The separator of the fields of a line: the first that makes three fields of it, else that
    /// which makes two.
    pub(crate) fn of(line: &[u8]) -> Self {
        let makes =
            |fields| SEPARATORS.into_iter().find(|separator| separator.split(line).len() >= fields);
        makes(UNTIMED).or_else(|| makes(UNTIMED - 1)).unwrap_or(Self::Blank)
    }

    /// The fields of a line.
    pub(crate) fn split(self, line: &[u8]) -> Vec<Vec<u8>> {
        match (self.byte(), self) {
            (Some(separator), _) => csv_fields(line, separator),
            (None, Self::DoubleColon) => {
                let ends = memmem::find_iter(line, b"::").chain([line.len()]);
                let mut start = 0;
                ends.map(|end| line[std::mem::replace(&mut start, end + 2)..end].to_vec()).collect()
            }
            (None, _) => line
                .split(u8::is_ascii_whitespace)
                .filter(|field| !field.is_empty())
                .map(<[u8]>::to_vec)
                .collect(),
        }
    }

    /// The byte between two fields, if it is one.
    pub(super) fn byte(self) -> Option<u8> {
        match self {
            Self::Tab => Some(b'\t'),
            Self::Comma => Some(b','),
            Self::Semicolon => Some(b';'),
            Self::Blank | Self::DoubleColon => None,
        }
    }
}

/// Returns true if a line names the columns of ratings.
pub(crate) fn names_ratings(line: &[u8]) -> bool {
    names_of(line, Form::of(line)).is_some_and(|names| Columns::are_known(&names))
}

/// Where the lines of a file begin that are no comments, and their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preamble {
    /// Bytes before them.
    pub(super) skipped: usize,
    /// Lines before them.
    pub(super) lines: u64,
    /// Those of them that are comments.
    pub(super) comments: u64,
    pub(super) form: Form,
}

/// A form of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    MatrixMarket,
    /// Fields with one byte between them.
    Separated {
        separator: Separator,
        byte: u8,
        is_quoted: bool,
    },
    /// Fields with `::` or blanks between them.
    Split(Separator),
}

impl Preamble {
    /// Reads as much of a file into `head` as is needed to tell; `None` if there are no lines but
    /// comments. `line` becomes the line of an error.
    pub(super) fn read<R: BufRead>(
        source: &mut R,
        head: &mut Vec<u8>,
        line: &mut u64,
    ) -> Result<Option<Self>, Stop> {
        loop {
            let asked = head.len().max(HEAD_BYTES);
            let read = source.take(asked as u64).read_to_end(head).map_err(Stop::Io)?;
            let is_end = read < asked;
            // The last line may be a part of one.
            let end = memrchr(b'\n', head).map_or(0, |end| end + 1);
            let preamble = Self::of(&head[..if is_end { head.len() } else { end }]);
            if preamble.is_some() || is_end {
                return Ok(preamble);
            }
            let number = || memchr::memchr_iter(b'\n', &head[..end]).count() as u64 + 1;
            if head.len() - end >= LINE_BYTES_MAX {
                *line = number();
                let too_long = (LINE_BYTES_MAX as u64, RatingFault::LineTooLong);
                return Self::of(head).ok_or(too_long.into()).map(Some);
            }
            if head.len() >= COMMENT_BYTES_MAX {
                *line = number();
                return Err((1, RatingFault::EndlessComments).into());
            }
        }
    }

    /// The preamble of a file that begins with these lines; `None` if all are comments.
    fn of(head: &[u8]) -> Option<Self> {
        let mut preamble = Self { skipped: 0, lines: 0, comments: 0, form: Form::MatrixMarket };
        // Lines that begin as comments do, each with the preamble that it would be.
        let mut signed: Vec<(&[u8], Self)> = Vec::new();
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let text = line.trim_ascii();
            if is_banner(text) {
                return Some(preamble);
            }
            let is_signed = text.starts_with(b"#") || text.starts_with(b"%");
            // Excel tells itself the separator.
            if !is_signed && !text.is_empty() && !text.starts_with(b"sep=") {
                return Some(Self { form: Form::of(text), ..preamble }.or_first_of(&signed, text));
            }
            // Names of columns may stand in a comment.
            if is_signed && names_ratings(&text[1..]) {
                let sign = line.len() - line.trim_ascii_start().len() + 1;
                return Some(Self {
                    skipped: preamble.skipped + sign,
                    form: Form::of(&text[1..]),
                    ..preamble
                });
            }
            if is_signed {
                signed.push((text, preamble));
                preamble.comments += 1;
            }
            (preamble.skipped, preamble.lines) =
                (preamble.skipped + line.len(), preamble.lines + 1);
        }
        // All ids may begin in that way.
        let (last, preamble) = *signed.iter().rev().find(|(line, _)| may_be_id(line))?;
        let preamble = Self { form: Form::of(last), ..preamble };
        rating_len(last, preamble.form).map(|_| preamble.or_first_of(&signed, last))
    }

    /// The first of the lines before `line`, the one of this preamble, that is a rating as it is,
    /// else this one.
    fn or_first_of(self, signed: &[(&[u8], Self)], line: &[u8]) -> Self {
        let Some(len) = rating_len(line, self.form) else { return self };
        let is_rating = |line| may_be_id(line) && rating_len(line, self.form) == Some(len);
        let first = signed.iter().find(|(line, _)| is_rating(line));
        first.map_or(self, |(_, preamble)| Self { form: self.form, ..*preamble })
    }
}

/// Returns true if a line that begins as a comment may begin with an id instead: no space follows
/// the signs.
fn may_be_id(line: &[u8]) -> bool {
    let behind = line.iter().find(|byte| !matches!(byte, b'#' | b'%'));
    behind.is_some_and(|byte| *byte != b' ')
}

impl Form {
    /// The form of a line.
    fn of(line: &[u8]) -> Self {
        let separator = Separator::of(line);
        match separator.byte() {
            None => Self::Split(separator),
            Some(byte) => {
                // Tables between tabs mostly have no quotes but those of names.
                let is_quoted = separator != Separator::Tab || line.contains(&b'"');
                Self::Separated { separator, byte, is_quoted }
            }
        }
    }
}

/// The lines that are not blank, one at a time.
pub(super) struct Lines<R> {
    source: R,
    /// The current line without its end (`\n` or `\r\n`).
    pub(super) line: Vec<u8>,
    /// Its number, from 1.
    pub(super) number: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines behind line `number`.
    pub(super) fn new(source: R, number: u64) -> Self {
        Self { source, line: Vec::new(), number }
    }

    /// Goes to the next line that is not blank. Returns false at the end.
    pub(super) fn next(&mut self) -> Result<bool, Stop> {
        loop {
            self.line.clear();
            let mut bounded = (&mut self.source).take(LINE_BYTES_MAX as u64);
            let read = bounded.read_until(b'\n', &mut self.line).map_err(Stop::Io)?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                if self.line.last() == Some(&b'\r') {
                    self.line.pop();
                }
            } else if read == LINE_BYTES_MAX {
                return Err((LINE_BYTES_MAX as u64, RatingFault::LineTooLong).into());
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(true);
            }
        }
    }
}

/// Bytes of comments before the first rating.
const COMMENT_BYTES_MAX: usize = 1 << 24;
/// In the order in which they are tried.
const SEPARATORS: [Separator; 5] = [
    Separator::DoubleColon,
    Separator::Tab,
    Separator::Semicolon,
    Separator::Comma,
    Separator::Blank,
];
