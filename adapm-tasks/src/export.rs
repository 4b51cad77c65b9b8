//! Vectors of a model in forms that other programs read: NumPy's, those of the Embedding Projector
//! of TensorFlow, and lines of text.
//!
//! ```text
//!   model --tables()--> Table: rows with names --> .npy: numbers alone, and a file of names
//!                                              --> lines of numbers between tabs, and a file of names
//!                                              --> lines of a name and its numbers
//! ```
//!
//! Each model lists its tables: [`kge`](crate::kge::Checkpoint::tables),
//! [`mf`](crate::mf::Checkpoint::tables), [`wv`](crate::wv::Vectors::tables),
//! [`ctr`](crate::ctr::Predictor::tables), [`gnn`](crate::gnn::NodeVectors::tables).
//!
//! ```
//! use adapm_tasks::export::Table;
//!
//! let values = [1.0, 0.5, -2.0, 0.1];
//! let table = Table::new("words", [2, 2], |row| [b"sun", b"sea"][row].into(), |row| {
//!     values[2 * row..][..2].into()
//! });
//! let (mut numbers, mut names) = (Vec::new(), Vec::new());
//! table.write_numbers(&mut numbers)?;
//! table.write_names(&mut names)?;
//! assert_eq!(numbers, b"1\t0.5\n-2\t0.1\n");
//! assert_eq!(names, b"sun\nsea\n");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};

use crate::run::CheckpointError;
use crate::run::values::{Ahead, Values};

/// Rows of equally many numbers, each with a name.
pub struct Table<'a> {
    kind: &'static str,
    rows: usize,
    width: usize,
    name: Box<dyn Fn(usize) -> Cow<'a, [u8]> + 'a>,
    row: Box<dyn Fn(usize) -> io::Result<Cow<'a, [f32]>> + 'a>,
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table of {} {} with {} numbers each", self.rows, self.kind, self.width)
    }
}

impl<'a> Table<'a> {
    /// Returns a table of `kind`, a noun in the plural, with the names and the numbers of its rows
    /// by their index.
    #[must_use]
    pub fn new(
        kind: &'static str,
        [rows, width]: [usize; 2],
        name: impl Fn(usize) -> Cow<'a, [u8]> + 'a,
        row: impl Fn(usize) -> Cow<'a, [f32]> + 'a,
    ) -> Self {
        let row = move |index| Ok(row(index));
        Self { kind, rows, width, name: Box::new(name), row: Box::new(row) }
    }

    /// Returns a table whose rows are made of `values` as they are written, which takes the memory
    /// of a piece.
    pub(crate) fn of_values(
        kind: &'static str,
        [rows, width]: [usize; 2],
        name: impl Fn(usize) -> Cow<'a, [u8]> + 'a,
        values: &Values,
        row: impl Fn(&mut Ahead, usize) -> Result<Vec<f32>, CheckpointError> + 'a,
    ) -> Self {
        let ahead = RefCell::new(Ahead::new(values));
        let row = move |index| Ok(row(&mut ahead.borrow_mut(), index)?.into());
        Self { kind, rows, width, name: Box::new(name), row: Box::new(row) }
    }

