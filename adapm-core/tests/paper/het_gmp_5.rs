//! HET-GMP §5: keys stay at their homes, each node replicates those that it accesses most, and a
//! replica may lack some changes, but no more than the bound, when a worker begins a clock.

use adapm_core::Key;
use adapm_core::policy::System;
use adapm_core::slot::State;
use adapm_verify::{Setup, Violation};

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// Creates a cluster in which all nodes replicate the first key of n0, but not its second one.
fn cluster(staleness: u32) -> Result<(Play, Key, Key), Violation> {
    let mut play = Play::new(System::HetGmp { staleness });
    let keys = play.keys_of(N0, 2);
    let [primary, alone] = keys[..] else { panic!("n0 is home of two keys") };
    play.run()?;
    Ok((play, primary, alone))
}

/// Has all workers begin their next clock. Returns the messages.
fn next_clock(play: &mut Play) -> Result<Vec<String>, Violation> {
    let calls: Result<Vec<_>, _> = play
        .workers()
        .collect::<Vec<_>>()
        .into_iter()
        .map(|who| adapm_verify::Cluster::tick(play, who))
        .collect();
    let messages = play.run()?;
    assert!(calls?.into_iter().all(|call| play.is_done(call)), "all advance together");
    Ok(messages)
}

/// Returns the number of pushes of `key` that a local read at `node` sees.
fn seen(play: &mut Play, node: adapm_core::NodeId, key: Key) -> Result<u32, Violation> {
    let pull = play.pull(of(node), &[key])?;
    assert!(play.is_done(pull), "it is local");
    Ok(play.read(pull)[0].pushes.count_ones())
}

/// HET-GMP §5.3, the intra-embedding bound: a replica is refreshed when it lacks more changes than
/// the bound, and not before.
#[test]
fn a_replica_lacks_as_many_changes_as_the_bound_and_no_more() -> Claim {
    let (mut play, key, _) = cluster(2)?;
    for (changes, lacks) in [(1, 1), (2, 2), (3, 0), (4, 1), (5, 2), (6, 0)] {
        play.push(of(N0), &[key])?;
        let messages = next_clock(&mut play)?;
        let refreshes = messages.iter().filter(|message| message.contains("Refresh")).count();
        assert_eq!(refreshes, if lacks == 0 { 3 } else { 0 }, "after {changes} changes");
        for node in [N1, N2, N3] {
            assert_eq!(seen(&mut play, node, key)?, changes - lacks, "{node} at {changes}");
        }
    }
    Ok(())
}

/// A node's own changes are none that its replica lacks: who alone writes is never refreshed.
#[test]
fn own_changes_do_not_count() -> Claim {
    let (mut play, key, _) = cluster(1)?;
    for changes in 1..=6 {
        play.push(of(N1), &[key])?;
        let messages = next_clock(&mut play)?;
        let refreshed = |node: &str| {
            let way = format!("n0 -> {node}: ");
            messages.iter().any(|message| message.starts_with(&way) && message.contains("Refresh"))
        };
        assert!(!refreshed("n1"), "at {changes}");
        assert_eq!(refreshed("n2"), changes % 2 == 0, "at {changes}");
        assert_eq!(seen(&mut play, N1, key)?, changes);
    }
    Ok(())
}

/// With a bound of 0 workers advance in supersteps.
#[test]
fn with_a_bound_of_0_everybody_sees_what_was_done_before() -> Claim {
    let (mut play, key, _) = cluster(0)?;
    for clock in 1..=4 {
        for node in [N0, N1, N2, N3] {
            play.push(of(node), &[key])?;
        }
        next_clock(&mut play)?;
        for node in [N0, N1, N2, N3] {
            assert_eq!(seen(&mut play, node, key)?, 4 * clock, "{node} at {clock}");
        }
    }
    Ok(())
}

/// HET-GMP §5.2: what has no replica is fetched from its home, and stays there.
#[test]
fn other_keys_stay_at_their_home() -> Claim {
    let (mut play, key, alone) = cluster(100)?;
    assert_eq!(play.states(key), [State::Main, State::Replica, State::Replica, State::Replica]);
    for _ in 0..2 {
        play.pull(of(N2), &[alone])?;
        assert_eq!(play.ways()?, ["n2 -> n0", "n0 -> n2"]);
        assert_eq!(play.states(alone), [State::Main, State::None, State::None, State::None]);
    }
    Ok(())
}

/// HET-GMP §5.3, the inter-embedding bound: a worker has replicas refreshed that lag behind others,
/// those and no more.
#[test]
fn a_renewal_refreshes_what_lags_within_the_bound() -> Claim {
    let mut setup = Setup::new(System::HetGmp { staleness: 100 }, 4, 2, 64);
    let at_n0 = (0..64).map(Key).filter(|key| setup.home(*key) == N0);
    let keys: Vec<Key> = at_n0.take(2).collect();
    setup.hot = Some(vec![keys.iter().copied().collect(); setup.nodes]);
    let mut play = Play::with(setup);
    play.run()?;
    for _ in 0..3 {
        play.push(of(N0), &keys)?;
    }
    next_clock(&mut play)?;
    let renewal = play.renew(of(N3), &keys[..1])?;
    assert!(!play.is_done(renewal), "the owner is asked");
    play.run()?;
    assert!(play.is_done(renewal));
    assert_eq!((seen(&mut play, N3, keys[0])?, seen(&mut play, N3, keys[1])?), (3, 0));
    assert_eq!(seen(&mut play, N2, keys[0])?, 0);
    Ok(())
}

/// A main copy, and a key that is not here, are nothing to do; a replica that lacks nothing is
/// refreshed all the same, as its version has grown with what its node has changed itself.
#[test]
fn a_renewal_asks_for_replicas_alone() -> Claim {
    let (mut play, key, alone) = cluster(100)?;
    let nothing = [play.renew(of(N0), &[key, alone])?, play.renew(of(N1), &[alone])?];
    assert!(nothing.into_iter().all(|renewal| play.is_done(renewal)));
    assert_eq!(play.ways()?, [""; 0]);
    play.push(of(N1), &[key])?;
    next_clock(&mut play)?;
    let renewal = play.renew(of(N1), &[key, key])?;
    play.run()?;
    assert!(play.is_done(renewal));
    assert_eq!(seen(&mut play, N1, key)?, 1);
    Ok(())
}

/// A `wait_sync` refreshes whatever lags.
#[test]
fn a_wait_for_all_changes_knows_no_bound() -> Claim {
    let (mut play, key, _) = cluster(100)?;
    play.push(of(N0), &[key])?;
    next_clock(&mut play)?;
    assert_eq!(seen(&mut play, N3, key)?, 0);
    let sync = play.wait_sync(of(N3))?;
    play.run()?;
    assert!(play.is_done(sync));
    assert_eq!(seen(&mut play, N3, key)?, 1);
    Ok(())
}
