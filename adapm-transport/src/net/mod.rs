//! Links between processes: the same frames, once and in order, over connections that may break.
//!
//! ```text
//!   Net (an endpoint: one node on one channel)
//!    ├── per peer: a Session of adapm_core::link, which outlives its pipes ── retransmission, resume, heartbeats
//!    ├── per connection: a pipe ── packets (packet), sealed if there is a token (noise), the handshake (hello)
//!    └── source of pipes: streams of the system through mio, or a connector with tasks of its own
//! ```
//!
//! Each node listens, and sends the others its [`Address`]; of two nodes, the one with the higher
//! id dials. A broken connection is redialed until the peer has been silent for so long that it
//! counts as lost ([`LinkConfig::dead_after`](adapm_core::link::LinkConfig)).
//!
//! Not here: how nodes learn each other's addresses; names of hosts.

pub mod address;
mod clock;
mod config;
mod connection;
mod endpoint;
mod error;
pub mod hello;
#[cfg(test)]
mod middleman_tests;
pub mod noise;
pub(crate) mod notifier;
pub mod packet;
mod peer;
pub(crate) mod pipe;
#[cfg_attr(
    not(any(test, feature = "tokio", feature = "zmq")),
    expect(
        dead_code,
        reason = "the halves of tasks belong to connectors, which are behind features"
    )
)]
pub(crate) mod queued;

pub use address::{Address, AddressError, Kind};
pub use config::NetConfig;
pub use endpoint::{Net, NetWaker, network, network_with};
pub use error::{LinkFault, NetError, NetNotice};
pub use hello::{ClusterId, HandshakeError, Token, TokenFault, WeakToken};
pub use peer::{NetStats, PeerState, PeerStatus};
