//! Systems that bound how stale a read may be: Petuum's SSP and ESSP (AdaPM §A.3; NIPS'13), HET-GMP
//! (HET-GMP §5.3), and a bound for any other policy, such as the bounded delay of OSDI'14.
//!
//! All of them stop a worker between two accesses, when its clock advances, and never in front of a
//! read. A worker at tick `t` sees every update that any worker has made before
//! `t.before(staleness)`, and its own; under HET-GMP, every one but the changes that a replica may
//! lack.
//!
//! # Departure
//! Petuum checks the age of a row at each read and fetches a stale one in place. Here replicas that
//! are too old for a tick are given up before their node's worker passes it, and fetched by the
//! next read: the same guarantee and as many fetches, with one more message each. In return a read
//! of a copy costs what it costs under every other system.

use core::ops::Range;

use crate::clock::{Clock, Tick};
use crate::id::{Key, WorkerId};
use crate::observe::Observe;
use crate::policy::{Bound, By, Placement, Policy, Supply, View};

/// Stale synchronous parallel (SSP, NIPS'13), or the eager one (ESSP): a pull of an absent key sets
/// up a replica. A staleness of 0 is bulk synchronous.
///
/// ```
/// use adapm_core::clock::Tick;
/// use adapm_core::policy::{Policy as _, Ssp};
///
/// // What a pull sets up when all have passed tick 7 may be read at ticks 8 to 10.
/// assert_eq!(Ssp::new(3).keep(Tick::new(0, 7)), Some(Tick::new(0, 11)));
/// assert_eq!(Ssp::eager(3).keep(Tick::new(0, 7)), Some(Tick::INFINITY));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ssp {
    staleness: u64,
    is_eager: bool,
}

impl Ssp {
    /// Creates SSP, in which a worker is at most `staleness` ticks ahead of the slowest: a replica
    /// stays for as many ticks as a read may be stale, and nothing refreshes it.
    #[must_use]
    pub const fn new(staleness: u64) -> Self {
        Self { staleness, is_eager: false }
    }

    /// Creates ESSP with that staleness: a replica stays for the rest of the run, and is refreshed
    /// whenever it changes.
    #[must_use]
    pub const fn eager(staleness: u64) -> Self {
        Self { staleness, is_eager: true }
    }
}

impl Policy for Ssp {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Replicate
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock(0)
    }

    fn supply(&self) -> Supply {
        Supply::Access
    }

    fn bound(&self) -> Option<Bound> {
        let by = if self.is_eager { By::Refresh } else { By::Expiry };
        Some(Bound { ticks: self.staleness, by })
    }

    fn keep(&self, least: Tick) -> Option<Tick> {
        let end = least.after(self.staleness.saturating_add(1));
        Some(if self.is_eager { Tick::INFINITY } else { end })
    }

    fn lag(&self, _key: Key) -> u32 {
        if self.is_eager { 0 } else { u32::MAX }
    }
}

/// HET-GMP: a static partition in which each node replicates what it accesses most, chosen before
/// the run, and workers advance together (HET-GMP §5.3). A replica is refreshed once it lacks more
/// than `staleness` changes, at the latest before a worker of its node passes its next tick: the
/// intra-embedding bound. With a staleness of 0 it is bulk synchronous.
///
/// ```
/// use adapm_core::policy::{HetGmp, Policy as _};
/// use adapm_core::Key;
///
/// let policy = HetGmp::new(100).with_fresh(Key(1_000)..Key(1_010));
/// assert_eq!([policy.lag(Key(7)), policy.lag(Key(1_003))], [100, 0]);
/// ```
#[derive(Clone, Debug)]
pub struct HetGmp {
    staleness: u32,
    fresh: Range<Key>,
}

impl HetGmp {
    /// Creates HET-GMP, in which a replica may lack `staleness` changes when a worker begins a
    /// clock. What one round brings from one node is one change, and a node's own is none.
    #[must_use]
    pub const fn new(staleness: u32) -> Self {
        Self { staleness, fresh: Key(0)..Key(0) }
    }

    /// Returns the same with keys whose replicas lack no change: those of dense layers, which
    /// HET-GMP averages over all workers in each iteration (HET-GMP §5.3).
    #[must_use]
    pub fn with_fresh(self, fresh: Range<Key>) -> Self {
        Self { fresh, ..self }
    }
}

impl Policy for HetGmp {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Replicate
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }

    fn supply(&self) -> Supply {
        Supply::Partition
    }

    fn bound(&self) -> Option<Bound> {
        Some(Bound { ticks: 0, by: By::Refresh })
    }

    fn lag(&self, key: Key) -> u32 {
        if self.fresh.contains(&key) { 0 } else { self.staleness }
    }
}

/// Any policy, with a bound on how far its workers are apart, kept by refreshes: bounded delay
/// (OSDI'14 §3.5) over [`Classic`](super::Classic), and bulk synchronous with `ticks` 0.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<P> {
    /// The policy that decides everything else.
    pub policy: P,
    /// Ticks by which a worker may be ahead of the slowest.
    pub ticks: u64,
}

impl<P: Policy> Policy for Bounded<P> {
    fn place(&mut self, view: &View<'_>) -> Placement {
        self.policy.place(view)
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.policy.act_before(worker, clock)
    }

    fn relocates_under_intent(&self, key: Key) -> bool {
        self.policy.relocates_under_intent(key)
    }

    fn observer(&mut self) -> Option<&mut dyn Observe> {
        self.policy.observer()
    }

    fn supply(&self) -> Supply {
        self.policy.supply()
    }

    fn replicates(&self) -> bool {
        self.policy.replicates()
    }

    /// That of `policy`, if it has one.
    fn bound(&self) -> Option<Bound> {
        self.policy.bound().or(Some(Bound { ticks: self.ticks, by: By::Refresh }))
    }

    fn keep(&self, least: Tick) -> Option<Tick> {
        self.policy.keep(least)
    }

    fn lag(&self, key: Key) -> u32 {
        self.policy.lag(key)
    }
}
