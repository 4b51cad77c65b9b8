//! AdaPM §B.1.2 and the departure from it: a change waits where it was made until enough others
//! wait with it, or it is old; whatever waits for changes gets all of them at once.

use std::sync::Arc;

use adapm_core::clock::Clock;
use adapm_core::policy::{Adaptive, Patience, Placement, Policy, System, View};
use adapm_core::slot::State::{Main, None as Absent, Replica};
use adapm_core::stats::Stats;
use adapm_core::{Key, NodeId, WorkerId};
use adapm_verify::{Setup, Violation};

use super::play::{Claim, N0, N1, N2, Play, of};

/// So few updates that a test can tell each from the others.
const PATIENCE: Patience = Patience { updates: 12, nanos: Patience::USUAL.nanos };
/// What a change may wait beyond its age: for the next time at which any are due, an eighth of the
/// age, and for the next round.
const SLACK_NANOS: u64 = PATIENCE.nanos / 8 + 2_500_000;
/// Longer than any change may take.
const LONG_NANOS: u64 = 10 * PATIENCE.nanos;
/// More than nodes have to do in that time.
const TIMES_MAX: usize = 10_000;

/// `adapm` with another patience.
struct Waiting(Adaptive);

impl Policy for Waiting {
    fn place(&mut self, view: &View<'_>) -> Placement {
        self.0.place(view)
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.0.act_before(worker, clock)
    }

    fn patience(&self) -> Option<Patience> {
        Some(PATIENCE)
    }
}

/// Makes n1 the owner of a key, and the first nodes but n1 its holders, with long intents.
fn shared(nodes: usize) -> Result<(Play, Key), Violation> {
    let policy = Arc::new(|_| Box::new(Waiting(Adaptive::new(1))) as Box<_>);
    let ran_nanos = 100 * PATIENCE.nanos;
    let setup = Setup { policy, ran_nanos, ..Setup::new(System::Adapm, nodes, 1, 64) };
    let mut play = Play::with(setup);
    let key = play.keys_of(N1, 1)[0];
    for node in [N1, N0, N2].into_iter().take(nodes) {
        play.signal(node, key, 0..1_000)?;
    }
    assert_eq!((play.state(N1, key), play.state(N0, key)), (Main, Replica));
    Ok((play, key))
}

fn stats(play: &Play, node: NodeId) -> &Stats {
    play.member(node).node.engine().stats()
}

fn deltas(play: &Play) -> u64 {
    stats(play, N0).delta_updates.count()
}

/// Lets `node` do what is due next, at its time, with all messages delivered.
fn next(play: &mut Play, node: NodeId) -> Claim {
    let now = play.now();
    let until = play.member(node).node.until().unwrap_or(now);
    play.advance_time(until.nanos_since(now));
    play.timeout(node)?;
    play.deliver_all()
}

/// Lets nodes do what is due, the earliest first, until `is_done` or for `nanos`. Returns the
/// nanoseconds that it took.
fn run_until(
    play: &mut Play,
    nanos: u64,
    is_done: impl Fn(&Play) -> bool,
) -> Result<u64, Violation> {
    let began = play.now();
    play.nodes().try_for_each(|node| play.drain(node))?;
    for _ in 0..TIMES_MAX {
        if is_done(play) || play.now().nanos_since(began) >= nanos {
            break;
        }
        let due = |node: &NodeId| play.member(*node).node.until();
        let nodes = play.nodes().filter(|node| due(node).is_some());
        let Some(node) = nodes.min_by_key(due) else { break };
        next(play, node)?;
    }
    Ok(play.now().nanos_since(began))
}

#[test]
fn a_change_goes_with_enough_others() -> Claim {
    let (mut play, key) = shared(2)?;
    let share = PATIENCE.updates / 2;
    for _ in 1..share {
        play.push(of(N0), &[key])?;
    }
    run_until(&mut play, 5_000_000, |play| deltas(play) > 0)?;
    assert_eq!(deltas(&play), 0, "one is missing");
    play.push(of(N0), &[key])?;
    let nanos = run_until(&mut play, PATIENCE.nanos, |play| deltas(play) > 0)?;
    assert!(nanos <= SLACK_NANOS, "{nanos}");
    assert_eq!(stats(&play, N0).delta_updates.max, share.into());
    Ok(())
}

