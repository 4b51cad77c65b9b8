//! The handshake of two endpoints: who they are, that both know the token, and where their session goes on. Sans-IO.
//!
//! ```text
//!   dialing node                                   listening node
//!        │ ── Hello {identity, to, knows, expects, nonce} ──> │   version, cluster, token on both sides or none
//!        │ <── Welcome {mark of "listener", identity, nonce} ── │
//!        │ ── Proof {mark of "dialer"} ─────────────────────> │   node, count, channel, layout; the id is free
//!        │ <── Ready {expects} ────────────────────────────── │   both sessions go on
//! ```
//!
//! A mark is the HMAC-SHA256, with the token as key, of a label and of everything said so far; without a token there is
//! none. Each side may end with Refuse {reason} instead of its next message. Before a mark is right, a refusal tells of
//! version, cluster and token only. The listening node says where it stands last, when it knows whom it talks with: only
//! then may a new pipe replace the one in use.
//!
//! Not here: pipes and deadlines; which node ids are taken; encryption: what follows the handshake is protected by nothing
//! but its checksums.

mod exchange;
mod message;
mod refusal;
#[cfg(test)]
mod tests;
mod token;

pub use exchange::{Dialing, Ending, Listening, Met, Step};
pub use message::{ClusterId, Hello, Identity, Incarnation, Message, Nonce, Welcome};
pub use refusal::{Refusal, TokenFault};
pub use token::{Mark, Token, WeakToken};

/// Longest message of a handshake, in bytes.
pub const GREETING_BYTES_MAX: usize = 1 << 10;
