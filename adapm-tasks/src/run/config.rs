//! Choices of every run, which are flags of the command line and fields of a configuration at once;
//! checks of them, and their names.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use adapm_core::policy::Supply;
use adapm_runtime::trace::Tracer;
use adapm_runtime::{Builder, Workers};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::System;
use crate::partition::PartitionFile;
use crate::run::flags::{Manager, at_least_one, manager, positive_count};
use crate::run::hot::{self, HotChoice, HotKeysError};
use crate::run::traced::UnknownKey;

/// The settings of a task's training: flags, the settings of a file, and what has to be equal on
/// all nodes of a run.
///
/// A task derives [`clap::Args`] and [`Serialize`] and has a [`ClusterConfig`] and a [`RunConfig`]
/// among its fields, both flattened. Its fields are numbers, texts, yes or no, or lists of these:
/// processes compare what `serde_json` writes of them, and nothing of what it cannot write.
pub trait Config: Serialize + Clone + Send + Sync {
    /// Returns the nodes and workers, and the settings that all tasks have.
    fn common(&self) -> (&ClusterConfig, &RunConfig);

    /// Returns the same, to be changed.
    fn common_mut(&mut self) -> (&mut ClusterConfig, &mut RunConfig);

    /// Returns the nodes and workers, and the system.
    fn cluster(&self) -> &ClusterConfig {
        self.common().0
    }

    /// Returns the settings that all tasks have.
    fn run(&self) -> &RunConfig {
        self.common().1
    }

    /// Returns the batches that are one clock to a bound unless `--clock-every` says otherwise:
    /// some 20 ms of work, of data of a usual size, as each clock costs a round. Positive; defaults
    /// to 1.
    fn batches_per_clock(&self) -> u32 {
        1
    }

    /// Checks that each field has a value that is valid for any data; [`RunConfig::check`] is a
    /// part of it. [`checks`](crate::run::checks) has the usual ones.
    ///
    /// # Errors
    ///
    /// The first field that has not.
    fn check(&self) -> Result<(), ConfigError> {
        self.run().check(self.cluster())
    }
}

/// Returns the batches that a loader prepares ahead of its worker: `usual`, or `--localize-ahead`
/// under a system whose workers say themselves when they want a key.
pub(crate) fn batches_ahead(config: &impl Config, usual: usize) -> usize {
    if config.cluster().system.is_some_and(System::localizes) {
        return usize::try_from(config.run().localize_ahead).unwrap_or(usize::MAX);
    }
    usual
}

/// The nodes and workers of a run, and the system that manages its parameters.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[command(next_help_heading = "Cluster")]
#[serde(default)]
#[non_exhaustive]
pub struct ClusterConfig {
    /// Nodes: processes if there are several (see Processes), else all in this one [default: 1, or
    /// as many as there are processes]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub nodes: Option<usize>,
    /// Workers (threads) of each node; 2,1,1: of each of three nodes [default: cores / nodes of the
    /// host, at least 1]
    #[arg(long, value_name = "N")]
    #[serde(with = "crate::run::flags::workers_given")]
    pub workers: Option<Workers>,
    /// Parameter management system, as ssp:3 where it has a parameter; none: plain arrays and one
    /// worker, to compare with
    #[arg(long, value_name = "NAME", default_value = System::Adapm.name(), value_parser = manager)]
    #[serde(with = "crate::run::flags::manager_name")]
    pub system: Manager,
    /// How often nodes exchange, and workers wait for each other.
    #[command(flatten)]
    #[serde(flatten)]
    pub pacing: Pacing,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        let (nodes, workers, pacing) = (None, None, Pacing::default());
        Self { nodes, workers, system: Some(System::Adapm), pacing }
    }
}

