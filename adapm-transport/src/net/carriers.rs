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
    match kind {
        #[cfg(feature = "tokio")]
        Kind::Tokio => Ok(Box::new(crate::tokio::TokioCarrier::new(bind, Arc::clone(bell))?)),
        #[cfg(feature = "zmq")]
        Kind::Zmq => Ok(Box::new(crate::zmq::ZmqCarrier::new(bind, Arc::clone(bell))?)),
        _ => {
            let _ = (bind, bell);
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}
