//! Parameters of a trained model in a file, and as text that people and other programs read. And
//! digests: numbers that differ between graphs, or parameters, that differ, which processes compare
//! before they train together.
//!
//! | tensor | shape | what |
//! | --- | --- | --- |
//! | `entities`, `relations` | `[names, numbers]` | vectors; of rescal's relations, `dim x dim` numbers, row by row |
//! | `inverses` | as `relations` | those of relations, if they have inverses |
//! | `entities.names`, `relations.names` | | lines |
//!
//! The head has the place of the weight of frequency; what it weighs is found again in the training
//! facts. Only parameters are kept, no accumulators. The bytes do not depend on how many nodes held
//! the values.
//!
//! Older files are read, too ([`crate::run::file`]):
//!
//! ```text
//!   "adapmckp" | version u32 | task, model: text | dim u64 | kind u8 | layout digest u64
//!   | entities: count u64, names | relations: count u64, names | digest of the training facts u64
//!   | floats u64 | values in key order f32 | checksum u64
//! ```
//!
//! The kind is 1 with inverse relations, else 0, and twice the place of the weight of frequency. A
//! name is its length `u32` and its bytes. Files of version 1 did not tell what they were trained
//! on, and are refused: by the names alone, parts drawn by another seed look the same.
//!
//! As text:
//!
//! ```text
//!   entity    tab name tab number tab number ...     dim numbers; complex ones: real parts, then imaginary parts
//!   relation  tab name tab number tab number ...     as many; rescal: dim x dim numbers, row by row
//!   inverse   tab name tab number tab number ...     of relations, if they have inverses
//! ```

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::names::Names;
use crate::export::Table;
use crate::kge::graph::{Graph, Triple};
use crate::kge::model::{Model, ModelKind, Shape};
use crate::kge::prior::Weight;
use crate::run::consistency::Digest;
use crate::run::file::{self, CheckpointError, Fault, Reader};
use crate::run::partial::{self, Head};
use crate::run::tensors::{Draft, Parts, Tensor};
use crate::run::values::Values;

/// Parameters of a trained model, in key order, with what is needed to use them.
#[derive(Clone, PartialEq)]
pub struct Checkpoint {
    pub(crate) model: ModelKind,
    pub(crate) dim: usize,
    pub(crate) reciprocal: bool,
    /// The weight of a candidate's frequency.
    pub(crate) weight: Weight,
    pub(crate) entities: Names,
    pub(crate) relations: Names,
    /// Digest of all facts of train, those held back among them.
    pub(crate) trained_on: u64,
    pub(crate) values: Values,
}

impl fmt::Debug for Checkpoint {
    /// Sizes instead of millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, dim, reciprocal, weight, entities, relations, values, .. } = self;
        write!(
            f,
            "Checkpoint of {model} {dim} (inverse relations: {reciprocal}, weight {weight:?}), "
        )?;
        write!(
            f,
            "{} entities, {} relations, {} floats",
            entities.len(),
            relations.len(),
            values.len()
        )
    }
}

