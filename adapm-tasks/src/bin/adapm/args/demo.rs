//! What can be asked of the verb `demo`.

use clap::Args;

use crate::args::{at_least_one, epochs};

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct DemoArgs {
    /// Nodes, all in this process
    #[arg(long, value_name = "N", default_value_t = NODES, value_parser = at_least_one)]
    pub(crate) nodes: usize,
    /// Passes over the training data of each task [default: kge 4, mf 8, wv 3]
    #[arg(long, value_name = "N", value_parser = epochs, allow_negative_numbers = true)]
    pub(crate) epochs: Option<u32>,
    /// Length of a vector of each task [default: kge 64, mf 8, wv 32]
    #[arg(long, value_name = "N")]
    pub(crate) dim: Option<usize>,
    /// Seed of initial values, order of the data and negatives
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub(crate) seed: u64,
}

impl DemoArgs {
    /// What `adapm` without arguments shows.
    pub(crate) fn default_values() -> Self {
        Self { nodes: NODES, epochs: None, dim: None, seed: SEED }
    }
}

const NODES: usize = 4;
const SEED: u64 = 1;
