//! Rules about waits of one thread that another ends, which race: each is tried many times, with
//! both threads held up for 0 to 20 us, by a seed, before they meet.

use core::hint;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use adapm_core::id::NodeId;
use adapm_core::transport::{Frame, Received, SendError, Transport, Wake};

use super::drive::{TURN, drive, expect, filled, pair, send, spawn};
use crate::environment::number;
use crate::rng::Rng;
use crate::silence::Silence;

/// Checks that a wake ends an unlimited wait, whether it comes just before the wait, at its start
/// or into it.
pub fn a_wake_ends_a_wait_in_progress<T>(network: &dyn Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut peer, end] = pair(network(2));
    let waker = end.waker();
    let waiter = Waiter::new(end, Received::Woken);
    let mut pauses = Pauses::new(1);
    for round in 0..=waits() {
        waiter.await_round(round, &mut peer, "a waker of n1 was called");
        pauses.spin();
        if round < waits() {
            waker.wake();
        }
    }
}

/// Checks that a frame ends an unlimited wait, whether it comes just before the wait, at its start
/// or into it.
pub fn a_frame_ends_a_wait_in_progress<T>(network: &dyn Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut a, end] = pair(network(2));
    let waiter = Waiter::new(end, Received::Frame(NodeId(0)));
    let mut pauses = Pauses::new(2);
    for round in 0..=waits() {
        waiter.await_round(round, &mut a, "n0 sent a frame");
        pauses.spin();
        if round < waits() {
            send(&mut a, NodeId(1), &mut filled(8, 8, round as u64));
        }
    }
}

/// Checks that room ends an unlimited wait of a refused sender, whenever it comes up.
pub fn room_ends_a_wait_in_progress<T>(network: &dyn Fn(usize) -> Vec<T>)
where
    T: Transport + Send + 'static,
{
    let [mut a, mut b] = pair(network(2));
    let (tell, told) = mpsc::channel();
    let sent = Arc::new(AtomicUsize::new(0));
    let sending = Arc::clone(&sent);
    spawn(&tell, move || {
        let (mut refusals, mut pauses) = (0, Pauses::new(3));
        for number in 0..ROOM_FRAMES {
            // A few are large, so that a bound in bytes is met too.
            let values = if number % 64 == 0 { 64 << 10 } else { 8 };
            let mut frame = filled(8, values, number);
            while let Err(error) = a.send(NodeId(1), &mut frame) {
                assert!(matches!(error, SendError::Full), "`send` of n0 failed: {error}");
                refusals += 1;
                pauses.spin();
                let received = expect(a.recv(None, &mut Frame::default()));
                assert!(received == Received::Woken, "`recv` of n0 told {received:?}, not of room");
            }
            sending.fetch_add(1, Ordering::SeqCst);
            if refusals >= waits() {
                break;
            }
        }
        // Frames may be sent only while the endpoint is driven.
        (a, refusals)
    });
    let mut pauses = Pauses::new(4);
    let (mut received, mut silence) = (0, Silence::new());
    let (mut a, refusals) = loop {
        match told.try_recv() {
            Ok(result) => break result.unwrap_or_else(|payload| resume_unwind(payload)),
            Err(_) => pauses.spin(),
        }
        let frame = expect(b.recv(Some(TURN), &mut Frame::default()));
        received += usize::from(matches!(frame, Received::Frame(_)));
        assert!(
            !silence.is_too_long(received),
            "`send` of n0 said `Full` after {} frames, n1 has received {received} of them, and n0 was not \
             told of room",
            sent.load(Ordering::SeqCst)
        );
    };
    assert!(
        refusals > 0,
        "a way took {ROOM_FRAMES} frames as fast as they came and was never full"
    );
    let mut silence = Silence::new();
    while received < sent.load(Ordering::SeqCst) {
        drive(&mut a);
        let frame = expect(b.recv(Some(TURN), &mut Frame::default()));
        received += usize::from(matches!(frame, Received::Frame(_)));
        assert!(
            !silence.is_too_long(received),
            "n1 has received {received} frames of n0, which sent {}",
            sent.load(Ordering::SeqCst)
        );
    }
}

/// A thread that receives again and again, without a limit.
struct Waiter {
    /// Waits that have begun, and the end.
    rounds: Arc<AtomicUsize>,
    told: mpsc::Receiver<thread::Result<()>>,
}

impl Waiter {
    fn new<T>(mut end: T, expected: Received) -> Self
    where
        T: Transport + Send + 'static,
    {
        let (tell, told) = mpsc::channel();
        let rounds = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&rounds);
        spawn(&tell, move || {
            let (mut frame, mut pauses) = (Frame::default(), Pauses::new(5));
            for _ in 0..waits() {
                waiting.fetch_add(1, Ordering::SeqCst);
                pauses.spin();
                let received = expect(end.recv(None, &mut frame));
                assert!(
                    received == expected,
                    "`recv` of n1 told {received:?} and must tell {expected:?}"
                );
            }
            waiting.fetch_add(1, Ordering::SeqCst);
        });
        Self { rounds, told }
    }

    /// Drives the `other` endpoint until this thread's wait number `round` is about to begin.
    fn await_round<T: Transport>(&self, round: usize, other: &mut T, cause: &str) {
        let mut silence = Silence::new();
        for turn in 1_usize.. {
            if self.rounds.load(Ordering::SeqCst) > round {
                return;
            }
            if let Ok(Err(payload)) = self.told.try_recv() {
                resume_unwind(payload);
            }
            drive(other);
            if turn.is_multiple_of(TURNS_PER_LOOK) {
                thread::yield_now();
                assert!(
                    !silence.is_too_long(()),
                    "{cause}, and its wait number {round} (`recv` without a limit) did not end"
                );
            }
        }
    }
}

/// Times for which a thread is held up, by a seed.
pub(super) struct Pauses(Rng);

impl Pauses {
    /// Creates the delays of one of the threads.
    pub(super) fn new(thread: u64) -> Self {
        Self(Rng::new(number("ADAPM_SEED").unwrap_or(0) << 8 | thread))
    }

    /// Keeps the processor busy for 0 to 20 us, less than a microsecond in every third case.
    pub(super) fn spin(&mut self) {
        let nanos_max = self.0.choose(&[500, 3_000, SPIN_NANOS_MAX]);
        let pause = Duration::from_nanos(self.0.number(0..nanos_max));
        let start = Instant::now();
        while start.elapsed() < pause {
            hint::spin_loop();
        }
    }

    /// Returns zero or a turn, at random.
    pub(super) fn wait(&mut self) -> Duration {
        self.0.choose(&[Duration::ZERO, TURN])
    }
}

/// Returns the number of waits of each race: 1,000, or `ADAPM_WAITS`.
pub(super) fn waits() -> usize {
    number("ADAPM_WAITS").unwrap_or(WAITS) as usize
}

const WAITS: u64 = 1_000;
const SPIN_NANOS_MAX: u64 = 20_000;
/// Turns of driving between two looks at the clock.
const TURNS_PER_LOOK: usize = 64;
/// Frames after which a sender that is hardly ever refused stops.
const ROOM_FRAMES: u64 = 20_000;
