//! Streams of the system, TCP and Unix sockets, through mio, without threads or blocking; and the
//! private folder for Unix sockets, which ZeroMQ uses as well.
//!
//! A [`StreamPipe`] is one connection with its unparsed input and its unwritten output. Its I/O
//! happens in calls of the endpoint that owns it. Not here: the identity of the peer, and the
//! handling of broken connections.

use core::net::SocketAddr;
use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};

use crate::net::address::Address;
use crate::net::hello::GREETING_BYTES_MAX;
use crate::net::packet::{Fault, Incoming, Outgoing, PacketReader, PacketWriter, Spares};

/// Makes the same call on a socket of either family.
macro_rules! either {
    ($self:expr, $family:ident, $socket:ident => $call:expr) => {
        match $self {
            $family::Tcp($socket) => $call,
            $family::Unix($socket) => $call,
        }
    };
}

/// A connection that carries packets.
#[derive(Debug)]
pub(crate) struct StreamPipe {
    stream: Stream,
    reader: PacketReader,
    writer: PacketWriter,
    is_connecting: bool,
    /// The system takes nothing more until mio reports room.
    is_blocked: bool,
    /// Writing failed; received bytes are still read.
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

    /// Registers the stream: from here on, mio reports its events under `token`.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.stream.register(registry, token)
    }

    /// Handles an event of mio; `has_closed`: the peer writes nothing more, or the connection is
    /// over.
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
        self.fault.is_none()
            && self.writer.packets() < PACKETS_MAX
            && self.writer.bytes() < BYTES_MAX
    }

    pub(crate) fn push(&mut self, packet: Outgoing) {
        self.writer.push(packet);
    }

    /// Writes as much as possible; a failure is reported by [`StreamPipe::read`] once all received
    /// bytes were read.
    pub(crate) fn flush(&mut self) {
        if self.is_connecting || self.is_blocked || self.fault.is_some() {
            return;
        }
        match self.writer.write(&mut self.stream) {
            Ok(is_done) => self.is_blocked = !is_done,
            Err(error) => self.fail(&error),
        }
    }

    /// Notifies the peer that nothing more comes.
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

    /// Returns the peer's address.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.stream.remote()
    }

    fn fail(&mut self, error: &io::Error) {
        self.fault.get_or_insert(Fault::Io(error.into()));
        // The end of the stream may have come with the last bytes read.
        self.reader.trust_short(false);
    }
}

/// A listening socket of either family.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    address: Address,
    /// Paths to remove in the end, in this order.
    litter: Vec<PathBuf>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens at a network address; port 0 picks any free one.
    pub(crate) fn tcp(socket: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(socket)?;
        let address = Address::Tcp(listener.local_addr()?);
        Ok(Self { socket: Socket::Tcp(listener), address, litter: Vec::new() })
    }

    /// Listens at `path`, which must not exist; `None`: in a new folder that only this user can
    /// enter. `unique` is a number that no other endpoint has.
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
        either!(&mut self.socket, Socket, listener => listener.register(registry, token, Interest::READABLE))
    }

    /// Returns the next connection, or `None` if there is none.
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
        // It may have been removed before.
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
}

/// Creates a folder for Unix sockets that only this user can enter, called `name`: in the temporary
/// folder, or in `/tmp` if the former's path is too long for sockets.
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

/// A connection that is up or about to be.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn dial(to: &Address) -> io::Result<Self> {
        match to {
            Address::Tcp(socket) | Address::Tokio(socket) => {
                let stream = TcpStream::connect(*socket)?;
                // Otherwise small frames wait for the acknowledgement of earlier ones.
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => Ok(Self::Unix(UnixStream::connect(path)?)),
            Address::Zmq(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        either!(self, Self, stream => stream.register(registry, token, interest))
    }

    /// Returns true if the connection is up, false if it is being set up.
    fn is_connected(&self) -> io::Result<bool> {
        let (error, peer) =
            either!(self, Self, stream => (stream.take_error()?, stream.peer_addr().map(drop)));
        match (error, peer) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(true),
            (None, Err(error)) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            (None, Err(error)) => Err(error),
        }
    }

    /// Returns true if both ends of the connection are this one.
    fn leads_to_itself(&self) -> bool {
        match self {
            Self::Tcp(stream) => match (stream.local_addr(), stream.peer_addr()) {
                (Ok(local), Ok(peer)) => local == peer,
                _ => false,
            },
            Self::Unix(_) => false,
        }
    }

    fn remote(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    fn shutdown(&self) {
        // Fails only if it is not connected, when there is no peer to notify.
        let _ = either!(self, Self, stream => stream.shutdown(Shutdown::Write));
    }
}

impl Read for Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        either!(self, Self, stream => stream.read(room))
    }

    fn read_vectored(&mut self, rooms: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        either!(self, Self, stream => stream.read_vectored(rooms))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, Self, stream => stream.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, Self, stream => stream.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Maximum number of packets that wait to be written.
const PACKETS_MAX: usize = 128;
/// Bytes from which on no further packet is taken; the last one may go beyond.
const BYTES_MAX: usize = 1 << 20;

/// Length of a slash and a socket's name in these folders.
const SOCKET_NAME_MAX: usize = 21;
/// Length of a socket's path that every system takes; Linux allows four more.
const SOCKET_PATH_MAX: usize = 103;

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn a_socket_fits_wherever_temporary_files_are() {
        assert_eq!(folder_path(Path::new("/var/tmp"), "adapm-1"), Path::new("/var/tmp/adapm-1"));
        let long = format!("/{}", "job/".repeat(30));
        assert_eq!(folder_path(Path::new(&long), "adapm-1"), Path::new("/tmp/adapm-1"));
    }

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket")
    }

    #[test]
    fn a_connection_with_itself_is_told_from_others() {
        let own = socket();
        own.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        let address = own.local_addr().expect("it is bound");
        // Nothing listens there: both ends open at once, and both are this one.
        own.connect(&address).expect("TCP allows it");
        own.set_nonblocking(true).expect("a socket");
        assert!(Stream::Tcp(TcpStream::from_std(own.into())).leads_to_itself());

        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let other = std::net::TcpStream::connect(listener.local_addr().expect("it is bound"))
            .expect("it listens");
        other.set_nonblocking(true).expect("a socket");
        assert!(!Stream::Tcp(TcpStream::from_std(other)).leads_to_itself());
    }
}
