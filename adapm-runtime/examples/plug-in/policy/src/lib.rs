//! A policy of your own: keys that other nodes access often get replicas, all others move to the
//! nodes that want them.
//!
//! A policy proposes, and the mechanism does what is safe. It answers from its calls alone (no
//! clock, no entropy, no hash map), so that any schedule can be replayed.

use std::collections::BTreeMap;

use adapm_core::observe::Observe;
use adapm_core::policy::timing::ActionTimer;
use adapm_core::policy::{Place, Placement, Policy, View};
use adapm_core::{Clock, Instant, Key, NodeId, WorkerId};

/// A policy that replicates keys with at least [`HOT`] recent accesses from other nodes, and
/// relocates the rest.
#[derive(Clone, Debug)]
pub struct HotKeys {
    /// When to act on an intent: like AdaPM, unless there is a reason to differ.
    timer: ActionTimer,
    accesses: Accesses,
}

/// Accesses that the engine has served: its observer writes here, the policy reads.
#[derive(Clone, Debug, Default)]
struct Accesses {
    of: BTreeMap<Key, u32>,
    events: u64,
}

/// Recent accesses from which on a key is hot.
pub const HOT: u32 = 4;
/// Number of accesses after which earlier ones count half, which keeps the table small.
const HALF_LIFE: u64 = 1_000;

impl HotKeys {
    /// Creates the policy of one engine.
    #[must_use]
    pub fn new(place: &Place) -> Self {
        Self { timer: ActionTimer::new(place.workers), accesses: Accesses::default() }
    }

    fn is_hot(&self, key: Key) -> bool {
        self.accesses.of.get(&key).is_some_and(|count| *count >= HOT)
    }
}

impl Policy for HotKeys {
    fn place(&mut self, view: &View<'_>) -> Placement {
        let is_wanted_elsewhere = view.owner_has_intent || !view.holders.is_empty();
        if self.is_hot(view.key) || is_wanted_elsewhere {
            Placement::Replicate
        } else {
            Placement::Relocate
        }
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.timer.act_before(worker, clock)
    }

    fn observer(&mut self) -> Option<&mut dyn Observe> {
        Some(&mut self.accesses)
    }
}

impl Observe for Accesses {
    fn on_served(&mut self, _now: Instant, key: Key, _origin: NodeId, _hops: u32) {
        self.events += 1;
        if self.events.is_multiple_of(HALF_LIFE) {
            self.of.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
        }
        *self.of.entry(key).or_default() += 1;
    }
}
