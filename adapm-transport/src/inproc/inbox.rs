//! The inbox of one endpoint: frames in the order of their arrival, bounded per sender, lost peers,
//! and memory for reuse.
//!
//! One queue for all senders serves them in the order in which they sent, so none starves; the
//! bound per sender keeps a flooding one from taking more than its share. Losses have a queue of
//! their own, which is served behind the frames that were taken with it. Not here: locks and
//! waiting.

use std::collections::VecDeque;
use std::mem;

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Loss};

/// Maximum number of waiting frames per sender, apart from those the receiver has already taken out
/// as a batch.
pub(super) const FRAMES_MAX: usize = 256;
/// Maximum bytes of waiting frames per sender; a single larger frame still goes alone.
pub(super) const BYTES_MAX: usize = 32 << 20;
/// Maximum number of empty frames kept for their memory.
const SPARES_MAX: usize = 16;
/// Memory that an empty frame may keep, in bytes.
const SPARE_BYTES_MAX: usize = 64 << 10;

/// Frames with their senders, oldest first.
pub(super) type Batch = VecDeque<(NodeId, Frame)>;

/// Lost peers, in the order in which they are reported.
pub(super) type Losses = VecDeque<(NodeId, Loss)>;

/// The outcome of offering a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The frame was queued, or is to be dropped.
    Taken,
    /// The sender's share is full; the sender is recorded, to be woken.
    Full,
    /// The receiver has gone, and is not lost.
    Gone,
}

/// The fate of the frames of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Intake {
    /// They are queued.
    #[default]
    Open,
    /// They are dropped: sender or receiver is lost to the other.
    Dropping,
    /// They are refused: the receiver has finished.
    Closed,
}

/// The queued frames and losses of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    queue: Batch,
    losses: Losses,
    loads: Vec<Load>,
    refused: Vec<NodeId>,
    spares: Vec<Frame>,
    gone: bool,
    /// True while the receiver waits on the condition variable; senders notify it only then.
    pub(super) waiting: bool,
}

/// The queued frames of one sender, and its state.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    frames: usize,
    bytes: usize,
    refused: bool,
    intake: Intake,
    /// The sender was reported as lost.
    is_lost: bool,
}

impl Inbox {
    pub(super) fn new(nodes: usize) -> Self {
        Self { loads: vec![Load::default(); nodes], ..Self::default() }
    }

    /// Moves the content of `frame` in and leaves an empty frame, with the memory of an earlier one
    /// if available. Unless taken, the frame is unchanged.
    pub(super) fn offer(&mut self, from: NodeId, frame: &mut Frame) -> Offer {
        let load = &mut self.loads[from.index()];
        match load.intake {
            Intake::Open => {}
            Intake::Dropping => return Offer::Taken,
            Intake::Closed => return Offer::Gone,
        }
        let bytes = frame.len();
        let room = load.frames < FRAMES_MAX && load.bytes.saturating_add(bytes) <= BYTES_MAX;
        if !room && load.frames > 0 {
            if !mem::replace(&mut load.refused, true) {
                self.refused.push(from);
            }
            return Offer::Full;
        }
        load.frames += 1;
        load.bytes = load.bytes.saturating_add(bytes);
        self.queue.push_back((from, mem::replace(frame, self.spares.pop().unwrap_or_default())));
        Offer::Taken
    }

    /// Queues the loss of a peer behind the frames that it has sent, unless it is known; frames
    /// that it sends from then on are dropped.
    pub(super) fn lose(&mut self, node: NodeId, loss: Loss) {
        self.drop_frames_of(node);
        if !mem::replace(&mut self.loads[node.index()].is_lost, true) && !self.gone {
            self.losses.push_back((node, loss));
        }
    }

    /// Drops all frames that `from` sends from here on.
    pub(super) fn drop_frames_of(&mut self, from: NodeId) {
        self.loads[from.index()].intake = Intake::Dropping;
    }

