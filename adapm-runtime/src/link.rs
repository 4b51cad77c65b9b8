//! Messages of one channel to and from its peers: encoding, counting, and queueing frames while a
//! way is full.
//!
//! Not here: what a transport is ([`adapm_core::transport`]) and what messages mean.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::error::DecodeError;
use adapm_core::transport::{
    CloseReason, Frame, LastRequest, Received, SendError, Transport, Wake, Way,
};
use adapm_core::wire::message::Body;
use adapm_core::wire::{self, Message};

use crate::Notice;
use crate::stats::Traffic;

/// A function that ends the wait of a channel thread.
pub(crate) type WakeFn = Arc<dyn Fn() + Send + Sync>;

/// A [`Transport`] without associated types, so that a cluster's type does not name it.
pub(crate) trait Endpoint: Send {
    /// Sends `frame`. Returns true if it was taken, false if the way is full.
    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<bool, String>;
    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, String>;
    fn wake_fn(&self) -> WakeFn;
    fn leave(&mut self, reason: CloseReason);
    fn address(&self, node: NodeId) -> Option<SocketAddr>;
    fn way(&self, node: NodeId) -> Way;

    /// Returns true if there are links to all peers that are not lost.
    fn is_connected(&self) -> bool {
        true
    }

    /// Returns the next notice about a link.
    fn poll_notice(&mut self) -> Option<Notice> {
        None
    }
}

impl<T: Transport + Send> Endpoint for T {
    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<bool, String> {
        match Transport::send(self, to, frame) {
            Ok(()) => Ok(true),
            Err(SendError::Full) => Ok(false),
            Err(SendError::Transport(error)) => Err(error.to_string()),
        }
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, String> {
        Transport::recv(self, wait, frame).map_err(|error| error.to_string())
    }

    fn wake_fn(&self) -> WakeFn {
        let waker = self.waker();
        Arc::new(move || waker.wake())
    }

    fn leave(&mut self, reason: CloseReason) {
        Transport::leave(self, reason);
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        Transport::address(self, node)
    }

    fn way(&self, node: NodeId) -> Way {
        Transport::way(self, node)
    }
}

/// One channel's endpoint with counters of sent frames and a backlog per peer, in order.
///
/// The backlog is bounded by what the engine has unanswered: one request per peer and the
/// operations of its own workers. Nothing is kept for a lost peer.
pub(crate) struct Link {
    endpoint: Box<dyn Endpoint>,
    backlog: Vec<VecDeque<Frame>>,
    lost: Vec<bool>,
    sent: Vec<Traffic>,
    requests: Vec<LastRequest>,
    outgoing: Frame,
    incoming: Frame,
}

impl Link {
    pub(crate) fn new(endpoint: Box<dyn Endpoint>, nodes: usize) -> Self {
        Self {
            endpoint,
            backlog: (0..nodes).map(|_| VecDeque::new()).collect(),
            lost: vec![false; nodes],
            sent: vec![Traffic::default(); nodes],
            requests: vec![LastRequest::default(); nodes],
            outgoing: Frame::default(),
            incoming: Frame::default(),
        }
    }

    pub(crate) fn send(&mut self, to: NodeId, message: Message) -> Result<(), String> {
        if self.lost[to.index()] {
            return Ok(());
        }
        self.requests[to.index()].note_sent(matches!(*message.body, Body::SyncRequest(_)));
        wire::encode(message, &mut self.outgoing);
        let sent = &mut self.sent[to.index()];
        sent.messages += 1;
        sent.bytes += self.outgoing.len() as u64;
        let backlog = &mut self.backlog[to.index()];
        if !backlog.is_empty() || !self.endpoint.send(to, &mut self.outgoing)? {
            backlog.push_back(std::mem::take(&mut self.outgoing));
        }
        Ok(())
    }

