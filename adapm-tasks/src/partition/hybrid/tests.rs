//! Partitions beside the best, balance, planted communities, and what cannot be partitioned.

use std::collections::BTreeMap;
use std::thread;

use rand::RngExt as _;

use super::*;

/// Partitions a graph, and nothing stops it.
fn hybrid(graph: &Bigraph, parts: usize, options: &Options) -> Result<Partition, BigraphError> {
    let found = super::hybrid(graph, parts, options, &AtomicBool::new(false))?;
    Ok(found.expect("it is not stopped"))
}

fn options(seed: u64) -> Options {
    Options {
        rounds: 5,
        store_rate: 0.1,
        priority: Priority::Paper,
        batch: 10.0,
        costs: None,
        seed,
    }
}

fn graph(keys: u64, samples: impl IntoIterator<Item = Vec<u64>>) -> Bigraph {
    let mut graph = Bigraph::new(keys).expect("few keys");
    for sample in samples {
        let sample: Vec<Key> = sample.into_iter().map(Key).collect();
        graph.add(&sample).expect("known keys");
    }
    graph
}

/// Samples of 4 keys of one of `count` communities of 20 keys each, and of one key that all
/// use, which stand last; of `strays` in 100 keys any.
fn communities(count: u64, samples: u64, strays: u64, seed: u64) -> Bigraph {
    let mut random = generator(seed, [0]);
    let sample = |sample: u64| {
        let mut keys: Vec<u64> = (0..4)
            .map(|_| match random.random_range(0..100) < strays {
                true => random.random_range(0..20 * count),
                false => 20 * (sample % count) + random.random_range(0..20),
            })
            .collect();
        keys.push(20 * count + random.random_range(0..10));
        keys
    };
    graph(20 * count + 10, (0..samples).map(sample).collect::<Vec<_>>())
}

fn cut(graph: &Bigraph, partition: &Partition) -> u64 {
    graph.count(|sample, key| partition.home[key as usize] != partition.sample[sample])
}

/// The least cut of all partitions of the same balance.
fn least_cut(graph: &Bigraph, parts: usize) -> u64 {
    let [samples, keys] =
        [graph.samples(), graph.keys()].map(|count| share_max(count, 1, parts) + 1);
    let homes = (0..parts.pow(graph.keys() as u32))
        .map(|code| (0..graph.keys() as u32).map(|key| code / parts.pow(key) % parts).collect());
    let is_balanced = |homes: &Vec<usize>| {
        (0..parts).all(|part| homes.iter().filter(|home| **home == part).count() <= keys)
    };
    let cut_of = |homes: Vec<usize>| {
        // By the sizes of parts so far, the least cut.
        let mut cuts = BTreeMap::from([(vec![0; parts], 0)]);
        for sample in 0..graph.samples() {
            let mut next = BTreeMap::new();
            for (sizes, cut) in cuts {
                for part in (0..parts).filter(|part| sizes[*part] < samples) {
                    let mut sizes = sizes.clone();
                    sizes[part] += 1;
                    let is_far = |key: &&u32| homes[**key as usize] != part;
                    let cut = cut + graph.of(sample).iter().filter(is_far).count() as u64;
                    let least = next.entry(sizes).or_insert(cut);
                    *least = cut.min(*least);
                }
            }
            cuts = next;
        }
        cuts.into_values().min()
    };
    homes.filter(is_balanced).filter_map(cut_of).min().expect("there is one")
}

#[test]
fn small_graphs_are_cut_nearly_as_little_as_can_be() {
    for (parts, seeds) in [(2, 40), (3, 4)] {
        let mut sums = (0, 0);
        for seed in 0..seeds {
            let mut random = generator(seed, [1]);
            let mut sample = |_| {
                let len = random.random_range(1..4);
                (0..len).map(|_| random.random_range(0..8)).collect()
            };
            let samples: Vec<Vec<u64>> = (0..12).map(&mut sample).collect();
            let graph = graph(8, samples);
            let found = hybrid(&graph, parts, &options(seed)).expect("a sound graph");
            let (cut, least) = (cut(&graph, &found), least_cut(&graph, parts));
            // One access is more than a fifth of the least cut into three parts.
            let is_near = 5 * cut <= 6 * least || (parts == 3 && cut <= least + 1);
            assert!(is_near, "{parts} parts, seed {seed}: {cut} for {least}");
            sums = (sums.0 + cut, sums.1 + least);
        }
        assert!(5 * sums.0 <= 6 * sums.1, "{parts} parts: {sums:?}");
    }
}

#[test]
fn communities_are_found_and_parts_are_balanced() {
    for (strays, share_max) in [(0, 30), (10, 40)] {
        let graph = communities(40, 4_000, strays, 7);
        for parts in [1, 2, 4, 7] {
            let found = hybrid(&graph, parts, &options(1)).expect("a sound graph");
            let accesses = graph.accesses() as u64;
            let share = 100 * cut(&graph, &found) / accesses;
            let by_chance = 100 * (parts as u64 - 1) / parts as u64;
            assert!(share <= share_max * by_chance / 100 + 10, "{parts} parts: {share} %");
            for (of, all) in [(&found.home, graph.keys()), (&found.sample, graph.samples())] {
                for part in 0..parts as u16 {
                    let size = of.iter().filter(|of| **of == part).count();
                    assert!(20 * parts * (size - 2) <= 21 * all, "{size} of {all}, {parts}");
                }
            }
            for (part, keys) in found.secondary.iter().enumerate() {
                assert!(keys.len() <= graph.keys() / 10 && keys.is_sorted());
                let is_far = |key: &Key| usize::from(found.home[key.0 as usize]) != part;
                assert!(keys.iter().all(is_far), "{part}");
            }
        }
    }
}