impl Checkpoint {
    /// Reads a file written by [`save`](Self::save), all of it.
    ///
    /// # Errors
    ///
    /// A file that is missing, foreign, truncated, damaged, or of another format version.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let opened = Self::open(path)?;
        Ok(Self { values: opened.values.clone().load()?, ..opened })
    }

    /// Opens a file: its values stay there until they are asked for. An evaluation in several
    /// processes reads a share in each.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for values that are not as they were written: what uses them
    /// sees that as far as its own documentation says.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let (head, values) = partial::open(path, TASK)?;
        Ok(Self { values, ..head })
    }

    /// Parses the bytes of the file at `path`.
    #[cfg(feature = "testing")]
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        let (head, values) = partial::parse(bytes, path, TASK)?;
        Ok(Self { values, ..head })
    }

    /// Writes the parameters in key order; the same bytes for any number of nodes. An older file of
    /// that name stays as it is until the new one is complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        file::save(path, |file| self.write_to(file).map(drop))
    }

    /// Returns the score function.
    #[must_use]
    pub fn model(&self) -> ModelKind {
        self.model
    }

    /// Returns the length of an entity's vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Names of the entities.
    #[must_use]
    pub fn entities(&self) -> &Names {
        &self.entities
    }

    /// Names of the relations.
    #[must_use]
    pub fn relations(&self) -> &Names {
        &self.relations
    }

    /// Returns true if every relation has an inverse with parameters of its own.
    #[must_use]
    pub fn is_reciprocal(&self) -> bool {
        self.reciprocal
    }

    /// Returns the weight of a candidate's frequency with the relation in its score, beside the
    /// vectors.
    #[must_use]
    pub fn frequency_weight(&self) -> f32 {
        self.weight.factor()
    }

    /// Checks that the parameters are of the graph's entities and relations, and were trained on
    /// its train part: else what is to be ranked may have been trained on.
    pub(crate) fn check_data(&self, graph: &Graph) -> Result<(), CheckpointError> {
        if self.entities != graph.entities || self.relations != graph.relations {
            return Err(CheckpointError::OtherData {
                checkpoint: (self.entities.len(), self.relations.len()),
                graph: (graph.entities.len(), graph.relations.len()),
            });
        }
        if self.trained_on == digest_of_train(graph) {
            Ok(())
        } else {
            Err(CheckpointError::OtherTraining { of: "triples" })
        }
    }

    /// Writes the bytes of the file.
    ///
    /// # Errors
    ///
    /// What `inner` refuses, and values that cannot be read.
    pub fn write_to<W: io::Write>(&self, inner: W) -> io::Result<W> {
        let settings = Settings {
            model: self.model.name().to_owned(),
            dim: self.dim,
            reciprocal: self.reciprocal,
            weight: self.weight.place(),
            layout: self.layout_digest(),
            trained_on: self.trained_on,
        };
        let draft = Draft::new(TASK, &settings)?
            .names(ENTITIES, &self.entities)
            .names(RELATIONS, &self.relations);
        let tensors = self.tensors().ok_or(io::ErrorKind::InvalidInput)?;
        draft.write(&tensors, &self.values, inner)
    }

    /// Returns the lengths of values; `None` if they cannot be laid out.
    pub(super) fn shape(&self) -> Option<Shape> {
        let relations = self.relations.len() as u64;
        let model = Model { kind: self.model, dim: self.dim };
        // What a file claims may be too large to multiply.
        self.dim.checked_mul(self.dim)?;
        Some(Shape {
            entities: self.entities.len() as u64,
            relations: if self.reciprocal { 2 * relations } else { relations },
            entity_len: self.dim,
            relation_len: model.relation_len(),
        })
    }

    /// Returns the digest of the layout of the parameters; 0 for what cannot be laid out.
    fn layout_digest(&self) -> u64 {
        let layout = self.shape().and_then(|shape| shape.groups().layout().ok());
        layout.map_or(0, |layout| layout.digest::<f32>())
    }
}

/// The head of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Settings {
    model: String,
    dim: usize,
    reciprocal: bool,
    /// The place of the weight of frequency.
    weight: usize,
    /// The digest of the layout.
    layout: u64,
    trained_on: u64,
}

impl Settings {
    /// Returns the model of these names, without values.
    fn of(self, entities: Names, relations: Names) -> Result<Checkpoint, Fault> {
        let Self { dim, reciprocal, layout, trained_on, .. } = self;
        let weight = Weight::at(self.weight).ok_or(Fault::Corrupt)?;
        let model = self.model.parse().map_err(|_| Fault::Corrupt)?;
        let values = Values::default();
        let checkpoint =
            Checkpoint { model, dim, reciprocal, weight, entities, relations, trained_on, values };
        // What cannot be laid out has no digest.
        let is_of_layout = layout != 0 && checkpoint.layout_digest() == layout;
        if is_of_layout { Ok(checkpoint) } else { Err(Fault::Corrupt) }
    }
}

/// The values are left out.
impl Head for Checkpoint {
    fn of_parts(parts: &Parts<'_>) -> Result<Self, Fault> {
        let names = |of| parts.names(of)?.ok_or(Fault::Corrupt);
        parts.head::<Settings>()?.of(names(ENTITIES)?, names(RELATIONS)?)
    }

    fn of_old(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let model = String::from_utf8_lossy(reader.text()?).into_owned();
        let dim = usize::try_from(reader.count()?).map_err(|_| Fault::Corrupt)?;
        let [kind] = reader.array()?;
        let (reciprocal, weight) = (kind % 2 == 1, usize::from(kind / 2));
        let layout = reader.count()?;
        let (entities, relations) = (names(reader)?, names(reader)?);
        let trained_on = reader.count()?;
        let settings = Settings { model, dim, reciprocal, weight, layout, trained_on };
        settings.of(entities, relations)
    }

    fn tensors(&self) -> Option<Vec<Tensor>> {
        let Shape { entities, entity_len, relation_len, .. } = self.shape()?;
        let relations = self.relations.len() as u64;
        let mut tensors = vec![
            Tensor::new(ENTITIES, entities, entity_len),
            Tensor::new(RELATIONS, relations, relation_len),
        ];
        if self.reciprocal {
            tensors.push(Tensor::new("inverses", relations, relation_len));
        }
        Some(tensors)
    }
}

fn names(reader: &mut Reader<'_>) -> Result<Names, Fault> {
    let mut names = Names::default();
    // No memory is set aside for what the count claims.
    for _ in 0..reader.count()? {
        names.push(reader.name()?);
    }
    Ok(names)
}

