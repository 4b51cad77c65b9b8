//! What can be asked of the verb `check-net`.

use std::time::Duration;

use adapm_transport::group::launcher::seconds;
use clap::Args;

use crate::args::ProcessArgs;

#[derive(Debug, Args)]
#[command(after_help = CHECK_NET_EXAMPLES, args_override_self = true)]
pub(crate) struct CheckNetArgs {
    /// Number of processes [default: as the launcher says]
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub(crate) nodes: Option<usize>,
    /// Time to measure for, all pairs together
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// Print one JSON object; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

const CHECK_NET_EXAMPLES: &str = "\
Every pair of nodes is measured alone, in both directions: small messages for round trips, 64 KiB messages for bandwidth, over \
the transport that a run would use.

Examples:
  adapm launch --nodes 4 -- check-net
  adapm launch --hosts ann,bob --transport zmq -- check-net --json
  srun -N4 adapm check-net --token-file TOKEN";
