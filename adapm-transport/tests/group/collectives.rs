//! Exchanges between members, and their errors when one of them ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss};
use adapm_transport::group::GroupError;
use adapm_transport::testing::ControlSide;

use super::each;

fn part(node: NodeId, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index / 7) as u8 ^ node.0 as u8).collect()
}

#[test]
fn groups_of_one_to_five_exchange_bytes_of_any_size() {
    for nodes in 1..=5 {
        each(nodes, |group| {
            let ids = || (0..nodes as u16).map(NodeId);
            for bytes in [0, 3, 70_000, 3 << 20] {
                let expected: Vec<_> = ids().map(|node| part(node, bytes + node.index())).collect();
                let own = &expected[group.node().index()];
                assert!(
                    group.all_gather(own) == Ok(expected.clone()),
                    "{nodes} nodes, {bytes} bytes"
                );
                let gathered = group.gather(own).expect("all are there");
                assert!(gathered == (group.node() == NodeId(0)).then_some(expected));
            }
            group.leave(CloseReason::Finished);
            assert_eq!(group.all_gather(&[]), Err(GroupError::Ended));
        });
    }
}

#[test]
fn members_that_leave_one_after_another_disturb_nobody() {
    each(4, |group| {
        group.all_gather(&[1]).expect("all are there");
        group.leave(CloseReason::Finished);
        assert_eq!(group.failure(), None);
    });
}

#[test]
fn a_member_that_is_dropped_is_lost_and_named_with_its_address() {
    let texts = each(4, |group| {
        let members = group.membership();
        let address = members.members().nth(3).and_then(|(_, member)| Some(member?.address));
        if group.node() == NodeId(3) {
            return None;
        }
        let error = group.all_gather(&[]).expect_err("one is needed");
        let loss = error.lost().copied().expect("a loss");
        assert_eq!((loss.node, group.failure()), (NodeId(3), Some(error.clone())));
        let address = address.expect("it has joined");
        Some((error.to_string(), format!("node n3 ({address}) was lost: ")))
    });
    assert_eq!(texts.iter().flatten().count(), 3);
    for (text, start) in texts.into_iter().flatten() {
        assert!(text.starts_with(&start) && text.ends_with("; start the cluster again"), "{text}");
    }
}

#[test]
fn dropping_a_group_that_nothing_uses_any_more_says_goodbye() {
    for (begun, ended) in [(1, 1), (2, 2), (2, 1), (1, 0)] {
        each(2, |group| {
            group.all_gather(&[]).expect("all are there");
            if group.node() == NodeId(1) {
                (0..begun).for_each(|_| group.begin_use());
                (0..ended).for_each(|_| group.end_use());
                return;
            }
            let error = group.all_gather(&[]).expect_err("it takes part no more");
            if begun == ended {
                assert_eq!(error, GroupError::Left { node: NodeId(1) });
            } else {
                let loss = error.lost().expect("it has ended in the middle of something");
                assert!(loss.node == NodeId(1) && loss.loss == Loss::Failed, "{error}");
            }
            group.leave(CloseReason::Finished);
        });
    }
}

#[test]
fn the_first_lost_node_is_the_one_that_everybody_names() {
    each(3, |group| {
        if group.node() != NodeId(2) {
            // Node 1 learns it from node 0 or from node 2, and node 0 from either.
            let error = group.all_gather(&[]).expect_err("one is needed");
            assert_eq!(error.lost().map(|loss| loss.node), Some(NodeId(2)), "{error}");
        }
    });
}

