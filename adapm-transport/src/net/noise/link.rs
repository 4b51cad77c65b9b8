//! The secret of a link, by which a node knows on another connection that it is the one it has met.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::net::packet::PROTOCOL_VERSION;

/// What two nodes have in common since their first handshake, and nobody else; kept in memory only,
/// never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkSecret([u8; 32]);

/// What whoever knows the secret of a link can say on one connection, and nobody else.
pub type Mark = [u8; 32];

/// Which of both nodes gives a mark: one that is sent back proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The node that has dialed.
    Dialer,
    /// The other one.
    Listener,
}

impl LinkSecret {
    /// The secret of the link that begins with a handshake.
    pub(super) fn new(hash: &[u8; 32], forth: &[u8; 32], back: &[u8; 32]) -> Self {
        let key = [*forth, *back].concat();
        let mac = hmac(&key, &[b"adapm link secret ", &[PROTOCOL_VERSION], hash]);
        Self(mac.finalize().into_bytes().into())
    }

    /// The mark of `side` on the connection with that handshake.
    #[must_use]
    pub fn mark(&self, side: Side, hash: &[u8; 32]) -> Mark {
        self.mac(side, hash).finalize().into_bytes().into()
    }

    /// Whether `mark` is that of `side` on the connection with that handshake, in a time that tells
    /// nothing.
    #[must_use]
    pub fn knows(&self, mark: &Mark, side: Side, hash: &[u8; 32]) -> bool {
        self.mac(side, hash).verify_slice(mark).is_ok()
    }

    fn mac(&self, side: Side, hash: &[u8; 32]) -> Hmac<Sha256> {
        let label: &[u8] = match side {
            Side::Dialer => b"adapm dialer ",
            Side::Listener => b"adapm listener ",
        };
        hmac(&self.0, &[label, hash])
    }
}

impl fmt::Debug for LinkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSecret(..)")
    }
}

/// HMAC-SHA-256 of parts whose lengths are fixed but for the last one's.
pub(in crate::net) fn hmac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}
