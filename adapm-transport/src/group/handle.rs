//! The handle by which the threads of a process use its group: collectives, stop, leaving.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use adapm_core::transport::CloseReason;

use super::collective::LABEL_CHARS_MAX;
use super::control::Control;
use super::error::GroupError;
use super::membership::Membership;
use super::mesh::Mesh;
use super::shared::{LossWatch, Request, Shared};
use crate::error::PeerLoss;
use crate::threads;

/// The part of a group that needs no network of its own: works over any [`Mesh`].
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    /// Held during a collective, so that they run one after another.
    calls: Mutex<()>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    /// Starts the control thread of `membership.node()`. After a loss it waits `decision_time` for
    /// the reports of other nodes before it decides which node is lost.
    pub(super) fn start<T>(
        mesh: T,
        membership: Membership,
        decision_time: Duration,
    ) -> Result<Self, GroupError>
    where
        T: Mesh + Send + 'static,
    {
        use adapm_core::transport::Wake;

        let (node, nodes) = (membership.node(), membership.nodes());
        let shared = Arc::new(Shared::new(membership));
        let waker = mesh.waker();
        shared.wakes(Box::new(move || waker.wake()));
        let control = Control::new(node, nodes, mesh, Arc::clone(&shared), decision_time);
        let thread = threads::spawn(format!("adapm {node} control"), move || control.run());
        let thread = thread.map_err(GroupError::Thread)?;
        Ok(Self { shared, calls: Mutex::new(()), thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn collect(
        &self,
        label: &str,
        to_all: bool,
        bytes: &[u8],
    ) -> Result<Vec<Vec<u8>>, GroupError> {
        let _one = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let label = label.chars().take(LABEL_CHARS_MAX).collect();
        let request = Request { label, to_all, bytes: bytes.to_vec() };
        self.shared.ask(|state| match state.refusal() {
            Some(error) => Err(error),
            None => {
                state.request = Some(request);
                Ok(())
            }
        })?;
        self.shared.wait(|state| match state.outcome.take() {
            Some(parts) => Some(Ok(parts)),
            None => state.refusal().map(Err),
        })
    }

    /// Sets the addresses at which node 0 is dialed.
    pub(super) fn meet(&self, root: Vec<SocketAddr>) {
        self.shared.ask(|state| state.meet = Some(root));
    }

    pub(super) fn stop(&self, code: u8) {
        self.shared.ask(|state| state.stop(code));
    }

    pub(super) fn on_stop(&self, flag: Arc<AtomicBool>) {
        self.shared.ask(|state| {
            if state.stop.is_some() {
                flag.store(true, std::sync::atomic::Ordering::Release);
            }
            state.flags.push(flag);
        });
    }

    pub(super) fn watch(&self, watch: &Arc<LossWatch>) {
        self.shared.watch(watch);
    }

    pub(super) fn report(&self, loss: PeerLoss) {
        self.shared.ask(|state| state.reported.push(loss));
    }

    pub(super) fn failure(&self) -> Option<GroupError> {
        self.shared.wait(|state| (!state.is_deciding()).then(|| state.failure.clone()))
    }

    pub(super) fn begin_use(&self) {
        *self.shared.lock().in_use.get_or_insert(0) += 1;
    }

    pub(super) fn end_use(&self) {
        let mut state = self.shared.lock();
        state.in_use = state.in_use.map(|uses| uses.saturating_sub(1));
    }

    /// Leaves and waits for the control thread. A node that has lost another sends that node as its
    /// reason instead of `reason`.
    pub(super) fn leave(&self, reason: CloseReason) {
        self.shared.ask(|state| *state.leave.get_or_insert(reason));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The control thread itself may drop the last owner while it reports a loss: it cannot join
        // itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id())
        {
            // A panic there has ended all waits, and has printed its message.
            let _ = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let state = self.shared.lock();
        let is_over = state.in_use == Some(0) && state.failure.is_none() && !thread::panicking();
        drop(state);
        self.leave(if is_over { CloseReason::Finished } else { CloseReason::Failed });
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
