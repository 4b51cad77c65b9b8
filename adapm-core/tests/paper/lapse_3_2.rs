//! Lapse §3.2: relocation by `localize`.

use adapm_core::Key;
use adapm_core::engine::OpId;
use adapm_core::policy::System;
use adapm_core::slot::State::{Main, None, Replica, Requested};
use adapm_verify::{Setup, Violation};

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// Lapse §3.2: `localize` relocates the parameter to the node of the caller, where accesses are
/// local from then on.
#[test]
fn localize_moves_the_parameter_to_the_caller() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    let localize = play.localize(of(N1), &[key])?;
    play.wait(localize)?;
    assert_eq!(play.states(key), [None, Main, None, None]);
    let pull = play.pull(of(N1), &[key])?;
    assert!(play.is_done(pull));
    let pull = play.pull(of(N0), &[key])?;
    assert!(!play.is_done(pull), "the former owner has no copy");
    play.run()?;
    Ok(())
}

/// Lapse §3.2: one `localize` of many parameters relocates each, in grouped messages.
#[test]
fn localize_of_many_keys_is_grouped() -> Claim {
    let mut play = Play::new(System::Lapse);
    let keys = play.keys_of(N0, 8);
    let localize = play.localize(of(N1), &keys)?;
    assert_eq!(play.ways()?, ["n1 -> n0", "n0 -> n1"]);
    assert!(play.is_done(localize) && keys.iter().all(|key| play.owner(*key) == Some(N1)));
    Ok(())
}

/// Lapse §3.2: during the relocation the requester queues accesses of its workers, and runs them in
/// order when it ends.
#[test]
fn the_requester_queues_local_accesses() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    play.localize(of(N1), &[key])?;
    play.round(N1)?;
    assert_eq!(play.state(N1, key), Requested);
    let push = play.push(of(N1), &[key])?;
    let pull = play.pull(of(N1), &[key])?;
    assert!(
        !play.is_done(push) && !play.is_done(pull) && play.network().queue(N1, N0).count() == 1
    );
    play.deliver(N1, N0)?;
    play.deliver(N0, N1)?;
    assert_eq!(
        play.read(pull)[0].pushes,
        1,
        "done as soon as the parameter is here, the push first"
    );
    Ok(())
}

/// Lapse §3.2: the new owner also queues remote accesses that are routed to it before the
/// relocation is finished.
#[test]
fn the_requester_queues_remote_accesses() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    play.localize(of(N1), &[key])?;
    play.round(N1)?;
    play.deliver(N1, N0)?;
    // The home has given the parameter to n1, where it has not arrived: the access of n2 gets there
    // first.
    let push = play.push(of(N2), &[key])?;
    play.deliver(N2, N0)?;
    let [grant, forward] =
        [play.network().first(N0, N1).is_some(), play.network().queue(N0, N1).count() == 2];
    assert!(grant && forward);
    play.run()?;
    assert!(play.is_done(push));
    Ok(())
}

/// Creates a push of n3 that reaches n2 before the parameter, which n1 has sent there and reported
/// to the home.
fn overtaking(parked_max: usize) -> Result<(Play, Key, OpId), Violation> {
    let mut play = Play::with(Setup { parked_max, ..Setup::new(System::Lapse, 4, 2, 64) });
    let key = play.key();
    let first = play.localize(of(N1), &[key])?;
    play.wait(first)?;
    play.localize(of(N2), &[key])?;
    play.round(N2)?;
    play.deliver(N2, N0)?;
    play.deliver(N0, N1)?;
    // n1 has notified the home, and the grant to n2 is slow.
    play.deliver(N1, N0)?;
    let push = play.push(of(N3), &[key])?;
    play.deliver(N3, N0)?;
    play.deliver(N0, N2)?;
    play.deliver(N0, N2)?;
    Ok((play, key, push))
}

