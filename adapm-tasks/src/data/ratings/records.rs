//! Lines of fields: separated by one byte, with quotes, as csv-core reads them; or by `::` or runs
//! of blanks, without.

use std::io::{self, BufRead, Read as _};

use csv_core::ReadRecordResult;
use memchr::memmem;

use crate::data::error::RatingFault;
use crate::data::ratings::rating::{Fault, LINE_BYTES_MAX, Stop};

/// A field without blanks around it, and the byte of the line at which it starts, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) column: u64,
}

/// The place of a field.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    end: usize,
    /// The byte of the line, from 1.
    column: u64,
}

/// The fields of a line.
#[derive(Debug, Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Lines of a file, one at a time; those without a field are left out.
pub(crate) trait Records {
    /// Goes to the next line. Returns false at the end.
    fn next(&mut self) -> Result<bool, Stop>;

    /// Returns the running line.
    fn record(&self) -> &Record;

    /// Returns the number of the running line, from 1.
    fn number(&self) -> u64;
}

impl Record {
    /// Returns the number of fields.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns a field; empty beyond the last.
    #[inline]
    pub(crate) fn field(&self, index: usize) -> Field<'_> {
        let Some(Place { start, end, column }) = self.places.get(index).copied() else {
            return Field { bytes: &[], column: self.end() };
        };
        let bytes = &self.bytes[start..end];
        let trimmed = bytes.trim_ascii_start();
        Field {
            bytes: trimmed.trim_ascii_end(),
            column: column + (bytes.len() - trimmed.len()) as u64,
        }
    }

    /// Returns a field with the blanks around it.
    pub(crate) fn untrimmed(&self, index: usize) -> &[u8] {
        self.places.get(index).map_or(&[], |place| &self.bytes[place.start..place.end])
    }

    /// Returns all fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        (0..self.len()).map(|index| self.field(index))
    }

    /// Checks that there are as many fields as there should be.
    #[inline]
    pub(crate) fn check_count(&self, expected: usize) -> Result<(), Fault> {
        let found = self.len();
        if found == expected {
            return Ok(());
        }
        let last = self.places.last().map_or(0, |last| last.end);
        if self.bytes[..last].contains(&b'\n') {
            return Err((1, RatingFault::OpenQuote));
        }
        Err(match self.places.get(expected) {
            None => (self.end(), RatingFault::TooFewFields { found, expected }),
            Some(_) => (self.field(expected).column, RatingFault::TooManyFields { expected }),
        })
    }

    /// Returns the number of the byte after the last field, counted from 1.
    fn end(&self) -> u64 {
        self.places.last().map_or(1, |last| last.column + (last.end - last.start) as u64)
    }
}

/// Lines of fields with one byte between them.
pub(crate) struct Separated<R> {
    source: R,
    parser: csv_core::Reader,
    record: Record,
    /// Where its fields end.
    ends: Vec<usize>,
    /// The line as it stands in the file, if it may have quotes: they are not in the fields.
    raw: Vec<u8>,
    separator: u8,
    has_quotes: bool,
    number: u64,
}

impl<R: BufRead> Separated<R> {
    /// Reads the lines after line `number`. Quotes are characters like others unless `is_quoted`.
    pub(crate) fn new(source: R, separator: u8, is_quoted: bool, number: u64) -> Self {
        let mut parser =
            csv_core::ReaderBuilder::new().delimiter(separator).quoting(is_quoted).build();
        parser.set_line(number + 1);
        let record = Record { bytes: vec![0; LINE_BYTES_MAX], places: Vec::new() };
        Self {
            source,
            parser,
            record,
            ends: vec![0; FIELDS_MAX],
            raw: Vec::new(),
            separator,
            has_quotes: is_quoted,
            number,
        }
    }

    /// Passes the ends of lines before the next one.
    fn skip_ends(&mut self) -> Result<(), Stop> {
        loop {
            let input = fill(&mut self.source)?;
            let ends = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let is_end = ends < input.len() || input.is_empty();
            let lines = input[..ends].iter().filter(|byte| **byte == b'\n').count() as u64;
            self.parser.set_line(self.parser.line() + lines);
            self.source.consume(ends);
            if is_end {
                self.number = self.parser.line();
                return Ok(());
            }
        }
    }

