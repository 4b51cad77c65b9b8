//! Exchanges between members, and their errors when one of them ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Loss};
use adapm_transport::group::GroupError;

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
