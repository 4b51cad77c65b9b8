//! Systems that bound how stale a read may be: Petuum's SSP and ESSP (AdaPM §A.3; NIPS'13), and a
//! bound for any other policy, such as the bounded delay of OSDI'14.
//!
//! All of them stop a worker between two accesses, when its clock advances, and never in front of a
//! read. A worker at tick `t` sees every update that any worker has made before
//! `t.before(staleness)`, and its own.
//!
//! # Departure
//! Petuum checks the age of a row at each read and fetches a stale one in place. Here replicas that
//! are too old for a tick are given up before their node's worker passes it, and fetched by the
//! next read: the same guarantee and as many fetches, with one more message each. In return a read
//! of a copy costs what it costs under every other system.

use crate::clock::{Clock, Tick};
use crate::id::{Key, WorkerId};
use crate::observe::Observe;
use crate::policy::{Bound, By, Placement, Policy, Supply, View};

/// Stale synchronous parallel (NIPS'13): a pull of an absent key sets up a replica for as many
/// ticks as a read may be stale; nothing refreshes it. A staleness of 0 is bulk synchronous.
#[derive(Clone, Copy, Debug)]
pub struct Ssp {
    /// Ticks by which a worker may be ahead of the slowest.
    pub staleness: u64,
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
        Some(Bound { ticks: self.staleness, by: By::Expiry })
    }

    fn keep(&self, least: Tick) -> Option<Tick> {
        Some(least.after(self.staleness.saturating_add(1)))
    }

    fn lag(&self, _key: Key) -> u32 {
        u32::MAX
    }
}

/// Eager SSP (Petuum): a pull of an absent key sets up a replica for the rest of the run, refreshed
/// whenever it changes.
#[derive(Clone, Copy, Debug)]
pub struct Essp {
    /// Ticks by which a worker may be ahead of the slowest.
    pub staleness: u64,
}

impl Policy for Essp {
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
        Some(Bound { ticks: self.staleness, by: By::Refresh })
    }

    fn keep(&self, _least: Tick) -> Option<Tick> {
        Some(Tick::INFINITY)
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
