//! The secret of a link, by which a node proves on a later connection that it is the one that was
//! met.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::net::packet::PROTOCOL_VERSION;

/// A secret shared by two nodes alone since their first handshake; kept in memory only, never
/// printed.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkSecret([u8; 32]);

/// A value on one connection that only holders of the link's secret can compute.
pub type Mark = [u8; 32];

/// The side that gives a mark: one that is sent back proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The node that has dialed.
    Dialer,
    /// The other one.
    Listener,
}

impl LinkSecret {
    /// Derives the secret of the link that begins with a handshake.
    pub(super) fn new(hash: &[u8; 32], forth: &[u8; 32], back: &[u8; 32]) -> Self {
        let key = [*forth, *back].concat();
        let mac = hmac(&key, &[b"adapm link secret ", &[PROTOCOL_VERSION], hash]);
        Self(mac.finalize().into_bytes().into())
    }

    /// Returns the mark of `side` on the connection with that handshake.
    #[must_use]
    pub fn mark(&self, side: Side, hash: &[u8; 32]) -> Mark {
        self.mac(side, hash).finalize().into_bytes().into()
    }

    /// Returns true if `mark` is that of `side` on the connection with that handshake; takes
    /// constant time.
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

/// Computes the HMAC-SHA-256 of parts whose lengths are fixed, except the last one's.
pub(in crate::net) fn hmac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}
