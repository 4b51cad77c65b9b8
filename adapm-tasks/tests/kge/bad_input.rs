//! Refusals: configurations that make no sense are refused before anything starts; training that
//! diverges stops.

use adapm_tasks::kge::{ConfigError, ModelKind, Negatives, TaskError, TrainConfig};
use adapm_tasks::{Scheme, System};

use crate::{graph, run, small};

fn refusal(change: impl FnOnce(&mut TrainConfig)) -> ConfigError {
    match run(&graph(), &small(change)) {
        Err(TaskError::Config(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn impossible_configurations_are_refused() {
    let keys = graph().entities().len() as u64 + graph().relations().len() as u64;
    assert_eq!(refusal(|config| config.cluster.nodes = Some(0)), ConfigError::NoNodes);
    assert_eq!(refusal(|config| config.cluster.workers = Some(0.into())), ConfigError::NoWorkers);
    let refused = refusal(|config| {
        (config.cluster.system, config.cluster.nodes) = (Some(System::Adapm), Some(5000))
    });
    assert_eq!(refused, ConfigError::MoreNodesThanKeys { nodes: 5000, keys });
    let text = |change: fn(&mut TrainConfig)| refusal(change).to_string();
    assert_eq!(text(|config| config.dim = 0), "dim 0: give a whole number from 1 to 65536");
    for (model, reason) in [
        (ModelKind::Complex, "dim 7: the model complex needs an even dimension"),
        (ModelKind::RotatE, "dim 7: the model rotate needs an even dimension"),
    ] {
        let refused = refusal(|config| (config.model, config.dim) = (model, 7));
        assert_eq!(refused.to_string(), reason);
    }
    assert_eq!(
        text(|config| config.chunk = Some(0)),
        "chunk 0: give a whole number from 1 to 65536"
    );
    let refused = text(|config| config.learning_rate = f32::NAN);
    assert_eq!(refused, "learning_rate NaN: give a positive number");
    assert_eq!(text(|config| config.n3 = Some(-1.0)), "n3 -1: give 0 or a positive number");
}

#[test]
fn a_value_that_the_manager_cannot_hold_and_an_empty_pool_are_refused() {
    let outcome = run(
        &graph(),
        &small(|config| {
            (config.cluster.system, config.scheme) =
                (Some(System::Adapm), Some(Scheme::Pool { size: 0, reuse: 1 }));
        }),
    );
    assert!(matches!(outcome, Err(TaskError::Build(_))), "{outcome:?}");
    let outcome =
        run(&graph(), &small(|config| (config.model, config.dim) = (ModelKind::Rescal, 1025)));
    assert!(matches!(outcome, Err(TaskError::Build(_))), "{outcome:?}");
}

#[test]
fn training_that_diverges_stops_and_names_key_step_and_rate() {
    for (system, nodes) in [(None, 1), (Some(System::Adapm), 2)] {
        for negatives in [Negatives::Shared, Negatives::Independent] {
            let config = small(|config| {
                (config.cluster.system, config.cluster.nodes, config.negatives) =
                    (system, Some(nodes), negatives);
                (config.learning_rate, config.negative_count) = (1e30, Some(8));
            });
            match run(&graph(), &config) {
                Err(error @ TaskError::NotFinite { learning_rate: 1e30, .. }) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("the update of ")
                            && text.contains("step")
                            && !text.contains('\n'),
                        "{text}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
