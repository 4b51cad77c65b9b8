//! Word vectors on the command line: how they are trained and evaluated, what vectors are asked,
//! and figures over the answers, for people and for programs.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

use crate::Scheme;
use crate::run::{CheckpointError, ConfigError, KeyChoice, TaskError, UnknownKey};
use crate::wv::{
    self, Analogies, AnalogyReport, Checkpoint, Corpus, EvalConfig, EvalReport, Optimizer,
    SectionKind, Similarities, SimilarityReport, Tally, Text, TrainConfig, TrainReport, Vectors,
    Vocabulary,
};
use adapm_core::Key;
use serde::Serialize;

use crate::cli::args::Given;
use crate::cli::args::wv::{DataArgs, EvalArgs, QuestionArgs, TrainArgs};
use crate::cli::epoch::{Figure, Labels};
use crate::cli::eval::{self, Evaluating};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::processes::Processes;
use crate::cli::progress::Screen;
use crate::cli::report::{self, Summary};
use crate::cli::table::{Align, Table};
use crate::cli::train::{Common, Plan, Shared, Training};
use crate::cli::{format, input};

/// The name of the task.
const TASK: &str = "wv";

pub(crate) const LABELS: Labels =
    Labels { examples: "words", evaluating: "answering", quality: "accuracy" };

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

/// Reads vectors of any form; also returns which form it was.
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
    let (bytes, known) = (format::bytes(text.len()), format::count(corpus.words()));
    table.row(["", &format!("{bytes}, {known} words of the vocabulary")]);
    let words = format::count(corpus.vocabulary().len() as u64);
    let times = args.min_count;
    let vocabulary = match &args.read_vocab {
        None => format!("{words} words that occur {times} times or more"),
        Some(path) => format!("{words} words of {}, {times} times or more there", path.display()),
    };
    table.row(["vocabulary", &vocabulary, &given.among(&["min-count", "read-vocab"])]);
}

