//! A task with a command line of its own: what it trains on, with which settings, how its results
//! are shown and where they are written. All else is the same for all tasks.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapm_core::Key;
use adapm_runtime::Scheme;
use clap::Args;
use serde::Serialize;

use crate::cli::args::{
    EvalOutputArgs, Given, ProcessArgs, SettingsArgs, TraceKeysArgs, TrainOutputArgs, trace_help,
};
use crate::cli::epoch::{Figures, Labels};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::processes;
use crate::cli::table::{Align, Table};
use crate::cli::{format, input};
use crate::data::DataError;
use crate::run::consistency::settings_of;
use crate::run::{
    CheckpointError, ClusterConfig, Config, EvalReport, KeyChoice, PartitionFile, Run, Saved,
    TaskError, TrainReport, UnknownKey, Values,
};

/// A task with a command line of its own: `train` and `eval`.
///
/// It says what its data, settings and results are. Nodes that are processes, progress, plan,
/// tables, `--json`, `--config`, files, traces and exit codes are the same for all tasks, and come
/// with [`main_of`](crate::cli::main_of). What is trained, and how, is a
/// [`Task`](crate::run::Task).
///
/// Types that a task does not need are `()`.
pub trait Program: Sized + 'static {
    /// Its name: one word of small letters, as in `adapm train kge`, in files and reports.
    const NAME: &'static str;
    /// Its purpose in one line, for the help of a program of its own.
    const ABOUT: &'static str =
        "Trains a model with sparse access on an adaptive parameter manager";
    /// Its version, for `--version` of a program of its own: `Some(env!("CARGO_PKG_VERSION"))`.
    const VERSION: Option<&'static str> = None;
    /// Its words for screens and tables.
    const LABELS: Labels;
    /// True if samples are dealt to nodes as a partition says, not only keys.
    const DEALS_BY_PARTITION: bool = false;
    /// The kinds of keys that can be traced by name.
    const KEY_KINDS: &'static [&'static str] = &[];

    /// The flags of `train` that choose data and further files.
    type TrainFlags: Args;
    /// The settings of training, which are flags, too.
    type Config: Config + Args;
    /// The training data.
    type Data;
    /// The figures of an evaluation.
    type Figures: Figures;
    /// The trained parameters, as they are saved.
    type Model: Model;
    /// Results of training that only this task has.
    type Extra;

    /// The flags of `eval` that choose data and further files.
    type EvalFlags: Args;
    /// Parameters, and what they are evaluated on.
    type EvalData;
    /// Results of an evaluation that only this task has.
    type EvalExtra;

    /// Checks that flags go together, before anything is read.
    ///
    /// # Errors
    ///
    /// Flags that do not, in one line.
    fn check_flags(args: &TrainArgs<Self>) -> Result<(), Error> {
        let _ = args;
        Ok(())
    }

    /// Reads or generates the training data, and names it.
    ///
    /// # Errors
    ///
    /// Data that cannot be used, in one line: what, where, what to do.
    fn read(args: &TrainArgs<Self>) -> Result<(Self::Data, Source), Error>;

    /// Adds a row for each choice of a run that is about to begin, with the flags that made it.
    fn plan(args: &TrainArgs<Self>, config: &Self::Config, data: &Self::Data, plan: &mut Plan<'_>) {
        let _ = (args, data);
        plan.data(None, &plan.given.data_flags());
        for (name, value) in own_settings(config) {
            let flag = name.replace('_', "-");
            plan.row(&flag.replace('-', " "), &value, &[&flag]);
        }
    }

    /// Trains.
    ///
    /// # Errors
    ///
    /// As [`Run::train`].
    fn train(
        data: &Self::Data,
        config: &Self::Config,
        run: &Run<'_, Self::Figures>,
    ) -> Result<ReportOf<Self>, TaskError>;

    /// Returns the figures of merit as a table; empty if there are none.
    fn quality(data: &Self::Data, report: &ReportOf<Self>) -> String {
        let _ = data;
        let valid = report.chosen_valid().map(|figures| ("valid", figures));
        let test = report.test.as_ref().map(|figures| ("test", figures));
        figures_table(valid.into_iter().chain(test))
    }

    /// Returns the fields of the last object of `--json` that only this task has.
    fn object(data: &Self::Data, config: &Self::Config, report: &ReportOf<Self>) -> impl Serialize {
        let _ = (data, config);
        let valid = report.chosen_valid().map(Figures::named).into_iter().flatten();
        let valid = valid.map(|(name, figure)| (format!("valid_{name}"), figure));
        named(report.test.as_ref()).into_iter().chain(valid).collect::<BTreeMap<_, _>>()
    }

    /// Returns the parameters in a few words, before `of epoch 3`.
    fn model_in_words() -> &'static str {
        "parameters"
    }

    /// Returns the least size in bytes of each file that training writes, by its flag; that of
    /// parameters is `--save`.
    fn sizes(data: &Self::Data, config: &Self::Config) -> Vec<(&'static str, u64)> {
        let _ = (data, config);
        Vec::new()
    }

    /// Returns the files that training reads, and those that it writes beside `--save`.
    fn files(flags: &Self::TrainFlags) -> Files<'_> {
        let _ = flags;
        Files::default()
    }

    /// Returns true if parameters are needed in the end, also without `--save`.
    fn needs_model(flags: &Self::TrainFlags) -> bool {
        let _ = flags;
        false
    }

    /// Writes the files that are asked for beside `--save`; `state` is that of the parameters, such
    /// as `epoch 3`.
    fn write_files(
        args: &TrainArgs<Self>,
        data: &Self::Data,
        report: &ReportOf<Self>,
        state: &str,
        outputs: &mut Outputs,
    ) {
        let _ = (args, data, report, state, outputs);
    }

    /// Returns the keys to trace, each with what it is. Without choices some that are typical, if
    /// the task knows such: by itself it knows none.
    ///
    /// # Errors
    ///
    /// The first choice that the data does not have.
    fn traced_keys(
        data: &Self::Data,
        config: &Self::Config,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        let _ = (data, config);
        let numbers = choices.iter().filter_map(|choice| match choice {
            KeyChoice::Key(key) => Some((Key(*key), format!("key {key}"))),
            _ => None,
        });
        Ok(numbers.collect())
    }

    /// Reads saved parameters, and what they are evaluated on, and says what that is.
    ///
    /// # Errors
    ///
    /// A file that cannot be used, in one line.
    fn read_evaluation(args: &EvalArgs<Self>) -> Result<(Self::EvalData, Source), Error>;

    /// Adds a row for each choice of an evaluation, with the flags that made it.
    fn plan_evaluation(args: &EvalArgs<Self>, subject: &Self::EvalData, plan: &mut Plan<'_>) {
        let _ = subject;
        plan.data(None, &plan.given.data_flags());
        plan.model(Self::model_in_words(), &args.load, &[]);
    }

    /// Evaluates.
    ///
    /// # Errors
    ///
    /// As [`Run::evaluate`].
    fn evaluate(
        subject: &Self::EvalData,
        flags: &Self::EvalFlags,
        cluster: &ClusterConfig,
        run: &Run<'_, Self::Figures>,
    ) -> Result<EvalReportOf<Self>, TaskError>;

    /// Returns the figures of an evaluation as a table.
    fn evaluation_quality(
        flags: &Self::EvalFlags,
        subject: &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> String {
        let _ = (flags, subject);
        figures_table(report.figures.iter().map(|figures| ("", figures)))
    }

    /// Returns the fields of the object of an evaluation that only this task has.
    fn evaluation_object(
        flags: &Self::EvalFlags,
        subject: &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> impl Serialize {
        let _ = (flags, subject);
        named(report.figures.as_ref())
    }

    /// Returns the files that an evaluation reads beside `--load`, and those that it writes.
    fn evaluation_files(flags: &Self::EvalFlags) -> Files<'_> {
        let _ = flags;
        Files::default()
    }

    /// Writes the files that an evaluation is asked for.
    fn write_evaluation_files(report: &EvalReportOf<Self>, outputs: &mut Outputs) {
        let _ = (report, outputs);
    }
}

