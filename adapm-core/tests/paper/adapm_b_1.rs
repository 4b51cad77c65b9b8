//! AdaPM §B.1: responsibility follows allocation.

use adapm_core::policy::System;
use adapm_core::slot::State::{Main, None, Replica};
use adapm_core::{Key, WorkerId};

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// Makes n1 the owner of a key, n2 and n3 holders of replicas, all with long intents.
fn shared() -> Result<(Play, Key), adapm_verify::Violation> {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    for node in [N1, N2, N3] {
        play.signal(node, key, 0..1_000)?;
    }
    assert_eq!(play.states(key), [None, Main, Replica, Replica]);
    Ok((play, key))
}

/// AdaPM §B.1.1: the owner decides; a home without intent is not involved once the owner's place is
/// known.
#[test]
fn the_owner_decides_without_the_home() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..1_000)?;
    let pull = play.pull(of(N2), &[key])?;
    play.wait(pull)?;
    play.intent(of(N2), &[key], 0..5)?;
    assert_eq!(play.ways()?, ["n2 -> n1", "n1 -> n2"]);
    play.advance_clock(of(N2), 5);
    assert_eq!(play.ways()?, ["n2 -> n1", "n1 -> n2"]);
    Ok(())
}

/// AdaPM §B.1.1: intent at the node that holds the parameter needs no communication.
#[test]
fn intent_of_the_owner_is_silent() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..5)?;
    play.intent((N1, WorkerId(1)), &[key], 0..9)?;
    play.intent(of(N1), &[key], 3..9)?;
    play.advance_clock(of(N1), 9);
    assert_eq!(play.run()?, [""; 0]);
    Ok(())
}

/// AdaPM §B.1.1: responsibility moves with the parameter: the new owner is asked next.
#[test]
fn responsibility_moves_with_the_parameter() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..5)?;
    play.tick(N1, 5)?;
    play.signal(N2, key, 0..1_000)?;
    // n1 gave the key away itself, and so knows the node to ask.
    play.intent(of(N1), &[key], 5..9)?;
    assert_eq!(play.ways()?, ["n1 -> n2", "n2 -> n1"]);
    assert_eq!(play.states(key), [None, Replica, Main, None]);
    Ok(())
}

/// AdaPM §B.1.2: holders send their updates to the owner, which propagates them to the other
/// holders.
#[test]
fn updates_go_through_the_owner() -> Claim {
    let (mut play, key) = shared()?;
    play.push(of(N2), &[key])?;
    let ways = play.ways()?;
    assert!(ways.iter().all(|way| way.contains("n1")), "a hub: {ways:?}");
    let pull = play.pull(of(N3), &[key])?;
    assert_eq!(play.read(pull)[0].pushes, 1);
    Ok(())
}

/// AdaPM §B.1.2: only updates that the requesting node has not received are sent: not its own, and
/// none twice.
#[test]
fn only_missing_updates_are_sent() -> Claim {
    let (mut play, key) = shared()?;
    play.push(of(N2), &[key])?;
    let said = play.run()?;
    let refreshed =
        |to: &str| said.iter().filter(|m| m.contains(to) && m.contains("Refresh")).count();
    assert_eq!((refreshed("-> n2"), refreshed("-> n3")), (0, 1), "{said:?}");
    Ok(())
}

/// AdaPM §B.1.2: replica updates are batched: many pushes of a round travel as one delta.
#[test]
fn updates_of_a_round_are_batched() -> Claim {
    let (mut play, key) = shared()?;
    for _ in 0..10 {
        play.push(of(N2), &[key])?;
    }
    let said = play.run()?;
    assert_eq!(said.iter().filter(|message| message.contains("Delta")).count(), 1, "{said:?}");
    Ok(())
}

/// AdaPM §B.1.2: unchanged replicas cause no messages.
#[test]
fn idle_replicas_are_silent() -> Claim {
    let (mut play, _) = shared()?;
    for node in [N0, N1, N2, N3] {
        play.round(node)?;
    }
    assert_eq!(play.run()?, [""; 0]);
    Ok(())
}

/// AdaPM §B.1.2: a refresh keeps the holder's unsent updates.
#[test]
fn a_refresh_keeps_pending_updates() -> Claim {
    let (mut play, key) = shared()?;
    play.push(of(N3), &[key])?;
    play.round(N3)?;
    play.deliver(N3, N1)?;
    play.deliver(N1, N3)?;
    play.deliver(N1, N2)?;
    // n2 asks for news, and writes while the answer is in flight.
    play.round(N2)?;
    play.push(of(N2), &[key])?;
    play.deliver(N2, N1)?;
    play.deliver(N1, N2)?;
    let pull = play.pull(of(N2), &[key])?;
    assert_eq!(play.read(pull)[0].pushes, 0b11, "its own and the refresh");
    play.run()?;
    Ok(())
}

/// AdaPM §B.1.2: the last updates of a replica reach the owner with its release, exactly once.
#[test]
fn the_last_delta_travels_with_the_release() -> Claim {
    let (mut play, key) = shared()?;
    play.push(of(N2), &[key])?;
    play.advance_clock(of(N2), 1_000);
    let said = play.run()?;
    let releases: Vec<_> = said.iter().filter(|message| message.contains("Release")).collect();
    assert!(releases.len() == 1 && releases[0].contains("Delta"), "{said:?}");
    Ok(())
}
