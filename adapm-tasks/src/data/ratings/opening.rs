//! The first lines of a file of ratings: comments to leave out, and what separates fields.

use std::fmt;

use memchr::memmem;

use super::columns::{Columns, UNTIMED};
use super::matrix_market::is_banner;
use super::text::names_of;

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
    /// The separator of the fields of a line: the first that makes three fields of it, else that which makes two.
    pub(crate) fn of(line: &[u8]) -> Self {
        let makes = |fields| SEPARATORS.into_iter().find(|separator| separator.fields(line) >= fields);
        makes(UNTIMED).or_else(|| makes(UNTIMED - 1)).unwrap_or(Self::Blank)
    }

    /// The fields of a line without quotes.
    pub(crate) fn split(self, line: &[u8]) -> Vec<&[u8]> {
        match (self.byte(), self) {
            (Some(separator), _) => line.split(|byte| *byte == separator).collect(),
            (None, Self::DoubleColon) => {
                let ends = memmem::find_iter(line, b"::").chain([line.len()]);
                let mut start = 0;
                ends.map(|end| &line[std::mem::replace(&mut start, end + 2)..end]).collect()
            }
            (None, _) => line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect(),
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

    /// Fields of a line, where nothing within quotes separates.
    fn fields(self, line: &[u8]) -> usize {
        let Some(separator) = self.byte() else {
            return match self {
                Self::DoubleColon => memmem::find_iter(line, b"::").count() + 1,
                _ => line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).count(),
            };
        };
        let mut is_quoted = false;
        let mut separates = |byte: &&u8| {
            is_quoted ^= **byte == b'"';
            **byte == separator && !is_quoted
        };
        line.iter().filter(|byte| separates(byte)).count() + 1
    }
}

/// Returns true if a line names the columns of ratings.
pub(crate) fn names_ratings(line: &[u8]) -> bool {
    names_of(line, Form::of(line)).is_some_and(|names| Columns::are_known(&names))
}

/// Where the lines of a file begin that are no comments, and their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// Bytes before them.
    pub(super) skipped: usize,
    /// Lines before them.
    pub(super) lines: u64,
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

impl Opening {
    /// The opening of a file that begins with `head`; `None` if there are no lines but comments.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let (mut skipped, mut lines) = (0, 0);
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let text = line.trim_ascii();
            // Excel tells itself the separator.
            let is_comment = [b"#".as_slice(), b"%", b"sep="].iter().any(|sign| text.starts_with(sign));
            if is_banner(text) {
                return Some(Self { skipped, lines, form: Form::MatrixMarket });
            }
            if !text.is_empty() && !is_comment {
                return Some(Self { skipped, lines, form: Form::of(text) });
            }
            // Names of columns may stand in a comment.
            if is_comment && names_ratings(&text[1..]) {
                let sign = line.len() - line.trim_ascii_start().len() + 1;
                return Some(Self { skipped: skipped + sign, lines, form: Form::of(&text[1..]) });
            }
            (skipped, lines) = (skipped + line.len(), lines + 1);
        }
        None
    }
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

/// In the order in which they are tried.
const SEPARATORS: [Separator; 5] =
    [Separator::DoubleColon, Separator::Tab, Separator::Semicolon, Separator::Comma, Separator::Blank];
