//! All nodes of a cluster in one process, linked through the system: for tests, benchmarks and examples.

use adapm_core::NodeId;

use super::address::{Address, Kind};
use super::config::NetConfig;
use super::endpoint::Net;
use super::error::NetError;

/// Endpoints of `nodes` nodes on this machine, that of node `i` at index `i`, about to be connected.
///
/// ```
/// use adapm_transport::net::{self, Kind};
///
/// let ends = net::network(3, Kind::Tcp)?;
/// assert_eq!(ends[2].peers().count(), 2);
/// # Ok::<(), adapm_transport::net::NetError>(())
/// ```
///
/// # Errors
/// If the system does not let this process listen.
pub fn network(nodes: usize, kind: Kind) -> Result<Vec<Net>, NetError> {
    network_with(nodes, |config| config.kind = kind)
}

/// Like [`network`], with settings that `adjust` may change per node.
///
/// # Errors
/// If an endpoint cannot be opened.
pub fn network_with(nodes: usize, adjust: impl Fn(&mut NetConfig)) -> Result<Vec<Net>, NetError> {
    let mut ends = Vec::with_capacity(nodes);
    for id in 0..nodes {
        let node = u16::try_from(id).map_err(|_| NetError::Nodes { node: NodeId(u16::MAX), nodes })?;
        let mut config = NetConfig::new(NodeId(node), nodes);
        adjust(&mut config);
        ends.push(Net::listen(config)?);
    }
    let addresses: Vec<Option<Address>> = ends.iter().map(|end| Some(end.address().clone())).collect();
    for end in &mut ends {
        end.connect(&addresses);
    }
    Ok(ends)
}
