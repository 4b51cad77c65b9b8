//! The bound on how far keys that are accessed together are apart (HET-GMP §5.3, inter-embedding):
//! before a worker reads the keys of a batch, it has those replicas refreshed that lag too far
//! behind others of the batch.
//!
//! A copy that is made of `c` changes and is accessed with frequency `p` has made the progress
//! `c / p`. Of two keys the rarer one, of frequency `p`, sets the tolerance: their progress may
//! differ by `s / p`. The paper's `|c_i p_j / p_i - c_j| <= s` for `p_i >= p_j` says the same.
//!
//! All pairs are checked without visiting them, in one pass in either order of the frequencies.
//!
//! # What is not checked
//! Keys of dense layers, whose copies lack nothing; keys that are not here, as they are read at
//! their owner; keys that a sample draws. Nothing is checked twice: a replica that lags is
//! refreshed once for a batch and used, even if that puts it ahead of another one. Between a
//! quiesce and the worker's next clock nothing is checked: replicas lack only what others have
//! changed since the quiesce.

use std::ops::Range;
use std::sync::Arc;

use adapm_core::Key;
use adapm_core::error::OpError;
use adapm_core::id::Version;
use adapm_runtime::checkpoint::{Part, Restored};
use adapm_runtime::{Sample, Worker};

use crate::run::parameters::{Parameters, Snapshot};

/// A bound for all workers of a process.
#[derive(Clone, Debug)]
pub(crate) struct Inter {
    /// Changes by which the rarer key of a pair may be behind or ahead.
    staleness: u32,
    /// How often each key is accessed, in any unit; 0 for keys that are not checked.
    frequencies: Arc<[f64]>,
}

impl Inter {
    /// Creates a bound of so many changes for keys of these frequencies, but those of dense layers.
    pub(crate) fn new(staleness: u32, mut frequencies: Vec<f64>, dense: &Range<Key>) -> Self {
        let dense = [dense.start, dense.end].map(|key| frequencies.len().min(key.0 as usize));
        frequencies[dense[0]..dense[1]].fill(0.0);
        Self { staleness, frequencies: frequencies.into() }
    }

    /// Has a worker keep the bound.
    pub(crate) fn kept_by(bound: Option<&Self>, worker: Worker<f32>) -> Bounded {
        let check = bound.map(|bound| Check {
            bound: bound.clone(),
            is_due: false,
            versions: Vec::new(),
            copies: Vec::new(),
            lagging: Vec::new(),
        });
        Bounded { worker, check }
    }
}

/// A worker as a task has it, which may keep a bound.
pub(crate) struct Bounded {
    worker: Worker<f32>,
    check: Option<Check>,
}

/// The check of one worker, and its room.
struct Check {
    bound: Inter,
    /// True if replicas may lack changes.
    is_due: bool,
    versions: Vec<Option<Version>>,
    copies: Vec<LocalCopy>,
    lagging: Vec<Key>,
}

/// A copy that is checked.
#[derive(Clone, Copy, Debug)]
struct LocalCopy {
    key: Key,
    frequency: f64,
    /// Changes per frequency.
    progress: f64,
}

impl Check {
    /// Has the replicas of `keys` refreshed that lag.
    fn renew(&mut self, worker: &mut Worker<f32>, keys: &[Key]) -> Result<(), OpError> {
        self.versions.resize(keys.len(), None);
        worker.versions(keys, &mut self.versions)?;
        self.copies.clear();
        for (key, version) in keys.iter().zip(&self.versions) {
            let frequency = self.bound.frequencies.get(key.0 as usize).copied().unwrap_or(0.0);
            if let Some(version) = version.filter(|_| frequency > 0.0) {
                let progress = version.0 as f64 / frequency;
                self.copies.push(LocalCopy { key: *key, frequency, progress });
            }
        }
        find_lagging(f64::from(self.bound.staleness), &mut self.copies, &mut self.lagging);
        if self.lagging.is_empty() { Ok(()) } else { worker.renew(&self.lagging) }
    }
}

