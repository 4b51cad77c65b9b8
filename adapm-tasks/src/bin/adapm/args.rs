//! What can be asked for on the command line, with defaults and units.
//!
//! Defaults are those of the library's configurations, read from them. Whether values make sense together is the library's
//! to say; here are only words that are no value at all. Of a flag given twice the last counts, as scripts expect.

mod check_net;
mod launch;
mod processes;
mod simulate;
mod trace;

use std::collections::BTreeSet;
use std::path::PathBuf;

use adapm_tasks::kge::{LossKind, ModelKind, Negatives, Split, TrainConfig};
use adapm_tasks::{Scheme, System};
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use check_net::CheckNetArgs;
pub(crate) use launch::LaunchArgs;
pub(crate) use processes::{ProcessArgs, SECONDS_WANTED, seconds, transports};
pub(crate) use simulate::SimulateArgs;
pub(crate) use trace::{TraceArgs, TraceKeysArgs};

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
    /// Train one small job under three systems and compare them, in about 20 seconds (the default)
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
    /// Evaluate a model that was trained before
    #[command(
        subcommand_value_name = "TASK",
        subcommand_help_heading = "Tasks",
        arg_required_else_help = false
    )]
    Eval {
        #[command(subcommand)]
        task: EvalTask,
    },
    /// Run a verb as several processes, on this host or on others
    Launch(LaunchArgs),
    /// Measure round trips and bandwidth between processes
    CheckNet(CheckNetArgs),
    /// Model the paper's workloads on clusters of any size, beside the paper's figures
    Simulate(SimulateArgs),
    /// Show or draw where copies were in a run with --trace-keys
    Trace(TraceArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrainTask {
    /// Knowledge graph embeddings: predict the missing end of a triple
    Kge(Box<TrainArgs>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalTask {
    /// Knowledge graph embeddings: filtered ranks of held-out triples
    Kge(EvalArgs),
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct DemoArgs {
    /// Nodes, all in this process
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    pub(crate) nodes: usize,
    /// Passes over the training data
    #[arg(long, value_name = "N", default_value_t = DEMO_EPOCHS, value_parser = epochs, allow_negative_numbers = true)]
    pub(crate) epochs: u32,
    /// Length of an entity's vector, in reals
    #[arg(long, value_name = "REALS", default_value_t = DEMO_DIM)]
    pub(crate) dim: usize,
    /// Seed of initial values, order of the data and negatives
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().seed)]
    pub(crate) seed: u64,
}

impl DemoArgs {
    /// What `adapm` without arguments shows.
    pub(crate) fn default_values() -> Self {
        Self { nodes: 4, epochs: DEMO_EPOCHS, dim: DEMO_DIM, seed: TrainConfig::default().seed }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// Folder with train, valid, test (.txt, .tsv, .del), or its name in $ADAPM_DATA/kge; none: generated family trees
    #[arg(long, value_name = "PATH|NAME")]
    pub(crate) data: Option<PathBuf>,
    /// Seed of the generated graph
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "data")]
    pub(crate) data_seed: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Nodes: processes if there are several (see Processes), else all in this one [default: 1, or as many as there are processes]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) nodes: Option<usize>,
    /// Workers (threads) of each node [default: cores / nodes of the host, at least 1]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) workers: Option<usize>,
    /// Parameter management system
    #[arg(long, value_name = "NAME", default_value_t = System::Adapm, value_parser = system())]
    pub(crate) system: System,
}

