//! Cells per second of matrix factorization beside its floor, measured in turns in one run; medians.
//!
//! The floor is the same loop on plain arrays by one worker (`system: None`): no manager, no latch, no directory. The matrix is
//! generated, Zipf-1.1, rank 32, order `columnwise`, AdaGrad.
//!
//! `cargo bench -p adapm-tasks --bench mf`: 100 k x 10 k, 10 M cells; with `-- small` 20 k x 2 k, 1 M cells; with `-- rate` prints
//! only the cells per second of one node with two workers, for `benches/against_libmf.py`.

mod turns;

use std::sync::atomic::AtomicBool;

use adapm_tasks::System;
use adapm_tasks::mf::{NoProgress, PlantedConfig, Ratings, TrainConfig, train};

use crate::turns::RUNS;

fn main() {
    let asked = |word: &str| std::env::args().any(|argument| argument == word);
    let mut planted = PlantedConfig::default();
    (planted.rows, planted.columns, planted.cells, planted.test_cells) = (100_000, 10_000, 10_000_000, 1);
    planted.rank = RANK;
    if asked("small") {
        (planted.rows, planted.columns, planted.cells) = (20_000, 2_000, 1_000_000);
    }
    let ratings = Ratings::planted(planted).expect("there is such a matrix");
    if asked("rate") {
        println!("{}", rate(&ratings, Some(System::Adapm), 2));
        return;
    }
    println!("{} cells, rank {RANK}, medians of {RUNS}, M cells/s", ratings.train_len());
    turns::print(1e6, |system, workers| rate(&ratings, system, workers));
}

/// Training cells per second in the best epoch but the first, which warms up.
fn rate(ratings: &Ratings, system: Option<System>, workers: usize) -> f64 {
    let mut config = TrainConfig::default();
    (config.system, config.workers, config.epochs, config.dim) = (system, Some(workers), EPOCHS, RANK);
    (config.evaluate, config.checkpoint) = (false, false);
    let report = train(ratings, &config, &NoProgress, &AtomicBool::new(false)).expect("trains");
    let rates = report.epochs.iter().skip(1).map(|epoch| epoch.examples as f64 / epoch.seconds);
    rates.fold(0.0, f64::max)
}

const EPOCHS: u32 = 4;
/// Of the generated matrix and of the model.
const RANK: usize = 32;
