//! What can be said about the processes of a cluster: the same for all verbs that may be one of several processes.

use std::path::PathBuf;
use std::time::Duration;

use adapm_transport::group::launcher::seconds;
use adapm_transport::net::Kind;
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Processes")]
pub(crate) struct ProcessArgs {
    /// This process is node I of --nodes processes [default: as torchrun, mpirun, srun or Kubernetes say]
    #[arg(long, value_name = "I")]
    pub(crate) node: Option<usize>,
    /// Where the processes meet: node 0 listens at HOST:PORT, or writes its address to a file that all see
    #[arg(long, value_name = "HOST:PORT|file:PATH")]
    pub(crate) rendezvous: Option<String>,
    /// What carries frames between the processes [default: tcp]
    #[arg(long, value_name = "NAME", value_parser = transport())]
    pub(crate) transport: Option<Kind>,
    /// File with the secret of the processes, 32 bytes or more; nobody else may read it [default: one made for the run where they
    /// meet by a file]
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

/// One of the ways to carry frames.
pub(super) fn transport() -> impl clap::builder::TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::available().map(Kind::scheme)).try_map(|name| name.parse::<Kind>())
}
