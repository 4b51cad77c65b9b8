//! Parsers of foreign bytes and texts, to be fed by hand, as fuzz targets do (feature `testing`).
//!
//! The handshake and packets need none of this: [`crate::net::hello`] and [`crate::net::packet`]
//! are sans-I/O and public. Not here: anything that opens a socket or waits.

mod pieces;
mod speaker;

use core::net::SocketAddr;

use crate::group::launcher::hostlist;
use crate::group::testing as group;
use crate::net::Token;
use crate::zmq::Guard;

pub use group::ControlSide;
pub use pieces::Pieces;
pub use speaker::{Heard, Speaker};

/// Returns a token of 32 bytes, different for each number.
#[must_use]
pub fn token(number: u8) -> Token {
    let bytes: Vec<u8> = (0..32).map(|at| number.wrapping_add(at)).collect();
    Token::new(&bytes).expect("32 different bytes")
}

/// The check of a ZMTP stream before a ZeroMQ socket sees it.
#[derive(Debug)]
pub struct ZmtpGuard(Guard);

impl Default for ZmtpGuard {
    fn default() -> Self {
        Self(Guard::new())
    }
}

impl ZmtpGuard {
    /// Returns how many of the next bytes may pass if messages may have `limit` bytes, and whether
    /// the frame after them has to wait for a higher limit.
    ///
    /// # Errors
    /// The reason to stop the stream.
    pub fn pass(&mut self, bytes: &[u8], limit: u64) -> Result<(usize, bool), String> {
        let passed = self.0.pass(bytes, limit).map_err(|violation| violation.to_string())?;
        Ok((passed.bytes, passed.is_held))
    }

    /// Returns true if the peer has introduced itself, and its name.
    #[must_use]
    pub fn introduction(&self) -> (bool, Option<&[u8]>) {
        (self.0.is_introduced(), self.0.identity())
    }
}

/// Returns the address in the text of a rendezvous file.
#[must_use]
pub fn rendezvous(text: &str) -> Option<SocketAddr> {
    group::rendezvous(text)
}

/// Returns the hosts of one of Slurm's lists; `None` if it is invalid or has too many.
#[must_use]
pub fn hosts_of(list: &str) -> Option<Vec<String>> {
    hostlist::expand(list)
}

/// Checks that the text is `host:port`; the error is a message for people.
///
/// # Errors
/// If it is not.
pub fn host_and_port(text: &str) -> Result<(), String> {
    group::host_and_port(text)
}
