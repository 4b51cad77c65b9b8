//! The reports of an endpoint to its user, and their order.
//!
//! Wakes are looked at before and behind frames, losses last: a user that was woken because all is
//! over need not hear that peers have ended since. A loss waits for one frame at most.

use alloc::collections::VecDeque;

use crate::id::NodeId;
use crate::transport::{CloseReason, Loss, Received};

/// Losses, failures of type `E`, wakes and room, until [`crate::transport::Transport::recv`]
/// reports them.
///
/// ```
/// use adapm_core::NodeId;
/// use adapm_core::link::Reports;
/// use adapm_core::transport::{Loss, Received};
///
/// let mut reports = Reports::<()>::default();
/// reports.lose(NodeId(2), Loss::Failed);
/// reports.wake();
/// assert_eq!(reports.poll_before_frames(), Some(Received::Woken));
/// reports.wake();
/// // The last report was a wake: a frame would be next, then the wake, then the loss.
/// assert!(reports.poll_before_frames().is_none() && reports.admits_frame());
/// assert_eq!(reports.poll_behind_frames(), Ok(Some(Received::Woken)));
/// assert_eq!(reports.poll_behind_frames(), Ok(Some(Received::Lost(NodeId(2), Loss::Failed))));
/// ```
#[derive(Debug)]
pub struct Reports<E> {
    losses: VecDeque<(NodeId, Loss)>,
    failures: VecDeque<E>,
    is_woken: bool,
    /// True if the last report was a wake: then a waiting frame goes first.
    just_woken: bool,
    /// True if a frame has just passed a loss or a failure.
    just_passed: bool,
}

impl<E> Default for Reports<E> {
    fn default() -> Self {
        Self {
            losses: VecDeque::new(),
            failures: VecDeque::new(),
            is_woken: false,
            just_woken: false,
            just_passed: false,
        }
    }
}

impl<E> Reports<E> {
    /// Notes a wake, or room behind a refused frame. Several may be merged.
    pub fn wake(&mut self) {
        self.is_woken = true;
    }

    /// Notes that a node is lost.
    pub fn lose(&mut self, node: NodeId, loss: Loss) {
        self.losses.push_back((node, loss));
    }

    /// Notes a failure.
    pub fn fail(&mut self, error: E) {
        self.failures.push_back(error);
    }

    /// Returns the report that goes before frames: a wake, unless the last one was a wake too.
    pub fn poll_before_frames(&mut self) -> Option<Received> {
        if self.just_woken { None } else { self.take_wake() }
    }

    /// Returns true if a frame may be reported. If so, and there is one, call
    /// [`Reports::note_frame`].
    #[must_use]
    pub fn admits_frame(&self) -> bool {
        !(self.has_verdict() && self.just_passed)
    }

    /// Notes that a frame is reported.
    pub fn note_frame(&mut self) {
        self.just_woken = false;
        self.just_passed = self.has_verdict();
    }

    /// Returns the report that goes behind frames: a wake, a failure, or a loss.
    ///
    /// # Errors
    /// The failure.
    pub fn poll_behind_frames(&mut self) -> Result<Option<Received>, E> {
        self.just_passed = false;
        if let Some(woken) = self.take_wake() {
            return Ok(Some(woken));
        }
        if let Some(error) = self.failures.pop_front() {
            return Err(error);
        }
        Ok(self.losses.pop_front().map(|(node, loss)| Received::Lost(node, loss)))
    }

    /// Notes that a wait has ended with none.
    pub fn note_timeout(&mut self) {
        self.just_woken = false;
    }

    /// Drops losses and failures.
    pub fn clear(&mut self) {
        self.losses.clear();
        self.failures.clear();
    }

    /// Returns true if the last report was a wake.
    #[must_use]
    pub fn is_just_woken(&self) -> bool {
        self.just_woken
    }

    /// Returns the number of failures that wait.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.failures.len()
    }

    fn take_wake(&mut self) -> Option<Received> {
        let is_woken = core::mem::take(&mut self.is_woken);
        self.just_woken |= is_woken;
        is_woken.then_some(Received::Woken)
    }

    fn has_verdict(&self) -> bool {
        !self.losses.is_empty() || !self.failures.is_empty()
    }
}

/// Returns the nodes that are lost because `node` ends for `reason`, for the node `own`.
pub fn losses_of(
    own: NodeId,
    node: NodeId,
    reason: CloseReason,
) -> impl Iterator<Item = (NodeId, Loss)> {
    let (ended, reported) = match reason {
        CloseReason::Finished => (None, None),
        CloseReason::Failed => (Some(Loss::Failed), None),
        CloseReason::Lost(other) if other == own => (Some(Loss::GaveUp), None),
        CloseReason::Lost(other) if other == node => (Some(Loss::Failed), None),
        CloseReason::Lost(other) => (Some(Loss::Failed), Some((other, Loss::Reported(node)))),
    };
    reported.into_iter().chain(ended.map(|loss| (node, loss)))
}
