//! Word vectors on the command line: what vectors are asked, and figures over the answers, for people and for programs.

use std::path::{Path, PathBuf};
use std::thread;

use adapm_tasks::run::{CheckpointError, TaskError};
use adapm_tasks::wv::{
    Analogies, AnalogyReport, Checkpoint, Corpus, SectionKind, Similarities, SimilarityReport, Tally, Text,
    Vectors, Vocabulary,
};
use serde::Serialize;

use crate::args::Given;
use crate::args::wv::{DataArgs, QuestionArgs};
use crate::failure::Failure;
use crate::progress::{Figure, Labels};
use crate::table::{Align, Table};
use crate::train::Plan;
use crate::{format, input};

mod eval;
mod train;

/// The name of the task.
const TASK: &str = "wv";

pub(crate) const LABELS: Labels = Labels { examples: "words", evaluating: "answering", quality: "accuracy" };

/// Flags that choose data.
const DATA_FLAGS: [&str; 3] = ["data", "data-seed", "sentences"];

impl Figure for AnalogyReport {
    fn figure(&self) -> f64 {
        self.total().accuracy()
    }
}

/// Reads the text that is asked for, or generates one, and counts its words.
fn corpus(args: &DataArgs) -> Result<Corpus, Failure> {
    let text = match &args.data {
        Some(name) => Text::open(&input::locate(TASK, name)?)?,
        None => Text::generated(args.data_seed, args.sentences),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    Ok(match &args.read_vocab {
        Some(path) => Corpus::with(text, Vocabulary::load(path, args.min_count)?, threads)?,
        None => Corpus::count(text, args.min_count, threads)?,
    })
}

/// Reads vectors of any form, and tells which it was.
pub(crate) fn vectors(path: &Path) -> Result<(Vectors, String), Failure> {
    match Checkpoint::load(path) {
        Ok(checkpoint) => Ok((checkpoint.vectors(), "of adapm".to_owned())),
        Err(CheckpointError::Foreign { .. }) => {
            let (vectors, form) = Vectors::open(path)?;
            Ok((vectors, form.to_string()))
        }
        Err(error) => Err(TaskError::Checkpoint(error).into()),
    }
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(table: &mut Table, corpus: &Corpus, args: &DataArgs, given: &Given) {
    let origin = input::origin(args.data.as_deref(), &DATA_FLAGS, given);
    let text = corpus.text();
    table.row(["data".to_owned(), text.source().to_string(), origin]);
    let sizes =
        format!("{}, {} words of the vocabulary", format::bytes(text.len()), format::count(corpus.words()));
    table.row(["", &sizes]);
    let words = format::count(corpus.vocabulary().len() as u64);
    let times = args.min_count;
    let vocabulary = match &args.read_vocab {
        None => format!("{words} words that occur {times} times or more"),
        Some(path) => format!("{words} words of {}, {times} times or more there", path.display()),
    };
    table.row(["vocabulary", &vocabulary, &given.among(&["min-count", "read-vocab"])]);
}

/// What vectors know, in numbers.
#[derive(Serialize)]
pub(super) struct Quality {
    /// Share of the seen questions with the right answer.
    accuracy: Option<f64>,
    /// Share of the seen questions to which the word nearest to the third is the right answer.
    baseline_accuracy: Option<f64>,
    /// Share of the questions whose words all have vectors.
    coverage: Option<f64>,
    /// Share of all questions with the right answer.
    accuracy_of_all: Option<f64>,
    semantic_accuracy: Option<f64>,
    syntactic_accuracy: Option<f64>,
    questions: Option<u64>,
    /// Spearman's correlation over the seen pairs.
    similarity: Option<f64>,
    similarity_coverage: Option<f64>,
    /// The best accuracy that is possible, where it is known: on generated text.
    best_accuracy: Option<f64>,
}

impl Quality {
    pub(super) fn new(
        analogies: Option<&AnalogyReport>,
        similarity: Option<&SimilarityReport>,
        are_planted: bool,
    ) -> Self {
        let total = analogies.map(AnalogyReport::total);
        let of_kind = |kind| analogies.map(|report| report.of_kind(kind).accuracy());
        Self {
            accuracy: total.map(Tally::accuracy),
            baseline_accuracy: total.map(Tally::baseline_accuracy),
            coverage: total.map(Tally::coverage),
            accuracy_of_all: total.map(Tally::accuracy_of_all),
            semantic_accuracy: of_kind(SectionKind::Semantic),
            syntactic_accuracy: of_kind(SectionKind::Syntactic),
            questions: total.map(|tally| tally.asked),
            similarity: similarity.and_then(|report| report.correlation),
            similarity_coverage: similarity.map(|report| report.seen as f64 / report.asked.max(1) as f64),
            best_accuracy: are_planted.then_some(BEST_ACCURACY),
        }
    }
}

/// A row per section and one of all; empty if nothing was asked.
pub(super) fn table(
    analogies: Option<&AnalogyReport>,
    similarity: Option<&SimilarityReport>,
    are_planted: bool,
) -> String {
    let mut text = String::new();
    if let Some(report) = analogies {
        let columns = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];
        let mut table = Table::new(&columns);
        table.row(["", "accuracy", "baseline", "seen", "coverage", "of all"]);
        for section in &report.sections {
            row(&mut table, &section.name, section.tally);
        }
        row(&mut table, "semantic", report.of_kind(SectionKind::Semantic));
        row(&mut table, "syntactic", report.of_kind(SectionKind::Syntactic));
        row(&mut table, "all", report.total());
        if are_planted {
            table.row(["best possible".to_owned(), format::figure(BEST_ACCURACY)]);
        }
        text.push_str(&table.render());
        text.push_str("baseline: the word nearest to the third of a question, which needs no analogy\n\n");
    }
    if let Some(report) = similarity {
        let mut table = Table::new(&[Align::Left]);
        let correlation = report.correlation.map_or_else(|| "none".to_owned(), format::figure);
        let (seen, asked) = (format::count(report.seen), format::count(report.asked));
        table.row(["similarity", &format!("Spearman {correlation} over {seen} of {asked} pairs")]);
        text.push_str(&table.render());
        text.push('\n');
    }
    text
}

fn row(table: &mut Table, name: &str, tally: Tally) {
    // What was not asked has no share.
    let share = |over: u64, share: f64| if over == 0 { "-".to_owned() } else { format::figure(share) };
    table.row([
        name.to_owned(),
        share(tally.seen, tally.accuracy()),
        share(tally.seen, tally.baseline_accuracy()),
        format!("{} of {}", format::count(tally.seen), format::count(tally.asked)),
        share(tally.asked, tally.coverage()),
        share(tally.asked, tally.accuracy_of_all()),
    ]);
}

/// Questions and pairs, if there are any.
pub(super) struct Asked {
    pub(super) questions: Option<Analogies>,
    /// The questions are those of the generated text.
    pub(super) are_planted: bool,
    pub(super) similarities: Option<Similarities>,
}

impl Asked {
    /// Reads what `args` name; if that is nothing, `planted` says whether to ask about the generated text.
    pub(super) fn new(args: &QuestionArgs, planted: bool) -> Result<Self, Failure> {
        let path = |name: &PathBuf| input::locate(TASK, name);
        let questions = args.questions.as_ref().map(|name| Ok::<_, Failure>(Analogies::load(&path(name)?)?));
        let similarities =
            args.similarity.as_ref().map(|name| Ok::<_, Failure>(Similarities::load(&path(name)?)?));
        let (questions, similarities) = (questions.transpose()?, similarities.transpose()?);
        let are_planted = planted && questions.is_none();
        let questions = if are_planted { Some(Analogies::planted()) } else { questions };
        Ok(Self { questions, are_planted, similarities })
    }

    /// What tells where the questions are from.
    pub(super) fn source(&self, args: &QuestionArgs) -> String {
        let files = [&args.questions, &args.similarity].into_iter().flatten();
        let mut sources: Vec<String> = files.map(|path| path.display().to_string()).collect();
        if self.are_planted {
            sources.insert(0, "generated questions".to_owned());
        }
        sources.join(", ")
    }

    /// Adds rows of what is asked.
    pub(super) fn plan(&self, plan: &mut Plan<'_>) {
        if let Some(questions) = &self.questions {
            let origin = if self.are_planted { " about the generated text" } else { "" };
            let count = format!("{}{origin}", format::count(questions.len() as u64));
            plan.row("questions", &count, &["questions"]);
        }
        if let Some(similarities) = &self.similarities {
            let count = format!("{} pairs", format::count(similarities.len() as u64));
            plan.row("similarity", &count, &["similarity"]);
        }
        if self.questions.is_none() && self.similarities.is_none() {
            plan.row(
                "questions",
                "none: give --questions or --similarity to learn how good the vectors are",
                &["no-eval"],
            );
        }
    }
}

/// All questions about the generated text have answers that follow from it.
pub(crate) const BEST_ACCURACY: f64 = 1.0;
