//! The bound on how far workers are apart (AdaPM §A.3; protocol, "Ticks"): waiting at a clock, and
//! around barriers and quiesces.

use std::num::NonZeroU32;
use std::time::Instant;

use adapm_core::clock::Tick;
use adapm_core::engine::OpBody;
use adapm_core::error::OpError;
use adapm_core::store::Store;

use super::access::Access;

/// A worker's progress under a bound.
#[derive(Debug)]
pub(super) struct Gate {
    /// Clocks of a tick.
    clocks_per_tick: u64,
    /// Barriers and quiesces called, and clocks since the last of them.
    meetings: u64,
    clocks: u64,
    /// The error of a clock, which cannot report it.
    error: Option<OpError>,
}

impl Gate {
    pub(super) fn new(clocks_per_tick: NonZeroU32) -> Self {
        let clocks_per_tick = u64::from(clocks_per_tick.get());
        Self { clocks_per_tick, meetings: 0, clocks: 0, error: None }
    }

    /// Raises the clock; at a new tick, waits until the others have come near enough. After an
    /// error nothing waits any more.
    pub(super) fn advance<S: Store>(&mut self, access: &mut Access<S>, clocks: u64) {
        let before = self.tick();
        self.clocks = self.clocks.saturating_add(clocks);
        if self.tick() > before && self.error.is_none() {
            self.error = self.reach(access, true).err();
        }
    }

    /// Calls a barrier or quiesce, `meet`: in it this worker holds nobody up, and behind it sees
    /// all that was done before.
    pub(super) fn meet<S: Store>(
        &mut self,
        access: &mut Access<S>,
        meet: impl FnOnce(&mut Access<S>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.take_error()?;
        (self.meetings, self.clocks) = (self.meetings + 1, 0);
        self.reach(access, false)?;
        meet(access)?;
        self.reach(access, true)
    }

    /// Takes the error of an earlier clock.
    pub(super) fn take_error(&mut self) -> Result<(), OpError> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn tick(&self) -> Tick {
        Tick::new(self.meetings, self.clocks / self.clocks_per_tick)
    }

    fn reach<S: Store>(&self, access: &mut Access<S>, waits: bool) -> Result<(), OpError> {
        let begun = Instant::now();
        let body = OpBody::Tick { tick: self.tick(), waits };
        let result = access.on_channels(access.shared().ports.len(), &body);
        access.shared().workers[access.id().index()].counters.add_gated(begun.elapsed());
        result
    }
}
