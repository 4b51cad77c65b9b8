//! Target `link`: whatever a pipe does, and whatever a lying peer sends, each frame of a link
//! arrives exactly once and in order, and all other guarantees of a session hold (protocol,
//! "Links").
//!
//! The input chooses windows and times, then step by step the end that sends, writes, reads, says
//! goodbye or lies, the cuts of the pipe, and the bytes that still arrive. In the end a sound pipe
//! comes up, and everything must arrive. The same steps as in the random schedules of
//! `adapm-core/tests/link.rs`, but guided by coverage instead of chance.

use std::time::Duration;

use adapm_core::link::{Kind, LinkConfig};
use adapm_verify::arb::Choices;
use adapm_verify::link::random::CLOSE_REASONS;
use adapm_verify::link::{Broken, End, Lie, Pair};

use crate::planted;

/// Maximum number of steps in one input.
const STEPS_MAX: usize = 1_000;

/// Runs the steps that `bytes` choose. Returns true if a frame was still missing when the last pipe
/// came up.
pub fn link(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let mut pair = Pair::new(config(&mut choices), planted::session());
    match run(&mut pair, &mut choices) {
        Ok(resumed) => resumed,
        Err(broken) => panic!("{broken:?}"),
    }
}

fn config(choices: &mut Choices<'_>) -> LinkConfig {
    let mut config = LinkConfig::with_dead_after(Duration::from_secs(1));
    config.packet_bytes = [9, 20, 40, 16 << 10][choices.below(4) as usize];
    config.window_packets = [1, 2, 4, 64][choices.below(4) as usize];
    config.window_bytes = [1, 40, 200, 10_000][choices.below(4) as usize];
    config
}

fn run(pair: &mut Pair, choices: &mut Choices<'_>) -> Result<bool, Broken> {
    for _ in 0..STEPS_MAX {
        if choices.is_exhausted() {
            break;
        }
        step(pair, choices)?;
    }
    let before: u64 = arrived(pair);
    pair.settle()?;
    Ok(arrived(pair) > before)
}

fn arrived(pair: &Pair) -> u64 {
    pair.sides.iter().map(|side| side.delivered).sum()
}

fn step(pair: &mut Pair, choices: &mut Choices<'_>) -> Result<(), Broken> {
    let end = End::BOTH[choices.below(2) as usize];
    match choices.below(32) {
        0..8 => {
            pair.send(end, 8 + choices.below(64) as usize)?;
        }
        8..15 => {
            pair.write(end)?;
        }
        15..23 => {
            pair.read(end)?;
        }
        23 => {
            pair.repeat(end, choices.below(4) as usize)?;
        }
        24 => pair.cut([choices.below(8) as usize, choices.below(8) as usize]),
        25 | 26 => pair.dial(),
        27..29 => {
            let millis = [0, 1, 20, 50, 60, 250, 999, 1_200][choices.below(8) as usize];
            pair.pass(Duration::from_millis(millis))?;
        }
        29 => pair.close(end, CLOSE_REASONS[choices.below(3) as usize])?,
        _ => {
            let by = choices.below(1 << 20);
            let lie = match choices.below(6) {
                0 => Lie::Unsent(by),
                1 => Lie::Gap(by),
                2 => Lie::ResumeBeyond(by),
                3 => Lie::ResumeBefore(by),
                4 => Lie::BehindBye,
                _ => Lie::CloseReason,
            };
            let kind =
                [Kind::Data, Kind::Bye, Kind::Ack, Kind::Heartbeat][choices.below(4) as usize];
            pair.lie(end, kind, lie)?;
        }
    }
    Ok(())
}