    /// Returns true if neither a frame nor a loss is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.losses.is_empty()
    }

    /// Swaps all queued frames and losses into the empty `batch` and `losses`, takes `spares` in,
    /// and adds the senders that have room again to `refused`.
    pub(super) fn take(
        &mut self,
        batch: &mut Batch,
        losses: &mut Losses,
        spares: &mut Vec<Frame>,
        refused: &mut Vec<NodeId>,
    ) {
        debug_assert!(
            batch.is_empty() && losses.is_empty(),
            "what was taken is served before more is taken"
        );
        mem::swap(&mut self.queue, batch);
        if !self.losses.is_empty() {
            mem::swap(&mut self.losses, losses);
        }
        for (from, _) in batch.iter() {
            // Every refused sender has a frame in here: an empty share refuses nothing.
            let load = &mut self.loads[from.index()];
            (load.frames, load.bytes, load.refused) = (0, 0, false);
        }
        refused.append(&mut self.refused);
        spares.truncate(SPARES_MAX.saturating_sub(self.spares.len()));
        self.spares.append(spares);
    }

    /// Drops everything and queues nothing more: open senders get this `intake`. Returns the
    /// refused senders, which need not wait any longer.
    pub(super) fn close(&mut self, intake: Intake) -> Vec<NodeId> {
        self.gone = true;
        self.queue = Batch::new();
        self.losses = Losses::new();
        self.spares = Vec::new();
        for load in self.loads.iter_mut().filter(|load| load.intake == Intake::Open) {
            load.intake = intake;
        }
        mem::take(&mut self.refused)
    }
}

/// Empties `frame` and appends it to `spares`, unless either holds too much memory.
pub(super) fn keep_spare(spares: &mut Vec<Frame>, mut frame: Frame) {
    let small = frame.head.capacity() <= SPARE_BYTES_MAX && frame.values.len() <= SPARE_BYTES_MAX;
    if small && frame.head.capacity() > 0 && spares.len() < SPARES_MAX {
        frame.clear();
        spares.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Frame {
        Frame { head: vec![1; bytes], ..Frame::default() }
    }

    #[test]
    fn refuses_per_sender_and_names_the_refused_once() {
        let mut inbox = Inbox::new(2);
        for _ in 0..FRAMES_MAX {
            assert_eq!(inbox.offer(NodeId(0), &mut frame(1)), Offer::Taken);
        }
        let mut kept = frame(3);
        assert_eq!(inbox.offer(NodeId(0), &mut kept), Offer::Full);
        assert_eq!(inbox.offer(NodeId(0), &mut kept), Offer::Full);
        assert_eq!(kept, frame(3));
        assert_eq!(inbox.offer(NodeId(1), &mut frame(1)), Offer::Taken);
        let (mut batch, mut refused) = (Batch::new(), Vec::new());
        inbox.take(&mut batch, &mut Losses::new(), &mut Vec::new(), &mut refused);
        assert_eq!((batch.len(), refused), (FRAMES_MAX + 1, vec![NodeId(0)]));
        assert_eq!(inbox.offer(NodeId(0), &mut kept), Offer::Taken);
    }

    #[test]
    fn a_frame_above_the_bound_goes_alone() {
        let mut inbox = Inbox::new(1);
        assert_eq!(inbox.offer(NodeId(0), &mut frame(BYTES_MAX + 1)), Offer::Taken);
        assert_eq!(inbox.offer(NodeId(0), &mut frame(1)), Offer::Full);
    }

    #[test]
    fn memory_comes_back_to_the_sender() {
        let mut inbox = Inbox::new(1);
        let mut spares = Vec::new();
        keep_spare(&mut spares, Frame { head: Vec::with_capacity(100), ..Frame::default() });
        keep_spare(&mut spares, frame(SPARE_BYTES_MAX + 1));
        keep_spare(&mut spares, Frame::default());
        assert_eq!(spares.len(), 1, "no more memory than the bound, and none without memory");
        inbox.take(&mut Batch::new(), &mut Losses::new(), &mut spares, &mut Vec::new());
        let mut sent = frame(5);
        assert_eq!(inbox.offer(NodeId(0), &mut sent), Offer::Taken);
        assert!(sent.is_empty() && sent.head.capacity() >= 100);
    }
}
