//! Factors of a trained model as text that people and other programs read.
//!
//! ```text
//!   row     tab id tab number tab number ...     dim numbers
//!   column  tab id tab number tab number ...
//! ```
//!
//! The prediction for a row and a column is the sum of the products of their numbers.

use std::io::{self, Write};
use std::path::Path;

use crate::mf::checkpoint::Checkpoint;
use crate::run::file::{self, CheckpointError};

impl Checkpoint {
    /// Writes all factors as lines of fields between tabs: `row` or `column`, its id in the data, its numbers, as short as they
    /// can be and still read as the same bits. An older file of that name stays as it is until the new one is complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn export(&self, path: &Path) -> Result<(), CheckpointError> {
        file::save(path, |file| self.export_to(file))
    }

    /// Writes what [`export`](Self::export) does.
    ///
    /// # Errors
    ///
    /// What `out` refuses.
    pub fn export_to(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        for key in 0..self.rows() + self.columns() {
            let (kind, id, factors) = match key.checked_sub(self.rows()) {
                None => ("row", self.row_id(key), self.row(key)),
                Some(column) => ("column", self.column_id(column), self.column(column)),
            };
            let id = id.map(|id| id.to_string()).unwrap_or_default();
            write!(out, "{kind}\t{id}")?;
            factors.unwrap_or_default().iter().try_for_each(|number| write!(out, "\t{number}"))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::mf::checkpoint::tests::checkpoint;

    #[test]
    fn every_vector_has_a_line_with_its_id() {
        let mut out = Vec::new();
        checkpoint().export_to(&mut out).expect("memory takes every byte");
        let expected = "row\t7\t1\t2\nrow\t18446744073709551615\t3\t4\ncolumn\t3\t5\t-6\n";
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
    }
}
