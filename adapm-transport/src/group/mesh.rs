//! What the control thread needs of its transport beyond frames: to dial, and to tell how it stands with each peer.

use core::net::SocketAddr;
use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::Transport;

use super::error::GroupError;

/// A transport that finds its peers while it is used.
pub(super) trait Mesh: Transport {
    /// Where this endpoint is reached, as it tells others; `None`: nowhere, all peers are known from the start.
    fn card(&self) -> Option<SocketAddr>;

    /// Starts to dial those peers whose addresses have become known; returns at once.
    fn meet(&mut self, addresses: &[Option<SocketAddr>]);

    /// Starts to dial a peer that may be at any of these addresses; returns at once.
    fn seek(&mut self, node: NodeId, addresses: &[SocketAddr]);

    /// Whether frames go to and fro.
    fn is_up(&self, node: NodeId) -> bool;

    /// Time there and back.
    fn rtt(&self, node: NodeId) -> Option<Duration>;

    /// Why there is no link, if it is known.
    fn trouble(&self, node: NodeId) -> Option<String>;

    /// A number that node 0 has made up for this run, once it was met.
    fn run(&self) -> Option<u64>;

    /// What an error of this transport is to the group.
    fn failure(&self, error: Self::Error) -> GroupError {
        GroupError::Network { message: error.to_string() }
    }

    /// Why it is this node that cannot be linked with that one, if so.
    fn own_trouble(&self, node: NodeId) -> Option<String>;

    /// The next one from outside who was turned away and why, and how many times.
    fn poll_refusal(&mut self) -> Option<(String, u32)>;
}
