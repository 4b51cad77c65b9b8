//! Flags about the processes of a cluster: their launch, the secret they share, and the place of
//! each.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use adapm_transport::group::launcher::seconds;
use adapm_transport::net::Kind;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};

use crate::run::flags::at_least_one;

#[derive(Debug, Args)]
#[command(after_help = LAUNCH_EXAMPLES, args_override_self = true)]
pub(crate) struct LaunchArgs {
    /// Processes to start, one a node [default: one a host of --hosts]
    #[arg(long, value_name = "N", value_parser = at_least_one, required_unless_present = "hosts")]
    pub(crate) nodes: Option<usize>,
    /// Transport between the processes [default: tcp]
    #[arg(long, value_name = "NAME", value_parser = transport())]
    pub(crate) transport: Option<Kind>,
    /// Seconds without a sign of life after which a node counts as lost [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) dead_after: Option<std::time::Duration>,
    /// Start all again, from the last checkpoint of a run with --out or --out-local, up to N times
    /// after a failure
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) restarts: u32,
    /// File with the secret of the processes, 32 bytes or more [default: a new secret for each run]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Hosts to start on by ssh (HOST, USER@HOST; IPv6 in brackets), node 0 on the first, by a name
    /// that the others know, too
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
    /// Command of each process: `train`, `eval` or `check-net`, with its flags; or a program of
    /// your own by its path
    #[arg(last = true, required = true, value_name = "VERB ...")]
    pub(crate) command: Vec<OsString>,
}

/// The default port of the rendezvous: on no list of well-known ports.
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
  adapm launch --hosts ann,bob -- train kge --json > run.jsonl
  adapm launch --nodes 4 --restarts 3 -- train kge --data FB15k-237 --out runs/a
  adapm launch --nodes 2 -- ./own_task train --data my.txt";

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

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Processes")]
pub(crate) struct ProcessArgs {
    /// This process is node I of --nodes processes [default: as torchrun, mpirun, srun or
    /// Kubernetes say]
    #[arg(long, value_name = "I")]
    pub(crate) node: Option<usize>,
    /// Meeting point of the processes: node 0 listens at HOST:PORT, or writes its address to a file
    /// that all see
    #[arg(long, value_name = "HOST:PORT|file:PATH")]
    pub(crate) rendezvous: Option<String>,
    /// Transport between the processes [default: tcp]
    #[arg(long, value_name = "NAME", value_parser = transport())]
    pub(crate) transport: Option<Kind>,
    /// File with the secret of the processes, 32 bytes or more; no other user may read it [default:
    /// one made for the run where they meet by a file]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Go without a secret, in the clear, although others can connect
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Host or address to listen at [default: this host's on the way to the rendezvous]
    #[arg(long, value_name = "HOST")]
    pub(crate) bind: Option<String>,
    /// Host or address by which the others reach this process [default: that of --bind]
    #[arg(long, value_name = "HOST")]
    pub(crate) advertise: Option<String>,
    /// Seconds without a sign of life after which a node counts as lost [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) dead_after: Option<Duration>,
    /// Seconds to wait for all processes to join [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) join_timeout: Option<Duration>,
}

/// Returns one of the ways to carry frames.
pub(super) fn transport() -> impl clap::builder::TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::available().map(Kind::scheme))
        .try_map(|name| name.parse::<Kind>())
}
