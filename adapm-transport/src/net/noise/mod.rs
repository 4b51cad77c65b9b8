//! Protection of links against parties that do not know the token: reading, altering or taking
//! over: Noise, and sealed packets. Sans-I/O.
//!
//! ```text
//!   dialing node                              listening node
//!        │ ── Open {e, tag} ──────────────────────> │   the token is the pre-shared key: a tag that is wrong ends it
//!        │ <── Opened {e, ee, tag} ─────────────────│   before any Diffie-Hellman
//!        │ ══ everything from here on is sealed ═══ │
//! ```
//!
//! The handshake is `Noise_NNpsk0_25519_AESGCM_SHA256` (Perrin, *The Noise Protocol Framework*,
//! revision 34) with empty payloads: nothing is sent before both sides are known to have the token.
//! Its prologue names the version, which so cannot be downgraded. It yields a key for each
//! direction of this connection ([`Channel`]), and the first handshake of two nodes a secret of
//! their link ([`LinkSecret`]), which is needed to resume the link on another connection.
//!
//! Without a token a channel seals nothing: its packets have checksums, against chance only.
//!
//! Not here: the identity of the peer ([`crate::net::hello`]), pipes and time.

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
