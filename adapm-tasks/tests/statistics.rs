//! Statistics of a run agree with each other, under every system and for every task.

use adapm_tasks::System;
use adapm_tasks::ctr::{self, Clicks};
use adapm_tasks::gnn::{self, FeatureSource};
use adapm_tasks::kge::{self, Graph, Negatives};
use adapm_tasks::mf::{self, Ratings, SyntheticConfig};
use adapm_tasks::run::{ManagerStats, Run};
use adapm_tasks::wv::{self, Corpus, Text};

const NODES: usize = 3;

/// The counts of a run, and of each of its epochs.
struct Counted {
    run: ManagerStats,
    epochs: Vec<ManagerStats>,
    keys: u64,
}

fn graph(system: System, negatives: Negatives) -> Counted {
    let graph = Graph::families(1, 12);
    let mut config = kge::TrainConfig::default();
    (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
        (Some(system), Some(NODES), Some(1.into()));
    (config.dim, config.epochs, config.valid_every) = (4, 2, Some(1));
    (config.negatives, config.negative_count) = (negatives, Some(2));
    let report = kge::train(&graph, &config, &Run::alone()).expect("trains");
    let epochs = report.epochs.iter().map(|epoch| epoch.epoch_stats).collect();
    Counted {
        run: report.stats,
        epochs,
        keys: (graph.entities().len() + graph.relations().len()) as u64,
    }
}

fn matrix(system: System) -> Counted {
    let mut synthetic = SyntheticConfig::default();
    (synthetic.rows, synthetic.columns, synthetic.cells, synthetic.test_cells) =
        (90, 60, 1_200, 100);
    let ratings = Ratings::synthetic(synthetic).expect("there is such a matrix");
    let mut config = mf::TrainConfig::default();
    (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
        (Some(system), Some(NODES), Some(1.into()));
    (config.dim, config.epochs) = (4, Some(2));
    let report = mf::train(&ratings, &config, &Run::alone());
    let report = report.expect("trains");
    let epochs = report.epochs.iter().map(|epoch| epoch.epoch_stats).collect();
    Counted { run: report.stats, epochs, keys: (ratings.rows() + ratings.columns()) as u64 }
}

fn text(system: System) -> Counted {
    let corpus = Corpus::count(Text::generated(1, 200), 1, 1).expect("has words");
    let mut config = wv::TrainConfig::default();
    (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
        (Some(system), Some(NODES), Some(1.into()));
    (config.dim, config.epochs) = (4, Some(2));
    let report = wv::train(&corpus, None, &config, &Run::alone());
    let report = report.expect("trains");
    let epochs = report.epochs.iter().map(|epoch| epoch.epoch_stats).collect();
    Counted { run: report.stats, epochs, keys: 2 * corpus.vocabulary().len() as u64 }
}

fn clicks(system: System) -> Counted {
    let mut synthetic = ctr::SyntheticConfig::default();
    (synthetic.examples, synthetic.test_examples, synthetic.features) = (1_200, 100, 1_000);
    let clicks = Clicks::synthetic(synthetic).expect("there are such clicks");
    let mut config = ctr::TrainConfig::default();
    (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
        (Some(system), Some(NODES), Some(1.into()));
    (config.dim, config.hidden, config.epochs) = (2, "4".parse().expect("a layer"), Some(2));
    let report = ctr::train(&clicks, &config, &Run::alone()).expect("trains");
    let epochs = report.epochs.iter().map(|epoch| epoch.epoch_stats).collect();
    // Layers of 218 parameters are 16 keys.
    Counted { run: report.stats, epochs, keys: clicks.features().0 + 16 }
}

fn network(system: System) -> Counted {
    let mut synthetic = gnn::SyntheticConfig::default();
    synthetic.nodes = 200;
    let graph = gnn::Graph::synthetic(synthetic).expect("there is such a graph");
    let mut config = gnn::TrainConfig::default();
    (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
        (Some(system), Some(NODES), Some(1.into()));
    (config.dim, config.hidden, config.epochs) = (4, 4, Some(2));
    config.features = Some(FeatureSource::Learned);
    let report = gnn::train(&graph, &config, &Run::alone()).expect("trains");
    let epochs = report.epochs.iter().map(|epoch| epoch.epoch_stats).collect();
    // Layers of 60 parameters are 15 keys of 4.
    Counted { run: report.stats, epochs, keys: graph.nodes() as u64 + 15 }
}

#[track_caller]
fn assert_agrees(system: System, what: &str, counted: &Counted) {
    let Counted { run, epochs, keys } = counted;
    let claim =
        |holds: bool, claim: &str| assert!(holds, "{what} under {system}, {claim}: {run:?}");
    let refreshes = run.staleness.count();
    claim(refreshes == 0 || run.replicas > 0, "what was refreshed was set up");
    claim(
        run.replicas + run.relocations + run.remote == 0 || run.messages_sent > 0,
        "nothing moves by itself",
    );
    claim(
        run.waited == 0 || run.replicas + run.relocations + run.remote > 0,
        "what is waited for comes",
    );
    claim(run.messages_sent == 0 || run.bytes_sent > run.messages_sent, "a message has bytes");
    claim(run.releases <= run.replicas, "what was released was set up");
    claim(run.held_max <= run.replicas.min(*keys), "a node holds what was set up");
    claim(run.held_mean() <= run.held_max as f64, "the most is more than the mean");
    claim((run.held_max > 0) == (run.replicas > 0), "what was set up was held");
    let values = run.bytes_sent - run.head_bytes();
    claim(run.bytes_sent == 0 || values < run.bytes_sent, "values have heads");
    claim((run.refresh_bytes > 0) == (refreshes > 0), "a refresh has a value");
    claim((run.replica_bytes > 0) == (run.replicas > 0), "a replica has a value");
    claim(run.relocations > 0 || run.relocation_bytes == 0, "what moves has arrived");
    // An access that has waited leaves as an operation if the copy does not come.
    claim(
        run.remote + run.waited > 0 || run.operation_bytes + run.answer_bytes == 0,
        "operations are remote",
    );
    claim(
        run.forwards <= run.served * NODES as u64,
        "only what is served was forwarded, and not in circles",
    );
    claim(run.local + run.waited + run.remote > 0, "training accesses keys");
    match system {
        System::Classic => {
            claim(run.replicas + run.relocations + refreshes == 0, "classic has no copies");
            let copied = run.delta_bytes + run.replica_bytes + run.relocation_bytes;
            claim(copied == 0 && values == run.operation_bytes + run.answer_bytes, "nor sends any");
        }
        System::Full => {
            claim(
                run.replicas == keys * (NODES as u64 - 1),
                "every node has a replica of all it does not own",
            );
            claim(run.relocations + run.remote + run.waited == 0, "full accesses replicas alone");
            claim(refreshes > 0, "full refreshes its replicas");
            claim(run.delta_bytes > 0, "and they bring their changes");
            claim(run.releases == 0 && run.held_max < *keys, "and keeps them");
        }
        System::Lapse | System::AdapmNoReplication => {
            claim(run.replicas + refreshes == 0, "relocation alone has no replicas");
        }
        System::Parallax => claim(run.relocations == 0, "parallax moves nothing"),
        System::AdapmNoRelocation => claim(run.relocations == 0, "replication alone moves nothing"),
        _ => {}
    }
    let sum = epochs.iter().fold(ManagerStats::default(), |sum, epoch| sum.plus(epoch));
    claim(sum == *run, "a run is the sum of its epochs");
}

#[test]
fn counts_of_embeddings_agree_under_every_system() {
    let of = |system| graph(system, Negatives::Shared);
    System::ALL.into_iter().for_each(|system| assert_agrees(system, "kge", &of(system)));
}

#[test]
fn counts_of_embeddings_with_negatives_of_their_own_agree_under_every_system() {
    let of = |system| graph(system, Negatives::Independent);
    System::ALL.into_iter().for_each(|system| assert_agrees(system, "kge", &of(system)));
}

#[test]
fn counts_of_factorization_agree_under_every_system() {
    System::ALL.into_iter().for_each(|system| assert_agrees(system, "mf", &matrix(system)));
}

#[test]
fn counts_of_word_vectors_agree_under_every_system() {
    System::ALL.into_iter().for_each(|system| assert_agrees(system, "wv", &text(system)));
}

#[test]
fn counts_of_clicks_agree_under_every_system() {
    System::ALL.into_iter().for_each(|system| assert_agrees(system, "ctr", &clicks(system)));
}

#[test]
fn counts_of_graph_networks_agree_under_every_system() {
    System::ALL.into_iter().for_each(|system| assert_agrees(system, "gnn", &network(system)));
}
