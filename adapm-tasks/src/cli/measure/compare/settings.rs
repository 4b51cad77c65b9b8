//! The settings of runs: what all share, and what only some systems take. Each flag is given to the
//! runs that can have it.

use std::num::NonZeroU32;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::System;
use crate::cli::args::{CompareArgs, Given};
use crate::cli::failure::Failure;
use crate::cli::program::Program;
use crate::partition::PartitionFile;
use crate::run::{ClusterConfig, Config as _, RunConfig};

/// The settings of a comparison.
pub(crate) struct Settings<'a> {
    given: &'a Given,
    task: &'static str,
    scope: Scope,
    /// Batches of a clock, given or usual.
    clock_every: u32,
}

/// What the settings of all say about what a run can have.
#[derive(Clone, Copy)]
struct Scope {
    /// Nodes of the partition that is given.
    parts: Option<usize>,
    /// A bound is given.
    has_bound: bool,
}

/// The settings of a run that are not as by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Knobs {
    /// As words of a command line.
    pub(crate) flags: String,
    /// Batches of a clock, if something is bounded.
    pub(crate) clock_every: Option<u32>,
    /// Clocks ahead that keys are localized, if any are.
    pub(crate) localize_ahead: Option<u64>,
}

/// What decides which settings a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) system: System,
    pub(crate) nodes: usize,
}

impl Kind {
    /// Returns that of the reference, which nothing bounds whatever is compared with it.
    fn reference() -> Self {
        Self { system: System::default(), nodes: 1 }
    }

    /// Returns true if `--bound` is for such a run.
    fn takes_bound(self) -> bool {
        self.system.bound().is_none() && self != Self::reference()
    }
}

