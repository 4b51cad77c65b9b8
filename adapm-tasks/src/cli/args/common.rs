//! Flags that every run has, whatever is trained or evaluated.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::{System, UnknownSystem};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::cli::args::parse::at_least_one;

#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// Recommended settings, whose name may be left out to list them; flags given by hand win
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = LIST)]
    pub(crate) recipe: Option<String>,
    /// File of settings, each a line such as `dim = 128`; it wins over a recipe, flags given by
    /// hand over both
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print all settings of the run as such a file, and do nothing else
    #[arg(long)]
    pub(crate) print_config: bool,
}

impl SettingsArgs {
    /// Returns true if recipes are to be listed instead of training.
    pub(crate) fn lists(&self) -> bool {
        self.recipe.as_deref().is_some_and(Self::is_list)
    }

    /// Returns true if something is to be printed instead of training.
    pub(crate) fn only_print(&self) -> bool {
        self.lists() || self.print_config
    }

    /// Returns true if this name stands for all recipes.
    pub(crate) fn is_list(name: &str) -> bool {
        name == LIST
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Nodes: processes if there are several (see Processes), else all in this one [default: 1, or
    /// as many as there are processes]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) nodes: Option<usize>,
    /// Workers (threads) of each node [default: cores / nodes of the host, at least 1]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) workers: Option<usize>,
    /// Parameter management system; none: plain arrays and one worker, to compare with
    #[arg(long, value_name = "NAME", default_value_t = Manager(Some(System::Adapm)), value_parser = manager())]
    pub(crate) system: Manager,
}

/// A system, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manager(pub(crate) Option<System>);

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or(NO_MANAGER, System::name))
    }
}

impl FromStr for Manager {
    type Err = UnknownSystem;

    fn from_str(name: &str) -> Result<Self, UnknownSystem> {
        if name == NO_MANAGER {
            Ok(Self(None))
        } else {
            name.parse().map(|system| Self(Some(system)))
        }
    }
}

fn manager() -> impl TypedValueParser<Value = Manager> {
    let names = System::ALL.map(System::name).into_iter().chain([NO_MANAGER]);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Manager>())
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TrainOutputArgs {
    /// Write the trained parameters to FILE, for `eval`, `predict` and `export`
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Print one JSON object per epoch and a last one of the run; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EvalOutputArgs {
    /// Print one JSON object; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// The name that stands for all recipes.
const LIST: &str = "list";
const NO_MANAGER: &str = "none";

/// Returns the systems with what each does, for the end of a help screen.
pub(crate) fn systems() -> String {
    let none = (NO_MANAGER, "plain arrays without a manager, one worker");
    let all = System::ALL.map(|system| (system.name(), system.summary())).into_iter().chain([none]);
    let lines: Vec<String> = all.map(|(name, summary)| format!("  {name:22}{summary}")).collect();
    format!("Systems:\n{}", lines.join("\n"))
}
