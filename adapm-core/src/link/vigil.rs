//! When a peer was last heard of, and what follows from its silence.

use core::time::Duration;

use crate::link::config::LinkConfig;
use crate::time::Instant;

/// Watches one peer, from the first time it is heard of.
#[derive(Debug, Default)]
pub(crate) struct Vigil {
    heard: Option<Instant>,
    standing: Standing,
}

/// What is thought of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    #[default]
    Alive,
    Suspect,
    Dead,
}

impl Vigil {
    /// The peer was heard of; returns whether it was suspected.
    pub(crate) fn hear(&mut self, now: Instant) -> bool {
        self.heard = Some(now);
        core::mem::replace(&mut self.standing, Standing::Alive) == Standing::Suspect
    }

    /// What follows from the silence until `now`; `None` if nothing new does.
    pub(crate) fn judge(&mut self, now: Instant, config: &LinkConfig) -> Option<Standing> {
        let silence = Duration::from_nanos(now.nanos_since(self.heard?));
        let standing = if silence >= config.dead_after {
            Standing::Dead
        } else if silence >= config.suspect_after {
            Standing::Suspect
        } else {
            return None;
        };
        let is_new = self.standing != standing;
        self.standing = standing;
        is_new.then_some(standing)
    }

    /// When to judge next.
    pub(crate) fn deadline(&self, config: &LinkConfig) -> Option<Instant> {
        let after = match self.standing {
            Standing::Alive => config.suspect_after.min(config.dead_after),
            Standing::Suspect => config.dead_after,
            Standing::Dead => return None,
        };
        self.heard.map(|heard| later(heard, after))
    }

    /// How long nothing was heard.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        Duration::from_nanos(self.heard.map_or(0, |heard| now.nanos_since(heard)))
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.standing == Standing::Suspect
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.standing == Standing::Dead
    }
}

/// The point `duration` after `instant`.
pub(crate) fn later(instant: Instant, duration: Duration) -> Instant {
    instant.plus_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
