//! Listening, and knowing whom to dial.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use adapm_core::{Instant, NodeId};
use mio::{Events, Poll};

use super::Net;
use super::drive::{BELL, LISTENER};
use super::shortage::Shortage;
use crate::net::address::{Address, Kind};
use crate::net::bell::Bell;
use crate::net::carriers;
use crate::net::clock::Clock;
use crate::net::config::NetConfig;
use crate::net::connection::Connections;
use crate::net::error::{NetError, Notices};
use crate::net::hello::{Identity, Incarnation};
use crate::net::noise::{Entropy, Recordings};
use crate::net::packet::Spares;
use crate::net::peer::Peer;
use crate::net::pipe::Carrier;
use crate::net::status::NetStats;
use crate::tcp::Listener;

impl Net {
    /// Opens an endpoint, which listens from here on and knows no peers yet.
    ///
    /// # Errors
    /// If the node id is not one of the cluster, or the system or the rules do not allow listening there.
    pub fn listen(config: NetConfig) -> Result<Self, NetError> {
        let NetConfig { node, nodes, kind, link, .. } = config;
        if node.index() >= nodes || nodes > usize::from(u16::MAX) {
            return Err(NetError::Nodes { node, nodes });
        }
        let incarnation = Incarnation(u64::from_le_bytes(random()?));
        let poll = Poll::new().map_err(system)?;
        let bell = Arc::new(Bell::new(poll.registry(), BELL).map_err(system)?);
        let door = Door::open(&config, incarnation, &bell)?;
        let (address, mut listener, carriers) = match door {
            Door::Listener(listener) => (listener.address().clone(), Some(listener), Vec::new()),
            Door::Carrier(address, carrier) => (address, None, vec![(kind, carrier)]),
        };
        if let Some(listener) = &mut listener {
            listener.register(poll.registry(), LISTENER).map_err(system)?;
        }
        let own = Identity {
            cluster: config.cluster,
            node,
            nodes: nodes as u32,
            channel: config.channel,
            layout_digest: config.layout_digest,
            incarnation,
        };
        Ok(Self {
            own,
            token: config.token,
            recordings: Recordings::default(),
            link,
            greeting_time: config.greeting_time,
            kind,
            address,
            poll,
            events: Events::with_capacity(EVENTS),
            bell,
            listener,
            accept_at: None,
            shortage: Shortage::default(),
            carriers,
            peers: (0..nodes as u16).map(|id| Peer::new(NodeId(id), id < node.0, link)).collect(),
            connections: Connections::default(),
            ready: VecDeque::new(),
            verdicts: VecDeque::new(),
            failures: VecDeque::new(),
            notices: Notices::default(),
            spares: Spares::default(),
            clock: Clock::new(link.suspect_after),
            has_room: false,
            just_woken: false,
            just_passed: false,
            since_look: 0,
            look_at: Instant::ZERO,
            has_left: false,
            stats: NetStats::default(),
        })
    }

    /// Tells where peers listen, by node id, and starts to dial those with lower ids; returns at once.
    ///
    /// May be called again once more of them are known. The address of a peer that was met stays; another one for a peer that
    /// was not met replaces the first.
    pub fn connect(&mut self, addresses: &[Option<Address>]) {
        for (index, address) in addresses.iter().enumerate().take(self.peers.len()) {
            if let (Ok(id), Some(address)) = (u16::try_from(index), address) {
                self.connect_any(NodeId(id), core::slice::from_ref(address));
            }
        }
    }

    /// Tells several addresses at which one peer may listen, as a name can have several: they are dialed in turn until it is
    /// met. As [`Net::connect`] in all else.
    pub fn connect_any(&mut self, node: NodeId, addresses: &[Address]) {
        let now = self.clock.look();
        let own = self.own.node;
        let Some(peer) = self.peers.get_mut(node.index()).filter(|peer| peer.node != own) else { return };
        if peer.learn_addresses(addresses) {
            peer.dial_now(now);
        }
    }
}

/// What listens.
enum Door {
    Listener(Listener),
    Carrier(Address, Box<dyn Carrier>),
}

impl Door {
    fn open(config: &NetConfig, incarnation: Incarnation, bell: &Arc<Bell>) -> Result<Self, NetError> {
        let bind = |at: String| move |error: io::Error| NetError::Bind { at, error: error.into() };
        if config.kind == Kind::Unix {
            let path = (!config.bind.is_empty()).then(|| PathBuf::from(&config.bind));
            return Listener::unix(path, incarnation.0)
                .map(Self::Listener)
                .map_err(bind(config.bind.clone()));
        }
        let socket = socket_of(&config.bind)?;
        if !socket.ip().is_loopback() && config.token.is_none() && !config.insecure {
            return Err(NetError::Exposed { at: socket });
        }
        if config.kind == Kind::Tcp {
            return tcp(socket).map(Self::Listener).map_err(bind(socket.to_string()));
        }
        let carrier =
            carriers::open(config.kind, Some(socket), bell).map_err(|error| match error.kind() {
                io::ErrorKind::Unsupported => NetError::KindMissing { kind: config.kind },
                _ => bind(socket.to_string())(error),
            })?;
        let address = carrier.address().ok_or(NetError::KindMissing { kind: config.kind })?;
        Ok(Self::Carrier(address, carrier))
    }
}

/// Listens at `socket`. Where the range from which the system takes free ports is used up, another port does.
fn tcp(socket: SocketAddr) -> io::Result<Listener> {
    let listening = Listener::tcp(socket);
    let is_used_up = matches!(&listening, Err(error) if error.kind() == io::ErrorKind::AddrInUse);
    if socket.port() != 0 || !is_used_up {
        return listening;
    }
    let ports = (0..PORTS_TRIED).filter_map(|_| random().ok()).map(u16::from_le_bytes);
    let mut others = ports.filter(|port| *port >= PORT_MIN).map(|port| SocketAddr::new(socket.ip(), port));
    others.find_map(|other| Listener::tcp(other).ok()).map_or(listening, Ok)
}

/// Fresh random bytes for one handshake.
pub(super) fn entropy() -> Result<Entropy, NetError> {
    random()
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], NetError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| NetError::System { error: io::ErrorKind::Other.into() })?;
    Ok(bytes)
}

/// `ip:port`, an ip with any port, or nothing for any port of the loopback address.
fn socket_of(bind: &str) -> Result<SocketAddr, NetError> {
    let loopback = || bind.is_empty().then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let socket = bind.parse().ok();
    socket
        .or_else(|| bind.parse().ok().or_else(loopback).map(|ip| SocketAddr::new(ip, 0)))
        .ok_or_else(|| NetError::BindText { given: bind.to_owned() })
}

pub(super) fn system(error: io::Error) -> NetError {
    NetError::System { error: error.into() }
}

/// Ports at which to listen if the system has none to give.
const PORTS_TRIED: u32 = 16;
/// The first port that needs no rights.
const PORT_MIN: u16 = 1024;
/// News taken from the system at once.
const EVENTS: usize = 256;
