//! Streams of the system, TCP and Unix sockets, through mio: no threads, no blocking.
//!
//! A [`StreamPipe`] is one connection with what was read and not yet understood, and what is to be written. Its I/O happens
//! in calls of the endpoint that owns it. Not here: who is at the other end, and what happens when a connection breaks.

mod stream;

use core::net::SocketAddr;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, io};

use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};

use crate::net::address::Address;
use crate::net::hello::GREETING_BYTES_MAX;
use crate::net::packet::{Fault, Incoming, Outgoing, PacketReader, PacketWriter, Spares};
use stream::Stream;

/// A connection that carries packets.
#[derive(Debug)]
pub(crate) struct StreamPipe {
    stream: Stream,
    reader: PacketReader,
    writer: PacketWriter,
    is_connecting: bool,
    /// The system takes nothing more until it says so.
    is_blocked: bool,
    /// Writing failed; what has come is still read.
    fault: Option<Fault>,
}

impl StreamPipe {
    /// Starts to connect.
    pub(crate) fn dial(to: &Address) -> io::Result<Self> {
        Ok(Self::new(Stream::dial(to)?, true))
    }

    fn new(stream: Stream, is_connecting: bool) -> Self {
        let mut reader = PacketReader::new(GREETING_BYTES_MAX);
        reader.trust_short(true);
        Self {
            stream,
            reader,
            writer: PacketWriter::default(),
            is_connecting,
            is_blocked: false,
            fault: None,
        }
    }

    /// From here on, mio tells of news under `token`.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.stream.register(registry, token)
    }

    /// Mio has told of news; `has_closed`: the other side writes nothing more, or all is over.
    pub(crate) fn handle_event(&mut self, has_closed: bool) {
        self.reader.hear_news();
        if has_closed {
            self.reader.trust_short(false);
        }
        self.is_blocked = false;
        if self.is_connecting {
            match self.stream.is_connected() {
                Ok(is_connected) => self.is_connecting = !is_connected,
                Err(error) => self.fail(&error),
            }
            if !self.is_connecting && self.stream.leads_to_itself() {
                self.is_connecting = true;
                self.fault.get_or_insert(Fault::Itself);
            }
        }
        self.flush();
    }

    pub(crate) fn read(&mut self, spares: &mut Spares) -> Result<Option<Incoming>, Fault> {
        if self.is_connecting {
            return self.fault.map_or(Ok(None), Err);
        }
        match self.reader.read(&mut self.stream, spares)? {
            None => self.fault.map_or(Ok(None), Err),
            packet => Ok(packet),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.fault.is_none() && self.writer.packets() < PACKETS_MAX && self.writer.bytes() < BYTES_MAX
    }

    pub(crate) fn push(&mut self, packet: Outgoing) {
        self.writer.push(packet);
    }

    /// Writes as much as goes; a failure is told by [`StreamPipe::read`] once everything that came was read.
    pub(crate) fn flush(&mut self) {
        if self.is_connecting || self.is_blocked || self.fault.is_some() {
            return;
        }
        match self.writer.write(&mut self.stream) {
            Ok(is_done) => self.is_blocked = !is_done,
            Err(error) => self.fail(&error),
        }
    }

    /// Tells the other side that nothing more comes.
    pub(crate) fn shutdown(&mut self) {
        self.stream.shutdown();
    }

    pub(crate) fn is_flushed(&self) -> bool {
        self.writer.packets() == 0 || self.fault.is_some()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.fault.is_some()
    }

    pub(crate) fn raise_limit(&mut self, limit: usize) {
        self.reader.raise_limit(limit);
    }

    pub(crate) fn bytes_in(&self) -> u64 {
        self.reader.bytes()
    }

    pub(crate) fn calls(&self) -> (u64, u64) {
        (self.reader.calls(), self.writer.calls())
    }

    /// Where the other side is.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.stream.remote()
    }

    fn fail(&mut self, error: &io::Error) {
        self.fault.get_or_insert(Fault::Io(error.into()));
        // The end may have come with the bytes that were read last.
        self.reader.trust_short(false);
    }
}

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
                let folder = private_folder(&format!("adapm-{unique:016x}"))?;
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

/// Makes a folder for Unix sockets that only this user can enter, called `name`: among the temporary
/// files, or in `/tmp` if their folder has a name too long for sockets.
pub(crate) fn private_folder(name: &str) -> io::Result<PathBuf> {
    let path = folder_path(&env::temp_dir(), name);
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

fn folder_path(temporary: &Path, name: &str) -> PathBuf {
    let path = temporary.join(name);
    let fits = path.as_os_str().as_bytes().len() + SOCKET_NAME_MAX <= SOCKET_PATH_MAX;
    if fits { path } else { Path::new("/tmp").join(name) }
}

/// Packets that wait to be written at most.
const PACKETS_MAX: usize = 128;
/// Bytes from which on no further packet is taken; the last one may go beyond.
const BYTES_MAX: usize = 1 << 20;

/// A slash and what the sockets in these folders are called.
const SOCKET_NAME_MAX: usize = 21;
/// Bytes of a socket's path that every system takes; Linux has four more.
const SOCKET_PATH_MAX: usize = 103;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_fits_wherever_temporary_files_are() {
        assert_eq!(folder_path(Path::new("/var/tmp"), "adapm-1"), Path::new("/var/tmp/adapm-1"));
        let long = format!("/{}", "job/".repeat(30));
        assert_eq!(folder_path(Path::new(&long), "adapm-1"), Path::new("/tmp/adapm-1"));
    }
}
