//! Arguments of the command line, with defaults and units.
//!
//! A file for verbs that go together; [`common`] is what all runs have, [`given`] which flags were
//! given. The settings of a task are the library's configurations themselves, which check whether
//! values make sense together; here only words that are no value at all are refused. If a flag is
//! given twice, the last one counts, as scripts expect; so a flag given by hand, which comes after
//! those of a recipe, counts.
//!
//! Not here: the verbs that have these arguments ([`verbs`](crate::cli::verbs)).

mod check;
mod common;
mod compare;
mod data;
pub(crate) mod export;
mod given;
mod launch;
mod measure;
mod partition;
pub(crate) mod predict;
mod usage;

pub(crate) use check::CheckModelsArgs;
pub(crate) use common::{EvalOutputArgs, MANIFEST, SettingsArgs, TrainOutputArgs, run_of, systems};
pub(crate) use compare::{CompareArgs, OF_ONE_RUN};
pub(crate) use data::{CheckArgs, DataArgs, DataVerb};
pub(crate) use given::{Given, Settings, deepest};
pub(crate) use launch::{LaunchArgs, ProcessArgs, TokenArgs};
pub(crate) use measure::{
    BenchArgs, CheckNetArgs, DemoArgs, SimulateArgs, TraceArgs, TraceKeysArgs, trace_help,
};
pub(crate) use partition::{PARTITION_EXAMPLES, PartitionOwnArgs};
pub(crate) use usage::in_one_line;
