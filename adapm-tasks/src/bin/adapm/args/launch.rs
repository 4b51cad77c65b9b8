//! What can be asked of the verb `launch`.

use std::ffi::OsString;
use std::path::PathBuf;

use adapm_transport::group::launcher::seconds;
use adapm_transport::net::Kind;
use clap::Args;

use crate::args::processes::transport;

#[derive(Debug, Args)]
#[command(after_help = LAUNCH_EXAMPLES, args_override_self = true)]
pub(crate) struct LaunchArgs {
    /// Processes to start, one a node [default: one a host of --hosts]
    #[arg(long, value_name = "N", value_parser = super::at_least_one, required_unless_present = "hosts")]
    pub(crate) nodes: Option<usize>,
    /// What carries frames between the processes [default: tcp]
    #[arg(long, value_name = "NAME", value_parser = transport())]
    pub(crate) transport: Option<Kind>,
    /// Seconds without a sign of life after which a node counts as lost [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) dead_after: Option<std::time::Duration>,
    /// File with the secret of the processes, 32 bytes or more [default: a new secret for each run]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Hosts to start on by ssh (HOST, USER@HOST; IPv6 in brackets), node 0 on the first, by a name that the others know, too
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', help_heading = "Several hosts")]
    pub(crate) hosts: Vec<String>,
    /// Port of the first host at which the nodes meet
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..), requires = "hosts", help_heading = "Several hosts")]
    pub(crate) port: u16,
    /// Program to start on the hosts
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "adapm",
        requires = "hosts",
        help_heading = "Several hosts"
    )]
    pub(crate) remote_program: OsString,
    /// What each process does: `train`, `eval` or `check-net`, with its flags
    #[arg(last = true, required = true, value_name = "VERB ...")]
    pub(crate) command: Vec<OsString>,
}

/// Where nodes meet if nobody says where: on no list of well-known ports.
const PORT: u16 = 4157;

const LAUNCH_EXAMPLES: &str = "\
Output:
  stdout    that of node 0, unchanged
  stderr    lines of all nodes, each after its node (`n2 | `); the bar of node 0
  exit code that of the node that failed first, or 128 + the signal that ended it;
            75: a node was lost or did not join, starting again may help

Several hosts:
  ssh must work without a password; its stdin carries the secret.
  $ADAPM_SSH replaces the command `ssh`.

Examples:
  adapm launch --nodes 4 -- train kge --data FB15k-237
  adapm launch --nodes 4 --transport zmq -- check-net
  adapm launch --hosts ann,bob -- train kge --json > run.jsonl";
