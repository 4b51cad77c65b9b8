//! A policy of your own: frequently requested keys get replicas, all others move to the nodes that
//! want them.
//!
//! A policy proposes, and the mechanism does what is safe. It answers from its calls alone (no
//! clock, no entropy, no hash map), so that any schedule can be replayed.

use std::collections::BTreeMap;

use adapm_core::policy::timing::ActionTimer;
use adapm_core::policy::{Placement, Policy, View};
use adapm_core::{Clock, Key, WorkerId};

/// A policy that replicates keys with at least [`HOT`] recent requests, and relocates the rest.
#[derive(Clone, Debug)]
pub struct HotKeys {
    /// When to act on an intent: like AdaPM, unless there is a reason to differ.
    timer: ActionTimer,
    asked: BTreeMap<Key, u32>,
    calls: u64,
}

/// Recent requests from which on a key is hot.
pub const HOT: u32 = 4;
/// Number of requests after which earlier ones count half, which keeps the table small.
const HALF_LIFE: u64 = 1_000;

impl HotKeys {
    /// Creates the policy for a node with `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { timer: ActionTimer::new(workers), asked: BTreeMap::new(), calls: 0 }
    }
}

impl Policy for HotKeys {
    fn place(&mut self, view: &View<'_>) -> Placement {
        self.calls += 1;
        if self.calls.is_multiple_of(HALF_LIFE) {
            self.asked.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
        }
        let asked = self.asked.entry(view.key).or_default();
        *asked += 1;
        let is_wanted_elsewhere = view.owner_has_intent || !view.holders.is_empty();
        if *asked >= HOT || is_wanted_elsewhere {
            Placement::Replicate
        } else {
            Placement::Relocate
        }
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.timer.act_before(worker, clock)
    }
}
