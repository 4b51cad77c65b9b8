//! The task learns, and comes to the same wherever it runs.

use adapm_tasks::System;

use super::*;

/// Rows of two features each, whose label is a matter of the pair: no feature alone tells it.
fn rows() -> Rows {
    let row = |number: u64| {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let (a, b) = (mixed % 16, mixed / 16 % 16);
        format!("{} {a}:1 {}:1\n", (a ^ b) & 1, 16 + b)
    };
    let text: String = (0..4000).map(row).collect();
    Rows::parse(&text).expect("rows in libsvm's form")
}

fn cluster(system: Option<System>, nodes: usize) -> ClusterConfig {
    let mut cluster = ClusterConfig::default();
    (cluster.system, cluster.nodes, cluster.workers) = (system, Some(nodes), Some(1.into()));
    cluster
}

#[test]
fn it_learns_under_every_system_and_is_judged_alike_on_any_number_of_nodes() {
    let rows = rows();
    let managed = System::ALL.into_iter().map(|system| (Some(system), 2));
    for (system, nodes) in managed.chain([(None, 1)]) {
        let (run, cluster_config) = (RunConfig::default(), cluster(system, nodes));
        let (dim, epochs, learning_rate) = (8, 4, 0.1);
        let settings = Settings { dim, epochs, learning_rate, run, cluster: cluster_config };
        let report = FactorizationMachine::train(&rows, &settings, &Run::alone()).expect("trains");
        let test = report.test.expect("there are rows for test");
        assert!(test.auc > 0.99 && report.epochs.len() == 4, "{system:?}: {test:?}");
        let model = report.checkpoint.expect("is asked for by default");
        let subject = (model, self::rows());
        for nodes in [1, 3] {
            let flags = Flags { data: PathBuf::new() };
            let cluster = cluster(Some(System::Adapm), nodes);
            let judged = FactorizationMachine::evaluate(&subject, &flags, &cluster, &Run::alone());
            assert_eq!(judged.expect("can be evaluated").figures, Some(test), "{system:?}");
        }
    }
}

#[test]
fn rows_that_are_none_are_refused_with_their_line() {
    let refused = |text: &str| Rows::parse(text).err().expect("it is refused");
    assert_eq!(refused("1 1:1\n\n-1 2\n"), ":3: '2' is no index:value");
    assert_eq!(refused("yes 1:1\n"), ":1: 'yes' is no label");
    for text in ["nan 1:1\n", "1 1:inf\n"] {
        assert!(refused(text).starts_with(":1: "), "{text}");
    }
    assert_eq!(refused("\n"), ": no row is in it");
}