/// How often nodes exchange what has changed, and workers wait for each other.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Pacing {
    /// Rounds a second at most, in which nodes exchange intents and changes [default: 2000]
    #[arg(long, value_name = "N")]
    pub rounds_per_second: Option<NonZeroU32>,
    /// Clocks that a worker may be ahead of the slowest, under a system without a bound of its own
    #[arg(long, value_name = "CLOCKS")]
    pub bound: Option<u32>,
    /// Batches of work that are one clock to a bound, that of the system included [default: by
    /// task, some 20 ms of work]
    #[arg(long, value_name = "N")]
    pub clock_every: Option<NonZeroU32>,
}

impl Pacing {
    /// Puts these settings into a builder.
    pub(crate) fn of<V: adapm_core::Value>(self, builder: Builder<V>) -> Builder<V> {
        let builder = self.rounds_per_second.into_iter().fold(builder, Builder::rounds_per_second);
        let builder = self.bound.into_iter().fold(builder, Builder::bound);
        self.clock_every.into_iter().fold(builder, Builder::clocks_per_tick)
    }

    /// Checks that the system can have these settings.
    pub(crate) fn check(self, system: Manager) -> Result<(), ConfigError> {
        let own = system.and_then(System::bound);
        match (self.bound, system) {
            (Some(_), None) => Err(ConfigError::BoundWithoutSystem),
            (Some(_), Some(system)) if own.is_some() => Err(ConfigError::TwoBounds { system }),
            (None, _) if own.is_none() && self.clock_every.is_some() => {
                Err(ConfigError::ClockWithoutBound)
            }
            _ => Ok(()),
        }
    }
}

/// The settings of training that all tasks have.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Training")]
#[serde(default)]
#[non_exhaustive]
pub struct RunConfig {
    /// Seed of initial values, of the order of the data, and of all else that is drawn
    #[arg(long, value_name = "N", default_value_t = RunConfig::default().seed)]
    pub seed: u64,
    /// Do not evaluate: no epoch is selected, and nothing is reported on data that is held out
    #[arg(long)]
    pub no_eval: bool,
    /// End after so many epochs without progress on valid, or in the loss where nothing is selected
    /// on [default: never]
    #[arg(long, value_name = "EPOCHS", value_parser = positive_count)]
    pub patience: Option<u32>,
    /// Clocks between `localize` and the access at most, and three quarters of them at least, under
    /// lapse and nups; a clock is a batch of work
    #[arg(long, value_name = "CLOCKS", default_value_t = RunConfig::default().localize_ahead, help_heading = "Cluster")]
    pub localize_ahead: u64,
    /// Hot keys under nups and parallax, which every node holds for the whole run: those accessed
    /// more often than so many times the mean [default: 100]
    #[arg(long, value_name = "TIMES", help_heading = "Cluster")]
    pub replicate_factor: Option<f64>,
    /// Hot keys: the N that are accessed most often
    #[arg(long, value_name = "N", help_heading = "Cluster")]
    pub replicate: Option<u64>,
    /// Hot keys: those that FILE lists, one number a line
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub replicate_keys: Option<PathBuf>,
    /// Changes by which copies of keys of one batch may be apart, in proportion to how often they
    /// are accessed, under het-gmp: who lags is refreshed before it is read [default: no bound]
    #[arg(long, value_name = "CHANGES", help_heading = "Cluster")]
    pub inter: Option<u32>,
    /// Parameters that the report is to have. Where nodes are processes they are brought together
    /// on node 0, whose choice counts. Defaults to the best.
    #[arg(skip)]
    #[serde(skip)]
    pub keep: Keep,
    /// Writes what happens to some keys while training; where nodes are processes each writes its
    /// own part, if it chooses to. Defaults to `None`.
    #[arg(skip)]
    #[serde(skip)]
    pub trace: Option<Tracer>,
    /// The homes of keys, and where the task can do that the nodes of samples, for as many nodes,
    /// all with as many workers. Defaults to `None`: by hash, or under a system that needs a
    /// partition by one that is made when training begins.
    #[arg(skip)]
    #[serde(skip)]
    pub partition: Option<Arc<PartitionFile>>,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            no_eval: false,
            patience: None,
            localize_ahead: 8,
            replicate_factor: None,
            replicate: None,
            replicate_keys: None,
            inter: None,
            keep: Keep::default(),
            trace: None,
            partition: None,
        }
    }
}

