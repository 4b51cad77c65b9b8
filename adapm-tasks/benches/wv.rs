//! Words per second of word vectors beside their floor, measured in turns in one run; medians.
//!
//! The floor is the same loop on plain arrays by one worker (`system: None`). Skip-gram with the default settings: dimension 100,
//! window 5, 5 negatives, sample 1e-3.
//!
//! `cargo bench -p adapm-tasks --bench wv -- text FILE`: words that occur 5 times and more in a text; without a file, generated
//! sentences, whose vocabulary fits into any cache. With `rate` it prints only the words per second of one node with two workers,
//! for `benches/against_gensim.py`.

mod turns;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use adapm_tasks::System;
use adapm_tasks::run::NoProgress;
use adapm_tasks::wv::{Corpus, Text, TrainConfig, train};

use crate::turns::RUNS;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file = arguments.iter().position(|argument| argument == "text").map(|at| &arguments[at + 1]);
    let text = match file {
        Some(file) => Text::open(Path::new(file)).expect("there is such a text"),
        None => Text::generated(1, 50_000),
    };
    let corpus = Corpus::count(text, 5, 2).expect("there are words");
    if arguments.iter().any(|argument| argument == "rate") {
        println!("{}", rate(&corpus, Some(System::Adapm), 2));
        return;
    }
    println!("{} words, medians of {RUNS}, k words/s", corpus.words());
    turns::print(1e3, |system, workers| rate(&corpus, system, workers));
}

/// Words per second of an epoch.
fn rate(corpus: &Corpus, system: Option<System>, workers: usize) -> f64 {
    let mut config = TrainConfig::default();
    (config.system, config.workers, config.epochs) = (system, Some(workers), 1);
    config.checkpoint = false;
    let report = train(corpus, None, &config, &NoProgress, &AtomicBool::new(false)).expect("trains");
    report.epochs.first().map_or(0.0, |epoch| epoch.examples as f64 / epoch.seconds)
}
