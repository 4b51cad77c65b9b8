//! An idle cluster costs heartbeats and nothing else.

use adapm_core::Clock;
use adapm_runtime::{Cluster, System};
use adapm_transport::net::NetStats;

use super::{KEYS, builder, clusters, keys};

/// Returns the traffic of a node's links once they have carried `beats` more heartbeats than in
/// `since`.
pub(super) fn after(cluster: &Cluster<i64>, since: NetStats, beats: u64) -> NetStats {
    loop {
        let [now] = cluster.link_stats()[..] else { panic!("one channel") };
        if now.heartbeats_sent >= since.heartbeats_sent + beats {
            return now;
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_idle_cluster_that_holds_replicas_sends_nothing_but_heartbeats() {
    // Not the cluster's own barrier, whose messages would disturb the counts of others.
    let counted = std::sync::Barrier::new(4);
    let replicas = clusters(
        4,
        || builder().channels(1).system(System::AdapmNoRelocation),
        |cluster, _| {
            let outcome = cluster.run(|mut worker| {
                worker.intent(&keys(), Clock(0)..Clock(1_000)).expect("a window");
                while cluster.stats().replicas < KEYS / 2 {
                    worker.wait_sync().expect("no failure");
                }
                worker.push(&keys(), &[1; KEYS as usize]).expect("no failure");
                worker.quiesce().expect("no failure");
                worker.barrier().expect("no failure");
                // The barrier's last messages arrive within a few heartbeats.
                let mut before = after(cluster, NetStats::default(), 1);
                let quiet = (0..50).find_map(|_| {
                    let now = after(cluster, before, 12);
                    let is_quiet =
                        now.frames_sent == before.frames_sent && now.acks_sent == before.acks_sent;
                    before = now;
                    is_quiet.then_some(now)
                });
                let later = quiet.map(|quiet| after(cluster, quiet, 60));
                counted.wait();
                let (quiet, later) = quiet.zip(later).expect("it comes to rest");
                let heartbeats = later.heartbeats_sent - quiet.heartbeats_sent;
                assert_eq!(
                    later.packets_sent - quiet.packets_sent,
                    heartbeats,
                    "{quiet:?} {later:?}"
                );
                assert_eq!(later.frames_received, quiet.frames_received);
            });
            outcome.expect("no failure");
            cluster.stats().replicas
        },
    );
    assert!(replicas.iter().all(|replicas| *replicas >= KEYS / 2), "{replicas:?}");
}
