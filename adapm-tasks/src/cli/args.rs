//! Arguments of the command line, with defaults and units.
//!
//! A file a task, and one for verbs that go together; [`common`] is what all runs have, [`given`]
//! which flags were given. Defaults are those of the library's configurations, read from them. The
//! library checks whether values make sense together; here only words that are no value at all are
//! refused. If a flag is given twice, the last one counts, as scripts expect; so a flag given by
//! hand, which comes after those of a recipe, counts.

mod common;
mod data;
mod given;
pub(crate) mod kge;
mod launch;
mod measure;
pub(crate) mod mf;
mod parse;
mod predict;
mod usage;
pub(crate) mod wv;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{
    Arg, ArgMatches, ColorChoice, Command, CommandFactory as _, FromArgMatches as _, Parser,
    Subcommand,
};

use crate::cli::config::{ConfigFile, ConfigFileError};
use crate::cli::failure::Failure;
use crate::cli::recipe::{self, Recipe, UnknownRecipe};
use crate::cli::terminal::Stream;

pub(crate) use common::{ClusterArgs, Manager, SettingsArgs, TrainOutputArgs};
pub(crate) use data::{CheckArgs, DataArgs, DataVerb, ExportArgs, ExportWordsArgs};
use given::{DATA_FLAGS, deepest};
pub(crate) use given::{Given, Settings};
pub(crate) use launch::{LaunchArgs, ProcessArgs, TokenArgs};
pub(crate) use measure::{
    BenchArgs, CheckNetArgs, DemoArgs, SimulateArgs, TraceArgs, TraceKeysArgs,
};
pub(crate) use predict::{
    AskArgs, KgeArgs as KgePredictArgs, MfArgs as MfPredictArgs, PredictTask,
    WvArgs as WvPredictArgs,
};
pub(crate) use usage::in_one_line;

