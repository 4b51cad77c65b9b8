//! The contract of [`Transport`] as tests of any implementation: once, whole, in order per pair,
//! never blocking, never forgetting.
//!
//! [`transport_suite!`](crate::transport_suite!) makes one test of each function here. A
//! constructor gets a number of nodes and returns their endpoints in the order of the node ids,
//! connected or about to be. Endpoints are driven by their own calls only, so a transport without
//! threads of its own passes too. No duration is asserted; the one clock is the [`patience`] after
//! which a frame counts as lost.
//!
//! Not here: connections that break, and how a peer that says nothing is given up, which is each
//! transport's own.

mod drive;
mod endings;

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use adapm_core::id::NodeId;
use adapm_core::transport::{Frame, Received, SendError, Transport, Wake};
use adapm_core::wire::FRAME_BYTES_MAX;

use crate::silence::patience;
use drive::{
    Party, TURN, WAITS, drive_until, expect, fill, filled, hear_wakes, load, pair, receive, send,
    triple, turns_max, wait_for_ever,
};

pub use endings::{
    a_dropped_peer_is_noticed, a_waker_outlives_its_endpoint,
    an_orderly_end_is_no_loss_and_frames_arrive_before,
};

/// Makes a test of each rule of the transport contract, for the endpoints that `$network` returns
/// for a number of nodes.
///
/// ```text
/// // tests/suite.rs
/// adapm_verify::transport_suite!(my_transport::network);
/// ```
///
/// A wait that does not end fails after two minutes; `ADAPM_PATIENCE=5` makes that five seconds
/// while you look for the fault.
#[macro_export]
macro_rules! transport_suite {
    ($network:expr) => {
        $crate::transport_suite!(@each $network;
            frames_arrive_once_whole_and_in_order,
            frames_of_any_size_arrive_whole,
            a_full_way_keeps_the_frame_and_reports_room,
            a_full_way_to_one_node_leaves_the_others_open,
            senders_are_served_in_turn,
            a_wake_ends_the_next_wait,
            a_wake_ends_a_wait_in_progress,
            a_frame_ends_a_wait_in_progress,
            room_ends_a_wait_in_progress,
            many_wakes_may_end_in_one,
            wakes_starve_no_frames_and_frames_no_wakes,
            a_wait_ends_in_time_out,
            a_dropped_peer_is_noticed,
            an_orderly_end_is_no_loss_and_frames_arrive_before,
            a_waker_outlives_its_endpoint,
        );
    };
    (@each $network:expr; $($rule:ident,)*) => {
        $(
            #[test]
            fn $rule() {
                $crate::transport_suite::$rule($network);
            }
        )*
    };
}

/// Every node sends to every other from a thread of its own, in sizes of all kinds: each frame
/// arrives once, unchanged, and in the order sent.
pub fn frames_arrive_once_whole_and_in_order<T>(network: impl Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    const NODES: usize = 4;
    const FRAMES: u64 = 400;
    let ends = network(NODES);
    let wakers: Arc<[T::Waker]> = ends.iter().map(Transport::waker).collect();
    let done = Arc::new(AtomicUsize::new(0));
    let (finished, parties) = mpsc::channel();
    for (node, mut end) in ends.into_iter().enumerate() {
        let (wakers, done, finished) = (Arc::clone(&wakers), Arc::clone(&done), finished.clone());
        thread::spawn(move || {
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
                // Once all are done, endpoints are dropped, and may say so before the wake arrives.
                let is_over = done.load(Ordering::SeqCst) == NODES;
                assert!(
                    received == Received::Woken || is_over,
                    "all frames are here, and not {received:?}"
                );
            }
            finished.send(()).expect("the test waits for its threads");
        });
    }
    for _ in 0..NODES {
        parties
            .recv_timeout(patience())
            .expect("a frame was lost or changed, or its arrival or room was not told");
    }
}

