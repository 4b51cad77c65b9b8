//! Clusters in one process share nothing: several work at the same time, each with its own keys,
//! values and totals.

use adapm_core::{Key, Layout, Value};
use adapm_runtime::{Builder, Cluster, System};

use crate::channels;

fn cluster<V: Value>(system: System, nodes: usize, keys: u64, start: V) -> Cluster<V> {
    let layout = Layout::dense(&[(keys, 1)]).expect("a valid layout");
    let builder = Builder::<V>::new(layout).nodes(nodes).channels(channels::draw()).system(system);
    builder.initial(move |_, value| value.fill(start)).build().expect("a valid cluster")
}

fn totals<V: Value>(cluster: &Cluster<V>, update: V, times: usize) -> Vec<V> {
    let keys: Vec<Key> = cluster
        .layout()
        .extents()
        .iter()
        .flat_map(|e| e.keys.start.0..e.keys.end.0)
        .map(Key)
        .collect();
    let updates = vec![update; keys.len()];
    let outcome = cluster.run(|mut worker| {
        for _ in 0..times {
            let clock = worker.advance_clock();
            worker.intent(&keys, clock..clock + 3).expect("a window");
            worker.push(&keys, &updates).expect("known keys");
        }
    });
    outcome.expect("no failure");
    let mut values = Vec::new();
    cluster.visit_main(|_, value| values.push(value[0])).expect("the cluster is quiet");
    values
}

#[test]
fn clusters_that_run_at_the_same_time_keep_apart() {
    let ints = cluster::<i64>(System::Adapm, 3, 40, 1_000);
    let floats = cluster::<f32>(System::AdapmNoRelocation, 2, 70, 0.5);
    let (ints_after, floats_after) = std::thread::scope(|scope| {
        let ints = scope.spawn(|| totals(&ints, 1, 200));
        let floats = scope.spawn(|| totals(&floats, 0.25, 300));
        (ints.join().expect("no panic"), floats.join().expect("no panic"))
    });
    assert_eq!(ints_after, vec![1_600; 40]);
    assert_eq!(floats_after, vec![150.5; 70]);
    assert_eq!(ints.stats().accesses(), 3 * 40 * 200);
    assert_eq!(floats.stats().accesses(), 2 * 70 * 300);
}

#[test]
fn a_cluster_runs_inside_of_another() {
    let outer = cluster::<i64>(System::Adapm, 2, 10, 0);
    let sums = outer.run(|mut worker| {
        let inner = cluster::<i64>(System::Classic, 2, 10, 7);
        let sum: i64 = totals(&inner, 1, 3).iter().sum();
        worker.push(&[Key(0)], &[sum]).expect("a known key");
        worker.quiesce().expect("no failure");
        let mut value = [0];
        worker.pull(&[Key(0)], &mut value).expect("a known key");
        value[0]
    });
    assert_eq!(sums, Ok(vec![260, 260]));
}
