//! Where accepted connections wait for the endpoint.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::net::bell::Bell;
use crate::net::carried::Carried;

/// A bounded queue between the task that accepts and the endpoint that takes.
#[derive(Debug)]
pub(crate) struct Door {
    bell: Arc<Bell>,
    waiting: Mutex<VecDeque<(Carried, Option<SocketAddr>)>>,
}

impl Door {
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self { bell, waiting: Mutex::new(VecDeque::new()) }
    }

    /// Hands over a pipe. If too many wait, the one that waits longest ends for it.
    pub(crate) fn offer(&self, pipe: Carried, from: Option<SocketAddr>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = if waiting.len() >= WAITING_MAX { waiting.pop_front() } else { None };
        waiting.push_back((pipe, from));
        drop(waiting);
        drop(surplus);
        self.bell.ring();
    }

    /// The pipe that has waited longest.
    pub(crate) fn take(&self) -> Option<(Carried, Option<SocketAddr>)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Connections that wait to be taken, at most.
pub(crate) const WAITING_MAX: usize = 64;
