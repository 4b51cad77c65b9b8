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

/// Settings that not all runs take.
struct Partial {
    flags: &'static [&'static str],
    /// Whether a run takes them, if a given partition has so many nodes.
    takes: fn(Kind, Option<usize>) -> bool,
    /// Takes them out of a configuration.
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
        given: &'a Given,
    ) -> Result<Self, Failure> {
        let load = |path| PartitionFile::load(path, P::NAME).map_err(TaskError::from);
        let partition = args.train.homes.as_deref().map(load).transpose()?;
        let parts = partition.map(|partition| partition.replicas().len());
        let settings = Self { given, task: P::NAME, parts };
        let (systems, counts) = (args.comparison.systems(), args.comparison.node_counts());
        let of = |system| counts.iter().map(move |nodes| Kind { system, nodes: *nodes });
        let kinds: Vec<Kind> = systems.iter().copied().flat_map(of).collect();
        if args.comparison.tunes {
            settings.check_tuning(&systems)?;
        }
        for kind in &kinds {
            let mut config = args.train.config.clone();
            let (cluster, run) = config.common_mut();
            cluster.system = Some(kind.system);
            settings.left_out(*kind).for_each(|partial| (partial.clear)(cluster, run));
            config.check()?;
        }
        let is_idle = |partial: &&Partial| !kinds.iter().any(|kind| (partial.takes)(*kind, parts));
        let idle = PARTIAL.iter().filter(is_idle).find_map(|partial| settings.first(partial.flags));
        idle.map_or(Ok(settings), |flag| {
            let text = format!("--{flag}: nothing that is compared takes it; leave it out");
            Err(Failure::Input(text))
        })
    }

    /// Checks that there is something to tune, and that nothing else chooses the same.
    fn check_tuning(&self, systems: &[System]) -> Result<(), Failure> {
        let refused = |text: String| Err(Failure::Input(text));
        if !systems.contains(&System::Nups) {
            return refused(
                "--tune: nups is not compared, and nothing else is tuned; leave it out".to_owned(),
            );
        }
        self.first(&HOT).map_or(Ok(()), |flag| {
            refused(format!("--{flag}: --tune chooses what is hot; leave one of them out"))
        })
    }

    /// Returns the first of these flags that has a value.
    fn first(&self, flags: &[&'static str]) -> Option<&'static str> {
        flags.iter().copied().find(|flag| self.given.settings().contains_key(*flag))
    }

    /// Returns all of them as a file.
    pub(crate) fn of_all(&self) -> String {
        self.given.to_toml(self.task)
    }

    /// Returns those of a run as a file.
    pub(crate) fn of(&self, kind: Kind) -> String {
        let flags = self.left_out(kind).flat_map(|partial| partial.flags.iter().copied());
        let left_out: Vec<&str> = flags.collect();
        self.given.to_toml_without(&left_out, self.task)
    }

    fn left_out(&self, kind: Kind) -> impl Iterator<Item = &'static Partial> {
        let parts = self.parts;
        PARTIAL.iter().filter(move |partial| !(partial.takes)(kind, parts))
    }
}

/// Flags that choose hot keys.
const HOT: [&str; 3] = ["replicate-factor", "replicate", "replicate-keys"];

/// The settings that not all runs take.
const PARTIAL: [Partial; 4] = [
    Partial {
        flags: &HOT,
        takes: |kind, _| kind.system.has_hot_keys(),
        clear: |_, run| {
            (run.replicate_factor, run.replicate, run.replicate_keys) = (None, None, None);
        },
    },
    Partial {
        flags: &["inter"],
        takes: |kind, _| matches!(kind.system, System::HetGmp { .. }),
        clear: |_, run| run.inter = None,
    },
    Partial {
        flags: &["bound"],
        takes: |kind, _| kind.system.bound().is_none(),
        clear: |cluster, _| cluster.pacing.bound = None,
    },
    Partial {
        flags: &["homes"],
        takes: |kind, parts| parts == Some(kind.nodes),
        // A file is no part of a configuration yet.
        clear: |_, _| {},
    },
];