#[test]
fn another_order_of_calls_is_told_to_all() {
    each(3, |group| {
        let label = if group.node() == NodeId(1) { "loss" } else { "ranks" };
        match group.all_gather_for(label, &[]) {
            Err(GroupError::Differs { ours, theirs, .. }) => {
                assert_eq!((ours.as_str(), theirs == "loss"), (label, label == "ranks"))
            }
            // Another one has found out and has ended.
            Err(GroupError::PeerLost(_)) => {}
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_flag_or_a_code_stops_all() {
    for code in [None, Some(2)] {
        each(3, |group| {
            let flag = Arc::new(AtomicBool::new(false));
            group.on_stop(Arc::clone(&flag));
            match (group.node(), code) {
                (NodeId(1), None) => flag.store(true, Ordering::Release),
                (NodeId(1), Some(code)) => group.stop(code),
                _ => {}
            }
            while !flag.load(Ordering::Acquire) {
                thread::yield_now();
            }
            group.all_gather(&[]).expect("a stop is a wish");
            assert_eq!(group.stop_code(), Some(code.unwrap_or(0)));
            group.leave(CloseReason::Finished);
        });
    }
}

/// Node n1 of four in a collective of all, after the parts of n0 and n2 have arrived; and the part
/// of n3.
fn with_the_part_of_n3_on_its_way() -> (ControlSide, Frame) {
    let sides = (0..4).map(|node| ControlSide::new(NodeId(node), 4, true));
    let mut sides: Vec<_> = sides.collect();
    for (node, side) in (0..).zip(&mut sides) {
        side.begin("all", true, &part(NodeId(node), 10)).expect("it begins");
    }
    let mut begin = |node: usize| {
        let mut sent = std::iter::from_fn(|| sides[node].take_sent(NodeId(1)));
        // Before it comes what a node sends while it joins.
        sent.find(|frame| !frame.values.is_empty()).expect("a part")
    };
    let (parts, last) = ([0, 2].map(|node| (NodeId(node as u16), begin(node))), begin(3));
    let mut n1 = sides.swap_remove(1);
    for (node, frame) in parts {
        n1.hear(node, frame).expect("a sound part");
    }
    (n1, last)
}

#[test]
fn nodes_that_leave_because_of_an_exchange_do_not_keep_others_from_it() {
    // n0 has sent that it cannot go on; n2 has read that and left; then n0 has, naming n2, whose
    // end it has noticed. n1 has yet to receive the part of n3.
    let ends = [
        (NodeId(2), Loss::Failed),
        (NodeId(2), Loss::Reported(NodeId(0))),
        (NodeId(0), Loss::Failed),
    ];
    for turned in 0..ends.len() {
        let (mut n1, last) = with_the_part_of_n3_on_its_way();
        for (node, loss) in (0..ends.len()).map(|at| ends[(at + turned) % ends.len()]) {
            n1.lose(node, loss);
            assert_eq!((n1.take_outcome(), n1.failure()), (None, None), "{node} {loss}");
        }
        n1.hear(NodeId(3), last).expect("a sound part");
        let parts = n1.take_outcome().expect("all parts are there");
        assert_eq!(parts, (0..4).map(|node| part(NodeId(node), 10)).collect::<Vec<_>>());
        let first = ends[turned].0;
        let failure = n1.failure().expect("no further exchange is possible");
        assert_eq!(failure.lost().map(|loss| loss.node), Some(first));
    }
}

/// n3 has drawn the same verdict before its part was due, and has not left yet.
#[test]
fn an_exchange_in_which_somebody_takes_no_part_after_a_loss_ends_all_the_same() {
    let (mut n1, _) = with_the_part_of_n3_on_its_way();
    n1.lose(NodeId(2), Loss::Failed);
    assert_eq!((n1.take_outcome(), n1.failure()), (None, None), "the part of n3 may come");
    n1.await_no_parts();
    let failure = n1.failure().expect("it does not come");
    assert_eq!(failure.lost().map(|loss| loss.node), Some(NodeId(2)));
}

#[test]
fn a_lost_node_without_which_no_exchange_ends_ends_it_and_the_first_loss_is_named() {
    for earlier in [None, Some(NodeId(2))] {
        let (mut n1, _) = with_the_part_of_n3_on_its_way();
        for node in earlier.into_iter().chain([NodeId(3)]) {
            n1.lose(node, Loss::Failed);
        }
        let failure = n1.failure().expect("the part of n3 is missing");
        let expected = earlier.unwrap_or(NodeId(3));
        assert_eq!(failure.lost().map(|loss| loss.node), Some(expected));
        assert_eq!(n1.take_outcome(), None);
    }
}

/// n1 leaves in order, n2 needs it and ends. A link that has ended in order tells no reason, so n2
/// says it before its end.
#[test]
fn whoever_ends_for_lack_of_a_node_that_has_left_is_not_taken_for_the_cause() {
    let mut n0 = ControlSide::new(NodeId(0), 3, true);
    n0.hear(NodeId(2), lacks(NodeId(1))).expect("a sound message");
    n0.lose(NodeId(2), Loss::Failed);
    let failure = n0.failure().expect("n2 is needed");
    assert!(matches!(failure, GroupError::Left { node: NodeId(1) }), "{failure}");
}

/// Whoever has left may hear of it while its goodbye is on its way.
#[test]
fn who_has_left_does_not_blame_who_says_so() {
    let mut n1 = ControlSide::new(NodeId(1), 3, true);
    n1.hear(NodeId(2), lacks(NodeId(1))).expect("a sound message");
    assert_eq!(n1.failure(), None);
}

/// Returns the last frame of a node that ends as `lacking` has left.
fn lacks(lacking: NodeId) -> Frame {
    // The number of its kind, and the node.
    Frame { head: vec![8, lacking.0 as u8], ..Frame::default() }
}
