//! Rules about ends: a dead peer is noticed and blocks no other, an orderly end is no loss, wakers
//! stay harmless.

use core::time::Duration;
use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

use adapm_core::id::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, Transport, Wake};

use super::drive::{
    LOAD_BYTES, TURN, expect, fill, filled, load, pair, receive, send, triple, turns_max,
};
use super::waits::{Pauses, waits};
use crate::silence::Silence;

/// Checks that an endpoint dropped without a close reason has failed, and its peers notice: `recv`
/// reports the loss, once, even if nobody sends to it. Frames to it are dropped from then on, and
/// others still get theirs.
pub fn a_dropped_peer_is_noticed<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    let [mut a, mut b, mut c] = triple(network(3));
    meet([&mut a, &mut b, &mut c]);
    let mut frame = Frame::default();
    drop(b);
    let is_told = (0..turns_max()).any(|_| {
        expect(c.recv(Some(Duration::ZERO), &mut frame));
        match expect(a.recv(Some(TURN), &mut frame)) {
            Received::Lost(node, _) => {
                assert!(node == NodeId(1), "n1 was dropped, and n0 was told that {node} is lost");
                true
            }
            Received::Frame(from) => panic!("a frame of {from}, which sent none"),
            Received::Woken | Received::TimedOut => false,
        }
    });
    assert!(is_told, "n1 was dropped without a farewell, and n0 was told nothing");
    for number in 0..MORE {
        let sent = a.send(NodeId(1), &mut load(number));
        assert!(
            sent.is_ok(),
            "n0 was told that n1 is lost, and `send` to it says {sent:?}: frames to it are dropped, not refused"
        );
        let received = expect(a.recv(Some(Duration::ZERO), &mut frame));
        assert!(!matches!(received, Received::Lost(..)), "n1 was dropped, n0 told {received:?}");
    }
    send(&mut c, NodeId(0), &mut filled(8, 8, 8));
    let is_there = (0..turns_max()).any(|_| {
        let received = expect(a.recv(Some(TURN), &mut frame));
        expect(c.recv(Some(Duration::ZERO), &mut Frame::default()));
        received == Received::Frame(NodeId(2))
    });
    assert!(is_there, "n1 is gone, and a frame of n2 to n0 does not arrive");
}

/// Checks that a node that leaves when all work is done is not lost, and everything that it sent
/// before arrives, even as much as its links hold.
pub fn an_orderly_end_is_no_loss_and_frames_arrive_before<T>(network: &dyn Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut a, mut b, mut c] = triple(network(3));
    meet([&mut a, &mut b, &mut c]);
    let sent = [NodeId(1), NodeId(2)].map(|to| fill(&mut a, to, LOAD_BYTES).0);
    let leaver = leave(a, CloseReason::Finished);
    let (mut received, mut silence) = ([0, 0], Silence::new());
    let mut frame = Frame::default();
    while received != sent || !leaver.is_finished() {
        for (at, end) in [&mut b, &mut c].into_iter().enumerate() {
            match expect(end.recv(Some(TURN), &mut frame)) {
                Received::Frame(_) => received[at] += 1,
                Received::Woken | Received::TimedOut => {}
                told => panic!("n0 left with `Finished`, and n{} was told {told:?}", at + 1),
            }
        }
        assert!(
            !silence.is_too_long((received, leaver.is_finished())),
            "n0 left with `Finished` after it had sent {sent:?} frames to n1 and n2: they received \
             {received:?} of them{}",
            if leaver.is_finished() { "" } else { ", and `leave` has not returned" }
        );
    }
    join(leaver);
    for _ in 0..MORE {
        let received = expect(b.recv(Some(TURN), &mut frame));
        assert!(
            matches!(received, Received::TimedOut | Received::Woken),
            "n0 left with `Finished`, and n1 was told {received:?}"
        );
    }
}