/// Writes the keys of the copies that lag more than the bound behind some other into `lagging`.
/// Reorders the copies. Costs a sort of them.
fn find_lagging(staleness: f64, copies: &mut [LocalCopy], lagging: &mut Vec<Key>) {
    lagging.clear();
    copies.sort_unstable_by(|a, b| b.frequency.total_cmp(&a.frequency));
    let groups = || copies.chunk_by(|a, b| a.frequency == b.frequency);
    let furthest = |group: &[LocalCopy]| {
        group.iter().fold(f64::NEG_INFINITY, |most, copy| most.max(copy.progress))
    };
    // Behind a key that is as frequent or more: its own tolerance counts.
    let mut ahead = f64::NEG_INFINITY;
    for group in groups() {
        ahead = ahead.max(furthest(group));
        let least = ahead - staleness / group[0].frequency;
        lagging.extend(group.iter().filter(|copy| copy.progress < least).map(|copy| copy.key));
    }
    // Behind a rarer one: the tolerance of that counts.
    let mut least = f64::NEG_INFINITY;
    for group in groups().rev() {
        lagging.extend(group.iter().filter(|copy| copy.progress < least).map(|copy| copy.key));
        least = least.max(furthest(group) - staleness / group[0].frequency);
    }
    lagging.sort_unstable();
    lagging.dedup();
}

impl Parameters for Bounded {
    type Error = OpError;
    type Sample = Sample;

    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), OpError> {
        if let Some(check) = &mut self.check
            && check.is_due
        {
            check.renew(&mut self.worker, keys)?;
        }
        self.worker.pull(keys, values)
    }

    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), OpError> {
        self.worker.push(keys, updates)
    }

    fn choose_sample(&mut self, sample: &mut Sample) -> Result<(), OpError> {
        self.worker.choose_sample(sample)
    }

    fn pull_sample(
        &mut self,
        sample: &mut Sample,
        keys: &mut [Key],
        values: &mut [f32],
    ) -> Result<(), OpError> {
        self.worker.pull_sample(sample, keys, values)
    }

    fn advance_clock(&mut self) {
        self.worker.advance_clock();
        self.check.iter_mut().for_each(|check| check.is_due = true);
    }

    fn quiesce(&mut self) -> Result<(), OpError> {
        self.check.iter_mut().for_each(|check| check.is_due = false);
        self.worker.quiesce()
    }

    fn settle(&mut self) -> Result<(), OpError> {
        self.worker.wait_sync()
    }
}

impl Snapshot for Bounded {
    fn snapshot(&mut self, room: Vec<f32>) -> Result<Part, OpError> {
        self.check.iter_mut().for_each(|check| check.is_due = false);
        self.worker.snapshot(room)
    }

    fn hand_over(
        &mut self,
        keys: impl Iterator<Item = Key>,
        rows: &Restored,
        len_of: &dyn Fn(Key) -> usize,
    ) -> Result<(), OpError> {
        let (mut own, mut values) = (Vec::new(), Vec::new());
        let here = self.worker.node();
        for key in keys {
            let begin = values.len();
            values.resize(begin + len_of(key), 0.0);
            if self.worker.home(key) != here && rows.write(key, &mut values[begin..]) {
                own.push(key);
            } else {
                values.truncate(begin);
            }
            if values.len() >= HANDED_OVER {
                self.worker.set(&own, &values)?;
                own.clear();
                values.clear();
            }
        }
        self.worker.set(&own, &values)
    }
}

