//! What an endpoint tells its user, and in which order.
//!
//! Wakes are looked at before and behind frames, losses last: who was woken because all is over
//! need not hear that peers have ended since. A loss waits for one frame at most.

use std::collections::VecDeque;

use adapm_core::NodeId;
use adapm_core::transport::{Loss, Received};

use crate::net::error::{NetError, Notices};
use crate::net::notifier::Notifier;

/// What is to be told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Losses.
    verdicts: VecDeque<(NodeId, Loss)>,
    /// Failures, at most one per peer.
    failures: VecDeque<NetError>,
    notices: Notices,
    /// A way that was full has room.
    has_room: bool,
    /// The last call of `recv` returned `Woken`: then a frame that waits goes first.
    just_woken: bool,
    /// A frame has just passed a loss or a failure.
    just_passed: bool,
}

impl Told {
    pub(super) fn lose(&mut self, node: NodeId, loss: Loss) {
        self.verdicts.push_back((node, loss));
    }

    pub(super) fn fail(&mut self, error: NetError) {
        self.failures.push_back(error);
    }

    /// A way that was full has room: whoever waits for it is woken.
    pub(super) fn note_room(&mut self) {
        self.has_room = true;
    }

    /// A frame is told.
    pub(super) fn note_frame(&mut self) {
        self.just_woken = false;
        self.just_passed = self.has_verdict();
    }

    /// Nothing is told: the time is over.
    pub(super) fn note_timeout(&mut self) {
        self.just_woken = false;
    }

    /// Returns true if the user was woken, by somebody or because there is room.
    pub(super) fn take_wake(&mut self, notifier: &Notifier) -> bool {
        let is_woken = notifier.take_wake() || self.has_room;
        if is_woken {
            self.has_room = false;
            self.just_woken = true;
        }
        is_woken
    }

    /// What comes behind frames and wakes.
    pub(super) fn take_verdict(&mut self) -> Result<Option<Received>, NetError> {
        if let Some(error) = self.failures.pop_front() {
            return Err(error);
        }
        Ok(self.verdicts.pop_front().map(|(node, loss)| Received::Lost(node, loss)))
    }

    /// Forgets losses and failures.
    pub(super) fn clear(&mut self) {
        self.verdicts.clear();
        self.failures.clear();
    }

    /// No frame has passed what waits.
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

    /// Returns true if a frame may pass what waits.
    pub(super) fn lets_frame_pass(&self) -> bool {
        !(self.has_verdict() && self.just_passed)
    }

    fn has_verdict(&self) -> bool {
        !self.verdicts.is_empty() || !self.failures.is_empty()
    }
}
