//! The contract of [`Transport`] as tests of any implementation: once, whole, in order per pair,
//! never blocking, never forgetting.
//!
//! [`transport_suite!`](crate::transport_suite!) makes one test of each function here. A
//! constructor gets a number of nodes and returns their endpoints in the order of the node ids,
//! connected or about to be. Endpoints are driven by their own calls only, so a transport without
//! threads of its own passes too. Every rule runs over endpoints under watch ([`Watched`]): a call
//! that does not return, and a frame that is lost, repeated, overtaken or changed, fail the rule in
//! which they happen. No duration is asserted; the one clock is the [`patience`] after which a
//! frame counts as lost. An endpoint that no thread drives must not be given up as lost before.
//!
//! Not here: connections that break, and how a silent peer is given up: each transport has its own
//! way.

mod drive;
mod endings;
mod trial;
mod waits;
mod watched;

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc;

use adapm_core::id::NodeId;
use adapm_core::transport::{Frame, Received, SendError, Transport, Wake};
use adapm_core::wire::FRAME_BYTES_MAX;

use crate::silence::patience;
use drive::{
    LOAD_BYTES, LOADS_MAX, Party, TURN, drive, expect, fill, filled, hear_wakes, load, pair,
    receive, send, spawn, triple, turns_max,
};

pub use endings::{
    a_dropped_peer_is_noticed, a_failure_is_told_behind_all_frames,
    a_lost_node_is_named_to_the_others, a_waker_outlives_its_endpoint,
    an_orderly_end_is_no_loss_and_frames_arrive_before,
};
pub use trial::check;
pub use waits::{
    a_frame_ends_a_wait_in_progress, a_wake_ends_a_wait_in_progress, room_ends_a_wait_in_progress,
};
pub use watched::Watched;

/// Expands to a module of tests, one for each rule of the transport contract.
///
/// Takes the module's name and a function from a number of nodes to their endpoints.
///
/// ```
/// // tests/suite.rs
/// # mod my_transport {
/// #     pub use adapm_transport::inproc::network;
/// # }
/// adapm_verify::transport_suite!(my_transport, crate::my_transport::network);
/// # fn main() {}
/// ```
///
/// A wait that does not end fails after two minutes; `ADAPM_PATIENCE=5` makes that five seconds
/// while you look for the fault. Races of two threads are looked for in 1,000 waits each, which
/// `ADAPM_WAITS` changes; `ADAPM_SEED` disturbs them otherwise.
#[macro_export]
macro_rules! transport_suite {
    ($suite:ident, $network:expr) => {
        $crate::transport_suite!(@ $suite, $network,
            frames_arrive_once_whole_and_in_order
            frames_of_any_size_arrive_whole
            a_full_way_keeps_the_frame_and_reports_room
            a_way_is_bounded_in_bytes
            a_full_way_to_one_node_leaves_the_others_open
            senders_are_served_in_turn
            a_wake_ends_the_next_wait
            a_wake_ends_a_wait_in_progress
            a_frame_ends_a_wait_in_progress
            room_ends_a_wait_in_progress
            many_wakes_may_end_in_one
            wakes_starve_no_frames_and_frames_no_wakes
            a_wake_stays_for_the_recv_after_the_frame
            a_wait_ends_in_time_out
            a_dropped_peer_is_noticed
            an_orderly_end_is_no_loss_and_frames_arrive_before
            a_failure_is_told_behind_all_frames
            a_lost_node_is_named_to_the_others
            a_waker_outlives_its_endpoint
        );
    };
    (@ $suite:ident, $network:expr, $($rule:ident)*) => {
        #[cfg(test)]
        mod $suite {
            #[allow(unused_imports, reason = "the constructor may name what is imported around it")]
            use super::*;

            $(
                #[test]
                fn $rule() {
                    $crate::transport_suite::check(
                        stringify!($rule),
                        $network,
                        $crate::transport_suite::$rule,
                    );
                }
            )*
        }
    };
}

/// Sends from every node to every other, each from a thread of its own, in sizes of all kinds: each
/// frame arrives once, unchanged, and in the order sent.
pub fn frames_arrive_once_whole_and_in_order<T>(network: &dyn Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    const NODES: usize = 4;
    const FRAMES: u64 = 400;
    let ends = network(NODES);
    let wakers: Arc<[T::Waker]> = ends.iter().map(Transport::waker).collect();
    let done = Arc::new(AtomicUsize::new(0));
    let (tell, told) = mpsc::channel();
    for (node, mut end) in ends.into_iter().enumerate() {
        let (wakers, done) = (Arc::clone(&wakers), Arc::clone(&done));
        spawn(&tell, move || {
            let mut party = Party::new(node as u16, NODES as u16);
            while !party.is_done(FRAMES) {
                party.send_all(&mut end, FRAMES);
                // What was sent just then may have been the last thing to do: nothing more would
                // come.
                if !party.is_done(FRAMES) {
                    party.receive(&mut end);
                }
            }
            // Peers may still wait for what this endpoint sends only while it is driven.
            if done.fetch_add(1, Ordering::SeqCst) + 1 == NODES {
                wakers.iter().for_each(Wake::wake);
            }
            let mut frame = Frame::default();
            while done.load(Ordering::SeqCst) < NODES {
                let received = expect(end.recv(None, &mut frame));
                // Once all are done, endpoints are dropped, and may report that before the wake
                // arrives.
                let is_over = done.load(Ordering::SeqCst) == NODES;
                assert!(
                    received == Received::Woken || is_over,
                    "all frames are here, and not {received:?}"
                );
            }
        });
    }
    for _ in 0..NODES {
        let result = told.recv().expect("this thread holds a sender of its own");
        result.unwrap_or_else(|payload| resume_unwind(payload));
    }
}