/// Lapse §3.2: a parked access waits at the new owner until the parameter arrives from a third
/// node.
#[test]
fn an_access_that_overtakes_the_parameter_is_parked() -> Claim {
    let (mut play, key, push) = overtaking(1)?;
    assert_eq!(play.row(N2, key).view.parked, 1);
    play.deliver(N1, N2)?;
    assert_eq!(play.row(N2, key).view.parked, 0);
    play.run()?;
    assert!(play.is_done(push));
    Ok(())
}

/// An access that finds no room to be parked, as every queue is bounded, is sent again by its
/// sender, and executed once.
#[test]
fn an_access_that_cannot_be_parked_is_sent_again() -> Claim {
    let (mut play, key, push) = overtaking(0)?;
    assert_eq!(play.row(N2, key).view.parked, 0);
    assert!(play.run()?.iter().any(|message| message.starts_with("n2 -> n3: Retry")));
    assert!(play.is_done(push));
    play.check_at_rest()
}

/// Lapse §3.2: the old owner stops serving when it hands the parameter over.
#[test]
fn the_old_owner_stops_at_once() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    play.localize(of(N1), &[key])?;
    play.round(N1)?;
    let before = play.push(of(N0), &[key])?;
    assert!(play.is_done(before), "until the request is here it serves");
    play.deliver(N1, N0)?;
    let after = play.push(of(N0), &[key])?;
    assert!(!play.is_done(after));
    play.run()?;
    assert!(play.is_done(after));
    Ok(())
}

/// Lapse §3.2: conflicting localizes give the parameter to each requester once.
#[test]
fn conflicting_localizes_take_turns() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    let localizes = [N1, N2, N3].map(|node| play.localize(of(node), &[key]));
    play.run()?;
    for localize in localizes {
        assert!(play.is_done(localize?));
    }
    let relocations: u64 =
        [N1, N2, N3].map(|node| play.member(node).node.engine().stats().relocations).iter().sum();
    assert_eq!(relocations, 3);
    Ok(())
}

/// Lapse §3.2: `localize` of a parameter that is local is done at once.
#[test]
fn localize_of_a_local_parameter_is_free() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    let localize = play.localize(of(N0), &[key])?;
    assert!(play.is_done(localize));
    assert_eq!(play.run()?, [""; 0]);
    Ok(())
}

/// Lapse §3.2, departure: where others hold replicas, the caller gets one too, and is local
/// nevertheless.
#[test]
fn localize_beside_replicas_brings_a_replica() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N0, key, 0..1_000)?;
    play.signal(N1, key, 0..1_000)?;
    let localize = play.localize(of(N2), &[key])?;
    play.wait(localize)?;
    let pull = play.pull(of(N2), &[key])?;
    assert!(play.is_done(pull) && play.owner(key) == Some(N0));
    Ok(())
}

/// Lapse §3.2, departure: such a replica is released after 1,024 rounds of its node without other
/// intent. An idle node has no rounds: it keeps the replica, and nothing is sent for it.
#[test]
fn a_replica_that_localize_brought_goes_with_the_rounds_of_its_node() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N0, key, 0..1_000)?;
    play.signal(N1, key, 0..1_000)?;
    let localize = play.localize(of(N2), &[key])?;
    play.wait(localize)?;
    play.run()?;
    let rounds = |play: &Play| play.member(N2).node.engine().stats().rounds;
    let begun = rounds(&play);
    for _ in 0..10 {
        play.round(N2)?;
    }
    assert_eq!((rounds(&play), play.state(N2, key)), (begun, Replica), "idle");
    // An intent that lasts keeps the node busy, with a key that it owns.
    let own = play.keys_of(N2, 1)[0];
    play.signal(N2, own, 0..1_000)?;
    for _ in 0..1_100 {
        play.round(N2)?;
        if play.state(N2, key) != Replica {
            break;
        }
    }
    assert!((1_020..=1_025).contains(&(rounds(&play) - begun)), "{} rounds", rounds(&play) - begun);
    play.run()?;
    assert_eq!(play.member(N0).node.engine().inspect(key).holders, [N1]);
    Ok(())
}