/// The flags of training.
#[derive(Args)]
#[command(args_override_self = true)]
#[command(mut_arg("trace", |flag| flag.help(trace_help(P::KEY_KINDS))))]
pub struct TrainArgs<P: Program> {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    /// Data and files.
    #[command(flatten, next_help_heading = "Data")]
    pub flags: P::TrainFlags,
    /// The settings of training.
    #[command(flatten, next_help_heading = "Model")]
    pub config: P::Config,
    /// File of `adapm partition`: the home of each key, and where the task can do that the node of
    /// each sample
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) homes: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: TrainOutputArgs,
    #[command(flatten)]
    pub(crate) traced: TraceKeysArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

impl<P: Program> TrainArgs<P> {
    /// Reads the partition that is given, if one is.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is of something else.
    pub(crate) fn partition(&self) -> Result<Option<Arc<PartitionFile>>, Failure> {
        let load = |path| PartitionFile::load(path, P::NAME).map(Arc::new);
        let partition = self.homes.as_deref().map(load).transpose();
        partition.map_err(|error| TaskError::from(error).into())
    }
}

/// The flags of an evaluation.
#[derive(Args)]
#[command(args_override_self = true)]
pub struct EvalArgs<P: Program> {
    /// Parameters written by `train --save FILE`
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub load: PathBuf,
    /// Data and files.
    #[command(flatten, next_help_heading = "Data")]
    pub flags: P::EvalFlags,
    /// Nodes, workers, system.
    #[command(flatten)]
    pub cluster: ClusterConfig,
    #[command(flatten)]
    pub(crate) output: EvalOutputArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

impl<P: Program> EvalArgs<P> {
    /// Compares the checksum of a model's file if this is the only process, before data are read;
    /// once is enough. Several processes do so together, once they have met.
    ///
    /// # Errors
    ///
    /// A file that is damaged or cannot be read.
    pub fn check(&self, values: &Values) -> Result<(), Error> {
        if processes::is_alone(&self.processes, self.cluster.nodes) {
            values.check()?;
        }
        Ok(())
    }
}

/// The report of a program's training.
pub type ReportOf<P> =
    TrainReport<<P as Program>::Figures, <P as Program>::Model, <P as Program>::Extra>;

/// The report of a program's evaluation.
pub type EvalReportOf<P> = EvalReport<<P as Program>::Figures, <P as Program>::EvalExtra>;

/// Trained parameters that can be saved.
pub trait Model {
    /// Writes the file; may be called again if that fails.
    ///
    /// # Errors
    ///
    /// Errors of `file`.
    fn write_to(&self, file: &mut dyn Write) -> io::Result<()>;
}

impl<C: Serialize> Model for Saved<C> {
    fn write_to(&self, file: &mut dyn Write) -> io::Result<()> {
        Saved::write_to(self, file)
    }
}

/// The origin of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// In words, such as the path it was read from.
    pub text: String,
    /// True for generated data.
    pub is_generated: bool,
}