    /// Returns the kind of its rows, in the plural: `entities`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the numbers of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes all numbers as NumPy's format 1.0 has them: `float32`, little-endian, row by row,
    /// behind a header that ends at a multiple of 64 bytes. `numpy.load` reads and maps it.
    ///
    /// # Errors
    ///
    /// Errors of `out`, and a row that cannot be read from its file.
    pub fn write_npy(&self, out: &mut dyn Write) -> io::Result<()> {
        let (rows, width) = (self.rows, self.width);
        let dict =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
        let end = (NPY_MAGIC.len() + 2 + dict.len() + 1).next_multiple_of(NPY_ALIGNMENT);
        let len = end - NPY_MAGIC.len() - 2;
        out.write_all(NPY_MAGIC)?;
        // Two numbers of up to 20 digits: far less than 65,536 bytes.
        out.write_all(&(len as u16).to_le_bytes())?;
        writeln!(out, "{dict:0$}", len - 1)?;
        let mut bytes = Vec::with_capacity(4 * width);
        for row in 0..rows {
            bytes.clear();
            bytes.extend((self.row)(row)?.iter().flat_map(|number| number.to_le_bytes()));
            out.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Writes a line for each row: its numbers between tabs, as short as they can be and still read
    /// as the same bits.
    ///
    /// # Errors
    ///
    /// Errors of `out`, and a row that cannot be read from its file.
    pub fn write_numbers(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..self.rows {
            for (at, number) in (self.row)(row)?.iter().enumerate() {
                let between = if at == 0 { "" } else { "\t" };
                write!(out, "{between}{number}")?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes the names, a line for each row. A tab or a line end in a name becomes a blank.
    ///
    /// # Errors
    ///
    /// Errors of `out`, and a row that cannot be read from its file.
    pub fn write_names(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..self.rows {
            self.write_name(row, out)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes a line for each row: `label`, which may be empty, its name, and its numbers, between
    /// tabs, as [`write_names`](Self::write_names) and [`write_numbers`](Self::write_numbers) do.
    ///
    /// # Errors
    ///
    /// Errors of `out`, and a row that cannot be read from its file.
    pub fn write_lines(&self, label: &str, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..self.rows {
            out.write_all(label.as_bytes())?;
            out.write_all(if label.is_empty() { b"" } else { b"\t" })?;
            self.write_name(row, out)?;
            (self.row)(row)?.iter().try_for_each(|number| write!(out, "\t{number}"))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn write_name(&self, row: usize, out: &mut dyn Write) -> io::Result<()> {
        let mut name = (self.name)(row);
        let is_between = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r');
        if name.iter().any(is_between) {
            name.to_mut().iter_mut().filter(|byte| is_between(byte)).for_each(|byte| *byte = b' ');
        }
        out.write_all(&name)
    }
}

/// The bytes that a file of NumPy begins with: its name and version 1.0.
const NPY_MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";
/// The numbers begin at a multiple of so many bytes.
const NPY_ALIGNMENT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[f32], width: usize) -> Table<'_> {
        let name = |row: usize| format!("row\t{row}").into_bytes().into();
        let row = move |row: usize| values[row * width..][..width].into();
        Table::new("rows", [values.len() / width, width], name, row)
    }

    #[test]
    fn an_npy_file_has_a_header_of_whole_blocks_and_the_bits_of_all_numbers() {
        let values = [1.5, -0.0, f32::MIN_POSITIVE, f32::NAN, 3e38, 0.1];
        for (width, shape) in [(1, "(6, 1)"), (2, "(3, 2)"), (6, "(1, 6)")] {
            let mut file = Vec::new();
            table(&values, width).write_npy(&mut file).expect("memory takes all bytes");
            assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
            let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
            assert!(end % 64 == 0 && file[end - 1] == b'\n', "{end}");
            let head = str::from_utf8(&file[10..end]).expect("text").trim_end();
            let expected =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
            assert_eq!(head, expected);
            let bits = file[end..]
                .chunks(4)
                .map(|bytes| u32::from_le_bytes([0, 1, 2, 3].map(|at| bytes[at])));
            assert!(bits.eq(values.iter().map(|value| value.to_bits())));
        }
    }

    #[test]
    fn numbers_of_lines_are_read_as_the_same_bits_and_names_take_one_line_each() {
        let values: Vec<f32> = (0..200).map(|at| 1.1_f32.powi(at * 7 - 700)).collect();
        let written = |write: fn(&Table<'_>, &mut Vec<u8>) -> io::Result<()>| {
            let mut bytes = Vec::new();
            write(&table(&values, 4), &mut bytes).expect("memory takes all bytes");
            String::from_utf8(bytes).expect("text")
        };
        let numbers = written(|table, out| table.write_numbers(out));
        let read = numbers.lines().flat_map(|line| line.split('\t'));
        let read = read.map(|number| number.parse::<f32>().expect("a number").to_bits());
        assert!(read.eq(values.iter().map(|value| value.to_bits())));
        assert!(numbers.lines().all(|line| line.split('\t').count() == 4));
        let names = written(|table, out| table.write_names(out));
        assert_eq!((names.lines().count(), names.lines().nth(1)), (50, Some("row 1")));
        let lines = written(|table, out| table.write_lines("kind", out));
        let first = |text: &str| text.lines().next().map(str::to_owned);
        let expected = format!("kind\trow 0\t{}", first(&numbers).expect("a line"));
        assert_eq!(first(&lines), Some(expected));
        let bare = written(|table, out| table.write_lines("", out));
        assert!(bare.starts_with("row 0\t"), "{bare}");
    }
}