    /// Reads the fields of the next line. Returns false at the end.
    #[inline]
    fn read(&mut self) -> Result<bool, Stop> {
        self.skip_ends()?;
        let Self {
            source,
            parser,
            record: Record { bytes, places },
            ends,
            raw,
            separator,
            has_quotes,
            ..
        } = self;
        let (mut len, mut fields) = (0, 0);
        raw.clear();
        loop {
            let input = fill(source)?;
            let (result, taken, written, ended) =
                parser.read_record(input, &mut bytes[len..], &mut ends[fields..]);
            if *has_quotes {
                raw.extend_from_slice(&input[..taken]);
            }
            source.consume(taken);
            (len, fields) = (len + written, fields + ended);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(false),
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    return Err((1, RatingFault::LineTooLong).into());
                }
            }
        }
        places.clear();
        let (mut start, mut from) = (0, 0);
        for &end in &ends[..fields] {
            let field = raw.get(from..).unwrap_or_default();
            let is_quoted = field.starts_with(b"\"");
            places.push(Place { start, end, column: (from + usize::from(is_quoted) + 1) as u64 });
            from += if is_quoted { quoted_len(field, *separator) } else { end - start } + 1;
            start = end;
        }
        Ok(true)
    }
}

/// Bytes of a field that begins with a quote, up to the separator after it.
fn quoted_len(line: &[u8], separator: u8) -> usize {
    let mut is_open = false;
    let is_end = |byte: &u8| {
        is_open ^= *byte == b'"';
        !is_open && *byte == separator
    };
    line.iter().position(is_end).unwrap_or(line.len())
}

impl<R: BufRead> Records for Separated<R> {
    #[inline]
    fn next(&mut self) -> Result<bool, Stop> {
        while self.read()? {
            if self.record.len() > 1 || !self.record.field(0).bytes.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn record(&self) -> &Record {
        &self.record
    }

    fn number(&self) -> u64 {
        self.number
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
    /// Returns the lines after line `number`.
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

/// Lines of fields with `::` between them, or blanks.
pub(crate) struct Split<R> {
    lines: Lines<R>,
    /// `::`; without, runs of blanks.
    is_by_colons: bool,
    record: Record,
}

impl<R: BufRead> Split<R> {
    /// Reads the lines after the current one.
    pub(crate) fn new(lines: Lines<R>, is_by_colons: bool) -> Self {
        Self { lines, is_by_colons, record: Record::default() }
    }
}

impl<R: BufRead> Records for Split<R> {
    #[inline]
    fn next(&mut self) -> Result<bool, Stop> {
        if !self.lines.next()? {
            return Ok(false);
        }
        let Record { bytes, places } = &mut self.record;
        std::mem::swap(bytes, &mut self.lines.line);
        places.clear();
        if self.is_by_colons {
            split_colons(bytes, places)
        } else {
            split_blanks(bytes, places)
        }
        if places.len() > FIELDS_MAX { Err((1, RatingFault::LineTooLong).into()) } else { Ok(true) }
    }

    fn record(&self) -> &Record {
        &self.record
    }

    fn number(&self) -> u64 {
        self.lines.number
    }
}

fn split_blanks(line: &[u8], places: &mut Vec<Place>) {
    let mut at = 0;
    loop {
        let start = at + line[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let end =
            start + line[start..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        if start == end {
            return;
        }
        places.push(Place { start, end, column: start as u64 + 1 });
        at = end;
    }
}

fn split_colons(line: &[u8], places: &mut Vec<Place>) {
    let mut start = 0;
    loop {
        let end = memmem::find(&line[start..], b"::").map_or(line.len(), |len| start + len);
        places.push(Place { start, end, column: start as u64 + 1 });
        if end == line.len() {
            return;
        }
        start = end + 2;
    }
}

fn fill<R: BufRead>(source: &mut R) -> Result<&[u8], Stop> {
    // Asked twice, as what is returned cannot be asked again.
    while let Err(error) = source.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(Stop::Io(error));
        }
    }
    source.fill_buf().map_err(Stop::Io)
}

/// Fields of a line; more are no line of ratings.
const FIELDS_MAX: usize = 1 << 10;
