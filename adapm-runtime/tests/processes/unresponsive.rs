//! A process whose links live, with heartbeats and acknowledgements, but which answers nothing:
//! every call that waits for it ends, all nodes name it, and it learns that it was given up.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::error::OpError;
use adapm_core::transport::{CloseReason, Frame, Loss, Transport};
use adapm_runtime::{RunError, Worker};
use adapm_transport::group::{Group, GroupError};
use adapm_transport::net::{Address, Net, NetStats};

use super::idle::after;
use super::{KEYS, builder, clusters, join, keys, rendezvous};

type Call = fn(&mut Worker<i64>) -> Result<(), OpError>;

const NODES: usize = 3;

#[test]
fn every_wait_ends_and_names_the_process_that_answers_nothing() {
    let calls: [(NodeId, Call); 3] = [
        (NodeId(2), |worker| worker.push(&keys(), &[1; KEYS as usize])),
        // Node 0 coordinates, and has the lowest id of all that could be given up.
        (NodeId(0), Worker::barrier),
        (NodeId(0), |worker| worker.pull(&keys(), &mut [0; KEYS as usize])),
    ];
    // Each waits for its own time.
    thread::scope(|scope| {
        for (mute, call) in calls {
            scope.spawn(move || ends_and_names(mute, call));
        }
    });
}

/// A barrier waits for a slow worker without limit, as its node answers.
#[test]
fn who_waits_longer_than_any_answer_may_take_blames_nobody() {
    // A heartbeat leaves in a twentieth of the dead time, unless something else does.
    const BEATS: u64 = 20 * 8;
    let slow = NodeId(1);
    clusters(
        2,
        || builder().channels(1),
        |cluster, node| {
            let outcome = cluster.run(|mut worker| {
                if node == slow {
                    after(cluster, NetStats::default(), BEATS);
                }
                worker.barrier()
            });
            assert_eq!(outcome, Ok(vec![Ok(())]), "{node}");
        },
    );
}

fn ends_and_names(mute: NodeId, call: Call) {
    let settings = settings_beside(mute);
    together(|group| {
        if group.node() == mute {
            answer_nothing(group, &settings)
        } else {
            notice(group, mute, call)
        }
    });
}

/// Runs a sound node, whose worker does `call` once.
fn notice(group: &Arc<Group>, mute: NodeId, call: Call) {
    let cluster = builder().channels(1).nodes(group).build().expect("a valid cluster");
    let outcome = cluster.run(|mut worker| {
        let error = call(&mut worker).expect_err("a node answers nothing");
        let OpError::PeerLost { node, address: Some(address) } = error else { panic!("{error}") };
        assert_eq!(node, mute);
        assert!(address.ip().is_loopback() && address.port() != 0);
    });
    let error = outcome.expect_err("a node is lost");
    let RunError::PeerLost { node, address: Some(_), loss } = error else { panic!("{error}") };
    assert_eq!(node, mute, "{error}");
    let text = error.to_string();
    match loss {
        // Six of its dead times.
        Loss::Unresponsive(time) => {
            assert_eq!(time, 6 * group.dead_after());
            assert!(
                text.contains(
                    " was lost: its link lives, but it has answered nothing for 12.0 s; "
                ),
                "{text}"
            );
        }
        Loss::Reported(_) => {}
        other => panic!("{other}"),
    }
    let told = verdict(group);
    assert_eq!(told.lost().map(|loss| loss.node), Some(mute), "{told}");
}

/// Returns why the group fails. Until its nodes have agreed on that, they can still meet.
fn verdict(group: &Group) -> GroupError {
    loop {
        if let Err(error) = group.all_gather(&[]) {
            return error;
        }
    }
}

/// Takes part in the start of a cluster, then keeps its link alive and drops all frames.
fn answer_nothing(group: &Group, settings: &[u8]) {
    let told = group.all_gather_for("settings of a cluster", settings).expect("all start");
    assert!(told.iter().all(|told| told == settings), "the settings of the rehearsal");
    let layout = adapm_core::Layout::dense(&[(KEYS, 1)]).expect("a valid layout");
    let mut net = group.listen(0, layout.digest::<i64>()).expect("loopback has free ports");
    let own = format!("{GOOD}{}", group.address_of(&net));
    let all = group.all_gather_for("addresses of a cluster", own.as_bytes()).expect("all start");
    let addresses: Vec<Option<Address>> = all.iter().map(|text| address(text)).collect();
    net.connect(&addresses);
    thread::scope(|scope| {
        scope.spawn(|| drop_all(net, group));
        for label in ["copies of a cluster", "links of a cluster", "workers of a cluster"] {
            group.all_gather_for(label, &[GOOD as u8]).expect("all start");
        }
        let error = verdict(group);
        assert!(matches!(error, GroupError::GivenUp { .. }), "{error}");
    });
}

fn address(text: &[u8]) -> Option<Address> {
    let text = std::str::from_utf8(text).expect("an address");
    Some(text.strip_prefix(GOOD)?.parse().expect("an address"))
}

/// Keeps the link alive: each `recv` sends what is due.
fn drop_all(mut net: Net, group: &Group) {
    let mut frame = Frame::default();
    while group.failure().is_none() {
        net.recv(Some(Duration::from_millis(20)), &mut frame).expect("the network works");
    }
}

/// Returns the settings that the others send, from a rehearsal in which the mute node reports that
/// it cannot start.
fn settings_beside(mute: NodeId) -> Vec<u8> {
    let told = together(|group| {
        if group.node() == mute {
            return group
                .all_gather_for("settings of a cluster", b"-rehearsal")
                .expect("all start");
        }
        let error =
            builder().channels(1).nodes(group).build().map(drop).expect_err("it is one short");
        assert!(error.to_string().contains("rehearsal"), "{error}");
        Vec::new()
    });
    told[mute.index()][(mute.index() + 1) % NODES].clone()
}

/// Runs `work` on each node and returns the results. The others count a node that leaves as lost:
/// no node leaves before all are done.
fn together<R: Send>(work: impl Fn(&Arc<Group>) -> R + Sync) -> Vec<R> {
    let rendezvous = rendezvous();
    let done: Vec<(R, Arc<Group>)> = thread::scope(|scope| {
        let (work, rendezvous) = (&work, &rendezvous);
        let join_and_work = |node| {
            let group = join(node, NODES, rendezvous);
            (work(&group), group)
        };
        let threads: Vec<_> =
            (0..NODES as u16).map(|node| scope.spawn(move || join_and_work(node))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let (results, groups): (Vec<R>, Vec<_>) = done.into_iter().unzip();
    groups.iter().for_each(|group| group.leave(CloseReason::Failed));
    results
}

/// Prefix of texts of processes that can go on.
const GOOD: char = '+';
