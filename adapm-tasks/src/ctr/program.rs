//! Click prediction on the command line.

use std::ops::Range;
use std::path::PathBuf;

use adapm_core::Key;
use clap::Args;
use serde::Serialize;

use crate::cli::epoch::{Figures, Labels};
use crate::cli::failure::Failure;
use crate::cli::files::Files as Listed;
use crate::cli::program::{
    Error, EvalArgs, EvalReportOf, Finding, Plan, Program, ReportOf, Source, TrainArgs,
};
use crate::cli::table::{Align, Table};
use crate::cli::{format, input};
use crate::ctr::NAME;
use crate::ctr::clicks::Clicks;
use crate::ctr::config::{Model, TrainConfig};
use crate::ctr::examples::Findings;
use crate::ctr::form::{Numeric, Schema};
use crate::ctr::head::Head;
use crate::ctr::reader::{Encoding, Files};
use crate::ctr::synthetic::{Optimum, SyntheticConfig};
use crate::ctr::task::{Prediction, name_of};
use crate::ctr::training;
use crate::metric::ClickMetrics;
use crate::run::flags::one_of;
use crate::run::{
    ClusterConfig, KeyChoice, Run, Saved, Split, Task as _, TaskError, UnknownKey, chosen_keys,
};

/// Files of clicks.
#[derive(Args, Clone, Debug)]
pub(crate) struct FileArgs {
    /// Examples: a file (Criteo's, libsvm's or libffm's form, or a table with --schema; .gz too); a
    /// folder with train, test and perhaps valid of these; or its name in $ADAPM_DATA/ctr; none:
    /// generated clicks
    #[arg(long, value_name = "PATH|NAME", help_heading = "Data")]
    data: Option<PathBuf>,
    /// File of examples to select on [default: that of the folder, else the last tenth of train]
    #[arg(long, value_name = "FILE", requires = "data", help_heading = "Data")]
    valid: Option<PathBuf>,
    /// File of examples to report on [default: that of the folder, else the last seventh of train]
    #[arg(long, value_name = "FILE", requires = "data", help_heading = "Data")]
    test: Option<PathBuf>,
}

/// Flags that choose clicks.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Columns of a table, in order or as its first line names them: name:label, name:label=TEXT,
    /// name:num, name:cat or name:skip, between commas
    #[arg(long, value_name = "COLUMNS", requires = "data")]
    schema: Option<Schema>,
    /// Columns of numbers: features by their size, or inputs of the dense layers
    #[arg(long, value_name = "HOW", default_value_t, value_parser = one_of::<Numeric>(Numeric::NAMES))]
    numeric: Numeric,
    /// Examples of train in which a feature occurs at least to have a key of its own; others of its
    /// field share one
    #[arg(long, value_name = "N", default_value_t = Encoding::default().min_count)]
    min_count: u64,
    /// Hash features to 2^N keys instead of reading them into a dictionary
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=31))]
    hash_bits: Option<u32>,
    #[command(flatten)]
    generated: GeneratedArgs,
}

#[derive(Args, Clone, Debug)]
struct GeneratedArgs {
    /// Seed of generated clicks
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().seed, conflicts_with = "data")]
    data_seed: u64,
    /// Generated examples to train on
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().examples, conflicts_with = "data")]
    examples: u64,
    /// Generated examples to report on
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().test_examples, conflicts_with = "data")]
    test_examples: u64,
    /// Features of generated examples
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().features, conflicts_with = "data")]
    features: u64,
}

/// Flags of an evaluation.
#[derive(Args, Clone, Debug)]
pub struct EvalFlags {
    #[command(flatten)]
    files: FileArgs,
    /// Part of the data to predict
    #[arg(long, value_name = "PART", default_value_t, value_parser = one_of::<Split>(Split::NAMES), help_heading = "Data")]
    split: Split,
}

impl FileArgs {
    fn files(&self) -> Result<Option<Files>, Failure> {
        let Some(name) = &self.data else { return Ok(None) };
        let mut files = Files::of(&input::locate(NAME, name)?).map_err(TaskError::Data)?;
        files.valid = self.valid.clone().or(files.valid);
        files.test = self.test.clone().or(files.test);
        Ok(Some(files))
    }

    fn listed(&self) -> Listed<'_> {
        let read = [("--data", &self.data), ("--valid", &self.valid), ("--test", &self.test)];
        Listed { read: Listed::given(read), ..Listed::default() }
    }
}