impl RunConfig {
    /// Checks that each field has a value that is valid for any data, in a cluster of this kind.
    ///
    /// # Errors
    ///
    /// The first field that has not.
    pub fn check(&self, cluster: &ClusterConfig) -> Result<(), ConfigError> {
        whole("patience", self.patience.unwrap_or(1).into(), 1, u64::MAX)?;
        whole("localize_ahead", self.localize_ahead, 1, u64::MAX)?;
        self.check_hot()?;
        self.check_hot_under(cluster.system)?;
        let is_het_gmp = matches!(cluster.system, Some(System::HetGmp { .. }));
        ensure(
            is_het_gmp || self.inter.is_none(),
            "inter",
            self.inter.unwrap_or(0),
            Wanted::HetGmp,
        )?;
        let makes_parts = cluster.system.is_some_and(|s| s.supply() == Supply::Partition);
        let has_parts = makes_parts || self.partition.is_some();
        match &cluster.workers {
            Some(workers) if has_parts && !workers.are_equal() => Err(ConfigError::PartsOfUnequal),
            _ => Ok(()),
        }
    }

    /// Returns what is to be hot, if the system has such keys.
    pub(crate) fn hot_choice(&self) -> HotChoice<'_> {
        match (&self.replicate_keys, self.replicate, self.replicate_factor) {
            (Some(file), ..) => HotChoice::Listed(file),
            (None, Some(count), _) => HotChoice::Most(count),
            (None, None, factor) => HotChoice::Factor(factor.unwrap_or(hot::FACTOR)),
        }
    }

    /// Checks that what is to be hot can be, for any data: it is chosen once, and a file lists
    /// keys.
    fn check_hot(&self) -> Result<(), ConfigError> {
        positive("replicate_factor", self.replicate_factor.unwrap_or(hot::FACTOR))?;
        whole("replicate", self.replicate.unwrap_or(1), 1, u64::MAX)?;
        let given = self.hot_fields();
        if let [_, (field, value), ..] = &given[..] {
            return ensure(false, field, value, Wanted::One(given[0].0));
        }
        if let Some(file) = &self.replicate_keys {
            hot::read(file, u64::MAX)?;
        }
        Ok(())
    }

    /// Checks that nothing is to be hot under a system without such keys.
    fn check_hot_under(&self, system: Option<System>) -> Result<(), ConfigError> {
        match self.hot_fields().first() {
            Some((field, value)) if !system.is_some_and(System::has_hot_keys) => {
                ensure(false, field, value, Wanted::HotKeys)
            }
            _ => Ok(()),
        }
    }

    /// Returns the fields that choose what is hot, as far as they are given.
    fn hot_fields(&self) -> Vec<(&'static str, String)> {
        let factor = self.replicate_factor.map(|factor| ("replicate_factor", factor.to_string()));
        let count = self.replicate.map(|count| ("replicate", count.to_string()));
        let file = self.replicate_keys.as_ref();
        let file = file.map(|file| ("replicate_keys", file.display().to_string()));
        [factor, count, file].into_iter().flatten().collect()
    }
}

/// Parameters that are wanted in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Keep {
    /// None.
    Nothing,
    /// Those of the chosen epoch.
    #[default]
    Best,
    /// These, and those at the end of training, which take as much memory once more.
    BestAndLast,
}

/// An evaluated part of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Split {
    /// The part a model is selected on.
    Valid,
    /// The part that is looked at once.
    #[default]
    Test,
}

