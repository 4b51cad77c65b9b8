//! AdaPM §B.2: efficient communication.

use adapm_core::WorkerId;
use adapm_core::policy::System;
use adapm_core::slot::State::{Main, None, Replica};
use adapm_verify::Setup;

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// AdaPM §B.2.1: inactive intents are stored locally.
#[test]
fn inactive_intents_stay_at_their_node() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    for start in 100..200 {
        play.intent(of(N1), &[key], start..start + 1)?;
    }
    assert_eq!(play.run()?, [""; 0]);
    Ok(())
}

/// AdaPM §B.2.1: a node reports that intent becomes active and that it expires, not how many
/// workers have it.
#[test]
fn intents_of_a_node_are_aggregated() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N0, key, 0..1_000)?;
    play.intent(of(N1), &[key], 0..5)?;
    play.intent((N1, WorkerId(1)), &[key], 0..9)?;
    assert_eq!(play.ways()?, ["n1 -> n0", "n0 -> n1"]);
    play.advance_clock(of(N1), 5);
    assert_eq!(play.run()?, [""; 0], "one worker is left");
    play.advance_clock((N1, WorkerId(1)), 9);
    assert_eq!(play.ways()?, ["n1 -> n0", "n0 -> n1"]);
    Ok(())
}

/// AdaPM §B.2.2: one request carries all updates and intents for an owner, one response all its
/// answers.
#[test]
fn a_round_is_one_request_and_one_response() -> Claim {
    let mut play = Play::new(System::Adapm);
    let keys = play.keys_of(N0, 8);
    play.intent(of(N0), &keys, 0..1_000)?;
    play.intent(of(N1), &keys[..4], 0..1_000)?;
    play.run()?;
    play.push(of(N1), &keys[..4])?;
    play.intent(of(N1), &keys[4..], 0..1_000)?;
    let said = play.run()?;
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[0].matches("Delta").count(), 4);
    assert_eq!(said[0].matches("Intent").count(), 4);
    assert_eq!(said[1].matches("GrantReplica").count(), 4);
    Ok(())
}

/// AdaPM §B.2.2: a node has at most one unanswered request at another.
#[test]
fn the_next_request_waits_for_the_answer() -> Claim {
    let mut play = Play::new(System::Adapm);
    let keys = play.keys_of(N0, 3);
    for key in keys {
        play.intent(of(N1), &[key], 0..9)?;
        play.round(N1)?;
        assert_eq!(play.network().queue(N1, N0).count(), 1);
    }
    play.run()?;
    Ok(())
}

/// AdaPM §B.2.3: a node that does not know the location asks the home, which forwards.
#[test]
fn an_unknown_location_goes_through_the_home() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..9)?;
    let pull = play.pull(of(N2), &[key])?;
    assert_eq!(play.ways()?, ["n2 -> n0", "n0 -> n1", "n1 -> n2"]);
    assert!(play.is_done(pull));
    Ok(())
}

/// AdaPM §B.2.3: location caches are filled by messages that arrive anyway, and used.
#[test]
fn a_known_location_is_asked_directly() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..9)?;
    for _ in 0..2 {
        play.pull(of(N2), &[key])?;
        play.run()?;
    }
    play.push(of(N2), &[key])?;
    assert_eq!(play.ways()?, ["n2 -> n1", "n1 -> n2"]);
    Ok(())
}

/// AdaPM §B.2.3: caches are not invalidated; a message that follows a stale one is forwarded.
#[test]
fn a_stale_location_costs_a_forward_and_no_invalidation() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..9)?;
    play.pull(of(N2), &[key])?;
    play.run()?;
    play.tick(N1, 9)?;
    play.intent(of(N3), &[key], 0..9)?;
    assert!(play.ways()?.iter().all(|way| !way.contains("n2")), "n2 is not told of the relocation");
    play.pull(of(N2), &[key])?;
    assert_eq!(play.ways()?, ["n2 -> n1", "n1 -> n3", "n3 -> n2"]);
    play.pull(of(N2), &[key])?;
    assert_eq!(play.ways()?, ["n2 -> n3", "n3 -> n2"], "the answer has corrected the cache");
    Ok(())
}

