//! The task as a run sees it: what workers load and signal intent for, how they step, how factors
//! are judged.
//!
//! Row `i` is key `i`, column `j` is key `rows + j`. Intent for rows is signaled once, for the
//! whole run; columns chunk by chunk, about 400,000 cells ahead. The clock counts chunks.

use std::sync::Arc;

use adapm_core::{Clock, Key};
use adapm_runtime::tables::{Table, Tables};

use crate::data::RatingId;
use crate::mf::config::TrainConfig;
use crate::mf::kernel::Rule;
use crate::mf::order::{Division, Visits};
use crate::mf::prediction::{Prediction, RatingMetrics, Scale};
use crate::mf::ratings::Ratings;
use crate::mf::selection::Prepared;
use crate::mf::step::{Load, Start, Weights, WorkerState};
use crate::mf::tiles::CHUNK_CELLS;
use crate::optim::ADAGRAD;
use crate::partition::PartitionFile;
use crate::run::config::{Split, batches_ahead};
use crate::run::error::TaskError;
use crate::run::observer::Epoch;
use crate::run::parameters::{IntentSignaler, Parameters, SamplingDistribution};
use crate::run::queue::{Cursor, Over, Queue};
use crate::run::task::{Course, Form, Initial, StepError, Task, Tell};
use crate::run::topology::WorkerSlot;
use crate::run::traced::{KeyChoice, UnknownKey, chosen_keys};

/// Ratings that are to be factorized.
pub(crate) struct Factorization<'a> {
    ratings: &'a Ratings,
    config: &'a TrainConfig,
    prepared: &'a Prepared<'a>,
    division: Division<'a>,
    weights: Weights,
}

/// The state of a worker's loader thread.
pub(crate) struct Loader {
    visits: Visits,
    /// Intent for the rows is signaled.
    has_rows: bool,
    columns: Vec<Key>,
}

impl<'a> Factorization<'a> {
    /// Factorizes by so many workers of each node.
    pub(crate) fn new(
        ratings: &'a Ratings,
        config: &'a TrainConfig,
        prepared: &'a Prepared<'a>,
        workers: &[usize],
    ) -> Self {
        let residuals = &prepared.residuals;
        let order = config.order(prepared.selection);
        let division = Division::new(residuals, order, workers, config.run.seed);
        Self {
            ratings,
            config,
            prepared,
            division,
            weights: Weights::new(residuals, config.penalty),
        }
    }
}

/// Returns the errors on the cells that are selected on, of the epochs after which these were
/// looked at.
fn errors(epochs: &[Epoch<RatingMetrics>]) -> impl Iterator<Item = f64> {
    epochs.iter().filter_map(|epoch| epoch.valid.as_ref()).map(|metrics| metrics.rmse)
}

impl<'a> Task for Factorization<'a> {
    type Batch<S: Send> = Load;
    type Loader = Loader;
    type WorkerState = WorkerState;
    type Evaluation = Prediction<'a>;

    fn tables(&self) -> Tables {
        let (dim, state_len) = (self.config.dim, Rule::of(self.config).state_len());
        let table =
            |name, rows: u32| Table::new(name, rows.into(), dim).with_state(ADAGRAD, state_len);
        let Ratings { rows, columns, .. } = *self.ratings;
        Tables::new([table("rows", rows), table("columns", columns)]).expect("names are there once")
    }

    fn initial(&self) -> Initial {
        let start = Start::of(self.config, self.config.run.seed);
        Arc::new(move |key, value| start.value(key, value))
    }

    fn name_of(&self, key: Key) -> String {
        name_of(self.ratings, key.0 as usize)
    }

    /// Columns by their cells; a row is accessed by one node.
    fn frequencies(&self) -> Option<Vec<f64>> {
        let [rows, columns] = self.ratings.counts_by_vector();
        let columns = columns.into_iter().map(f64::from);
        Some(rows.into_iter().map(|_| 0.0).chain(columns).collect())
    }

    fn sampling_distribution(&self) -> Option<SamplingDistribution> {
        None
    }

    /// Cells, with their row and column; those held back, too: what is dealt are rows, and what is
    /// held back hangs on the seed and other settings.
    fn samples(&self, each: &mut dyn FnMut(&[Key])) -> Result<bool, TaskError> {
        let rows = self.ratings.rows;
        self.ratings.for_each(0..rows, |cell| {
            each(&[cell.row, rows + cell.column].map(|vector| Key(vector.into())));
        });
        Ok(true)
    }

    fn deal_by(&mut self, partition: &Arc<PartitionFile>) {
        self.division.deal_by(partition);
    }

