//! Survival of the loss of a node, each claim a story of its own (protocol, "Links").
//!
//! Random orders are in `tests/properties.rs`.

use adapm_core::engine::{Event, Input, Op, OpBody, OpId};
use adapm_core::error::{Fault, InputError, OpError};
use adapm_core::policy::System;
use adapm_core::slot::State::{Main, None, Replica, Requested};
use adapm_core::{Key, NodeId, WorkerId};
use adapm_verify::oracle::NodeWorker;
use adapm_verify::{Cluster, Setup, Violation};

type Case = Result<(), Violation>;
type Call = fn(&mut Cluster, NodeWorker) -> Result<OpId, Violation>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);

fn of(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

fn cluster(system: System) -> Cluster {
    Cluster::new(Setup::new(system, 3, 1, 36))
}

/// Returns the n-th key whose home is `node`.
fn homed(cluster: &Cluster, node: NodeId, n: usize) -> Key {
    let mut keys = cluster.keys().filter(|key| cluster.setup().home(*key) == node);
    keys.nth(n).expect("every node is home of many keys")
}

/// Moves the main copy of `key` to `node`.
fn move_to(cluster: &mut Cluster, node: NodeId, key: Key) -> Case {
    let localize = cluster.localize(of(node), &[key])?;
    cluster.wait(localize)?;
    assert_eq!(cluster.owner(key), Some(node));
    Ok(())
}

/// An operation that the home forwarded to the lost owner fails at its origin, before or after the
/// home learns of the loss.
#[test]
fn an_operation_forwarded_to_the_lost_node_fails() -> Case {
    for home_hears_first in [true, false] {
        let mut cluster = cluster(System::Lapse);
        let key = homed(&cluster, N0, 0);
        move_to(&mut cluster, N2, key)?;
        let pull = cluster.pull(of(N1), &[key])?;
        cluster.vanish(N2, |_, _| 0);
        if home_hears_first {
            cluster.tell_lost(N0, N2)?;
        }
        cluster.deliver_all()?;
        assert!(!cluster.is_done(pull), "n1 has not heard of the loss");
        cluster.tell_lost(N1, N2)?;
        assert!(cluster.is_failed(pull));
        let again = cluster.pull(of(N1), &[key])?;
        assert!(cluster.is_failed(again), "what n1 cannot do alone fails at once");
        cluster.lose(N2)?;
        cluster.settle()?;
    }
    Ok(())
}

/// A survivor's local copies stay in use: its main copies, and replicas that survivors own.
#[test]
fn what_is_local_goes_on() -> Case {
    let mut cluster = cluster(System::Adapm);
    let (mine, shared, gone) =
        (homed(&cluster, N0, 0), homed(&cluster, N1, 0), homed(&cluster, N2, 0));
    for node in [N1, N2] {
        cluster.intent(of(node), &[shared, gone], 0..9)?;
    }
    cluster.intent(of(N0), &[shared, gone], 0..9)?;
    cluster.settle()?;
    assert_eq!((cluster.state(N0, shared), cluster.state(N0, gone)), (Replica, Replica));
    cluster.lose(N2)?;
    assert_eq!((cluster.state(N0, shared), cluster.state(N0, gone)), (Replica, None));
    for call in [Cluster::pull, Cluster::push, Cluster::localize] {
        let local = call(&mut cluster, of(N0), &[mine, shared])?;
        assert!(cluster.is_done(local) && !cluster.is_failed(local));
        let far = call(&mut cluster, of(N0), &[mine, gone])?;
        assert!(cluster.is_failed(far));
    }
    let wishes = cluster.member(N0).node.engine().inspect(shared).intent_count - 1;
    assert_eq!(wishes, 0, "a localize that was done at once wants nothing more");
    let (set, set_replica) = (cluster.set(of(N0), &[mine])?, cluster.set(of(N0), &[shared])?);
    assert!(
        !cluster.is_failed(set) && cluster.is_failed(set_replica),
        "a set is the owner's to make"
    );
    cluster.settle()?;
    assert_eq!(
        cluster.member(N1).node.engine().inspect(shared).holders,
        [N0],
        "n2 is no holder any more"
    );
    assert_eq!(cluster.main_value(shared).map(|value| value[1]), Some(1), "n0's push is at n1");
    Ok(())
}

/// Operations that wait for all nodes fail, at once from then on, so that the threads of survivors
/// can end.
#[test]
fn what_waits_for_all_fails() -> Case {
    let calls: [Call; 4] = [Cluster::barrier, Cluster::quiesce, Cluster::wait_sync, Cluster::leave];
    for call in calls {
        let mut cluster = cluster(System::Adapm);
        let gone = homed(&cluster, N2, 0);
        cluster.intent(of(N2), &[gone], 0..9)?;
        cluster.intent(of(N0), &[gone], 0..9)?;
        cluster.settle()?;
        let before = call(&mut cluster, of(N0))?;
        assert!(!cluster.is_done(before));
        cluster.lose(N2)?;
        assert!(cluster.is_failed(before));
        let after = call(&mut cluster, of(N0))?;
        assert!(cluster.is_failed(after));
        for node in [N0, N1] {
            let end = cluster.end(of(node))?;
            assert!(cluster.is_done(end) && !cluster.is_failed(end), "a worker can always end");
            let leave = cluster.leave(of(node))?;
            assert!(cluster.is_failed(leave));
        }
        cluster.settle()?;
    }
    Ok(())
}

/// Ownership that came from the lost node before its loss was known stands; later grants are
/// ignored.
#[test]
fn a_grant_of_the_lost_node_stands_if_it_came_in_time() -> Case {
    for in_time in [true, false] {
        let mut cluster = cluster(System::Lapse);
        let key = homed(&cluster, N2, 0);
        cluster.localize(of(N0), &[key])?;
        cluster.round(N0)?;
        cluster.deliver(N0, N2)?;
        cluster.vanish(N2, |_, count| count);
        if in_time {
            cluster.deliver(N2, N0)?;
        }
        cluster.lose(N2)?;
        cluster.settle()?;
        assert_eq!(cluster.state(N0, key), if in_time { Main } else { Requested });
        let pull = cluster.pull(of(N0), &[key])?;
        assert_eq!(cluster.is_failed(pull), !in_time);
    }
    Ok(())
}

/// Ownership granted to the lost node is gone with it, as are hand-overs of a survivor before it
/// learns of the loss.
#[test]
fn a_grant_to_the_lost_node_is_gone_with_it() -> Case {
    let mut cluster = cluster(System::Lapse);
    let key = homed(&cluster, N0, 0);
    cluster.localize(of(N2), &[key])?;
    cluster.round(N2)?;
    cluster.vanish(N2, |_, count| count);
    cluster.deliver(N2, N0)?;
    assert!(cluster.losses().is_doomed(key));
    cluster.lose(N2)?;
    cluster.settle()?;
    let pull = cluster.pull(of(N0), &[key])?;
    assert!(cluster.is_failed(pull));
    Ok(())
}

/// A survivor that has not learned of the loss asks for a key on behalf of the lost node: it must
/// not be given away.
#[test]
fn nothing_is_granted_to_a_node_that_is_known_to_be_lost() -> Case {
    let mut cluster = cluster(System::Lapse);
    let key = homed(&cluster, N0, 0);
    move_to(&mut cluster, N1, key)?;
    cluster.localize(of(N2), &[key])?;
    cluster.round(N2)?;
    cluster.vanish(N2, |_, count| count);
    cluster.tell_lost(N1, N2)?;
    cluster.deliver(N2, N0)?;
    cluster.deliver(N0, N1)?;
    assert_eq!(cluster.owner(key), Some(N1));
    cluster.lose(N2)?;
    cluster.settle()
}

/// A survivor waits for a grant that is gone: nodes that ask it for the key, because the home was
/// notified, are not kept waiting, nor blamed for late refusals.
#[test]
fn a_key_whose_grant_is_gone_keeps_no_question() -> Case {
    for (receiver_hears, parked_max) in [(true, 9), (false, 9), (false, 0)] {
        let mut cluster = Cluster::new(Setup { parked_max, ..Setup::new(System::Lapse, 4, 1, 36) });
        let key = homed(&cluster, N0, 0);
        move_to(&mut cluster, N2, key)?;
        let localize = cluster.localize(of(N1), &[key])?;
        cluster.round(N1)?;
        cluster.deliver(N1, N0)?;
        cluster.deliver(N0, N2)?;
        // The home learns where the key went, its new owner never gets it.
        cluster.vanish(N2, |to, count| if to == N0 { count } else { 0 });
        cluster.deliver(N2, N0)?;
        if receiver_hears {
            cluster.tell_lost(N1, N2)?;
        }
        let pull = cluster.pull(of(N0), &[key])?;
        while cluster.deliver(N0, N1)? {}
        assert_eq!(
            cluster.row(N1, key).view.parked,
            usize::from(!receiver_hears && parked_max > 0)
        );
        assert!(!cluster.is_done(pull));
        cluster.tell_lost(N0, N2)?;
        assert!(cluster.is_failed(pull));
        cluster.lose(N2)?;
        assert!(cluster.is_failed(localize));
        cluster.settle()?;
    }
    Ok(())
}

/// Ownership in flight between survivors arrives, although its receiver has given up its request.
#[test]
fn a_grant_between_survivors_arrives() -> Case {
    let mut cluster = cluster(System::Lapse);
    let key = homed(&cluster, N0, 0);
    let localize = cluster.localize(of(N1), &[key])?;
    cluster.round(N1)?;
    cluster.deliver(N1, N0)?;
    cluster.lose(N2)?;
    assert!(cluster.is_failed(localize));
    cluster.settle()?;
    assert_eq!(cluster.owner(key), Some(N1));
    let pull = cluster.pull(of(N1), &[key])?;
    assert!(!cluster.is_failed(pull));
    Ok(())
}

/// A node passes a key on and is lost, and the home learns of that before it learns how the node
/// got the key: it still finds the owner, which is alive.
#[test]
fn a_home_finds_the_owner_of_whom_a_lost_node_has_told_early() -> Case {
    let mut cluster = cluster(System::Lapse);
    let key = homed(&cluster, N0, 0);
    move_to(&mut cluster, N1, key)?;
    cluster.settle()?;
    for (from, to) in [(N2, N1), (N1, N2)] {
        cluster.localize(of(from), &[key])?;
        cluster.round(from)?;
        // By way of the home the first time; n1's report to the home stays in flight.
        if from == N2 {
            cluster.deliver(N2, N0)?;
            cluster.deliver(N0, N1)?;
        } else {
            cluster.deliver(from, to)?;
        }
        cluster.deliver(to, from)?;
        assert_eq!(cluster.owner(key), Some(from));
    }
    while cluster.deliver(N2, N0)? {}
    cluster.lose(N2)?;
    cluster.settle()?;
    assert_eq!((cluster.owner(key), known_at_home(&cluster, key)), (Some(N1), Some(N1)));
    Ok(())
}

/// Like above, but the fact in between is gone with a second node: no earlier fact can come any
/// more, so the early one is believed, and nothing is kept.
#[test]
fn a_home_believes_a_lost_node_once_the_recorded_owner_is_lost_too() -> Case {
    const N3: NodeId = NodeId(3);
    let mut cluster = Cluster::new(Setup::new(System::Lapse, 4, 1, 36));
    let key = homed(&cluster, N0, 0);
    move_to(&mut cluster, N1, key)?;
    cluster.settle()?;
    for (to, from) in [(N2, N1), (N3, N2)] {
        // By way of the home, which passes it on to the owner that it knows, n1; n1 passes it on to
        // n2.
        cluster.localize(of(to), &[key])?;
        cluster.round(to)?;
        cluster.deliver(to, N0)?;
        cluster.deliver(N0, N1)?;
        if from == N2 {
            cluster.deliver(N1, N2)?;
        }
        while cluster.deliver(from, to)? {}
        assert_eq!(cluster.owner(key), Some(to));
    }
    while cluster.deliver(N2, N0)? {}
    assert_eq!(known_at_home(&cluster, key), Some(N1), "it waits for what n1 has to tell");
    cluster.lose(N2)?;
    assert_eq!(known_at_home(&cluster, key), Some(N1));
    cluster.vanish(N1, |_, _| 0);
    cluster.lose(N1)?;
    cluster.settle()?;
    assert_eq!((cluster.owner(key), known_at_home(&cluster, key)), (Some(N3), Some(N3)));
    Ok(())
}

/// Returns the node that n0 takes for the owner of `key`.
fn known_at_home(cluster: &Cluster, key: Key) -> Option<NodeId> {
    cluster.row(N0, key).view.packed.location().map(|location| location.node)
}

/// The second loss is handled like the first; repeated reports have no effect; the first lost node
/// is named where none is the reason.
#[test]
fn several_losses_and_one_told_twice() -> Case {
    let mut cluster = Cluster::new(Setup::new(System::Adapm, 4, 1, 36));
    cluster.lose(N2)?;
    cluster.tell_lost(N0, N2)?;
    cluster.lose(N1)?;
    cluster.lose(N1)?;
    for node in [N0, NodeId(3)] {
        for key in cluster.keys().collect::<Vec<_>>() {
            let pull = cluster.pull(of(node), &[key])?;
            assert_eq!(cluster.is_failed(pull), cluster.setup().home(key) != node);
        }
    }
    cluster.settle()
}

/// The error names the node without which the operation cannot be done, otherwise the first one
/// that was lost.
#[test]
fn the_lost_node_is_named() -> Case {
    let mut cluster = cluster(System::Adapm);
    let keys = [N1, N2].map(|node| homed(&cluster, node, 0));
    for node in [N2, N1] {
        cluster.lose(node)?;
    }
    let mut node = cluster.into_member(N0);
    let mut named = |body| {
        let op = Op { id: OpId(900), worker: WorkerId(0), body };
        let (verdict, said) = node.feed(adapm_core::Instant::ZERO, Input::Op(op));
        verdict.expect("a sound operation");
        match &said.events[..] {
            [Event::Failed { op: OpId(900), error }] => error.clone(),
            events => panic!("it must fail, but {events:?}"),
        }
    };
    for (key, lost) in keys.into_iter().zip([N1, N2]) {
        assert_eq!(named(OpBody::Pull { keys: vec![key] }), OpError::lost(lost));
    }
    assert_eq!(named(OpBody::Barrier), OpError::lost(N2));
    Ok(())
}

/// A node cannot lose itself, or an unknown node.
#[test]
fn only_a_peer_can_be_lost() {
    let cluster = cluster(System::Adapm);
    let mut node = cluster.into_member(N0);
    for no_peer in [N0, NodeId(3), NodeId(u16::MAX)] {
        let (told, said) = node.feed(adapm_core::Instant::ZERO, Input::PeerLost(no_peer));
        assert_eq!(told, Err(InputError::Caller(OpError::NotAPeer { node: no_peer })));
        assert!(said.is_silent());
    }
    let text = OpError::NotAPeer { node: N0 }.to_string();
    assert_eq!(text, "node n0 is not another node of this cluster");
}

/// A survivor that breaks the protocol is still blamed: only late messages are ignored.
#[test]
fn a_survivor_is_still_judged() -> Case {
    use adapm_core::wire::Message;
    use adapm_core::wire::message::{Body, Keys, SyncRequest, SyncResponse};

    let mut cluster = cluster(System::Adapm);
    let mine = homed(&cluster, N0, 0);
    cluster.lose(N2)?;
    let mut node = cluster.into_member(N0);
    let mut fault = |body| {
        let message = Message::bare(body);
        match node.feed(adapm_core::Instant::ZERO, Input::Message(N1, message)).0 {
            Err(InputError::Peer(error)) => error.fault,
            verdict => panic!("it must be refused, but {verdict:?}"),
        }
    };
    let releases = Keys(vec![mine]);
    assert_eq!(
        fault(Body::SyncRequest(SyncRequest { releases, ..SyncRequest::default() })),
        Fault::Impossible(mine)
    );
    assert_eq!(fault(Body::SyncResponse(SyncResponse::default())), Fault::Unexpected);
    Ok(())
}

/// A set in flight when the peer was lost has failed; its answer is late, and the replica stays
/// sound.
#[test]
fn a_set_on_its_way_fails_and_its_answer_is_accepted() -> Case {
    let mut cluster = cluster(System::Adapm);
    let key = homed(&cluster, N1, 0);
    cluster.intent(of(N1), &[key], 0..9)?;
    cluster.intent(of(N0), &[key], 0..9)?;
    cluster.settle()?;
    let set = cluster.set(of(N0), &[key])?;
    cluster.round(N0)?;
    cluster.lose(N2)?;
    assert!(cluster.is_failed(set));
    cluster.settle()?;
    assert_eq!(cluster.state(N0, key), Replica);
    Ok(())
}

/// When the workers of the survivors have ended, no state from before the loss remains.
#[test]
fn a_loss_leaves_no_trace() -> Case {
    let mut cluster = cluster(System::Adapm);
    let keys: Vec<Key> = cluster.keys().collect();
    for node in [N0, N1, N2] {
        cluster.intent(of(node), &keys[4..], 0..9)?;
    }
    cluster.settle()?;
    for node in [N0, N1, N2] {
        cluster.pull(of(node), &keys)?;
        cluster.set(of(node), &keys[8..12])?;
        cluster.localize(of(node), &keys[..8])?;
    }
    for node in [N0, N1, N2] {
        cluster.round(node)?;
    }
    cluster.lose(N2)?;
    cluster.settle()?;
    for node in [N0, N1] {
        let held: Vec<Key> =
            keys.iter().copied().filter(|key| cluster.state(node, *key) == Replica).collect();
        assert!(!held.is_empty(), "survivors share some keys");
        let localize = cluster.localize(of(node), &held)?;
        assert!(!cluster.is_failed(localize), "they are local already");
        cluster.end(of(node))?;
    }
    cluster.settle()?;
    assert_eq!([N0, N1].map(|node| cluster.member(node).node.engine().side_entries()), [0, 0]);
    Ok(())
}
