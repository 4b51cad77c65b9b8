//! Settings with which a process finds the others.

use core::fmt;
use core::time::Duration;
use std::path::{Path, PathBuf};

use adapm_core::NodeId;

use crate::net::{ClusterId, Kind, Token};

/// Settings of one process of a group. They are equal in all processes, except `node`, `bind` and
/// `advertise`.
///
/// ```
/// use adapm_core::NodeId;
/// use adapm_transport::group::{GroupConfig, Rendezvous};
///
/// let mut config = GroupConfig::new(NodeId(1), 4, Rendezvous::Address("10.0.0.1:4157".to_owned()));
/// config.insecure = true;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupConfig {
    /// The node of this process.
    pub node: NodeId,
    /// Number of nodes.
    pub nodes: usize,
    /// The address or file by which the processes find each other.
    pub rendezvous: Rendezvous,
    /// The cluster; processes of different ones refuse each other. Defaults to 0.
    pub cluster: ClusterId,
    /// The secret that all processes share. Defaults to none: processes that meet by a file find
    /// one there, which node 0 generates for the run; others have none.
    pub token: Option<Token>,
    /// The transport of links for parameters; those between control threads are always TCP.
    /// Defaults to TCP.
    pub kind: Kind,
    /// Address or host name of this machine to listen at. Defaults to the local address towards
    /// node 0; on node 0 to that of the rendezvous, or the loopback address if that is a file.
    pub bind: Option<String>,
    /// Address or host name for others to dial, if it differs from `bind`. Defaults to that.
    pub advertise: Option<String>,
    /// True to do without a token: none is generated, and the node listens beyond this machine all
    /// the same. Defaults to false.
    pub insecure: bool,
    /// Silence after which a node is lost; a node that sends heartbeats but answers nothing is lost
    /// after six times as long. Defaults to 10 s.
    pub dead_after: Duration,
    /// Longest wait for all nodes to join. Defaults to 60 s.
    pub join_timeout: Duration,
}

/// The address or file by which the processes of a group find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendezvous {
    /// `host:port`, at which node 0 listens.
    Address(String),
    /// A file to which node 0 writes its address and a secret for the run; for processes of one
    /// user on one machine or with a shared disk.
    File(PathBuf),
    /// Like `File`, in a folder of the run's own: created for this user alone if it does not exist,
    /// refused if others can write to it, removed by the last process. For folders that all users
    /// share.
    JobFile(PathBuf),
}

impl GroupConfig {
    /// Returns the defaults for `node` of `nodes`.
    #[must_use]
    pub fn new(node: NodeId, nodes: usize, rendezvous: Rendezvous) -> Self {
        Self {
            node,
            nodes,
            rendezvous,
            cluster: ClusterId::default(),
            token: None,
            kind: Kind::default(),
            bind: None,
            advertise: None,
            insecure: false,
            dead_after: Duration::from_secs(10),
            join_timeout: Duration::from_secs(60),
        }
    }

    /// Returns true if only the nodes of the run can join it and read or change its traffic: there
    /// is a token, or there will be one in the rendezvous file.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.token.is_some() || self.finds_token()
    }

    /// Returns true if this node was given no token, and is to find one in the rendezvous file,
    /// which no other user can read.
    pub(super) fn finds_token(&self) -> bool {
        self.rendezvous.file().is_some() && self.token.is_none() && !self.insecure
    }
}

impl Rendezvous {
    /// Returns the file if the processes meet by one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Address(_) => None,
            Self::File(path) | Self::JobFile(path) => Some(path),
        }
    }
}

impl fmt::Display for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => f.write_str(address),
            Self::File(path) | Self::JobFile(path) => write!(f, "file:{}", path.display()),
        }
    }
}