/// Floats that are set at once.
const HANDED_OVER: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use adapm_core::{Layout, NodeId};
    use adapm_runtime::{Builder, System};
    use proptest::prelude::*;

    use super::*;

    /// Returns what lags: copies are given by the changes that they are made of and frequency.
    fn lagging(staleness: u32, copies: &[(u64, f64)]) -> Vec<u64> {
        let copy = |(key, &(changes, frequency)): (u64, &(u64, f64))| LocalCopy {
            key: Key(key),
            frequency,
            progress: changes as f64 / frequency,
        };
        let (mut copies, mut lagging) =
            ((0..).zip(copies).map(copy).collect::<Vec<_>>(), Vec::new());
        find_lagging(f64::from(staleness), &mut copies, &mut lagging);
        lagging.into_iter().map(|key| key.0).collect()
    }

    /// The paper's condition for each pair: which of the two is behind in one that breaks it.
    fn by_pairs(staleness: u32, copies: &[(u64, f64)]) -> Vec<u64> {
        let lags = |at: &usize| {
            copies.iter().any(|&other| {
                let this = copies[*at];
                let ((more, p), (rare, q)) =
                    if this.1 >= other.1 { (this, other) } else { (other, this) };
                let apart = (more as f64 * q / p - rare as f64).abs();
                let is_behind = (this.0 as f64 / this.1) < other.0 as f64 / other.1;
                is_behind && apart > f64::from(staleness)
            })
        };
        (0..copies.len()).filter(lags).map(|at| at as u64).collect()
    }

    #[test]
    fn raw_counts_are_not_compared() {
        // A key that is accessed eight times as often has eight times the changes.
        assert_eq!(lagging(0, &[(80, 8.0), (10, 1.0)]), [0; 0]);
        assert_eq!(lagging(1, &[(64, 8.0), (10, 1.0)]), [0], "two changes of the rarer behind");
        assert_eq!(lagging(2, &[(64, 8.0), (10, 1.0)]), [0; 0]);
        assert_eq!(lagging(1, &[(80, 8.0), (8, 1.0)]), [1]);
        assert_eq!(lagging(7, &[(0, 1.0), (7, 1.0)]), [0; 0], "of equals");
        assert_eq!(lagging(6, &[(0, 1.0), (7, 1.0)]), [0]);
        assert_eq!(lagging(0, &[(3, 1.0)]), [0; 0], "alone");
        assert_eq!(lagging(0, &[]), [0; 0]);
    }

    /// Returns the clocks of 60 at which a worker reads replicas of which one lags although it
    /// lacks changes from before the clock: the inter-embedding bound is broken (HET-GMP §5.3).
    fn clocks_that_break(bound: Option<&Inter>) -> usize {
        const KEYS: [Key; 2] = [Key(0), Key(1)];
        // One is changed ten times a clock, the other once in four. Pushes between two looks of the
        // engine are one change that a replica lacks, so the other is refreshed less often.
        const FREQUENCIES: [f64; 2] = [40.0, 1.0];
        let pushed = |clock: u64| [10 * clock, clock / 4];
        let layout = Layout::dense(&[(2, 1)]).expect("a legal layout");
        let cluster = Builder::<f32>::new(layout)
            .nodes(2)
            .system(System::HetGmp { staleness: 5 })
            .homes([0, 0])
            .hot_keys_by_node([vec![], KEYS.to_vec()])
            .build()
            .expect("a legal cluster");
        let counts = cluster.run(|worker| {
            let changes = worker.node() == NodeId(0);
            let mut bounded = Inter::kept_by(bound, worker);
            let breaks = |clock: u64, bounded: &mut Bounded| -> Result<bool, OpError> {
                let mut versions = [None; 2];
                bounded.pull(&KEYS, &mut [0.0; 2])?;
                bounded.worker.versions(&KEYS, &mut versions)?;
                let versions = versions.map(|version| version.expect("a replica").0);
                let copies = [0, 1].map(|at| (versions[at], FREQUENCIES[at]));
                let lacks = |key: &u64| versions[*key as usize] < pushed(clock)[*key as usize];
                Ok(lagging(STALENESS, &copies).iter().any(lacks))
            };
            let mut broken = 0;
            for clock in 1..=60 {
                for (at, key) in KEYS.iter().enumerate().filter(|_| changes) {
                    for _ in pushed(clock - 1)[at]..pushed(clock)[at] {
                        bounded.push(&[*key], &[1.0])?;
                    }
                }
                bounded.advance_clock();
                broken += usize::from(!changes && breaks(clock, &mut bounded)?);
            }
            Ok::<_, OpError>(broken)
        });
        let counts: Result<Vec<usize>, _> = counts.expect("no failure").into_iter().collect();
        counts.expect("legal calls").iter().sum()
    }

    #[test]
    fn replicas_that_are_read_keep_the_bound_or_lack_nothing_from_before_the_clock() {
        let bound = Inter::new(STALENESS, vec![40.0, 1.0], &(Key(0)..Key(0)));
        assert_eq!(clocks_that_break(Some(&bound)), 0);
        assert!(clocks_that_break(None) > 0, "the bound is kept by itself");
    }

    const STALENESS: u32 = 2;

    proptest! {
        /// The frequencies are powers of two, so that no rounding decides.
        #[test]
        fn what_lags_in_some_pair_is_found_and_nothing_else(
            staleness in 0_u32..20,
            copies in prop::collection::vec((0_u64..400, -3_i32..4), 0..12),
        ) {
            let copies: Vec<(u64, f64)> =
                copies.into_iter().map(|(changes, power)| (changes, 2_f64.powi(power))).collect();
            prop_assert_eq!(lagging(staleness, &copies), by_pairs(staleness, &copies));
        }

        /// In every pair that breaks the bound one is refreshed: those that are not keep it among
        /// themselves.
        #[test]
        fn what_is_not_renewed_keeps_the_bound(
            staleness in 0_u32..20,
            copies in prop::collection::vec((0_u64..400, -3_i32..4), 1..12),
        ) {
            let copies: Vec<(u64, f64)> =
                copies.into_iter().map(|(changes, power)| (changes, 2_f64.powi(power))).collect();
            let renewed = lagging(staleness, &copies);
            let kept = (0..).zip(copies).filter(|(key, _)| !renewed.contains(key));
            let kept: Vec<(u64, f64)> = kept.map(|(_, copy)| copy).collect();
            prop_assert_eq!(lagging(staleness, &kept), Vec::<u64>::new());
        }
    }
}