/// Heads and values from nothing to the largest frame, each into a frame that held something else.
pub fn frames_of_any_size_arrive_whole<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    let [mut a, mut b] = pair(network(2));
    let sizes = [(0, 0), (1, 0), (0, 1), (3, 8), (0, 13), (200, 4_096), (70_000, 7), (1, 5 << 20)];
    for (head, values) in sizes.into_iter().chain([(16, FRAME_BYTES_MAX - 16), (2, 2)]) {
        let mut sent = filled(head, values, (head + values) as u64);
        let expected = sent.clone();
        let mut received = filled(33, 9, 5);
        send(&mut a, NodeId(1), &mut sent);
        assert_eq!(receive(&mut b, &mut received, &mut [&mut a]), NodeId(0));
        assert!(received == expected, "a frame of {head} + {values} bytes arrived changed");
    }
}

/// A way that nobody drains refuses frames in the end, changes none of them, and its sender hears
/// of room once there is some.
pub fn a_full_way_keeps_the_frame_and_reports_room<T: Transport>(
    network: impl Fn(usize) -> Vec<T>,
) {
    let [mut a, mut b] = pair(network(2));
    for round in 0..3 {
        let (sent, mut refused) = fill(&mut a, NodeId(1));
        assert!(refused == load(sent), "a refused frame is unchanged");
        // Wakes of rounds before, or of room that came and went, are used up first.
        let mut scratch = Frame::default();
        hear_wakes(&mut a);
        let full = a.send(NodeId(1), &mut refused);
        assert!(matches!(full, Ok(()) | Err(SendError::Full)), "{full:?}");
        let expected = if full.is_ok() { sent + 1 } else { sent };
        let mut arrived = 0;
        let mut heard = full.is_ok();
        for _ in 0..turns_max() {
            let wait = if arrived < expected { Duration::ZERO } else { TURN };
            heard |= expect(a.recv(Some(wait), &mut scratch)) == Received::Woken;
            if arrived < expected
                && expect(b.recv(Some(TURN), &mut scratch)) == Received::Frame(NodeId(0))
            {
                assert!(
                    scratch == load(arrived),
                    "frame {arrived} of round {round} is not the one sent"
                );
                arrived += 1;
            }
            if heard && arrived == expected {
                break;
            }
        }
        assert_eq!(arrived, expected, "frames were lost");
        assert!(heard, "the sender was not told of room");
        let mut after = load(sent + 1);
        send(&mut a, NodeId(1), &mut after);
        assert_eq!(receive(&mut b, &mut scratch, &mut [&mut a]), NodeId(0));
        assert!(scratch == load(sent + 1), "the way does not work after it was full");
    }
}

/// A full way to one node holds up no frame to another.
pub fn a_full_way_to_one_node_leaves_the_others_open<T: Transport>(
    network: impl Fn(usize) -> Vec<T>,
) {
    let [mut a, _b, mut c] = triple(network(3));
    fill(&mut a, NodeId(1));
    for number in 0..10 {
        let mut frame = load(number);
        send(&mut a, NodeId(2), &mut frame);
        assert_eq!(receive(&mut c, &mut frame, &mut [&mut a]), NodeId(0));
        assert!(frame == load(number), "frame {number} is not the one sent");
    }
}

/// A node that keeps its way full does not keep another's frame from arriving.
pub fn senders_are_served_in_turn<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    for flooding in [1, 2] {
        let [mut a, mut b, mut c] = triple(network(3));
        let (flood, quiet) = if flooding == 1 { (&mut b, &mut c) } else { (&mut c, &mut b) };
        let (queued, _) = fill(flood, NodeId(0));
        let mut single = filled(5, 5, 5);
        send(quiet, NodeId(0), &mut single);
        let mut frame = Frame::default();
        let mut before = 0;
        while receive(&mut a, &mut frame, &mut [&mut *quiet, &mut *flood]) == NodeId(flooding) {
            before += 1;
            assert!(before <= 4 * queued + 64, "a sender that floods starves another");
            while flood.send(NodeId(0), &mut load(before)).is_ok() {}
        }
        assert!(frame == filled(5, 5, 5), "the frame is not the one sent");
    }
}

/// A wake is remembered until there is a wait to end.
pub fn a_wake_ends_the_next_wait<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    for nodes in [1, 2] {
        let mut ends = network(nodes);
        let waker = ends[0].waker();
        let mut frame = Frame::default();
        for wait in [Some(Duration::ZERO), Some(patience()), None] {
            waker.clone().wake();
            assert_eq!(expect(ends[0].recv(wait, &mut frame)), Received::Woken);
        }
    }
}

