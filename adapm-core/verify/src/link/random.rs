//! Schedules from seeds: hardship in any order, then a working pipe, on which everything must
//! arrive.

use core::time::Duration;

use adapm_core::id::NodeId;
use adapm_core::link::{Kind, LinkConfig};
use adapm_core::transport::CloseReason;

use crate::link::{Broken, End, Lie, Pair};
use crate::planted::LinkBug;
use crate::rng::Rng;

/// Number of steps of the first phase of a full run.
pub const STEPS: usize = 400;

/// Counts of events in the runs so far: a schedule that has become tame proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Frames delivered.
    pub delivered: u64,
    /// Cuts with items in flight.
    pub cuts: u64,
    /// Pipes made.
    pub pipes: u64,
    /// Packets repeated.
    pub repeats: u64,
    /// Refusals for lack of room.
    pub refusals: u64,
    /// Reports of room.
    pub rooms: u64,
    /// Lies sent.
    pub lies: u64,
    /// Ends that received a goodbye.
    pub left: u64,
    /// Ends that gave the other up.
    pub dead: u64,
    /// Packets that came in parts.
    pub trickles: u64,
    /// Cuts with a part of a frame at its reader, and more of it in flight or to come.
    pub cut_frames: u64,
}

impl Met {
    /// Adds the counts of other runs.
    pub fn merge(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.cuts += other.cuts;
        self.pipes += other.pipes;
        self.repeats += other.repeats;
        self.refusals += other.refusals;
        self.rooms += other.rooms;
        self.lies += other.lies;
        self.left += other.left;
        self.dead += other.dead;
        self.trickles += other.trickles;
        self.cut_frames += other.cut_frames;
    }
}

/// Returns a random configuration with small windows and short times.
#[must_use]
pub fn config(rng: &mut Rng) -> LinkConfig {
    let mut config = LinkConfig::with_dead_after(Duration::from_secs(1));
    config.packet_bytes = rng.choose(&[9, 20, 40, 16 << 10]);
    config.window_packets = rng.choose(&[1, 2, 4, 16, 64]);
    config.window_bytes = rng.choose(&[1, 40, 200, 10_000]);
    config
}

/// Runs the schedule of `seed` with `steps` steps of hardship; adds its events to `met`.
///
/// # Errors
/// The first claim that breaks.
pub fn run(seed: u64, steps: usize, bug: Option<LinkBug>, met: &mut Met) -> Result<(), Broken> {
    let mut rng = Rng::new(seed);
    let config = config(&mut rng);
    let patience = rng.within(0..4);
    let half_dead = rng.chance(30).then(|| rng.choose(&End::BOTH));
    let mut schedule = Schedule { pair: Pair::new(config, bug), patience, half_dead, met, rng };
    for _ in 0..steps {
        schedule.step()?;
    }
    schedule.pair.settle()?;
    for end in End::BOTH {
        let side = schedule.pair.side(end);
        schedule.met.delivered += side.delivered;
        schedule.met.rooms += side.rooms;
        schedule.met.left += u64::from(side.left.is_some());
        schedule.met.dead += u64::from(side.dead);
    }
    Ok(())
}

struct Schedule<'a> {
    pair: Pair,
    rng: Rng,
    /// Length of silences; at 0 never long enough to be suspected.
    patience: usize,
    /// The end to which bytes get through, but hardly ever a packet.
    half_dead: Option<End>,
    met: &'a mut Met,
}

impl Schedule<'_> {
    fn step(&mut self) -> Result<(), Broken> {
        let end = self.rng.choose(&End::BOTH);
        match self.rng.within(0..200) {
            0..50 => {
                let bytes = self.rng.within(8..60);
                let was_refused = self.pair.side(end).refused;
                self.pair.send(end, bytes)?;
                self.met.refusals += u64::from(!was_refused && self.pair.side(end).refused);
            }
            50..104 => {
                self.pair.write(end)?;
            }
            104..160 => {
                if self.rng.chance(if self.half_dead == Some(end) { 95 } else { 2 }) {
                    self.met.trickles += u64::from(self.pair.trickle(end)?);
                } else {
                    self.pair.read(end)?;
                }
            }
            160..166 => {
                let back = self.rng.within(0..4);
                self.met.repeats += u64::from(self.pair.repeat(end, back)?);
            }
            // A new pipe reports its ends' positions, which is progress; a half-dead link makes
            // none for long.
            166..172 if self.half_dead.is_some() && self.rng.chance(80) => self.pass()?,
            166..172 => {
                let ways = End::BOTH.map(|end| self.pair.on_the_way(end));
                let keep = ways.map(|len| self.rng.within(0..len + 1));
                self.met.cuts += u64::from(ways != [0, 0]);
                self.met.cut_frames +=
                    End::BOTH.iter().filter(|end| self.pair.is_within(**end)).count() as u64;
                self.pair.cut(keep);
            }
            172..180 => self.dial(),
            180..192 => self.pass()?,
            192..199 => {
                let kind = self.rng.choose(&[Kind::Data, Kind::Bye, Kind::Ack, Kind::Heartbeat]);
                let lie = self.some_lie();
                self.met.lies += u64::from(self.pair.lie(end, kind, lie)?);
            }
            _ => {
                if self.rng.chance(30) {
                    let reason = self.rng.choose(&CLOSE_REASONS);
                    self.pair.close(end, reason)?;
                }
            }
        }
        Ok(())
    }

    /// Dials; a working pipe is rarely given up.
    fn dial(&mut self) {
        if !self.pair.side(End::Dialer).is_up || self.rng.chance(10) {
            self.met.pipes += 1;
            self.pair.dial();
        }
    }

    fn pass(&mut self) -> Result<(), Broken> {
        let times = if self.half_dead.is_some() { [20, 60, 100, 150] } else { [1, 5, 20, 60] };
        let millis = self.rng.choose(&times);
        let millis = match self.rng.within(0..40) {
            0 if self.patience > 1 => 250,
            1 if self.patience > 2 => 1_200,
            _ => millis,
        };
        self.pair.pass(Duration::from_millis(millis))
    }

    fn some_lie(&mut self) -> Lie {
        let by = self.rng.choose(&[0, 1, 7, 1 << 40]);
        self.rng.choose(&[
            Lie::Unsent(by),
            Lie::Gap(by),
            Lie::ResumeBeyond(by),
            Lie::ResumeBefore(by),
            Lie::BehindBye,
            Lie::CloseReason,
            Lie::EmptyPart,
        ])
    }
}

/// All kinds of goodbyes.
pub const CLOSE_REASONS: [CloseReason; 3] =
    [CloseReason::Finished, CloseReason::Failed, CloseReason::Lost(NodeId(777))];