/// Its rate tells when to look at it: a key that is pushed twice as fast is looked at twice as
/// soon.
#[test]
fn a_change_is_looked_at_when_its_rate_foretells_it() -> Claim {
    for pause in [100_000, 200_000, 400_000] {
        let (mut play, key) = shared(2)?;
        let began = play.now();
        let share = u64::from(PATIENCE.updates / 2);
        for _ in 0..2 * share {
            if deltas(&play) > 0 {
                break;
            }
            play.push(of(N0), &[key])?;
            play.drain(N0)?;
            let next = play.now().plus_nanos(pause);
            let is_due =
                |play: &Play| play.member(N0).node.until().is_some_and(|until| until <= next);
            for _ in 0..10 {
                if is_due(&play) {
                    self::next(&mut play, N0)?;
                }
            }
            let rest = next.nanos_since(play.now());
            play.advance_time(rest);
        }
        let (took, expected) = (play.now().nanos_since(began), share * pause);
        assert!((expected..=expected + SLACK_NANOS).contains(&took), "{took} for {expected}");
    }
    Ok(())
}

#[test]
fn a_rare_change_goes_by_its_age() -> Claim {
    let (mut play, key) = shared(2)?;
    play.push(of(N0), &[key])?;
    let nanos = run_until(&mut play, LONG_NANOS, |play| deltas(play) > 0)?;
    assert!((PATIENCE.nanos..=PATIENCE.nanos + SLACK_NANOS).contains(&nanos), "{nanos}");
    let waited = stats(&play, N0).delays.max;
    assert!((PATIENCE.nanos - SLACK_NANOS..=PATIENCE.nanos + SLACK_NANOS).contains(&waited));
    Ok(())
}

/// The owner waits likewise before it tells the other holders, for its own changes and for theirs.
#[test]
fn an_owner_tells_of_enough_changes_or_of_old_ones() -> Claim {
    let refreshes = |play: &Play| stats(play, N1).refreshes;
    let own = PATIENCE.nanos / 8;
    for (pushes, least) in [(1, own), (PATIENCE.updates - 1, own), (PATIENCE.updates, 0)] {
        let (mut play, key) = shared(2)?;
        for _ in 0..pushes {
            play.push(of(N1), &[key])?;
        }
        let nanos = run_until(&mut play, LONG_NANOS, |play| refreshes(play) > 0)?;
        assert!((least..=least + SLACK_NANOS).contains(&nanos), "{pushes}: {nanos}");
    }
    // What a holder sends waits here as well; it comes after it has waited there.
    let (mut play, key) = shared(3)?;
    play.push(of(N0), &[key])?;
    let nanos = run_until(&mut play, LONG_NANOS, |play| refreshes(play) > 0)?;
    let least = PATIENCE.nanos + own;
    assert!((least..=least + 2 * SLACK_NANOS).contains(&nanos), "{nanos}");
    assert_eq!(refreshes(&play), 1, "of n2 alone");
    Ok(())
}

/// Whoever waits for changes, or ends, has all of them go at once; so has a replica that goes.
#[test]
fn what_waits_for_changes_gets_all_at_once() -> Claim {
    type Call = fn(&mut Play) -> Claim;
    let calls: [(&str, Call); 5] = [
        ("wait_sync", |play| play.wait_sync(of(N0)).map(drop)),
        ("quiesce", |play| play.nodes().try_for_each(|node| play.quiesce(of(node)).map(drop))),
        ("barrier", |play| play.barrier(of(N0)).map(drop)),
        ("end", |play| play.end(of(N0)).map(drop)),
        ("release", |play| {
            play.advance_clock(of(N0), 1_000);
            play.round(N0)
        }),
    ];
    for (name, call) in calls {
        for is_waiting in [false, true] {
            let (mut play, key) = shared(2)?;
            play.push(of(N0), &[key])?;
            if is_waiting {
                run_until(&mut play, 5_000_000, |_| false)?;
                assert_eq!(deltas(&play), 0);
            }
            call(&mut play)?;
            play.deliver_all()?;
            let nanos = run_until(&mut play, PATIENCE.nanos, |play| deltas(play) > 0)?;
            assert!(deltas(&play) == 1 && nanos <= SLACK_NANOS, "{name}, {is_waiting}: {nanos}");
        }
    }
    Ok(())
}

