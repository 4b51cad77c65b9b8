//! The access patterns of all tasks in clusters of virtual time, under faults: after every step no
//! update is lost or doubled, no worker reads what it must not, and the same seed gives the same
//! events. Under systems that bound how far workers are apart they tick as in training, each seed
//! with a bound of its own.
//!
//! Workers access keys and signal intent as they do in training; what they add tells them apart
//! (base-4 digits), so values are not the task's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use adapm_core::policy::Supply;
use adapm_core::{Key, Layout, NodeId, WorkerId};
use adapm_runtime::System;
use adapm_verify::Setup;
use adapm_verify::sim::checked::{Report, Run};
use adapm_verify::sim::{Script, Step, Then};

use super::accesses::{self, Access, Accesses};
use crate::ctr::task::Prediction;
use crate::ctr::{self, Clicks};
use crate::gnn::task::Network;
use crate::gnn::{self, FeatureSource};
use crate::kge::config::Sizes;
use crate::kge::prior::Chosen;
use crate::kge::task::Embeddings;
use crate::kge::{self, Graph};
use crate::mf::selection::Prepared;
use crate::mf::task::Factorization;
use crate::mf::{self, Order, Ratings, SyntheticConfig};
use crate::run::observer::NoProgress;
use crate::run::task::Task;
use crate::run::topology::WorkerSlot;
use crate::wv::task::WordVectors;
use crate::wv::{self, Corpus, Text};

const NODES: usize = 3;
const WORKERS: usize = 2;
const EPOCHS: u32 = 2;
/// Of each system.
const SEEDS: u64 = 5;
/// Clocks after which a worker reaches a tick, under a system with a bound.
const CLOCKS_A_TICK: u64 = 2;

fn slots() -> impl Iterator<Item = WorkerSlot> {
    WorkerSlot::all_of(&[WORKERS; NODES], true)
}

/// Returns the steps of a worker that signals intent `ahead` clocks before its first access, or as
/// late as its loader does.
fn steps(accesses: &Accesses, system: System, ahead: u64) -> Vec<Step> {
    let (mut steps, mut clock) = (Vec::new(), 0);
    let is_bounded = system.bound().is_some();
    let mut signaled = accesses.signaled.iter().peekable();
    for access in &accesses.steps {
        while let Some((keys, clocks)) =
            signaled.next_if(|(_, clocks)| clocks.start.0 <= clock + ahead)
        {
            steps.push(match system {
                system if system.localizes() => Step::Localize(keys.clone(), Then::GoOn),
                _ => Step::Intent {
                    keys: keys.clone(),
                    ahead: clocks.start.0.saturating_sub(clock),
                    clocks: clocks.end.0 - clocks.start.0,
                },
            });
        }
        steps.push(match access {
            Access::Pull(keys) => Step::Pull(keys.clone(), Then::Wait),
            Access::Push(keys) => Step::Push(keys.clone(), Then::GoOn),
            Access::Advance => {
                clock += 1;
                Step::Advance(1)
            }
            Access::Quiesce => Step::Quiesce,
        });
        if is_bounded && *access == Access::Advance && clock.is_multiple_of(CLOCKS_A_TICK) {
            steps.push(Step::Tick);
        }
    }
    steps
}