#[derive(Debug, Args)]
#[command(after_help = TRAIN_EXAMPLES, args_override_self = true)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Clocks (chunks or data points) between `localize` and the access, under lapse
    #[arg(long, value_name = "CLOCKS", default_value_t = TrainConfig::default().localize_ahead)]
    pub(crate) localize_ahead: u64,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    #[command(flatten)]
    pub(crate) output: TrainOutputArgs,
    #[command(flatten)]
    pub(crate) traced: TraceKeysArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Function that scores a triple
    #[arg(long, value_name = "NAME", default_value_t = ModelKind::Complex, value_parser = one_of::<ModelKind>(&["complex", "rescal"]))]
    pub(crate) model: ModelKind,
    /// Length of an entity's vector, in reals (complex: half real, half imaginary parts)
    #[arg(long, value_name = "REALS", default_value_t = TrainConfig::default().dim, allow_negative_numbers = true)]
    pub(crate) dim: usize,
    /// Give every relation an inverse with a vector of its own
    #[arg(long)]
    pub(crate) reciprocal: bool,
    /// Standard deviation of the initial values
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().initial_deviation, allow_negative_numbers = true)]
    pub(crate) initial_deviation: f32,
    /// Seed of initial values, order of the data and negatives
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().seed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArgs {
    /// Passes over the training data
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().epochs, value_parser = epochs, allow_negative_numbers = true)]
    pub(crate) epochs: u32,
    /// What is minimised: cross entropy over the negatives (softmax) or of each (logistic)
    #[arg(long, value_name = "NAME", default_value_t = LossKind::Softmax, value_parser = one_of::<LossKind>(&["softmax", "logistic"]))]
    pub(crate) loss: LossKind,
    /// Negatives: one set for a whole chunk of triples, or a set for each triple
    #[arg(long, value_name = "WAY", default_value_t = Negatives::Shared, value_parser = one_of::<Negatives>(&["shared", "independent"]))]
    pub(crate) negatives: Negatives,
    /// Negatives of a chunk (shared), or of each side of a triple (independent) [default: 1000, or 50]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) negative_count: Option<usize>,
    /// Which entities are drawn as negatives: any, as they come (naive), brought here ahead (preloc), from a pool that is used
    /// again (pool), such as are here (local) [default: naive under classic, else local]
    #[arg(long, value_name = "SCHEME", value_parser = scheme())]
    pub(crate) sampling: Option<Scheme>,
    /// Triples of a chunk, with shared negatives
    #[arg(long, value_name = "TRIPLES", default_value_t = TrainConfig::default().chunk, value_parser = at_least_one)]
    pub(crate) chunk: usize,
    /// Learning rate of AdaGrad
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().learning_rate, allow_negative_numbers = true)]
    pub(crate) learning_rate: f32,
    /// Weight of the squared norm of a triple's entities
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().l2_entity, allow_negative_numbers = true)]
    pub(crate) l2_entity: f32,
    /// Weight of the squared norm of a triple's relation
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().l2_relation, allow_negative_numbers = true)]
    pub(crate) l2_relation: f32,
    /// Weight of the cubed absolute values of a triple's vectors
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().n3, allow_negative_numbers = true)]
    pub(crate) n3: f32,
    /// Do not evaluate: neither select the epoch on valid nor report on test
    #[arg(long)]
    pub(crate) no_eval: bool,
    /// Epochs between two evaluations of valid (the last epoch is always evaluated)
    #[arg(long, value_name = "EPOCHS", default_value_t = TrainConfig::default().valid_every, value_parser = epochs)]
    pub(crate) valid_every: u32,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TrainOutputArgs {
    /// Write the parameters of the selected epoch to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Print one JSON object per epoch and a last one of the run; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EVAL_EXAMPLES, args_override_self = true)]
pub(crate) struct EvalArgs {
    /// Parameters written by `train kge --save FILE`
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) load: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Part of the data to rank
    #[arg(long, value_name = "PART", default_value_t = Split::Test, value_parser = one_of::<Split>(&["valid", "test"]), help_heading = "Data")]
    pub(crate) split: Split,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Write the ranks to FILE, one a line: of each triple its object's, then its subject's
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) ranks: Option<PathBuf>,
    /// Print one JSON object; tables go to stderr
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

/// Which flags were given; all others have their default.
#[derive(Debug, Default)]
pub(crate) struct Given(BTreeSet<String>);

impl Given {
    fn of(mut matches: &ArgMatches) -> Self {
        while let Some((_, deeper)) = matches.subcommand() {
            matches = deeper;
        }
        let by_hand = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let ids = matches.ids().map(clap::Id::as_str).filter(|id| matches.try_contains_id(id).is_ok());
        Self(ids.filter(|id| by_hand(id)).map(|id| id.replace('_', "-")).collect())
    }

    /// Those of `flags` (without dashes) that were given, as `--nodes --workers`.
    pub(crate) fn among(&self, flags: &[&str]) -> String {
        let given = flags.iter().filter(|flag| self.0.contains(**flag));
        given.map(|flag| format!("--{flag}")).collect::<Vec<_>>().join(" ")
    }
}

impl Cli {
    /// Reads the command line of this process.
    pub(crate) fn from_command_line() -> Result<(Self, Given), clap::Error> {
        let matches = Self::command().try_get_matches()?;
        Ok((Self::from_arg_matches(&matches)?, Given::of(&matches)))
    }
}

fn system() -> impl clap::builder::TypedValueParser<Value = System> {
    PossibleValuesParser::new(System::ALL.map(System::name)).try_map(|name| name.parse::<System>())
}

fn scheme() -> impl clap::builder::TypedValueParser<Value = Scheme> {
    PossibleValuesParser::new(Scheme::ALL.map(Scheme::name)).try_map(|name| name.parse::<Scheme>())
}

fn one_of<T>(names: &'static [&'static str]) -> impl clap::builder::TypedValueParser<Value = T>
where
    T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.iter().copied()).try_map(|name| name.parse::<T>())
}

fn at_least_one(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("give a whole number of at least 1")
}

fn epochs(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("give a whole number of at least 1")
}

/// Chosen so that all three systems together take about 20 seconds on two cores.
const DEMO_EPOCHS: u32 = 8;
const DEMO_DIM: usize = 64;

const EXAMPLES: &str = "\
Examples:
  adapm                                            compare three systems on a small generated job
  adapm train kge --nodes 4 --system classic       train it on 4 nodes without adapting
  adapm train kge --data FB15k-237 --save m.adapm  train on $ADAPM_DATA/kge/FB15k-237, keep the model
  adapm eval kge --data FB15k-237 --load m.adapm   evaluate it again
  adapm launch --nodes 4 -- train kge              each node a process of its own
  adapm train kge --help                           everything that can be chosen";

const TRAIN_EXAMPLES: &str = "\
Systems:
  adapm                 adaptive technique (relocate or replicate) and adaptive timing
  adapm-no-relocation   replication only
  adapm-no-replication  relocation only
  adapm-immediate       acts on intent at once
  classic               static partition, no copies
  full                  every node holds a replica of everything
  lapse                 relocation only, by `localize`

Examples:
  adapm train kge --nodes 4
  adapm train kge --data FB15k-237 --epochs 30 --save fb.adapm
  adapm train kge --json --no-eval | jq .local_share";

const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval kge --load fb.adapm --data FB15k-237
  adapm eval kge --load fb.adapm --data FB15k-237 --nodes 4 --ranks ranks.txt";
