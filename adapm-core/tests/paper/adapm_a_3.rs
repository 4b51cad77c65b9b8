//! AdaPM §A.3, SSP and ESSP: a pull sets up a copy, and no worker reads one that is too old for its
//! tick.

use adapm_core::Key;
use adapm_core::policy::System;
use adapm_verify::{Cluster, Setup, Violation};

use super::play::{Claim, N0, N1, N2, Play, of};

/// A copy that was asked for before a tick is as old as the request: who passed the tick while it
/// is on its way would read it without having it refreshed.
#[test]
fn a_copy_on_its_way_holds_up_the_tick() -> Claim {
    let mut play = Play::with(Setup::new(System::Essp { staleness: 0 }, 3, 1, 64));
    let key = play.keys_of(N2, 1)[0];
    play.pull(of(N1), &[key])?;
    play.deliver(N1, N2)?;
    // Made at the first tick, but not in the copy.
    play.push(of(N2), &[key])?;
    let mut ticks = Vec::new();
    for node in [N0, N1, N2] {
        ticks.push(Cluster::tick(&mut play, of(node))?);
    }
    // The copy is the only message that does not arrive.
    all_but_one_way_arrives(&mut play)?;
    assert!(ticks.iter().all(|tick| !play.is_done(*tick)), "n1 waits, and all others for it");
    play.run()?;
    assert!(ticks.iter().all(|tick| play.is_done(*tick)));
    let read = play.pull(of(N1), &[key])?;
    assert!(play.is_done(read) && play.read(read)[0].pushes == 1);
    Ok(())
}

/// What brings replicas up to date begins behind the tick that it counts for: an answer that was
/// under way when the least tick rose does not have what made it rise.
#[test]
fn an_answer_from_before_the_tick_refreshes_nothing() -> Claim {
    let mut play = Play::with(Setup::new(System::Essp { staleness: 1 }, 3, 1, 64));
    let key = play.keys_of(N2, 1)[0];
    play.pull(of(N1), &[key])?;
    play.run()?;
    let first = Cluster::tick(&mut play, of(N1))?;
    play.run()?;
    assert!(play.is_done(first), "n1 may be one tick ahead");
    let second = Cluster::tick(&mut play, of(N1))?;
    play.round(N1)?;
    while play.deliver(N1, N2)? {}
    // The answer to n1 is on its way: this is not in it.
    play.push(of(N2), &[key])?;
    Cluster::tick(&mut play, of(N0))?;
    Cluster::tick(&mut play, of(N2))?;
    all_but_one_way_arrives(&mut play)?;
    assert!(!play.is_done(second), "its node has not settled");
    assert!(play.deliver(N2, N1)?, "the answer");
    assert!(!play.is_done(second), "its replica lacks what was pushed before the first tick");
    play.run()?;
    assert!(play.is_done(second));
    let read = play.pull(of(N1), &[key])?;
    assert!(play.is_done(read) && play.read(read)[0].pushes == 1);
    Ok(())
}

/// How long a copy may be read follows from the time it was asked for, however late it comes: what
/// was pushed meanwhile is not in it.
#[test]
fn a_copy_that_comes_late_is_not_read_longer() -> Claim {
    let (mut play, key) = late_copy()?;
    play.run()?;
    let second = Cluster::tick(&mut play, of(N1))?;
    play.run()?;
    assert!(play.is_done(second), "nobody is too far behind");
    reads_all(&mut play, key)
}

/// A copy that must not be read any more, and is on its way, serves those who wait for it and goes,
/// before a worker of its node passes the tick.
#[test]
fn a_copy_that_comes_too_late_holds_up_the_tick() -> Claim {
    let (mut play, key) = late_copy()?;
    let second = Cluster::tick(&mut play, of(N1))?;
    all_but_one_way_arrives(&mut play)?;
    assert!(!play.is_done(second), "its worker would find the copy when it comes");
    play.run()?;
    assert!(play.is_done(second));
    reads_all(&mut play, key)
}

/// Has n1 pull a key of n2 under SSP with a staleness of 1, and all pass their first tick while the
/// copy is on its way; what n2 has pushed before that is not in it.
fn late_copy() -> Result<(Play, Key), Violation> {
    let mut play = Play::with(Setup::new(System::Ssp { staleness: 1 }, 3, 1, 64));
    let key = play.keys_of(N2, 1)[0];
    let first = Cluster::tick(&mut play, of(N1))?;
    play.run()?;
    assert!(play.is_done(first), "n1 may be one tick ahead");
    play.pull(of(N1), &[key])?;
    play.deliver(N1, N2)?;
    play.push(of(N2), &[key])?;
    Cluster::tick(&mut play, of(N0))?;
    Cluster::tick(&mut play, of(N2))?;
    all_but_one_way_arrives(&mut play)?;
    Ok((play, key))
}

/// Checks that n1, at its second tick, reads what was pushed before the first.
fn reads_all(play: &mut Play, key: Key) -> Claim {
    let read = play.pull(of(N1), &[key])?;
    play.run()?;
    assert_eq!(play.read(read)[0].pushes, 1);
    Ok(())
}

/// Delivers everything but what n2 says to n1, with the rounds that follow.
fn all_but_one_way_arrives(play: &mut Play) -> Claim {
    let nodes = [N0, N1, N2];
    for _ in 0..10 {
        for (from, to) in nodes.into_iter().flat_map(|from| nodes.map(|to| (from, to))) {
            while (from, to) != (N2, N1) && play.deliver(from, to)? {}
        }
        nodes.into_iter().try_for_each(|node| play.round(node))?;
    }
    Ok(())
}
