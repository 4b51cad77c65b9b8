//! The verbs of the command line and their tasks, and how a command line is read: words, a recipe,
//! a file of settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, ColorChoice, Command, Parser, Subcommand};

use crate::cli::args::export::ExportTask;
use crate::cli::args::predict::PredictTask;
use crate::cli::args::{
    BenchArgs, CheckModelsArgs, CheckNetArgs, CompareArgs, DataArgs, DemoArgs, Given, LaunchArgs,
    PARTITION_EXAMPLES, SettingsArgs, SimulateArgs, TokenArgs, TraceArgs, deepest, in_one_line,
    run_of, systems,
};
use crate::cli::config::{ConfigFile, ConfigFileError};
use crate::cli::failure::Failure;
use crate::cli::folder;
use crate::cli::partition::PartitionArgs;
use crate::cli::program::{EvalArgs, Program, TrainArgs};
use crate::cli::recipe::{self, Recipe, UnknownRecipe};
use crate::cli::terminal::Stream;
use crate::ctr::{self, Ctr};
use crate::gnn::{self, Gnn};
use crate::kge::{self, Kge};
use crate::mf::{self, Mf};
use crate::wv::{self, Wv};

/// Trains models with sparse access on an adaptive parameter manager.
#[derive(Parser)]
#[command(name = "adapm", version, after_help = EXAMPLES, subcommand_value_name = "VERB")]
#[command(subcommand_help_heading = "Verbs", disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

#[derive(Subcommand)]
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
    /// Find the flags of a system that has to be tuned
    #[command(
        subcommand_value_name = "SYSTEM",
        subcommand_help_heading = "Systems",
        arg_required_else_help = false
    )]
    Tune {
        #[command(subcommand)]
        system: TuneSystem,
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
    /// Partition the samples and keys of a task among nodes
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Partition {
        #[command(subcommand)]
        task: PartitionTask,
    },
    /// Check whether saved models and checkpoints are whole, and show what is in them
    Check(CheckModelsArgs),
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
    /// Compare systems on a task, on several numbers of nodes
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Compare {
        #[command(subcommand)]
        task: CompareTask,
    },
    /// Measure what the parameter manager costs on this machine
    Bench(BenchArgs),
}

#[derive(Subcommand)]
pub(crate) enum TrainTask {
    /// Knowledge graph embeddings: predict the missing end of a triple
    #[command(after_help = with_systems(kge::program::TRAIN_EXAMPLES))]
    Kge(Box<TrainArgs<Kge>>),
    /// Matrix factorization: predict the missing cells of a matrix, such as ratings
    #[command(after_help = with_systems(mf::program::TRAIN_EXAMPLES))]
    Mf(Box<TrainArgs<Mf>>),
    /// Word vectors: skip-gram with negative sampling, as word2vec
    #[command(after_help = with_systems(wv::program::TRAIN_EXAMPLES))]
    Wv(Box<TrainArgs<Wv>>),
    /// Click prediction: Wide & Deep, Deep & Cross, or DeepFM
    #[command(after_help = with_systems(ctr::program::TRAIN_EXAMPLES))]
    Ctr(Box<TrainArgs<Ctr>>),
    /// Graph networks: predict the classes of nodes
    #[command(after_help = with_systems(gnn::program::TRAIN_EXAMPLES))]
    Gnn(Box<TrainArgs<Gnn>>),
}

#[derive(Subcommand)]
pub(crate) enum TuneSystem {
    /// Which keys are hot, and how far ahead others are localized: trains a twentieth of an epoch
    /// with each of six choices, and prints the flags of the fastest
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Nups {
        #[command(subcommand)]
        task: TrainTask,
    },
}

#[derive(Subcommand)]
pub(crate) enum EvalTask {
    /// Knowledge graph embeddings: filtered ranks of held-out triples
    #[command(after_help = kge::program::EVAL_EXAMPLES)]
    Kge(Box<EvalArgs<Kge>>),
    /// Matrix factorization: the error on held-out cells
    #[command(after_help = mf::program::EVAL_EXAMPLES)]
    Mf(Box<EvalArgs<Mf>>),
    /// Word vectors: questions of analogy, similarity of words
    #[command(after_help = wv::program::EVAL_EXAMPLES)]
    #[command(mut_arg("load", |flag| flag.help(wv::program::LOAD).long_help(wv::program::LOAD)))]
    Wv(Box<EvalArgs<Wv>>),
    /// Click prediction: AUC and logarithmic loss on held-out examples
    #[command(after_help = ctr::program::EVAL_EXAMPLES)]
    Ctr(Box<EvalArgs<Ctr>>),
    /// Graph networks: the accuracy on held-out nodes
    #[command(after_help = gnn::program::EVAL_EXAMPLES)]
    Gnn(Box<EvalArgs<Gnn>>),
}

