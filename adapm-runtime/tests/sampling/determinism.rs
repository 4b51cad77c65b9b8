//! Inputs that a worker's sampled keys depend on, and those that they do not.

use std::collections::BTreeSet;

use adapm_core::{Key, NodeId, WorkerId};
use adapm_runtime::{Sampling, Scheme, System};

use crate::{EXACT, KEYS, WINDOW, cluster, pull, sampled, take};

fn uniform(scheme: Scheme, seed: u64) -> Sampling {
    Sampling::uniform(scheme, Key(0)..Key(KEYS), seed)
}

#[test]
fn draws_depend_on_seed_and_worker_only() {
    for scheme in EXACT {
        let run = |system, seed| sampled(&cluster(system, 2, 2, uniform(scheme, seed)), 3, 60, 4);
        let first = run(System::Adapm, 1);
        assert_eq!(first, run(System::Adapm, 1), "{scheme}");
        assert_eq!(first, run(System::Classic, 1), "{scheme}");
        assert_ne!(first, run(System::Adapm, 2), "{scheme}");
        assert_eq!(
            first.iter().collect::<BTreeSet<_>>().len(),
            4,
            "{scheme}: workers draw different keys"
        );
    }
}

#[test]
fn how_far_others_are_changes_nothing() {
    for scheme in EXACT {
        let run = |idle: WorkerId| {
            let outcome = cluster(System::Adapm, 1, 2, uniform(scheme, 7)).run(|mut worker| {
                let samples = if worker.id() == idle { 0 } else { 8 };
                (worker.id(), take(&mut worker, samples, 100, 9))
            });
            outcome
                .expect("no failure")
                .into_iter()
                .filter(|(id, _)| *id != idle)
                .map(|(_, keys)| keys)
                .collect::<Vec<_>>()
        };
        let both = sampled(&cluster(System::Adapm, 1, 2, uniform(scheme, 7)), 8, 100, 9);
        assert_eq!([run(WorkerId(1)), run(WorkerId(0))].concat(), both, "{scheme}");
    }
}

#[test]
fn an_unused_rest_of_a_sample_changes_no_other_sample() {
    for scheme in EXACT {
        let run = |pulled: usize| {
            let outcome = cluster(System::Adapm, 1, 1, uniform(scheme, 3)).run(|mut worker| {
                let mut first = worker.prepare_sample(70, WINDOW).expect("sampling is configured");
                pull(&mut worker, &mut first, pulled);
                assert_eq!(first.finish(), 70 - pulled);
                take(&mut worker, 2, 70, 70)
            });
            outcome.expect("no failure").remove(0)
        };
        assert_eq!(run(0), run(70), "{scheme}");
    }
}

/// Four workers, four times the uses: each goes through the pools of its node.
#[test]
fn the_workers_of_a_node_use_the_same_pools_each_draw_as_often_as_said() {
    let wide = Scheme::Pool { size: 20, reuse: 5 };
    let all = sampled(&cluster(System::Adapm, 2, 2, uniform(wide, 11)), 10, 50, 50);
    for node in all.chunks(2) {
        let pools = |keys: &[Key]| {
            let mut keys: Vec<Vec<Key>> = keys.chunks(100).map(<[Key]>::to_vec).collect();
            keys.iter_mut().for_each(|pool| pool.sort_unstable());
            keys
        };
        assert_eq!(pools(&node[0]), pools(&node[1]), "the same draws");
        assert_ne!(node[0], node[1], "in orders of their own");
        for pool in pools(&node[0]) {
            let uses = |key: &Key| pool.iter().filter(|used| *used == key).count();
            assert!(pool.iter().all(|key| uses(key) % 5 == 0), "{pool:?}");
        }
    }
    assert_ne!(all[0], all[2], "nodes draw their own pools");
}

#[test]
fn each_intent_handle_has_draws_of_its_own() {
    for scheme in EXACT {
        let run = || {
            let outcome = cluster(System::Adapm, 1, 1, uniform(scheme, 3)).run(|mut worker| {
                let mut keys = vec![take(&mut worker, 1, 50, 50)];
                for _ in 0..2 {
                    let mut handle = worker.intent_handle();
                    let mut sample =
                        handle.prepare_sample(50, WINDOW).expect("sampling is configured");
                    keys.push(pull(&mut worker, &mut sample, 50));
                }
                (worker.node(), keys)
            });
            outcome.expect("no failure").remove(0)
        };
        let (node, keys) = run();
        assert_eq!(run(), (node, keys.clone()), "{scheme}");
        assert_eq!((node, keys.iter().collect::<BTreeSet<_>>().len()), (NodeId(0), 3), "{scheme}");
    }
}
