//! Waiting for news of pipes and for times to come, and dialing.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;

use adapm_core::{Instant, NodeId};
use mio::Token;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::open::{entropy, system};
use super::{LOOK_TIME, Net};
use crate::net::address::{Address, Kind};
use crate::net::carriers;
use crate::net::clock::later;
use crate::net::connection::{Connection, Role, Slot};
use crate::net::error::{NetError, Trouble};
use crate::net::hello::{Dialing, Listening};
use crate::net::noise::Channel;
use crate::net::packet::Fault;
use crate::net::pipe::Pipe;
use crate::tcp::StreamPipe;

/// The source of news that other threads cause.
pub(super) const BELL: Token = Token(0);
/// The listening socket.
pub(super) const LISTENER: Token = Token(1);
/// The connection of slot 0.
const FIRST: usize = 2;

impl Net {
    /// Waits until there is news, a time has come, or `wait` is over; then looks at everything.
    ///
    /// Does not wait while pipes may have packets.
    pub(super) fn look(&mut self, wait: Option<Duration>) -> Result<(), NetError> {
        self.since_look = 0;
        let mut wait = match (wait, self.until_due()) {
            (Some(wait), Some(due)) => Some(wait.min(due)),
            (wait, due) => wait.or(due),
        };
        if wait != Some(Duration::ZERO) && (!self.ready.is_empty() || !self.bell.start_wait()) {
            wait = Some(Duration::ZERO);
        }
        self.clock.plan(wait);
        if let Some(short) = wait.filter(|wait| *wait != Duration::ZERO && *wait < FINE_WAIT_MAX) {
            self.wait_finely(short);
            wait = Some(Duration::ZERO);
        }
        let polled = self.poll.poll(&mut self.events, wait);
        self.bell.end_wait();
        match polled {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(system(error)),
            Err(_) => self.events.clear(),
            Ok(()) => {}
        }
        let now = self.clock.look();
        self.look_at = later(now, LOOK_TIME);
        self.take_news(now);
        if self.bell.take_ring() {
            self.answer_ring(now);
        }
        if self.accept_at.is_some_and(|at| at <= now) {
            self.accept(now);
        }
        self.keep_times(now);
        Ok(())
    }

    /// Waits for news, at most `wait`: what mio watches with counts in whole milliseconds, and rounds of synchronization are
    /// shorter than that.
    fn wait_finely(&self, wait: Duration) {
        let registry = self.poll.registry();
        let mut watched = [PollFd::new(registry, PollFlags::IN)];
        if let Ok(wait) = Timespec::try_from(wait) {
            // Whatever ends the wait, what has come is looked at next.
            let _ = poll(&mut watched, Some(&wait));
        }
    }

    /// How long until a time comes; `None`: none will.
    fn until_due(&self) -> Option<Duration> {
        let now = self.clock.now();
        let blocked_until = later(now, BLOCKED_WAIT);
        let links =
            self.peers.iter().filter(|peer| !peer.is_lost || peer.session.has_left()).filter_map(|peer| {
                let due = peer.session.deadline()?;
                let pipe = peer.pipe.and_then(|slot| self.connections.get(slot));
                // What is due and cannot be written waits for the pipe.
                let is_blocked = pipe.is_some_and(|connection| !connection.pipe.has_room());
                Some(if is_blocked { due.max(blocked_until) } else { due })
            });
        let dials = self.peers.iter().filter_map(|peer| peer.dial_at);
        let pipes = self.connections.iter().filter_map(|(_, connection)| connection.deadline);
        let due = links.chain(dials).chain(pipes).chain(self.accept_at).min()?;
        Some(Duration::from_nanos(due.nanos_since(now)))
    }

    /// Takes what mio has found.
    fn take_news(&mut self, now: Instant) {
        for event in self.events.iter() {
            let token = event.token();
            if token == LISTENER {
                self.accept_at = Some(now);
            } else if let Some(slot) = token.0.checked_sub(FIRST)
                && let Some(connection) = self.connections.at(slot)
                && let Pipe::Stream(stream) = &mut connection.pipe
            {
                stream.handle_event(event.is_read_closed() || event.is_write_closed() || event.is_error());
                if !core::mem::replace(&mut connection.is_ready, true) {
                    self.ready.push_back(slot);
                }
            }
        }
        // Pipes that took nothing more may take something again.
        for at in 0..self.peers.len() {
            if self.peers[at].pipe.is_some() && self.peers[at].session.wants_to_write() {
                self.pump(self.peers[at].node);
            }
        }
    }

