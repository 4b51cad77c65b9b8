//! Mistakes with a policy: with its input, or with its answer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use adapm_core::clock::{Clock, Tick};
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::observe::Observe;
use adapm_core::policy::{Bound, By, Patience, Placement, Policy, Supply, SystemPolicy, View};

use super::Bug;

/// Replicas that a policy wanted and that an owner grants without recording them: the key and the
/// holder.
#[derive(Clone, Debug, Default)]
pub(super) struct Unnoted(Arc<Mutex<BTreeSet<(Key, NodeId)>>>);

impl Unnoted {
    /// Takes one out. Returns true if it was there.
    pub(super) fn take(&self, key: Key, holder: NodeId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(key, holder))
    }

    fn add(&self, key: Key, holder: NodeId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((key, holder));
    }
}

/// A policy with a mistake.
struct PlantedPolicy {
    sound: SystemPolicy,
    /// Hides the owner's own intent, and believes the answer.
    hides_intent: bool,
    /// Ticks by which workers are further apart, and by which a copy stays longer.
    late: (u64, u64),
    /// Ends copies that should stay, as those do that are never refreshed.
    ends_copies: bool,
    /// Changes by which a replica may lack more.
    lag: u32,
    /// Updates that wait, for one that may.
    updates: u32,
    /// Keeps keys that should be replicated, and records them here.
    unnoted: Option<Unnoted>,
    /// Keeps the first key that should be replicated; `None` in it before there is one.
    kept: Option<Option<Key>>,
}

/// Returns `policy`, with the mistake `bug` if it belongs to policies.
pub(super) fn planted(policy: SystemPolicy, bug: Option<Bug>, unnoted: &Unnoted) -> SystemPolicy {
    let mut planted = PlantedPolicy {
        sound: policy,
        hides_intent: false,
        late: (0, 0),
        ends_copies: false,
        lag: 0,
        updates: 1,
        unnoted: None,
        kept: None,
    };
    match bug {
        Some(Bug::HideOwnIntent) => planted.hides_intent = true,
        Some(Bug::ForgetHolder) => planted.unnoted = Some(unnoted.clone()),
        Some(Bug::HotKeyKept) => planted.kept = Some(None),
        Some(Bug::BoundOffByOne) => planted.late = (1, 1),
        Some(Bug::KeepTooLong) => planted.late = (0, 1),
        Some(Bug::KeepTooBriefly) => planted.ends_copies = true,
        Some(Bug::LagOffByOne) => planted.lag = 1,
        Some(Bug::WaitForTwice) => planted.updates = 2,
        _ => return planted.sound,
    }
    Box::new(planted)
}

impl Policy for PlantedPolicy {
    fn place(&mut self, view: &View<'_>) -> Placement {
        let owner_has_intent = view.owner_has_intent && !self.hides_intent;
        match (self.sound.place(&view.with_owner_intent(owner_has_intent)), &self.unnoted) {
            (Placement::Replicate, Some(unnoted)) => {
                unnoted.add(view.key, view.requester);
                Placement::Keep
            }
            (Placement::Replicate, None) => match &mut self.kept {
                Some(kept) => {
                    let kept = *kept.get_or_insert(view.key);
                    if kept == view.key { Placement::Keep } else { Placement::Replicate }
                }
                None => Placement::Replicate,
            },
            (placement, _) => placement,
        }
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.sound.act_before(worker, clock)
    }

    fn relocates_under_intent(&self, key: Key) -> bool {
        self.hides_intent || self.sound.relocates_under_intent(key)
    }

    fn observer(&mut self) -> Option<&mut dyn Observe> {
        self.sound.observer()
    }

    fn supply(&self) -> Supply {
        self.sound.supply()
    }

    fn replicates(&self) -> bool {
        self.sound.replicates()
    }

    fn bound(&self) -> Option<Bound> {
        let bound = self.sound.bound()?;
        let by = if self.ends(Tick::default()) { By::Expiry } else { bound.by };
        Some(Bound { ticks: bound.ticks + self.late.0, by })
    }

    fn keep(&self, least: Tick) -> Option<Tick> {
        if self.ends(least) {
            return Some(least.after(self.sound.bound()?.ticks + 1));
        }
        self.sound.keep(least).map(|end| end.after(self.late.1))
    }

    fn lag(&self, key: Key) -> u32 {
        self.sound.lag(key).saturating_add(self.lag)
    }

    fn patience(&self) -> Option<Patience> {
        let patience = self.sound.patience()?;
        Some(Patience { updates: patience.updates * self.updates, ..patience })
    }
}

impl PlantedPolicy {
    /// Returns true if a copy set up now should stay for the rest of the run, and does not.
    fn ends(&self, least: Tick) -> bool {
        self.ends_copies && self.sound.keep(least) == Some(Tick::INFINITY)
    }
}
