//! When workers meet for a checkpoint.
//!
//! Workers cannot be told at any moment: one that waits at the end of a round would miss it, and
//! the others would wait for it. So where they meet next is decided where they met last, from what
//! all processes say there, and is a place in the data: before the batch of a number in a round, or
//! at the end of the round for who has fewer. A meeting costs a quiesce; whether a checkpoint is
//! written is decided there.
//!
//! The time between two checkpoints is a hundred times what one costs, so that they take at most
//! 1 % of the run.

use serde::{Deserialize, Serialize};

use crate::run::queue::Round;

/// Where workers meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    pub(crate) epoch: u32,
    pub(crate) index: u32,
    /// Batches of the round before it.
    pub(crate) batch: u64,
}

/// What a process says at a meeting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pace {
    /// Seconds since the last checkpoint, or since training began.
    pub(crate) since: f64,
    /// Seconds that a checkpoint costs: those in which nobody trains, and those of processors that
    /// writing takes from workers.
    pub(crate) cost: f64,
    /// Seconds between two checkpoints, if a test has set them.
    pub(crate) interval: Option<f64>,
    /// Batches a second, of a worker.
    pub(crate) rate: f64,
    /// Batches that a worker has done since training began here.
    pub(crate) batches: u64,
    /// Seconds that the round of each number took when it was last gone through whole.
    pub(crate) round_seconds: Vec<Option<f64>>,
    /// The last checkpoint is still being written.
    pub(crate) is_busy: bool,
    /// One could not be written since the last meeting.
    pub(crate) has_failed: bool,
    /// Some worker has left, or fails: the run ends.
    pub(crate) is_cut: bool,
    /// Checkpoints that are complete in its folder, if hosts have a folder each and it is the first
    /// there.
    pub(crate) complete: Option<Vec<String>>,
}

/// What was decided at a meeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// A checkpoint is written.
    pub(crate) writes: bool,
    /// Where to meet next; `None`: nowhere.
    pub(crate) next: Option<Meeting>,
}

/// The place where a meeting is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) round: Round,
    /// The most batches of the round that a worker has done.
    pub(crate) batch: u64,
    /// All workers have done all of theirs.
    pub(crate) is_at_end: bool,
    /// Rounds of an epoch.
    pub(crate) rounds: u32,
    /// Something has changed since the last checkpoint.
    pub(crate) has_changed: bool,
}

impl Plan {
    /// Decides at a meeting, from what all processes say: the same in all. That of the first counts
    /// for times.
    pub(crate) fn of(paces: &[Pace], held: Held) -> Self {
        let Some(first) = paces.first().filter(|_| !paces.iter().any(|pace| pace.is_cut)) else {
            return Self::default();
        };
        let cost = paces.iter().map(|pace| pace.cost).fold(0.0, f64::max);
        let interval = first.interval.unwrap_or((COSTS * cost).max(INTERVAL_MIN));
        let is_due = first.since >= interval;
        let writes = is_due && held.has_changed && !paces.iter().any(|pace| pace.is_busy);
        let wait = if writes {
            interval
        } else if is_due {
            interval.min(AGAIN)
        } else {
            interval - first.since
        };
        let rate = paces.iter().map(|pace| pace.rate).fold(0.0, f64::max);
        Self { writes, next: Some(held.after(wait, rate, first)) }
    }

    /// Returns the plan of a run before its first meeting, which begins there.
    pub(crate) fn first(round: Round, batch: u64, interval: Option<f64>) -> Self {
        let ahead = if interval.is_some() { 1 } else { FIRST };
        let Round { epoch, index } = round;
        Self {
            writes: false,
            next: Some(Meeting { epoch, index, batch: batch.saturating_add(ahead) }),
        }
    }
}

impl Held {
    /// Returns where workers will be after so many seconds, at so many batches a second.
    fn after(self, wait: f64, rate: f64, pace: &Pace) -> Meeting {
        // What was measured over few batches is not trusted for many.
        let most = (GROWTH * pace.batches.max(FIRST)) as f64;
        // Nobody has come further since the last meeting: how fast they are is not known.
        let ahead = if rate > 0.0 { (wait * rate).clamp(1.0, most) as u64 } else { FIRST };
        let Round { epoch, index } = self.round;
        if !self.is_at_end {
            return Meeting { epoch, index, batch: self.batch.saturating_add(ahead) };
        }
        // Whole rounds that will be over by then, as far as it is known how long they take.
        let rounds = self.rounds;
        let next = |(epoch, index): (u32, u32)| {
            if index + 1 < rounds { (epoch, index + 1) } else { (epoch.saturating_add(1), 0) }
        };
        let (mut place, mut left, mut whole) = (next((epoch, index)), wait, 0);
        let seconds_of = |index: u32| pace.round_seconds.get(index as usize).copied().flatten();
        while let Some(seconds) = seconds_of(place.1).filter(|seconds| *seconds <= left) {
            if whole == ROUNDS_MAX {
                break;
            }
            (place, left, whole) = (next(place), left - seconds, whole + 1);
        }
        let (epoch, index) = place;
        Meeting { epoch, index, batch: if whole > 0 { 0 } else { ahead } }
    }
}

