//! The policy suite, and the purpose of this policy.

use adapm_core::node_set::NodeSet;
use adapm_core::policy::{Placement, Policy, View};
use adapm_core::{Key, NodeId};
use plug_in_policy::{HOT, HotKeys};

adapm_verify::policy_suite!(hot_keys, |_node, workers| HotKeys::new(workers));

#[test]
fn a_key_that_is_asked_for_often_gets_replicas() {
    let mut policy = HotKeys::new(1);
    let nobody = NodeSet::new();
    let view = |key| View {
        key: Key(key),
        requester: NodeId(1),
        holders: &nobody,
        owner_has_intent: false,
    };
    for _ in 1..HOT {
        assert_eq!(policy.place(&view(7)), Placement::Relocate);
    }
    assert_eq!(policy.place(&view(7)), Placement::Replicate);
    assert_eq!(policy.place(&view(8)), Placement::Relocate);
}
