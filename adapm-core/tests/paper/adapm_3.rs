//! AdaPM §3: the meaning of an intent.

use adapm_core::policy::System;
use adapm_core::slot::State::{Main, None, Replica};
use adapm_core::{Key, NodeId, WorkerId};

use super::play::{Claim, N0, N1, N2, Play, of};

/// Makes n0 the owner of a key with a long intent, so that any other node holds a replica exactly
/// while its intent lasts.
fn contended() -> Result<(Play, Key), adapm_verify::Violation> {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N0, key, 0..1_000)?;
    Ok((play, key))
}

fn holds(play: &Play, node: NodeId, key: Key) -> bool {
    play.state(node, key) == Replica
}

/// AdaPM §3: an intent is inactive while the worker's clock is below its start.
#[test]
fn intent_is_inactive_before_its_start() -> Claim {
    let (mut play, key) = contended()?;
    play.intent(of(N1), &[key], 500..510)?;
    assert_eq!(play.run()?, [""; 0]);
    assert!(!holds(&play, N1, key));
    Ok(())
}

/// AdaPM §3: an intent is active from its start (inclusive) to its end (exclusive).
#[test]
fn intent_is_active_until_its_end_exclusive() -> Claim {
    let (mut play, key) = contended()?;
    play.signal(N1, key, 0..2)?;
    assert!(holds(&play, N1, key), "clock 0");
    play.tick(N1, 1)?;
    assert!(holds(&play, N1, key), "clock 1");
    play.tick(N1, 1)?;
    assert!(!holds(&play, N1, key), "clock 2: the end is not part of the window");
    Ok(())
}

/// AdaPM §3: an intent may be extended by signalling another one later on.
#[test]
fn a_later_intent_extends_an_earlier_one() -> Claim {
    let (mut play, key) = contended()?;
    play.signal(N1, key, 0..2)?;
    play.intent(of(N1), &[key], 1..6)?;
    play.advance_clock(of(N1), 4);
    assert_eq!(play.run()?, [""; 0], "nobody is told, as nothing changes");
    assert!(holds(&play, N1, key));
    Ok(())
}

/// AdaPM §3: intents for the same parameter may overlap; the later end counts.
#[test]
fn overlapping_intents_merge_by_the_later_end() -> Claim {
    let (mut play, key) = contended()?;
    play.signal(N1, key, 0..5)?;
    play.signal(N1, key, 2..3)?;
    play.tick(N1, 4)?;
    assert!(holds(&play, N1, key), "clock 4");
    play.tick(N1, 1)?;
    assert!(!holds(&play, N1, key), "clock 5");
    Ok(())
}

/// AdaPM §3: each worker has a clock of its own.
#[test]
fn clocks_of_workers_are_independent() -> Claim {
    let (mut play, key) = contended()?;
    play.signal(N1, key, 0..5)?;
    play.advance_clock((N1, WorkerId(1)), 100);
    play.run()?;
    assert!(holds(&play, N1, key));
    Ok(())
}

/// AdaPM §3: the parameter is needed while any worker of the node has active intent.
#[test]
fn the_last_worker_with_intent_keeps_the_replica() -> Claim {
    let (mut play, key) = contended()?;
    play.signal(N1, key, 0..2)?;
    play.intent((N1, WorkerId(1)), &[key], 0..2)?;
    play.tick(N1, 2)?;
    assert!(holds(&play, N1, key), "worker 1 is still at clock 0");
    play.advance_clock((N1, WorkerId(1)), 2);
    play.run()?;
    assert!(!holds(&play, N1, key));
    Ok(())
}

/// AdaPM §3: a worker that has ended has no active intent left.
#[test]
fn the_end_of_a_worker_expires_its_intents() -> Claim {
    let (mut play, key) = contended()?;
    play.signal(N1, key, 0..1_000_000)?;
    assert!(holds(&play, N1, key));
    play.end(of(N1))?;
    play.run()?;
    assert!(!holds(&play, N1, key));
    Ok(())
}

/// AdaPM §3: an intent that has expired when it is signalled is without effect.
#[test]
fn an_expired_intent_is_ignored() -> Claim {
    let (mut play, key) = contended()?;
    play.tick(N1, 10)?;
    play.intent(of(N1), &[key], 3..10)?;
    assert_eq!(play.run()?, [""; 0]);
    assert!(!holds(&play, N1, key));
    Ok(())
}

/// AdaPM §4 (optional intent): any parameter can be accessed at any time without intent.
#[test]
fn intent_is_optional() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    let push = play.push(of(N1), &[key])?;
    let pull = play.pull(of(N2), &[key])?;
    play.run()?;
    assert!(play.is_done(push) && play.is_done(pull));
    assert_eq!(play.states(key), [Main, None, None, None], "access alone moves nothing");
    Ok(())
}
