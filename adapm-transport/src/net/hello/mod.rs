//! The handshake of two endpoints: first a channel that nobody without the token can use, then who
//! they are. Sans-IO.
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
//! What opens the channel is Noise ([`crate::net::noise`]). Each side may end with Refuse {reason}
//! instead of its next message. In the clear a refusal tells of version and token only, and whoever
//! has a token takes it for a rumour: anybody on the way can have said it. A node that goes on with
//! a link proves by a mark that it is the one that was met; so does the other one, in its refusals,
//! too. The listening node says where it stands last, when it knows whom it talks with: only then
//! may a new pipe replace the one in use.
//!
//! Not here: pipes and deadlines; which node ids are taken.

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

/// Longest message of a handshake, in bytes.
pub const GREETING_BYTES_MAX: usize = 1 << 10;
