//! Packets and resumptions that no sound peer says: refused, blamed on the right one, and without
//! effect.

/// What a lying peer, or a pipe that loses packets, may say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// Acknowledges packets that were never sent, so many of them.
    Unsent(u64),
    /// Leaves so many packets out.
    Gap(u64),
    /// Wants to go on so far behind the last packet.
    ResumeBeyond(u64),
    /// Wants to go on so far before what is still kept.
    ResumeBefore(u64),
    /// Goes on behind its bye.
    BehindBye,
    /// Ends without a reason that can be understood, or within a frame.
    CloseReason,
    /// Goes on with a part of a frame in which there is nothing.
    EmptyPart,
}
