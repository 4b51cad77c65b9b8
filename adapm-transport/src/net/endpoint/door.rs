//! The listening side of an endpoint: a socket of the system, or a connector.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::net::address::{Address, Kind};
use crate::net::config::NetConfig;
use crate::net::error::NetError;
use crate::net::hello::Incarnation;
use crate::net::notifier::Notifier;
use crate::net::pipe::Connector;
use crate::tcp::Listener;

/// The listening side.
pub(super) enum Door {
    Listener(Listener),
    Connector(Address, Box<dyn Connector>),
}

impl Door {
    pub(super) fn open(
        config: &NetConfig,
        incarnation: Incarnation,
        notifier: &Arc<Notifier>,
    ) -> Result<Self, NetError> {
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
        let connector = open_connector(config.kind, Some(socket), notifier).map_err(|error| {
            match error.kind() {
                io::ErrorKind::Unsupported => NetError::KindMissing { kind: config.kind },
                _ => bind(socket.to_string())(error),
            }
        })?;
        let address = connector.address().ok_or(NetError::KindMissing { kind: config.kind })?;
        Ok(Self::Connector(address, connector))
    }
}

/// Listens at `socket`. If the system's range of free ports is used up, tries others.
fn tcp(socket: SocketAddr) -> io::Result<Listener> {
    let listening = Listener::tcp(socket);
    let is_used_up = matches!(&listening, Err(error) if error.kind() == io::ErrorKind::AddrInUse);
    if socket.port() != 0 || !is_used_up {
        return listening;
    }
    let ports = (0..PORTS_TRIED).filter_map(|_| random().ok()).map(u16::from_le_bytes);
    let mut others =
        ports.filter(|port| *port >= PORT_MIN).map(|port| SocketAddr::new(socket.ip(), port));
    others.find_map(|other| Listener::tcp(other).ok()).map_or(listening, Ok)
}

/// Returns random bytes of the system.
pub(super) fn random<const BYTES: usize>() -> Result<[u8; BYTES], NetError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|_| NetError::System { error: io::ErrorKind::Other.into() })?;
    Ok(bytes)
}

/// Parses `ip:port`, an ip with any port, or nothing for any port of the loopback address.
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

/// Opens a connector of `kind`, which listens at `bind` if given. Streams of the system need none:
/// the endpoint serves them itself.
///
/// # Errors
/// `Unsupported` if this build has none, else the system's error.
pub(super) fn open_connector(
    kind: Kind,
    bind: Option<SocketAddr>,
    notifier: &Arc<Notifier>,
) -> io::Result<Box<dyn Connector>> {
    match kind {
        #[cfg(feature = "tokio")]
        Kind::Tokio => Ok(Box::new(crate::tokio::TokioConnector::new(bind, Arc::clone(notifier))?)),
        #[cfg(feature = "zmq")]
        Kind::Zmq => Ok(Box::new(crate::zmq::ZmqConnector::new(bind, Arc::clone(notifier))?)),
        _ => {
            let _ = (bind, notifier);
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

/// Ports to try if the system assigns none.
const PORTS_TRIED: u32 = 16;
/// The first unprivileged port.
const PORT_MIN: u16 = 1024;
