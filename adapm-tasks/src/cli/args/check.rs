//! Flags of the verb `check`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub(crate) struct CheckModelsArgs {
    /// Saved models, checkpoints, or folders of runs (--out)
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Print one JSON object per model or checkpoint; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Reads each model and checkpoint whole and compares all checksums. The first one that is damaged,
cut short or of something else ends it with exit code 2.

Examples:
  adapm check umls.adapm
  adapm check runs/a runs/b --json";