/// Checkpoints take one part in so many of the run.
const COSTS: f64 = 100.0;
/// The shortest time between two, in seconds.
const INTERVAL_MIN: f64 = 10.0;
/// Seconds until all meet again where a checkpoint is due and the last one is being written.
const AGAIN: f64 = 0.5;
/// Batches before the first meeting, at which nothing is measured yet.
const FIRST: u64 = 64;
/// Rounds that are gone through without a meeting, at most.
const ROUNDS_MAX: u32 = 10_000;
/// A meeting is at most so many times as far ahead as what was done.
const GROWTH: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace { since: 10.0, rate: 100.0, batches: 1_000, ..Pace::default() }
    }

    fn held(batch: u64) -> Held {
        let round = Round { epoch: 2, index: 1 };
        Held { round, batch, is_at_end: false, rounds: 4, has_changed: true }
    }

    fn meeting(epoch: u32, index: u32, batch: u64) -> Option<Meeting> {
        Some(Meeting { epoch, index, batch })
    }

    #[test]
    fn a_checkpoint_is_written_when_it_is_due_and_takes_a_hundredth_of_the_time() {
        let plan = |pace: Pace| Plan::of(&[pace], held(50));
        assert_eq!(plan(pace()), Plan { writes: true, next: meeting(2, 1, 1_050) });
        let costly = Pace { cost: 0.5, ..pace() };
        assert_eq!(plan(costly.clone()), Plan { writes: false, next: meeting(2, 1, 4_050) });
        assert_eq!(
            plan(Pace { since: 50.0, ..costly }),
            Plan { writes: true, next: meeting(2, 1, 5_050) }
        );
        let soon = Pace { interval: Some(0.01), ..pace() };
        assert_eq!(plan(soon), Plan { writes: true, next: meeting(2, 1, 51) });
        let unchanged = Held { has_changed: false, ..held(50) };
        assert!(!Plan::of(&[pace()], unchanged).writes);
    }

    #[test]
    fn what_costs_most_anywhere_counts_and_who_is_busy_is_waited_for() {
        let [other, busy] = [0.2, 0.0].map(|cost| Pace { cost, is_busy: cost == 0.0, ..pace() });
        let plan = Plan::of(&[pace(), other], held(0));
        assert_eq!(plan, Plan { writes: false, next: meeting(2, 1, 1_000) });
        let plan = Plan::of(&[pace(), busy], held(0));
        assert_eq!(plan, Plan { writes: false, next: meeting(2, 1, 50) });
    }

    #[test]
    fn who_ends_meets_no_more() {
        let cut = Pace { is_cut: true, ..pace() };
        assert_eq!(Plan::of(&[pace(), cut], held(0)), Plan::default());
    }

    #[test]
    fn rounds_that_end_earlier_are_gone_through_without_a_meeting() {
        let at_end = Held { is_at_end: true, ..held(50) };
        let of = |since, seconds: [Option<f64>; 4]| {
            let round_seconds = seconds.to_vec();
            Plan::of(&[Pace { since, round_seconds, ..pace() }], at_end).next
        };
        assert_eq!(of(9.0, [None; 4]), meeting(2, 2, 100), "how long a round takes is not known");
        assert_eq!(of(9.0, [Some(2.0); 4]), meeting(2, 2, 100));
        assert_eq!(of(5.5, [Some(2.0); 4]), meeting(3, 0, 0), "two rounds on");
        assert_eq!(of(0.0, [Some(2.0); 4]), meeting(3, 3, 0));
        // A short round between long ones says nothing of these.
        assert_eq!(of(5.5, [Some(60.0), Some(0.2), Some(0.2), Some(60.0)]), meeting(2, 3, 0));
        assert_eq!(of(5.5, [None, None, Some(0.2), None]), meeting(2, 3, 0));
        let none = of(0.0, [Some(0.0); 4]).expect("they meet");
        assert_eq!(none.epoch, 2 + ROUNDS_MAX / 4);
    }

    #[test]
    fn who_has_no_batches_does_not_make_the_others_meet_at_each() {
        let idle = Pace { rate: 0.0, batches: 0, since: 0.0, ..pace() };
        let plan = Plan::of(&[idle.clone(), pace()], held(50));
        assert_eq!(plan.next, meeting(2, 1, 1_050));
        assert_eq!(Plan::of(&[idle], held(50)).next, meeting(2, 1, 114), "nobody has any");
    }

    #[test]
    fn few_batches_are_no_measure_for_many() {
        let fast = Pace { rate: 1e9, batches: 10, ..pace() };
        assert_eq!(Plan::of(&[fast], held(0)).next, meeting(2, 1, 1_024));
        let first = Plan::first(Round { epoch: 3, index: 0 }, 7, None);
        assert_eq!(first, Plan { writes: false, next: meeting(3, 0, 71) });
    }
}
