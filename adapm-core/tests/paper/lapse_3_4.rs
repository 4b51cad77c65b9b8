//! Lapse §3.4: consistency.

use adapm_core::policy::System;
use adapm_verify::network::Pairs;
use adapm_verify::random::{self, STEPS};
use adapm_verify::{Checks, Setup};

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// Runs random schedules of relocation-only systems with only sequential consistency checked
/// (invariant 9).
fn is_sequential(system: System, location_caches: bool) -> Claim {
    for seed in 0..400 {
        let setup = Setup {
            location_caches,
            checks: Checks::only(9),
            codec: false,
            ..Setup::new(system, 4, 2, 8)
        };
        random::run(setup, seed, STEPS, &mut Pairs::default())?;
    }
    Ok(())
}

/// Lapse §3.4 (Theorem 1): synchronous operations are sequentially consistent, with location caches
/// or without.
///
/// The schedules mix both kinds; real-time order of synchronous ones is checked too.
#[test]
fn theorem_1_synchronous_operations_are_sequential() -> Claim {
    is_sequential(System::Lapse, true)?;
    is_sequential(System::AdapmNoReplication, true)
}

/// Lapse §3.4 (Theorem 2): without location caches asynchronous operations are sequentially
/// consistent, too.
#[test]
fn theorem_2_asynchronous_operations_are_sequential_without_caches() -> Claim {
    is_sequential(System::Lapse, false)?;
    is_sequential(System::Classic, false)
}

/// Lapse §3.4: property (1), a worker's operations are executed in its order, holds while the
/// parameter moves.
#[test]
fn program_order_survives_a_relocation() -> Claim {
    let mut play =
        Play::with(Setup { location_caches: false, ..Setup::new(System::Lapse, 4, 2, 64) });
    let key = play.key();
    let localize = play.localize(of(N1), &[key])?;
    play.wait(localize)?;
    // The first push is in flight to n1 while the parameter leaves for n3; the second is issued
    // meanwhile.
    play.push(of(N2), &[key])?;
    play.deliver(N2, N0)?;
    play.localize(of(N3), &[key])?;
    play.round(N3)?;
    play.deliver(N3, N0)?;
    play.push(of(N2), &[key])?;
    let pull = play.pull(of(N2), &[key])?;
    play.run()?;
    assert_eq!(play.read(pull)[0].pushes, 0b11);
    Ok(())
}

/// Lapse §3.4 (Theorem 3), departure: in Lapse a location cache that changes between two operations
/// lets the second overtake the first. Here a node has one unanswered operation per key, so it
/// cannot.
#[test]
fn a_changing_location_cache_does_not_reorder() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    let localize = play.localize(of(N1), &[key])?;
    play.wait(localize)?;
    let warm = play.pull(of(N2), &[key])?;
    play.wait(warm)?;
    let localize = play.localize(of(N3), &[key])?;
    play.wait(localize)?;
    // n2 believes the key at n1. Its first push goes there and is slow.
    play.push(of(N2), &[key])?;
    play.deliver(N2, N1)?;
    // The home would know better. Still n2's second operation waits for the first, even if n2
    // learns that.
    let pull = play.pull(of(N2), &[key])?;
    assert!(play.network().first(N2, N3).is_none() && play.network().first(N2, N0).is_none());
    play.run()?;
    assert_eq!(play.read(pull)[0].pushes, 1, "the read is behind the push");
    assert_eq!(play.owner(key), Some(N3));
    let home = play.row(N0, key).view.packed.location();
    assert_eq!(home.map(|location| location.node), Some(N3));
    Ok(())
}