/// Returns the keys with homes elsewhere that a node pulls more often than the mean of them.
fn hot(accesses: &[Accesses], setup: &Setup, node: usize) -> BTreeSet<Key> {
    let mut counts: BTreeMap<Key, usize> = BTreeMap::new();
    let of_node = accesses[node * WORKERS..][..WORKERS].iter().flat_map(Accesses::pulls);
    for key in of_node.filter(|key| setup.home(*key).index() != node) {
        *counts.entry(key).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let is_hot = |(_, count): &(&Key, &usize)| **count * counts.len() > all;
    counts.iter().filter(is_hot).map(|(key, _)| *key).collect()
}

fn follow(accesses: &[Accesses], keys: u64, system: System, seed: u64) -> Report {
    let mut setup = Setup::new(system, NODES, WORKERS, keys);
    // Room for as many pushes of a key as can be told apart.
    setup.layout = Layout::dense(&[(keys, 6)]).expect("there are keys");
    if system.supply() == Supply::Partition {
        setup.hot = Some((0..NODES).map(|node| hot(accesses, &setup, node)).collect());
    }
    let workers: Vec<Vec<Step>> = accesses.iter().map(|one| steps(one, system, 3 * seed)).collect();
    let operations = workers.iter().map(|steps| steps.len() as u64).sum();
    let script = |script: Script, (number, steps): (usize, Vec<Step>)| {
        let who = (NodeId((number / WORKERS) as u16), WorkerId((number % WORKERS) as u16));
        script.with(who, steps)
    };
    let mut script = workers.into_iter().enumerate().fold(Script::default(), script);
    let run = Run { setup, operations, ..Run::new(seed) };
    run.follow(&mut script).unwrap_or_else(|wrong| panic!("{system}, seed {seed}: {wrong}"))
}

/// Runs what a task does under every system.
fn keeps_every_invariant<T: Task>(task: &T) {
    let accesses: Vec<Accesses> = slots().map(|slot| accesses::of(task, slot, EPOCHS)).collect();
    let again: Vec<Accesses> = slots().map(|slot| accesses::of(task, slot, EPOCHS)).collect();
    assert!(accesses == again, "what workers access follows from the configuration");
    let keys = task.shape().keys();
    let trained =
        (0..keys).map(Key).filter(|key| accesses.iter().any(|one| one.pushes(*key))).count();
    assert!(2 * trained as u64 > keys, "{trained} of {keys} keys are trained");
    assert_frequencies(task, &accesses);
    for system in System::ALL {
        let of = |seed| system.with_parameter(seed as u32);
        let reports: Vec<Report> =
            (0..SEEDS).map(|seed| follow(&accesses, keys, of(seed), seed)).collect();
        assert_eq!(follow(&accesses, keys, of(0), 0).trace, reports[0].trace, "{system}");
        let faults: u64 = reports.iter().map(|report| report.coverage.faults()).sum();
        assert!(faults > 0, "nothing went wrong under {system}");
    }
}

/// Checks that frequencies are those of what all workers pull: about as much in all, of all workers
/// and with negatives, more of what is frequent, and only keys of one node are left out.
fn assert_frequencies<T: Task>(task: &T, accesses: &[Accesses]) {
    let expected = task.frequencies().expect("the tasks here know them");
    let keys = task.shape().keys();
    assert_eq!(expected.len() as u64, keys);
    let mut pulled = vec![0.0; expected.len()];
    let mut pullers = vec![BTreeSet::new(); expected.len()];
    for (worker, one) in accesses.iter().enumerate() {
        let mut own = vec![0.0; expected.len()];
        one.pulls().for_each(|key| own[key.0 as usize] += 1.0 / f64::from(EPOCHS));
        for (key, count) in own.into_iter().enumerate().filter(|(_, count)| *count > 0.0) {
            pulled[key] += count;
            pullers[key].insert(worker / WORKERS);
        }
    }
    let left_out = (0..expected.len()).filter(|key| expected[*key] == 0.0);
    let shared: Vec<usize> = left_out.filter(|key| pullers[*key].len() > 1).collect();
    assert!(shared.is_empty(), "frequency 0, and pulled by several nodes: {shared:?}");
    let mut counted: Vec<(f64, f64)> =
        expected.into_iter().zip(pulled).filter(|(expected, _)| *expected > 0.0).collect();
    let sums = |of: &[(f64, f64)]| {
        of.iter().fold((0.0, 0.0), |(a, b), (expected, pulled)| (a + expected, b + pulled))
    };
    let (all, found) = sums(&counted);
    assert!((0.5..2.0).contains(&(all / found)), "{all} expected, {found} pulled an epoch");
    counted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let half = counted.len() / 2;
    let ((_, frequent), (_, rare)) = (sums(&counted[..half]), sums(&counted[half..]));
    let (frequent, rare) = (frequent / half as f64, rare / (counted.len() - half) as f64);
    assert!(frequent >= rare, "frequent keys are pulled {frequent} times, others {rare}");
}

impl Accesses {
    fn pulls(&self) -> impl Iterator<Item = Key> {
        let pulled = self.steps.iter().filter_map(|step| match step {
            Access::Pull(keys) => Some(keys),
            _ => None,
        });
        pulled.flatten().copied()
    }

    fn pushes(&self, key: Key) -> bool {
        self.steps.iter().any(|step| matches!(step, Access::Push(keys) if keys.contains(&key)))
    }
}

#[test]
fn of_factorization_in_every_order() {
    let config = SyntheticConfig {
        rows: 16,
        columns: 12,
        cells: 40,
        test_cells: 1,
        ..SyntheticConfig::default()
    };
    let ratings = Ratings::synthetic(config).expect("there is such a matrix");
    for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
        let config = mf::TrainConfig { order: Some(order), dim: 4, ..mf::TrainConfig::default() };
        let prepared = Prepared::new(&ratings, &config, &NoProgress, &AtomicBool::new(false));
        keeps_every_invariant(&Factorization::new(&ratings, &config, &prepared, &[WORKERS; NODES]));
    }
}

