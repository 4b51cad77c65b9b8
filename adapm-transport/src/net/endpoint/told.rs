//! The reports of an endpoint to its user, and their order.
//!
//! Wakes are checked before and after frames, losses last: a user that was woken because the run is
//! over need not learn that peers have ended since. At most one frame overtakes a loss.

use std::collections::VecDeque;

use adapm_core::NodeId;
use adapm_core::transport::{Loss, Received};

use crate::net::error::{NetError, Notices};
use crate::net::notifier::Notifier;

/// Pending reports, frames excepted.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Losses.
    verdicts: VecDeque<(NodeId, Loss)>,
    /// Failures, at most one per peer.
    failures: VecDeque<NetError>,
    notices: Notices,
    /// A full way has room again.
    has_room: bool,
    /// The last call of `recv` returned `Woken`: then a queued frame goes first.
    just_woken: bool,
    /// True if a frame has just overtaken a loss or a failure.
    just_passed: bool,
}

impl Told {
    pub(super) fn lose(&mut self, node: NodeId, loss: Loss) {
        self.verdicts.push_back((node, loss));
    }

    pub(super) fn fail(&mut self, error: NetError) {
        self.failures.push_back(error);
    }

    /// Records that a full way has room, which wakes waiting senders.
    pub(super) fn note_room(&mut self) {
        self.has_room = true;
    }

    /// Records that a frame is returned.
    pub(super) fn note_frame(&mut self) {
        self.just_woken = false;
        self.just_passed = self.has_verdict();
    }

    /// Records that nothing is returned because the time is over.
    pub(super) fn note_timeout(&mut self) {
        self.just_woken = false;
    }

    /// Returns true if the user was woken, by a waker or because there is room.
    pub(super) fn take_wake(&mut self, notifier: &Notifier) -> bool {
        let is_woken = notifier.take_wake() || self.has_room;
        if is_woken {
            self.has_room = false;
            self.just_woken = true;
        }
        is_woken
    }

    /// Returns the next loss or failure, which come behind frames and wakes.
    pub(super) fn take_verdict(&mut self) -> Result<Option<Received>, NetError> {
        if let Some(error) = self.failures.pop_front() {
            return Err(error);
        }
        Ok(self.verdicts.pop_front().map(|(node, loss)| Received::Lost(node, loss)))
    }

    /// Drops losses and failures.
    pub(super) fn clear(&mut self) {
        self.verdicts.clear();
        self.failures.clear();
    }

    /// Records that no frame has passed the pending verdict.
    pub(super) fn note_no_frame(&mut self) {
        self.just_passed = false;
    }

    pub(super) fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }

    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    pub(super) fn is_just_woken(&self) -> bool {
        self.just_woken
    }

    /// Returns true if a frame may pass the pending verdict.
    pub(super) fn lets_frame_pass(&self) -> bool {
        !(self.has_verdict() && self.just_passed)
    }

    fn has_verdict(&self) -> bool {
        !self.verdicts.is_empty() || !self.failures.is_empty()
    }
}
