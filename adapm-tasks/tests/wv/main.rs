//! Word vectors through their public door: training and evaluation under every system, on one node
//! and on several.

#[path = "../support/group.rs"]
mod group;

mod bad_input;
mod distribution;
mod processes;
mod real_data;
mod training;

use adapm_tasks::run::{Run, TaskError};
use adapm_tasks::wv::{Analogies, Corpus, Text, TrainConfig, TrainReport, train};

/// Returns a job that takes a moment.
fn small(change: impl FnOnce(&mut TrainConfig)) -> TrainConfig {
    let mut config = TrainConfig::default();
    config.cluster.system = None;
    config.cluster.workers = Some(1.into());
    config.dim = 16;
    config.epochs = Some(2);
    config.learning_rate = 0.1;
    config.ahead = 64;
    change(&mut config);
    config
}

fn corpus(sentences: u64) -> Corpus {
    Corpus::count(Text::generated(1, sentences), 2, 1).expect("there are words")
}

fn run(corpus: &Corpus, config: &TrainConfig) -> Result<TrainReport, TaskError> {
    train(corpus, Some(&Analogies::generated()), config, &Run::alone())
}
