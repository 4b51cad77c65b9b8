//! The results of training.

use adapm_tasks::System;
use adapm_tasks::kge::{LossKind, ModelKind, Negatives};

use crate::{STEADY_DIM, graph, run, small};

#[test]
fn loss_falls_and_the_known_structure_is_found() {
    let graph = graph();
    let report = run(&graph, &small(|config| (config.dim, config.epochs) = (STEADY_DIM, 15)))
        .expect("trains");
    let losses: Vec<f64> = report.epochs.iter().map(|epoch| epoch.loss).collect();
    assert!(losses[14] < losses[2] && losses[2] < losses[0], "{losses:?}");
    let mrr = report.test.expect("evaluated").mrr;
    assert!(mrr > 0.93, "the optimum is 1, got {mrr}");
    let best = report.epochs.iter().max_by(|a, b| mrr_of(a).total_cmp(&mrr_of(b))).expect("epochs");
    assert_eq!(mrr_of(best), mrr_of(&report.epochs[report.chosen_epoch as usize - 1]));
    let triples = graph.train().len() as u64;
    assert!(report.epochs.iter().all(|epoch| epoch.examples == triples));
}

fn mrr_of(epoch: &adapm_tasks::run::Epoch<adapm_tasks::metric::RankMetrics>) -> f64 {
    epoch.valid.expect("each epoch was evaluated").mrr
}

#[test]
fn plain_arrays_give_the_same_run_twice() {
    let graph = graph();
    let config = small(|config| config.epochs = 2);
    let (first, second) =
        (run(&graph, &config).expect("trains"), run(&graph, &config).expect("trains"));
    assert!(first.checkpoint.is_some());
    assert_eq!(first.checkpoint, second.checkpoint);
    assert_eq!(first.test, second.test);
    let other =
        run(&graph, &small(|config| (config.epochs, config.run.seed) = (2, 2))).expect("trains");
    assert_ne!(first.checkpoint, other.checkpoint);
}

#[test]
fn one_worker_of_a_manager_gives_the_same_run_twice() {
    let graph = graph();
    for negatives in [Negatives::Shared, Negatives::Independent] {
        let train = |seed| {
            let config = small(|config| {
                (config.cluster.system, config.negatives, config.run.seed) =
                    (Some(System::Adapm), negatives, seed);
                (config.chunk, config.negative_count, config.epochs) = (None, Some(16), 2);
            });
            run(&graph, &config).expect("trains")
        };
        let (first, second) = (train(1), train(1));
        assert!(first.checkpoint.is_some());
        assert_eq!(
            (&first.checkpoint, first.test),
            (&second.checkpoint, second.test),
            "{negatives}"
        );
        assert_eq!(first.epochs[1].loss.to_bits(), second.epochs[1].loss.to_bits(), "{negatives}");
        assert_ne!(first.checkpoint, train(2).checkpoint, "{negatives}");
    }
}

#[test]
fn every_model_loss_and_way_to_sample_learns() {
    let graph = graph();
    for model in ModelKind::ALL {
        for (loss, negatives) in [
            (LossKind::Softmax, Negatives::Shared),
            (LossKind::Logistic, Negatives::Shared),
            (LossKind::Softmax, Negatives::Independent),
            (LossKind::Logistic, Negatives::Independent),
        ] {
            let config = small(|config| {
                (config.model, config.loss, config.negatives) = (*model, loss, negatives);
                config.cluster.system = Some(System::Adapm);
                config.negative_count = Some(16);
                config.run.no_eval = true;
                config.reciprocal = loss == LossKind::Logistic;
            });
            let report = run(&graph, &config).expect("trains");
            let (first, last) = (report.epochs[0].loss, report.epochs[2].loss);
            assert!(last < 0.9 * first, "{model} {loss} {negatives}: {first} {last}");
            assert_eq!((report.chosen_epoch, report.test), (3, None));
        }
    }
}

#[test]
fn no_epochs_evaluate_the_initial_values() {
    let report = run(&graph(), &small(|config| config.epochs = 0)).expect("evaluates");
    assert!(report.epochs.is_empty());
    assert_eq!(report.chosen_epoch, 0);
    assert!(report.test.expect("evaluated").mrr < 0.2);
}