    /// Pipes with threads of their own have news.
    fn answer_ring(&mut self, now: Instant) {
        if !self.carriers.is_empty() {
            self.accept_at = Some(now);
        }
        let carried = |(slot, connection): (Slot, &Connection)| {
            matches!(connection.pipe, Pipe::Carried(_)).then_some(slot)
        };
        let slots: Vec<Slot> = self.connections.iter().filter_map(carried).collect();
        for slot in slots {
            self.mark_ready(slot);
        }
    }

    /// Takes in whoever has dialed, a bounded number at a time: peers must not wait for a crowd, and of those who come together
    /// each is heard before others take its place.
    fn accept(&mut self, now: Instant) {
        self.accept_at = None;
        let mut admitted = 0;
        while let Some(listener) = &mut self.listener {
            match listener.accept() {
                Ok(Some(stream)) => {
                    let remote = stream.remote();
                    self.admit(Pipe::Stream(Box::new(stream)), remote, now);
                }
                Ok(None) => break,
                // Typically, too many open files: connections wait in the system until there is room.
                Err(error) => {
                    self.shortage.note(error.into(), now);
                    self.accept_at = Some(later(now, ACCEPT_AGAIN));
                    break;
                }
            }
            admitted += 1;
            if admitted == ACCEPTS_AT_ONCE {
                self.accept_at = Some(now);
                break;
            }
        }
        for at in 0..self.carriers.len() {
            let mut admitted = 0;
            while let Some((carried, remote)) = self.carriers[at].1.accept() {
                self.admit(Pipe::Carried(carried), remote, now);
                admitted += 1;
                if admitted == ACCEPTS_AT_ONCE {
                    self.accept_at = Some(now);
                    break;
                }
            }
        }
    }

    /// Takes one in. Of those who have not proven who they are the one that waits longest goes for it: a node that belongs here
    /// needs a round trip to do so, and has the place for as long as it takes 64 others to come.
    fn admit(&mut self, pipe: Pipe, remote: Option<SocketAddr>, now: Instant) {
        if let Some(oldest) = self.connections.surplus_stranger() {
            self.give_up(oldest, Trouble::Crowded);
        }
        // Without random bytes nobody can be trusted.
        let Ok(entropy) = entropy() else { return };
        let exchange = Listening::new(self.own, self.token.clone(), entropy);
        let deadline = later(now, self.greeting_time);
        self.insert(pipe, Role::Listening(Box::new(exchange)), remote, deadline);
    }

    /// Dials `node`.
    fn dial(&mut self, node: NodeId) {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        peer.dial_at = None;
        let (Some(address), None, None) = (peer.address.clone(), peer.pipe, peer.dialing) else { return };
        let (pipe, entropy) = match (self.pipe_to(&address), entropy()) {
            (Ok(pipe), Ok(entropy)) => (pipe, entropy),
            (Err(Fault::Io(error)), _) if error.kind() == io::ErrorKind::Unsupported => {
                return self.failures.push_back(NetError::KindMissing { kind: address.kind() });
            }
            (Err(fault), _) => return self.put_off(node, Trouble::Fault(fault)),
            (_, Err(_)) => return self.put_off(node, Trouble::Fault(Fault::Io(io::ErrorKind::Other.into()))),
        };
        let peer = &self.peers[node.index()];
        let (knows, link, expects) = (peer.incarnation, peer.link.clone(), peer.session.expects());
        let (exchange, message) =
            Dialing::new(self.own, self.token.as_ref(), (node, knows, link), expects, entropy);
        // A way that swallows everything may be whole again long before the system tries the next time by itself.
        let redial_time = self.greeting_time.min(self.link.suspect_after.max(REDIAL_TIME_MIN));
        let deadline = later(now, if knows.is_some() { redial_time } else { self.greeting_time });
        let slot = self.insert(pipe, Role::Dialing(node, Box::new(exchange)), address.socket(), deadline);
        if let Some(slot) = slot {
            self.peers[node.index()].dialing = Some(slot);
            self.say(slot, message);
        } else {
            self.put_off(node, Trouble::Fault(Fault::Io(io::ErrorKind::Other.into())));
        }
    }

