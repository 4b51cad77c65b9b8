//! Nothing is lost and nothing is done twice, under every system and with any number of processes.

use adapm_core::transport::CloseReason;
use adapm_core::{Clock, Key, NodeId};
use adapm_runtime::{RunError, System, Workers};
use adapm_transport::net::{Kind, Net, NetConfig, NetError};

use super::{KEYS, builder, channels, clusters, keys};

#[test]
fn every_push_counts_once_in_every_system() {
    for system in System::ALL {
        for (nodes, channels) in [2, 3, 4].map(|nodes| (nodes, channels::draw())) {
            let mains = clusters(
                nodes,
                || {
                    builder()
                        .workers(2)
                        .channels(channels)
                        .system(system)
                        .initial(|key, value| value[0] = key.0 as i64)
                },
                |cluster, node| {
                    let sums = cluster.run(|mut worker| {
                        for step in 0..20 {
                            let clock = worker.advance_clock();
                            worker.intent(&keys(), clock..Clock(clock.0 + 3)).expect("a window");
                            worker.push(&keys(), &[1; KEYS as usize]).expect("no failure");
                            drop(worker.push_async(&[Key(step)], &[1]).expect("a known key"));
                        }
                        worker.quiesce().expect("no failure");
                        let mut values = [0; KEYS as usize];
                        worker.pull(&keys(), &mut values).expect("no failure");
                        values.iter().sum::<i64>()
                    });
                    let pushed = (nodes * 2) as i64 * (20 * KEYS as i64 + 20);
                    let all = (0..KEYS as i64).sum::<i64>() + pushed;
                    assert_eq!(sums, Ok(vec![all; 2]), "{system} on {node} of {nodes}");
                    let mut main = Vec::new();
                    cluster.visit_main(|key, value| main.push((key, value[0]))).expect("at rest");
                    assert_eq!((cluster.nodes(), cluster.workers()), (nodes, &Workers::from(2)));
                    assert_eq!(cluster.node_stats(node), Some(cluster.stats()));
                    assert_eq!(cluster.node_stats(NodeId(nodes as u16)), None);
                    assert_eq!(cluster.link_stats().len(), channels);
                    assert_eq!(cluster.run(|_| ()), Err(RunError::Finished));
                    main
                },
            );
            let mut mains = mains.concat();
            mains.sort_unstable();
            let each = (nodes * 2) as i64;
            let expected = |key: i64| key + each * (20 + i64::from(key < 20));
            let expected: Vec<_> = (0..KEYS).map(|key| (Key(key), expected(key as i64))).collect();
            assert_eq!(mains, expected, "{system} on {nodes} nodes");
        }
    }
}

#[test]
fn nodes_that_listen_by_different_means_work_together() {
    let rendezvous = super::rendezvous();
    // The kinds of this build; it reports those that it lacks.
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| has(*kind)).collect();
    assert!(kinds.contains(&Kind::Tcp) && kinds.contains(&Kind::Unix));
    let sums = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .zip(kinds.iter().copied().cycle())
            .map(|(node, kind)| {
                let rendezvous = &rendezvous;
                scope.spawn(move || {
                    let group = super::join_by(kind, node, 4, rendezvous);
                    let cluster = builder().nodes(&group).build().expect("a valid cluster");
                    let sums = cluster.run(|mut worker| {
                        worker.push(&keys(), &[1; KEYS as usize]).expect("no failure");
                        worker.quiesce().expect("no failure");
                        let mut values = [0; KEYS as usize];
                        worker.pull(&keys(), &mut values).expect("no failure");
                        values.iter().sum::<i64>()
                    });
                    assert_eq!(cluster.shutdown(), Ok(()));
                    group.leave(CloseReason::Finished);
                    sums
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert_eq!(sums, vec![Ok(vec![4 * KEYS as i64]); 4]);
}

fn has(kind: Kind) -> bool {
    let mut config = NetConfig::new(NodeId(0), 1);
    config.kind = kind;
    match Net::listen(config) {
        Err(NetError::KindMissing { .. }) => false,
        opened => opened.is_ok(),
    }
}

#[test]
fn one_group_carries_one_cluster_after_another() {
    super::each(3, |group| {
        for round in 1..=3_i64 {
            let cluster = builder().nodes(&group).build().expect("a valid cluster");
            let outcome = cluster.run(|mut worker| {
                worker.push(&keys(), &[round; KEYS as usize]).expect("no failure");
                worker.quiesce().expect("no failure");
                let mut values = [0; KEYS as usize];
                worker.pull(&keys(), &mut values).expect("no failure");
                values
            });
            assert_eq!(outcome, Ok(vec![[3 * round; KEYS as usize]]));
            assert_eq!(cluster.shutdown(), Ok(()));
            assert_eq!(group.all_gather(&[round as u8]), Ok(vec![vec![round as u8]; 3]));
        }
        group.leave(CloseReason::Finished);
    });
}
