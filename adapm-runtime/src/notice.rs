//! What a cluster tells outside of any call.

use std::fmt;

use adapm_core::NodeId;

/// Something a person may want to know while a cluster runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A barrier has waited for 5 s: these nodes have workers that have neither arrived nor ended.
    BarrierMissing {
        /// The nodes.
        nodes: Vec<NodeId>,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BarrierMissing { nodes } => {
                f.write_str("a barrier has waited for 5 s for workers of")?;
                nodes.iter().try_for_each(|node| write!(f, " {node}"))
            }
        }
    }
}