#[derive(Subcommand)]
pub(crate) enum PartitionTask {
    /// Knowledge graph embeddings: facts, with entities and relations
    #[command(after_help = PARTITION_EXAMPLES)]
    Kge(Box<PartitionArgs<Kge>>),
    /// Matrix factorization: cells, with rows and columns
    #[command(after_help = PARTITION_EXAMPLES)]
    Mf(Box<PartitionArgs<Mf>>),
    /// Word vectors: sentences, with both vectors of words
    #[command(after_help = PARTITION_EXAMPLES)]
    Wv(Box<PartitionArgs<Wv>>),
    /// Click prediction: examples, with features
    #[command(after_help = PARTITION_EXAMPLES)]
    Ctr(Box<PartitionArgs<Ctr>>),
    /// Graph networks: nodes to train on, with those that they need
    #[command(after_help = PARTITION_EXAMPLES)]
    Gnn(Box<PartitionArgs<Gnn>>),
}

#[derive(Subcommand)]
pub(crate) enum CompareTask {
    /// Knowledge graph embeddings, by the MRR on valid
    #[command(after_help = compared("kge --data FB15k-237 --epochs 5"))]
    Kge(Box<CompareArgs<Kge>>),
    /// Matrix factorization, by the RMSE on valid
    #[command(after_help = compared("mf --data ml-1m/ratings.dat"))]
    Mf(Box<CompareArgs<Mf>>),
    /// Word vectors, by the accuracy on analogies at the end
    #[command(after_help = compared("wv --data text8 --epochs 3"))]
    Wv(Box<CompareArgs<Wv>>),
    /// Click prediction, by the AUC on valid
    #[command(after_help = compared("ctr --data clicks.tsv"))]
    Ctr(Box<CompareArgs<Ctr>>),
    /// Graph networks, by the accuracy on valid
    #[command(after_help = compared("gnn --data graph"))]
    Gnn(Box<CompareArgs<Gnn>>),
}

/// The command line of a task of one's own.
#[derive(Parser)]
#[command(name = P::NAME, version = P::VERSION, about = P::ABOUT, long_about = None)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
pub(crate) struct OwnCli<P: Program> {
    #[command(subcommand)]
    pub(crate) verb: OwnVerb<P>,
}

#[derive(Subcommand)]
pub(crate) enum OwnVerb<P: Program> {
    /// Train a model
    #[command(after_help = systems())]
    Train(Box<TrainArgs<P>>),
    /// Evaluate a saved model
    Eval(Box<EvalArgs<P>>),
}

/// Returns the command `C`, whose help is as wide and as plain as stdout, and whose flags take what
/// begins with a minus and a digit for a value, so that it is refused as such.
fn laid_out<C: Parser>() -> Command {
    fn of(command: Command) -> Command {
        let takes = |flag: &Arg| flag.get_long().is_some() && flag.get_action().takes_values();
        let flags = command
            .mut_args(|flag| if takes(&flag) { flag.allow_negative_numbers(true) } else { flag });
        flags.mut_subcommands(of)
    }
    // By itself it would see a terminal of colours wherever `CI` is set.
    let color = if Stream::Stdout.is_attended() { ColorChoice::Auto } else { ColorChoice::Never };
    of(C::command().color(color).term_width(Stream::Stdout.width().min(HELP_WIDTH_MAX)))
}

/// Returns the command with no flag that has to be given.
fn optional(command: Command) -> Command {
    command.mut_args(|flag| flag.required(false)).mut_subcommands(optional)
}

impl Cli {
    /// Reads a command line, which begins with the name of the program.
    ///
    /// # Errors
    ///
    /// Words that are no command, and a recipe that there is not.
    pub(crate) fn read(words: Vec<OsString>) -> Result<(Self, Given), Failure> {
        read(with_task(words)?, |verbs| verbs.last().copied().unwrap_or_default())
    }
}