    /// A pipe to `address`, by whatever carries it.
    fn pipe_to(&mut self, address: &Address) -> Result<Pipe, Fault> {
        let kind = match (address.kind(), self.kind) {
            // Both speak the same bytes: a node of one kind dials with its own.
            (Kind::Tcp | Kind::Tokio, own @ (Kind::Tcp | Kind::Tokio)) => own,
            (Kind::Tokio, _) => Kind::Tcp,
            (other, _) => other,
        };
        if matches!(kind, Kind::Tcp | Kind::Unix) {
            return Ok(Pipe::Stream(Box::new(StreamPipe::dial(address)?)));
        }
        let known = self.carriers.iter().position(|(carried, _)| *carried == kind);
        let at = match known {
            Some(at) => at,
            None => {
                self.carriers.push((kind, carriers::open(kind, None, &self.bell)?));
                self.carriers.len() - 1
            }
        };
        self.carriers[at].1.dial(address).map(Pipe::Carried)
    }

    /// Takes a pipe in; `None` if the system does not watch it.
    fn insert(
        &mut self,
        mut pipe: Pipe,
        role: Role,
        remote: Option<SocketAddr>,
        deadline: Instant,
    ) -> Option<Slot> {
        let slot = self.connections.vacant();
        if let Pipe::Stream(stream) = &mut pipe {
            stream.register(self.poll.registry(), Token(FIRST + slot)).ok()?;
        }
        let since = self.clock.now();
        let deadline = Some(deadline);
        let connection = Connection {
            pipe,
            channel: Channel::default(),
            role,
            remote,
            since,
            deadline,
            asked: since,
            is_ready: false,
            bytes_noted: 0,
        };
        self.connections.insert(slot, connection);
        // Something may have come before the system was asked to watch.
        self.mark_ready(slot);
        Some(slot)
    }

    pub(super) fn mark_ready(&mut self, slot: Slot) {
        if let Some(connection) = self.connections.at(slot)
            && !core::mem::replace(&mut connection.is_ready, true)
        {
            self.ready.push_back(slot);
        }
    }

    /// Does what is due.
    fn keep_times(&mut self, now: Instant) {
        for at in 0..self.peers.len() {
            let node = self.peers[at].node;
            if node == self.own.node {
                continue;
            }
            if !self.is_unread(node) && !self.peers[at].is_lost {
                self.note_progress(node, now);
                self.peers[at].session.handle_timeout(now);
                self.tend(node);
            }
            if self.peers[at].session.deadline().is_some_and(|due| due <= now) {
                self.pump(node);
            }
            if self.peers[at].dial_at.is_some_and(|due| due <= now) {
                self.dial(node);
            }
        }
        let is_late = |connection: &Connection| connection.deadline.is_some_and(|due| due <= now);
        let late = |(slot, connection): (Slot, &Connection)| is_late(connection).then_some(slot);
        let slots: Vec<Slot> = self.connections.iter().filter_map(late).collect();
        for slot in slots {
            self.give_up(slot, Trouble::Slow);
        }
    }

    /// Whether the pipe in use may hold packets of that node: then it is not known how long it was silent.
    fn is_unread(&self, node: NodeId) -> bool {
        let pipe = self.peers[node.index()].pipe.and_then(|slot| self.connections.get(slot));
        pipe.is_some_and(|connection| connection.is_ready)
    }

    /// Bytes show that their sender lives, be they less than a packet. A sender that claims more than it sends is found by the
    /// checksum of a packet that is fed by what was sent behind it: packets are small.
    fn note_progress(&mut self, node: NodeId, now: Instant) {
        let peer = &mut self.peers[node.index()];
        if let Some(connection) = peer.pipe.and_then(|slot| self.connections.at(slot)) {
            let bytes = connection.pipe.bytes_in();
            if bytes > connection.bytes_noted {
                connection.bytes_noted = bytes;
                peer.session.handle_bytes(now);
            }
        }
    }
}

/// Waits below this are worth a second call of the system to end in time.
const FINE_WAIT_MAX: Duration = Duration::from_millis(5);
/// Least time for a handshake with a peer that was met before.
const REDIAL_TIME_MIN: Duration = Duration::from_secs(1);
/// Connections that are taken in at once: half of those that may be unknown.
const ACCEPTS_AT_ONCE: u32 = 32;
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How long what is due may wait for a pipe that takes nothing, before times are looked at again.
const BLOCKED_WAIT: Duration = Duration::from_millis(20);
