//! The interplay of tasks and the endpoint through a queued pipe.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use adapm_core::link::Seq;
use adapm_core::transport::Frame;

use super::*;
use crate::net::packet::{Draft, Greeting, Kind};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn pipe() -> (mio::Poll, QueuedPipe, PipeTask) {
    let poll = mio::Poll::new().expect("a poll");
    let notifier = Notifier::new(poll.registry(), mio::Token(0)).expect("a notifier");
    let (carried, task) = queued_pipe(Arc::new(notifier));
    (poll, carried, task)
}

fn packet(frame: Frame) -> Incoming {
    let kind = Kind::Greeting(Greeting::Hello);
    let packet = Draft::new(kind, Seq(0), Seq(0), frame.clone()).check();
    Incoming::of_parts(packet.parts()[0], frame, 1 << 24).expect("a sound packet")
}

#[test]
fn an_unknown_peer_waits_until_its_packet_was_dealt_with() {
    let (_poll, mut carried, task) = pipe();
    let wakes = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut cx = Context::from_waker(&waker);
    assert_eq!(task.poll_room(&mut cx), Poll::Ready(true));
    task.deliver(packet(Frame::default()));
    assert_eq!(task.poll_room(&mut cx), Poll::Pending);
    assert_eq!(carried.read(), Ok(Some(packet(Frame::default()))));
    assert_eq!(task.poll_room(&mut cx), Poll::Pending, "the endpoint may still raise the limit");
    assert_eq!(carried.read(), Ok(None));
    assert_eq!((wakes.0.load(Ordering::Relaxed), task.poll_room(&mut cx)), (1, Poll::Ready(true)));
    task.deliver(packet(Frame::default()));
    assert_eq!(task.poll_room(&mut cx), Poll::Pending);
    assert_eq!(task.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Pending);
    carried.raise_limit(1 << 20);
    assert_eq!((wakes.0.load(Ordering::Relaxed), task.poll_room(&mut cx)), (3, Poll::Ready(true)));
    assert_eq!(task.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Ready(Some(1 << 20)));
}

#[test]
fn a_dropped_pipe_gives_what_was_flushed_and_then_its_end() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    carried.push(Draft::greeting(Greeting::Hello, Vec::new()).check());
    assert!(!carried.flush());
    assert_eq!(task.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Pending);
    drop(carried);
    assert_eq!(task.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Ready(None));
    assert!(matches!(task.poll_take(&mut cx), Poll::Ready(Some(_))));
    assert!(matches!(task.poll_take(&mut cx), Poll::Ready(None)));
    assert_eq!(task.poll_room(&mut cx), Poll::Ready(false));
}

#[test]
fn both_directions_are_bounded_and_a_fault_comes_behind_what_was_delivered() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    let large = || Frame { head: vec![1; 64 << 10], ..Frame::default() };
    carried.raise_limit(1 << 24);
    let mut delivered = 0;
    while task.poll_room(&mut cx).is_ready() {
        task.deliver(packet(large()));
        delivered += 1;
    }
    let mut pushed = 0;
    while carried.has_room() {
        carried.push(Draft::greeting(Greeting::Hello, large().head).check());
        assert!(!carried.flush());
        pushed += 1;
    }
    assert_eq!((delivered, pushed), (16, 16), "1 MiB each way");
    task.note_bytes(77);
    assert_eq!((task.limit(), carried.bytes_in()), (1 << 24, 77));
    task.end(Fault::Magic);
    assert!(carried.flush());
    for _ in 0..delivered {
        assert!(carried.read().is_ok_and(|packet| packet.is_some()));
    }
    assert_eq!(carried.read(), Err(Fault::Magic));
}

#[test]
fn a_pipe_that_brought_nonsense_still_carries_the_answer() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    task.end(Fault::Magic);
    assert_eq!(task.poll_room(&mut cx), Poll::Ready(false));
    carried.push(Draft::greeting(Greeting::Refuse, Vec::new()).check());
    assert!(carried.flush(), "the reader has to look");
    assert_eq!(carried.read(), Err(Fault::Magic));
    assert!(matches!(task.poll_take(&mut cx), Poll::Ready(Some(_))));
    assert!(task.poll_take(&mut cx).is_pending(), "there may be more");
    carried.shutdown();
    assert!(matches!(task.poll_take(&mut cx), Poll::Ready(None)));
    assert_eq!(task.poll_change(&mut cx, GREETING_BYTES_MAX), Poll::Pending, "it was not dropped");
    task.end(Fault::Ended);
    assert_eq!(carried.read(), Err(Fault::Magic), "the first reason counts");
    drop(task);
    assert!(carried.is_flushed());
}

#[test]
fn room_is_notified_only_once_there_is_much() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    let fill = |carried: &mut QueuedPipe| {
        while carried.has_room() {
            carried.push(Draft::greeting(Greeting::Hello, Vec::new()).check());
        }
        assert!(!carried.flush());
    };
    fill(&mut carried);
    let mut take = |count: usize| {
        for _ in 0..count {
            assert!(matches!(task.poll_take(&mut cx), Poll::Ready(Some(_))));
        }
        task.shared.notifier.take_notice()
    };
    assert!(!take(PACKETS_MAX / 2 - 1));
    assert!(take(1));
    assert!(!take(PACKETS_MAX / 2), "nobody waits for that");
}
