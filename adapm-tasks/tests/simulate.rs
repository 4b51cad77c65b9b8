//! The model of the paper's workloads: patterns have the properties that are claimed of them, and
//! runs the limits they must have.

use std::collections::{HashMap, HashSet};

use adapm_core::{Key, Layout, NodeId, WorkerId};
use adapm_runtime::System;
use adapm_tasks::measure::simulate::pattern::{Sampled, Work, pattern};
use adapm_tasks::measure::simulate::{Chance, Contender, Figures, Machine, Run, Task, simulate};
use rand::SeedableRng as _;

const ADAPM: Contender = Contender::System(System::Adapm);
const CLASSIC: Contender = Contender::System(System::Classic);

fn works(task: Task, nodes: usize, settled: bool, node: u16, count: usize) -> Vec<Work> {
    let mut pattern = pattern(task, nodes, settled);
    let mut chance = Chance::seed_from_u64(u64::from(node) + 1);
    (0..count).map(|_| pattern.draw((NodeId(node), WorkerId(0)), &mut chance)).collect()
}

fn of(task: Task, contender: Contender, nodes: usize, machine: Machine) -> Run {
    Run { task, contender, nodes, workers: 3, machine, compute: 1.0, round_nanos: None, seed: 1 }
}

fn run(task: Task, contender: Contender, nodes: usize, machine: Machine) -> Figures {
    simulate(&of(task, contender, nodes, machine)).expect("the model runs")
}

#[test]
fn every_pattern_names_keys_of_its_layout_each_once() {
    for task in Task::ALL {
        let layout = pattern(task, 3, true).facts().layout.clone();
        for work in works(task, 3, true, 1, 20) {
            assert!(!work.keys.is_empty() && work.nanos > 0, "{task}");
            assert!(work.keys.is_sorted_by(|a, b| a < b), "{task}");
            assert!(work.keys.iter().all(|key| layout.value_len(*key).is_some()), "{task}");
        }
    }
}

#[test]
fn a_triple_has_three_keys_and_two_hundred_negatives() {
    let works = works(Task::Kge, 2, true, 0, 20_000);
    assert!(works.iter().all(|work| work.keys.len() <= 3 && work.sampled == Sampled::Uniform(200)));
    // The most frequent object and relation: 1 / H(4.8 M) and 1 / H(828) of all triples.
    let share =
        |key| works.iter().filter(|work| work.keys.contains(&Key(key))).count() as f64 / 20_000.0;
    assert!((share(0) - 0.0627).abs() < 0.01, "{}", share(0));
    assert!((share(4_818_679) - 0.137).abs() < 0.012, "{}", share(4_818_679));
}

#[test]
fn a_sentence_has_both_vectors_of_its_words_and_output_vectors_as_negatives() {
    for work in works(Task::Wv, 2, true, 0, 50) {
        assert!(work.keys.iter().all(|key| work.keys.contains(&Key(key.0 ^ 1))));
        let Sampled::Drawn(negatives) = &work.sampled else {
            panic!("negatives are drawn by frequency")
        };
        assert!(negatives.len() > 100 && negatives.iter().all(|key| key.0 % 2 == 1));
    }
}

#[test]
fn rows_are_of_one_node_and_columns_last() {
    let keys = |node| -> HashSet<Key> {
        works(Task::Mf, 4, true, node, 500).into_iter().flat_map(|work| work.lasting).collect()
    };
    let (first, second) = (keys(0), keys(1));
    assert!(first.len() > 3_000 && first.is_disjoint(&second));
    for (node, rows) in [(0, &first), (1, &second)] {
        let at_home = rows.iter().filter(|key| Layout::home(**key, 4) == NodeId(node)).count();
        assert_eq!(at_home, rows.len(), "settled rows lie at their node");
    }
    let works = works(Task::Mf, 4, true, 0, 500);
    let columns = |work: &Work| -> HashSet<Key> {
        work.keys.iter().copied().filter(|key| key.0 < 1_000_000).collect()
    };
    let lasting =
        works.windows(2).filter(|pair| !columns(&pair[0]).is_disjoint(&columns(&pair[1]))).count();
    assert!(lasting > 450, "a worker stays in a column: {lasting} of 499");
}

