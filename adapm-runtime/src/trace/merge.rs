//! Parts that the processes of one run have written, put together.

use std::fmt;

use adapm_core::NodeId;

use crate::trace::Trace;

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

impl Trace {
    /// Puts the parts of one run together, which all began at the same moment; the origin is that of the lowest node. A single
    /// trace of all nodes stays as it is.
    ///
    /// # Errors
    /// Parts that are not of one run, or not each of another node. Nodes may be missing.
    pub fn merge(mut parts: Vec<Self>) -> Result<Self, MergeError> {
        if let Some(index) = parts.iter().position(|part| part.parts.is_empty()) {
            return if parts.len() == 1 { Ok(parts.remove(0)) } else { Err(MergeError::Whole(index)) };
        }
        let mut parts = parts.into_iter();
        let mut merged = parts.next().ok_or(MergeError::Nothing)?;
        for part in parts {
            let node = part.parts[0];
            if merged.parts.contains(&node) {
                return Err(MergeError::Twice(node));
            }
            let run = |trace: &Self| (trace.run, trace.nodes);
            if (run(&merged), &merged.system, &merged.keys) != (run(&part), &part.system, &part.keys) {
                return Err(MergeError::OtherRun(node));
            }
            if merged.parts.iter().all(|other| node < *other) {
                merged.origin = part.origin;
            }
            merged.parts.push(node);
            merged.events.extend(part.events);
            merged.marks.extend(part.marks);
            merged.end = merged.end.max(part.end);
            merged.is_complete &= part.is_complete;
        }
        merged.parts.sort_unstable();
        merged.events.sort_by_key(|event| event.at);
        merged.marks.sort_by_key(|mark| mark.at);
        Ok(merged)
    }
}

impl std::error::Error for MergeError {}

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
