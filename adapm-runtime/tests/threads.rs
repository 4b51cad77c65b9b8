//! Whole clusters in threads: totals are exact whatever the schedule, under every system, on 1 to 4 nodes.
//!
//! Values are integers. What is visible when is asked with `quiesce` and `wait_sync`, never with time.

use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Cluster, LayoutStore, Random, System};

type Ints = Cluster<LayoutStore<i64>>;

fn layout(keys: u64, len: usize) -> Layout {
    Layout::dense(&[(keys, len)]).expect("a valid layout")
}

fn cluster(system: System, nodes: usize, workers: usize, channels: usize, keys: u64, len: usize) -> Ints {
    let builder = Builder::<i64>::new(layout(keys, len)).nodes(nodes).workers(workers).channels(channels);
    builder.system(system).build().expect("a valid cluster")
}

#[test]
fn pushes_to_one_key_all_arrive_under_every_system() {
    for system in System::ALL {
        for (nodes, channels) in [(1, 1), (3, 1), (3, 4)] {
            let cluster = cluster(system, nodes, 2, channels, 36, 2);
            let pushes = 300;
            let read = cluster
                .run(|mut worker| {
                    let mut random = Random::new(u64::from(worker.node().0) << 8 | u64::from(worker.id().0));
                    let mut value = [0; 2];
                    for _ in 0..pushes {
                        drop(worker.push_async(&[Key(9)], &[1, 2]).expect("a known key"));
                        worker.pull(&[Key(9)], &mut value).expect("a known key");
                        if random.below(50) == 0 {
                            let clock = worker.clock();
                            worker.intent(&[Key(9)], clock.plus(10)..clock.plus(40)).expect("a window");
                        }
                        worker.advance_clock();
                    }
                    worker.quiesce().expect("no failure");
                    worker.pull(&[Key(9)], &mut value).expect("a known key");
                    value
                })
                .expect("no failure");
            let all = pushes * nodes as i64 * 2;
            assert!(
                read.iter().all(|value| *value == [all, 2 * all]),
                "{system} {nodes} {channels}: {read:?}"
            );
        }
    }
}
