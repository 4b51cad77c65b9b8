//! Parts that processes have written, each in its own time, put together.

use std::fmt;

use adapm_core::{Instant, NodeId};

use crate::trace::{Mark, Trace, TraceEvent};

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
    /// This one differs from the first in nodes, system or keys, or was written at another time.
    OtherRun(NodeId),
}

impl Trace {
    /// Puts the parts of one run together: the earliest origin is that of all. A single trace of all nodes stays as it is.
    ///
    /// # Errors
    /// Parts that are not of one run, or not each of another node. Nodes may be missing.
    pub fn merge(parts: Vec<Self>) -> Result<Self, MergeError> {
        let origin = parts.iter().map(|part| part.origin).min().ok_or(MergeError::Nothing)?;
        let several = parts.len() > 1;
        let time = |part: &Self| part.origin..=part.origin.saturating_add(part.end.nanos());
        let first = parts.first().map(time);
        let mut merged: Option<Self> = None;
        for (index, part) in parts.into_iter().enumerate() {
            let Some(&node) = part.parts.first() else {
                if several {
                    return Err(MergeError::Whole(index));
                }
                return Ok(part);
            };
            let (own, first) = (time(&part), first.as_ref());
            let apart = first.is_some_and(|first| own.start() > first.end() || first.start() > own.end());
            let part = part.since(origin);
            let Some(merged) = &mut merged else {
                merged = Some(part);
                continue;
            };
            if merged.parts.contains(&node) {
                return Err(MergeError::Twice(node));
            }
            let same = (merged.nodes, &merged.system, &merged.keys) == (part.nodes, &part.system, &part.keys);
            if apart || !same {
                return Err(MergeError::OtherRun(node));
            }
            merged.parts.push(node);
            merged.events.extend(part.events);
            merged.marks.extend(part.marks);
            merged.end = merged.end.max(part.end);
            merged.is_complete &= part.is_complete;
        }
        let mut merged = merged.ok_or(MergeError::Nothing)?;
        merged.parts.sort_unstable();
        merged.events.sort_by_key(|event| event.at);
        merged.marks.sort_by_key(|mark| mark.at);
        Ok(merged)
    }

    /// The same, in time that began at `origin`, which is not later.
    fn since(self, origin: u64) -> Self {
        let later = self.origin - origin;
        let shifted = |at: Instant| at.plus_nanos(later);
        Self {
            origin,
            events: self
                .events
                .into_iter()
                .map(|event| TraceEvent { at: shifted(event.at), ..event })
                .collect(),
            marks: self.marks.into_iter().map(|mark| Mark { at: shifted(mark.at), ..mark }).collect(),
            end: shifted(self.end),
            ..self
        }
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