    /// Sends frames of the backlog, as far as there is room.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        for (index, backlog) in self.backlog.iter_mut().enumerate() {
            while let Some(frame) = backlog.front_mut() {
                let to = NodeId(u16::try_from(index).expect("node ids are 16 bits wide"));
                if !self.endpoint.send(to, frame)? {
                    break;
                }
                backlog.pop_front();
            }
        }
        Ok(())
    }

    pub(crate) fn is_flushed(&self) -> bool {
        self.backlog.iter().all(VecDeque::is_empty)
    }

    /// Returns true if the answer of `node` to the last request may be late because of the way.
    pub(crate) fn holds_up(&mut self, node: NodeId) -> bool {
        let waiting = self.backlog[node.index()].len();
        self.requests[node.index()].is_held_up(self.endpoint.way(node), waiting)
    }

    /// Drops the frames queued for a lost peer, and all future ones.
    pub(crate) fn forget(&mut self, lost: NodeId) {
        self.lost[lost.index()] = true;
        self.backlog[lost.index()] = VecDeque::new();
    }

    pub(crate) fn has_lost(&self, node: NodeId) -> bool {
        self.lost[node.index()]
    }

    /// Notifies all peers that this node ends; called last.
    pub(crate) fn leave(&mut self, reason: CloseReason) {
        self.endpoint.leave(reason);
    }

    pub(crate) fn address(&self, node: NodeId) -> Option<SocketAddr> {
        self.endpoint.address(node)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.endpoint.is_connected()
    }

    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.endpoint.poll_notice()
    }

    /// Waits at most `wait` for a frame; [`Link::message`] then takes its message.
    pub(crate) fn recv(&mut self, wait: Option<Duration>) -> Result<Received, String> {
        self.endpoint.recv(wait, &mut self.incoming)
    }

    pub(crate) fn message(&mut self) -> Result<Message, DecodeError> {
        wire::decode(&mut self.incoming)
    }

    pub(crate) fn sent(&self) -> &[Traffic] {
        &self.sent
    }
}

#[cfg(test)]
mod tests {
    use adapm_core::wire::message::SyncRequest;

    use super::*;
    use crate::sync::{Mutex, lock};

    const PEER: NodeId = NodeId(1);

    /// An endpoint that takes `room` frames, over a way whose state the test sets.
    struct Told {
        way: Arc<Mutex<Way>>,
        room: usize,
    }

    impl Endpoint for Told {
        fn send(&mut self, _: NodeId, _: &mut Frame) -> Result<bool, String> {
            let has_room = self.room > 0;
            self.room = self.room.saturating_sub(1);
            Ok(has_room)
        }

        fn recv(&mut self, _: Option<Duration>, _: &mut Frame) -> Result<Received, String> {
            Ok(Received::TimedOut)
        }

        fn wake_fn(&self) -> WakeFn {
            Arc::new(|| ())
        }

        fn leave(&mut self, _: CloseReason) {}

        fn address(&self, _: NodeId) -> Option<SocketAddr> {
            None
        }

        fn way(&self, _: NodeId) -> Way {
            *lock(&self.way)
        }
    }

    fn link(room: usize) -> (Link, Arc<Mutex<Way>>) {
        let way = Arc::new(Mutex::new(Way::default()));
        (Link::new(Box::new(Told { way: Arc::clone(&way), room }), 2), way)
    }

    fn send(link: &mut Link, body: Body) {
        link.send(PEER, Message::bare(body)).expect("the endpoint works");
    }

    #[test]
    fn a_way_holds_up_until_the_last_request_has_arrived() {
        let (mut link, way) = link(4);
        for body in [Body::News, Body::SyncRequest(SyncRequest::default()), Body::News] {
            send(&mut link, body);
        }
        let holds_up = |link: &mut Link, unacknowledged| {
            lock(&way).unacknowledged = unacknowledged;
            link.holds_up(PEER)
        };
        assert!(holds_up(&mut link, 3));
        assert!(holds_up(&mut link, 2), "the request and what is behind it");
        assert!(!holds_up(&mut link, 1), "what is behind it tells nothing");
        send(&mut link, Body::News);
        assert!(!holds_up(&mut link, 2), "however much goes on behind it");
    }

    #[test]
    fn a_request_that_waits_for_room_is_on_its_way() {
        let (mut link, _) = link(0);
        send(&mut link, Body::SyncRequest(SyncRequest::default()));
        assert!(link.holds_up(PEER));
    }

    #[test]
    fn a_way_holds_up_while_pieces_come() {
        let (mut link, way) = link(1);
        for received in [7, 8] {
            lock(&way).received = received;
            assert!(link.holds_up(PEER));
            assert!(!link.holds_up(PEER), "nothing came since");
        }
    }
}
