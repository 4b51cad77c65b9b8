//! Nodes whose links are alive and whose engines do not answer, each claim a story of its own
//! (protocol, "Links"; `engine/watch.rs`): nodes that wait for one find out, by any route, and no
//! other node is blamed.
//!
//! Random orders are in `tests/properties.rs`.

use adapm_core::engine::{Input, Reason};
use adapm_core::error::{InputError, OpError};
use adapm_core::policy::System;
use adapm_core::slot::State::Requested;
use adapm_core::{Key, NodeId, WorkerId};
use adapm_verify::oracle::NodeWorker;
use adapm_verify::{Cluster, Setup, Violation};

type Case = Result<(), Violation>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);
const MINUTE_NANOS: u64 = 60_000_000_000;
/// One check that asks, six that find no answer.
const LOOKS: usize = 7;

fn of(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

fn cluster(system: System) -> Cluster {
    let mut setup = Setup::new(system, 3, 1, 36);
    setup.unresponsive_nanos = Some(MINUTE_NANOS);
    Cluster::new(setup)
}

fn key_of(cluster: &Cluster, node: NodeId) -> Key {
    cluster.setup().key_of(node)
}

/// Stops the node's engine without telling others.
fn fall_silent(cluster: &mut Cluster, node: NodeId) {
    cluster.vanish(node, |_, count| count);
}

/// The home passes an operation on to an owner that does not answer: the origin, which has asked
/// only the home, blames the owner.
#[test]
fn an_operation_passed_on_fails_by_the_node_that_has_it() -> Case {
    let mut cluster = cluster(System::Lapse);
    let key = key_of(&cluster, N0);
    let localize = cluster.localize(of(N2), &[key])?;
    cluster.wait(localize)?;
    fall_silent(&mut cluster, N2);
    let pull = cluster.pull(of(N1), &[key])?;
    cluster.look_around(LOOKS - 1)?;
    assert!(!cluster.is_done(pull));
    cluster.look_around(1)?;
    assert!(cluster.is_failed(pull));
    assert!(
        cluster.losses().knows(N1, N2) && !cluster.losses().is_told(N0),
        "n0 waits for nothing"
    );
    Ok(())
}

/// An access that is parked for a copy in flight waits for the node that was asked for the copy.
#[test]
fn an_access_parked_for_a_copy_fails() -> Case {
    let mut cluster = cluster(System::Adapm);
    let key = key_of(&cluster, N2);
    cluster.intent(of(N0), &[key], 0..9)?;
    cluster.round(N0)?;
    assert_eq!(cluster.state(N0, key), Requested);
    fall_silent(&mut cluster, N2);
    let push = cluster.push(of(N0), &[key])?;
    cluster.look_around(LOOKS)?;
    assert!(cluster.is_failed(push));
    Ok(())
}

/// Collective calls wait for the coordinator: if that does not answer, they end as well.
#[test]
fn calls_of_all_fail_whoever_is_silent() -> Case {
    for call in [Cluster::barrier, Cluster::quiesce, Cluster::leave] {
        for silent in [N0, N2] {
            let mut cluster = cluster(System::Adapm);
            let one = call(&mut cluster, of(N1))?;
            cluster.deliver_all()?;
            fall_silent(&mut cluster, silent);
            cluster.look_around(LOOKS)?;
            assert!(cluster.is_failed(one), "n1 waits for {silent}");
        }
    }
    Ok(())
}

/// A barrier waits for slow workers as long as necessary: their node answers.
#[test]
fn who_waits_for_slow_workers_blames_nobody() -> Case {
    let mut cluster = cluster(System::Adapm);
    let barrier = cluster.barrier(of(N1))?;
    cluster.look_around(10 * LOOKS)?;
    assert!(!cluster.is_done(barrier));
    for node in [N0, N2] {
        cluster.barrier(of(node))?;
    }
    cluster.wait(barrier)?;
    assert!(!cluster.is_failed(barrier));
    Ok(())
}

/// While answers come, however slowly, their sender is spared: here one per nearly the allowed
/// time.
#[test]
fn who_answers_slowly_is_spared() -> Case {
    let mut cluster = cluster(System::Lapse);
    let keys: Vec<Key> = cluster.keys().filter(|key| cluster.setup().home(*key) == N2).collect();
    let mut pulls = Vec::new();
    for &key in &keys {
        pulls.push(cluster.pull(of(N0), &[key])?);
    }
    cluster.intent(of(N0), &keys[..1], 0..9)?;
    while cluster.deliver(N0, N2)? {}
    let answers = cluster.network().queue(N2, N0).count();
    assert!(answers >= 5, "each pull has its answer");
    for _ in 0..answers {
        for _ in 1..LOOKS - 1 {
            cluster.look_behind(N0)?;
            cluster.round(N0)?;
            for (from, to) in [(N0, N2), (N0, N1), (N1, N0)] {
                cluster.deliver(from, to)?;
            }
        }
        cluster.deliver(N2, N0)?;
    }
    cluster.settle()?;
    assert!(pulls.iter().all(|pull| cluster.is_done(*pull) && !cluster.is_failed(*pull)));
    Ok(())
}

/// Traffic on a slow link is not silence: the driver reports it.
#[test]
fn a_slow_way_is_no_silence() -> Case {
    let mut cluster = cluster(System::Adapm);
    let key = key_of(&cluster, N2);
    let pull = cluster.pull(of(N0), &[key])?;
    cluster.intent(of(N0), &[key], 0..9)?;
    for _ in 0..5 * LOOKS {
        cluster.look(N0)?;
        cluster.round(N0)?;
    }
    assert!(!cluster.is_done(pull));
    cluster.wait(pull)?;
    assert!(!cluster.is_failed(pull));
    Ok(())
}

/// A node that was stopped for hours, with an unread answer, does not take the pause for its peers'
/// silence.
#[test]
fn who_was_stopped_blames_nobody() -> Case {
    let mut cluster = cluster(System::Adapm);
    let key = key_of(&cluster, N2);
    cluster.intent(of(N0), &[key], 0..9)?;
    cluster.round(N0)?;
    let pull = cluster.pull(of(N0), &[key])?;
    while cluster.deliver(N0, N2)? {}
    cluster.advance_time(100 * MINUTE_NANOS);
    cluster.look_behind(N0)?;
    cluster.look_behind(N0)?;
    cluster.wait(pull)?;
    assert!(!cluster.is_failed(pull));
    Ok(())
}

/// A cluster at rest makes no checks and sends nothing.
#[test]
fn a_cluster_at_rest_stays_silent() -> Case {
    let mut cluster = cluster(System::Adapm);
    let key = key_of(&cluster, N2);
    let pull = cluster.pull(of(N0), &[key])?;
    cluster.wait(pull)?;
    cluster.look_around(LOOKS)?;
    let sent = cluster.network().sent();
    cluster.look_around(LOOKS)?;
    assert_eq!(cluster.network().sent(), sent);
    let member = cluster.member(N0);
    assert_eq!((member.node.until(), member.node.reason()), (None, Reason::Idle));
    Ok(())
}

#[test]
fn only_peers_are_heard() {
    let mut node = cluster(System::Adapm).into_member(N0);
    for no_peer in [N0, NodeId(3), NodeId(u16::MAX)] {
        let (told, _) = node.feed(adapm_core::Instant::ZERO, Input::Heard(no_peer));
        assert_eq!(told, Err(InputError::Caller(OpError::NotAPeer { node: no_peer })));
    }
}
