//! The policy suite, and the purpose of this policy.

use adapm_core::config::NodeConfig;
use adapm_core::policy::{Place, Placement, Policy, View};
use adapm_core::{Instant, Key, NodeId};
use plug_in_policy::{HOT, HotKeys};

adapm_verify::policy_suite!(hot_keys, HotKeys::new);

#[test]
fn a_key_that_is_accessed_often_gets_replicas() {
    // The first of two nodes, with one worker.
    let mut policy = HotKeys::new(&Place::from(&NodeConfig::new(NodeId(0), 2, 1)));
    let view = |key| View::new(Key(key), NodeId(1));
    for _ in 0..HOT {
        assert_eq!(policy.place(&view(7)), Placement::Relocate);
        let observer = policy.observer().expect("it counts");
        observer.on_served(Instant::ZERO, Key(7), NodeId(1), 0);
    }
    assert_eq!(policy.place(&view(7)), Placement::Replicate);
    assert_eq!(policy.place(&view(8)), Placement::Relocate);
}
