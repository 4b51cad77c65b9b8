//! Sampling: values match their keys, distributions are as documented, every scheme terminates, seeds repeat.

use std::collections::BTreeSet;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout};
use adapm_runtime::{Builder, Cluster, LayoutStore, Sampling, Scheme, System};

const KEYS: u64 = 200;
const WINDOW: std::ops::Range<Clock> = Clock(0)..Clock(1);

fn cluster(nodes: usize, sampling: Sampling) -> Cluster<LayoutStore<i64>> {
    let layout = Layout::dense(&[(KEYS, 5)]).expect("a valid layout");
    let builder = Builder::<i64>::new(layout).nodes(nodes).system(System::Classic).sampling(sampling);
    let initial = |key: Key, value: &mut [i64]| {
        value.iter_mut().enumerate().for_each(|(i, v)| *v = 100 * key.0 as i64 + i as i64);
    };
    builder.initial(initial).build().expect("a valid cluster")
}

/// The keys that each worker gets in `samples` samples of `n` keys, pulled `step` at a time.
fn sampled(cluster: &Cluster<LayoutStore<i64>>, samples: usize, n: usize, step: usize) -> Vec<Vec<Key>> {
    let outcome = cluster.run(|mut worker| {
        let mut all = Vec::new();
        for _ in 0..samples {
            let mut sample = worker.prepare_sample(n, WINDOW).expect("sampling is configured");
            while sample.left() > 0 {
                let take = step.min(sample.left());
                let (mut keys, mut values) = (vec![Key(0); take], vec![0; 5 * take]);
                worker.pull_sample(&mut sample, &mut keys, &mut values).expect("keys are left");
                for (key, value) in keys.iter().zip(values.chunks(5)) {
                    let expected: Vec<i64> = (0..5).map(|i| 100 * key.0 as i64 + i).collect();
                    assert_eq!(value, expected, "{key}");
                }
                all.extend(keys);
            }
        }
        all
    });
    outcome.expect("no failure")
}

/// Chi-squared statistic of how often each key of `0..KEYS` was drawn, against the shares `share`.
fn chi_squared(drawn: &[Key], share: impl Fn(u64) -> f64) -> f64 {
    let mut counts = vec![0_u32; KEYS as usize];
    drawn.iter().for_each(|key| counts[key.0 as usize] += 1);
    let terms = (0..KEYS).filter(|key| share(*key) > 0.0).map(|key| {
        let expected = drawn.len() as f64 * share(key);
        (f64::from(counts[key as usize]) - expected).powi(2) / expected
    });
    terms.sum()
}

/// Above this, 199 degrees of freedom are worse than chance in one of a million.
const CHI_SQUARED_MAX: f64 = 305.0;

#[test]
fn naive_draws_exactly_as_told() {
    let uniform = Sampling::uniform(Scheme::Naive, Key(0)..Key(KEYS), 5);
    for drawn in sampled(&cluster(3, uniform), 200, 100, 7) {
        assert_eq!(drawn.len(), 20_000);
        let distance = chi_squared(&drawn, |_| 1.0 / KEYS as f64);
        assert!(distance < CHI_SQUARED_MAX, "{distance}");
    }
    // Twice as often below the middle, never in the last tenth.
    let skewed = Sampling::drawn(Scheme::Naive, Key(0)..Key(KEYS), 5, |random| match random.below(28) {
        below @ 0..20 => Key(10 * (below / 2) + random.below(10)),
        above => Key(100 + 10 * (above - 20) + random.below(10)),
    });
    for drawn in sampled(&cluster(1, skewed), 200, 100, 100) {
        let share = |key| match key {
            0..100 => 2.0 / 280.0,
            100..180 => 1.0 / 280.0,
            _ => 0.0,
        };
        let distance = chi_squared(&drawn, share);
        assert!(distance < CHI_SQUARED_MAX, "{distance}");
        assert!(drawn.iter().all(|key| key.0 < 180), "a key of share 0 was drawn");
    }
}

#[test]
fn local_takes_local_keys_by_the_drawing_functions_shares() {
    let cluster = cluster(2, Sampling::uniform(Scheme::Local, Key(10)..Key(190), 11));
    for (node, taken) in sampled(&cluster, 200, 100, 5).iter().enumerate() {
        let here = |key: u64| (10..190).contains(&key) && usize::from(Layout::home(Key(key), 2).0) == node;
        let keys = (0..KEYS).filter(|key| here(*key)).count();
        let distance = chi_squared(taken, |key| if here(key) { 1.0 / keys as f64 } else { 0.0 });
        assert!(distance < CHI_SQUARED_MAX, "{distance} at node {node}");
        assert!(taken.iter().all(|key| here(key.0)), "a key that is not local was taken at node {node}");
    }
    let stats = cluster.stats();
    assert_eq!((stats.local_share(), stats.remote, stats.sample_fallbacks), (1.0, 0, 0));
}