impl DataArgs {
    fn read(&self) -> Result<Clicks, Failure> {
        let Self { schema, numeric, min_count, hash_bits, generated, .. } = self.clone();
        let Some(files) = self.files.files()? else {
            let mut config = SyntheticConfig::default();
            (config.seed, config.examples) = (generated.data_seed, generated.examples);
            (config.test_examples, config.features) = (generated.test_examples, generated.features);
            return synthetic(config);
        };
        let encoding = Encoding { schema, numeric, min_count, hash_bits };
        Ok(Clicks::load(&files, &encoding).map_err(TaskError::Data)?)
    }
}

fn synthetic(config: SyntheticConfig) -> Result<Clicks, Failure> {
    Ok(Clicks::synthetic(config)?)
}

fn source(clicks: &Clicks) -> Source {
    let text = clicks.origin.to_string();
    Source { text, is_generated: clicks.is_generated() }
}

/// Describes the examples.
fn describe(plan: &mut Plan<'_>, clicks: &Clicks, files: &FileArgs) {
    plan.data(files.data.as_deref(), &plan.given.data_flags());
    let [train, valid, test] = [clicks.train.len(), clicks.valid.len(), clicks.test.len()]
        .map(|n| format::count(n as u64));
    let encoder = &clicks.encoder;
    plan.note(
        "",
        &format!(
            "{train} train, {valid} valid, {test} test examples; {} features of {} fields, {} numbers",
            format::count(encoder.keys()),
            encoder.fields.len(),
            encoder.numbers.len()
        ),
    );
    if let Some(bytes) = clicks.examples.spilled_bytes() {
        let folder = std::env::temp_dir();
        plan.note(
            "",
            &format!("examples: {} in files of {}", format::bytes(bytes), folder.display()),
        );
    }
    findings(clicks).iter().for_each(|finding| plan.note("", &finding.text));
}

/// Lists the findings of reading clicks.
pub(crate) fn findings(clicks: &Clicks) -> Vec<Finding> {
    let counted = |count: u64, text: &str| {
        (count > 0).then(|| Finding::note(format!("{} {text}", format::count(count))))
    };
    let Findings { rare, unknown, keyless } = clicks.findings;
    let found = [
        (rare, "features of train are too rare to have a key of their own (--min-count)"),
        (unknown, "features of valid and test are unknown to train"),
        (keyless, "features of these examples are unknown to the model, or were too rare to learn"),
    ];
    let mut findings: Vec<Finding> =
        found.into_iter().filter_map(|(count, text)| counted(count, text)).collect();
    if have_one_label(clicks, clicks.train.clone()) {
        let text = "all examples of train have the same label: nothing can be learnt".to_owned();
        findings.push(Finding::problem(text));
    }
    findings
}

/// Returns true if there are examples, and all are clicks, or none is.
fn have_one_label(clicks: &Clicks, mut rows: Range<usize>) -> bool {
    let first = rows.next().map(|row| clicks.examples.label(row));
    first.is_some_and(|first| rows.all(|row| clicks.examples.label(row) == first))
}

impl Figures for ClickMetrics {
    fn figure(&self) -> f64 {
        self.auc
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn named(&self) -> Vec<(&'static str, f64)> {
        vec![("auc", self.auc), ("log_loss", self.log_loss), ("calibration", self.calibration)]
    }
}

/// Returns a row for each part that was evaluated; empty if none was.
fn table(parts: &[(&str, Option<&ClickMetrics>)], optimum: Option<Optimum>) -> String {
    let evaluated: Vec<_> =
        parts.iter().filter_map(|(name, figures)| figures.map(|figures| (name, figures))).collect();
    if evaluated.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right]);
    table.row(["", "AUC", "log loss", "p / clicks"]);
    let row = |figures: &ClickMetrics| {
        [figures.auc, figures.log_loss, figures.calibration].map(format::figure)
    };
    for (name, figures) in evaluated {
        table.row([(*name).to_owned()].into_iter().chain(row(figures)));
    }
    if let Some(Optimum { best, linear_auc }) = optimum {
        table.row(["best possible".to_owned()].into_iter().chain(row(&best)));
        table.row(["linear at best".to_owned(), format::figure(linear_auc)]);
    }
    table.render() + "\n"
}

/// Click prediction as a program.
#[derive(Debug)]
pub enum Ctr {}

