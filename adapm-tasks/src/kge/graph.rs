//! A knowledge graph: training, validation and test facts, and the names of what they are about.

use std::fmt;
use std::path::PathBuf;

use crate::data::names::Names;
use crate::data::triples::ColumnOrder;
use crate::run::config::Split;

/// A fact, or a claim: subject, relation, object, each as its index into the graph's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Triple {
    /// Index of the entity the fact is about.
    pub subject: u32,
    /// Index of the relation.
    pub relation: u32,
    /// Index of the entity the relation leads to.
    pub object: u32,
}

/// Choices of reading a graph. Start from [`GraphOptions::default`] and set fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphOptions {
    /// The order of the columns where no first line names them; `None`: head, relation, tail,
    /// unless that cannot be meant. With [`ColumnOrder::Htr`] the files of OpenKE are read, too.
    /// Defaults to `None`.
    pub column_order: Option<ColumnOrder>,
    /// Seed by which one file is split into train, valid and test. Defaults to 1.
    pub seed: u64,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self { column_order: None, seed: 1 }
    }
}

/// The source of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphSource {
    /// Files.
    Files(GraphFiles),
    /// Family trees from the seeded generator.
    Generated {
        /// The generator's seed.
        seed: u64,
    },
}

/// The files of a graph, and how they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphFiles {
    /// The folder, or the one file.
    pub path: PathBuf,
    /// The form of the files.
    pub form: GraphForm,
    /// The files of train, valid and test, those that there are.
    pub files: [Option<PathBuf>; 3],
    /// The seed by which one file was split.
    pub split_seed: Option<u64>,
    /// The first line that names the columns, and was skipped.
    pub header: Option<String>,
    /// Columns that it names and that were not used.
    pub unused: Vec<String>,
    /// Names with blanks at an end, which were cut off.
    pub trimmed: u64,
}

/// The form of the files of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphForm {
    /// Names, in this order where no first line tells another.
    Names(ColumnOrder),
    /// Integer ids (`.del`), with names where id files list them.
    Ids,
    /// OpenKE's integer ids, with names where id files list them.
    OpenKe,
}

impl fmt::Display for GraphSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(GraphFiles { path, form, header: None, .. }) => {
                write!(f, "{} ({form})", path.display())
            }
            Self::Files(GraphFiles { path, header: Some(header), .. }) => {
                write!(f, "{} (names, below `{header}`)", path.display())
            }
            Self::Generated { seed } => write!(f, "generated family trees (seed {seed})"),
        }
    }
}

impl fmt::Display for GraphForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Names(ColumnOrder::Hrt) => "names, h r t",
            Self::Names(ColumnOrder::Htr) => "names, h t r",
            Self::Ids => "integer ids, .del",
            Self::OpenKe => "OpenKE's ids, h t r",
        })
    }
}

/// Findings of reading a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphCounts {
    /// Triples that occur more than once in train, counted beyond the first; they are trained on
    /// once.
    pub duplicates: u64,
    /// The same in valid; they are evaluated as often as they occur.
    pub duplicates_valid: u64,
    /// The same in test.
    pub duplicates_test: u64,
    /// Triples of valid that are in train, too; they are evaluated.
    pub overlap_valid: u64,
    /// Triples of test that are in train, too; they are evaluated.
    pub overlap_test: u64,
    /// Triples of valid that are in test, too; they are evaluated.
    pub valid_in_test: u64,
    /// Triples of valid with an entity or relation that train does not know; they are evaluated.
    pub unknown_valid: u64,
    /// Triples of test with an entity or relation that train does not know; they are evaluated.
    pub unknown_test: u64,
    /// Entities of valid and test that train does not know.
    pub unknown_entities: u64,
    /// Relations of valid and test that train does not know.
    pub unknown_relations: u64,
}

/// A knowledge graph.
#[derive(Clone, PartialEq, Eq)]
pub struct Graph {
    pub(crate) train: Vec<Triple>,
    pub(crate) valid: Vec<Triple>,
    pub(crate) test: Vec<Triple>,
    pub(crate) entities: Names,
    pub(crate) relations: Names,
    pub(crate) counts: GraphCounts,
    pub(crate) source: GraphSource,
}

impl fmt::Debug for Graph {
    /// Sizes instead of all facts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [train, valid, test] = [&self.train, &self.valid, &self.test].map(Vec::len);
        write!(
            f,
            "Graph of {train} / {valid} / {test} triples, {} entities, ",
            self.entities.len()
        )?;
        write!(f, "{} relations, {}", self.relations.len(), self.source)
    }
}

impl Graph {
    /// Facts to train on, without duplicates.
    #[must_use]
    pub fn train(&self) -> &[Triple] {
        &self.train
    }

    /// Facts to select a model on.
    #[must_use]
    pub fn valid(&self) -> &[Triple] {
        &self.valid
    }

    /// Facts to report on.
    #[must_use]
    pub fn test(&self) -> &[Triple] {
        &self.test
    }

    /// Returns the facts of a split.
    pub(crate) fn part(&self, split: Split) -> &[Triple] {
        match split {
            Split::Valid => &self.valid,
            Split::Test => &self.test,
        }
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

    /// Returns the findings of reading.
    #[must_use]
    pub fn counts(&self) -> GraphCounts {
        self.counts
    }

    /// Returns the source of the graph.
    #[must_use]
    pub fn source(&self) -> &GraphSource {
        &self.source
    }

    /// Returns true if the graph is generated, which has to be stated wherever a figure of it is
    /// printed.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        matches!(self.source, GraphSource::Generated { .. })
    }
}