/// Returns `train --resume FOLDER` with the task of the run in that folder, if it has none.
fn with_task(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let text = |at: usize| words.get(at).map(|word| word.to_string_lossy());
    let has_none = text(1).is_some_and(|verb| verb == "train")
        && text(2).is_some_and(|word| word.starts_with('-'));
    let given = |word: &OsString| {
        word.to_string_lossy().strip_prefix(RESUME)?.strip_prefix('=').map(PathBuf::from)
    };
    let is_flag = |word: &OsString| *word == *RESUME;
    let behind = || words.get(1 + words.iter().position(is_flag)?).map(PathBuf::from);
    let Some(folder) = words.iter().find_map(given).or_else(behind).filter(|_| has_none) else {
        return Ok(words);
    };
    let folder = run_of(&folder);
    folder::check_run(folder)?;
    let task = ConfigFile::task_of(&folder::settings_of(folder))?;
    words.insert(2, task.into());
    Ok(words)
}

impl<P: Program> OwnCli<P> {
    /// Reads a command line, as [`Cli::read`].
    pub(crate) fn read(words: Vec<OsString>) -> Result<(Self, Given), Failure> {
        read(words, |_| P::NAME)
    }
}

/// Reads a command line whose words of verbs name the task as `task_of` says.
fn read<C: Parser>(
    words: Vec<OsString>,
    task_of: impl for<'a> Fn(&[&'a str]) -> &'a str,
) -> Result<(C, Given), Failure> {
    let usage = |error| Failure::Usage { error, words: words.iter().skip(1).cloned().collect() };
    let (matches, missing) = match laid_out::<C>().try_get_matches_from(&words) {
        Ok(matches) => (matches, None),
        // A file or a recipe may have what is missing.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let some = optional(laid_out::<C>()).try_get_matches_from(&words);
            (some.map_err(usage)?, Some(error))
        }
        Err(error) => return Err(usage(error)),
    };
    let given = Given::by_hand(&matches, &C::command());
    let (verbs, flags) = deepest(&matches);
    let task = task_of(&verbs);
    let (recipe, config) = (recipe_asked(task, flags)?, config_asked(task, flags, &given)?);
    if recipe.is_none() && config.is_none() {
        if let Some(error) = missing {
            return Err(usage(error));
        }
        return Ok((C::from_arg_matches(&matches).map_err(usage)?, given));
    }
    // Of a flag that is given twice the last counts: recipe, file, by hand.
    let (data_flags, replaces_data) = (given.data_flags(), given.has_any(&["data"]));
    let config = config.map(|file| if replaces_data { file.without(&data_flags) } else { file });
    let of_file = config.as_ref();
    let has_data =
        given.has_any(&data_flags) || of_file.is_some_and(|config| config.has_any(&data_flags));
    let (verb, flags) = words.split_at(1 + verbs.len());
    let recommended = recipe.iter().flat_map(|recipe| recipe.words(!has_data));
    let set = of_file.into_iter().flat_map(|config| config.words(given.command()));
    let all = verb.iter().cloned().chain(recommended).chain(set).chain(flags.iter().cloned());
    let matches = laid_out::<C>().try_get_matches_from(all).map_err(|error| {
        let alone = |word| verb.iter().cloned().chain([word]).collect::<Vec<_>>();
        let refusal = |word| {
            let error = laid_out::<C>().try_get_matches_from(alone(word)).err()?;
            Some(in_one_line(&error))
        };
        let of_file = of_file.and_then(|config| config.refused(given.command(), refusal));
        of_file.map_or_else(|| usage(error), Failure::from)
    })?;
    let given = given.with_added(recipe.as_ref().map(Recipe::name), config, &matches);
    Ok((C::from_arg_matches(&matches).map_err(usage)?, given))
}

/// Returns the recipe that is asked for; `None` if none is, or all are to be listed.
///
/// # Errors
///
/// A name that no recipe of the task has.
fn recipe_asked(task: &str, flags: &ArgMatches) -> Result<Option<Recipe>, UnknownRecipe> {
    let name = flags.try_get_one::<String>("recipe").ok().flatten();
    let Some(name) = name.filter(|name| !SettingsArgs::is_list(name)) else { return Ok(None) };
    recipe::find(task, name).map(Some)
}

