//! Factors of a trained model as text that people and other programs read.
//!
//! ```text
//!   mean    tab mean
//!   row     tab id tab effect tab number tab number ...     dim numbers
//!   column  tab id tab effect tab number tab number ...
//! ```
//!
//! The prediction for a row and a column is `mean + effect of the row + effect of the column + sum of the products of their numbers`; of one
//! that is not known nothing is added.

use std::io::{self, Write};
use std::path::Path;

use crate::mf::checkpoint::Checkpoint;
use crate::run::file::{self, CheckpointError};

impl Checkpoint {
    /// Writes the model as lines of fields between tabs: the mean; then `row` or `column`, its id in the data, its effect, its numbers,
    /// which are its factors times the root of the [scale](Self::scale); all as short as they can be and still read as the same
    /// bits. An older file of that name stays as it is until the new one is complete.
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
        writeln!(out, "mean\t{}", self.mean())?;
        let root = self.scale.sqrt() as f32;
        for key in 0..self.rows() + self.columns() {
            let (kind, id, effect, factors) = match key.checked_sub(self.rows()) {
                None => ("row", self.row_id(key), self.row_effect(key), self.row(key)),
                Some(column) => {
                    let (id, effect) = (self.column_id(column), self.column_effect(column));
                    ("column", id, effect, self.column(column))
                }
            };
            let id = id.map(|id| id.to_string()).unwrap_or_default();
            write!(out, "{kind}\t{id}\t{}", effect.unwrap_or_default())?;
            let mut numbers = factors.unwrap_or_default().iter().map(|factor| root * factor);
            numbers.try_for_each(|number| write!(out, "\t{number}"))?;
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
        let expected = "mean\t3.5\nrow\t7\t0.25\t0.5\t1\nrow\t18446744073709551615\t-0.5\t1.5\t2\ncolumn\t3\t0\t2.5\t-3\n";
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
    }
}