/// Returns the digest of all facts and names of a graph, in order.
pub(crate) fn digest_of_graph(graph: &Graph) -> u64 {
    let mut digest = Digest::new();
    for triples in [&graph.train, &graph.valid, &graph.test] {
        add_triples(&mut digest, triples);
    }
    add_names(&mut digest, &graph.entities);
    add_names(&mut digest, &graph.relations);
    digest.sum()
}

/// Returns the digest of the facts of train, in order.
pub(crate) fn digest_of_train(graph: &Graph) -> u64 {
    let mut digest = Digest::new();
    add_triples(&mut digest, &graph.train);
    digest.sum()
}

fn add_names(digest: &mut Digest, names: &Names) {
    digest.word(names.len() as u64);
    for index in 0..names.len() {
        digest.bytes(names.bytes(index).unwrap_or_default());
    }
}

fn add_triples(digest: &mut Digest, triples: &[Triple]) {
    digest.word(triples.len() as u64);
    for triple in triples {
        digest.word(u64::from(triple.subject) << 32 | u64::from(triple.object));
        digest.word(u64::from(triple.relation));
    }
}

impl Checkpoint {
    /// Writes all parameters as lines of fields between tabs: what it is, its name, its numbers, as
    /// short as they can be and still read as the same bits. An older file of that name stays as it
    /// is until the new one is complete.
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
    pub fn export_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut labels = ["entity", "relation", "inverse"].into_iter().zip(self.tables());
        labels.try_for_each(|(label, table)| table.write_lines(label, out))
    }

    /// Returns the vectors of `entities` and `relations`, and the `inverses` of relations, if these
    /// have parameters of their own.
    #[must_use]
    pub fn tables(&self) -> Vec<Table<'_>> {
        let relation_len = Model { kind: self.model, dim: self.dim }.relation_len();
        let relations = self.entities.len() * self.dim;
        let inverses = relations + self.relations.len() * relation_len;
        let mut tables = vec![
            self.table("entities", &self.entities, 0, self.dim),
            self.table("relations", &self.relations, relations, relation_len),
        ];
        if self.reciprocal {
            tables.push(self.table("inverses", &self.relations, inverses, relation_len));
        }
        tables
    }

    /// Returns the table of the vectors from value `first` on.
    fn table<'a>(
        &'a self,
        kind: &'static str,
        names: &'a Names,
        first: usize,
        width: usize,
    ) -> Table<'a> {
        let name = |row| Cow::from(names.bytes(row).unwrap_or_default());
        Table::of_values(kind, [names.len(), width], name, &self.values, move |values, row| {
            let start = first + row * width;
            values.get(start..start + width).map(<[f32]>::to_vec)
        })
    }
}

const TASK: &str = "kge";
const ENTITIES: &str = "entities";
const RELATIONS: &str = "relations";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kge::ModelKind;
    use crate::kge::prior::Weight;

    #[test]
    fn graphs_that_differ_anywhere_have_other_digests() {
        let graph = Graph::families(1, 2);
        let same = digest_of_graph(&graph);
        assert_eq!(same, digest_of_graph(&Graph::families(1, 2)));
        assert_ne!(same, digest_of_graph(&Graph::families(2, 2)));

        let mut changed = graph.clone();
        changed.test.last_mut().expect("has facts").object ^= 1;
        assert_ne!(same, digest_of_graph(&changed));
        let mut swapped = graph.clone();
        swapped.train.swap(0, 1);
        assert_ne!(same, digest_of_graph(&swapped));
        let mut moved = graph.clone();
        moved.test.extend(moved.valid.pop());
        assert_ne!(same, digest_of_graph(&moved));
        let mut renamed = graph.clone();
        renamed.entities.push(b"one more");
        assert_ne!(same, digest_of_graph(&renamed));
    }

    #[test]
    fn every_vector_has_a_line_with_its_name() {
        let names = |of: &[&str]| {
            let mut names = Names::default();
            of.iter().for_each(|name| names.push(name.as_bytes()));
            names
        };
        let written = |model, reciprocal, floats: u8| {
            let values = (0..floats).map(f32::from).collect::<Vec<_>>().into();
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
        let complex =
            "entity\tOslo\t0\t1\nentity\tNew York\t2\t3\nrelation\tin\t4\t5\ninverse\tin\t6\t7\n";
        assert_eq!(written(ModelKind::Complex, true, 8), complex);
        let rescal = "entity\tOslo\t0\t1\nentity\tNew York\t2\t3\nrelation\tin\t4\t5\t6\t7\n";
        assert_eq!(written(ModelKind::Rescal, false, 8), rescal);
    }
}
