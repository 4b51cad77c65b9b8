//! Traced clusters with threads: each line fits those before it, and tracing does not change the
//! run.

use std::collections::BTreeMap;

use adapm_core::{Clock, Key, Layout, NodeId, Value};
use adapm_runtime::trace::{Happening, Trace, Tracer};
use adapm_runtime::{Builder, Cluster, System};

use crate::Page;

/// Runs three nodes whose workers want the same few keys at different times, so that copies of all
/// kinds come and go.
fn busy<V: Value>(tracer: Option<&Tracer>, one: V, system: System) -> Cluster<V> {
    let layout = Layout::dense(&[(KEYS, 1)]).expect("a sound layout");
    let builder = Builder::<V>::new(layout).nodes(3).workers(2).channels(2).system(system);
    let cluster = tracer.into_iter().fold(builder, Builder::trace).build().expect("starts");
    let results = cluster.run(|mut worker| {
        let slot = u64::from(worker.node().0) * 2 + u64::from(worker.id().0);
        for clock in 0..CLOCKS {
            // Neighbours overlap in half of their keys, and drift apart and together again.
            let keys: Vec<Key> =
                (0..4).map(|key| Key((clock / 8 + slot * (clock % 3) + key) % KEYS)).collect();
            worker.intent(&keys, Clock(clock + 2)..Clock(clock + 6))?;
            let mut now: Vec<Key> = keys.iter().map(|key| Key((key.0 + 1) % KEYS)).collect();
            now.sort_unstable();
            worker.push(&now, &vec![one; now.len()])?;
            worker.advance_clock();
            if clock % 64 == 63 {
                worker.barrier()?;
            }
        }
        worker.quiesce()
    });
    results.expect("runs").into_iter().for_each(|result| result.expect("accesses succeed"));
    cluster
}

fn values(cluster: &Cluster<i64>) -> BTreeMap<Key, i64> {
    let mut values = BTreeMap::new();
    let visited = cluster.visit_main(|key, value| {
        values.insert(key, value[0]);
    });
    visited.expect("at rest");
    values
}

fn owners(trace: &Trace, key: Key) -> Vec<NodeId> {
    let spans = trace.spans(key);
    let ends = |spans: &[adapm_runtime::trace::Span]| {
        spans.last().is_some_and(|span| span.end == trace.end())
    };
    (0..3).map(NodeId).filter(|node| ends(&spans[node.index()].main)).collect()
}

#[test]
fn every_event_fits_the_one_before_it_and_no_copy_is_forgotten() {
    let page = Page::default();
    let tracer = Tracer::new(page.clone(), (0..KEYS).map(|key| (Key(key), String::new())));
    let cluster = busy(Some(&tracer), 1_i64, System::Adapm);
    let (stats, _) = (cluster.stats(), cluster.shutdown().expect("ends"));
    let events = tracer.finish().expect("memory takes all");
    // Reading refuses a copy that arrives twice or leaves without having arrived.
    let trace = page.read();
    assert_eq!(trace.events().len() as u64, events);
    assert!(trace.events().is_sorted_by_key(|event| event.at));
    let count = |what: fn(&Happening) -> bool| {
        trace.events().iter().filter(|event| what(&event.what)).count() as u64
    };
    let arrived = count(|what| matches!(what, Happening::MainArrived));
    let left = count(|what| matches!(what, Happening::MainLeft { .. }));
    let set_up = count(|what| matches!(what, Happening::ReplicaSetUp { .. }));
    assert_eq!((arrived, left), (KEYS + stats.relocations, stats.relocations), "{stats:?}");
    assert_eq!(set_up, stats.replicas);
    assert!(left > 0 && set_up > 0, "the workload must do both: {stats:?}");
    for key in (0..KEYS).map(Key) {
        assert_eq!(owners(&trace, key).len(), 1, "{key} has one main copy in the end");
    }
}

#[test]
fn a_traced_run_has_the_result_of_an_untraced_one() {
    for system in [System::Adapm, System::Lapse, System::Full, System::Classic] {
        let page = Page::default();
        let tracer = Tracer::new(page.clone(), [(Key(3), "three".to_owned())]);
        let traced = values(&busy(Some(&tracer), 1_i64, system));
        tracer.finish().expect("memory takes all");
        assert_eq!(traced, values(&busy(None, 1_i64, system)), "{system}");
        let others = page.read().events().iter().filter(|event| event.key != Key(3)).count();
        assert_eq!(others, 0, "only the key that was asked for is traced");
    }
}

#[test]
fn a_place_that_takes_nothing_disturbs_nobody_and_is_told_in_the_end() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let tracer = Tracer::new(Full, (0..KEYS).map(|key| (Key(key), String::new())));
    let traced = values(&busy(Some(&tracer), 1_i64, System::Adapm));
    assert_eq!(traced.values().sum::<i64>(), 6 * 4 * CLOCKS as i64);
    assert_eq!(
        tracer.finish().expect_err("nothing was written").kind(),
        std::io::ErrorKind::StorageFull
    );
}

const KEYS: u64 = 24;
const CLOCKS: u64 = 256;
