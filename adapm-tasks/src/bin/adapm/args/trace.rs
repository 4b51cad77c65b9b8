//! What can be asked about traces: which keys a run writes of, and how a file is shown.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Trace")]
pub(crate) struct TraceKeysArgs {
    /// Write what happens to some keys while training to FILE, for `adapm trace`; each of several processes to FILE.n0, FILE.n1, ...
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_keys: Option<PathBuf>,
    /// Keys of --trace-keys: key:N, or by name, in kge entity:NAME and relation:NAME, in mf row:ID and column:ID, in wv word:WORD and
    /// output:WORD (its output vector) [default: five from the most frequent to a typical one]
    #[arg(long, value_name = "KEY,...", requires = "trace_keys")]
    pub(crate) trace: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = TRACE_EXAMPLES, args_override_self = true)]
pub(crate) struct TraceArgs {
    /// Trace of a run, or FILE of which processes have written FILE.n0, FILE.n1, ...; or several such parts
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Draw it to OUT: a panel for each key, a row for each node
    #[arg(long, value_name = "OUT")]
    pub(crate) svg: Option<PathBuf>,
    /// Show it from here on, in seconds since the start
    #[arg(long, value_name = "SECONDS", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) from: Option<f64>,
    /// Show it up to here
    #[arg(long, value_name = "SECONDS", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) until: Option<f64>,
}

fn moment(text: &str) -> Result<f64, &'static str> {
    let seconds: Option<f64> =
        text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or("give seconds since the start, 0 or more")
}

const TRACE_EXAMPLES: &str = "\
Examples:
  adapm train kge --nodes 4 --epochs 2 --trace-keys run.trace
  adapm trace run.trace
  adapm trace run.trace --svg run.svg --from 0.5 --until 0.7";
