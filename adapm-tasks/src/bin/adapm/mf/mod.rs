//! Matrix factorization on the command line.

mod eval;
mod figures;
mod findings;
mod train;

use adapm_tasks::mf::{PlantedConfig, RatingMetrics, Ratings};
use adapm_tasks::run::{Epoch, Observer, Split, TaskError, Training, Work};

use crate::args::Given;
use crate::args::mf::DataArgs;
use crate::failure::Failure;
use crate::format;
use crate::input;
use crate::progress::{EpochDone, Labels, Screen};
use crate::table::Table;

pub(crate) use findings::findings;

/// The name of the task.
const TASK: &str = "mf";

pub(crate) const LABELS: Labels = Labels { examples: "cells", evaluating: "predicting", quality: "RMSE" };

/// Flags that choose data.
const DATA_FLAGS: [&str; 8] =
    ["data", "data-seed", "rows", "columns", "cells", "test-cells", "rank", "noise"];

impl Observer<RatingMetrics> for Screen<'_> {
    fn training(&self, moment: &Training) {
        self.show_training(moment);
    }

    fn evaluating(&self, split: Split, done: u64, all: u64) {
        self.show_evaluating(split, done, all);
    }

    fn working(&self, work: Work, done: u64, all: u64) {
        self.show_working(work, done, all);
    }

    fn epoch(&self, epoch: &Epoch<RatingMetrics>) {
        self.show_epoch(&EpochDone::new(epoch, |metrics| metrics.rmse));
    }
}

/// Reads the ratings that are asked for, or generates a matrix.
fn ratings(args: &DataArgs) -> Result<Ratings, Failure> {
    if let Some(name) = &args.data {
        let path = input::locate(TASK, name)?;
        return Ratings::load(&path).map_err(|error| TaskError::Data(error).into());
    }
    let asked = &args.generated;
    let mut config = PlantedConfig::default();
    (config.rows, config.columns, config.rank) = (asked.rows, asked.columns, asked.rank);
    (config.cells, config.test_cells) = (asked.cells, asked.test_cells);
    (config.noise, config.seed) = (asked.noise, asked.data_seed);
    Ok(Ratings::planted(config)?)
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(table: &mut Table, ratings: &Ratings, args: &DataArgs, given: &Given) {
    let origin = input::origin(args.data.as_deref(), &DATA_FLAGS, given);
    table.row(["data".to_owned(), ratings.source().to_string(), origin]);
    let sizes = format!(
        "{} train, {} valid, {} test cells; {} rows, {} columns",
        format::count(ratings.train_len()),
        format::count(ratings.valid_len() as u64),
        format::count(ratings.test_len() as u64),
        format::count(ratings.rows() as u64),
        format::count(ratings.columns() as u64),
    );
    table.row(["", &sizes]);
    findings(ratings).iter().for_each(|finding| table.row(["", finding.text.as_str()]));
}
