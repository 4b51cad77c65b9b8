//! The pipes of an endpoint: listening, dialing, and the events of the system.
//!
//! Not here: the roles of pipes ([`super::links`], [`super::handshakes`]).

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use adapm_core::Instant;
use mio::{Events, Poll, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::door::{Door, open_connector, system};
use crate::error::SystemError;
use crate::net::address::{Address, Kind};
use crate::net::clock::AwakeTime;
use crate::net::config::NetConfig;
use crate::net::connection::{Connection, Connections, Role, Slot};
use crate::net::error::NetError;
use crate::net::hello::Incarnation;
use crate::net::noise::Channel;
use crate::net::notifier::Notifier;
use crate::net::packet::{Fault, Packet, Spares};
use crate::net::peer::NetStats;
use crate::net::pipe::{Connector, Pipe};
use crate::tcp::{Listener, StreamPipe};

/// All pipes of an endpoint, and their sources.
#[derive(Debug)]
pub(super) struct Pipes {
    kind: Kind,
    poll: Poll,
    events: Events,
    notifier: Arc<Notifier>,
    listener: Option<Listener>,
    connectors: Vec<(Kind, Box<dyn Connector>)>,
    /// The time to accept connections, if there may be some.
    accept_at: Option<Instant>,
    /// The shortage that keeps connections from being accepted.
    shortage: Shortage,
    connections: Connections,
    /// Connections that may have packets, in the order of service.
    ready: VecDeque<Slot>,
    spares: Spares,
    /// Traffic of former pipes.
    ended: NetStats,
}

/// The progress of accepting connections.
#[derive(Debug, Default)]
pub(super) struct Accepting {
    /// 0: the listener; then the connectors.
    source: usize,
    /// Connections accepted from that source.
    admitted: u32,
}

impl Pipes {
    /// Opens the listening side by the settings. Returns the address for others to dial.
    pub(super) fn open(
        config: &NetConfig,
        incarnation: Incarnation,
    ) -> Result<(Self, Address), NetError> {
        let poll = Poll::new().map_err(system)?;
        let notifier = Arc::new(Notifier::new(poll.registry(), NOTIFIER).map_err(system)?);
        let door = Door::open(config, incarnation, &notifier)?;
        let (address, mut listener, connectors) = match door {
            Door::Listener(listener) => (listener.address().clone(), Some(listener), Vec::new()),
            Door::Connector(address, connector) => (address, None, vec![(config.kind, connector)]),
        };
        if let Some(listener) = &mut listener {
            listener.register(poll.registry(), LISTENER).map_err(system)?;
        }
        let pipes = Self {
            kind: config.kind,
            poll,
            events: Events::with_capacity(EVENTS),
            notifier,
            listener,
            connectors,
            accept_at: None,
            shortage: Shortage::default(),
            connections: Connections::default(),
            ready: VecDeque::new(),
            spares: Spares::default(),
            ended: NetStats::default(),
        };
        Ok((pipes, address))
    }

    /// Waits for events, at most `wait`, and records them. Returns the time.
    ///
    /// Does not wait while pipes may have packets.
    pub(super) fn wait(
        &mut self,
        mut wait: Option<Duration>,
        clock: &mut AwakeTime,
    ) -> Result<Instant, NetError> {
        if wait != Some(Duration::ZERO) && (!self.ready.is_empty() || !self.notifier.start_wait()) {
            wait = Some(Duration::ZERO);
        }
        clock.plan_wait(wait);
        if let Some(short) = wait.filter(|wait| *wait != Duration::ZERO && *wait < FINE_WAIT_MAX) {
            self.wait_finely(short);
            wait = Some(Duration::ZERO);
        }
        let polled = self.poll.poll(&mut self.events, wait);
        self.notifier.end_wait();
        match polled {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(system(error)),
            Err(_) => self.events.clear(),
            Ok(()) => {}
        }
        let now = clock.advance();
        self.take_news(now);
        if self.notifier.take_notice() {
            self.answer_ring(now);
        }
        Ok(now)
    }

    /// Begins to accept connections, if there may be some.
    pub(super) fn begin_accepting(&mut self, now: Instant) -> Option<Accepting> {
        let is_due = self.accept_at.is_some_and(|at| at <= now);
        is_due.then(|| {
            self.accept_at = None;
            Accepting::default()
        })
    }

    /// Accepts the next connection, a bounded number at a time: peers must not wait for a crowd,
    /// and each of the newcomers is served before others take its place.
    pub(super) fn accept(
        &mut self,
        accepting: &mut Accepting,
        now: Instant,
    ) -> Option<(Pipe, Option<SocketAddr>)> {
        loop {
            let came = if accepting.admitted == ACCEPTS_AT_ONCE {
                self.accept_at = Some(now);
                None
            } else if let Some(at) = accepting.source.checked_sub(1) {
                let (_, connector) = self.connectors.get_mut(at)?;
                connector.accept().map(|(carried, remote)| (Pipe::QueuedPipe(carried), remote))
            } else {
                self.accept_stream(now)
            };
            if came.is_some() {
                accepting.admitted += 1;
                return came;
            }
            *accepting = Accepting { source: accepting.source + 1, admitted: 0 };
        }
    }

    /// Opens a pipe to `address`, of the kind that fits.
    pub(super) fn dial(&mut self, address: &Address) -> Result<Pipe, Fault> {
        let kind = match (address.kind(), self.kind) {
            // Both kinds speak the same bytes: a node of one kind dials with its own.
            (Kind::Tcp | Kind::Tokio, own @ (Kind::Tcp | Kind::Tokio)) => own,
            (Kind::Tokio, _) => Kind::Tcp,
            (other, _) => other,
        };
        if matches!(kind, Kind::Tcp | Kind::Unix) {
            return Ok(Pipe::Stream(Box::new(StreamPipe::dial(address)?)));
        }
        let known = self.connectors.iter().position(|(carried, _)| *carried == kind);
        let at = match known {
            Some(at) => at,
            None => {
                self.connectors.push((kind, open_connector(kind, None, &self.notifier)?));
                self.connectors.len() - 1
            }
        };
        self.connectors[at].1.dial(address).map(Pipe::QueuedPipe)
    }

    /// Registers a pipe; `None` if the system refuses to watch it.
    pub(super) fn insert(
        &mut self,
        mut pipe: Pipe,
        role: Role,
        remote: Option<SocketAddr>,
        since: Instant,
        deadline: Instant,
    ) -> Option<Slot> {
        let slot = self.connections.vacant();
        if let Pipe::Stream(stream) = &mut pipe {
            stream.register(self.poll.registry(), Token(FIRST + slot)).ok()?;
        }
        let connection = Connection {
            pipe,
            channel: Channel::default(),
            role,
            remote,
            since,
            deadline: Some(deadline),
            asked: since,
            is_ready: false,
            bytes_noted: 0,
        };
        self.connections.insert(slot, connection);
        // Bytes may have come before the system was asked to watch.
        self.mark_ready(slot);
        Some(slot)
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(connection) = self.connections.remove(slot) {
            self.ended.count_pipe(&connection.pipe);
        }
    }

    /// Lists a connection as one that may have packets.
    pub(super) fn mark_ready(&mut self, slot: Slot) {
        if let Some(connection) = self.connections.at(slot)
            && !core::mem::replace(&mut connection.is_ready, true)
        {
            self.ready.push_back(slot);
        }
    }

    /// Reads the next packet of the next connection that may have one, which then queues behind the
    /// others; `None` if no connection may have any.
    pub(super) fn next_packet(&mut self) -> Option<(Slot, Result<Option<Packet>, Fault>)> {
        let slot = self.ready.pop_front()?;
        let Some(connection) = self.connections.at(slot) else { return Some((slot, Ok(None))) };
        connection.is_ready = false;
        let read = connection.pipe.read(&mut self.spares);
        let read = read
            .and_then(|packet| packet.map(|packet| connection.channel.believe(packet)).transpose());
        if matches!(read, Ok(Some(_))) {
            self.mark_ready(slot);
        }
        Some((slot, read))
    }

    pub(super) fn spares(&mut self) -> &mut Spares {
        &mut self.spares
    }

    /// Shuts down the writing side of every pipe.
    pub(super) fn shut_down(&mut self) {
        for (_, connection) in self.connections.iter_mut() {
            connection.pipe.shutdown();
        }
    }

    pub(super) fn at(&mut self, slot: Slot) -> Option<&mut Connection> {
        self.connections.at(slot)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Connection> {
        self.connections.get(slot)
    }

    /// Returns the oldest unidentified connection, if there are too many.
    pub(super) fn surplus_stranger(&self) -> Option<Slot> {
        self.connections.surplus_stranger()
    }

    /// Returns the connections whose deadline has passed.
    pub(super) fn late(&self, now: Instant) -> Vec<Slot> {
        let is_late = |connection: &Connection| connection.deadline.is_some_and(|due| due <= now);
        let late = |(slot, connection): (Slot, &Connection)| is_late(connection).then_some(slot);
        self.connections.iter().filter_map(late).collect()
    }

    /// Returns the next deadline here.
    pub(super) fn due(&self) -> Option<Instant> {
        let deadlines = self.connections.iter().filter_map(|(_, connection)| connection.deadline);
        deadlines.chain(self.accept_at).min()
    }

    /// Returns why connections cannot be accepted, if that goes on for `time` or longer.
    pub(super) fn shortage(&self, time: Duration, now: Instant) -> Option<SystemError> {
        self.shortage.lasts(time, now)
    }

    /// Adds the traffic of the pipes.
    pub(super) fn add_to(&self, stats: &mut NetStats) {
        stats.bytes_received += self.ended.bytes_received;
        stats.reads += self.ended.reads;
        stats.writes += self.ended.writes;
        for (_, connection) in self.connections.iter() {
            stats.count_pipe(&connection.pipe);
        }
    }

    pub(super) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// Waits for events, at most `wait`: mio's waits are whole milliseconds, longer than rounds of
    /// synchronization.
    fn wait_finely(&self, wait: Duration) {
        let registry = self.poll.registry();
        let mut watched = [PollFd::new(registry, PollFlags::IN)];
        if let Ok(wait) = Timespec::try_from(wait) {
            // Whatever ends the wait, events are collected next.
            let _ = poll(&mut watched, Some(&wait));
        }
    }

    /// Handles the events that mio has found.
    fn take_news(&mut self, now: Instant) {
        for event in self.events.iter() {
            let token = event.token();
            if token == LISTENER {
                self.accept_at = Some(now);
            } else if let Some(slot) = token.0.checked_sub(FIRST)
                && let Some(connection) = self.connections.at(slot)
                && let Pipe::Stream(stream) = &mut connection.pipe
            {
                stream.handle_event(
                    event.is_read_closed() || event.is_write_closed() || event.is_error(),
                );
                if !core::mem::replace(&mut connection.is_ready, true) {
                    self.ready.push_back(slot);
                }
            }
        }
    }

    /// Handles news of pipes with threads of their own.
    fn answer_ring(&mut self, now: Instant) {
        if !self.connectors.is_empty() {
            self.accept_at = Some(now);
        }
        let carried = |(slot, connection): (Slot, &Connection)| {
            matches!(connection.pipe, Pipe::QueuedPipe(_)).then_some(slot)
        };
        let slots: Vec<Slot> = self.connections.iter().filter_map(carried).collect();
        for slot in slots {
            self.mark_ready(slot);
        }
    }

    fn accept_stream(&mut self, now: Instant) -> Option<(Pipe, Option<SocketAddr>)> {
        match self.listener.as_mut()?.accept() {
            Ok(stream) => stream.map(|stream| {
                let remote = stream.remote();
                (Pipe::Stream(Box::new(stream)), remote)
            }),
            // Typically too many open files: connections wait in the system until there is room.
            Err(error) => {
                self.shortage.note(error.into(), now);
                self.accept_at = Some(now + ACCEPT_AGAIN);
                None
            }
        }
    }
}

/// Refusals by the system, most often for too many open files.
///
/// A single accepted connection between two refusals does not end the shortage: it may have taken
/// the place of one that was dropped.
#[derive(Debug, Default)]
struct Shortage(Option<Refusals>);

#[derive(Clone, Copy, Debug)]
struct Refusals {
    error: SystemError,
    first: Instant,
    last: Instant,
}

impl Shortage {
    /// Records the refusal of a connection.
    fn note(&mut self, error: SystemError, now: Instant) {
        let going_on = self.0.filter(|known| now < known.last + OVER_AFTER);
        self.0 =
            Some(Refusals { error, first: going_on.map_or(now, |known| known.first), last: now });
    }

    /// Returns why connections cannot be accepted, if that goes on for `time` or longer.
    fn lasts(&self, time: Duration, now: Instant) -> Option<SystemError> {
        let known = self.0.filter(|known| now < known.last + OVER_AFTER)?;
        (known.first + time <= now).then_some(known.error)
    }
}

/// The event source of other threads.
const NOTIFIER: Token = Token(0);
/// The listening socket.
const LISTENER: Token = Token(1);
/// The connection of slot 0.
const FIRST: usize = 2;
/// Events taken from the system at once.
const EVENTS: usize = 256;
/// Waits below this are worth a second system call to end in time.
const FINE_WAIT_MAX: Duration = Duration::from_millis(5);
/// Connections accepted at once: half of those that may be unidentified.
const ACCEPTS_AT_ONCE: u32 = 32;
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Time without a refusal after which there is room again.
const OVER_AFTER: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_shortage_goes_on_while_something_is_refused_now_and_then() {
        let error = SystemError::from(io::Error::from_raw_os_error(24));
        let second = Duration::from_secs(1);
        let mut shortage = Shortage::default();
        assert!(shortage.lasts(Duration::ZERO, at(0)).is_none());
        shortage.note(error, at(100));
        assert!(shortage.lasts(second, at(1_099)).is_none());
        assert!(shortage.lasts(second, at(1_100)).is_some());
        // Another one 2.9 s later belongs to the same shortage, which ends 3 s after it.
        shortage.note(error, at(3_000));
        assert!(shortage.lasts(second, at(5_999)).is_some());
        assert!(shortage.lasts(second, at(6_000)).is_none());
        shortage.note(error, at(6_000));
        assert!(shortage.lasts(second, at(6_999)).is_none());
        assert!(shortage.lasts(second, at(7_000)).is_some());
    }
}
