//! Lapse §3.3: parameter access.

use adapm_core::policy::System;
use adapm_core::{Key, NodeId};
use adapm_verify::{Setup, Violation};

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// Creates a cluster in which `owner` has localized the key of n0.
fn owned_by(owner: NodeId, location_caches: bool) -> Result<(Play, Key), Violation> {
    let mut play = Play::with(Setup { location_caches, ..Setup::new(System::Lapse, 4, 2, 64) });
    let key = play.key();
    let localize = play.localize(of(owner), &[key])?;
    play.wait(localize)?;
    Ok((play, key))
}

/// Lapse §3.3: local parameters are accessed in shared memory, without messages.
#[test]
fn local_accesses_are_silent() -> Claim {
    let (mut play, key) = owned_by(N1, true)?;
    for _ in 0..10 {
        play.push(of(N1), &[key])?;
        let pull = play.pull(of(N1), &[key])?;
        assert!(play.is_done(pull));
    }
    assert_eq!(play.run()?, [""; 0]);
    Ok(())
}

/// Lapse §3.3: the forward strategy needs three messages, for a pull and for a push (Fig. 5b).
#[test]
fn an_uncached_access_takes_three_messages() -> Claim {
    for caches in [true, false] {
        let (mut play, key) = owned_by(N1, caches)?;
        play.push(of(N2), &[key])?;
        assert_eq!(play.ways()?, ["n2 -> n0", "n0 -> n1", "n1 -> n2"]);
        play.pull(of(N3), &[key])?;
        assert_eq!(play.ways()?, ["n3 -> n0", "n0 -> n1", "n1 -> n3"]);
    }
    Ok(())
}

/// Lapse §3.3: a correct location cache reduces them to two (Fig. 5c).
#[test]
fn a_correct_cache_takes_two_messages() -> Claim {
    let (mut play, key) = owned_by(N1, true)?;
    play.pull(of(N2), &[key])?;
    play.run()?;
    play.pull(of(N2), &[key])?;
    assert_eq!(play.ways()?, ["n2 -> n1", "n1 -> n2"]);
    Ok(())
}

/// Lapse §3.3: a stale cache costs at most one hop per relocation missed (Fig. 5d; the old owner
/// forwards by itself).
#[test]
fn a_stale_cache_takes_one_hop_more_per_relocation() -> Claim {
    let (mut play, key) = owned_by(N1, true)?;
    play.pull(of(N2), &[key])?;
    play.run()?;
    play.localize(of(N3), &[key])?;
    play.run()?;
    play.pull(of(N2), &[key])?;
    assert_eq!(play.ways()?, ["n2 -> n1", "n1 -> n3", "n3 -> n2"]);
    Ok(())
}

/// Lapse §3.3: an access of the home of a parameter that it does not own takes two messages.
#[test]
fn the_home_asks_the_owner_directly() -> Claim {
    let (mut play, key) = owned_by(N1, false)?;
    play.pull(of(N0), &[key])?;
    assert_eq!(play.ways()?, ["n0 -> n1", "n1 -> n0"]);
    Ok(())
}

/// Lapse §3.3: an access that reaches the old owner before the relocation is processed there.
#[test]
fn an_access_before_the_relocation_is_served_by_the_old_owner() -> Claim {
    let (mut play, key) = owned_by(N1, false)?;
    play.localize(of(N2), &[key])?;
    play.round(N2)?;
    let push = play.push(of(N3), &[key])?;
    play.deliver(N3, N0)?;
    play.deliver(N0, N1)?;
    play.deliver(N1, N3)?;
    assert!(play.is_done(push));
    play.run()?;
    assert_eq!(play.owner(key), Some(N2));
    Ok(())
}

/// Lapse §3.3: an access of the old owner during the relocation is sent to the new one and
/// processed there.
#[test]
fn an_access_of_the_old_owner_is_sent_after_the_parameter() -> Claim {
    let (mut play, key) = owned_by(N1, false)?;
    play.localize(of(N2), &[key])?;
    play.round(N2)?;
    play.deliver(N2, N0)?;
    play.deliver(N0, N1)?;
    let push = play.push(of(N1), &[key])?;
    let ways = play.ways()?;
    assert!(play.is_done(push) && ways.contains(&String::from("n1 -> n2")), "{ways:?}");
    Ok(())
}

/// Lapse §3.3: any operation may name many parameters at many places.
#[test]
fn one_operation_may_go_to_many_owners() -> Claim {
    let mut play = Play::new(System::Lapse);
    let keys: Vec<Key> = [N0, N1, N2, N3].iter().flat_map(|node| play.keys_of(*node, 2)).collect();
    let push = play.push(of(N1), &keys)?;
    assert_eq!(play.run()?.len(), 6, "one message and one answer per owner");
    let pull = play.pull(of(N2), &keys)?;
    play.wait(pull)?;
    assert!(play.is_done(push) && play.read(pull).iter().all(|seen| seen.pushes == 1));
    Ok(())
}
