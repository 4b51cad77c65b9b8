//! Scheme `local` beyond its distribution: the key that stands in, and samples without local keys.

use std::collections::BTreeSet;

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Sampling, Scheme, System};

use crate::{KEYS, LEN, WINDOW, at, cluster, cluster_of, home, is_local, pull, sampled};

#[test]
fn the_next_local_key_upward_stands_in_with_wrap() {
    let stubborn = Sampling::drawn(Scheme::Local, Key(10)..Key(190), 11, |_| Key(185));
    for (node, taken) in
        sampled(&cluster(System::Classic, 2, 1, stubborn), 5, 10, 5).iter().enumerate()
    {
        let here = (185..190).chain(10..185).find(|key| usize::from(home(*key, 2).0) == node);
        let next = Key(here.expect("every node has keys"));
        assert!(taken.iter().all(|key| *key == next), "{taken:?} instead of {next} at node {node}");
    }
}

#[test]
fn a_key_without_weight_never_stands_in() {
    // One key of node 1 is drawn, and three of node 0 may stand in for it.
    let mut weights = vec![0_u32; KEYS as usize];
    let [of_0, of_1] = [0, 1].map(|node| {
        at(node)
            .iter()
            .enumerate()
            .filter(|(_, at)| **at > 0)
            .map(|(key, _)| key)
            .collect::<Vec<_>>()
    });
    weights[of_1[7]] = 1 << 30;
    of_0[20..23].iter().for_each(|key| weights[*key] = 1);
    let sampling =
        Sampling::weighted(Scheme::Local, Key(0)..Key(KEYS), &weights, 2).expect("weights");
    let all = sampled(&cluster(System::Classic, 2, 1, sampling), 10, 10, 3);
    assert!(all[0].iter().all(|key| of_0[20..23].contains(&(key.0 as usize))), "{:?}", all[0]);
    assert!(all[1].iter().all(|key| key.0 as usize == of_1[7]), "{:?}", all[1]);
}

#[test]
fn without_a_local_key_the_drawn_one_is_pulled_and_counted() {
    let foreign =
        (0..KEYS).map(Key).find(|key| Layout::home(*key, 2) == NodeId(1)).expect("node 1 has keys");
    let only = Sampling::uniform(Scheme::Local, foreign..Key(foreign.0 + 1), 1);
    let cluster = cluster(System::Classic, 2, 1, only);
    assert_eq!(sampled(&cluster, 3, 10, 4), vec![vec![foreign; 30]; 2]);
    let stats = cluster.stats();
    assert_eq!(stats.sample_fallbacks, 30, "all of node 0, none of node 1");
    assert_eq!((stats.sampled, stats.sampled_local), (60, 30));
}

#[test]
fn without_replacement_all_keys_come_once_and_the_foreign_ones_last() {
    let sampling = Sampling::uniform(Scheme::Local, Key(0)..Key(KEYS), 3).without_replacement();
    let cluster = cluster(System::Classic, 2, 1, sampling);
    for (node, drawn) in (0..).zip(sampled(&cluster, 5, KEYS as usize, 9)) {
        let own = at(node).iter().sum::<u64>() as usize;
        for sample in drawn.chunks(KEYS as usize) {
            assert_eq!(sample.iter().collect::<BTreeSet<_>>().len(), sample.len());
            assert!(
                sample[..own].iter().all(|key| home(key.0, 2).0 == node),
                "a foreign key before a local one"
            );
        }
    }
    assert_eq!(cluster.stats().sample_fallbacks, 5 * KEYS);
}

/// 2^33 keys, none of which exists before it is accessed: looking at all of them would never end.
#[test]
fn on_a_vast_range_of_keys_that_hardly_exist_a_sample_ends() {
    const VAST: u64 = 1 << 33;
    for replaces in [true, false] {
        let sampling = Sampling::uniform(Scheme::Local, Key(0)..Key(VAST), 5);
        let sampling = if replaces { sampling } else { sampling.without_replacement() };
        let layout = Layout::sparse(&[(VAST, LEN)]).expect("a valid layout");
        let cluster = cluster_of(layout, System::Adapm, 2, 1, sampling);
        let outcome = cluster.run(|mut worker| {
            let mut chosen = worker.prepare_sample(40, WINDOW).expect("sampling is configured");
            worker.choose_sample(&mut chosen).expect("no failure");
            let mut pulled = worker.prepare_sample(40, WINDOW).expect("sampling is configured");
            [pull(&mut worker, &mut chosen, 40), pull(&mut worker, &mut pulled, 40)].concat()
        });
        assert_eq!(outcome.expect("no failure").concat().len(), 160);
        let stats = cluster.stats();
        assert_eq!(stats.sampled, stats.sampled_local + stats.sample_fallbacks);
    }
}

/// All keys are chosen, one of them leaves before the pull, and no other is free to stand in for
/// it.
#[test]
fn a_chosen_key_that_leaves_is_pulled_all_the_same() {
    let own: Vec<u64> = at(0);
    let n = own.iter().sum::<u64>() as usize;
    let sampling = Sampling::weighted(Scheme::Local, Key(0)..Key(KEYS), &own, 3).expect("weights");
    let cluster = cluster(System::Lapse, 2, 1, sampling.without_replacement());
    let first =
        own.iter().position(|own| *own > 0).map(|key| Key(key as u64)).expect("node 0 has keys");
    let outcome = cluster.run(|mut worker| {
        if worker.node() == NodeId(1) {
            worker.barrier().expect("no failure");
            worker.localize(&[first]).expect("a known key");
            worker.barrier().expect("no failure");
            return Vec::new();
        }
        let mut sample = worker.prepare_sample(n, WINDOW).expect("sampling is configured");
        worker.choose_sample(&mut sample).expect("no failure");
        worker.barrier().expect("no failure");
        worker.barrier().expect("no failure");
        assert!(!is_local(&mut worker, first));
        pull(&mut worker, &mut sample, n)
    });
    let keys = outcome.expect("no failure").swap_remove(0);
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), n);
    assert!(keys.contains(&first));
    assert_eq!(cluster.stats().sample_fallbacks, 1);
}