impl Source {
    /// Returns that of data that was read from a file or folder.
    #[must_use]
    pub fn of_file(path: &Path) -> Self {
        Self { text: path.display().to_string(), is_generated: false }
    }
}

/// A refusal of what the user gave, in one line: what, where, what to do.
#[derive(Debug)]
pub struct Error(pub(crate) Box<Failure>);

impl Error {
    /// Returns an error of what the user gave: the exit code is 2.
    #[must_use]
    pub fn of_input(text: impl Into<String>) -> Self {
        Failure::Input(text.into()).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self(Box::new(failure))
    }
}

impl From<TaskError> for Error {
    fn from(error: TaskError) -> Self {
        Failure::Task(error).into()
    }
}

impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        TaskError::Data(error).into()
    }
}

impl From<CheckpointError> for Error {
    fn from(error: CheckpointError) -> Self {
        TaskError::Checkpoint(error).into()
    }
}

/// The table that describes a run to come.
pub struct Plan<'a> {
    pub(crate) table: &'a mut Table,
    pub(crate) given: &'a Given,
    /// Workers of all nodes; `None` where processes have yet to agree on them.
    pub(crate) workers: Option<usize>,
    pub(crate) source: &'a str,
}

impl Plan<'_> {
    /// Adds a row: a choice, and those of `flags`, without dashes, that made it.
    pub fn row(&mut self, name: &str, choice: &str, flags: &[&str]) {
        self.table.row([name, choice, &self.given.among(flags)]);
    }

    /// Adds a row that no flag has made.
    pub fn note(&mut self, name: &str, text: &str) {
        self.table.row([name, text]);
    }

    /// Adds the row of the data, called `name`, with those of `flags` that chose it.
    pub fn data(&mut self, name: Option<&Path>, flags: &[&str]) {
        let source = self.source;
        self.table.row(["data", source, &input::origin(name, flags, self.given)]);
        if let Some(left_out) = self.given.left_out() {
            self.note("", &format!("not {left_out}, as --data is given"));
        }
    }

    /// Adds the row of a saved model, with the flag that names its file and those of `flags` that
    /// were given.
    pub fn model(&mut self, model: &str, load: &Path, flags: &[&str]) {
        let origin = format!("--load {} {}", load.display(), self.given.among(flags));
        self.table.row(["model", model, origin.trim_end()]);
    }

    /// Adds a warning if the sampling scheme suits the system badly on `nodes` nodes.
    pub(crate) fn warn_of_sampling(&mut self, scheme: Option<Scheme>, cluster: &ClusterConfig) {
        let (Some(scheme), Some(system)) = (scheme, cluster.system) else { return };
        let is_several = cluster.nodes.unwrap_or(1) > 1;
        if let Some(caveat) = scheme.caveat(system).filter(|_| is_several) {
            let usual = Scheme::of(system);
            self.row("warning", &format!("{scheme} sampling {caveat}; use {usual}"), &[]);
        }
    }
}

