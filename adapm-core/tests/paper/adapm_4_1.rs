//! AdaPM §4.1: adaptive choice of technique.

use adapm_core::policy::System;
use adapm_core::slot::State::{Main, None, Replica};

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// AdaPM §4.1: if only one node has active intent, the parameter is relocated to it.
#[test]
fn relocates_when_one_node_has_intent() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N2, key, 0..5)?;
    assert_eq!(play.states(key), [None, None, Main, None]);
    Ok(())
}

/// AdaPM §4.1: after the intent expires, the parameter stays where it is.
#[test]
fn keeps_the_key_where_it_is_when_intent_expires() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N2, key, 0..5)?;
    play.advance_clock(of(N2), 5);
    assert_eq!(play.run()?, [""; 0]);
    assert_eq!(play.states(key), [None, None, Main, None]);
    Ok(())
}

/// AdaPM §4.1: a parameter that was kept is relocated when some other node signals intent (Fig.
/// 4b).
#[test]
fn relocates_again_to_the_next_node_with_intent() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..5)?;
    play.tick(N1, 5)?;
    play.signal(N2, key, 0..5)?;
    assert_eq!(play.states(key), [None, None, Main, None]);
    Ok(())
}

/// AdaPM §4.1: while several nodes have active intent, each of them gets a copy (Fig. 4d).
#[test]
fn replicates_when_several_nodes_have_intent() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..5)?;
    play.signal(N2, key, 0..5)?;
    play.signal(N3, key, 0..5)?;
    assert_eq!(play.states(key), [None, Main, Replica, Replica], "and nobody else");
    Ok(())
}

/// AdaPM §4.1: a replica is destructed when the intent of its node expires.
#[test]
fn destructs_a_replica_when_its_intent_expires() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..9)?;
    play.signal(N2, key, 0..5)?;
    play.tick(N2, 5)?;
    assert_eq!(play.states(key), [None, Main, None, None]);
    Ok(())
}

/// AdaPM §4.1: once exactly one node has intent and does not have the parameter, it is relocated
/// there (Fig. 4c).
#[test]
fn relocates_to_the_last_node_with_intent() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 0..5)?;
    play.signal(N2, key, 0..9)?;
    play.push(of(N2), &[key])?;
    play.tick(N1, 5)?;
    assert_eq!(play.states(key), [None, None, Main, None]);
    Ok(())
}

/// AdaPM §4.1: a parameter with active intent is accessed locally.
#[test]
fn access_under_active_intent_is_local() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    for node in [N1, N2, N3] {
        play.signal(node, key, 0..5)?;
    }
    for node in [N1, N2, N3] {
        let push = play.push(of(node), &[key])?;
        let pull = play.pull(of(node), &[key])?;
        assert!(play.is_done(push) && play.is_done(pull), "{node} waits");
    }
    Ok(())
}

/// AdaPM §4.1: the home is a node like the others: with intent of its own, and another node's, it
/// keeps the parameter.
#[test]
fn an_owner_with_intent_replicates() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N0, key, 0..5)?;
    play.signal(N1, key, 0..5)?;
    assert_eq!(play.states(key), [Main, Replica, None, None]);
    Ok(())
}

/// AdaPM §5.5: without relocation, ownership never leaves home.
#[test]
fn without_relocation_ownership_stays_at_home() -> Claim {
    let mut play = Play::new(System::AdapmNoRelocation);
    let key = play.key();
    play.signal(N1, key, 0..5)?;
    assert_eq!(play.states(key), [Main, Replica, None, None]);
    play.tick(N1, 5)?;
    assert_eq!(play.states(key), [Main, None, None, None]);
    Ok(())
}

/// AdaPM §5.5: without replication, nodes with concurrent intent take turns, nothing is lost, and
/// each gets on.
#[test]
fn without_replication_nodes_with_intent_take_turns() -> Claim {
    const SIGNALS: u64 = 5;
    let mut play = Play::new(System::AdapmNoReplication);
    let key = play.key();
    for clock in 0..SIGNALS {
        for node in [N1, N2] {
            // All windows overlap: neither node is ever without intent.
            play.signal(node, key, clock..100)?;
            assert_eq!(play.owner(key), Some(node), "signal {clock}");
            for other in [N1, N2] {
                play.push(of(other), &[key])?;
            }
            play.run()?;
            assert_eq!(
                play.owner(key),
                Some(node),
                "who has had its turn waits for its next signal"
            );
            assert!(play.states(key).iter().all(|state| *state != Replica));
        }
    }
    assert_eq!(play.oracle().pushes(key) as u64, 4 * SIGNALS);
    for node in [N1, N2] {
        assert_eq!(
            play.member(node).node.engine().stats().relocations,
            SIGNALS,
            "one for each signal"
        );
    }
    Ok(())
}

/// AdaPM §5.5: without replication too, `localize` takes a key from an owner with intent, and that
/// owner's next signal takes it back.
#[test]
fn without_replication_a_signal_takes_back_what_localize_took() -> Claim {
    let mut play = Play::new(System::AdapmNoReplication);
    let key = play.key();
    play.signal(N1, key, 0..100)?;
    play.localize(of(N2), &[key])?;
    play.run()?;
    assert_eq!(play.owner(key), Some(N2));
    play.signal(N1, key, 0..100)?;
    assert_eq!(play.owner(key), Some(N1));
    Ok(())
}
