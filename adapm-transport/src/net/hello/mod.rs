//! The handshake of two endpoints: first a channel that only holders of the token can use, then
//! identities. Sans-I/O.
//!
//! ```text
//!   dialing node                                                     listening node
//!        │ ── Open {key} ────────────────────────────────────────────> │  a token on both sides, and the same, or none
//!        │ <── Opened {key} ────────────────────────────────────────── │
//!        │ ══ sealed from here on, if there is a token ═══════════════ │
//!        │ ── Hello {identity, to, knows, expects, mark of the link} ─> │  cluster, node, count, channel, layout; the id is free
//!        │ <── Welcome {identity, expects, mark of the link} ────────── │  both sessions go on
//! ```
//!
//! The channel is opened by Noise ([`crate::net::noise`]). Each side may end with Refuse {reason}
//! instead of its next message. In the clear a refusal concerns version and token only, and a node
//! with a token does not trust it: any host on the path can forge it. A node that resumes a link
//! proves by a mark that it is the one that was met; so does the other, even in refusals. The
//! listening node sends its position last, once it has identified its peer: only then may a new
//! pipe replace the one in use.
//!
//! Not here: pipes and deadlines; the set of node ids in use.

mod error;
mod exchange;
mod message;
#[cfg(test)]
mod tests;
mod token;

pub use error::{HandshakeError, TokenFault};
pub use exchange::{Claim, Dialing, Ending, Listening, Met, Step};
pub use message::{ClusterId, Hello, Identity, Incarnation, Message, Refuse, Welcome};
pub use token::{Token, WeakToken};

/// Maximum bytes of a handshake message.
pub const GREETING_BYTES_MAX: usize = 1 << 10;
