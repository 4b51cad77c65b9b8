//! What a cluster tells outside of any call.

use std::fmt;

use adapm_core::node::{Absent, Collective};

/// Something a person may want to know while a cluster runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A barrier or quiesce has waited for 5 s: these workers have neither made the call nor ended. Told in the process whose
    /// workers are missing while others of the same node wait, in that of node 0, and for a barrier in all that wait.
    Missing {
        /// The call.
        call: Collective,
        /// For whom it waits.
        absent: Vec<Absent>,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Missing { call, absent } = self;
        let (call, other) = match call {
            Collective::Barrier => ("barrier", "quiesce"),
            Collective::Quiesce => ("quiesce", "barrier"),
        };
        write!(f, "{call} has waited for 5 s for ")?;
        for (index, Absent { node, worker, elsewhere }) in absent.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match worker {
                Some(worker) => write!(f, "{worker} of {node}")?,
                None => write!(f, "workers of {node}")?,
            }
            if *elsewhere {
                write!(f, " (in {other})")?;
            }
        }
        f.write_str(": all workers must make the same calls in the same order")
    }
}
