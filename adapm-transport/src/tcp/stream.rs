//! One connection of the system, of either family.

use core::net::SocketAddr;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::net::address::Address;

/// A connection that is up or about to be.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn dial(to: &Address) -> io::Result<Self> {
        match to {
            Address::Tcp(socket) | Address::Tokio(socket) => {
                let stream = TcpStream::connect(*socket)?;
                // Without it small frames wait for the acknowledgement of earlier ones.
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => Ok(Self::Unix(UnixStream::connect(path)?)),
            Address::Zmq(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => stream.register(registry, token, interest),
            Self::Unix(stream) => stream.register(registry, token, interest),
        }
    }

    /// Whether the connection is up; false: not yet.
    pub(super) fn is_connected(&self) -> io::Result<bool> {
        let (error, peer) = match self {
            Self::Tcp(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
            Self::Unix(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
        };
        match (error, peer) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(true),
            (None, Err(error)) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            (None, Err(error)) => Err(error),
        }
    }

    /// Returns true if both ends of the connection are this one.
    pub(super) fn leads_to_itself(&self) -> bool {
        match self {
            Self::Tcp(stream) => match (stream.local_addr(), stream.peer_addr()) {
                (Ok(local), Ok(peer)) => local == peer,
                _ => false,
            },
            Self::Unix(_) => false,
        }
    }

    pub(super) fn remote(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    pub(super) fn shutdown(&self) {
        // Whoever is not connected has nothing to be told.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        }
    }

    fn read_vectored(&mut self, rooms: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read_vectored(rooms),
            Self::Unix(stream) => stream.read_vectored(rooms),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(slices),
            Self::Unix(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket")
    }

    #[test]
    fn a_connection_with_itself_is_told_from_others() {
        let own = socket();
        own.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        let address = own.local_addr().expect("it is bound");
        // Nobody listens there: both ends open at once, and both are this one.
        own.connect(&address).expect("TCP allows it");
        own.set_nonblocking(true).expect("a socket");
        assert!(Stream::Tcp(TcpStream::from_std(own.into())).leads_to_itself());

        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let other =
            std::net::TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        other.set_nonblocking(true).expect("a socket");
        assert!(!Stream::Tcp(TcpStream::from_std(other)).leads_to_itself());
    }
}