    fn examples(&self) -> u64 {
        self.prepared.residuals.len()
    }

    fn rounds(&self) -> u32 {
        self.division.rounds() as u32
    }

    fn prefetch_depth(&self) -> usize {
        batches_ahead(self.config, CELLS_AHEAD.div_ceil(CHUNK_CELLS))
    }

    fn loader(&self, slot: WorkerSlot, tell: &Tell<'_>) -> Loader {
        let part = self.division.part(slot, tell);
        let visits = Visits::new(part, self.config.run.seed, slot.number, slot.all);
        Loader { visits, has_rows: false, columns: Vec::new() }
    }

    fn load<A: IntentSignaler>(
        &self,
        loader: &mut Loader,
        Cursor { round, batch, mut clock }: Cursor,
        signaler: &mut A,
        queue: &Queue<Load>,
    ) -> Result<Clock, Over> {
        let Loader { visits, has_rows, columns } = loader;
        if !std::mem::replace(has_rows, true) {
            let rows: Vec<Key> = visits
                .part()
                .rows(self.ratings.rows)
                .into_iter()
                .map(|row| Key(row.into()))
                .collect();
            for rows in rows.chunks(ROWS_AT_ONCE) {
                signaler.signal_intent(rows, clock..Clock(u64::MAX))?;
            }
        }
        visits.round(round, batch, &mut |chunk| {
            columns.clear();
            let keys = chunk
                .columns
                .iter()
                .map(|column| Key(u64::from(self.ratings.rows) + u64::from(*column)));
            columns.extend(keys);
            signaler.signal_intent(columns, clock..clock + 1)?;
            queue.send(Load { chunk, clock })?;
            clock = clock + 1;
            Ok::<_, Over>(())
        })?;
        Ok(clock)
    }

    fn worker_state(&self) -> WorkerState {
        WorkerState::default()
    }

    fn prepare(&self, worker_state: &mut WorkerState, epochs: &[Epoch<RatingMetrics>]) {
        worker_state.begin(self.prepared.penalty(epochs.len(), errors(epochs)));
    }

    fn may_end_early(&self) -> bool {
        self.prepared.ends_early
    }

    fn is_over(&self, epochs: &[Epoch<RatingMetrics>]) -> bool {
        self.prepared.is_over(errors(epochs))
    }

    fn learning_rate(&self, course: &Course<'_>) -> f32 {
        let first = self.config.rate();
        if self.config.bold_driver { bold_driver(first, course.losses) } else { first }
    }

    fn train<P: Parameters>(
        &self,
        worker_state: &mut WorkerState,
        load: &mut Load,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        let rule = Rule { learning_rate, ..Rule::of(self.config) };
        worker_state.train(&load.chunk, rule, &self.weights, self.ratings.rows, parameters)
    }

    fn evaluation(
        &self,
        split: Split,
        form: Form,
        best: Option<&RatingMetrics>,
    ) -> Option<Prediction<'a>> {
        let Self { ratings, config, prepared, .. } = *self;
        let (residuals, deviation) = (&prepared.residuals, prepared.residuals.deviation());
        let (held, scale) = match split {
            Split::Valid => (&**prepared.valid.as_ref()?, Scale::Judged(deviation)),
            Split::Test => (
                &ratings.test,
                Scale::Known(deviation * best.map_or(prepared.gain, |best| best.gain)),
            ),
        };
        let value_len = match form {
            Form::Trained => Rule::of(config).value_len(),
            Form::Best => config.dim,
        };
        let (rows, dim, range) = (ratings.rows, config.dim, config.clip.then_some(ratings.range));
        let means = residuals.means();
        let prediction = Prediction { split, held, means, scale, rows, dim, value_len, range };
        (held.len() > 0).then_some(prediction)
    }

    fn is_better(&self, figures: &RatingMetrics, best: &RatingMetrics) -> bool {
        // NaN sorts after all numbers.
        figures.rmse.total_cmp(&best.rmse).is_lt()
    }
}

/// Returns the learning rate after epochs with these losses: raised by 5 % where the loss fell,
/// halved where it rose.
fn bold_driver(first: f32, losses: &[f64]) -> f32 {
    losses
        .windows(2)
        .fold(first, |rate, two| if two[1] < two[0] { 1.05 * rate } else { 0.5 * rate })
}

/// The kinds of keys that can be asked for by name, which is the id in the data.
pub const KEY_KINDS: &[&str] = &["row", "column"];