/// Returns the file of settings that is asked for.
///
/// # Errors
///
/// A file that cannot be used.
fn config_asked(
    task: &str,
    flags: &ArgMatches,
    given: &Given,
) -> Result<Option<ConfigFile>, ConfigFileError> {
    let path = |flag| flags.try_get_one::<PathBuf>(flag).ok().flatten();
    let resumed = path("resume_run").map(|folder| folder::settings_of(run_of(folder)));
    let Some(path) = resumed.or_else(|| path("config").cloned()) else { return Ok(None) };
    ConfigFile::read(&path, task, given.command()).map(Some)
}

fn with_systems(examples: &str) -> String {
    format!("{}\n\n{examples}", systems())
}

/// Returns the end of the help of `compare` for a task.
fn compared(example: &str) -> String {
    let systems = systems();
    let systems = systems.lines().filter(|line| !line.contains(NO_MANAGER_LINE));
    let systems = systems.collect::<Vec<_>>().join("\n");
    format!(
        "{systems}\n\n{COMPARE_HELP}\n\nExamples:\n  adapm compare {example} --out cmp\n{COMPARE_EXAMPLES}"
    )
}

/// The flag of a run that goes on.
const RESUME: &str = "--resume";

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
  adapm compare kge --nodes 1,2 --out cmp         systems side by side
  adapm train kge --help                          all settings";

/// The line of a list of systems that is of none.
const NO_MANAGER_LINE: &str = "plain arrays without a manager";

const COMPARE_HELP: &str = "\
Each run is a process of its own. Speed-ups are over adapm on one node with as many workers a node: raw is the time of an \
epoch, effective the time of training to the target. Times are without evaluation, which is the same for all. A system is dim \
if no number of nodes makes it faster than that node. All systems have the same settings; none is tuned, but nups with --tune.";

const COMPARE_EXAMPLES: &str = "  \
  adapm compare kge --dim 64 --epochs 5 --runs 1 --out quick
  adapm compare kge --dim 64 --epochs 5 --runs 3 --out quick --resume
  adapm compare kge --systems adapm,lapse --nodes 2,4 --budget 10m --out several
  adapm compare mf --systems adapm,nups --nodes 2 --tune --out tuned
  adapm compare mf --processes --nodes 2 --runs 5 --out processes";

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs, process};

    use super::*;

    /// A program of one's own, whose data has to be given.
    #[derive(Debug, Parser)]
    struct Own {
        #[command(subcommand)]
        verb: OwnVerb,
    }

    #[derive(Debug, Subcommand)]
    enum OwnVerb {
        Train(OwnTrain),
    }

    #[derive(Debug, clap::Args)]
    struct OwnTrain {
        #[arg(long, help_heading = "Data")]
        data: PathBuf,
        #[arg(long, help_heading = "Data")]
        valid: Option<PathBuf>,
        #[arg(long, default_value_t = 1, help_heading = "Model")]
        rank: u64,
        #[command(flatten)]
        settings: SettingsArgs,
    }

    fn read_own(words: &[&str]) -> Result<(String, Option<String>, u64), Failure> {
        let words = ["own", "train"].iter().chain(words).map(OsString::from).collect();
        let (Own { verb: OwnVerb::Train(args) }, _) = read::<Own>(words, |_| "own")?;
        let text = |path: &Path| path.display().to_string();
        Ok((text(&args.data), args.valid.as_deref().map(text), args.rank))
    }

    #[test]
    fn a_file_may_give_what_has_to_be_given_and_its_data_goes_together() {
        let file = env::temp_dir().join(format!("adapm-own-{}.toml", process::id()));
        let text = "task = \"own\"\ndata = \"a\"\nvalid = \"v\"\nrank = 7\n";
        fs::write(&file, text).expect("a temporary file");
        let config = file.to_str().expect("a readable path");
        let of_file = read_own(&["--config", config]).expect("all is given");
        assert_eq!(of_file, ("a".to_owned(), Some("v".to_owned()), 7));
        let by_hand = read_own(&["--config", config, "--data", "b"]).expect("all is given");
        assert_eq!(by_hand, ("b".to_owned(), None, 7), "a flag of the model is no data");
        fs::write(&file, "task = \"own\"\nrank = 7\n").expect("a temporary file");
        for words in [&["--config", config][..], &["--rank", "7"]] {
            let missing = read_own(words).expect_err("no data is given").to_string();
            assert!(missing.contains("--data"), "{words:?}: {missing}");
        }
        fs::remove_file(file).expect("it is there");
    }
}
