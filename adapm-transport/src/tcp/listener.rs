//! Where connections come in.

use core::net::SocketAddr;
use std::fs;
use std::io;
use std::path::PathBuf;

use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};

use super::StreamPipe;
use super::stream::Stream;
use crate::net::address::Address;
use crate::net::folder;

/// A listening socket of either family.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    address: Address,
    /// Removed in the end, in this order.
    litter: Vec<PathBuf>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens at a network address; port 0 is any free one.
    pub(crate) fn tcp(socket: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(socket)?;
        let address = Address::Tcp(listener.local_addr()?);
        Ok(Self { socket: Socket::Tcp(listener), address, litter: Vec::new() })
    }

    /// Listens at `path`, where nothing may be yet; `None`: in a new folder that only this user can enter. `unique` is a
    /// number that no other endpoint has.
    pub(crate) fn unix(path: Option<PathBuf>, unique: u64) -> io::Result<Self> {
        let mut litter = Vec::new();
        let path = match path {
            Some(path) => path,
            None => {
                let folder = folder::private(&format!("adapm-{unique:016x}"))?;
                litter.push(folder.clone());
                folder.join("link")
            }
        };
        let listener = UnixListener::bind(&path).inspect_err(|_| remove(&litter))?;
        litter.insert(0, path.clone());
        Ok(Self { socket: Socket::Unix(listener), address: Address::Unix(path), litter })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(listener) => listener.register(registry, token, Interest::READABLE),
            Socket::Unix(listener) => listener.register(registry, token, Interest::READABLE),
        }
    }

    /// The next connection, `None` if there is none.
    pub(crate) fn accept(&mut self) -> io::Result<Option<StreamPipe>> {
        let accepted = match &self.socket {
            Socket::Tcp(listener) => listener.accept().and_then(|(stream, _)| {
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }),
            Socket::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        };
        match accepted {
            Ok(stream) => Ok(Some(StreamPipe::new(stream, false))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        remove(&self.litter);
    }
}

fn remove(litter: &[PathBuf]) {
    for path in litter {
        // Somebody else may have cleaned up.
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
}
