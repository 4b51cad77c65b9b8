//! The content of data, read as its task does.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use crate::ctr::program as ctr;
use crate::ctr::{Clicks, Encoding, Files};
use crate::data::{self, DataError};
use crate::files::is_shared;
use crate::gnn;
use crate::kge::{Graph, GraphOptions, GraphSource};
use crate::mf::Ratings;
use crate::run::{Split, TaskError};
use crate::wv::{Analogies, Corpus, CorpusError, Text};
use serde::Serialize;

use crate::cli::args::CheckArgs;
use crate::cli::data::sets::Task;
use crate::cli::failure::Failure;
use crate::cli::format;
use crate::cli::program::Finding;
use crate::kge::program as kge;
use crate::mf::program as mf;

/// The content of data.
#[derive(Default, Serialize)]
pub(super) struct Content {
    pub(super) format: String,
    /// By name.
    counts: BTreeMap<&'static str, u64>,
    /// Those that are of interest to people.
    #[serde(skip)]
    pub(super) counts_told: Vec<String>,
    /// Remarks on how it was read.
    pub(super) notes: Vec<String>,
    /// Findings that may make figures wrong.
    pub(super) problems: Vec<String>,
}

impl Content {
    fn add(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if finding.is_problem { &mut self.problems } else { &mut self.notes }
                .push(finding.text);
        }
    }
}

/// Reads the data at `path`.
pub(super) fn read(task: Task, path: &Path, args: &CheckArgs) -> Result<Content, Failure> {
    match task {
        Task::Kge => {
            let options =
                GraphOptions { column_order: args.column_order, ..GraphOptions::default() };
            Ok(of_graph(&Graph::load_with(path, &options).map_err(TaskError::Data)?))
        }
        Task::Mf => Ok(of_ratings(&Ratings::load(path).map_err(TaskError::Data)?)),
        Task::Wv => of_words(path),
        Task::Ctr => {
            let encoding = Encoding { schema: args.schema.clone(), ..Encoding::default() };
            let files = Files::of(path).map_err(TaskError::Data)?;
            Ok(of_clicks(&Clicks::load(&files, &encoding).map_err(TaskError::Data)?))
        }
        Task::Gnn => Ok(of_nodes(&gnn::Graph::load(path).map_err(TaskError::Data)?)),
    }
}

fn of_nodes(graph: &gnn::Graph) -> Content {
    let counts = graph.counts();
    let [train, valid, test] =
        [graph.train(), graph.held_out(Split::Valid), graph.held_out(Split::Test)]
            .map(|part| part.len() as u64);
    let (nodes, classes) = (graph.nodes() as u64, graph.classes() as u64);
    let mut content = Content {
        format: "edges, features and classes of nodes".to_owned(),
        counts: BTreeMap::from([
            ("train", train),
            ("valid", valid),
            ("test", test),
            ("nodes", nodes),
            ("edges", counts.edges),
            ("classes", classes),
            ("repeated", counts.repeated),
            ("loops", counts.loops),
            ("alone", counts.alone),
            ("bare", counts.bare),
        ]),
        ..Content::default()
    };
    let [train, valid, test, nodes, edges] =
        [train, valid, test, nodes, counts.edges].map(format::count);
    content.counts_told.push(format!("{train} train, {valid} valid, {test} test nodes"));
    content.counts_told.push(format!("{nodes} nodes, {edges} edges, {classes} classes"));
    content.add(gnn::program::findings(graph));
    if graph.train().is_empty() {
        let text = "no node is for train: nothing can be learnt".to_owned();
        content.add(vec![Finding::problem(text)]);
    }
    content
}

fn of_graph(graph: &Graph) -> Content {
    let format = match graph.source() {
        GraphSource::Files(files) => files.form.to_string(),
        other => other.to_string(),
    };
    let counts = graph.counts();
    let [train, valid, test] =
        [graph.train(), graph.valid(), graph.test()].map(|part| part.len() as u64);
    let (entities, relations) = (graph.entities().len() as u64, graph.relations().len() as u64);
    let mut content = Content {
        format,
        counts: BTreeMap::from([
            ("train", train),
            ("valid", valid),
            ("test", test),
            ("entities", entities),
            ("relations", relations),
            ("duplicates", counts.duplicates),
            ("duplicates_valid", counts.duplicates_valid),
            ("duplicates_test", counts.duplicates_test),
            ("overlap_valid", counts.overlap_valid),
            ("overlap_test", counts.overlap_test),
            ("valid_in_test", counts.valid_in_test),
            ("unknown_valid", counts.unknown_valid),
            ("unknown_test", counts.unknown_test),
            ("unknown_entities", counts.unknown_entities),
            ("unknown_relations", counts.unknown_relations),
        ]),
        ..Content::default()
    };
    let [train, valid, test, entities, relations] =
        [train, valid, test, entities, relations].map(format::count);
    content.counts_told.push(format!("{train} train, {valid} valid, {test} test triples"));
    content.counts_told.push(format!("{entities} entities, {relations} relations"));
    content.add(kge::findings(graph));
    content
}

