//! The pace of rounds: as fast as allowed while workers wait or rounds carry much, otherwise
//! slower.

use adapm_core::policy::System;
use adapm_core::slot::State;
use adapm_core::{Key, NodeId, WorkerId};
use adapm_verify::oracle::NodeWorker;
use adapm_verify::{Cluster, Setup, Violation};

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
type Call = fn(&mut Cluster, Key) -> Result<(), Violation>;

const LEAST_NANOS: u64 = 500_000;

fn of(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

/// Creates two nodes with 1,200 keys, the first of which is busy: its intent lasts.
fn busy() -> Result<(Cluster, Vec<Key>), Violation> {
    let mut cluster = Cluster::new(Setup::new(System::Adapm, 2, 1, 1_200));
    let home = |key: &Key| cluster.setup().home(*key) == N1;
    let far: Vec<Key> = cluster.keys().filter(home).collect();
    let own: Vec<Key> = cluster.keys().filter(|key| !home(key)).take(1).collect();
    cluster.intent(of(N0), &own, 0..1_000)?;
    Ok((cluster, far))
}

/// Returns the nanoseconds between rounds of the busy node, for `rounds` rounds.
fn pauses(cluster: &mut Cluster, rounds: usize) -> Result<Vec<u64>, Violation> {
    let mut pauses = Vec::new();
    for _ in 0..rounds {
        let before = (cluster.now(), cluster.member(N0).node.engine().stats().rounds);
        cluster.round(N0)?;
        assert_eq!(
            cluster.member(N0).node.engine().stats().rounds,
            before.1 + 1,
            "each time is when a round is due"
        );
        pauses.push(cluster.now().nanos_since(before.0));
        cluster.deliver_all()?;
    }
    Ok(pauses)
}

#[test]
fn rounds_that_carry_little_are_begun_less_often() -> Result<(), Violation> {
    let (mut cluster, _) = busy()?;
    let pauses = pauses(&mut cluster, 20)?;
    assert!(pauses[1..8].iter().all(|pause| *pause == LEAST_NANOS), "at the start: {pauses:?}");
    assert!(pauses[12..].iter().all(|pause| *pause == 4 * LEAST_NANOS), "in the end: {pauses:?}");
    Ok(())
}

/// A key that is accessed before it is here shows that rounds are too far apart; so does a wait for
/// all nodes.
#[test]
fn rounds_hurry_where_workers_wait() -> Result<(), Violation> {
    let calls: [Call; 4] = [
        |cluster, key| cluster.pull(of(N0), &[key]).map(drop),
        |cluster, key| cluster.localize(of(N0), &[key]).map(drop),
        |cluster, _| cluster.wait_sync(of(N0)).map(drop),
        |cluster, _| cluster.quiesce(of(N0)).map(drop),
    ];
    for call in calls {
        let (mut cluster, far) = busy()?;
        pauses(&mut cluster, 20)?;
        call(&mut cluster, far[0])?;
        cluster.deliver_all()?;
        let pauses = pauses(&mut cluster, 20)?;
        assert!(pauses[..8].iter().all(|pause| *pause <= LEAST_NANOS), "{pauses:?}");
        assert!(pauses[12..].iter().all(|pause| *pause == 4 * LEAST_NANOS), "{pauses:?}");
    }
    Ok(())
}

#[test]
fn rounds_that_carry_much_are_begun_as_often_as_any_may() -> Result<(), Violation> {
    let (mut cluster, far) = busy()?;
    pauses(&mut cluster, 20)?;
    let mut last = 0;
    for keys in far.chunks(300) {
        cluster.intent(of(N0), keys, 0..1_000)?;
        last = *pauses(&mut cluster, 1)?.last().expect("one round");
    }
    assert!(last < 4 * LEAST_NANOS, "{last}");
    Ok(())
}

/// A wait for refreshed replicas would otherwise take two rounds of the timer, and a quiesce more.
#[test]
fn a_mark_begins_a_round_at_once() -> Result<(), Violation> {
    let (mut cluster, far) = busy()?;
    for node in [N0, N1] {
        cluster.intent(of(node), &far[..1], 0..1_000)?;
    }
    for node in [N1, N0, N1, N0] {
        cluster.round(node)?;
        cluster.deliver_all()?;
    }
    assert_eq!(cluster.state(N0, far[0]), State::Replica);
    pauses(&mut cluster, 20)?;
    cluster.wait_sync(of(N0))?;
    assert_eq!(pauses(&mut cluster, 2)?, [0, LEAST_NANOS], "the first brings the mark");
    Ok(())
}

/// If many keys are signalled at once, each round asks for as many as it examines; none is
/// forgotten.
#[test]
fn what_is_wanted_beyond_a_bound_waits_for_later_rounds() -> Result<(), Violation> {
    let mut cluster =
        Cluster::new(Setup { requests_max: 3, ..Setup::new(System::Adapm, 2, 1, 40) });
    let home = |key: &Key| cluster.setup().home(*key) == N1;
    let far: Vec<Key> = cluster.keys().filter(home).take(8).collect();
    cluster.intent(of(N0), &far, 0..1_000)?;
    for local in [0, 3, 6, 8] {
        let count = |cluster: &Cluster| {
            far.iter().filter(|key| cluster.state(N0, **key) == State::Main).count()
        };
        assert_eq!(count(&cluster), local);
        cluster.round(N0)?;
        cluster.deliver_all()?;
    }
    Ok(())
}

/// A peer that owes an answer is not asked again before it has come, so keys for it begin no round.
#[test]
fn what_waits_for_an_answer_begins_no_round() -> Result<(), Violation> {
    let mut cluster = Cluster::new(Setup::new(System::Adapm, 2, 1, 40));
    let home = |key: &Key| cluster.setup().home(*key) == N1;
    let far: Vec<Key> = cluster.keys().filter(home).take(2).collect();
    let rounds = |cluster: &Cluster| cluster.member(N0).node.engine().stats().rounds;
    cluster.localize(of(N0), &far[..1])?;
    cluster.round(N0)?;
    cluster.localize(of(N0), &far[1..])?;
    let begun = rounds(&cluster);
    for _ in 0..10 {
        cluster.advance_time(100 * LEAST_NANOS);
        cluster.timeout(N0)?;
    }
    assert_eq!(rounds(&cluster), begun + 1, "one puts it off");
    cluster.deliver_all()?;
    assert_eq!(cluster.state(N0, far[0]), State::Main);
    cluster.round(N0)?;
    cluster.deliver_all()?;
    assert_eq!(cluster.state(N0, far[1]), State::Main);
    Ok(())
}
