//! Errors between nodes, as one line: the node, the fault, the remedy and the system's message.

use core::net::SocketAddr;
use std::io;

use adapm_core::NodeId;
use adapm_core::error::InBrackets;
use adapm_core::transport::Loss;

/// Errors of the transports of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// That node has finished and dropped its endpoint; frames it had sent before still arrive.
    #[error("node {node} has left the network: send nothing more to it")]
    PeerGone {
        /// The node.
        node: NodeId,
    },
    /// The network has no such node.
    #[error("node {node} is not in a network of {nodes} nodes: nodes are numbered from 0")]
    UnknownNode {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
}

/// A node that is gone for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node}{} was lost: {loss}; start the cluster again", InBrackets(*address))]
pub struct PeerLoss {
    /// The node.
    pub node: NodeId,
    /// Its address, if it has one.
    pub address: Option<SocketAddr>,
    /// The reason of the loss.
    pub loss: Loss,
}

/// An error of the operating system, in its own words: an [`io::Error`] that can be kept and
/// compared.
///
/// An [`io::ErrorKind`] is coarser: too many open files, I/O errors and process limits are all one
/// kind.
///
/// ```
/// use adapm_transport::error::SystemError;
/// use std::io;
///
/// let error = io::Error::from_raw_os_error(2);
/// assert_eq!(SystemError::from(&error).kind(), io::ErrorKind::NotFound);
/// # #[cfg(target_os = "linux")]
/// assert_eq!(SystemError::from(&error).to_string(), "No such file or directory");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", words_of(*kind, *code))]
pub struct SystemError {
    kind: io::ErrorKind,
    code: Option<i32>,
}

impl SystemError {
    /// The kind of the error.
    #[must_use]
    pub const fn kind(self) -> io::ErrorKind {
        self.kind
    }

    /// Returns true if this process, or the whole system, has as many open files as are allowed.
    #[must_use]
    pub fn is_file_limit(self) -> bool {
        self.code.is_some_and(|code| FILE_LIMITS.contains(&code))
    }

    /// Returns the words as part of a sentence: `no such file or directory`.
    #[must_use]
    pub fn reason(self) -> String {
        let text = self.to_string();
        let mut chars = text.chars();
        chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
    }

    /// Returns the remedy if a limit that can be raised was reached.
    #[must_use]
    pub fn advice(self) -> Option<&'static str> {
        self.is_file_limit().then_some("raise the limit of open files (ulimit -n)")
    }
}

impl From<&io::Error> for SystemError {
    fn from(error: &io::Error) -> Self {
        Self { kind: error.kind(), code: error.raw_os_error() }
    }
}

impl From<io::Error> for SystemError {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

impl From<io::ErrorKind> for SystemError {
    fn from(kind: io::ErrorKind) -> Self {
        Self { kind, code: None }
    }
}

/// Formats an error in the system's words: std's text for `NotFound` alone speaks of an "entity".
fn words_of(kind: io::ErrorKind, code: Option<i32>) -> String {
    if let Some(code) = code {
        let text = io::Error::from_raw_os_error(code).to_string();
        return text.split(" (os error").next().unwrap_or_default().to_owned();
    }
    match kind {
        io::ErrorKind::NotFound => "No such file or directory".to_owned(),
        io::ErrorKind::AlreadyExists => "File exists".to_owned(),
        io::ErrorKind::StorageFull => "No space left on device".to_owned(),
        io::ErrorKind::ResourceBusy => "Device or resource busy".to_owned(),
        io::ErrorKind::IsADirectory => "Is a directory".to_owned(),
        io::ErrorKind::NotADirectory => "Not a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        other => other.to_string(),
    }
}

/// EMFILE and ENFILE: the same numbers on all systems with a Unix kernel.
const FILE_LIMITS: [i32; 2] = [24, 23];
