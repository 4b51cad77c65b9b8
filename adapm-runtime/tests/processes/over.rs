//! Complete work: a process that ends afterwards, in any way, causes no error on the others.

use std::thread;

use adapm_core::transport::CloseReason;
use adapm_core::{Key, NodeId};
use adapm_runtime::Cluster;
use adapm_transport::group::{Group, GroupError};

use super::lost::{VICTIM, join_as_victim, start};
use super::{KEYS, builder, each, join, keys, rendezvous};

/// Returns a cluster on which every node has pushed once, with all work complete.
fn worked(group: &std::sync::Arc<Group>) -> Cluster<i64> {
    let cluster = builder().channels(2).nodes(group).build().expect("a valid cluster");
    let pushed = cluster.run(|mut worker| worker.push(&keys(), &[1; KEYS as usize]));
    assert_eq!(pushed, Ok(vec![Ok(())]));
    cluster
}

/// Returns the keys of this process's main copies, whose values must hold the pushes of three
/// nodes.
fn main_copies(cluster: &Cluster<i64>) -> Vec<Key> {
    let mut copies = Vec::new();
    let visited = cluster.visit_main(|key, value| {
        assert_eq!(value, [3], "{key}");
        copies.push(key);
    });
    assert_eq!(visited, Ok(()));
    copies
}

/// Not a test by itself: a process that ends after its work without a goodbye.
#[test]
fn the_silent_end() {
    let Some(group) = join_as_victim() else { return };
    let cluster = worked(&group);
    assert!(main_copies(&cluster).len() < KEYS as usize);
    std::process::exit(0);
}

#[test]
fn a_process_that_ends_in_silence_after_the_work_takes_nothing_from_the_others() {
    let rendezvous = rendezvous();
    let mut silent = start("over::the_silent_end", &rendezvous);
    let groups = thread::scope(|scope| {
        let survivors = [0, 1].map(|node| {
            let rendezvous = &rendezvous;
            scope.spawn(move || {
                let group = join(node, 3, rendezvous);
                let cluster = worked(&group);
                let copies = main_copies(&cluster);
                let told = group.all_gather(&[]).expect_err("a node is lost");
                assert_eq!(told.lost().map(|loss| loss.node), Some(VICTIM), "{told}");
                assert_eq!(main_copies(&cluster), copies, "the loss is known now");
                assert_eq!(cluster.read(&copies, &mut vec![0; copies.len()]), Ok(vec![]));
                assert_eq!(cluster.shutdown(), Ok(()));
                group
            })
        });
        survivors.map(|thread| thread.join().expect("no panic"))
    });
    groups.iter().for_each(|group| group.leave(CloseReason::Failed));
    assert!(silent.wait().expect("it was started").success());
}

#[test]
fn an_orderly_shutdown_says_goodbye_for_its_group() {
    each(3, |group| {
        let first = worked(&group);
        assert_eq!(first.shutdown(), Ok(()));
        let second = worked(&group);
        assert_eq!(second.shutdown(), Ok(()));
        if group.node() == NodeId(0) {
            // The others leave by dropping their group.
            let told = group.all_gather(&[]).expect_err("nobody takes part");
            assert!(matches!(told, GroupError::Left { .. }), "{told}");
        }
    });
}
