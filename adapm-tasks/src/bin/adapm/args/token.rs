//! What can be asked of the verb `token`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = TOKEN_EXAMPLES, args_override_self = true)]
pub(crate) struct TokenArgs {
    /// File to make, which only you can read; one that is there is not touched
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

const TOKEN_EXAMPLES: &str = "\
Examples:
  adapm token my.token
  scp -p my.token b:
  adapm train kge --node 0 --nodes 2 --rendezvous a:4157 --token-file my.token";