#[test]
fn half_of_a_click_batch_is_dense_and_in_every_batch() {
    let layout = pattern(Task::Ctr, 2, true).facts().layout.clone();
    let works = works(Task::Ctr, 2, true, 0, 20);
    let dense = |work: &Work| -> Vec<Key> {
        work.keys.iter().copied().filter(|key| layout.value_len(*key) != Some(1)).collect()
    };
    assert!(works.windows(2).all(|pair| dense(&pair[0]) == dense(&pair[1])));
    // 52 % of accesses: against 26 x 128 sparse ones, some of which coincide.
    let elements: usize = dense(&works[0]).iter().filter_map(|key| layout.value_len(*key)).sum();
    let share = elements as f64 / (elements as f64 + 26.0 * 128.0 / 8.0);
    assert!((share - 0.52).abs() < 0.02, "{share}");
}

#[test]
fn most_sampled_neighbours_are_in_the_nodes_own_part() {
    let works = works(Task::Gnn, 4, true, 2, 50);
    let (mut own, mut all) = (0, 0);
    for key in works.iter().flat_map(|work| &work.keys) {
        all += 1;
        own += usize::from(Layout::home(*key, 4) == NodeId(2));
    }
    let share = f64::from(own as u32) / f64::from(all as u32);
    assert!((share - 0.85).abs() < 0.02, "{share}");
}

#[test]
fn equal_seeds_give_equal_figures() {
    for task in Task::ALL {
        let twice = [(); 2].map(|()| run(task, ADAPM, 2, Machine::PAPER));
        assert_eq!(twice[0], twice[1], "{task}");
    }
}

#[test]
fn one_node_sends_nothing_and_reads_locally() {
    for task in Task::ALL {
        let figures = run(task, ADAPM, 1, Machine::PAPER);
        assert_eq!((figures.bytes_per_node, figures.local_share), (0.0, 1.0), "{task}");
        assert_eq!(
            (figures.relocations, figures.replicas, figures.messages_per_node),
            (0.0, 0.0, 0.0),
            "{task}"
        );
    }
}

#[test]
fn on_an_ideal_machine_epochs_take_what_computation_takes() {
    for task in [Task::Kge, Task::Mf] {
        let alone = run(task, ADAPM, 1, Machine::IDEAL).epoch_seconds;
        for contender in [ADAPM, CLASSIC] {
            let four = run(task, contender, 4, Machine::IDEAL).epoch_seconds;
            assert!((alone / four / 4.0 - 1.0).abs() < 0.25, "{task} {contender}: {alone} {four}");
        }
    }
}

#[test]
fn a_static_partition_is_remote_for_all_but_one_of_n_accesses() {
    for nodes in [2, 4] {
        let figures = run(Task::Kge, CLASSIC, nodes, Machine::PAPER);
        let expected = (nodes - 1) as f64 / nodes as f64;
        assert!(
            (figures.remote_share - expected).abs() < 0.03,
            "{nodes}: {}",
            figures.remote_share
        );
        assert_eq!((figures.relocations, figures.replicas), (0.0, 0.0));
    }
}

#[test]
fn adapting_asks_no_other_node_while_a_worker_waits() {
    for task in Task::ALL {
        let figures = run(task, ADAPM, 4, Machine::PAPER);
        assert!(figures.remote_share < 1e-3, "{task}: {}", figures.remote_share);
        assert!(figures.local_share > 0.999, "{task}: {}", figures.local_share);
    }
}

#[test]
fn locality_needs_relocation() {
    let without = Contender::System(System::AdapmNoRelocation);
    let bytes = |contender| run(Task::Mf, contender, 4, Machine::PAPER).bytes_per_node;
    assert!(bytes(without) > 4.0 * bytes(ADAPM));
}

#[test]
fn without_replication_workers_wait_for_contended_keys() {
    let without = run(Task::Kge, Contender::System(System::AdapmNoReplication), 4, Machine::PAPER);
    let with = run(Task::Kge, ADAPM, 4, Machine::PAPER);
    // For a copy on its way, or for the answer of the node that has it.
    let not_local = |figures: &Figures| figures.waited_share + figures.remote_share;
    assert!(not_local(&without) > 0.1 && not_local(&with) < 1e-3, "{without:?} {with:?}");
}

