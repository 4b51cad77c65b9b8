//! A policy of your own: hot keys get replicas, all others move to the nodes that want them.
//!
//! A policy cannot break safety: a bad one may be slow, never wrong. Test a new policy with
//! `adapm_verify::policy_suite!`. `cargo run -p adapm-runtime --example custom_policy`

use adapm_core::policy::timing::ActionTimer;
use adapm_core::policy::{Place, Placement, Policy, View};
use adapm_runtime::prelude::*;

const HOT: u64 = 10;

/// A policy that replicates the first keys; all others have one copy, for which nodes take turns.
struct HotKeys {
    timer: ActionTimer,
}

impl HotKeys {
    fn new(place: &Place) -> Self {
        Self { timer: ActionTimer::new(place.workers) }
    }
}

impl Policy for HotKeys {
    fn place(&mut self, view: &View<'_>) -> Placement {
        if view.key.0 < HOT { Placement::Replicate } else { Placement::Relocate }
    }

    fn relocates_under_intent(&self, key: Key) -> bool {
        key.0 >= HOT
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.timer.act_before(worker, clock)
    }
}

adapm_verify::policy_suite!(hot_keys, HotKeys::new);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster =
        Builder::<i64>::new(Layout::dense(&[(1_000, 1)])?).nodes(3).policy(HotKeys::new).build()?;
    cluster.try_run(|mut worker| {
        let mut random = Random::new(u64::from(worker.node().0));
        for _ in 0..3_000 {
            let keys = [Key(random.below(HOT)), Key(HOT + random.below(1_000 - HOT))];
            let clock = worker.advance_clock();
            worker.intent(&keys, clock..clock + 10)?;
            worker.push(&keys, &[1, 1])?;
        }
        Ok::<(), OpError>(())
    })?;
    let mut sums = [0; 2];
    cluster.visit_main(|key, value| sums[usize::from(key.0 >= HOT)] += value[0])?;
    assert_eq!(sums, [9_000, 9_000], "no policy loses an update");
    let stats = cluster.stats();
    println!("pushes that arrived: {} to hot keys, {} to the others", sums[0], sums[1]);
    println!("{} replicas set up, {} main copies moved", stats.replicas, stats.relocations);
    println!("{} relocations were not safe and became replicas", stats.coerced);
    Ok(())
}