/// Sends heads and values from nothing to the largest frame, each into a frame with other content.
pub fn frames_of_any_size_arrive_whole<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    let [mut a, mut b] = pair(network(2));
    let sizes = [(0, 0), (1, 0), (0, 1), (3, 8), (0, 13), (200, 4_096), (70_000, 7), (1, 5 << 20)];
    for (head, values) in sizes.into_iter().chain([(16, FRAME_BYTES_MAX - 16), (2, 2)]) {
        let mut received = filled(33, 9, 5);
        send(&mut a, NodeId(1), &mut filled(head, values, (head + values) as u64));
        assert_eq!(receive(&mut b, &mut received, &mut [&mut a]), NodeId(0));
    }
}

/// Checks that a full link refuses frames in the end and changes none of them, and that its sender
/// is notified once there is room.
pub fn a_full_way_keeps_the_frame_and_reports_room<T: Transport>(
    network: &dyn Fn(usize) -> Vec<T>,
) {
    let [mut a, mut b] = pair(network(2));
    for round in 0..3 {
        let (sent, mut refused) = fill(&mut a, NodeId(1), LOAD_BYTES);
        let mut scratch = Frame::default();
        // Wakes of earlier rounds, or of room that came and went, are used up first.
        hear_wakes(&mut a);
        let full = a.send(NodeId(1), &mut refused);
        assert!(matches!(full, Ok(()) | Err(SendError::Full)), "{full:?}");
        let expected = if full.is_ok() { sent + 1 } else { sent };
        let mut arrived = 0;
        let mut heard = full.is_ok();
        for _ in 0..turns_max() {
            let wait = if arrived < expected { Duration::ZERO } else { TURN };
            heard |= expect(a.recv(Some(wait), &mut scratch)) == Received::Woken;
            if arrived < expected {
                let received = expect(b.recv(Some(TURN), &mut scratch));
                arrived += u64::from(matches!(received, Received::Frame(_)));
            }
            if heard && arrived == expected {
                break;
            }
        }
        assert!(
            arrived == expected,
            "in round {round} n0 sent {expected} frames, n1 received {arrived} of them"
        );
        assert!(heard, "`send` of n0 said `Full`, n1 received everything, n0 was not told of room");
        send(&mut a, NodeId(1), &mut load(sent + 1));
        assert_eq!(receive(&mut b, &mut scratch, &mut [&mut a]), NodeId(0));
    }
}

/// A way from one node to another that its receiver does not drain refuses frames before they take
/// all memory, however large they are; those that it took arrive.
pub fn a_way_is_bounded_in_bytes<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    let [mut a, mut b] = pair(network(2));
    let (sent, mut refused) = fill(&mut a, NodeId(1), LARGE_BYTES);
    assert!(sent > 0, "an empty way refused a frame of {LARGE_BYTES} bytes");
    let mut frame = Frame::default();
    for _ in 0..sent {
        assert_eq!(receive(&mut b, &mut frame, &mut [&mut a]), NodeId(0));
    }
    send(&mut a, NodeId(1), &mut refused);
    assert_eq!(receive(&mut b, &mut frame, &mut [&mut a]), NodeId(0));
}

/// Checks that a full link to one node holds up no frame to another.
pub fn a_full_way_to_one_node_leaves_the_others_open<T: Transport>(
    network: &dyn Fn(usize) -> Vec<T>,
) {
    let [mut a, _b, mut c] = triple(network(3));
    fill(&mut a, NodeId(1), LOAD_BYTES);
    for number in 0..10 {
        let mut frame = load(number);
        send(&mut a, NodeId(2), &mut frame);
        assert_eq!(receive(&mut c, &mut frame, &mut [&mut a]), NodeId(0));
    }
}

/// Checks that a node that keeps its link full does not keep another's frame from arriving.
pub fn senders_are_served_in_turn<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    for flooding in [1, 2] {
        let [mut a, mut b, mut c] = triple(network(3));
        let (flood, quiet) = if flooding == 1 { (&mut b, &mut c) } else { (&mut c, &mut b) };
        let (queued, _) = fill(flood, NodeId(0), LOAD_BYTES);
        send(quiet, NodeId(0), &mut filled(5, 5, 5));
        let mut frame = Frame::default();
        let mut before = 0;
        while receive(&mut a, &mut frame, &mut [&mut *quiet, &mut *flood]) == NodeId(flooding) {
            before += 1;
            assert!(
                before <= 4 * queued + 64,
                "n{flooding}, which floods n0, starves n{}: {before} frames came before its one",
                3 - flooding
            );
            while flood.send(NodeId(0), &mut load(before)).is_ok() {}
        }
    }
}

