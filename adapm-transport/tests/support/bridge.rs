//! Bridges that put tools for TCP between Unix sockets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

/// Listens at a free TCP port and passes connections on to the Unix socket at `path`, for as long
/// as the process lives.
pub(crate) fn to_unix(path: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let address = listener.local_addr().expect("a listener has an address");
    thread::spawn(move || {
        while let Ok((here, _)) = listener.accept() {
            // The listener may have ended.
            if let Ok(there) = UnixStream::connect(&path) {
                join(here, there);
            }
        }
    });
    address
}

/// Listens at the Unix socket `path` and passes connections on to the TCP port `target`, for as
/// long as the process lives.
pub(crate) fn from_unix(path: &Path, target: SocketAddr) {
    let listener = UnixListener::bind(path).expect("a folder of the test");
    thread::spawn(move || {
        while let Ok((here, _)) = listener.accept() {
            if let Ok(there) = TcpStream::connect(target) {
                join(there, here);
            }
        }
    });
}

/// Passes all bytes on in both directions; the end of one side is the end of the other.
fn join(tcp: TcpStream, unix: UnixStream) {
    let _ = tcp.set_nodelay(true);
    let (Ok(mut from_tcp), Ok(mut from_unix)) = (tcp.try_clone(), unix.try_clone()) else { return };
    let (mut to_tcp, mut to_unix) = (tcp, unix);
    thread::spawn(move || {
        let _ = io::copy(&mut from_tcp, &mut to_unix);
        let _ = to_unix.shutdown(std::net::Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_unix, &mut to_tcp);
        let _ = to_tcp.shutdown(std::net::Shutdown::Both);
    });
}