/// A choice that makes no sense. Its text is one line: what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A bound without a system that keeps it.
    #[error("--bound needs a system, not none: leave it out")]
    BoundWithoutSystem,
    /// A bound for a system that has one of its own.
    #[error("--bound: {system} has a bound of its own; leave it out")]
    TwoBounds {
        /// The system.
        system: System,
    },
    /// Clocks are counted for a bound that there is not.
    #[error(
        "--clock-every: nothing bounds how far workers are apart; give --bound, or leave it out"
    )]
    ClockWithoutBound,
    /// Parts are for nodes of equally many workers.
    #[error(
        "--workers: het-gmp and --homes need nodes with equally many workers; give one number for all"
    )]
    PartsOfUnequal,
    /// Zero nodes.
    #[error("0 nodes cannot train; give at least 1")]
    NoNodes,
    /// Numbers of workers that are not one for each node.
    #[error(
        "--workers {given}: {nodes} numbers are needed, one for each node of the run, or one for all"
    )]
    WorkerList {
        /// The list.
        given: Workers,
        /// Nodes of the run.
        nodes: usize,
    },
    /// Zero workers.
    #[error("0 workers cannot train; give at least 1 per node")]
    NoWorkers,
    /// More nodes than keys.
    #[error("{nodes} nodes for {keys} keys: some would own nothing; give at most {keys} nodes")]
    MoreNodesThanKeys {
        /// Nodes asked for.
        nodes: usize,
        /// Keys of the parameters.
        keys: u64,
    },
    /// A key is to be traced that the parameters do not have.
    #[error("cannot trace: {0}")]
    UnknownKey(UnknownKey),
    /// A field of the configuration has a value that it cannot have.
    #[error("{field} {value}: {wanted}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: String,
        /// The values that the field can have.
        wanted: Wanted,
    },
    /// Nodes are processes and there is no manager that joins them.
    #[error("plain arrays are in one process; choose a system, or start one process")]
    NoSystem,
    /// Saved parameters do not have the shape that the data asks for.
    #[error(
        "the model has {numbers} numbers where the data asks for {wanted}; give the data it is of"
    )]
    OtherShape {
        /// Numbers of the model.
        numbers: usize,
        /// Numbers that there should be.
        wanted: usize,
    },
    /// Hot keys that cannot be chosen.
    #[error("{0}")]
    HotKeys(#[from] HotKeysError),
    /// A bound between keys that are accessed together needs to know how often each is.
    #[error("--inter: this task does not say how often keys are accessed; leave it out")]
    InterUnknown,
    /// There is no example to train on.
    #[error("the data has no example to train on; give data with at least one")]
    NothingToTrain,
}

/// The values that a field of a configuration can have. Its text lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// A finite number above 0.
    Positive,
    /// A finite number, 0 or more.
    NotNegative,
    /// A number from 0 to 1.
    Share,
    /// A number from 0 to below 1.
    ShareBelowAll,
    /// A whole number in a range.
    Whole {
        /// The least.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// An even number, as half of a vector are real parts and half imaginary ones.
    Even {
        /// The model of which vectors are complex numbers.
        model: &'static str,
    },
    /// Nothing beside another field that says the same.
    One(&'static str),
    /// Nothing, unless the system has keys that every node holds.
    HotKeys,
    /// Nothing, unless the system is het-gmp.
    HetGmp,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Positive => f.write_str("give a positive number"),
            Self::NotNegative => f.write_str("give 0 or a positive number"),
            Self::Share => f.write_str("give a share, from 0 to 1"),
            Self::ShareBelowAll => f.write_str("give a share, from 0 to below 1"),
            Self::Whole { min, max: u64::MAX } => {
                write!(f, "give a whole number of at least {min}")
            }
            Self::Whole { min, max } => write!(f, "give a whole number from {min} to {max}"),
            Self::Even { model } => write!(f, "the model {model} needs an even dimension"),
            Self::One(other) => write!(f, "give either this or {}", other.replace('_', "-")),
            Self::HotKeys => f.write_str("only nups and parallax have hot keys; leave it out"),
            Self::HetGmp => f.write_str("only het-gmp has such a bound; leave it out"),
        }
    }
}

