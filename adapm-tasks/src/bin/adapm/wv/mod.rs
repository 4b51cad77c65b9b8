//! Word vectors on the command line.

mod asked;
mod eval;
mod figures;
mod train;

use std::path::Path;
use std::thread;

use adapm_tasks::run::{CheckpointError, Epoch, Observer, Split, TaskError, Training, Work};
use adapm_tasks::wv::{AnalogyReport, Checkpoint, Corpus, Text, Vectors, Vocabulary};

use crate::args::Given;
use crate::args::wv::DataArgs;
use crate::failure::Failure;
use crate::format;
use crate::input;
use crate::progress::{EpochDone, Labels, Screen};
use crate::table::Table;

pub(crate) use figures::BEST_ACCURACY;

/// The name of the task.
const TASK: &str = "wv";

pub(crate) const LABELS: Labels = Labels { examples: "words", evaluating: "answering", quality: "accuracy" };

/// Flags that choose data.
const DATA_FLAGS: [&str; 3] = ["data", "data-seed", "sentences"];

impl Observer<AnalogyReport> for Screen<'_> {
    fn training(&self, moment: &Training) {
        self.show_training(moment);
    }

    fn evaluating(&self, split: Split, done: u64, all: u64) {
        self.show_evaluating(split, done, all);
    }

    fn working(&self, work: Work, done: u64, all: u64) {
        self.show_working(work, done, all);
    }

    fn epoch(&self, epoch: &Epoch<AnalogyReport>) {
        self.show_epoch(&EpochDone::new(epoch, |report| report.total().accuracy()));
    }
}

/// Reads the text that is asked for, or generates one, and counts its words.
fn corpus(args: &DataArgs) -> Result<Corpus, Failure> {
    let text = match &args.data {
        Some(name) => Text::open(&input::locate(TASK, name)?)?,
        None => Text::generated(args.data_seed, args.sentences),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    Ok(match &args.read_vocab {
        Some(path) => Corpus::with(text, Vocabulary::load(path, args.min_count)?, threads)?,
        None => Corpus::count(text, args.min_count, threads)?,
    })
}

/// Reads vectors of any form, and tells which it was.
pub(crate) fn vectors(path: &Path) -> Result<(Vectors, String), Failure> {
    match Checkpoint::load(path) {
        Ok(checkpoint) => Ok((checkpoint.vectors(), "of adapm".to_owned())),
        Err(CheckpointError::Foreign { .. }) => {
            let (vectors, form) = Vectors::open(path)?;
            Ok((vectors, form.to_string()))
        }
        Err(error) => Err(TaskError::Checkpoint(error).into()),
    }
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(table: &mut Table, corpus: &Corpus, args: &DataArgs, given: &Given) {
    let origin = input::origin(args.data.as_deref(), &DATA_FLAGS, given);
    let text = corpus.text();
    table.row(["data".to_owned(), text.source().to_string(), origin]);
    let sizes =
        format!("{}, {} words of the vocabulary", format::bytes(text.len()), format::count(corpus.words()));
    table.row(["", &sizes]);
    let words = format::count(corpus.vocabulary().len() as u64);
    let times = args.min_count;
    let vocabulary = match &args.read_vocab {
        None => format!("{words} words that occur {times} times or more"),
        Some(path) => format!("{words} words of {}, {times} times or more there", path.display()),
    };
    table.row(["vocabulary", &vocabulary, &given.among(&["min-count", "read-vocab"])]);
}
