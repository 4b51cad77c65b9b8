//! Which code carries which kind of pipe.
//!
//! Streams of the system need no carrier: the endpoint serves them itself.

use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use super::address::Kind;
use super::bell::Bell;
use super::pipe::Carrier;

/// A carrier of `kind`, which listens if `bind` says where.
///
/// # Errors
/// `Unsupported` if this build has none, else what the system says.
pub(super) fn open(kind: Kind, bind: Option<SocketAddr>, bell: &Arc<Bell>) -> io::Result<Box<dyn Carrier>> {
    let _ = (bind, bell);
    match kind {
        Kind::Tcp | Kind::Unix | Kind::Tokio | Kind::Zmq => Err(io::ErrorKind::Unsupported.into()),
    }
}
