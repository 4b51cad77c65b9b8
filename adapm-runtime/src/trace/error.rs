//! Files that are no traces, and traces that do not belong together.

use std::io;

use adapm_core::{Key, NodeId};

use crate::trace::{EVENTS_MAX, FIRST_LINE, LINE_BYTES_MAX, NODES_MAX};

/// A file that is no trace. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// A line makes no sense.
    #[error("line {line}: {fault}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        fault: TraceFault,
    },
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFault {
    /// The first line is not that of a trace of this version.
    #[error("the first line is not `{FIRST_LINE}`; give a file that was written by --trace-keys")]
    NotATrace,
    /// Neither a line of the head, nor an event, nor a mark, nor the end.
    #[error("neither of the head nor an event; trace again if the file was edited")]
    Unknown,
    /// Something of the head is missing, comes twice, or comes behind the first event.
    #[error(
        "the head needs nodes, system, origin and keys, of a part its run, each once and before all events"
    )]
    Head,
    /// More than 65,536 nodes, none, or more than 65,536 pairs of key and node.
    #[error("1 to {NODES_MAX} nodes can be read, and as many pairs of key and node")]
    TooManyNodes,
    /// An event of a key that the head does not list.
    #[error("{0} is not among the keys of the head")]
    UnknownKey(Key),
    /// An event of a node that the head does not know of.
    #[error("{0} is not among the nodes of this file")]
    UnknownNode(NodeId),
    /// Earlier than what happened before to the same key at the same node.
    #[error("earlier than what happened before to this key at this node")]
    Backwards,
    /// Cannot happen after what happened before to the same key at the same node.
    #[error("cannot happen after what happened before to this key at this node")]
    Impossible,
    /// Behind the end.
    #[error("behind the end; put one trace into a file")]
    BehindTheEnd,
    /// Longer than 4,096 bytes, or not UTF-8.
    #[error("no text of at most {LINE_BYTES_MAX} bytes")]
    NoText,
    /// More than 2^24 events or marks.
    #[error("more than {EVENTS_MAX} events; trace fewer keys or fewer epochs")]
    TooMany,
}

/// Parts that do not belong together. Its text is one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is no part.
    #[error("there is no part; give at least one file")]
    Nothing,
    /// This one, counted from 0, is of all nodes already.
    #[error("one of the files is of all nodes; give it alone")]
    Whole(usize),
    /// Two of them are of this node.
    #[error("two of the files are of {0}; give one for each node")]
    Twice(NodeId),
    /// This one is of another run than the first, or differs from it in nodes, system or keys.
    #[error("the part of {0} is of another run than the first; give the parts of one run")]
    OtherRun(NodeId),
}
