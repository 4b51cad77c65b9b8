//! Word vectors on the command line: how they are trained and evaluated, what vectors are asked,
//! and figures over the answers, for people and for programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use adapm_core::Key;
use clap::{Args, value_parser};
use serde::Serialize;

use crate::Scheme;
use crate::cli::epoch::{Figures, Labels};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::program::{
    Error, EvalArgs, EvalReportOf, Model, Plan, Program, ReportOf, Source, TrainArgs,
};
use crate::cli::table::{Align, Table};
use crate::cli::{format, input};
use crate::run::flags::{at_least_one, one_of};
use crate::run::{CheckpointError, ClusterConfig, KeyChoice, Run, TaskError, UnknownKey};
use crate::wv::analogy::{Analogies, AnalogyReport, SectionKind, Tally};
use crate::wv::checkpoint::Checkpoint;
use crate::wv::config::{EvalConfig, Optimizer, TrainConfig};
use crate::wv::corpus::{Corpus, Vocabulary};
use crate::wv::similarity::{Similarities, SimilarityReport};
use crate::wv::task::{KEY_KINDS, traced_keys};
use crate::wv::text::Text;
use crate::wv::training::{self, NAME};
use crate::wv::vectors::{Format, Vectors};

pub(crate) const LABELS: Labels =
    Labels { examples: "words", evaluating: "answering", items: "questions", quality: "accuracy" };

/// Flags that choose data.
const DATA_FLAGS: [&str; 3] = ["data", "data-seed", "sentences"];

impl Figures for AnalogyReport {
    fn figure(&self) -> f64 {
        self.total().accuracy()
    }

    fn items(&self) -> u64 {
        self.total().asked
    }
}

impl Model for Checkpoint {
    fn write_to(&self, file: &mut dyn Write) -> io::Result<()> {
        Checkpoint::write_to(self, file).map(drop)
    }
}

/// Flags of training that choose data and files.
#[derive(Debug, Args)]
pub struct TrainFlags {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    asked: QuestionArgs,
    /// Write the vectors to FILE in word2vec's form
    #[arg(id = "output", long, value_name = "FILE", help_heading = "Output")]
    vectors: Option<PathBuf>,
    /// The form of --output
    #[arg(long, value_name = "FORM", default_value_t = Format::Text, value_parser = one_of::<Format>(&["text", "binary"]), help_heading = "Output")]
    format: Format,
    /// Write the words and their counts to FILE, lines `word count`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save_vocab: Option<PathBuf>,
}