impl Program for Ctr {
    const NAME: &'static str = NAME;
    const DEALS_BY_PARTITION: bool = true;
    const LABELS: Labels = Labels {
        examples: "examples",
        evaluating: "predicting",
        items: "examples",
        quality: "AUC",
    };
    const KEY_KINDS: &'static [&'static str] = &["feature"];
    type TrainFlags = DataArgs;
    type Config = TrainConfig;
    type Data = Clicks;
    type Figures = ClickMetrics;
    type Model = Saved<Head>;
    type Extra = ();
    type EvalFlags = EvalFlags;
    type EvalData = (Saved<Head>, Clicks);
    type EvalExtra = ();

    fn read(args: &TrainArgs<Self>) -> Result<(Clicks, Source), Error> {
        let clicks = args.flags.read()?;
        let source = source(&clicks);
        Ok((clicks, source))
    }

    fn plan(args: &TrainArgs<Self>, config: &TrainConfig, clicks: &Clicks, plan: &mut Plan<'_>) {
        describe(plan, clicks, &args.flags.files);
        plan.row("model", &model_of(config), &["model", "dim", "hidden", "cross-layers"]);
        let mut training = format!(
            "AdaGrad with learning rate {}, batches of {}",
            config.learning_rate, config.batch
        );
        let more = [
            (config.dropout > 0.0, format!(", dropout {}", config.dropout)),
            (config.l2 > 0.0, format!(", L2 {}", config.l2)),
            (config.positive_weight != 1.0, format!(", clicks weigh {}", config.positive_weight)),
        ];
        training.extend(more.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| text));
        let flags = ["learning-rate", "batch", "dropout", "l2", "positive-weight"];
        plan.row("training", &training, &flags);
        let passes = config.passes(clicks.train_len());
        let epochs = format!("{passes}, evaluated every {}", config.valid_every);
        plan.row("epochs", &epochs, &["epochs", "valid-every", "no-eval"]);
    }

    fn train(
        clicks: &Clicks,
        config: &TrainConfig,
        run: &Run<'_, ClickMetrics>,
    ) -> Result<ReportOf<Self>, TaskError> {
        training::train(clicks, config, run)
    }

    fn quality(clicks: &Clicks, report: &ReportOf<Self>) -> String {
        let parts = [("valid", report.chosen_valid()), ("test", report.test.as_ref())];
        table(&parts, clicks.optimum())
    }

    fn object(clicks: &Clicks, config: &TrainConfig, report: &ReportOf<Self>) -> impl Serialize {
        OfRun {
            seed: config.run.seed,
            model: config.model.name(),
            dim: config.dim,
            train: clicks.train.len(),
            features: clicks.encoder.keys(),
            valid_auc: report.chosen_valid().map(|figures| figures.auc),
            test: Quality::new(report.test.as_ref(), clicks.optimum()),
        }
    }

    fn model_in_words() -> &'static str {
        "weights"
    }

    fn sizes(clicks: &Clicks, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let floats = Prediction::new(clicks, config).best_shape().total() as u64;
        vec![("--save", floats.saturating_mul(4))]
    }

    fn files(flags: &DataArgs) -> Listed<'_> {
        flags.files.listed()
    }

    fn traced_keys(
        clicks: &Clicks,
        config: &TrainConfig,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        let encoder = &clicks.encoder;
        let mut counts = vec![0; encoder.keys() as usize];
        for row in clicks.train.clone() {
            clicks.examples.features(row).iter().for_each(|f| counts[f.key as usize] += 1);
        }
        let lookup = encoder.lookup();
        let named = |_: &'static str, name: &str| {
            // FIELD=NAME.
            let (field, name) = name.split_once('=')?;
            let field = encoder.fields.iter().position(|other| other.name == field)?;
            lookup.find(field, name.as_bytes()).map(|key| vec![key as usize])
        };
        let all = Prediction::new(clicks, config).shape().keys() as usize;
        let title = |key: usize| match counts.get(key) {
            Some(count) => format!("{}, in {count} examples", encoder.name_of(key as u64)),
            None => name_of(clicks, Key(key as u64)),
        };
        chosen_keys(choices, all, &counts, named, title)
    }

    fn read_evaluation(args: &EvalArgs<Self>) -> Result<(Self::EvalData, Source), Error> {
        let model = Head::open(&args.load).map_err(TaskError::Checkpoint)?;
        args.check(&model.values)?;
        let split = args.flags.split;
        let clicks = match (args.flags.files.files()?, model.head.generated) {
            (Some(files), _) => Clicks::load_for(&files, &model.head, split)
                .map_err(|error| Failure::from(TaskError::Data(error)))?,
            (None, Some(generated)) => synthetic(generated)?,
            (None, None) => {
                let text = "the model is of data of yours; give --data PATH, what to predict";
                return Err(Error::of_input(text));
            }
        };
        if clicks.part(split).is_empty() {
            return Err(Failure::NoPart(split).into());
        }
        let source = source(&clicks);
        Ok(((model, clicks), source))
    }

    fn plan_evaluation(
        args: &EvalArgs<Self>,
        (model, clicks): &Self::EvalData,
        plan: &mut Plan<'_>,
    ) {
        describe(plan, clicks, &args.flags.files);
        plan.model(&model_of(&model.head.config), &args.load, &[]);
        let split = args.flags.split;
        let examples = format!("{} of {split}", format::count(clicks.len_of(split) as u64));
        plan.row("examples", &examples, &["split"]);
        if have_one_label(clicks, clicks.part(split)) {
            plan.note("", "all of them have the same label: there is no AUC");
        }
    }

    fn evaluate(
        (model, clicks): &Self::EvalData,
        flags: &EvalFlags,
        cluster: &ClusterConfig,
        run: &Run<'_, ClickMetrics>,
    ) -> Result<EvalReportOf<Self>, TaskError> {
        training::evaluate(clicks, model, flags.split, cluster, run)
    }

    fn evaluation_quality(
        flags: &EvalFlags,
        (_, clicks): &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> String {
        let optimum = clicks.optimum().filter(|_| flags.split == Split::Test);
        table(&[(flags.split.name(), report.figures.as_ref())], optimum)
    }

    fn evaluation_object(
        flags: &EvalFlags,
        (subject, clicks): &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> impl Serialize {
        let optimum = clicks.optimum().filter(|_| flags.split == Split::Test);
        let quality = Quality::new(report.figures.as_ref(), optimum);
        let TrainConfig { model, dim, .. } = subject.head.config;
        OfEvaluation { split: flags.split.name(), model: model.name(), dim, quality }
    }

    fn evaluation_files(flags: &EvalFlags) -> Listed<'_> {
        flags.files.listed()
    }
}