/// A static choice knows what the draws will be.
#[test]
fn keys_that_are_drawn_a_hundred_times_as_often_as_the_mean_are_hot() {
    let click_keys = 4_220_315 + 60;
    let tasks = [
        (Task::Kge, 4_819_507, 20_000),
        (Task::Wv, 1_900_000, 2_000),
        (Task::Ctr, click_keys, 100),
        (Task::Gnn, 3_470_623, 200),
    ];
    for (task, keys, steps) in tasks {
        let mut counts: HashMap<Key, u32> = HashMap::new();
        let drawn = [0, 1].map(|node| works(task, 2, true, node, steps));
        for key in drawn.iter().flatten().flat_map(|work| &work.keys) {
            *counts.entry(*key).or_default() += 1;
        }
        let accesses: u32 = counts.values().sum();
        let often = 100.0 * f64::from(accesses) / f64::from(keys);
        let hot: HashSet<Key> = pattern(task, 2, true).hot().into_iter().collect();
        // Draws vary: what is drawn twice as often as is needed, and twenty times, is hot for sure.
        for (key, count) in &counts {
            let surely = f64::from(*count) > 2.0 * often && *count > 20;
            assert!(
                !surely || hot.contains(key),
                "{task}: {key} drawn {count} times of {accesses}"
            );
        }
        let of_hot: u32 = hot.iter().filter_map(|key| counts.get(key)).sum();
        let mean = f64::from(of_hot) / hot.len() as f64;
        assert!(hot.len() > 50 && mean > often, "{task}: {} with {mean} each", hot.len());
    }
}

/// Petuum: an absent key that is read becomes a replica, which is local where it is read again:
/// columns are, negatives of embeddings are not.
#[test]
fn replicas_by_access_pay_off_where_keys_are_read_again() {
    let of = |task, system| run(task, Contender::System(system), 4, Machine::PAPER);
    for system in [System::Ssp { staleness: 3 }, System::Essp { staleness: 3 }] {
        let [kge, mf] = [Task::Kge, Task::Mf].map(|task| of(task, system));
        for figures in [&kge, &mf] {
            assert!(figures.replicas > 0.0 && figures.remote_share == 0.0, "{system}: {figures:?}");
        }
        assert!((kge.waited_share - 0.75).abs() < 0.03, "{system}: {kge:?}");
        assert!(mf.waited_share < 0.6, "{system}: {mf:?}");
    }
}

/// Who waits for others at clocks is no faster than who does not.
#[test]
fn supersteps_of_a_static_partition_take_its_time_and_waiting() {
    for task in [Task::Kge, Task::Mf] {
        let bsp = run(task, Contender::System(System::Bsp), 4, Machine::PAPER);
        let classic = run(task, CLASSIC, 4, Machine::PAPER);
        assert!(bsp.epoch_seconds > classic.epoch_seconds, "{task}: {bsp:?} {classic:?}");
        assert!((bsp.remote_share - classic.remote_share).abs() < 0.03, "{bsp:?} {classic:?}");
    }
}

/// A partition puts rows where they are accessed.
#[test]
fn het_gmp_reads_rows_locally_and_columns_by_replicas_of_the_hot_ones() {
    let het_gmp = Contender::System(System::HetGmp { staleness: 100 });
    let figures = run(Task::Mf, het_gmp, 4, Machine::PAPER);
    let classic = run(Task::Mf, CLASSIC, 4, Machine::PAPER);
    assert!(figures.remote_share < classic.remote_share / 2.0, "{figures:?} {classic:?}");
    assert_eq!(figures.relocations, 0.0);
}

/// What a partition cannot put where it is accessed, and is not hot, is remote: cold features of
/// clicks, and neighbours in other parts of a graph.
#[test]
fn het_gmp_asks_for_what_is_cold_and_elsewhere() {
    let het_gmp = Contender::System(System::HetGmp { staleness: 100 });
    for (task, most) in [(Task::Ctr, 0.5), (Task::Gnn, 0.15)] {
        let [figures, classic] =
            [het_gmp, CLASSIC].map(|contender| run(task, contender, 4, Machine::PAPER));
        let remote = figures.remote_share;
        assert!(remote > 0.0 && remote < most, "{task}: {figures:?}");
        assert!(remote < 0.7 * classic.remote_share, "{task}: {figures:?} {classic:?}");
        assert_eq!((figures.relocations, figures.waited_share), (0.0, 0.0), "{task}");
    }
}