/// The quality of vectors, in numbers.
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
pub(super) fn table(
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
pub(super) struct Asked {
    pub(super) questions: Option<Analogies>,
    /// The questions are those of the generated text.
    pub(super) are_generated: bool,
    pub(super) similarities: Option<Similarities>,
}

impl Asked {
    /// Reads what `args` name; if that is nothing, asks about the generated text if `generated` is
    /// true.
    pub(super) fn new(args: &QuestionArgs, generated: bool) -> Result<Self, Failure> {
        let path = |name: &PathBuf| input::locate(TASK, name);
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
    pub(super) fn source(&self, args: &QuestionArgs) -> String {
        let files = [&args.questions, &args.similarity].into_iter().flatten();
        let mut sources: Vec<String> = files.map(|path| path.display().to_string()).collect();
        if self.are_generated {
            sources.insert(0, "generated questions".to_owned());
        }
        sources.join(", ")
    }

    /// Adds rows of what is asked.
    pub(super) fn plan(&self, plan: &mut Plan<'_>) {
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
pub(crate) struct Data {
    corpus: Corpus,
    asked: Asked,
}

/// The result of training.
pub(crate) struct Trained {
    trained: TrainReport,
    /// On the first node, if it was asked for.
    similarity: Option<SimilarityReport>,
    /// Epochs that were to be trained.
    epochs: u32,
}

impl Training for TrainArgs {
    const TASK: &'static str = TASK;
    const LABELS: Labels = LABELS;
    const KEY_KINDS: &'static [&'static str] = wv::KEY_KINDS;
    type Data = Data;
    type Config = TrainConfig;
    type Report = Trained;

    fn shared(&self) -> Shared<'_> {
        let Self { settings, cluster, output, traced, processes, .. } = self;
        Shared { settings, cluster, output, traced, processes }
    }

    fn files(&self) -> Files<'_> {
        let (data, asked) = (&self.data, &self.asked);
        Files {
            read: Files::given([
                ("--data", &data.data),
                ("--read-vocab", &data.read_vocab),
                ("--questions", &asked.questions),
                ("--similarity", &asked.similarity),
            ]),
            written: Files::given([
                ("--output", &self.vectors),
                ("--save-vocab", &self.save_vocab),
            ]),
        }
    }

    fn data(&self) -> Result<Data, Failure> {
        // Faults of a short file are reported before a long one is read.
        let asked = Asked::new(&self.asked, self.data.data.is_none() && !self.training.no_eval)?;
        Ok(Data { corpus: corpus(&self.data)?, asked })
    }

    fn source(data: &Data) -> String {
        data.corpus.text().source().to_string()
    }

    fn is_generated(data: &Data) -> bool {
        data.corpus.text().is_generated()
    }

    fn traced_keys(
        &self,
        data: &Data,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        wv::traced_keys(data.corpus.vocabulary(), choices)
    }

    fn config(&self, common: Common) -> TrainConfig {
        let mut config = TrainConfig::default();
        (config.system, config.nodes, config.workers) =
            (common.system, common.nodes, common.workers);
        config.trace = common.trace;
        (config.ahead, config.localize_ahead) = (self.ahead, self.localize_ahead);
        config.seed = self.training.seed;
        config.dim = self.training.dim;
        config.epochs = self.training.epochs;
        config.window = self.training.window;
        config.negatives = self.training.negatives;
        (config.drawn, config.scheme) = (self.training.drawn, self.training.sampling);
        config.sample = self.training.sample;
        config.optimizer = self.training.optimizer;
        config.learning_rate = self.training.learning_rate;
        let wanted = [&self.output.save, &self.vectors, &self.asked.similarity];
        config.checkpoint = wanted.into_iter().any(Option::is_some);
        config
    }

    fn check(config: &TrainConfig) -> Result<(), ConfigError> {
        config.check_values()
    }

    fn plan(&self, plan: &mut Plan<'_>, data: &Data, config: &TrainConfig) {
        describe(plan.table, &data.corpus, &self.data, plan.given);
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
        plan.warn_of_sampling(config.sampling(), config.system, config.nodes);
        let epochs = config.epochs_for(data.corpus.words(), data.corpus.vocabulary().len());
        plan.row("epochs", &epochs.to_string(), &["epochs"]);
        data.asked.plan(plan);
        plan.row("seed", &config.seed.to_string(), &["seed"]);
    }

    fn train(
        &self,
        data: &Data,
        config: &TrainConfig,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Trained, Failure> {
        let Data { corpus, asked } = data;
        let questions = asked.questions.as_ref();
        let trained = match processes.company() {
            None => wv::train(corpus, questions, config, screen, stop),
            Some(company) => {
                wv::train_in_group(corpus, questions, config, &company.group, screen, stop)
            }
        }?;
        let checkpoint = trained.checkpoint.as_ref().zip(asked.similarities.as_ref());
        let similarity =
            checkpoint.map(|(checkpoint, pairs)| pairs.evaluate(&checkpoint.vectors(), usize::MAX));
        Ok(Trained {
            trained,
            similarity,
            epochs: config.epochs_for(corpus.words(), corpus.vocabulary().len()),
        })
    }

    fn summary(&self, Trained { trained, epochs, .. }: &Trained) -> Summary {
        let (seconds, valid_seconds) = report::seconds_of(&trained.epochs);
        Summary {
            epochs: *epochs,
            chosen: trained.epochs.last().map_or(0, |epoch| epoch.epoch),
            seconds,
            loss: trained.epochs.last().map(|epoch| epoch.loss),
            valid_seconds,
            test_seconds: trained.analogies.as_ref().map(|_| trained.analogies_seconds),
            is_selected: false,
            stats: trained.stats,
            stopped: trained.stopped,
            nodes: trained.nodes,
            workers: trained.workers,
        }
    }

    fn quality(data: &Data, report: &Trained) -> String {
        let Trained { trained, similarity, .. } = report;
        table(trained.analogies.as_ref(), similarity.as_ref(), data.asked.are_generated)
    }

    fn is_judged(&self, _: &Data, _: &Trained) -> bool {
        // No epoch is chosen by what it can answer.
        true
    }

    fn sizes(data: &Data, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let words = data.corpus.vocabulary().len() as u64;
        let bytes = words.saturating_mul(config.dim as u64).saturating_mul(4);
        vec![("--save", bytes.saturating_mul(2)), ("--output", bytes)]
    }

    fn keep(&self, data: &Data, report: &Trained, state: &str, outputs: &mut Outputs) {
        if let Some(checkpoint) = &report.trained.checkpoint {
            let what = format!("both vectors of each word of {state}");
            outputs.save("--save", &what, |file| checkpoint.write_to(file).map(drop));
            if outputs.has("--output") {
                let (vectors, format) = (checkpoint.vectors(), self.format);
                let what = format!("vectors of {state} in word2vec's {format} form");
                outputs.save("--output", &what, |file| vectors.write_to(file, format));
            }
        }
        let vocabulary = data.corpus.vocabulary();
        outputs.save("--save-vocab", "words and counts", |file| vocabulary.write_to(file));
    }

    fn object(data: &Data, config: &TrainConfig, report: &Trained) -> impl Serialize {
        let Trained { trained, similarity, .. } = report;
        OfRun {
            seed: config.seed,
            dim: config.dim,
            window: config.window,
            negatives: config.negatives,
            drawn: config.drawn.name(),
            sampling: config.sampling().map(Scheme::name),
            optimizer: config.optimizer.name(),
            learning_rate: config.learning_rate,
            words: data.corpus.words(),
            vocabulary: data.corpus.vocabulary().len(),
            test: Quality::new(
                trained.analogies.as_ref(),
                similarity.as_ref(),
                data.asked.are_generated,
            ),
        }
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

/// Vectors, and what they are asked.
pub(crate) struct EvalInput {
    vectors: Vectors,
    /// The kind of their file.
    form: String,
    asked: Asked,
    /// The source of the questions, in words.
    source: String,
}

/// The result of an evaluation.
pub(crate) struct Answered {
    answered: EvalReport,
    /// There were questions of analogy.
    has_questions: bool,
    similarity: Option<SimilarityReport>,
}

impl Evaluating for EvalArgs {
    const TASK: &'static str = TASK;
    const LABELS: Labels = LABELS;
    type Input = EvalInput;
    type Report = Answered;

    fn shared(&self) -> eval::Shared<'_> {
        eval::Shared { cluster: &self.cluster, processes: &self.processes, json: self.output.json }
    }

    fn files(&self) -> Files<'_> {
        let asked = &self.asked;
        let mut read =
            Files::given([("--questions", &asked.questions), ("--similarity", &asked.similarity)]);
        read.push(("--load", &self.load));
        Files { read, ..Files::default() }
    }

    fn input(&self) -> Result<EvalInput, Failure> {
        let asked = Asked::new(&self.asked, self.asked.similarity.is_none())?;
        let source = asked.source(&self.asked);
        let (vectors, form) = vectors(&self.load)?;
        Ok(EvalInput { vectors, form, asked, source })
    }

    fn source(input: &EvalInput) -> String {
        input.source.clone()
    }

    fn is_generated(input: &EvalInput) -> bool {
        input.asked.are_generated
    }

    fn plan(&self, plan: &mut Plan<'_>, input: &EvalInput) {
        let EvalInput { vectors, form, asked, .. } = input;
        let (words, dim) = (format::count(vectors.words().len() as u64), vectors.dim());
        let model = format!("{words} words, {dim} numbers a vector ({form})");
        plan.table.row(["model".into(), model, format!("--load {}", self.load.display())]);
        if let Some(words) = self.words {
            let words = format!("the {} most frequent", format::count(words as u64));
            plan.row("words", &words, &["words"]);
        }
        asked.plan(plan);
    }

    fn evaluate(
        &self,
        input: &EvalInput,
        common: Common,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Answered, Failure> {
        let EvalInput { vectors, asked, .. } = input;
        let mut config = EvalConfig::default();
        (config.system, config.nodes, config.workers) =
            (common.system, common.nodes, common.workers);
        config.words = self.words;
        let none = wv::Analogies::none();
        let questions = asked.questions.as_ref().unwrap_or(&none);
        let answered = match processes.company() {
            None => wv::evaluate(vectors, questions, &config, screen, stop),
            Some(company) => {
                wv::evaluate_in_group(vectors, questions, &config, &company.group, screen, stop)
            }
        }?;
        let limit = self.words.unwrap_or(usize::MAX);
        let similarity = asked.similarities.as_ref().map(|pairs| pairs.evaluate(vectors, limit));
        Ok(Answered { answered, has_questions: asked.questions.is_some(), similarity })
    }

    fn summary(Answered { answered, .. }: &Answered) -> eval::Summary {
        let asked = answered.analogies.as_ref().map_or(0, |report| report.total().asked);
        eval::Summary {
            items: ("questions", asked),
            seconds: answered.seconds,
            stats: answered.stats,
            stopped: answered.stopped,
            nodes: answered.nodes,
            workers: answered.workers,
        }
    }

    fn quality(&self, input: &EvalInput, report: &Answered) -> String {
        table(report.analogies(), report.similarity.as_ref(), input.asked.are_generated)
    }

    fn object(&self, input: &EvalInput, report: &Answered) -> impl Serialize {
        let are_generated = input.asked.are_generated;
        OfEvaluation {
            dim: input.vectors.dim(),
            vocabulary: input.vectors.words().len(),
            quality: Quality::new(report.analogies(), report.similarity.as_ref(), are_generated),
        }
    }
}

impl Answered {
    /// Returns the answers, if there were questions.
    fn analogies(&self) -> Option<&wv::AnalogyReport> {
        self.answered.analogies.as_ref().filter(|_| self.has_questions)
    }
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
