//! A frozen node asks for no key, hands none over unasked, and answers (protocol, "Operations").

use adapm_core::policy::System;
use adapm_core::slot::State::{Main, None, Replica, Requested};
use adapm_core::wire::message::{Body, Quiesce};
use adapm_core::{Key, NodeId, WorkerId};
use adapm_verify::oracle::NodeWorker;
use adapm_verify::{Cluster, Setup, Violation};

type Case = Result<(), Violation>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);

fn of(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

/// Creates two nodes with two workers each, and a key whose home is node 0.
fn cluster(system: System) -> (Cluster, Key) {
    let cluster = Cluster::new(Setup::new(system, 2, 2, 36));
    let key = cluster.keys().find(|key| cluster.setup().home(*key) == N0);
    (cluster, key.expect("a node has many keys"))
}

/// Lets time pass and messages arrive, as if nobody came to rest.
fn pass(cluster: &mut Cluster) -> Case {
    for _ in 0..20 {
        for node in [N0, N1] {
            cluster.round(node)?;
        }
        cluster.deliver_all()?;
    }
    Ok(())
}

#[test]
fn a_frozen_node_asks_for_nothing_until_it_thaws() -> Case {
    let (mut cluster, key) = cluster(System::Adapm);
    let frozen = cluster.freeze(of(N1))?;
    assert!(cluster.is_done(frozen), "nothing was asked for");
    cluster.intent(of(N1), &[key], 0..100)?;
    pass(&mut cluster)?;
    assert_eq!(cluster.state(N1, key), None);
    cluster.thaw(of(N1))?;
    cluster.settle()?;
    assert_eq!(cluster.state(N1, key), Main);
    Ok(())
}

#[test]
fn a_freeze_ends_when_all_is_answered_that_was_asked() -> Case {
    let (mut cluster, key) = cluster(System::Adapm);
    cluster.intent(of(N1), &[key], 0..100)?;
    cluster.round(N1)?;
    assert_eq!(cluster.state(N1, key), Requested);
    let frozen = cluster.freeze(of(N1))?;
    assert!(!cluster.is_done(frozen));
    // The owner is frozen, too, and answers.
    cluster.freeze(of(N0))?;
    cluster.deliver_all()?;
    assert!(cluster.is_done(frozen));
    assert_eq!(cluster.state(N1, key), Main);
    [N0, N1].into_iter().try_for_each(|node| cluster.thaw(of(node)).map(drop))?;
    cluster.settle()
}

#[test]
fn a_node_is_frozen_until_all_have_thawed_it_or_ended() -> Case {
    let (mut cluster, key) = cluster(System::Adapm);
    let [first, second] = [0, 1].map(|worker| (N1, WorkerId(worker)));
    for who in [first, second, first] {
        let frozen = cluster.freeze(who)?;
        assert!(cluster.is_done(frozen));
    }
    cluster.intent(first, &[key], 0..100)?;
    cluster.thaw(first)?;
    pass(&mut cluster)?;
    assert_eq!(cluster.state(N1, key), None);
    cluster.end(second)?;
    cluster.settle()?;
    assert_eq!(cluster.state(N1, key), Main);
    Ok(())
}

#[test]
fn a_frozen_owner_hands_over_only_what_was_asked_for() -> Case {
    let (mut cluster, key) = cluster(System::Adapm);
    cluster.intent(of(N0), &[key], 0..10)?;
    cluster.settle()?;
    cluster.intent(of(N1), &[key], 0..100)?;
    cluster.settle()?;
    assert_eq!(cluster.state(N1, key), Replica);
    // Its only holder keeps on wanting it, so the owner decides to hand it over.
    cluster.push(of(N0), &[key])?;
    cluster.advance_clock(of(N0), 10);
    cluster.round(N0)?;
    cluster.freeze(of(N0))?;
    pass(&mut cluster)?;
    assert_eq!([N0, N1].map(|node| cluster.state(node, key)), [Main, Replica]);
    let [main, replica] = [N0, N1].map(|node| cluster.row(node, key).value.clone());
    assert_eq!(main, replica, "it is refreshed all the same");
    cluster.thaw(of(N0))?;
    cluster.settle()?;
    assert_eq!(cluster.state(N1, key), Main);
    Ok(())
}

#[test]
fn a_pull_of_a_frozen_node_sets_up_no_copy() -> Case {
    let (mut cluster, key) = cluster(System::Ssp { staleness: 3 });
    cluster.freeze(of(N1))?;
    let pull = cluster.pull(of(N1), &[key])?;
    cluster.deliver_all()?;
    assert!(cluster.is_done(pull));
    assert_eq!(cluster.state(N1, key), None);
    cluster.thaw(of(N1))?;
    cluster.pull(of(N1), &[key])?;
    cluster.deliver_all()?;
    assert_eq!(cluster.state(N1, key), Replica);
    cluster.settle()
}

#[test]
fn a_loss_thaws_a_node_and_freeze_and_thaw_fail_behind_it() -> Case {
    let mut setup = Setup::new(System::Adapm, 3, 1, 36);
    setup.losses = 1;
    let mut cluster = Cluster::new(setup);
    let key = cluster.keys().find(|key| cluster.setup().home(*key) == N0).expect("many keys");
    for node in [N0, N1] {
        cluster.intent(of(node), &[key], 0..100)?;
        cluster.settle()?;
    }
    assert_eq!(cluster.state(N1, key), Replica);
    let other = cluster.keys().find(|key| cluster.setup().home(*key) == NodeId(2));
    cluster.intent(of(N1), &[other.expect("many keys")], 0..100)?;
    cluster.round(N1)?;
    let waits = cluster.freeze(of(N1))?;
    cluster.push(of(N1), &[key])?;
    cluster.lose(NodeId(2))?;
    let behind = [cluster.freeze(of(N1))?, cluster.thaw(of(N1))?];
    assert!([waits].into_iter().chain(behind).all(|op| cluster.is_failed(op)));
    // At rest the push is in the main copy: rounds go on.
    cluster.settle()?;
    let [main, replica] = [N0, N1].map(|node| cluster.row(node, key).value.clone());
    assert_eq!(main, replica);
    Ok(())
}

/// Delivers messages until none is left but those that `is_late` selects, and those behind them.
fn deliver_but(cluster: &mut Cluster, is_late: fn(NodeId, NodeId, &Body) -> bool) -> Case {
    loop {
        let is_due = |way: &(NodeId, NodeId)| {
            let first = cluster.network().first(way.0, way.1);
            first.is_some_and(|message| !is_late(way.0, way.1, &message.body))
        };
        let Some((from, to)) = cluster.network().loaded().into_iter().find(is_due) else {
            return Ok(());
        };
        cluster.deliver(from, to)?;
    }
}

/// Node 2 learns last that the quiesce has ended. Before it freezes, a key of it is due to node 1,
/// which gets it only as it looks for silent peers at the barrier; and the key arrives after the
/// end of the barrier. The snapshot has it all the same.
#[test]
fn a_snapshot_has_what_was_handed_over_while_nodes_waited_for_the_last_to_freeze() -> Case {
    let mut setup = Setup::new(System::Adapm, 3, 1, 36);
    setup.unresponsive_nanos = Some(60_000_000);
    let mut cluster = Cluster::new(setup);
    let key = cluster.setup().key_of(N2);
    for (node, clocks) in [(N2, 0..10), (N1, 0..100)] {
        cluster.intent(of(node), &[key], clocks)?;
        cluster.push(of(node), &[key])?;
        cluster.settle()?;
    }
    let workers = [N0, N1, N2].map(of);
    for who in workers {
        cluster.snapshot(who)?;
    }
    let ends_quiesce =
        |_, to, body: &Body| to == N2 && matches!(body, Body::Quiesce(Quiesce::Done { .. }));
    for _ in 0..20 {
        deliver_but(&mut cluster, ends_quiesce)?;
        [N0, N1, N2].into_iter().try_for_each(|node| cluster.round(node))?;
    }
    cluster.advance_clock(of(N2), 10);
    cluster.round(N2)?;
    deliver_but(&mut cluster, ends_quiesce)?;
    assert_eq!([N1, N2].map(|node| cluster.state(node, key)), [Replica, Main], "it asks not");
    cluster.look(N1)?;
    cluster.deliver(N1, N2)?;
    assert_eq!([N1, N2].map(|node| cluster.state(node, key)), [Replica, None]);
    deliver_but(&mut cluster, |from, to, _| (from, to) == (N2, N1))?;
    assert_eq!(cluster.state(N1, key), Replica, "node 1 waits for it alone");
    cluster.settle()?;
    assert_eq!(cluster.state(N1, key), Main);
    for who in workers {
        assert_eq!(cluster.member(who.0).workers[who.1.index()].blocked, Option::None);
    }
    Ok(())
}

/// A node that waits at a barrier for a peer whose engine has stopped notices it.
#[test]
fn a_frozen_node_notices_a_peer_that_does_not_answer() -> Case {
    let mut setup = Setup::new(System::Adapm, 2, 1, 36);
    (setup.losses, setup.unresponsive_nanos) = (1, Some(60_000_000));
    let mut cluster = Cluster::new(setup);
    cluster.freeze(of(N1))?;
    cluster.barrier(of(N1))?;
    cluster.vanish(N0, |_, _| 0);
    cluster.look_around(14)?;
    cluster.check_noticed()
}
