//! The settings of an endpoint.

use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;

use super::address::Kind;
use super::hello::{ClusterId, Token};

/// Settings of one endpoint: one node on one channel.
///
/// ```
/// use adapm_core::NodeId;
/// use adapm_transport::net::{Kind, NetConfig};
///
/// let mut config = NetConfig::new(NodeId(1), 4);
/// config.channel = 3;
/// config.kind = Kind::Tcp;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NetConfig {
    /// The node of this endpoint.
    pub node: NodeId,
    /// Number of nodes.
    pub nodes: usize,
    /// The channel; endpoints of different channels refuse each other. Defaults to 0.
    pub channel: u16,
    /// The cluster; endpoints of different ones refuse each other. Defaults to 0.
    pub cluster: ClusterId,
    /// The digest of the layout of keys and values, the same on all nodes. Defaults to 0.
    pub layout_digest: u64,
    /// The secret that all nodes share. Defaults to none.
    pub token: Option<Token>,
    /// The kind of the links that others dial. Defaults to TCP.
    pub kind: Kind,
    /// The address to listen at: `ip:port`, or `ip` for any free port; for Unix sockets a path, or
    /// nothing for one in a new private folder. Defaults to any port of the loopback address.
    pub bind: String,
    /// True to listen beyond this machine without a token. Defaults to false.
    pub insecure: bool,
    /// Bounds and times of the links.
    pub link: LinkConfig,
    /// Longest handshake. Defaults to 5 s.
    pub greeting_time: Duration,
}

impl NetConfig {
    /// Returns the defaults for `node` of `nodes`.
    #[must_use]
    pub fn new(node: NodeId, nodes: usize) -> Self {
        Self {
            node,
            nodes,
            channel: 0,
            cluster: ClusterId::default(),
            layout_digest: 0,
            token: None,
            kind: Kind::default(),
            bind: String::new(),
            insecure: false,
            link: LinkConfig::default(),
            greeting_time: Duration::from_secs(5),
        }
    }
}
