//! Leaving and being dropped: the reports to others, and the time it takes.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, SendError, Transport};
use adapm_transport::net::{Net, PeerState};
use adapm_verify::silence::patience;

use crate::cluster::{Cluster, DEAD_AFTER, NEVER_DEAD};

#[test]
fn an_orderly_end_is_no_loss_and_all_frames_arrive_before() {
    let mut cluster = Cluster::new(3, |_| {});
    for number in 0..100 {
        cluster.send(2, 0, &[number]);
    }
    let mut leaving = cluster.take(2);
    let leaver = thread::spawn(move || leaving.leave(CloseReason::Finished));
    cluster.until("it has left", |cluster| {
        [0, 1].iter().all(|at| cluster.state(*at, 2) == PeerState::Left)
    });
    leaver.join().expect("no panic");
    let numbers: Vec<(u16, Vec<u8>)> = (0..100).map(|number| (2, vec![number])).collect();
    assert_eq!(cluster.told[0].frames, numbers);
    // Frames to it are dropped silently, without a bound.
    for _ in 0..10_000 {
        cluster.send(0, 2, &[1; 100]);
    }
    cluster.check_all_ways();
    cluster.pass(2 * DEAD_AFTER);
    assert!(cluster.told.iter().all(|told| told.losses.is_empty() && told.errors.is_empty()));
}

#[test]
fn all_can_leave_at_once() {
    let mut cluster = Cluster::new(4, |config| config.link.dead_after = NEVER_DEAD);
    for from in 0..4 {
        for to in (0..4).filter(|to| usize::from(*to) != from) {
            cluster.send(from, to, &[9; 1_000]);
        }
    }
    let leavers: Vec<_> =
        (0..4).map(|node| leave(cluster.take(node), CloseReason::Finished)).collect();
    for leaver in leavers {
        leaver.recv_timeout(patience()).expect("nobody waits for one that has left");
    }
}

#[test]
fn a_failure_is_told_with_its_cause() {
    let mut cluster = Cluster::new(4, |_| {});
    // Node 3 reports that it has lost node 1.
    let mut failing = cluster.take(3);
    let leaver = thread::spawn(move || failing.leave(CloseReason::Lost(NodeId(1))));
    cluster.until("both are told", |cluster| {
        [0, 2].iter().all(|at| cluster.told[*at].losses.len() == 2)
            && cluster.told[1].losses.len() == 1
    });
    leaver.join().expect("no panic");
    for at in [0, 2] {
        assert_eq!(cluster.told[at].losses, [(1, Loss::Reported(NodeId(3))), (3, Loss::Failed)]);
        assert_eq!(
            (cluster.state(at, 1), cluster.state(at, 3)),
            (PeerState::Lost, PeerState::Lost)
        );
    }
    // The node that was given up learns why.
    assert_eq!(cluster.told[1].losses, [(3, Loss::GaveUp)]);
    assert!(cluster.told[1].errors.is_empty(), "{:?}", cluster.told[1].errors);
}

#[test]
fn an_endpoint_that_is_dropped_has_failed() {
    let mut cluster = Cluster::new(3, |config| config.link.dead_after = NEVER_DEAD);
    drop(cluster.take(0));
    cluster.until("both are told", |cluster| {
        [1, 2].iter().all(|at| cluster.told[*at].losses.len() == 1)
    });
    for at in [1, 2] {
        assert_eq!(cluster.told[at].losses, [(0, Loss::Failed)]);
    }
    cluster.check_all_ways();
}

#[test]
fn leaving_ends_though_nobody_listens() {
    for reason in [CloseReason::Finished, CloseReason::Failed] {
        let mut cluster = Cluster::new(3, |_| {});
        // Node 1 is there and does nothing; node 2 was never met by a fourth that does not exist.
        leave(cluster.take(0), reason).recv_timeout(patience()).expect("leaving has a bound");
    }
    let mut cluster = Cluster::apart(2, |config| config.link.dead_after = NEVER_DEAD);
    let left = leave(cluster.take(1), CloseReason::Finished);
    left.recv_timeout(patience()).expect("nobody waits for a peer that was never met");
}

#[test]
fn nothing_is_sent_after_leaving() {
    let mut cluster = Cluster::new(2, |_| {});
    let mut end = cluster.take(0);
    let leaver = thread::spawn(move || {
        end.leave(CloseReason::Finished);
        let mut frame = Frame { head: vec![1], ..Frame::default() };
        for _ in 0..10_000 {
            assert!(!matches!(end.send(NodeId(1), &mut frame), Err(SendError::Transport(_))));
        }
        end.leave(CloseReason::Failed);
        end
    });
    cluster.until("it has left", |cluster| cluster.state(1, 0) == PeerState::Left);
    drop(leaver.join().expect("no panic"));
    cluster.pass(Duration::from_millis(50));
    assert!(cluster.told[1].losses.is_empty() && cluster.told[1].frames.is_empty());
}

/// Makes an endpoint leave in a thread of its own, and reports when it has: a hang does not block
/// the test.
fn leave(mut end: Net, reason: CloseReason) -> mpsc::Receiver<()> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        end.leave(reason);
        let _ = tell.send(());
    });
    told
}