#[test]
fn of_word_vectors() {
    let text =
        "the sun is a star and the moon is not\nthe moon moves round the earth\na star is far\n"
            .repeat(3);
    let corpus = Corpus::count(Text::of_bytes(text.as_bytes()), 1, 1).expect("there are words");
    let config = wv::TrainConfig { dim: 4, sample: 0.0, ..wv::TrainConfig::default() };
    keeps_every_invariant(&WordVectors::new(&corpus, None, &config).expect("memory can be read"));
}

#[test]
fn of_embeddings_with_either_way_of_sampling() {
    let mut graph = Graph::families(1, 1);
    graph.train.truncate(40);
    for negatives in [kge::Negatives::Shared, kge::Negatives::Independent] {
        let config = kge::TrainConfig {
            negatives,
            negative_count: Some(3),
            dim: 4,
            ..kge::TrainConfig::default()
        };
        let sizes = Sizes::new(&graph, &config, NODES * WORKERS);
        keeps_every_invariant(&Embeddings {
            graph: &graph,
            config: &config,
            parts: &OnceLock::new(),
            sizes,
            workers: &[WORKERS; NODES],
            priors: None,
            chosen: &Chosen::default(),
            partition: None,
        });
    }
}

#[test]
fn of_clicks_whose_layers_are_keys_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clicks.csv");
    let row = |row: u32| format!("{},{},{}\n", row % 7, row % 11, row % 2);
    std::fs::write(&path, (0..60).map(row).collect::<String>()).expect("is writable");
    let encoding = ctr::Encoding {
        schema: Some("a:cat,b:cat,y:label".parse().expect("a schema")),
        ..ctr::Encoding::default()
    };
    let files = ctr::Files::of(&path).expect("a file");
    let clicks = Clicks::load(&files, &encoding).expect("a table");
    let config = ctr::TrainConfig {
        dim: 2,
        hidden: "4".parse().expect("a layer"),
        batch: 4,
        ..ctr::TrainConfig::default()
    };
    keeps_every_invariant(&Prediction::new(&clicks, &config));
}

#[test]
fn of_graph_networks_with_features_to_learn() {
    let config =
        gnn::SyntheticConfig { nodes: 100, degree: 5.0, ..gnn::SyntheticConfig::default() };
    let graph = gnn::Graph::synthetic(config).expect("there is such a graph");
    let config = gnn::TrainConfig {
        features: Some(FeatureSource::Learned),
        hidden: 2,
        dim: 2,
        batch: 3,
        fanout: "3,3".parse().expect("two numbers"),
        ..gnn::TrainConfig::default()
    };
    let model = config.architecture(&graph).expect("features are learned");
    let features = graph.features.clone();
    keeps_every_invariant(&Network::new(&graph, &features, &model, &config, &[WORKERS; NODES]));
}