#[test]
fn a_partition_follows_from_graph_and_options_on_any_thread() {
    let graph = &communities(10, 1_000, 20, 3);
    let find = |seed| hybrid(graph, 5, &options(seed)).expect("a sound graph");
    let first = find(1);
    assert_ne!(first, find(2));
    thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| find(1))).collect();
        for other in others {
            assert_eq!(first, other.join().expect("no panic"));
        }
    });
}

#[test]
fn what_all_parts_use_is_replicated_first() {
    let graph = communities(10, 2_000, 0, 5);
    for priority in [Priority::Paper, Priority::Soft] {
        let options = Options { store_rate: 0.05, priority, ..options(1) };
        let found = hybrid(&graph, 4, &options).expect("a sound graph");
        let hubs = found.secondary.iter().flatten().filter(|key| key.0 >= 200).count();
        // Each hub has one part, and three replicate it.
        assert!(hubs >= 24, "{priority:?}: {hubs} of {:?}", found.secondary);
        let none = Options { store_rate: 0.0, ..options.clone() };
        let found = hybrid(&graph, 4, &none).expect("a sound graph");
        assert!(found.secondary.iter().all(Vec::is_empty));
        let all = Options { store_rate: 1.0, ..options.clone() };
        let found = hybrid(&graph, 4, &all).expect("a sound graph");
        let is_remote = |sample: usize, key: u32| {
            let part = found.sample[sample];
            let keys = &found.secondary[usize::from(part)];
            found.home[key as usize] != part && keys.binary_search(&Key(key.into())).is_err()
        };
        assert_eq!(graph.count(is_remote), 0, "all is replicated where it is used");
    }
}

#[test]
fn what_is_used_together_goes_where_access_is_cheap() {
    // Parts 0 and 1, and 2 and 3, are near each other.
    let rows: Vec<Vec<f64>> = (0..4)
        .map(|from| (0..4).map(|to| if from / 2 == to / 2 { 100.0 } else { 1.0 }).collect())
        .collect();
    let costs = Costs::of_bandwidths(&rows).expect("all are positive");
    let graph = communities(2, 1_000, 0, 3);
    let between = |found: &Partition| {
        graph.count(|sample, key| found.home[key as usize] / 2 != found.sample[sample] / 2)
    };
    let blind = hybrid(&graph, 4, &options(1)).expect("a sound graph");
    let seeing = Options { costs: Some(costs), ..options(1) };
    let seeing = hybrid(&graph, 4, &seeing).expect("a sound graph");
    assert!(2 * between(&seeing) <= between(&blind) + 1_000, "{}", between(&seeing));
    // Hubs alone are used by all: a fifth of the accesses, half of them far away.
    assert!(between(&seeing) <= 700, "{}", between(&seeing));
}

#[test]
fn what_cannot_be_partitioned_is_refused() {
    let graph = communities(2, 10, 0, 1);
    let refused = |parts| hybrid(&graph, parts, &options(1)).expect_err("no such parts");
    for parts in [0, 51, 257] {
        assert_eq!(refused(parts), BigraphError::Parts { parts, keys: 50 });
    }
    let empty = Bigraph::new(10).expect("few keys");
    assert_eq!(hybrid(&empty, 2, &options(1)), Err(BigraphError::NoSamples));
    for rate in [-0.1, 1.1] {
        let options = Options { store_rate: rate, ..options(1) };
        let error = BigraphError::StoreRate { rate };
        assert_eq!(hybrid(&graph, 2, &options), Err(error));
    }
    let costs = Costs::of_bandwidths(&[vec![1.0; 3], vec![1.0; 3], vec![1.0; 3]]);
    let other = Options { costs, ..options(1) };
    let error = BigraphError::Bandwidths { given: 3, parts: 2 };
    assert_eq!(hybrid(&graph, 2, &other), Err(error));
    let bad = [
        vec![vec![1.0, 0.0], vec![1.0, 1.0]],
        vec![vec![1.0, f64::NAN], vec![1.0, 1.0]],
        vec![vec![1.0, 1.0], vec![1.0]],
    ];
    assert!(bad.iter().all(|rows| Costs::of_bandwidths(rows).is_none()));
    // Samples without keys are dealt out evenly.
    let mut idle = Bigraph::new(4).expect("few keys");
    (0..8).for_each(|_| idle.add(&[]).expect("no key"));
    let found = hybrid(&idle, 4, &options(4)).expect("a sound graph");
    let sizes = |of: &[u16]| {
        (0..4).map(|part| of.iter().filter(|of| **of == part).count()).collect::<Vec<_>>()
    };
    assert_eq!((sizes(&found.sample), sizes(&found.home)), (vec![2; 4], vec![1; 4]));
}

#[test]
fn a_stop_ends_it_without_a_partition() {
    let graph = communities(4, 400, 0, 1);
    let stopped = super::hybrid(&graph, 4, &options(1), &AtomicBool::new(true));
    assert_eq!(stopped, Ok(None));
}
