//! Packets to messages and back, and the bound on messages that a ZeroMQ socket has not written
//! yet.
//!
//! The socket does not reveal the fill of its queue. But a message drops its bytes when the socket
//! has copied them into its write buffer, or has discarded them with the connection: a [`Loan`] is
//! attached to the message and returns then.

use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adapm_core::link::PACKET_BYTES_MAX;
use adapm_core::transport::Frame;
use bytes::Bytes;
use zeromq::{SocketSend, ZmqMessage};

use crate::net::packet::{Fault, Incoming, Outgoing};
use crate::net::queued::PipeTask;

/// Sends the endpoint's packets until the last one; `to`, if given, goes in front of each message.
pub(super) async fn send_all(task: &PipeTask, socket: &mut impl SocketSend, to: Option<Bytes>) {
    let credit = Arc::new(Credit::default());
    loop {
        poll_fn(|cx| credit.poll_ready(cx)).await;
        let Some(packet) = poll_fn(|cx| task.poll_take(cx)).await else { return };
        let message = message_of(packet, to.clone(), &credit);
        // With credit there is room in the socket's queue: this does not wait.
        if socket.send(message).await.is_err() {
            return task.end(Fault::Ended);
        }
    }
}

/// Delivers a message to the endpoint; an invalid packet ends the pipe.
pub(super) fn deliver(task: &PipeTask, parts: &[Bytes]) {
    match packet_of(parts) {
        Ok(packet) => task.deliver(packet),
        Err(fault) => task.end(fault),
    }
}

fn message_of(packet: Outgoing, to: Option<Bytes>, credit: &Arc<Credit>) -> ZmqMessage {
    let loan = credit.lend(packet.len());
    let [header, head, values] = packet.parts().map(<[u8]>::len);
    let packet = Arc::new(packet);
    let part = |index: usize, len: usize| {
        let shared = Part { packet: Arc::clone(&packet), index, loan: None };
        if len == 0 { Bytes::new() } else { Bytes::from_owner(shared) }
    };
    debug_assert!(header > 0, "the loan rides on the header");
    let first = Bytes::from_owner(Part { packet: Arc::clone(&packet), index: 0, loan: Some(loan) });
    let mut message = ZmqMessage::from(first);
    message.push_back(part(1, head));
    message.push_back(part(2, values));
    if let Some(to) = to {
        message.push_front(to);
    }
    message
}

fn packet_of(parts: &[Bytes]) -> Result<Incoming, Fault> {
    let [header, head, values] = parts else { return Err(Fault::Magic) };
    if head.len() + values.len() > PACKET_BYTES_MAX {
        return Err(Fault::Oversize {
            bytes: (head.len() + values.len()) as u64,
            limit: PACKET_BYTES_MAX,
        });
    }
    let mut frame = Frame { head: head.to_vec(), ..Frame::default() };
    frame.values.resize(values.len());
    frame.values.bytes_mut().copy_from_slice(values);
    Incoming::of_parts(header, frame, PACKET_BYTES_MAX)
}

/// One part of a packet, borrowed from it.
struct Part {
    packet: Arc<Outgoing>,
    index: usize,
    #[expect(dead_code, reason = "returns with the drop")]
    loan: Option<Loan>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.packet.parts()[self.index]
    }
}

/// The credit of one pipe.
#[derive(Debug, Default)]
struct Credit {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    messages: usize,
    bytes: usize,
    waiting: Option<Waker>,
}

/// A part of a credit in use; returns when dropped.
#[derive(Debug)]
struct Loan {
    credit: Arc<Credit>,
    bytes: usize,
}

impl Credit {
    /// Waits until there is credit for one more message. One task at a time.
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.messages < MESSAGES_MAX && state.bytes < BYTES_MAX {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes credit for a message; wait until there is some before.
    fn lend(self: &Arc<Self>, bytes: usize) -> Loan {
        let mut state = self.lock();
        state.messages += 1;
        state.bytes += bytes;
        drop(state);
        Loan { credit: Arc::clone(self), bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut state = self.credit.lock();
        state.messages -= 1;
        state.bytes -= self.bytes;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Far below the 100,000 of a socket's queue.
const MESSAGES_MAX: usize = 128;
/// Bytes in use from which on there is no credit; the last message may go beyond.
const BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use adapm_core::link::{self, Seq};

    use super::*;
    use crate::net::packet::{Draft, Kind, Packet};

    #[test]
    fn packets_come_out_of_messages_as_they_went_in() {
        let credit = Arc::new(Credit::default());
        for (head, values) in [(0, 0), (3, 0), (0, 8), (7_000, 9_004)] {
            let mut frame = Frame { head: vec![3; head], ..Frame::default() };
            frame.values.resize(values);
            frame.values.bytes_mut().fill(7);
            let kind = Kind::Link(link::Kind::Data);
            let packet = Draft::new(kind, Seq(5), Seq(6), frame.clone()).check();
            let message = message_of(packet, None, &credit);
            let received =
                packet_of(&message.into_vec()).and_then(Incoming::check).expect("a packet");
            assert_eq!(
                received,
                Packet { kind, seq: Seq(5), ack: Seq(6), wants_ack: false, frame }
            );
        }
    }

    #[test]
    fn messages_of_another_shape_are_no_packets() {
        let packet =
            Draft::new(Kind::Link(link::Kind::Ack), Seq(0), Seq(0), Frame::default()).check();
        let header = Bytes::copy_from_slice(packet.parts()[0]);
        let (none, some) = (Bytes::new(), Bytes::from_static(b"x"));
        assert!(packet_of(&[header.clone(), none.clone(), none.clone()]).is_ok());
        for parts in [
            vec![],
            vec![header.clone()],
            vec![header.clone(), none.clone(), none.clone(), none.clone()],
            vec![header.clone(), some.clone(), none.clone()],
            vec![header.slice(1..), none.clone(), none.clone()],
            vec![none.clone(), header, none],
        ] {
            packet_of(&parts).expect_err("no packet");
        }
    }

    #[test]
    fn credit_ends_by_messages_or_bytes_and_comes_back() {
        let credit = Arc::new(Credit::default());
        let mut cx = Context::from_waker(Waker::noop());
        for (bytes, loans_max) in [(0, MESSAGES_MAX), (BYTES_MAX / 2 + 1, 2), (16 * BYTES_MAX, 1)] {
            let mut loans = Vec::new();
            while credit.poll_ready(&mut cx).is_ready() {
                loans.push(credit.lend(bytes));
            }
            assert_eq!(loans.len(), loans_max);
            loans.pop();
            assert!(credit.poll_ready(&mut cx).is_ready());
        }
    }
}
