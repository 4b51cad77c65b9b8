//! Both steps against finite differences of their loss, in all parameters.

use adapm_runtime::Random;
use std::collections::BTreeMap;
use std::convert::Infallible;

use adapm_core::{Clock, Key};

use crate::Scheme;
use crate::kge::config::{LossKind, Negatives, Sizes, TrainConfig};
use crate::kge::graph::Triple;
use crate::kge::loader::Planner;
use crate::kge::model::{self, ModelKind, Shape};
use crate::kge::step::{IndependentStep, *};
use crate::run::config::ClusterConfig;
use crate::run::managed::Arrays;

const ENTITIES: u64 = 12;
const RELATIONS: u64 = 2;

/// Arrays that keep what is pushed apart: the gradient of each key, summed over all its places in a
/// push.
struct Recorder {
    arrays: Arrays,
    shape: Shape,
    gradients: BTreeMap<Key, Vec<f32>>,
    steps: u64,
}

impl Parameters for Recorder {
    type Error = Infallible;
    type Sample = Random;

    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), Infallible> {
        self.arrays.pull(keys, values)
    }

    /// An update is `[-lr g / sqrt(..) | g^2]`: the root of the second half, with the sign of the
    /// first turned, is `g`.
    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), Infallible> {
        let mut start = 0;
        for key in keys {
            let len = self.shape.len_of(*key);
            let (steps, squares) = updates[start..start + len].split_at(len / 2);
            let gradient = self.gradients.entry(*key).or_insert_with(|| vec![0.0; len / 2]);
            for ((score_gradient, step), square) in gradient.iter_mut().zip(steps).zip(squares) {
                *score_gradient -= square.sqrt().copysign(*step);
            }
            start += len;
        }
        Ok(())
    }

    fn pull_sample(
        &mut self,
        sample: &mut Random,
        keys: &mut [Key],
        values: &mut [f32],
    ) -> Result<(), Infallible> {
        self.arrays.pull_sample(sample, keys, values)
    }

    fn advance_clock(&mut self) {
        self.steps += 1;
    }

    fn quiesce(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn config(model: ModelKind, negatives: Negatives) -> TrainConfig {
    let (negative_count, initial_deviation) = (Some(5), 0.7);
    TrainConfig {
        model,
        negatives,
        dim: 4,
        negative_count,
        initial_deviation,
        n3: Some(0.0),
        ..TrainConfig::default()
    }
}

/// Returns the recipe of one worker.
fn recipe(config: &TrainConfig, shape: Shape) -> Recipe {
    let sizes =
        Sizes { chunk: 4, negatives: config.negative_count.expect("given"), at_once: [1.0; 2] };
    Recipe::new(config, shape, sizes)
}

/// Trains on four positives; `moved` parameters are added to the initial ones before.
fn train(config: &TrainConfig, moved: Option<(Key, usize, f32)>) -> (Result<f64, Key>, Recorder) {
    let relation_len = recipe(config, Shape::default()).model.relation_len();
    let relations = if config.reciprocal { 2 * RELATIONS } else { RELATIONS };
    let shape = Shape {
        entities: ENTITIES,
        relations,
        entity_len: 2 * config.dim,
        relation_len: 2 * relation_len,
    };
    // The same seed each time: the same negatives.
    let mut arrays =
        Arrays::new(shape.groups(), Some(shape.sampling_distribution()), |key, value| {
            model::initial_value(3, config.initial_deviation, key, value);
            // Away from 0, where a rotation turns too fast for a difference to follow it.
            let parameter = value.len() / 2;
            value[..parameter].iter_mut().for_each(|x| *x += 0.3f32.copysign(*x));
        });
    if let Some((key, place, step)) = moved {
        let mut update = vec![0.0; shape.len_of(key)];
        update[place] = step;
        arrays.push(&[key], &update).expect("infallible");
    }
    let triple = |subject, relation, object| Triple { subject, relation, object };
    let triples = [triple(0, 0, 1), triple(2, 1, 3), triple(0, 1, 4), triple(1, 0, 1)];
    let inverse_offset = config.reciprocal.then_some(RELATIONS);
    let planner = Planner { shape, negatives: config.negatives, inverse_offset };
    let mut chunk = planner.chunk(triples.into_iter(), Clock(0), Random::new(7));
    let recipe = recipe(config, shape);
    let mut recorder = Recorder { arrays, shape, gradients: BTreeMap::new(), steps: 0 };
    let outcome = match config.negatives {
        Negatives::Shared => SharedStep::new(recipe).train(&mut chunk, &mut recorder),
        Negatives::Independent => IndependentStep::new(recipe).train(&mut chunk, &mut recorder),
    };
    let outcome = outcome.map_err(|error| match error {
        StepError::NotFinite(key) => key,
        StepError::Access(never) => match never {},
    });
    (outcome, recorder)
}

#[test]
fn pushed_gradients_equal_finite_differences_of_the_loss() {
    for negatives in [Negatives::Shared, Negatives::Independent] {
        for model in ModelKind::ALL {
            for loss in LossKind::ALL {
                for reciprocal in [false, true] {
                    let config = config(*model, negatives);
                    check_gradients(&TrainConfig { loss: *loss, reciprocal, ..config });
                }
            }
        }
    }
}

/// Checks what a step pushes, in all parameters.
fn check_gradients(config: &TrainConfig) {
    const STEP: f32 = 1.0 / 256.0;
    let (_, recorder) = train(config, None);
    let zeros = |key: Key| vec![0.0; recorder.shape.len_of(key) / 2];
    for key in (0..recorder.shape.groups().keys()).map(Key) {
        let gradient = recorder.gradients.get(&key).cloned().unwrap_or_else(|| zeros(key));
        for (place, score_gradient) in gradient.iter().enumerate() {
            let loss = |step| train(config, Some((key, place, step))).0.expect("finite");
            let expected = (loss(STEP) - loss(-STEP)) / f64::from(2.0 * STEP);
            let error = (f64::from(*score_gradient) - expected).abs();
            let TrainConfig { model, negatives, loss, .. } = config;
            assert!(
                error < 2e-3 * (1.0 + expected.abs()),
                "{negatives} {model} {loss} {key} {place}: {score_gradient} {expected}"
            );
        }
    }
}

#[test]
fn penalties_pull_the_parts_of_positives_towards_zero() {
    for negatives in [Negatives::Shared, Negatives::Independent] {
        let plain = config(ModelKind::Complex, negatives);
        let penalized = TrainConfig { l2_entity: 0.5, l2_relation: 0.25, ..plain.clone() };
        let ((_, without), (_, with)) = (train(&plain, None), train(&penalized, None));
        // Entity 3 is part of one positive, relation 0 (key 12) of two, entity 11 of none.
        for (key, weight) in
            [(Key(3), 2.0 * 0.5), (Key(ENTITIES), 2.0 * 2.0 * 0.25), (Key(11), 0.0)]
        {
            let mut value = [0.0; 8];
            let mut arrays = train(&plain, None).1.arrays;
            arrays.pull(&[key], &mut value).expect("infallible");
            let zeros = vec![0.0; 4];
            let (a, b) = (
                with.gradients.get(&key).unwrap_or(&zeros),
                without.gradients.get(&key).unwrap_or(&zeros),
            );
            for ((with, without), x) in a.iter().zip(b).zip(&value) {
                assert!((with - without - weight * x).abs() < 1e-4, "{negatives} {key}");
            }
        }
    }
}

#[test]
fn the_clock_counts_chunks_or_positives() {
    let steps = |negatives| train(&config(ModelKind::Complex, negatives), None).1.steps;
    assert_eq!((steps(Negatives::Shared), steps(Negatives::Independent)), (1, 4));
}

#[test]
fn a_number_that_is_none_is_blamed_on_a_key_and_nothing_is_pushed() {
    for (negatives, model) in [Negatives::Shared, Negatives::Independent]
        .into_iter()
        .flat_map(|negatives| ModelKind::ALL.iter().map(move |model| (negatives, *model)))
    {
        for number in [f32::NAN, f32::INFINITY] {
            let (outcome, recorder) = train(&config(model, negatives), Some((Key(2), 1, number)));
            assert!(outcome.is_err(), "{negatives} {model} {number}");
            let pushed_nan =
                recorder.gradients.values().flatten().any(|score_gradient| score_gradient.is_nan());
            assert!(!pushed_nan);
        }
    }
}

#[test]
fn corrections_reach_the_scores_when_samples_prefer_local_keys() {
    let alone = config(ModelKind::Complex, Negatives::Shared);
    let (nodes, system) = (Some(2), Some(adapm_runtime::System::Adapm));
    let cluster = |system| ClusterConfig { nodes, system, ..ClusterConfig::default() };
    let together = TrainConfig { cluster: cluster(system), ..alone.clone() };
    let recipe_of = |config: &TrainConfig| recipe(config, Shape::default());
    assert!(
        recipe_of(&together).corrects_frequencies() && !recipe_of(&alone).corrects_frequencies()
    );
    let classic = cluster(Some(adapm_runtime::System::Classic));
    let classic = TrainConfig { cluster: classic, ..together.clone() };
    let logistic = TrainConfig { loss: LossKind::Logistic, ..together.clone() };
    assert!(
        !recipe_of(&classic).corrects_frequencies() && !recipe_of(&logistic).corrects_frequencies()
    );
    let sampled =
        |scheme, config: &TrainConfig| TrainConfig { scheme: Some(scheme), ..config.clone() };
    for scheme in Scheme::ALL {
        let corrects = scheme == Scheme::Local;
        for config in [&together, &classic] {
            assert_eq!(
                recipe_of(&sampled(scheme, config)).corrects_frequencies(),
                corrects,
                "{scheme}"
            );
        }
        assert!(!recipe_of(&sampled(scheme, &alone)).corrects_frequencies(), "{scheme}");
    }
    // The first sample has nothing to be corrected by; in the second, what was sampled before
    // weighs less.
    let losses = |config: &TrainConfig| {
        let (_, mut recorder) = train(config, None);
        let triples = [Triple { subject: 0, relation: 0, object: 1 }];
        let planner =
            Planner { shape: recorder.shape, negatives: Negatives::Shared, inverse_offset: None };
        let mut step = SharedStep::new(recipe(config, recorder.shape));
        [0, 1].map(|clock| {
            let mut chunk = planner.chunk(triples.into_iter(), Clock(clock), Random::new(clock));
            step.train(&mut chunk, &mut recorder).map_err(drop).expect("finite")
        })
    };
    let (plain, corrected) = (losses(&alone), losses(&together));
    assert_eq!(plain[0], corrected[0]);
    assert_ne!(plain[1], corrected[1]);
}

#[test]
fn entities_sampled_twice_as_often_as_average_lose_the_logarithm_of_two() {
    let mut frequencies = Frequencies::new(4);
    let mut corrections = Vec::new();
    let sample = [0, 0, 0, 0, 1, 1, 2, 3].map(Key);
    frequencies.correct(&sample, &mut corrections);
    assert_eq!(corrections, [0.0; 8], "nothing is known yet");
    for _ in 0..10_000 {
        frequencies.correct(&sample, &mut corrections);
    }
    assert!((corrections[0] + 2f32.ln()).abs() < 1e-2, "{corrections:?}");
    assert!(corrections[4].abs() < 1e-2);
    assert!((corrections[7] - 2f32.ln()).abs() < 1e-2);
}
