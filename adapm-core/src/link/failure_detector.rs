//! When a peer last showed that it lives and that what it is sent arrives, and what follows when it
//! does not.
//!
//! A peer lives as long as bytes of it come, and as long as its acknowledgements move when
//! something waits for them. A new pipe is no sign of either: pipes can come up forever over a way
//! on which nothing else passes.

use core::time::Duration;

use crate::link::config::LinkConfig;
use crate::time::Instant;

/// Watches one peer, from the first time it is met.
#[derive(Debug, Default)]
pub(crate) struct FailureDetector {
    /// When it was met, or a byte of it came last.
    heard: Option<Instant>,
    /// Since when something waits for an acknowledgement and none has moved.
    waits: Option<Instant>,
    /// When the pipe in use came up.
    renewed: Instant,
    /// Whether this pipe was found silent.
    is_silent: bool,
    standing: Standing,
}

/// What is thought of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Alive,
    Suspect,
    Dead,
}

/// What follows from the time that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing new.
    Patience,
    /// The pipe in use is silent for too long.
    Suspect,
    /// The peer is dead: for this long no byte has come, and no acknowledgement has moved that was
    /// waited for.
    Dead { silence: Duration, stall: Duration },
}

impl FailureDetector {
    /// A pipe has come up, which the peer is to use within the time after which it is suspected.
    pub(crate) fn renew(&mut self, now: Instant) {
        self.heard.get_or_insert(now);
        (self.renewed, self.is_silent) = (now, false);
    }

    /// Bytes of the peer came; returns whether it was suspected.
    pub(crate) fn hear(&mut self, now: Instant) -> bool {
        (self.heard, self.is_silent) = (Some(now), false);
        core::mem::replace(&mut self.standing, Standing::Alive) == Standing::Suspect
    }

    /// Something was written that waits for its acknowledgement.
    pub(crate) fn wait(&mut self, now: Instant) {
        self.waits.get_or_insert(now);
    }

    /// The acknowledgement has moved; `is_waiting`: not yet behind everything.
    pub(crate) fn progress(&mut self, now: Instant, is_waiting: bool) {
        self.waits = is_waiting.then_some(now);
    }

    /// How long no acknowledgement has moved that is waited for.
    pub(crate) fn stall(&self, now: Instant) -> Duration {
        Duration::from_nanos(self.waits.map_or(0, |waits| now.nanos_since(waits)))
    }

    /// What follows from what did not come until `now`.
    pub(crate) fn judge(&mut self, now: Instant, config: &LinkConfig) -> Verdict {
        let Some(heard) = self.heard.filter(|_| self.standing != Standing::Dead) else {
            return Verdict::Patience;
        };
        let (silence, stall) = (Duration::from_nanos(now.nanos_since(heard)), self.stall(now));
        if silence.max(stall) >= config.dead_after {
            self.standing = Standing::Dead;
            return Verdict::Dead { silence, stall };
        }
        let quiet = Duration::from_nanos(now.nanos_since(heard.max(self.renewed)));
        if self.is_silent || quiet < config.suspect_after {
            return Verdict::Patience;
        }
        (self.is_silent, self.standing) = (true, Standing::Suspect);
        Verdict::Suspect
    }

    /// When to judge next.
    pub(crate) fn deadline(&self, config: &LinkConfig) -> Option<Instant> {
        let heard = self.heard.filter(|_| self.standing != Standing::Dead)?;
        let first = self.waits.map_or(heard, |waits| waits.min(heard));
        let dead = first + config.dead_after;
        let suspect = heard.max(self.renewed) + config.suspect_after;
        Some(if self.is_silent { dead } else { dead.min(suspect) })
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.standing == Standing::Suspect
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.standing == Standing::Dead
    }
}
