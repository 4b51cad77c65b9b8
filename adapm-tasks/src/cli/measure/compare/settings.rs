//! The settings of runs: what all share, and what only some systems take. Each flag is given to the
//! runs that can have it.

use crate::System;
use crate::cli::args::{CompareArgs, Given};
use crate::cli::failure::Failure;
use crate::cli::program::Program;
use crate::partition::PartitionFile;
use crate::run::{ClusterConfig, Config as _, RunConfig, TaskError};

/// The settings of a comparison.
pub(crate) struct Settings<'a> {
    given: &'a Given,
    task: &'static str,
    /// Nodes of the partition that is given.
    parts: Option<usize>,
}

/// What decides which settings a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) system: System,
    pub(crate) nodes: usize,
}

/// A setting that not all runs take.
struct Partial {
    flag: &'static str,
    /// Whether a run takes it, if a given partition has so many nodes.
    takes: fn(Kind, Option<usize>) -> bool,
    /// Takes it out of a configuration.
    clear: fn(&mut ClusterConfig, &mut RunConfig),
}

impl<'a> Settings<'a> {
    /// Returns those that are given, if each run can have what it takes of them, and each of them
    /// is taken.
    ///
    /// # Errors
    ///
    /// A setting that is none, or that no run takes; a partition that cannot be read.
    pub(crate) fn new<P: Program>(
        args: &CompareArgs<P>,
        systems: &[System],
        given: &'a Given,
    ) -> Result<Self, Failure> {
        let load = |path| PartitionFile::load(path, P::NAME).map_err(TaskError::from);
        let partition = args.train.homes.as_deref().map(load).transpose()?;
        let parts = partition.map(|partition| partition.replicas().len());
        let settings = Self { given, task: P::NAME, parts };
        let counts = args.comparison.node_counts();
        let of = |system: System| counts.iter().map(move |nodes| Kind { system, nodes: *nodes });
        let kinds: Vec<Kind> = systems.iter().copied().flat_map(of).collect();
        for kind in &kinds {
            let mut config = args.train.config.clone();
            let (cluster, run) = config.common_mut();
            cluster.system = Some(kind.system);
            settings.left_out(*kind).for_each(|partial| (partial.clear)(cluster, run));
            config.check()?;
        }
        let is_idle = |partial: &&Partial| !kinds.iter().any(|kind| (partial.takes)(*kind, parts));
        let is_given = |partial: &&Partial| given.settings().contains_key(partial.flag);
        match PARTIAL.iter().filter(is_given).find(is_idle) {
            Some(Partial { flag, .. }) => {
                let text = format!("--{flag}: nothing that is compared takes it; leave it out");
                Err(Failure::Input(text))
            }
            None => Ok(settings),
        }
    }

    /// Returns all of them as a file.
    pub(crate) fn of_all(&self) -> String {
        self.given.to_toml(self.task)
    }

    /// Returns those of a run as a file.
    pub(crate) fn of(&self, kind: Kind) -> String {
        let left_out: Vec<&str> = self.left_out(kind).map(|partial| partial.flag).collect();
        self.given.to_toml_without(&left_out, self.task)
    }

    fn left_out(&self, kind: Kind) -> impl Iterator<Item = &'static Partial> {
        let parts = self.parts;
        PARTIAL.iter().filter(move |partial| !(partial.takes)(kind, parts))
    }
}

/// The settings that not all runs take.
const PARTIAL: [Partial; 6] = [
    Partial {
        flag: "replicate-factor",
        takes: |kind, _| kind.system.has_hot_keys(),
        clear: |_, run| run.replicate_factor = None,
    },
    Partial {
        flag: "replicate",
        takes: |kind, _| kind.system.has_hot_keys(),
        clear: |_, run| run.replicate = None,
    },
    Partial {
        flag: "replicate-keys",
        takes: |kind, _| kind.system.has_hot_keys(),
        clear: |_, run| run.replicate_keys = None,
    },
    Partial {
        flag: "inter",
        takes: |kind, _| matches!(kind.system, System::HetGmp { .. }),
        clear: |_, run| run.inter = None,
    },
    Partial {
        flag: "bound",
        takes: |kind, _| kind.system.bound().is_none(),
        clear: |cluster, _| cluster.pacing.bound = None,
    },
    Partial { flag: "homes", takes: |kind, parts| parts == Some(kind.nodes), clear: |_, _| {} },
];
