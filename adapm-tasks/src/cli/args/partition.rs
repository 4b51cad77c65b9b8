//! Flags of the verb that partitions a task's samples and keys.

use std::path::PathBuf;

use clap::Args;

use crate::partition::{Priority, ROUNDS, STORE_RATE};

#[derive(Debug, Args)]
#[command(next_help_heading = "Partition")]
pub(crate) struct PartitionOwnArgs {
    /// File to write, for `train --homes FILE` on as many nodes
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Rounds in which samples and keys are moved, after a first pass
    #[arg(long, value_name = "N", default_value_t = ROUNDS)]
    pub(crate) rounds: u32,
    /// Share of all keys that a node replicates at most
    #[arg(long, value_name = "SHARE", default_value_t = STORE_RATE)]
    pub(crate) store_rate: f64,
    /// Keys that a node replicates: paper: those that it uses most; soft: those that most of its
    /// batches need, the rarer the more
    #[arg(long, value_name = "NAME", default_value_t, value_enum)]
    pub(crate) priority: Priority,
    /// File of the bandwidths between nodes, in any unit: a line for each node, with a number for
    /// each [default: all equal]
    #[arg(long, value_name = "FILE")]
    pub(crate) bandwidth: Option<PathBuf>,
    /// Print one JSON object; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// The end of the help screen.
pub(crate) const PARTITION_EXAMPLES: &str = "\
Examples:
  adapm partition kge --data FB15k-237 --nodes 4 --out fb.prt
  adapm partition ctr --data Adult --nodes 2 --store-rate 0.05 --out adult.prt";
