//! Rules about ends: a peer that is gone is noticed and in nobody's way, an orderly end is no loss,
//! wakers stay harmless.

use core::time::Duration;
use std::thread;

use adapm_core::id::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport, Wake};

use super::drive::{TURN, expect, filled, load, pair, receive, send, triple, turns_max};

/// An endpoint that is dropped without a close reason has failed, and its peers notice: `recv`
/// reports the loss, once, or `send` fails. Frames to it are dropped or refused for good, never for
/// want of room, and others still get theirs.
pub fn a_dropped_peer_is_noticed<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    let [mut a, mut b, mut c] = triple(network(3));
    // All meet: nobody can miss a node that was never there.
    let mut frame = filled(4, 4, 4);
    send(&mut a, NodeId(1), &mut frame);
    receive(&mut b, &mut frame, &mut [&mut a, &mut c]);
    send(&mut c, NodeId(1), &mut frame);
    receive(&mut b, &mut frame, &mut [&mut c, &mut a]);
    send(&mut a, NodeId(2), &mut frame);
    receive(&mut c, &mut frame, &mut [&mut a, &mut b]);
    drop(b);
    let (mut losses, mut is_noticed) = (0, false);
    for _ in 0..turns_max() {
        let refused =
            matches!(a.send(NodeId(1), &mut filled(4, 4, 4)), Err(SendError::Transport(_)));
        match expect(a.recv(Some(TURN), &mut frame)) {
            Received::Lost(node, _) => {
                assert_eq!(node, NodeId(1), "another node than the dropped one is lost");
                losses += 1;
            }
            Received::Frame(from) => panic!("a frame of {from}, which sent none"),
            Received::Woken | Received::TimedOut => {}
        }
        expect(c.recv(Some(Duration::ZERO), &mut frame));
        is_noticed = refused || losses > 0;
        if is_noticed {
            break;
        }
    }
    assert!(is_noticed, "nobody was told of the endpoint that was dropped");
    for number in 0..MORE {
        let sent = a.send(NodeId(1), &mut load(number));
        assert!(
            !matches!(sent, Err(SendError::Full)),
            "the way to a node that is gone has no room"
        );
        assert!(losses == 0 || sent.is_ok(), "frames to a lost node are dropped, not refused");
        if let Received::Lost(..) = expect(a.recv(Some(Duration::ZERO), &mut frame)) {
            losses += 1;
        }
    }
    assert!(losses <= 1, "one node was lost {losses} times");
    let mut other = filled(8, 8, 8);
    send(&mut c, NodeId(0), &mut other);
    let is_there = (0..turns_max()).any(|_| {
        // A loss may still be under way where sending has failed before.
        let received = expect(a.recv(Some(TURN), &mut frame));
        assert!(!matches!(received, Received::Lost(node, _) if node != NodeId(1)), "{received:?}");
        expect(c.recv(Some(Duration::ZERO), &mut Frame::default()));
        received == Received::Frame(NodeId(2))
    });
    assert!(is_there, "a frame of a node beside the lost one does not arrive");
    assert!(frame == filled(8, 8, 8), "the way beside the lost node changes frames");
}

/// A node that leaves when all is done is not lost, and what it sent before arrives.
pub fn an_orderly_end_is_no_loss_and_frames_arrive_before<T>(network: impl Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut a, mut b] = pair(network(2));
    for number in 0..SENT_BEFORE {
        send(&mut a, NodeId(1), &mut filled(8, 8, number));
    }
    let leaver = thread::spawn(move || a.leave(CloseReason::Finished));
    let mut frame = Frame::default();
    for number in 0..SENT_BEFORE {
        assert_eq!(receive(&mut b, &mut frame, &mut []), NodeId(0));
        assert!(frame == filled(8, 8, number), "frame {number} is not the one sent");
    }
    while !leaver.is_finished() {
        let received = expect(b.recv(Some(TURN), &mut frame));
        assert!(!matches!(received, Received::Lost(..)), "who says that all is done is not lost");
    }
    leaver.join().expect("leaving does not panic");
    for _ in 0..MORE {
        let received = expect(b.recv(Some(TURN), &mut frame));
        assert!(
            matches!(received, Received::TimedOut | Received::Woken),
            "{received:?} after an orderly end"
        );
    }
}

/// Wakers are harmless once their endpoint is gone: threads that hold one may end later.
pub fn a_waker_outlives_its_endpoint<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    let [a, mut b] = pair(network(2));
    let waker = a.waker();
    drop(a);
    (0..3).for_each(|_| waker.clone().wake());
    b.waker().wake();
    let mut frame = Frame::default();
    let woken = (0..turns_max()).any(|_| expect(b.recv(Some(TURN), &mut frame)) == Received::Woken);
    assert!(woken, "a wake of another endpoint was lost");
}

/// Frames that a node sends before it leaves.
const SENT_BEFORE: u64 = 20;
/// Calls that look whether what was noticed stays so.
const MORE: u64 = 300;