#[test]
fn local_takes_the_next_local_key_upward_with_wrap() {
    let stubborn = Sampling::drawn(Scheme::Local, Key(10)..Key(190), 11, |_| Key(185));
    for (node, taken) in sampled(&cluster(2, stubborn), 5, 10, 5).iter().enumerate() {
        let mut here =
            (185..190).chain(10..185).map(Key).filter(|key| usize::from(Layout::home(*key, 2).0) == node);
        let next = here.next().expect("every node has keys");
        assert!(taken.iter().all(|key| *key == next), "{taken:?} instead of {next} at node {node}");
    }
}

#[test]
fn local_falls_back_to_remote_keys_and_counts_them() {
    let foreign = (0..KEYS).map(Key).find(|key| Layout::home(*key, 2).0 == 1).expect("node 1 has keys");
    let only = Sampling::uniform(Scheme::Local, foreign..Key(foreign.0 + 1), 1);
    let cluster = cluster(2, only);
    assert_eq!(sampled(&cluster, 3, 10, 4), vec![vec![foreign; 30]; 2]);
    assert_eq!(cluster.stats().sample_fallbacks, 30, "all of node 0, none of node 1");
}

#[test]
fn without_replacement_no_key_comes_twice() {
    for scheme in [Scheme::Naive, Scheme::Local] {
        let sampling = Sampling::uniform(scheme, Key(0)..Key(KEYS), 3).without_replacement();
        let cluster = cluster(2, sampling);
        for drawn in sampled(&cluster, 5, KEYS as usize, 9) {
            for sample in drawn.chunks(KEYS as usize) {
                assert_eq!(sample.iter().collect::<BTreeSet<_>>().len(), sample.len(), "{scheme:?}");
            }
        }
        assert!(
            scheme == Scheme::Naive || cluster.stats().sample_fallbacks > 0,
            "half of the keys are elsewhere"
        );
    }
}

#[test]
fn the_first_key_of_a_sample_without_replacement_is_uniform() {
    let sampling = Sampling::uniform(Scheme::Naive, Key(0)..Key(KEYS), 8).without_replacement();
    let drawn = sampled(&cluster(1, sampling), 10_000, 3, 3);
    let first: Vec<Key> = drawn[0].iter().step_by(3).copied().collect();
    let distance = chi_squared(&first, |_| 1.0 / KEYS as f64);
    assert!(distance < CHI_SQUARED_MAX, "{distance}");
}

#[test]
fn draws_depend_on_seed_and_worker_only() {
    let run =
        |seed| sampled(&cluster(2, Sampling::uniform(Scheme::Naive, Key(0)..Key(KEYS), seed)), 3, 20, 4);
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
    assert_ne!(first[0], first[1], "workers draw different keys");
}

#[test]
fn misuse_of_samples_is_an_error() {
    let sampling = Sampling::uniform(Scheme::Naive, Key(0)..Key(KEYS), 3).without_replacement();
    let outcome = cluster(1, sampling).run(|mut worker| {
        let (mut keys, mut values) = ([Key(0); 3], [0; 15]);
        let mut sample = worker.prepare_sample(2, WINDOW).expect("sampling is configured");
        let exhausted = OpError::SampleExhausted { left: 2, asked: 3 };
        assert_eq!(worker.pull_sample(&mut sample, &mut keys, &mut values), Err(exhausted));
        assert_eq!(
            worker.pull_sample(&mut sample, &mut keys[..2], &mut values),
            Err(OpError::ValueLen { expected: 10, given: 15 })
        );
        assert_eq!(sample.left(), 2, "an error takes nothing");
        assert_eq!(worker.pull_sample(&mut sample, &mut keys[..2], &mut values[..10]), Ok(()));
        let window = worker.prepare_sample(1, Clock(3)..Clock(3)).map(drop);
        assert_eq!(window, Err(OpError::Window { start: Clock(3), end: Clock(3) }));
        let many = worker.prepare_sample(201, WINDOW).map(drop);
        assert_eq!(many, Err(OpError::SampleExhausted { left: 200, asked: 201 }));
        let loader = worker.intent_handle().prepare_sample(5, WINDOW).expect("sampling is configured");
        assert_eq!(loader.left(), 5);
    });
    assert_eq!(outcome, Ok(vec![()]));
}