/// Returns the keys that `choices` name, each with what it is; without choices five between the
/// most frequent and a typical one. Goes over all of the training data.
///
/// # Errors
///
/// The first choice that the ratings do not have.
pub fn traced_keys(
    ratings: &Ratings,
    choices: &[KeyChoice],
) -> Result<Vec<(Key, String)>, UnknownKey> {
    let rows = ratings.rows();
    let counts: Vec<u64> =
        ratings.counts_by_vector().into_iter().flatten().map(u64::from).collect();
    let named = |kind: &'static str, name: &str| {
        let id = RatingId::of(name);
        let key = match kind {
            "row" => ratings.row_ids.find(id),
            _ => ratings.column_ids.find(id).map(|column| rows + column),
        };
        key.map(|key| vec![key])
    };
    let title = |key: usize| {
        format!("{}, in {} of {} ratings", name_of(ratings, key), counts[key], ratings.train_len())
    };
    chosen_keys(choices, counts.len(), &counts, named, title)
}

/// Names a key: `row 17`, `column 3`, by the ids of the data.
pub(crate) fn name_of(ratings: &Ratings, key: usize) -> String {
    let (kind, id) = match key.checked_sub(ratings.rows()) {
        None => ("row", ratings.row_id(key)),
        Some(column) => ("column", ratings.column_id(column)),
    };
    format!("{kind} {}", id.map(|id| id.to_string()).unwrap_or_default())
}

/// Cells between the announcement of a column and its use: 20 ms of a fast worker, 60 where four
/// processes share two cores, whose engines may have to wait for a core for 10. When to act on it
/// is the engines' decision. AdaPM signals 10,000 ahead (App. C), with a slower kernel.
const CELLS_AHEAD: usize = 400_000;
/// Rows of one intent signal.
const ROWS_AT_ONCE: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::mf::SyntheticConfig;
    use crate::mf::config::Order;
    use crate::run::RunConfig;
    use crate::run::loading::assert_begins_anywhere;
    use crate::run::observer::NoProgress;

    #[test]
    fn a_loader_begins_at_any_chunk_of_any_round_in_every_order() {
        let config = SyntheticConfig {
            rows: 3_000,
            columns: 500,
            cells: 12_000,
            ..SyntheticConfig::default()
        };
        let ratings = Ratings::synthetic(config).expect("there is such a matrix");
        for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
            for seed in [1, 2] {
                let order = Some(order);
                let run = RunConfig { seed, no_eval: true, ..RunConfig::default() };
                let config = TrainConfig { run, order, ..TrainConfig::default() };
                let stop = AtomicBool::new(false);
                let prepared = Prepared::new(&ratings, &config, &NoProgress, &stop);
                for workers in [&[1][..], &[2], &[1, 1], &[2, 2], &[2, 1]] {
                    let task = Factorization::new(&ratings, &config, &prepared, workers);
                    for slot in WorkerSlot::all_of(workers, true) {
                        let batches = assert_begins_anywhere(&task, slot, 2);
                        assert!(batches > 4, "{order:?} {batches}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_bold_driver_speeds_up_while_the_loss_falls() {
        assert_eq!(bold_driver(0.1, &[]), 0.1);
        assert_eq!(bold_driver(0.1, &[3.0]), 0.1);
        assert_eq!(bold_driver(0.1, &[3.0, 2.0, 2.5, 1.0]), 0.1 * 1.05 * 0.5 * 1.05);
        assert_eq!(bold_driver(0.1, &[3.0, f64::NAN]), 0.05);
    }

    #[test]
    fn rows_and_columns_are_found_by_id_and_what_is_not_there_is_told() {
        let config =
            SyntheticConfig { rows: 50, columns: 30, cells: 300, ..SyntheticConfig::default() };
        let ratings = Ratings::synthetic(config).expect("there is such a matrix");
        let keys = |text: &str| {
            let choices = KeyChoice::list(text, KEY_KINDS).expect("choices");
            traced_keys(&ratings, &choices)
                .map(|keys| keys.iter().map(|(key, _)| key.0).collect::<Vec<_>>())
        };
        assert_eq!(keys("row:0,row:49,column:0,column:29,key:3"), Ok(vec![0, 49, 50, 79, 3]));
        for text in ["row:50", "column:30", "row:x", "key:80"] {
            assert!(keys(text).is_err(), "{text}");
        }
        assert_eq!(
            keys("row:50").unwrap_err().to_string(),
            "no row 50 in the data; give a name as in its files"
        );
        let chosen = traced_keys(&ratings, &[]).expect("needs no names");
        assert!(chosen[0].1.ends_with(" of 300 ratings (the most frequent)"), "{chosen:?}");
    }
}
