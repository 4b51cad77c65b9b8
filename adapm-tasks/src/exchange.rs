//! Messages between the processes of a run, beside the parameters: short ones, from each to all.
//!
//! A task whose nodes are processes of their own agrees on decisions (is this epoch the best, does
//! the run stop) by exchanging messages between two of its phases. Parameters never pass here, but
//! for those that are saved.

use std::fs;
use std::thread;

use adapm_transport::group::Group;

use crate::run::TaskError;

/// Messages between the processes of a run, one process a node.
///
/// Every call is collective: all processes make the same calls in the same order, from one thread
/// at a time each.
pub trait Exchange: Sync {
    /// Returns the node that this process is.
    fn node(&self) -> usize;

    /// Returns the number of nodes, that is of processes.
    fn nodes(&self) -> usize;

    /// Gives `bytes` to all nodes and returns what all gave, by node.
    ///
    /// # Errors
    ///
    /// A node is lost or has left: no process waits for it.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TaskError>;

    /// Gives `bytes` to node 0, where it returns what all gave, by node; `None` elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Exchange::all_gather`].
    fn gather(&self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, TaskError> {
        let all = self.all_gather(bytes)?;
        Ok((self.node() == 0).then_some(all))
    }
}

impl Exchange for Group {
    fn node(&self) -> usize {
        Self::node(self).index()
    }

    fn nodes(&self) -> usize {
        Self::nodes(self)
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TaskError> {
        Ok(Self::all_gather(self, bytes)?)
    }

    fn gather(&self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, TaskError> {
        Ok(Self::gather(self, bytes)?)
    }
}

/// Workers that every node can have: the fewest that any has cores for, when the nodes on one set
/// of cores share it evenly; at least one. Collective.
///
/// # Errors
///
/// As [`Exchange::all_gather`].
pub fn workers_for_all(exchange: &dyn Exchange) -> Result<usize, TaskError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut message = (cores as u64).to_le_bytes().to_vec();
    message.extend_from_slice(place().as_bytes());
    let messages = exchange.all_gather(&message)?;
    Ok(workers_of(&messages))
}

fn workers_of(messages: &[Vec<u8>]) -> usize {
    let workers = messages.iter().map(|message| {
        let (cores, place) = message.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let sharing =
            messages.iter().filter(|other| other.get(size_of::<u64>()..) == Some(place)).count();
        usize::try_from(u64::from_le_bytes(*cores)).unwrap_or(usize::MAX) / sharing.max(1)
    });
    workers.min().unwrap_or(1).max(1)
}

/// Names the cores this process may use: those of the running system, as far as it is restricted to
/// some. Empty where the operating system does not report it: such nodes count as sharing.
fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed =
        status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap_or_default();
    format!("{}{allowed}", boot.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_on_the_same_cores_share_them_and_the_fewest_decide() {
        let message = |cores: u64, place: &str| [&cores.to_le_bytes(), place.as_bytes()].concat();
        assert_eq!(workers_of(&[message(8, "a")]), 8);
        assert_eq!(workers_of(&[message(8, "a"), message(8, "a")]), 4);
        assert_eq!(workers_of(&[message(8, "a"), message(8, "b")]), 8);
        assert_eq!(
            workers_of(&[message(8, "a"), message(8, "b"), message(9, "b"), message(9, "b")]),
            2
        );
        assert_eq!(workers_of(&[message(1, "a"), message(1, "a")]), 1);
        assert_eq!(
            workers_of(&[message(8, "a"), vec![1, 2]]),
            1,
            "what is no message is no reason to panic"
        );
    }
}