/// AdaPM §B.2.3: without location caches every message takes the way through the home.
#[test]
fn without_caches_the_home_forwards_every_time() -> Claim {
    let setup = Setup { location_caches: false, ..Setup::new(System::Adapm, 4, 2, 64) };
    let mut play = Play::with(setup);
    let key = play.key();
    play.signal(N1, key, 0..9)?;
    for _ in 0..3 {
        play.pull(of(N2), &[key])?;
        assert_eq!(play.ways()?, ["n2 -> n0", "n0 -> n1", "n1 -> n2"]);
    }
    Ok(())
}

/// AdaPM §B.2.3: the old owner notifies the home of a relocation.
#[test]
fn the_home_is_told_by_the_old_owner() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..9)?;
    play.tick(N1, 9)?;
    play.intent(of(N2), &[key], 0..9)?;
    let said = play.run()?;
    let told = said.iter().filter(|message| message.starts_with("n1 -> n0: Residence")).count();
    assert_eq!(told, 1, "{said:?}");
    Ok(())
}

/// AdaPM §B.2.4: no relocation while several nodes have active intent, even if the owner's expires
/// (Fig. 11a).
#[test]
fn never_relocates_while_two_nodes_have_intent() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..2)?;
    play.signal(N2, key, 0..9)?;
    play.signal(N3, key, 0..9)?;
    play.tick(N1, 2)?;
    assert_eq!(play.states(key), [None, Main, Replica, Replica]);
    Ok(())
}

/// AdaPM §B.2.4: the relocation comes when exactly one is left, and needs no value where the
/// replica is current.
#[test]
fn a_current_replica_becomes_owner_without_a_value() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..2)?;
    play.signal(N2, key, 0..9)?;
    assert_eq!(handed_over(&mut play)?, 0);
    assert_eq!(play.states(key), [None, None, Main, None]);
    Ok(())
}

/// AdaPM §B.2.4: a replica that lacks an update gets the value with the ownership.
#[test]
fn a_stale_replica_becomes_owner_with_a_value() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..2)?;
    play.signal(N2, key, 0..9)?;
    play.push(of(N1), &[key])?;
    assert_eq!(handed_over(&mut play)?, 2, "elements of its value");
    let pull = play.pull(of(N2), &[key])?;
    assert_eq!(play.read(pull)[0].pushes, 1);
    Ok(())
}

/// Lets the intent of n1 expire. Returns the number of elements that the hand-over to n2 carries.
fn handed_over(play: &mut Play) -> Result<usize, adapm_verify::Violation> {
    play.advance_clock(of(N1), 2);
    play.round(N1)?;
    play.deliver(N1, N2)?;
    play.round(N2)?;
    play.deliver(N2, N1)?;
    let elements = play.network().first(N1, N2).and_then(|message| message.values.len_as::<i64>());
    play.run()?;
    Ok(elements.expect("the response is on its way"))
}

/// AdaPM §B.2.4: if the owner has written since it last reported, the value travels too.
#[test]
fn a_write_of_the_old_owner_travels_with_the_hand_over() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..2)?;
    play.signal(N2, key, 0..9)?;
    play.advance_clock(of(N1), 2);
    play.round(N1)?;
    play.deliver(N1, N2)?;
    play.round(N2)?;
    play.push(of(N1), &[key])?;
    play.deliver(N2, N1)?;
    let elements = play.network().first(N1, N2).and_then(|message| message.values.len_as::<i64>());
    assert_eq!(elements, Some(2));
    play.run()?;
    let pull = play.pull(of(N2), &[key])?;
    assert_eq!(play.read(pull)[0].pushes, 1);
    Ok(())
}
