//! Flags that every run has, whatever is trained or evaluated.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::System;
use crate::cli::folder::FolderFlag;
use crate::run::CheckpointFolder;
use crate::run::flags::NO_MANAGER;

#[derive(Debug, Default, Args)]
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

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TrainOutputArgs {
    /// Write the trained parameters to FILE, for `eval` and other verbs that take a model
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Make a folder of the run: its settings, a line an epoch, checkpoints, the best and the last
    /// parameters
    #[arg(long, value_name = "FOLDER", group = "run_folder")]
    pub(crate) out: Option<PathBuf>,
    /// Make such a folder on each host, which need not share one: with the checkpoints of its own
    /// processes, all else on the host of node 0
    #[arg(long, value_name = "FOLDER", group = "run_folder")]
    pub(crate) out_local: Option<PathBuf>,
    /// Go on from the last checkpoint of the run in FOLDER, or from FOLDER if that is a checkpoint,
    /// with the settings of the run; the task may be left out
    #[arg(id = "resume_run", long = "resume", value_name = "FOLDER", conflicts_with_all = ["out", "out_local", "config", "recipe"])]
    pub(crate) resume: Option<PathBuf>,
    /// Let --out or --out-local take the folder of an earlier run
    #[arg(long, requires = "run_folder")]
    pub(crate) overwrite: bool,
    /// Print one JSON object per epoch and a last one of the run; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

impl TrainOutputArgs {
    /// Returns the folder of the run, if it has one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        let new = self.out.as_deref().or(self.out_local.as_deref());
        self.resume.as_deref().map(run_of).or(new)
    }

    /// Returns the flag that gives the folder of the run.
    pub(crate) fn folder_flag(&self) -> FolderFlag {
        match (&self.resume, &self.out_local) {
            (Some(_), _) => FolderFlag::Resume,
            (None, Some(_)) => FolderFlag::OutLocal,
            (None, None) => FolderFlag::Out,
        }
    }

    /// Returns where the run has its checkpoints, if it has any; `is_restarted`: its folder is that
    /// of an earlier start of the same launch.
    pub(crate) fn checkpoints(&self, is_restarted: bool) -> Option<CheckpointFolder> {
        let folder = self.folder()?;
        let named = || self.resume.as_deref().filter(|path| is_checkpoint(path));
        let name = || named()?.file_name()?.to_str();
        let checkpoints = match &self.resume {
            _ if is_restarted => CheckpointFolder::begun_or_resumed(folder),
            Some(_) => CheckpointFolder::resumed(folder, name()),
            None => CheckpointFolder::new(folder),
        };
        Some(if self.out_local.is_some() { checkpoints.apart() } else { checkpoints })
    }
}

/// Returns the folder of the run that a path given to `--resume` is of.
pub(crate) fn run_of(path: &Path) -> &Path {
    let run = || path.parent()?.parent();
    is_checkpoint(path).then(run).flatten().unwrap_or(path)
}

fn is_checkpoint(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// The file that a folder has which is a checkpoint.
pub(crate) const MANIFEST: &str = "manifest.json";

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EvalOutputArgs {
    /// Print one JSON object; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// The name that stands for all recipes.
const LIST: &str = "list";

/// Returns the systems with what each does, for the end of a help screen.
pub(crate) fn systems() -> String {
    let none = (NO_MANAGER, "plain arrays without a manager, one worker");
    let all = System::ALL.map(|system| (system.name(), system.summary())).into_iter().chain([none]);
    let lines: Vec<String> = all.map(|(name, summary)| format!("  {name:22}{summary}")).collect();
    format!("Systems:\n{}", lines.join("\n"))
}