/// Trains models with sparse access on an adaptive parameter manager.
#[derive(Debug, Parser)]
#[command(name = "adapm", version, after_help = EXAMPLES, subcommand_value_name = "VERB")]
#[command(subcommand_help_heading = "Verbs", disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Compare three systems on three small jobs (the default)
    Demo(DemoArgs),
    /// Train a model
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Train {
        #[command(subcommand)]
        task: TrainTask,
    },
    /// Evaluate a saved model
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Eval {
        #[command(subcommand)]
        task: EvalTask,
    },
    /// Answer queries with a saved model
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Predict {
        #[command(subcommand)]
        task: PredictTask,
    },
    /// Write a saved model in a form that other programs read
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Export {
        #[command(subcommand)]
        task: ExportTask,
    },
    /// List the data sets of the recipes and where to get them, or check data
    Data(DataArgs),
    /// Run a verb as several processes, on this host or on others
    Launch(LaunchArgs),
    /// Make the secret that the processes of a run share
    Token(TokenArgs),
    /// Measure round trips and bandwidth between processes
    CheckNet(CheckNetArgs),
    /// Model the paper's workloads on clusters of any size
    Simulate(SimulateArgs),
    /// Show or draw where copies were in a run with --trace-keys
    Trace(TraceArgs),
    /// Measure what the parameter manager costs on this machine
    Bench(BenchArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrainTask {
    /// Knowledge graph embeddings: predict the missing end of a triple
    #[command(after_help = with_systems(kge::TRAIN_EXAMPLES))]
    Kge(Box<kge::TrainArgs>),
    /// Matrix factorization: predict the missing cells of a matrix, such as ratings
    #[command(after_help = with_systems(mf::TRAIN_EXAMPLES))]
    Mf(Box<mf::TrainArgs>),
    /// Word vectors: skip-gram with negative sampling, as word2vec
    #[command(after_help = with_systems(wv::TRAIN_EXAMPLES))]
    Wv(Box<wv::TrainArgs>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalTask {
    /// Knowledge graph embeddings: filtered ranks of held-out triples
    #[command(after_help = kge::EVAL_EXAMPLES)]
    Kge(kge::EvalArgs),
    /// Matrix factorization: the error on held-out cells
    #[command(after_help = mf::EVAL_EXAMPLES)]
    Mf(mf::EvalArgs),
    /// Word vectors: questions of analogy, similarity of words
    #[command(after_help = wv::EVAL_EXAMPLES)]
    Wv(wv::EvalArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportTask {
    /// Knowledge graph embeddings, as lines of numbers
    #[command(after_help = data::EXPORT_KGE)]
    Kge(ExportArgs),
    /// Matrix factorization, as lines of numbers
    #[command(after_help = data::EXPORT_MF)]
    Mf(ExportArgs),
    /// Word vectors, in word2vec's forms
    #[command(after_help = data::EXPORT_WV)]
    Wv(ExportWordsArgs),
}

impl Cli {
    /// Returns the command, whose help is as wide and as plain as stdout, and whose flags take what
    /// begins with a minus and a digit for a value, so that it is refused as such.
    fn laid_out() -> Command {
        fn of(command: Command) -> Command {
            let takes = |flag: &Arg| flag.get_long().is_some() && flag.get_action().takes_values();
            let flags = command.mut_args(|flag| {
                if takes(&flag) { flag.allow_negative_numbers(true) } else { flag }
            });
            flags.mut_subcommands(of)
        }
        // By itself it would see a terminal of colours wherever `CI` is set.
        let color =
            if Stream::Stdout.is_attended() { ColorChoice::Auto } else { ColorChoice::Never };
        of(Self::command().color(color).term_width(Stream::Stdout.width().min(HELP_WIDTH_MAX)))
    }

    /// Reads a command line, which begins with the name of the program.
    ///
    /// # Errors
    ///
    /// Words that are no command, and a recipe that there is not.
    pub(crate) fn read(words: Vec<OsString>) -> Result<(Self, Given), Failure> {
        let usage =
            |error| Failure::Usage { error, words: words.iter().skip(1).cloned().collect() };
        let matches = Self::laid_out().try_get_matches_from(&words).map_err(usage)?;
        let given = Given::by_hand(&matches, &Self::command());
        let (recipe, config) = (recipe_asked(&matches)?, config_asked(&matches, &given)?);
        if recipe.is_none() && config.is_none() {
            return Ok((Self::from_arg_matches(&matches).map_err(usage)?, given));
        }
        // Of a flag that is given twice the last counts: recipe, file, by hand.
        let (own_data, of_file) = (given.has_any(&DATA_FLAGS), config.as_ref());
        let has_data = own_data || of_file.is_some_and(|config| config.has_any(&DATA_FLAGS));
        let replaces_data = given.has_any(&["data"]);
        let wants = |flag: &str| !(replaces_data && DATA_FLAGS.contains(&flag));
        let (verb, flags) = words.split_at(1 + deepest(&matches).0.len());
        let recommended = recipe.iter().flat_map(|recipe| recipe.words(!has_data));
        let set = of_file.into_iter().flat_map(|config| config.words(given.command(), wants));
        let all = verb.iter().cloned().chain(recommended).chain(set).chain(flags.iter().cloned());
        let matches = Self::laid_out().try_get_matches_from(all).map_err(|error| {
            let alone = |word| verb.iter().cloned().chain([word]).collect::<Vec<_>>();
            let refusal = |word| {
                let error = Self::laid_out().try_get_matches_from(alone(word)).err()?;
                Some(in_one_line(&error))
            };
            let of_file = of_file.and_then(|config| config.refused(given.command(), refusal));
            of_file.map_or_else(|| usage(error), Failure::from)
        })?;
        let given = given.with_added(recipe.as_ref().map(Recipe::name), config, &matches);
        Ok((Self::from_arg_matches(&matches).map_err(usage)?, given))
    }
}

/// Returns the recipe that is asked for; `None` if none is, or all are to be listed.
///
/// # Errors
///
/// A name that no recipe of the task has.
fn recipe_asked(matches: &ArgMatches) -> Result<Option<Recipe>, UnknownRecipe> {
    let (verbs, matches) = deepest(matches);
    let name = matches.try_get_one::<String>("recipe").ok().flatten();
    let Some(name) = name.filter(|name| !SettingsArgs::is_list(name)) else { return Ok(None) };
    recipe::find(verbs.last().copied().unwrap_or_default(), name).map(Some)
}

/// Returns the file of settings that is asked for.
///
/// # Errors
///
/// A file that cannot be used.
fn config_asked(
    matches: &ArgMatches,
    given: &Given,
) -> Result<Option<ConfigFile>, ConfigFileError> {
    let (verbs, matches) = deepest(matches);
    let Some(path) = matches.try_get_one::<PathBuf>("config").ok().flatten() else {
        return Ok(None);
    };
    let task = verbs.last().copied().unwrap_or_default();
    ConfigFile::read(path, task, given.command()).map(Some)
}

fn with_systems(examples: &str) -> String {
    format!("{}\n\n{examples}", common::systems())
}

/// Longer lines are hard to read.
const HELP_WIDTH_MAX: usize = 120;

const EXAMPLES: &str = "\
Examples:
  adapm                                           compare three systems
  adapm train kge --nodes 4 --system classic      embeddings, without adapting
  adapm train mf --data ml-1m/ratings.dat         factorize ratings
  adapm train wv --data text8 --save text8.adapm  word vectors, saved
  adapm eval wv --load text8.adapm --questions questions-words.txt
  adapm predict wv --load text8.adapm --word king  neighbours of a word
  adapm export wv --load text8.adapm --output text8.bin --format binary
  adapm train kge --recipe                        recommended settings
  adapm data check my/triples.tsv                 what data holds
  adapm launch --nodes 4 -- train kge             each node as a process
  adapm train kge --help                          all settings";