/// Checks that a node that leaves because it failed is lost to its peers, as failed, but only after
/// its earlier frames, even if its end coincides with their checks.
pub fn a_failure_is_told_behind_all_frames<T>(network: &dyn Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    const FRAMES: u64 = 3;
    let mut pauses = Pauses::new(6);
    for round in 0..waits().div_ceil(10) {
        let [mut a, mut b] = pair(network(2));
        let mut frame = filled(4, 4, 4);
        send(&mut a, NodeId(1), &mut frame);
        receive(&mut b, &mut frame, &mut [&mut a]);
        let mut of_leaver = Pauses::new(7 + round as u64);
        let leaver = thread::spawn(move || {
            of_leaver.spin();
            (0..FRAMES).for_each(|number| send(&mut a, NodeId(1), &mut filled(8, 8, number)));
            a.leave(CloseReason::Failed);
        });
        let (mut received, mut is_told, mut silence) = (0, false, Silence::new());
        while !is_told || received < FRAMES {
            pauses.spin();
            match expect(b.recv(Some(pauses.wait()), &mut frame)) {
                Received::Frame(_) => received += 1,
                Received::Lost(_, loss) => {
                    assert!(loss == Loss::Failed, "n0 left with `Failed`, n1 was told {loss:?}");
                    is_told = true;
                }
                Received::Woken | Received::TimedOut => {}
            }
            assert!(
                !silence.is_too_long((received, is_told)),
                "n0 sent {FRAMES} frames and left with `Failed`: n1 received {received} of them and {}",
                if is_told { "was told" } else { "was not told" }
            );
        }
        join(leaver);
    }
}

/// Checks that a node that leaves because it has lost another names that one: it learns that it was
/// given up, the others that both are lost.
pub fn a_lost_node_is_named_to_the_others<T>(network: &dyn Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut a, mut b, mut c] = triple(network(3));
    meet([&mut a, &mut b, &mut c]);
    let leaver = leave(c, CloseReason::Lost(NodeId(1)));
    let lost = NodeId(2);
    let expected =
        [vec![(NodeId(1), Loss::Reported(lost)), (lost, Loss::Failed)], vec![(lost, Loss::GaveUp)]];
    let mut told = [vec![], vec![]];
    let mut silence = Silence::new();
    let mut frame = Frame::default();
    while told != expected || !leaver.is_finished() {
        for (end, told) in [&mut a, &mut b].into_iter().zip(&mut told) {
            // n0 may have reported the same to n1 by then.
            if let Received::Lost(node, loss) = expect(end.recv(Some(TURN), &mut frame))
                && (node, loss) != (NodeId(0), Loss::GaveUp)
            {
                told.push((node, loss));
                told.sort_by_key(|(node, _)| *node);
            }
        }
        assert!(
            !silence.is_too_long(told.iter().map(Vec::len).sum::<usize>()),
            "n2 left with `Lost(n1)`: n0 and n1 were told {told:?} and must be told {expected:?}"
        );
    }
    join(leaver);
}

/// Checks that wakers are harmless once their endpoint is gone: threads that hold one may end
/// later.
pub fn a_waker_outlives_its_endpoint<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    let [a, mut b] = pair(network(2));
    let waker = a.waker();
    drop(a);
    (0..3).for_each(|_| waker.clone().wake());
    b.waker().wake();
    let mut frame = Frame::default();
    let woken = (0..turns_max()).any(|_| expect(b.recv(Some(TURN), &mut frame)) == Received::Woken);
    assert!(woken, "n0 is gone, and a wake of n1 was lost");
}

/// Lets three nodes meet: a node that was never there cannot be missed.
fn meet<T: Transport>([a, b, c]: [&mut T; 3]) {
    let mut frame = filled(4, 4, 4);
    send(a, NodeId(1), &mut frame);
    receive(b, &mut frame, &mut [&mut *a, &mut *c]);
    send(c, NodeId(1), &mut frame);
    receive(b, &mut frame, &mut [&mut *c, &mut *a]);
    send(a, NodeId(2), &mut frame);
    receive(c, &mut frame, &mut [&mut *a, &mut *b]);
}

/// Lets an endpoint leave, in a thread of its own.
fn leave<T: Transport + Send + 'static>(mut end: T, reason: CloseReason) -> JoinHandle<()> {
    thread::spawn(move || end.leave(reason))
}

fn join(leaver: JoinHandle<()>) {
    leaver.join().unwrap_or_else(|payload| resume_unwind(payload));
}

/// Number of calls that check that a noticed loss stays noticed.
const MORE: u64 = 300;
