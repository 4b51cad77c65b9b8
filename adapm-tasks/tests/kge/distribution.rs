//! The same task on several nodes, under every system.

use adapm_tasks::kge::Negatives;
use adapm_tasks::{Scheme, System};

use crate::{STEADY_DIM, graph, run, small};

#[test]
fn every_system_trains_on_three_nodes() {
    let graph = graph();
    for system in System::ALL {
        for negatives in [Negatives::Shared, Negatives::Independent] {
            let config = small(|config| {
                (config.cluster.system, config.cluster.nodes, config.negatives) =
                    (Some(system), Some(3), negatives);
                config.cluster.workers = Some(2.into());
                config.negative_count = Some(16);
                config.epochs = 2;
                config.chunk = Some(64);
            });
            let report = run(&graph, &config)
                .unwrap_or_else(|error| panic!("{system} {negatives}: {error}"));
            let losses = [report.epochs[0].loss, report.epochs[1].loss];
            assert!(losses[1] < losses[0], "{system} {negatives}: {losses:?}");
            assert_eq!(report.epochs[1].examples, graph.train().len() as u64, "{system}");
            assert!(report.test.is_some() && report.stats.bytes_sent > 0, "{system}");
        }
    }
}

#[test]
fn every_scheme_finds_the_known_structure_on_two_nodes() {
    let graph = graph();
    let train = |system, scheme, epochs| {
        let config = small(|config| {
            (config.cluster.system, config.cluster.nodes, config.scheme) =
                (Some(system), Some(2), Some(scheme));
            (config.dim, config.epochs, config.valid_every) = (STEADY_DIM, epochs, Some(epochs));
        });
        assert_eq!(config.sampling(), Some(scheme));
        run(&graph, &config).unwrap_or_else(|error| panic!("{system} {scheme}: {error}"))
    };
    for scheme in Scheme::ALL {
        let mrr = train(System::Adapm, scheme, 15).test.expect("evaluated").mrr;
        assert!(mrr > 0.93, "{scheme}: the optimum is 1, got {mrr}");
    }
    // Under a static partition, only samples of what is local are all local.
    let local_share = |scheme| train(System::Classic, scheme, 1).stats.local_share();
    let [naive, local] = [Scheme::Naive, Scheme::Local].map(local_share);
    assert!(naive < 0.6 && local > naive + 0.1, "{naive} {local}");
}

#[test]
fn the_usual_scheme_is_that_of_the_system() {
    let usual = |system| small(|config| config.cluster.system = system).sampling();
    assert_eq!(usual(Some(System::Classic)), Some(Scheme::Naive));
    assert_eq!(usual(Some(System::Adapm)), Some(Scheme::Local));
    assert_eq!(usual(Some(System::Lapse)), Some(Scheme::Preloc));
    assert_eq!(usual(None), None);
}

#[test]
fn a_static_partition_of_four_nodes_is_local_for_a_quarter() {
    let config = small(|config| {
        (config.cluster.system, config.cluster.nodes, config.negatives) =
            (Some(System::Classic), Some(4), Negatives::Independent);
        (config.epochs, config.run.no_eval, config.negative_count) = (1, true, Some(20));
    });
    let stats = run(&graph(), &config).expect("trains").stats;
    assert!((stats.local_share() - 0.25).abs() < 0.02, "{}", stats.local_share());
    assert_eq!((stats.relocations, stats.replicas), (0, 0));
}

#[test]
fn counts_are_of_training_alone_and_add_up_over_epochs() {
    let config = small(|config| {
        (config.cluster.system, config.cluster.nodes, config.negatives) =
            (Some(System::Classic), Some(2), Negatives::Independent);
        (config.epochs, config.negative_count) = (2, Some(4));
    });
    let graph = graph();
    let report = run(&graph, &config).expect("trains");
    // Three keys and eight negatives a positive, pulled and pushed.
    let of_epoch = 2 * 11 * graph.train().len() as u64;
    for (epoch, number) in report.epochs.iter().zip(1..) {
        let accesses =
            |stats: &adapm_tasks::kge::ManagerStats| stats.local + stats.waited + stats.remote;
        assert_eq!(accesses(&epoch.epoch_stats), of_epoch);
        assert_eq!(accesses(&epoch.stats), number * of_epoch);
    }
    assert_eq!(report.stats, report.epochs[1].stats);
}