/// A change that comes while a `wait_sync` waits goes at once, too: else it would wait behind the
/// mark, and every other call behind it.
#[test]
fn no_change_waits_while_a_call_waits() -> Claim {
    let (mut play, key) = shared(2)?;
    let sync = play.wait_sync(of(N0))?;
    play.push(of(N0), &[key])?;
    play.round(N0)?;
    assert_eq!(deltas(&play), 1);
    play.deliver_all()?;
    play.wait(sync)?;
    Ok(())
}

/// A change that has left with its key, when this node became the owner, is no change of a later
/// replica: else the node would never come to rest.
#[test]
fn a_change_is_forgotten_when_its_key_is_handed_over() -> Claim {
    let (mut play, key) = shared(2)?;
    let reach = |play: &mut Play, node: NodeId, state| {
        for _ in 0..10 {
            if play.state(node, key) == state {
                break;
            }
            play.nodes().try_for_each(|node| play.round(node))?;
            play.deliver_all()?;
        }
        assert_eq!(play.state(node, key), state, "{node}");
        Ok::<_, Violation>(())
    };
    play.push(of(N0), &[key])?;
    // By its rate so far, the next look at it is the last.
    run_until(&mut play, PATIENCE.nanos / 4, |_| false)?;
    play.advance_clock(of(N1), 1_000);
    reach(&mut play, N0, Main)?;
    // It goes, and comes back as a replica that is only read.
    play.advance_clock(of(N0), 1_000);
    play.intent(of(N1), &[key], 1_000..2_000)?;
    reach(&mut play, N1, Main)?;
    play.intent(of(N0), &[key], 1_000..2_000)?;
    reach(&mut play, N0, Replica)?;
    // Its intent ends as everything goes at once.
    play.advance_clock(of(N0), 1_000);
    let sync = play.wait_sync(of(N0))?;
    reach(&mut play, N0, Absent)?;
    play.wait(sync)?;
    play.run()?;
    assert_eq!((deltas(&play), play.member(N0).node.engine().side_entries()), (0, 0));
    Ok(())
}

/// A change is never older than a hundredth of the run: what is learnt first matters most.
#[test]
fn a_young_run_does_not_wait_long() -> Claim {
    for (ran_nanos, least) in [(0, 0), (1_000_000_000, PATIENCE.nanos / 2)] {
        let mut play = Play::with(Setup { ran_nanos, ..Setup::new(System::Adapm, 2, 1, 64) });
        let key = play.keys_of(N1, 1)[0];
        play.signal(N1, key, 0..1_000)?;
        play.signal(N0, key, 0..1_000)?;
        play.push(of(N0), &[key])?;
        let nanos = run_until(&mut play, LONG_NANOS, |play| deltas(play) > 0)?;
        assert!((least..=least + SLACK_NANOS).contains(&nanos), "{ran_nanos}: {nanos}");
    }
    Ok(())
}

/// Systems with promises of their own on staleness send each change with the next round.
#[test]
fn other_systems_do_not_wait() -> Claim {
    for system in [System::Full, System::Essp { staleness: 3 }] {
        let mut play = Play::with(Setup::new(system, 2, 1, 64));
        let key = play.keys_of(N1, 1)[0];
        let pull = play.pull(of(N0), &[key])?;
        play.wait(pull)?;
        play.intent(of(N0), &[key], 0..1_000)?;
        play.run()?;
        assert_eq!(play.state(N0, key), Replica, "{system}");
        play.push(of(N0), &[key])?;
        play.round(N0)?;
        assert_eq!(deltas(&play), 1, "{system}");
        assert_eq!(System::policy(system, 1).patience(), None, "{system}");
    }
    assert_eq!(System::Adapm.policy(1).patience(), Some(Patience::USUAL));
    Ok(())
}
