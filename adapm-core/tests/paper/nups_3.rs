//! NuPS §3, AdaPM §A.5: techniques chosen per key before the run. Hot keys are replicated on all
//! nodes, the others relocate on request (NuPS) or stay (Parallax, AdaPM Table 1).

use adapm_core::Key;
use adapm_core::policy::System;
use adapm_core::slot::State;

use super::play::{Claim, N0, N1, N2, N3, Play, of};

/// Creates a cluster in which the first key of n0 is hot, and its second one is not.
fn cluster(system: System) -> Result<(Play, Key, Key), adapm_verify::Violation> {
    let mut play = Play::new(system);
    let keys = play.keys_of(N0, 2);
    let [hot, cold] = keys[..] else { panic!("n0 is home of two keys") };
    assert!(play.setup().is_hot(hot) && !play.setup().is_hot(cold));
    play.run()?;
    Ok((play, hot, cold))
}

/// A1: before the first access every node has a copy of a hot key, and keeps it, whatever its
/// workers' clocks.
#[test]
fn hot_keys_are_local_everywhere_from_the_beginning_to_the_end() -> Claim {
    for system in [System::Nups, System::Parallax] {
        let (mut play, hot, _) = cluster(system)?;
        let everywhere = [State::Main, State::Replica, State::Replica, State::Replica];
        assert_eq!(play.states(hot), everywhere);
        for node in [N0, N1, N2, N3] {
            let push = play.push(of(node), &[hot])?;
            let pull = play.pull(of(node), &[hot])?;
            assert!(play.is_done(push) && play.is_done(pull), "{system} at {node}");
            play.tick(node, 1_000)?;
        }
        assert_eq!(play.states(hot), everywhere);
    }
    Ok(())
}

/// NuPS §3.2: updates of replicas reach the others in the background: the sums of a round to the
/// owner, and its values back, in two messages for each holder.
#[test]
fn updates_of_hot_keys_take_two_messages_per_holder() -> Claim {
    let (mut play, hot, _) = cluster(System::Nups)?;
    play.push(of(N1), &[hot])?;
    play.push(of(N1), &[hot])?;
    let mut ways = play.ways()?;
    ways.sort();
    ways.dedup();
    let expected = ["n0 -> n1", "n0 -> n2", "n0 -> n3", "n1 -> n0", "n2 -> n0", "n3 -> n0"];
    assert_eq!(ways, expected);
    let pull = play.pull(of(N3), &[hot])?;
    assert!(play.is_done(pull) && play.read(pull)[0].pushes == 0b11);
    assert_eq!(play.run()?, [""; 0], "a read sends nothing");
    Ok(())
}

/// A2: a cold key has one copy, which NuPS relocates to whoever localizes it.
#[test]
fn cold_keys_have_one_copy_that_moves_on_request() -> Claim {
    let (mut play, _, cold) = cluster(System::Nups)?;
    let only = |node: usize| {
        let mut states = [State::None; 4];
        states[node] = State::Main;
        states
    };
    for (at, node) in [N1, N2, N3].into_iter().enumerate() {
        let localize = play.localize(of(node), &[cold])?;
        play.wait(localize)?;
        assert_eq!(play.states(cold), only(at + 1));
        play.push(of(node), &[cold])?;
        assert_eq!(play.run()?, [""; 0], "it is local");
    }
    Ok(())
}

/// A2: under Parallax a cold key stays at its home, two messages away.
#[test]
fn cold_keys_of_parallax_stay_at_their_home() -> Claim {
    let (mut play, _, cold) = cluster(System::Parallax)?;
    play.pull(of(N2), &[cold])?;
    assert_eq!(play.ways()?, ["n2 -> n0", "n0 -> n2"]);
    assert_eq!(play.states(cold), [State::Main, State::None, State::None, State::None]);
    Ok(())
}

/// Signals of workers change no technique: it was chosen before.
#[test]
fn signals_of_workers_change_nothing() -> Claim {
    for system in [System::Nups, System::Parallax] {
        let (mut play, hot, cold) = cluster(system)?;
        let before = [play.states(hot), play.states(cold)];
        play.signal(N2, cold, 0..5)?;
        play.signal(N2, hot, 0..5)?;
        assert_eq!([play.states(hot), play.states(cold)], before);
    }
    Ok(())
}

/// A3: less is remote than in a static partition, as hot keys are most of what is accessed.
#[test]
fn less_is_remote_than_in_a_static_partition() -> Claim {
    let remote = |system| {
        let mut play = Play::new(system);
        play.run()?;
        let keys = play.keys_of(N0, 2);
        let before = play.network().sent();
        for key in [keys[0], keys[0], keys[0], keys[1]] {
            let pull = play.pull(of(N1), &[key])?;
            play.wait(pull)?;
        }
        Ok::<_, adapm_verify::Violation>(play.network().sent() - before)
    };
    assert_eq!(remote(System::Classic)?, 8);
    assert_eq!(remote(System::Parallax)?, 2);
    assert_eq!(remote(System::Nups)?, 2);
    Ok(())
}
