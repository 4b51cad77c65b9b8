//! Detection of a peer that is silent, or to which data does not get through.
//!
//! A peer is alive as long as bytes of it come, and as long as its acknowledgements make progress
//! when some are pending. A new pipe is no sign of either: pipes can come up forever on a network
//! that passes nothing else.

use core::time::Duration;

use crate::link::config::LinkConfig;
use crate::time::Instant;

/// The failure detector for one peer, from the first time it is met.
#[derive(Debug, Default)]
pub(crate) struct FailureDetector {
    /// Time when it was met, or its last byte came.
    heard: Option<Instant>,
    /// Time since which an acknowledgement is pending without progress.
    waits: Option<Instant>,
    /// Time when the pipe in use came up.
    renewed: Instant,
    /// True if this pipe was found silent.
    is_silent: bool,
    /// True if this pipe was found stalled.
    is_stalled: bool,
    standing: Standing,
}

/// The judgement of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Alive,
    Suspect,
    Dead,
}

/// A change of the judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No change.
    Patience,
    /// The pipe in use has been silent for too long.
    Suspect,
    /// On the pipe in use a pending acknowledgement has made no progress for too long, though bytes
    /// come: a receiver that was told a wrong length swallows whatever follows.
    Stalled,
    /// The peer is dead: for these times no byte has come, and no pending acknowledgement has made
    /// progress.
    Dead { silence: Duration, stall: Duration },
}

impl FailureDetector {
    /// Starts the time of a new pipe, on which the peer must send before it is suspected.
    pub(crate) fn renew(&mut self, now: Instant) {
        self.heard.get_or_insert(now);
        (self.renewed, self.is_silent, self.is_stalled) = (now, false, false);
    }

    /// Records that bytes of the peer came. Returns true if it was suspected.
    pub(crate) fn hear(&mut self, now: Instant) -> bool {
        (self.heard, self.is_silent) = (Some(now), false);
        core::mem::replace(&mut self.standing, Standing::Alive) == Standing::Suspect
    }

    /// Records that a packet was written that needs an acknowledgement.
    pub(crate) fn wait(&mut self, now: Instant) {
        self.waits.get_or_insert(now);
    }

    /// Records progress of the acknowledgement; `is_waiting`: some packets are still
    /// unacknowledged.
    pub(crate) fn progress(&mut self, now: Instant, is_waiting: bool) {
        self.waits = is_waiting.then_some(now);
    }

    /// Returns the time for which a pending acknowledgement has made no progress.
    pub(crate) fn stall(&self, now: Instant) -> Duration {
        Duration::from_nanos(self.waits.map_or(0, |waits| now.nanos_since(waits)))
    }

    /// Judges the peer by the time that has passed.
    pub(crate) fn judge(&mut self, now: Instant, config: &LinkConfig) -> Verdict {
        let Some(heard) = self.heard.filter(|_| self.standing != Standing::Dead) else {
            return Verdict::Patience;
        };
        let (silence, stall) = (Duration::from_nanos(now.nanos_since(heard)), self.stall(now));
        if silence.max(stall) >= config.dead_after {
            self.standing = Standing::Dead;
            return Verdict::Dead { silence, stall };
        }
        let on_this_pipe =
            |since: Instant| Duration::from_nanos(now.nanos_since(since.max(self.renewed)));
        if !self.is_silent && on_this_pipe(heard) >= config.suspect_after {
            (self.is_silent, self.standing) = (true, Standing::Suspect);
            return Verdict::Suspect;
        }
        let is_stalled =
            self.waits.is_some_and(|waits| on_this_pipe(waits) >= config.stalled_after());
        if is_stalled && !self.is_stalled {
            self.is_stalled = true;
            return Verdict::Stalled;
        }
        Verdict::Patience
    }

    /// Returns the time of the next judgement.
    pub(crate) fn deadline(&self, config: &LinkConfig) -> Option<Instant> {
        let heard = self.heard.filter(|_| self.standing != Standing::Dead)?;
        let first = self.waits.map_or(heard, |waits| waits.min(heard));
        let dead = first + config.dead_after;
        let suspect = heard.max(self.renewed) + config.suspect_after;
        let stalled = self.waits.map(|waits| waits.max(self.renewed) + config.stalled_after());
        let suspect = Some(suspect).filter(|_| !self.is_silent);
        let stalled = stalled.filter(|_| !self.is_stalled);
        [suspect, stalled].into_iter().flatten().chain([dead]).min()
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.standing == Standing::Suspect
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.standing == Standing::Dead
    }
}
