//! The interplay of tasks and the endpoint through a queued pipe.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
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

/// A connection that takes some bytes, then would block until it gets room, and notes its end.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<(usize, Vec<u8>, bool)>>);

impl Scripted {
    fn allow(&self, bytes: usize) {
        self.0.lock().expect("no panic").0 += bytes;
    }

    fn written(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").1.clone()
    }

    fn is_closed(&self) -> bool {
        self.0.lock().expect("no panic").2
    }

    fn writer(&self) -> Writer {
        Writer::new(Lent(self.clone()))
    }
}

struct Lent(Scripted);

impl Write for Lent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut script = self.0.0.lock().expect("no panic");
        let taken = bytes.len().min(script.0);
        if taken == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        script.0 -= taken;
        script.1.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.0.lock().expect("no panic").2 = true;
    }
}

fn numbered(number: u8) -> Outgoing {
    Draft::greeting(Greeting::Hello, vec![number; 5]).check()
}

fn bytes_of(numbers: impl IntoIterator<Item = u8>) -> Vec<u8> {
    numbers.into_iter().flat_map(|number| numbered(number).parts().concat()).collect()
}

#[test]
fn an_endpoint_writes_by_itself_and_the_task_what_is_left_in_order() {
    let (_poll, mut carried, task) = pipe();
    let wakes = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut cx = Context::from_waker(&waker);
    let mut send = |number| {
        carried.push(numbered(number));
        assert!(!carried.flush());
    };
    let connection = Scripted::default();
    // Before the connection stands, packets wait for the task.
    send(0);
    task.lend(connection.writer());
    connection.allow(2 * numbered(0).len() + 7);
    let Poll::Ready(Some(mut writer)) = task.poll_writer(&mut cx) else { panic!("one waits") };
    assert!(writer.write().is_ok_and(|is_done| is_done));
    task.lend(writer);
    assert!(task.poll_writer(&mut cx).is_pending());
    send(1);
    assert_eq!((connection.written(), wakes.0.load(Ordering::Relaxed)), (bytes_of(0..2), 0));
    // The third is cut after 7 bytes: the task is woken for the rest, and later ones queue.
    send(2);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    send(3);
    let Poll::Ready(Some(mut writer)) = task.poll_writer(&mut cx) else { panic!("two wait") };
    send(4);
    connection.allow(1_000);
    assert!(writer.write().is_ok_and(|is_done| is_done));
    task.lend(writer);
    let Poll::Ready(Some(mut writer)) = task.poll_writer(&mut cx) else { panic!("one waits") };
    assert!(writer.write().is_ok_and(|is_done| is_done));
    assert_eq!(connection.written(), bytes_of(0..5));
    assert!(!connection.is_closed());
    // The last handle of the task closes the connection, wherever the writing side is.
    task.lend(writer);
    drop(task);
    assert!(connection.is_closed());
}

#[test]
fn large_packets_are_left_to_the_task() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    let connection = Scripted::default();
    connection.allow(1 << 20);
    task.lend(connection.writer());
    let large = Draft::greeting(Greeting::Hello, vec![1; DIRECT_BYTES_MAX]).check();
    carried.push(large);
    assert!(!carried.flush());
    assert!(connection.written().is_empty());
    // What comes after it keeps its place.
    carried.push(numbered(2));
    assert!(!carried.flush());
    let Poll::Ready(Some(mut writer)) = task.poll_writer(&mut cx) else { panic!("two wait") };
    assert!(writer.write().is_ok_and(|is_done| is_done));
    assert!(connection.written().ends_with(&bytes_of([2])));
}

#[test]
fn an_endpoint_that_has_packets_to_read_leaves_writing_to_the_task() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    let connection = Scripted::default();
    connection.allow(1 << 20);
    task.lend(connection.writer());
    task.deliver(packet(Frame::default()));
    carried.push(numbered(0));
    assert!(!carried.flush());
    assert!(connection.written().is_empty() && carried.read().is_ok_and(|read| read.is_some()));
    let Poll::Ready(Some(mut writer)) = task.poll_writer(&mut cx) else { panic!("one waits") };
    assert!(writer.write().is_ok_and(|is_done| is_done));
    task.lend(writer);
    carried.push(numbered(1));
    assert!(!carried.flush());
    assert_eq!(connection.written(), bytes_of(0..2));
}

#[test]
fn packets_are_written_before_the_end_of_a_dropped_pipe() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    let connection = Scripted::default();
    task.lend(connection.writer());
    carried.push(numbered(0));
    assert!(!carried.flush());
    carried.push(numbered(1));
    assert!(!carried.flush());
    drop(carried);
    let Poll::Ready(Some(mut writer)) = task.poll_writer(&mut cx) else { panic!("two wait") };
    connection.allow(1_000);
    assert!(writer.write().is_ok_and(|is_done| is_done));
    task.lend(writer);
    assert!(matches!(task.poll_writer(&mut cx), Poll::Ready(None)));
    assert!(task.close_writer() && connection.is_closed());
    assert_eq!(connection.written(), bytes_of(0..2));
}

#[test]
fn a_connection_that_fails_while_the_endpoint_writes_breaks_the_pipe() {
    let (_poll, mut carried, task) = pipe();
    let mut cx = Context::from_waker(Waker::noop());
    // A connection that takes nothing of what it is given has ended.
    task.lend(Writer::new(io::Cursor::new([0_u8; 0])));
    carried.push(numbered(0));
    assert!(carried.flush());
    assert_eq!(task.poll_room(&mut cx), Poll::Ready(false));
    assert_eq!(carried.read(), Err(Fault::Io(io::ErrorKind::WriteZero.into())));
    assert!(matches!(task.poll_writer(&mut cx), Poll::Ready(None)));
    assert!(task.close_writer(), "the attempt counts");
}
