//! Files that are no traces, and traces that do not belong together.

use std::error::Error;
use std::{fmt, io};

use adapm_core::{Key, NodeId};

use crate::trace::{EVENTS_MAX, FIRST_LINE, LINE_BYTES_MAX, NODES_MAX};

/// A file that is no trace. Its text is one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// A line makes no sense.
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        fault: TraceFault,
    },
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceFault {
    /// The first line is not that of a trace of this version.
    NotATrace,
    /// Neither a line of the head, nor an event, nor a mark, nor the end.
    Unknown,
    /// Something of the head is missing, comes twice, or comes behind the first event.
    Head,
    /// More than 65,536 nodes, none, or more than 65,536 pairs of key and node.
    TooManyNodes,
    /// An event of a key that the head does not list.
    UnknownKey(Key),
    /// An event of a node that the head does not know of.
    UnknownNode(NodeId),
    /// Earlier than what happened before to the same key at the same node.
    Backwards,
    /// Cannot happen after what happened before to the same key at the same node.
    Impossible,
    /// Behind the end.
    BehindTheEnd,
    /// Longer than 4,096 bytes, or not UTF-8.
    NoText,
    /// More than 2^24 events or marks.
    TooMany,
}

/// Parts that do not belong together. Its text is one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// There is no part.
    Nothing,
    /// This one, counted from 0, is of all nodes already.
    Whole(usize),
    /// Two of them are of this node.
    Twice(NodeId),
    /// This one is of another run than the first, or differs from it in nodes, system or keys.
    OtherRun(NodeId),
}

impl Error for TraceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            Self::Line { .. } => None,
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::Line { line, fault } => write!(f, "line {line}: {fault}"),
        }
    }
}

impl fmt::Display for TraceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace => write!(
                f,
                "the first line is not `{FIRST_LINE}`; give a file that was written by --trace-keys"
            ),
            Self::Unknown => {
                f.write_str("neither of the head nor an event; trace again if the file was edited")
            }
            Self::Head => {
                f.write_str("the head needs nodes, system, origin and keys, of a part its run, each once and before all events")
            }
            Self::TooManyNodes => {
                write!(f, "1 to {NODES_MAX} nodes can be read, and as many pairs of key and node")
            }
            Self::UnknownKey(key) => write!(f, "{key} is not among the keys of the head"),
            Self::UnknownNode(node) => write!(f, "{node} is not among the nodes of this file"),
            Self::Backwards => f.write_str("earlier than what happened before to this key at this node"),
            Self::Impossible => {
                f.write_str("cannot happen after what happened before to this key at this node")
            }
            Self::BehindTheEnd => f.write_str("behind the end; put one trace into a file"),
            Self::NoText => write!(f, "no text of at most {LINE_BYTES_MAX} bytes"),
            Self::TooMany => write!(f, "more than {EVENTS_MAX} events; trace fewer keys or fewer epochs"),
        }
    }
}

impl Error for MergeError {}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is no part; give at least one file"),
            Self::Whole(_) => f.write_str("one of the files is of all nodes; give it alone"),
            Self::Twice(node) => write!(f, "two of the files are of {node}; give one for each node"),
            Self::OtherRun(node) => {
                write!(f, "the part of {node} is of another run than the first; give the parts of one run")
            }
        }
    }
}