fn of_ratings(ratings: &Ratings) -> Content {
    let counts = ratings.counts();
    let (train, valid, test) =
        (ratings.train_len(), ratings.valid_len() as u64, ratings.test_len() as u64);
    let (rows, columns) = (ratings.rows() as u64, ratings.columns() as u64);
    let mut content = Content {
        format: ratings.source().to_string(),
        counts: BTreeMap::from([
            ("train", train),
            ("valid", valid),
            ("test", test),
            ("rows", rows),
            ("columns", columns),
            ("comments", counts.comments),
            ("repeated", counts.repeated),
            ("trained_valid", counts.trained_valid),
            ("trained_test", counts.trained_test),
            ("unseen_valid", counts.unseen_valid),
            ("unseen_test", counts.unseen_test),
        ]),
        ..Content::default()
    };
    let [train, valid, test, rows, columns] =
        [train, valid, test, rows, columns].map(format::count);
    content.counts_told.push(format!(
        "{train} train, {valid} valid, {test} test cells; {rows} rows, {columns} columns"
    ));
    content.add(mf::findings(ratings));
    content
}

fn of_clicks(clicks: &Clicks) -> Content {
    let (features, fields) = clicks.features();
    let [train, valid, test] =
        [clicks.train_len(), clicks.len_of(Split::Valid), clicks.len_of(Split::Test)]
            .map(|count| count as u64);
    let mut content = Content {
        format: clicks.origin.to_string(),
        counts: BTreeMap::from([
            ("train", train),
            ("valid", valid),
            ("test", test),
            ("features", features),
            ("fields", fields as u64),
            ("unknown", clicks.findings.unknown),
        ]),
        ..Content::default()
    };
    let [train, valid, test, features] = [train, valid, test, features].map(format::count);
    content.counts_told.push(format!("{train} train, {valid} valid, {test} test examples"));
    content.counts_told.push(format!("{features} features of {fields} fields"));
    content.add(ctr::findings(clicks));
    content
}

/// Questions of analogy, if the file is such, else a text, as a pipe, which can be read once.
fn of_words(path: &Path) -> Result<Content, Failure> {
    if !is_shared(path)
        && let Ok(questions) = Analogies::load(path)
        && !questions.is_empty()
    {
        let asked = questions.len() as u64;
        return Ok(Content {
            format: "questions of analogy".to_owned(),
            counts: BTreeMap::from([("questions", asked)]),
            counts_told: vec![format!("{} questions", format::count(asked))],
            ..Content::default()
        });
    }
    let text = Text::open(path)?;
    let (format, bytes) = (format!("text ({})", text.source()), text.len());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut content = Content { format, ..Content::default() };
    content.counts.insert("bytes", bytes);
    match Corpus::count(text, 1, threads) {
        Ok(corpus) => {
            let (words, different) = (corpus.words(), corpus.vocabulary().len() as u64);
            content.counts.extend([("words", words), ("different_words", different)]);
            let [words, different] = [words, different].map(format::count);
            content
                .counts_told
                .push(format!("{}, {words} words, {different} different", format::bytes(bytes)));
        }
        Err(error @ (CorpusError::TooFewWords { .. } | CorpusError::NoContext { .. })) => {
            content.problems.push(error.to_string());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(content)
}

/// Returns the task that the data at `path` looks like it is for.
pub(super) fn task_of(path: &Path) -> Result<Task, Failure> {
    let is_there = |name: &str| path.join(name).exists();
    if ["train.del", "train.del.gz", "train2id.txt"].into_iter().any(is_there) {
        return Ok(Task::Kge);
    }
    if is_shared(path) {
        // It is not to be read twice.
        return Err(Failure::UnknownTask(path.to_path_buf()));
    }
    if let Some(task) = data::looks_like(path).and_then(|looks| looks.task().parse().ok()) {
        return Ok(task);
    }
    // What cannot be read looks like nothing.
    Err(match Graph::load(path) {
        Err(
            error @ (DataError::NotText { .. }
            | DataError::CutShort { .. }
            | DataError::Damaged { .. }
            | DataError::Unreadable { .. }),
        ) => Failure::Data(error),
        _ => Failure::UnknownTask(path.to_path_buf()),
    })
}
