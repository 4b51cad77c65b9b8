//! Packets and resumptions that no sound peer sends: refused, blamed on the right end, and without
//! effect.

/// A lie of a peer, or of a pipe that loses packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// Acknowledges this many packets that were never sent.
    Unsent(u64),
    /// Skips this many packets.
    Gap(u64),
    /// Resumes this far after the last packet.
    ResumeBeyond(u64),
    /// Resumes this far before the retained packets.
    ResumeBefore(u64),
    /// Continues after its bye.
    BehindBye,
    /// Ends with an invalid reason, or within a frame.
    CloseReason,
    /// Continues with an empty part of a frame.
    EmptyPart,
}
