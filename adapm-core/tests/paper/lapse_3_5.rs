//! Lapse §3.5: location management by home nodes.

use adapm_core::policy::System;
use adapm_core::slot::PackedState;
use adapm_verify::Setup;

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// Lapse §3.5: homes are assigned statically, and every parameter starts at its home.
#[test]
fn parameters_start_at_their_homes() {
    let play = Play::new(System::Lapse);
    for key in play.keys() {
        assert_eq!(play.owner(key), Some(play.setup().home(key)));
    }
}

/// Lapse §3.5: the home knows which node holds the parameter, after any number of relocations.
#[test]
fn the_home_knows_the_owner() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    for owner in [N1, N2, N3, N2, N1] {
        let localize = play.localize(of(owner), &[key])?;
        play.wait(localize)?;
        let record = play.row(N0, key).view.packed.location();
        assert_eq!(record.map(|location| location.node), Some(owner));
    }
    Ok(())
}

/// Lapse §3.5: relocations reported in another order than they happened leave the home with the
/// latest.
#[test]
fn the_home_keeps_the_highest_counter() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    let localize = play.localize(of(N1), &[key])?;
    play.wait(localize)?;
    // n1 gives it to n2 and n2 to n3; n1's report to the home arrives last.
    play.localize(of(N2), &[key])?;
    play.round(N2)?;
    play.deliver(N2, N0)?;
    play.deliver(N0, N1)?;
    play.deliver(N1, N2)?;
    let warm = play.localize(of(N3), &[key])?;
    play.round(N3)?;
    play.deliver(N3, N0)?;
    play.deliver(N0, N1)?;
    play.deliver(N1, N2)?;
    play.deliver(N2, N3)?;
    play.deliver(N2, N0)?;
    assert!(play.is_done(warm), "n3 is owner, and the first fact is still on its way");
    play.run()?;
    let record = play.row(N0, key).view.packed.location().expect("the home knows");
    assert_eq!((record.node, record.counter.0), (N3, 3));
    Ok(())
}

/// Lapse §3.5: without caches a node stores locations only for keys that have their home there (and
/// those it gave away itself).
#[test]
fn without_caches_only_homes_store_locations() -> Claim {
    let mut play =
        Play::with(Setup { location_caches: false, ..Setup::new(System::Lapse, 4, 2, 64) });
    let key = play.key();
    let localize = play.localize(of(N1), &[key])?;
    play.wait(localize)?;
    for _ in 0..3 {
        let pull = play.pull(of(N2), &[key])?;
        play.wait(pull)?;
    }
    assert_eq!(play.row(N2, key).view.packed, PackedState::EMPTY);
    assert_eq!(play.row(N3, key).view.packed, PackedState::EMPTY);
    Ok(())
}

/// Lapse §3.5: a relocation by the home itself needs no message about the location.
#[test]
fn the_home_needs_no_telling_of_its_own_relocations() -> Claim {
    let mut play = Play::new(System::Lapse);
    let key = play.key();
    play.localize(of(N1), &[key])?;
    assert_eq!(play.ways()?, ["n1 -> n0", "n0 -> n1"]);
    play.localize(of(N0), &[key])?;
    assert_eq!(play.ways()?, ["n0 -> n1", "n1 -> n0"]);
    assert_eq!(play.owner(key), Some(N0));
    Ok(())
}
