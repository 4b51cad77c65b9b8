//! Forms of lines of ratings, and what separates their fields.

use std::fmt;

use memchr::memmem;

use crate::data::lines::csv_fields;
use crate::data::ratings::columns::UNTIMED;

/// The separator of the fields of a line.
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
    /// Returns the separator of the fields of a line: the first that makes three fields of it, else
    /// that which makes two.
    pub(crate) fn of(line: &[u8]) -> Self {
        // To look for a byte costs far less than to split by it.
        let is_there = |separator: &Self| separator.byte().is_none_or(|byte| line.contains(&byte));
        let those_there = || SEPARATORS.into_iter().filter(is_there);
        let makes = |fields| those_there().find(|separator| separator.split(line).len() >= fields);
        makes(UNTIMED).or_else(|| makes(UNTIMED - 1)).unwrap_or(Self::Blank)
    }

    /// Returns the fields of a line.
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

    /// Returns the byte between two fields, if it is one.
    pub(super) fn byte(self) -> Option<u8> {
        match self {
            Self::Tab => Some(b'\t'),
            Self::Comma => Some(b','),
            Self::Semicolon => Some(b';'),
            Self::Blank | Self::DoubleColon => None,
        }
    }
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

impl Form {
    /// Returns the form of a line.
    pub(super) fn of(line: &[u8]) -> Self {
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
const SEPARATORS: [Separator; 5] = [
    Separator::DoubleColon,
    Separator::Tab,
    Separator::Semicolon,
    Separator::Comma,
    Separator::Blank,
];