/// Settings that not all runs take.
struct Partial {
    flags: &'static [&'static str],
    /// Returns true if a run takes them.
    takes: fn(Kind, Scope) -> bool,
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
        let partition = args.train.partition()?;
        let parts = partition.as_ref().map(|partition| partition.replicas().len());
        let has_bound = args.train.config.cluster().pacing.bound.is_some();
        let scope = Scope { parts, has_bound };
        let clock_every = args.train.config.cluster().pacing.clock_every;
        let clock_every =
            clock_every.map_or(args.train.config.batches_per_clock(), NonZeroU32::get);
        let settings = Self { given, task: P::NAME, scope, clock_every };
        partition.map_or(Ok(()), |partition| check_seeds(args, &partition))?;
        let (systems, counts) = (args.comparison.systems(), args.comparison.node_counts());
        let of = |system| counts.iter().map(move |nodes| Kind { system, nodes: *nodes });
        let kinds: Vec<Kind> = systems.iter().copied().flat_map(of).collect();
        if args.comparison.tunes {
            settings.check_tuning(&systems)?;
        }
        for kind in kinds.iter().chain([&Kind::reference()]) {
            let mut config = args.train.config.clone();
            let (cluster, run) = config.common_mut();
            cluster.system = Some(kind.system);
            settings.left_out(*kind).for_each(|partial| (partial.clear)(cluster, run));
            config.check()?;
        }
        let is_idle = |partial: &&Partial| !kinds.iter().any(|kind| (partial.takes)(*kind, scope));
        let idle = PARTIAL.iter().filter(is_idle).find_map(|partial| settings.first(partial.flags));
        idle.map_or(Ok(settings), |flag| {
            let text = format!("--{flag}: nothing that is compared takes it; leave it out");
            Err(Failure::Input(text))
        })
    }

    /// Returns those of a comparison for which nothing is given.
    #[cfg(test)]
    pub(crate) fn none(given: &'a Given) -> Self {
        let scope = Scope { parts: None, has_bound: false };
        Self { given, task: "kge", scope, clock_every: 1 }
    }

    /// Checks that there is something to tune, and that nothing else chooses the same.
    fn check_tuning(&self, systems: &[System]) -> Result<(), Failure> {
        let refused = |text: String| Err(Failure::Input(text));
        if !systems.contains(&System::Nups) {
            return refused(
                "--tune: nups is not compared, and nothing else is tuned; leave it out".to_owned(),
            );
        }
        if let Some(flag) = self.first(&HOT) {
            let text = format!("--{flag}: --tune chooses what is hot; leave one of them out");
            return refused(text);
        }
        let is_for_others = systems.iter().any(|s| *s != System::Nups && s.localizes());
        match self.first(&AHEAD) {
            Some(flag) if !is_for_others => refused(format!(
                "--{flag}: --tune chooses how far ahead nups localizes; leave one of them out"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the first of these flags that is chosen.
    fn first(&self, flags: &[&'static str]) -> Option<&'static str> {
        flags.iter().copied().find(|flag| self.given.is_chosen(flag))
    }

    /// Returns all of them as a file.
    pub(crate) fn of_all(&self) -> String {
        self.given.to_toml(self.task)
    }

    /// Returns those of a run as a file.
    pub(crate) fn of(&self, kind: Kind) -> String {
        self.given.to_toml_without(&self.flags_left_out(kind), self.task)
    }

    /// Returns what makes a run of this kind another one than by default, with further words.
    pub(crate) fn knobs(&self, kind: Kind, words: &[String]) -> Knobs {
        let mut flags = self.given.chosen_words(&self.flags_left_out(kind));
        flags.extend_from_slice(words);
        let is_bounded =
            kind.system.bound().is_some() || self.scope.has_bound && kind.takes_bound();
        let clock_every = is_bounded.then_some(self.clock_every);
        let ahead = || self.given.settings().get(AHEAD[0])?.as_u64();
        let localize_ahead = kind.system.localizes().then(ahead).flatten();
        Knobs { flags: flags.join(" "), clock_every, localize_ahead }
    }

    fn flags_left_out(&self, kind: Kind) -> Vec<&'static str> {
        self.left_out(kind).flat_map(|partial| partial.flags.iter().copied()).collect()
    }

    fn left_out(&self, kind: Kind) -> impl Iterator<Item = &'static Partial> {
        let scope = self.scope;
        PARTIAL.iter().filter(move |partial| !(partial.takes)(kind, scope))
    }
}

/// Checks that a partition is of the samples of all runs.
fn check_seeds<P: Program>(
    args: &CompareArgs<P>,
    partition: &PartitionFile,
) -> Result<(), Failure> {
    let is_other = |seed: u64| seed != partition.seed;
    if SEEDLESS.contains(&P::NAME) || !args.seeds().any(is_other) {
        return Ok(());
    }
    let (path, seed) = (args.train.homes.as_deref().unwrap_or(Path::new("")), partition.seed);
    Err(Failure::Input(format!(
        "--homes {}: it is of seed {seed}, and the samples of {} may follow from the seed; give \
         --seed {seed} --runs 1, or leave it out: het-gmp makes one when training begins",
        path.display(),
        P::NAME
    )))
}

/// Tasks whose samples are the same under any seed, if their data has all parts.
const SEEDLESS: [&str; 3] = ["kge", "mf", "ctr"];

/// Flags that choose hot keys.
const HOT: [&str; 3] = ["replicate-factor", "replicate", "replicate-keys"];

/// The flag that says how far ahead keys are localized.
const AHEAD: [&str; 1] = ["localize-ahead"];

/// The settings that not all runs take.
const PARTIAL: [Partial; 6] = [
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
        takes: |kind, _| kind.takes_bound(),
        clear: |cluster, _| cluster.pacing.bound = None,
    },
    Partial {
        flags: &["clock-every"],
        takes: |kind, scope| kind.system.bound().is_some() || scope.has_bound && kind.takes_bound(),
        clear: |cluster, _| cluster.pacing.clock_every = None,
    },
    Partial {
        flags: &AHEAD,
        takes: |kind, _| kind.system.localizes(),
        clear: |_, run| run.localize_ahead = RunConfig::default().localize_ahead,
    },
    Partial {
        flags: &["homes"],
        takes: |kind, scope| scope.parts == Some(kind.nodes),
        // A file is no part of a configuration yet.
        clear: |_, _| {},
    },
];