fn model_of(config: &TrainConfig) -> String {
    let name = match config.model {
        Model::WideDeep => "Wide & Deep".to_owned(),
        Model::DeepCross => format!("Deep & Cross of {} layers", config.cross_layers),
        Model::DeepFm => "DeepFM".to_owned(),
    };
    format!("{name}, embeddings of {}, hidden {}", config.dim, config.hidden)
}

/// Figures on test, or of an evaluation.
#[derive(Serialize)]
struct Quality {
    auc: Option<f64>,
    log_loss: Option<f64>,
    calibration: Option<f64>,
    /// The best that is possible, where it is known: on generated data.
    best_auc: Option<f64>,
    best_log_loss: Option<f64>,
    linear_auc: Option<f64>,
}

impl Quality {
    fn new(figures: Option<&ClickMetrics>, optimum: Option<Optimum>) -> Self {
        Self {
            auc: figures.map(|figures| figures.auc),
            log_loss: figures.map(|figures| figures.log_loss),
            calibration: figures.map(|figures| figures.calibration),
            best_auc: optimum.map(|optimum| optimum.best.auc),
            best_log_loss: optimum.map(|optimum| optimum.best.log_loss),
            linear_auc: optimum.map(|optimum| optimum.linear_auc),
        }
    }
}

/// The task's own fields in the object of a run.
#[derive(Serialize)]
struct OfRun {
    seed: u64,
    model: &'static str,
    dim: usize,
    train: usize,
    features: u64,
    valid_auc: Option<f64>,
    #[serde(flatten)]
    test: Quality,
}

/// The task's own fields in the object of an evaluation.
#[derive(Serialize)]
struct OfEvaluation {
    split: &'static str,
    model: &'static str,
    dim: usize,
    #[serde(flatten)]
    quality: Quality,
}

pub(crate) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train ctr --nodes 4
  adapm train ctr --model deepfm --examples 1000000
  adapm train ctr --data train.tsv.gz --hash-bits 24 --save criteo.adapm
  adapm train ctr --data bank.csv --schema age:num,job:cat,y:label=yes";

pub(crate) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval ctr --load criteo.adapm --data day_23.tsv.gz
  adapm eval ctr --load criteo.adapm --data criteo --split valid --json";