/// Something that was found in data.
pub(crate) struct Finding {
    /// Without a name of the data.
    pub(crate) text: String,
    /// It may make figures wrong: something is repeated, unknown, or missing.
    pub(crate) is_problem: bool,
}

impl Finding {
    pub(crate) fn note(text: String) -> Self {
        Self { text, is_problem: false }
    }

    pub(crate) fn problem(text: String) -> Self {
        Self { text, is_problem: true }
    }
}

/// Returns the settings that only this task has, by name.
fn own_settings(config: &impl Config) -> Vec<(String, String)> {
    let mut settings = settings_of(config);
    let common = [settings_of(config.run()), settings_of(config.cluster())].concat();
    settings.retain(|(name, _)| common.iter().all(|(other, _)| other != name));
    settings
}

/// Returns a row of figures for each part that was evaluated; empty if none was.
fn figures_table<'a, F: Figures + 'a>(parts: impl Iterator<Item = (&'a str, &'a F)>) -> String {
    let parts: Vec<_> = parts.map(|(name, figures)| (name, figures.named())).collect();
    let Some((_, first)) = parts.first() else { return String::new() };
    let mut columns = vec![Align::Left];
    columns.resize(first.len() + 1, Align::Right);
    let mut table = Table::new(&columns);
    let names = first.iter().map(|(name, _)| (*name).to_owned());
    table.row([String::new()].into_iter().chain(names));
    for (name, figures) in parts {
        let figures = figures.into_iter().map(|(_, value)| format::figure(value));
        table.row([name.to_owned()].into_iter().chain(figures));
    }
    table.render() + "\n"
}

fn named<F: Figures>(figures: Option<&F>) -> BTreeMap<String, f64> {
    let named = figures.map(F::named).into_iter().flatten();
    named.map(|(name, figure)| (name.to_owned(), figure)).collect()
}
