//! Decorators of transports: those that stay within the contract pass its suite, and a numbered
//! transport names each frame that goes astray.

use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Received, SendError, Transport};
use adapm_transport::inproc::{self, InProc, InProcWaker};
use adapm_verify::{Numbered, NumberedError, ShakeRates, Shaky, transport_suite};

transport_suite!(numbered, |nodes| Numbered::network(inproc::network(nodes)));

/// The fate of the frames that a [`Fickle`] endpoint receives, by number.
#[derive(Clone, Copy)]
enum Mishap {
    Lost(u64),
    Repeated(u64),
    Overtaken(u64),
    Cut(u64),
}

/// An endpoint to which something happens once.
struct Fickle {
    inner: InProc,
    mishap: Mishap,
    received: u64,
    kept: Option<Frame>,
}

impl Transport for Fickle {
    type Error = adapm_transport::Error;
    type Waker = InProcWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Self::Error>> {
        self.inner.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Self::Error> {
        if let Some(kept) = self.kept.take() {
            *frame = kept;
            return Ok(Received::Frame(NodeId(0)));
        }
        let received = self.inner.recv(wait, frame)?;
        if received != Received::Frame(NodeId(0)) {
            return Ok(received);
        }
        self.received += 1;
        let number = self.received - 1;
        match self.mishap {
            Mishap::Lost(lost) if lost == number => return self.recv(wait, frame),
            Mishap::Repeated(repeated) if repeated == number => self.kept = Some(frame.clone()),
            Mishap::Overtaken(late) if late == number => {
                let late = std::mem::take(frame);
                let received = self.inner.recv(wait, frame)?;
                self.kept = Some(late);
                return Ok(received);
            }
            Mishap::Cut(cut) if cut == number => frame.head.truncate(3),
            _ => {}
        }
        Ok(received)
    }

    fn waker(&self) -> InProcWaker {
        self.inner.waker()
    }
}

/// Sends `frames` frames to an endpoint with that mishap; the numbers that arrive before the error,
/// and the error.
fn ends_with(frames: u64, mishap: Mishap) -> (Vec<u64>, NumberedError<adapm_transport::Error>) {
    let ends = inproc::network(2).into_iter();
    let wrap = |inner| Fickle { inner, mishap, received: 0, kept: None };
    let [mut a, mut b]: [_; 2] =
        Numbered::network(ends.map(wrap).collect()).try_into().ok().expect("two endpoints");
    let mut frame = Frame::default();
    for number in 0..frames {
        frame.head = u64::to_le_bytes(number).to_vec();
        a.send(NodeId(1), &mut frame).expect("room");
    }
    let mut numbers = Vec::new();
    loop {
        match b.recv(Some(Duration::ZERO), &mut frame) {
            Ok(Received::Frame(NodeId(0))) => {
                let head = frame.head.as_slice().try_into().expect("what was sent, and no more");
                numbers.push(u64::from_le_bytes(head));
            }
            Ok(Received::TimedOut) => {
                // The sender has nothing else to do than to report how many frames it has sent.
                let told = a.recv(Some(Duration::from_millis(1)), &mut Frame::default());
                assert_eq!(told, Ok(Received::TimedOut));
            }
            Ok(received) => panic!("{received:?}"),
            Err(error) => return (numbers, error),
        }
    }
}

#[test]
fn a_numbered_transport_names_the_frame_that_goes_astray() {
    let from = NodeId(0);
    let expected = [
        (Mishap::Lost(50), 50, NumberedError::NeverCame { from, number: 50, sent: 52 }),
        (Mishap::Lost(99), 99, NumberedError::NeverCame { from, number: 99, sent: 100 }),
        (Mishap::Repeated(3), 4, NumberedError::CameAgain { from, number: 3, due: 4 }),
        (Mishap::Overtaken(7), 7, NumberedError::NeverCame { from, number: 7, sent: 9 }),
        (Mishap::Cut(1), 1, NumberedError::NotNumbered { from }),
    ];
    for (mishap, before, error) in expected {
        let (numbers, found) = ends_with(100, mishap);
        assert_eq!((numbers, found), ((0..before).collect(), error));
    }
    let error: NumberedError<adapm_transport::Error> =
        NumberedError::NeverCame { from, number: 50, sent: 52 };
    assert_eq!(error.to_string(), "frame 50 of n0 never came: n0 has sent 52");
}

#[test]
fn a_refused_frame_is_told_of_room_by_a_wake() {
    let rates = ShakeRates { full: 30, ..ShakeRates::default() };
    let mut ends = Shaky::network(inproc::network(2), rates, 1);
    let [a, b] = &mut ends[..] else { panic!("two endpoints") };
    let (mut refusals, mut frame) = (0, Frame::default());
    for number in 0..100 {
        frame.head = vec![number];
        while a.send(NodeId(1), &mut frame) == Err(SendError::Full) {
            refusals += 1;
            assert_eq!(frame.head, [number]);
            assert_eq!(a.recv(None, &mut Frame::default()), Ok(Received::Woken));
        }
        assert_eq!(b.recv(None, &mut frame), Ok(Received::Frame(NodeId(0))));
        assert_eq!(frame.head, [number]);
    }
    assert!(
        (10..90).contains(&refusals),
        "{refusals} refusals of 100 frames and their repetitions"
    );
}

#[test]
fn a_shaky_transport_times_out_and_wakes_without_a_reason() {
    let rates = ShakeRates { full: 0, timed_out: 50, woken: 50 };
    let mut ends = Shaky::network(inproc::network(1), rates, 1);
    let mut told = Vec::new();
    for _ in 0..100 {
        told.push(ends[0].recv(Some(Duration::ZERO), &mut Frame::default()).expect("it lives"));
    }
    let woken = told.iter().filter(|received| **received == Received::Woken).count();
    // No waker was called, and without a limit the time is never over.
    assert!((10..40).contains(&woken), "{woken} wakes of 100 calls");
    let rates = ShakeRates { full: 0, timed_out: 100, woken: 100 };
    let mut ends = Shaky::network(inproc::network(1), rates, 1);
    let wait = Some(Duration::from_secs(3_600));
    assert_eq!(ends[0].recv(wait, &mut Frame::default()), Ok(Received::TimedOut));
    assert_eq!(ends[0].recv(None, &mut Frame::default()), Ok(Received::Woken));
}
