//! Parameters of a trained model as text that people and other programs read.
//!
//! ```text
//!   entity    tab name tab number tab number ...     dim numbers; complex: real parts, then imaginary parts
//!   relation  tab name tab number tab number ...     as many; rescal: dim x dim numbers, row by row
//!   inverse   tab name tab number tab number ...     of relations, if they have inverses
//! ```

use std::io::{self, Write};
use std::path::Path;

use crate::kge::checkpoint::Checkpoint;
use crate::kge::graph::Names;
use crate::kge::model::Model;
use crate::run::file::{self, CheckpointError};

impl Checkpoint {
    /// Writes all parameters as lines of fields between tabs: what it is, its name, its numbers, as short as they can be and
    /// still read as the same bits. An older file of that name stays as it is until the new one is complete.
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
        let relation_len = Model { kind: self.model, dim: self.dim }.relation_len();
        let rest = write_lines(out, "entity", &self.entities, &self.values, self.dim)?;
        let rest = write_lines(out, "relation", &self.relations, rest, relation_len)?;
        if self.reciprocal {
            write_lines(out, "inverse", &self.relations, rest, relation_len)?;
        }
        Ok(())
    }
}

/// Writes a line for each name with the first of `values`, and gives those behind.
fn write_lines<'a>(
    out: &mut (impl Write + ?Sized),
    kind: &str,
    names: &Names,
    values: &'a [f32],
    len: usize,
) -> io::Result<&'a [f32]> {
    let (own, rest) = values.split_at(names.len() * len);
    for (index, value) in own.chunks_exact(len).enumerate() {
        write!(out, "{kind}\t")?;
        out.write_all(names.bytes(index).unwrap_or_default())?;
        value.iter().try_for_each(|number| write!(out, "\t{number}"))?;
        out.write_all(b"\n")?;
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::kge::ModelKind;
    use crate::kge::prior::Weight;

    #[test]
    fn every_vector_has_a_line_with_its_name() {
        let names = |of: &[&str]| {
            let mut names = Names::default();
            of.iter().for_each(|name| names.push(name.as_bytes()));
            names
        };
        let written = |model, reciprocal, floats: u8| {
            let values = Arc::new((0..floats).map(f32::from).collect());
            let (entities, relations) = (names(&["Oslo", "New York"]), names(&["in"]));
            let checkpoint = Checkpoint {
                model,
                dim: 2,
                reciprocal,
                weight: Weight::default(),
                entities,
                relations,
                trained_on: 0,
                values,
            };
            let mut out = Vec::new();
            checkpoint.export_to(&mut out).expect("memory takes every byte");
            String::from_utf8(out).expect("text")
        };
        let complex = "entity\tOslo\t0\t1\nentity\tNew York\t2\t3\nrelation\tin\t4\t5\ninverse\tin\t6\t7\n";
        assert_eq!(written(ModelKind::Complex, true, 8), complex);
        let rescal = "entity\tOslo\t0\t1\nentity\tNew York\t2\t3\nrelation\tin\t4\t5\t6\t7\n";
        assert_eq!(written(ModelKind::Rescal, false, 8), rescal);
    }
}
