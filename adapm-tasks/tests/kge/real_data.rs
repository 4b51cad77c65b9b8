//! Benchmark graphs, where `ADAPM_DATA` names a folder that has them.

use std::path::{Path, PathBuf};

use adapm_tasks::System;
use adapm_tasks::data::{DATA_VARIABLE, locate};
use adapm_tasks::kge::Graph;

use crate::processes::train_all;
use crate::{run, small};

/// Returns the folder of a benchmark, `None` (and a line that says so) if it is not there.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = locate("kge", Path::new(name)).ok();
    if folder.is_none() {
        eprintln!("skipped: no {name} under ${DATA_VARIABLE}");
    }
    folder
}

#[test]
fn fb15k_237_has_its_known_sizes() {
    let Some(folder) = folder("FB15k-237") else { return };
    let graph = Graph::load(&folder).expect("well formed");
    assert_eq!(
        (graph.train().len(), graph.valid().len(), graph.test().len()),
        (272_115, 17_535, 20_466)
    );
    assert_eq!((graph.entities().len(), graph.relations().len()), (14_541, 237));
    assert_eq!(graph.counts().unknown_test, 28);
}

#[test]
fn umls_is_learnt_on_two_nodes_in_one_process_and_in_two() {
    let Some(folder) = folder("umls") else { return };
    let graph = Graph::load(&folder).expect("well formed");
    let config = small(|config| {
        (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
            (Some(System::Adapm), Some(2), Some(1.into()));
        (config.dim, config.chunk, config.epochs, config.n3) = (32, Some(64), 10, Some(0.005));
    });
    let in_one = run(&graph, &config).expect("trains");
    let in_two = train_all("umls", 2, &graph, &config);
    for report in [&in_one, &in_two[0], &in_two[1]] {
        let mrr = report.test.expect("evaluated").mrr;
        println!("MRR {mrr:.3}");
        assert!(mrr > 0.7, "{mrr}");
    }
}
