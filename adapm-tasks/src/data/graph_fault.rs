//! Faults of the lines of a graph's files.

/// A fault of a line of a graph's files. Its text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphFault {
    /// A line has fewer fields than it should.
    #[error("{expected} fields are expected, this line has {found}; complete it")]
    TooFewFields {
        /// Fields of the line.
        found: usize,
        /// Fields that it should have.
        expected: usize,
    },
    /// A line has more fields than it should: the first of them begins here.
    #[error("{expected} fields are expected, another begins here; remove it")]
    TooManyFields {
        /// Fields that the line should have.
        expected: usize,
    },
    /// The number of a node is no decimal number.
    #[error("not a decimal number; number nodes from 0")]
    NotANode,
    /// There is no such node.
    #[error("there is no such node: nodes are 0 to {}; correct the number", nodes.saturating_sub(1))]
    UnknownNode {
        /// Nodes there are.
        nodes: usize,
    },
    /// A node is listed a second time.
    #[error("this node is listed already; list each node once")]
    RepeatedNode,
    /// A node is in two parts.
    #[error("this node is in another part already; put each node in one")]
    TwoParts,
    /// A node of a part has no class.
    #[error("a node of this part needs a class; give it one, or the part none")]
    NoClass,
    /// A class is no decimal number, or too large.
    #[error("not a class; number classes from 0 to {CLASS_MAX}")]
    NotAClass,
    /// A part is unknown.
    #[error("not a part; give train, valid, test or none")]
    UnknownPart,
    /// The part of a node in a partition is no decimal number, or too large.
    #[error("not a part; number parts from 0 to {PART_MAX}")]
    NotAPart,
    /// A feature is no index and value.
    #[error("not a feature; give index:value, indices from 0 to {INDEX_MAX}")]
    NotAFeature,
    /// A feature is there twice.
    #[error("this node has this feature already; give each once")]
    RepeatedFeature,
    /// A value is no number.
    #[error("not a number; give a decimal value")]
    NotANumber,
    /// A value is NaN or infinite.
    #[error("not a finite number; leave the feature out, or give it a value")]
    NotFinite,
    /// A node has not as many features as the first one.
    #[error("the first node has {expected} features, this one has {found}; give it as many")]
    OtherLength {
        /// Its features.
        found: usize,
        /// Those of the first node.
        expected: usize,
    },
    /// There is not a line for each node.
    #[error(
        "a line for each of {expected} nodes is expected, there are {found}; complete the file"
    )]
    OtherLines {
        /// Lines.
        found: usize,
        /// Nodes.
        expected: usize,
    },
}

/// The largest class.
pub(crate) const CLASS_MAX: u32 = (1 << 16) - 1;
/// The largest part of a partition.
pub(crate) const PART_MAX: u32 = (1 << 16) - 1;
/// The largest index of a feature.
pub(crate) const INDEX_MAX: u32 = (1 << 24) - 1;