/// A wake is remembered until there is a wait to end.
pub fn a_wake_ends_the_next_wait<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    for nodes in [1, 2] {
        let mut ends = network(nodes);
        let waker = ends[0].waker();
        let mut frame = Frame::default();
        for wait in [Some(Duration::ZERO), Some(patience()), None] {
            waker.clone().wake();
            let received = expect(ends[0].recv(wait, &mut frame));
            assert!(
                received == Received::Woken,
                "`recv` of n0 returned {received:?}, though a waker was called before"
            );
        }
    }
}

/// Wakes that no `recv` has returned yet may be returned as one, but not as none, and not as more
/// than there were.
pub fn many_wakes_may_end_in_one<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    let mut ends = network(2);
    let waker = ends[0].waker();
    (0..5).for_each(|_| waker.wake());
    let heard = hear_wakes(&mut ends[0]);
    assert!(
        (1..=5).contains(&heard),
        "`recv` of n0 told {heard} wakes; its waker was called 5 times"
    );
}

/// With frames waiting and a wake before every `recv`, both get their turn.
pub fn wakes_starve_no_frames_and_frames_no_wakes<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    let ([mut a, mut b], mut frame) = with_frames_waiting(network);
    let waker = b.waker();
    let (mut arrived, mut heard) = (1, 0);
    for _ in 0..turns_max() {
        waker.wake();
        match expect(b.recv(Some(TURN), &mut frame)) {
            Received::Frame(_) => arrived += 1,
            Received::Woken => heard += 1,
            received => panic!("{received:?} came to n1 instead of a wake or a frame"),
        }
        if arrived == WAITING {
            break;
        }
        // The other endpoint may have to be driven for its frames to leave.
        drive(&mut a);
    }
    assert!(arrived == WAITING, "wakes starve frames: n1 received {arrived} of {WAITING}");
    assert!(heard + 2 >= WAITING / 2, "frames starve wakes: {heard} heard among {WAITING} frames");
}

/// If a frame and a wake both wait, `recv` returns the frame first if the call before returned a
/// wake; the wake then stays for the call after it.
pub fn a_wake_stays_for_the_recv_after_the_frame<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    let ([mut a, mut b], mut frame) = with_frames_waiting(network);
    let waker = b.waker();
    let (mut arrived, mut frames_first) = (1, 0);
    for _ in 0..turns_max() {
        for behind in ["a frame", "a wake"] {
            waker.wake();
            let mut received = expect(b.recv(Some(TURN), &mut frame));
            if let Received::Frame(_) = received {
                arrived += 1;
                frames_first += 1;
                assert!(
                    behind == "a wake",
                    "a frame of n0 went before a wake of n1 behind {behind}"
                );
                received = expect(b.recv(Some(TURN), &mut frame));
            }
            assert!(
                received == Received::Woken,
                "a waker of n1 was called before frame {} came, and the `recv` after the frame told \
                 {received:?}",
                arrived - 1
            );
        }
        if arrived < WAITING {
            let received = expect(b.recv(Some(Duration::ZERO), &mut frame));
            arrived += u64::from(matches!(received, Received::Frame(_)));
        }
        if arrived == WAITING {
            break;
        }
        drive(&mut a);
    }
    assert!(arrived == WAITING, "n1 received {arrived} frames of n0, which sent {WAITING}");
    assert!(frames_first > 0, "no frame ever goes before a wake that comes behind another wake");
}

/// Without frames and wakes a wait ends, a wait of zero as well.
pub fn a_wait_ends_in_time_out<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) {
    for nodes in [1, 3] {
        let mut ends = network(nodes);
        for wait in [Duration::ZERO, Duration::from_nanos(1), TURN, Duration::ZERO] {
            for (end, node) in ends.iter_mut().zip(0..) {
                let received = expect(end.recv(Some(wait), &mut filled(3, 3, 3)));
                assert!(
                    received == Received::TimedOut,
                    "`recv` of n{node} told {received:?}, though nobody sent and no waker was called"
                );
            }
        }
    }
}

/// Returns two endpoints between which [`WAITING`] frames are on their way from n0 to n1, and the
/// first of them, which n1 has received.
fn with_frames_waiting<T: Transport>(network: &dyn Fn(usize) -> Vec<T>) -> ([T; 2], Frame) {
    let [mut a, mut b] = pair(network(2));
    for number in 0..WAITING {
        send(&mut a, NodeId(1), &mut filled(8, 8, number));
    }
    let mut frame = Frame::default();
    assert_eq!(receive(&mut b, &mut frame, &mut [&mut a]), NodeId(0));
    ([a, b], frame)
}

/// Frames of this size must be refused long before there are as many as of small ones.
const LARGE_BYTES: usize = 16 << 20;
const _: () =
    assert!(LARGE_BYTES < FRAME_BYTES_MAX && LOADS_MAX as usize * LOAD_BYTES > LARGE_BYTES);

/// Frames that [`with_frames_waiting`] sends.
const WAITING: u64 = 50;