/// Checks that the value of `field` is a finite number above 0.
///
/// # Errors
///
/// If it is not.
pub fn positive(
    field: &'static str,
    value: impl Into<f64> + ToString + Copy,
) -> Result<(), ConfigError> {
    let number: f64 = value.into();
    ensure(number > 0.0 && number.is_finite(), field, value, Wanted::Positive)
}

/// Checks that the value of `field` is a finite number, 0 or more.
///
/// # Errors
///
/// If it is not.
pub fn not_negative(
    field: &'static str,
    value: impl Into<f64> + ToString + Copy,
) -> Result<(), ConfigError> {
    let number: f64 = value.into();
    ensure(number >= 0.0 && number.is_finite(), field, value, Wanted::NotNegative)
}

/// Checks that the value of `field` is a share.
///
/// # Errors
///
/// If it is not.
pub fn share(field: &'static str, value: f64) -> Result<(), ConfigError> {
    ensure((0.0..=1.0).contains(&value), field, value, Wanted::Share)
}

/// Checks that the value of `field` is a share, and not all.
///
/// # Errors
///
/// If it is not.
pub fn share_below_all(field: &'static str, value: f64) -> Result<(), ConfigError> {
    ensure((0.0..1.0).contains(&value), field, value, Wanted::ShareBelowAll)
}

/// Checks that the value of `field` is from `min` to `max`.
///
/// # Errors
///
/// If it is not.
pub fn whole(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), ConfigError> {
    ensure((min..=max).contains(&value), field, value, Wanted::Whole { min, max })
}

/// Checks that `value` is the length of a vector that is supported.
///
/// # Errors
///
/// If it is not.
pub fn dimension(value: usize) -> Result<(), ConfigError> {
    whole("dim", value as u64, 1, DIM_MAX)
}

/// Fails with what is wanted of `field` unless its value is allowed.
pub(crate) fn ensure(
    is_allowed: bool,
    field: &'static str,
    value: impl ToString,
    wanted: Wanted,
) -> Result<(), ConfigError> {
    if is_allowed {
        Ok(())
    } else {
        Err(ConfigError::Value { field, value: value.to_string(), wanted })
    }
}

/// Reals of a vector that are supported.
const DIM_MAX: u64 = 1 << 16;

named!(Split, Split::Valid => "valid", Split::Test => "test");

/// A name that is none of the choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known choice; known are {}", choices.join(" "))]
pub struct UnknownChoice {
    pub(crate) choices: &'static [&'static str],
}

/// Gives the variants of an enum their names: `ALL`, `NAMES`, `name`, `FromStr`, `Display`, and
/// their form in files.
macro_rules! named {
    ($kind:ty, $($variant:path => $name:literal),+) => {
        impl $kind {
            /// All choices, in the order in which help lists them.
            pub const ALL: &'static [Self] = &[$($variant),+];
            /// Their names on the command line, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($variant => $name),+ }
            }
        }

        impl std::str::FromStr for $kind {
            type Err = $crate::run::config::UnknownChoice;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name { $($name => Ok($variant),)+ _ => Err($crate::run::config::UnknownChoice { choices: Self::NAMES }) }
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = String::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_made_once_and_where_it_is_of_use() {
        let two =
            RunConfig { replicate: Some(3), replicate_factor: Some(2.0), ..RunConfig::default() };
        let text = two.check_hot().expect_err("two choices").to_string();
        assert_eq!(text, "replicate 3: give either this or replicate-factor");
        let one = RunConfig { replicate: Some(3), ..RunConfig::default() };
        assert_eq!(one.check_hot(), Ok(()));
        for system in System::ALL {
            let is_fine = one.check_hot_under(Some(system)).is_ok();
            assert_eq!(is_fine, matches!(system, System::Nups | System::Parallax), "{system}");
            assert_eq!(RunConfig::default().check_hot_under(Some(system)), Ok(()));
        }
        assert!(one.check_hot_under(None).is_err());
        let none = RunConfig { replicate: Some(0), ..RunConfig::default() };
        assert!(none.check_hot().is_err());
    }
}
