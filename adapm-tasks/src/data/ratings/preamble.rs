//! The first lines of a file of ratings: comments to leave out, and what separates fields; and all
//! lines after them, one at a time ([`Lines`]).

use std::io::{BufRead, Read as _};

use memchr::memrchr;

use crate::data::bytes::HEAD_BYTES;
use crate::data::error::RatingFault;
use crate::data::ratings::columns::Columns;
use crate::data::ratings::form::Form;
use crate::data::ratings::matrix_market::is_banner;
use crate::data::ratings::rating::{LINE_BYTES_MAX, Stop};
use crate::data::ratings::text::{names_of, rating_len};

/// Returns true if a line names the columns of ratings.
pub(crate) fn names_ratings(line: &[u8]) -> bool {
    names_of(line, Form::of(line)).is_some_and(|names| Columns::are_known(&names))
}

/// The start of the first line that is no comment, and the form of lines.
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

impl Preamble {
    /// Reads as much of a file into `head` as is needed to decide; `None` if there are no lines but
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

    /// Returns the preamble of a file that begins with these lines; `None` if all are comments.
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
            // This line, written for Excel, names the separator.
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

    /// Returns the first of the lines before `line`, the one of this preamble, that is a rating as
    /// it is, else this one.
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

/// Bytes of comments before the first rating.
const COMMENT_BYTES_MAX: usize = 1 << 24;