/// A wake ends a wait forever, whether it comes just before the wait, at its start or into it.
pub fn a_wake_ends_a_wait_in_progress<T>(network: impl Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [_peer, end] = pair(network(2));
    let waker = end.waker();
    let waits = wait_for_ever(end, Received::Woken);
    for round in 0..WAITS {
        waits.recv_timeout(patience()).expect("a wake did not end a wait");
        for _ in 0..round % 8 {
            thread::yield_now();
        }
        waker.wake();
    }
    waits.recv_timeout(patience()).expect("a wake did not end a wait");
}

/// A frame ends a wait forever, whether it comes just before the wait, at its start or into it.
pub fn a_frame_ends_a_wait_in_progress<T>(network: impl Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut a, end] = pair(network(2));
    let waits = wait_for_ever(end, Received::Frame(NodeId(0)));
    for round in 0..=WAITS {
        drive_until(&waits, &mut a, "a frame did not end a wait");
        for _ in 0..round % 8 {
            thread::yield_now();
        }
        if round < WAITS {
            send(&mut a, NodeId(1), &mut filled(8, 8, 8));
        }
    }
}

/// Room ends a wait forever of the sender that was refused.
pub fn room_ends_a_wait_in_progress<T>(network: impl Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut a, mut b] = pair(network(2));
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let (_, mut refused) = fill(&mut a, NodeId(1));
        tell.send(()).expect("the test waits");
        while let Err(error) = a.send(NodeId(1), &mut refused) {
            assert!(matches!(error, SendError::Full), "send failed: {error}");
            assert_eq!(expect(a.recv(None, &mut Frame::default())), Received::Woken);
        }
        tell.send(()).expect("the test waits");
    });
    told.recv_timeout(patience()).expect("the way is full in the end");
    drive_until(&told, &mut b, "the sender was not told of room");
}

/// Wakes that nobody has heard yet may be told as one, but not as none, and not as more than there
/// were.
pub fn many_wakes_may_end_in_one<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    let mut ends = network(2);
    let waker = ends[0].waker();
    (0..5).for_each(|_| waker.wake());
    let heard = hear_wakes(&mut ends[0]);
    assert!((1..=5).contains(&heard), "{heard} wakes heard of 5");
}

/// With frames waiting and a wake before every `recv`, both get their turn.
pub fn wakes_starve_no_frames_and_frames_no_wakes<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    const FRAMES: u64 = 50;
    let [mut a, mut b] = pair(network(2));
    for number in 0..FRAMES {
        send(&mut a, NodeId(1), &mut filled(8, 8, number));
    }
    let waker = b.waker();
    let mut frame = Frame::default();
    assert_eq!(receive(&mut b, &mut frame, &mut [&mut a]), NodeId(0));
    let (mut arrived, mut heard) = (1, 0);
    for _ in 0..turns_max() {
        waker.wake();
        match expect(b.recv(Some(TURN), &mut frame)) {
            Received::Frame(_) => arrived += 1,
            Received::Woken => heard += 1,
            Received::TimedOut => panic!("a wake was lost"),
            Received::Lost(node, loss) => panic!("node {node} lost: {loss}"),
        }
        if arrived == FRAMES {
            break;
        }
        // The other endpoint may have to be driven for its frames to leave.
        expect(a.recv(Some(Duration::ZERO), &mut Frame::default()));
    }
    assert_eq!(arrived, FRAMES, "wakes starve frames");
    assert!(heard + 2 >= FRAMES / 2, "frames starve wakes: {heard} heard among {FRAMES} frames");
}

/// Without frames and wakes a wait ends, a wait of zero as well.
pub fn a_wait_ends_in_time_out<T: Transport>(network: impl Fn(usize) -> Vec<T>) {
    for nodes in [1, 3] {
        let mut ends = network(nodes);
        for wait in [Duration::ZERO, Duration::from_nanos(1), TURN, Duration::ZERO] {
            for end in &mut ends {
                let mut frame = filled(3, 3, 3);
                assert_eq!(expect(end.recv(Some(wait), &mut frame)), Received::TimedOut);
            }
        }
    }
}
