//! Lines of a file, one at a time.

use std::io::{BufRead, Read as _};

use super::{LINE_BYTES_MAX, RatingFault, Stop};

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
