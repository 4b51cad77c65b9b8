//! What keeps links from being read, altered or taken over by whoever does not know the token:
//! Noise, and sealed packets. Sans-IO.
//!
//! ```text
//!   dialing node                              listening node
//!        │ ── Open {e, tag} ──────────────────────> │   the token is the pre-shared key: a tag that is wrong ends it
//!        │ <── Opened {e, ee, tag} ─────────────────│   before any Diffie-Hellman
//!        │ ══ everything from here on is sealed ═══ │
//! ```
//!
//! The handshake is `Noise_NNpsk0_25519_AESGCM_SHA256` (Perrin, *The Noise Protocol Framework*,
//! revision 34) with empty payloads: nothing is said before both sides are known to have the token.
//! Its prologue names the version, so that nobody can make two nodes speak another one. It gives a
//! key for each direction of this connection ([`Channel`]), and the first handshake of two nodes a
//! secret of their link ([`LinkSecret`]), without which nobody goes on with it on another
//! connection.
//!
//! Without a token a channel seals nothing: its packets have checksums, against chance only.
//!
//! Not here: who the peer is ([`crate::net::hello`]), pipes and time.

mod channel;
mod handshake;
mod link;
mod primitives;
mod recordings;
#[cfg(test)]
mod tests;

pub use channel::Channel;
pub use handshake::{Entropy, Initiator, Secured, respond};
pub(in crate::net) use link::hmac;
pub use link::{LinkSecret, Mark, Side};
pub use recordings::Recordings;