/// Flags of an evaluation.
#[derive(Debug, Args)]
pub struct EvalFlags {
    /// The most frequent words that can be asked for and be answers [default: all]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Model")]
    words: Option<usize>,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Flags that choose a text and its vocabulary.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
struct DataArgs {
    /// Text, a sentence a line, also one long line, also .gz; or its name in $ADAPM_DATA/wv; none:
    /// generated sentences
    #[arg(long, value_name = "PATH|NAME", conflicts_with_all = ["data_seed", "sentences"])]
    data: Option<PathBuf>,
    /// Seed of the generated text
    #[arg(long, value_name = "N", default_value_t = 1)]
    data_seed: u64,
    /// Sentences of the generated text
    #[arg(long, value_name = "N", default_value_t = SENTENCES, value_parser = value_parser!(u64).range(1..=SENTENCES_MAX))]
    sentences: u64,
    /// Times a word has to occur to get vectors
    #[arg(long, value_name = "TIMES", default_value_t = 5, help_heading = "Model")]
    min_count: u64,
    /// Words and their counts from FILE, lines `word count`, instead of counting them
    #[arg(long, value_name = "FILE")]
    read_vocab: Option<PathBuf>,
}

/// Flags that choose what vectors are asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Evaluation")]
struct QuestionArgs {
    /// Questions of analogy, as questions-words.txt, or the name of such a file in $ADAPM_DATA/wv;
    /// those of the generated text come with it
    #[arg(long, value_name = "FILE|NAME")]
    questions: Option<PathBuf>,
    /// Pairs of words with how similar people find them, as WordSim-353, or the name of such a file
    /// in $ADAPM_DATA/wv
    #[arg(long, value_name = "FILE|NAME")]
    similarity: Option<PathBuf>,
}

/// Reads the text that is asked for, or generates one, and counts its words.
fn corpus(args: &DataArgs) -> Result<Corpus, Failure> {
    let text = match &args.data {
        Some(name) => Text::open(&input::locate(NAME, name)?)?,
        None => Text::generated(args.data_seed, args.sentences),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    Ok(match &args.read_vocab {
        Some(path) => Corpus::with(text, Vocabulary::load(path, args.min_count)?, threads)?,
        None => Corpus::count(text, args.min_count, threads)?,
    })
}

/// Opens vectors of any form, and reads those of other programs; also returns which form it was.
pub(crate) fn vectors(path: &Path) -> Result<(Vectors, String), Failure> {
    match Checkpoint::open(path) {
        Ok(checkpoint) => Ok((checkpoint.vectors(), "of adapm".to_owned())),
        Err(CheckpointError::Foreign { .. }) => {
            let (vectors, form) = Vectors::open(path)?;
            Ok((vectors, form.to_string()))
        }
        Err(error) => Err(TaskError::Checkpoint(error).into()),
    }
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(plan: &mut Plan<'_>, corpus: &Corpus, args: &DataArgs) {
    plan.data(args.data.as_deref(), &DATA_FLAGS);
    let (bytes, known) = (format::bytes(corpus.text().len()), format::count(corpus.words()));
    plan.note("", &format!("{bytes}, {known} words of the vocabulary"));
    let words = format::count(corpus.vocabulary().len() as u64);
    let times = args.min_count;
    let vocabulary = match &args.read_vocab {
        None => format!("{words} words that occur {times} times or more"),
        Some(path) => format!("{words} words of {}, {times} times or more there", path.display()),
    };
    plan.row("vocabulary", &vocabulary, &["min-count", "read-vocab"]);
}

/// The quality of vectors, in numbers.
#[derive(Serialize)]
pub(crate) struct Quality {
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
    pub(crate) fn new(
        analogies: Option<&AnalogyReport>,
        similarity: Option<&SimilarityReport>,
        are_generated: bool,
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
            similarity_coverage: similarity
                .map(|report| report.seen as f64 / report.asked.max(1) as f64),
            best_accuracy: are_generated.then_some(BEST_ACCURACY),
        }
    }
}

/// Returns a row per section and one of all; empty if nothing was asked.
pub(crate) fn table(
    analogies: Option<&AnalogyReport>,
    similarity: Option<&SimilarityReport>,
    are_generated: bool,
) -> String {
    let mut text = String::new();
    if let Some(report) = analogies {
        let columns =
            [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];
        let mut table = Table::new(&columns);
        table.row(["", "accuracy", "baseline", "seen", "coverage", "of all"]);
        for section in &report.sections {
            row(&mut table, &section.name, section.tally);
        }
        row(&mut table, "semantic", report.of_kind(SectionKind::Semantic));
        row(&mut table, "syntactic", report.of_kind(SectionKind::Syntactic));
        row(&mut table, "all", report.total());
        if are_generated {
            table.row(["best possible".to_owned(), format::figure(BEST_ACCURACY)]);
        }
        text.push_str(&table.render());
        text.push_str(
            "baseline: the word nearest to the third of a question, which needs no analogy\n\n",
        );
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
    let share =
        |over: u64, share: f64| if over == 0 { "-".to_owned() } else { format::figure(share) };
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
pub(crate) struct Asked {
    questions: Option<Analogies>,
    /// The questions are those of the generated text.
    are_generated: bool,
    similarities: Option<Similarities>,
}

impl Asked {
    /// Reads what `args` name; if that is nothing, asks about the generated text if `generated` is
    /// true.
    fn new(args: &QuestionArgs, generated: bool) -> Result<Self, Failure> {
        let path = |name: &PathBuf| input::locate(NAME, name);
        let questions =
            args.questions.as_ref().map(|name| Ok::<_, Failure>(Analogies::load(&path(name)?)?));
        let similarities = args
            .similarity
            .as_ref()
            .map(|name| Ok::<_, Failure>(Similarities::load(&path(name)?)?));
        let (questions, similarities) = (questions.transpose()?, similarities.transpose()?);
        let are_generated = generated && questions.is_none();
        let questions = if are_generated { Some(Analogies::generated()) } else { questions };
        Ok(Self { questions, are_generated, similarities })
    }

    /// Returns the source of the questions.
    fn source(&self, args: &QuestionArgs) -> String {
        let files = [&args.questions, &args.similarity].into_iter().flatten();
        let mut sources: Vec<String> = files.map(|path| path.display().to_string()).collect();
        if self.are_generated {
            sources.insert(0, "generated questions".to_owned());
        }
        sources.join(", ")
    }

    /// Adds rows of what is asked.
    fn plan(&self, plan: &mut Plan<'_>) {
        if let Some(questions) = &self.questions {
            let origin = if self.are_generated { " about the generated text" } else { "" };
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

/// The training text, and the questions for the end.
pub struct Data {
    corpus: Corpus,
    asked: Asked,
}

/// Vectors, and what they are asked.
pub struct Asking {
    vectors: Vectors,
    /// The kind of their file.
    form: String,
    asked: Asked,
}

/// The similarity of words beside people's, on the first node, if it was asked for.
#[derive(Debug)]
pub struct Found {
    similarity: Option<SimilarityReport>,
}

/// Word vectors as a program.
#[derive(Debug)]
pub enum Wv {}

impl Program for Wv {
    const NAME: &'static str = NAME;
    const LABELS: Labels = LABELS;
    const KEY_KINDS: &'static [&'static str] = KEY_KINDS;
    type TrainFlags = TrainFlags;
    type Config = TrainConfig;
    type Data = Data;
    type Figures = AnalogyReport;
    type Model = Checkpoint;
    type Extra = Found;
    type EvalFlags = EvalFlags;
    type EvalData = Asking;
    type EvalExtra = Found;

    fn check_flags(args: &TrainArgs<Self>) -> Result<(), Error> {
        let asked = &args.flags.asked;
        let are_given = asked.questions.is_some() || asked.similarity.is_some();
        if args.config.run.no_eval && are_given {
            return Err(Failure::NothingAsked.into());
        }
        Ok(())
    }

    fn read(args: &TrainArgs<Self>) -> Result<(Data, Source), Error> {
        let TrainFlags { data, asked, .. } = &args.flags;
        // Faults of a short file are reported before a long one is read.
        let asked = Asked::new(asked, data.data.is_none() && !args.config.run.no_eval)?;
        let corpus = corpus(data)?;
        let text = corpus.text();
        let source = Source { text: text.source().to_string(), is_generated: text.is_generated() };
        Ok((Data { corpus, asked }, source))
    }

    fn plan(args: &TrainArgs<Self>, config: &TrainConfig, data: &Data, plan: &mut Plan<'_>) {
        describe(plan, &data.corpus, &args.flags.data);
        let model = format!("skip-gram, {} numbers a vector, window {}", config.dim, config.window);
        plan.row("model", &model, &["dim", "window"]);
        let falling = if config.optimizer == Optimizer::Sgd { ", falling" } else { "" };
        let thinned = if config.sample > 0.0 {
            format!(", words thinned from {} of the text on", config.sample)
        } else {
            String::new()
        };
        let training = format!(
            "{} with learning rate {}{falling}{thinned}",
            config.optimizer, config.learning_rate
        );
        plan.row("training", &training, &["optimizer", "learning-rate", "sample"]);
        let negatives = format!("{} a pair, drawn for each {}", config.negatives, config.drawn);
        let sampling =
            config.sampling().map_or(String::new(), |scheme| format!("; sampling {scheme}"));
        plan.row("negatives", &(negatives + &sampling), &["negatives", "drawn", "sampling"]);
        plan.warn_of_sampling(config.sampling(), &config.cluster);
        let epochs = config.epochs_for(data.corpus.words(), data.corpus.vocabulary().len());
        plan.row("epochs", &epochs.to_string(), &["epochs"]);
        data.asked.plan(plan);
    }

    fn train(
        data: &Data,
        config: &TrainConfig,
        run: &Run<'_, AnalogyReport>,
    ) -> Result<ReportOf<Self>, TaskError> {
        let Data { corpus, asked } = data;
        let trained = training::train(corpus, asked.questions.as_ref(), config, run)?;
        let checkpoint = trained.checkpoint.as_ref().zip(asked.similarities.as_ref());
        let similarity =
            checkpoint.map(|(checkpoint, pairs)| pairs.evaluate(&checkpoint.vectors(), usize::MAX));
        let similarity = similarity.transpose()?;
        Ok(trained.with(Found { similarity }, |checkpoint| checkpoint))
    }

    fn quality(data: &Data, report: &ReportOf<Self>) -> String {
        let similarity = report.own.similarity.as_ref();
        table(report.test.as_ref(), similarity, data.asked.are_generated)
    }

    fn object(data: &Data, config: &TrainConfig, report: &ReportOf<Self>) -> impl Serialize {
        let similarity = report.own.similarity.as_ref();
        OfRun {
            seed: config.run.seed,
            dim: config.dim,
            window: config.window,
            negatives: config.negatives,
            drawn: config.drawn.name(),
            sampling: config.sampling().map(Scheme::name),
            optimizer: config.optimizer.name(),
            learning_rate: config.learning_rate,
            words: data.corpus.words(),
            vocabulary: data.corpus.vocabulary().len(),
            test: Quality::new(report.test.as_ref(), similarity, data.asked.are_generated),
        }
    }

    fn model_in_words() -> &'static str {
        "both vectors of each word"
    }

    fn sizes(data: &Data, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let words = data.corpus.vocabulary().len() as u64;
        let bytes = words.saturating_mul(config.dim as u64).saturating_mul(4);
        vec![("--save", bytes.saturating_mul(2)), ("--output", bytes)]
    }

    fn files(flags: &TrainFlags) -> Files<'_> {
        let TrainFlags { data, asked, vectors, save_vocab, .. } = flags;
        Files {
            read: Files::given([
                ("--data", &data.data),
                ("--read-vocab", &data.read_vocab),
                ("--questions", &asked.questions),
                ("--similarity", &asked.similarity),
            ]),
            written: Files::given([("--output", vectors), ("--save-vocab", save_vocab)]),
        }
    }

    fn needs_model(flags: &TrainFlags) -> bool {
        flags.vectors.is_some() || flags.asked.similarity.is_some()
    }

    fn write_files(
        args: &TrainArgs<Self>,
        data: &Data,
        report: &ReportOf<Self>,
        state: &str,
        outputs: &mut Outputs,
    ) {
        if let Some(checkpoint) = report.checkpoint.as_ref().filter(|_| outputs.has("--output")) {
            let (vectors, format) = (checkpoint.vectors(), args.flags.format);
            let what = format!("vectors of {state} in word2vec's {format} form");
            outputs.save("--output", &what, |file| vectors.write_to(file, format));
        }
        let vocabulary = data.corpus.vocabulary();
        outputs.save("--save-vocab", "words and counts", |file| vocabulary.write_to(file));
    }

    fn traced_keys(
        data: &Data,
        _: &TrainConfig,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        traced_keys(data.corpus.vocabulary(), choices)
    }

    fn read_evaluation(args: &EvalArgs<Self>) -> Result<(Asking, Source), Error> {
        let flags = &args.flags.asked;
        let asked = Asked::new(flags, flags.similarity.is_none())?;
        let source = Source { text: asked.source(flags), is_generated: asked.are_generated };
        let (vectors, form) = vectors(&args.load)?;
        args.check(&vectors.values)?;
        Ok((Asking { vectors, form, asked }, source))
    }

    fn plan_evaluation(args: &EvalArgs<Self>, subject: &Asking, plan: &mut Plan<'_>) {
        let Asking { vectors, form, asked } = subject;
        let (words, dim) = (format::count(vectors.words().len() as u64), vectors.dim());
        plan.model(&format!("{words} words, {dim} numbers a vector ({form})"), &args.load, &[]);
        if let Some(words) = args.flags.words {
            let words = format!("the {} most frequent", format::count(words as u64));
            plan.row("words", &words, &["words"]);
        }
        asked.plan(plan);
    }

    fn evaluate(
        subject: &Asking,
        flags: &EvalFlags,
        cluster: &ClusterConfig,
        run: &Run<'_, AnalogyReport>,
    ) -> Result<EvalReportOf<Self>, TaskError> {
        let Asking { vectors, asked, .. } = subject;
        let config = &EvalConfig { words: flags.words, cluster: cluster.clone() };
        let none = Analogies::none();
        let questions = asked.questions.as_ref().unwrap_or(&none);
        let report = training::evaluate(vectors, questions, config, run)?;
        let limit = config.words.unwrap_or(usize::MAX);
        let similarity = asked.similarities.as_ref().map(|pairs| pairs.evaluate(vectors, limit));
        let similarity = similarity.transpose()?;
        Ok(report.with(Found { similarity }))
    }

    fn evaluation_quality(_: &EvalFlags, subject: &Asking, report: &EvalReportOf<Self>) -> String {
        let (answers, similarity) = (subject.answers(report), report.own.similarity.as_ref());
        table(answers, similarity, subject.asked.are_generated)
    }

    fn evaluation_object(
        _: &EvalFlags,
        subject: &Asking,
        report: &EvalReportOf<Self>,
    ) -> impl Serialize {
        let (answers, similarity) = (subject.answers(report), report.own.similarity.as_ref());
        OfEvaluation {
            dim: subject.vectors.dim(),
            vocabulary: subject.vectors.words().len(),
            quality: Quality::new(answers, similarity, subject.asked.are_generated),
        }
    }

    fn evaluation_files(flags: &EvalFlags) -> Files<'_> {
        let asked = &flags.asked;
        let read =
            Files::given([("--questions", &asked.questions), ("--similarity", &asked.similarity)]);
        Files { read, ..Files::default() }
    }
}

impl Asking {
    /// Returns the answers, if there were questions.
    fn answers<'a>(&self, report: &'a EvalReportOf<Wv>) -> Option<&'a AnalogyReport> {
        report.figures.as_ref().filter(|_| self.asked.questions.is_some())
    }
}

/// The task's own fields in the object of a run.
#[derive(Serialize)]
struct OfRun {
    seed: u64,
    dim: usize,
    window: u16,
    negatives: usize,
    drawn: &'static str,
    sampling: Option<&'static str>,
    optimizer: &'static str,
    learning_rate: f32,
    words: u64,
    vocabulary: usize,
    #[serde(flatten)]
    test: Quality,
}

/// The task's own fields in the object of an evaluation.
#[derive(Serialize)]
struct OfEvaluation {
    dim: usize,
    vocabulary: usize,
    #[serde(flatten)]
    quality: Quality,
}

/// All questions about the generated text have answers that follow from it.
pub(crate) const BEST_ACCURACY: f64 = 1.0;

/// Enough for nearly all questions to be answered with the default settings.
const SENTENCES: u64 = 100_000;
/// Gigabytes, in memory.
const SENTENCES_MAX: u64 = 100_000_000;

/// The files that `--load` takes.
pub(crate) const LOAD: &str = "\
Vectors written by `train wv --save FILE`, or in word2vec's form, text or binary, or in GloVe's, \
also .gz";

pub(crate) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train wv --nodes 4
  adapm train wv --data text8 --questions questions-words.txt --save t8.adapm
  adapm train wv --data text.gz --dim 300 --output text.bin --format binary
  adapm train wv --data corpus.txt --similarity men.txt --json";

pub(crate) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval wv --load text8.adapm --questions questions-words.txt
  adapm eval wv --load GoogleNews.bin --questions questions-words.txt --nodes 4
  adapm eval wv --load vectors.txt --similarity men.txt --json
Without --questions and --similarity, the questions of the generated text are asked.";
