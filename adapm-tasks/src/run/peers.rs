//! The other processes of a run, and what happens to all if one of them fails.
//!
//! A process that can go on gives a message, one that cannot gives the reason instead: at the
//! exchange that the others are at, or come to next. All processes count the same exchanges, so a
//! failure is the last one of all; no process is left waiting.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

use adapm_core::NodeId;
use adapm_transport::group::Group;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exchange::Exchange;
use crate::run::error::TaskError;

/// This process among those of the run.
pub(crate) struct Peers<'a> {
    exchange: Option<&'a dyn Exchange>,
    /// Joins the nodes of a cluster.
    group: Option<&'a Arc<Group>>,
    /// The first node that failed, with its reason, as reported at the last exchange.
    failed: OnceLock<(NodeId, Reason)>,
}

/// A message of an exchange.
#[derive(Serialize, Deserialize)]
enum Told<T> {
    Message(T),
    Failed(Reason),
}

/// A failure as others learn of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Reason {
    NotFinite {
        key: u64,
        name: String,
        step: u64,
        learning_rate: f32,
    },
    Text(String),
    /// It has lost another.
    Lost(String),
}

impl<'a> Peers<'a> {
    /// All nodes are in this process.
    pub(crate) fn alone() -> Self {
        Self { exchange: None, group: None, failed: OnceLock::new() }
    }

    /// Each node is a process of its own.
    pub(crate) fn of(group: &'a Arc<Group>) -> Self {
        Self { exchange: Some(group.as_ref()), group: Some(group), failed: OnceLock::new() }
    }

    /// As if each node were a process of its own, without a group that joins them.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn among(exchange: &'a dyn Exchange) -> Self {
        Self { exchange: Some(exchange), group: None, failed: OnceLock::new() }
    }

    /// Gives this process's message to all, or why it has none; returns the messages of all
    /// processes in order.
    ///
    /// # Errors
    ///
    /// If any process had none. Training that diverged is the same error everywhere; else a process
    /// that failed returns its own error, and the others one that names the first that did. That
    /// it has lost another counts last: it may have lost one that has failed.
    pub(crate) fn share<T>(&self, own: Result<T, TaskError>) -> Result<Vec<T>, TaskError>
    where
        T: Serialize + DeserializeOwned,
    {
        let Some(exchange) = self.exchange else { return Ok(vec![own?]) };
        if let Some((node, reason)) = self.failed.get() {
            return Err(own.err().unwrap_or_else(|| self.error(*node, reason)));
        }
        let (told, own_error) = match own {
            Ok(message) => (Told::Message(message), None),
            Err(error) => (Told::Failed(Reason::of(&error)), Some(error)),
        };
        match self.messages(exchange, &told) {
            Ok(Ok(messages)) => Ok(messages),
            Ok(Err((node, reason))) => {
                let is_for_all = matches!(reason, Reason::NotFinite { .. });
                let error =
                    own_error.filter(|_| !is_for_all).unwrap_or_else(|| self.error(node, &reason));
                let _ = self.failed.set((node, reason));
                Err(error)
            }
            Err(error) => {
                let _ = self.failed.set((self.id(), Reason::of(&error)));
                Err(own_error.unwrap_or(error))
            }
        }
    }

    /// Does `work`. If it fails or panics, reports that to the other processes.
    pub(crate) fn told_of<R>(
        &self,
        work: impl FnOnce() -> Result<R, TaskError>,
    ) -> Result<R, TaskError> {
        match panic::catch_unwind(AssertUnwindSafe(work)) {
            Ok(outcome) => outcome.map_err(|error| self.fail(error)),
            Err(payload) => {
                self.fail(TaskError::Panicked);
                panic::resume_unwind(payload)
            }
        }
    }

    /// Reports to the others that this process fails, unless all are failing; returns the error to
    /// end with.
    fn fail(&self, error: TaskError) -> TaskError {
        match self.share::<()>(Err(error)) {
            Err(error) => error,
            // An exchange that lost what it was given.
            Ok(_) => TaskError::Unintelligible { node: self.id() },
        }
    }

    /// Gives bytes to node 0: what all gave in one process, `None` on other nodes. Collective.
    pub(crate) fn gather(&self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, TaskError> {
        self.exchange
            .map_or_else(|| Ok(Some(vec![bytes.to_vec()])), |exchange| exchange.gather(bytes))
    }

    /// Returns the node of this process.
    pub(crate) fn node(&self) -> usize {
        self.exchange.map_or(0, Exchange::node)
    }

    /// Returns the number of processes.
    pub(crate) fn processes(&self) -> usize {
        self.exchange.map_or(1, Exchange::nodes)
    }

    /// Returns the number of nodes: of processes if nodes are such, else as `asked`.
    pub(crate) fn nodes(&self, asked: usize) -> usize {
        self.exchange.map_or(asked, Exchange::nodes)
    }

    /// Returns the group that joins the nodes of a cluster, if they are processes.
    pub(crate) fn group(&self) -> Option<&'a Arc<Group>> {
        self.group
    }

    /// Returns the exchange of messages, if nodes are processes.
    pub(crate) fn exchange(&self) -> Option<&'a dyn Exchange> {
        self.exchange
    }

    /// Returns the error with which this process ends because that node has failed.
    fn error(&self, node: NodeId, reason: &Reason) -> TaskError {
        let verdict = || self.group.and_then(|group| group.failure());
        match reason.clone() {
            Reason::NotFinite { key, name, step, learning_rate } => {
                TaskError::NotFinite { key, name, step, learning_rate }
            }
            Reason::Text(reason) => TaskError::Elsewhere { node, reason },
            Reason::Lost(reason) => {
                verdict().map_or(TaskError::Elsewhere { node, reason }, TaskError::Group)
            }
        }
    }

    fn id(&self) -> NodeId {
        NodeId(u16::try_from(self.node()).unwrap_or(u16::MAX))
    }

    /// Returns the messages of all processes, or the first failure that counts.
    fn messages<T>(
        &self,
        exchange: &dyn Exchange,
        own: &Told<T>,
    ) -> Result<Result<Vec<T>, (NodeId, Reason)>, TaskError>
    where
        T: Serialize + DeserializeOwned,
    {
        let bytes =
            postcard::to_allocvec(own).expect("a message has no part that cannot be encoded");
        let (mut messages, mut failures) = (Vec::new(), Vec::new());
        let all = exchange.all_gather(&bytes)?;
        if all.len() != exchange.nodes() {
            return Err(TaskError::Unintelligible { node: self.id() });
        }
        for (node, bytes) in (0..).map(NodeId).zip(all) {
            // A failure reads the same whatever message was to be sent: its place among the
            // variants comes first.
            match postcard::from_bytes(&bytes) {
                Ok(Told::Message(message)) => messages.push(message),
                Ok(Told::Failed(reason)) => failures.push((node, reason)),
                Err(_) => return Err(TaskError::Unintelligible { node }),
            }
        }
        let rank = |(_, reason): &(NodeId, Reason)| match reason {
            Reason::NotFinite { .. } => 0,
            Reason::Text(_) => 1,
            Reason::Lost(_) => 2,
        };
        Ok(failures.into_iter().min_by_key(rank).map_or(Ok(messages), Err))
    }
}

impl Reason {
    fn of(error: &TaskError) -> Self {
        match error {
            &TaskError::NotFinite { key, ref name, step, learning_rate } => {
                Self::NotFinite { key, name: name.clone(), step, learning_rate }
            }
            error if error.is_loss() => Self::Lost(error.to_string()),
            _ => Self::Text(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
