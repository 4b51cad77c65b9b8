//! The batches and signals of a loader in tests, from any place in its data on.

use std::fmt::Debug;
use std::ops::Range;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};

use crate::run::parameters::IntentSignaler;
use crate::run::queue::{self, Cursor, Round};
use crate::run::session;
use crate::run::task::{Batch, Task};
use crate::run::topology::WorkerSlot;

/// The output of a loader.
#[derive(Debug, PartialEq)]
struct Loaded {
    /// The place of each batch, and its description.
    batches: Vec<(Cursor, String)>,
    signals: Vec<(Vec<Key>, Range<Clock>)>,
    /// Keys of samples.
    sampled: Vec<(usize, Range<Clock>)>,
}

impl IntentSignaler for &mut Loaded {
    type Sample = usize;

    fn signal_intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        self.signals.push((keys.to_vec(), clocks));
        Ok(())
    }

    fn skip_samples(&mut self, _: u64) {}

    fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<usize, OpError> {
        self.sampled.push((n, clocks));
        Ok(n)
    }
}

/// Asserts that a loader that begins at a batch of any round, without having loaded another, gives
/// what one gives that began at the start: the same batches, clocks, signals and samples. Tries up
/// to 40 batches of all epochs; returns their number.
pub(crate) fn assert_begins_anywhere<T>(task: &T, slot: WorkerSlot, epochs: u32) -> usize
where
    T: Task,
    T::Batch<usize>: Debug,
{
    let all = loaded(task, slot, Cursor::START, epochs);
    assert!(all.batches.iter().any(|(cursor, _)| cursor.batch > 1), "a round has several batches");
    let stride = all.batches.len().div_ceil(40);
    for (at, (start, _)) in all.batches.iter().enumerate().step_by(stride) {
        let tail = loaded(task, slot, *start, epochs);
        assert!(tail.batches == all.batches[at..], "other batches from {start:?}");
        let from = |clocks: &Range<Clock>| clocks.start >= start.clock;
        let whole = |clocks: &Range<Clock>| clocks.end == Clock(u64::MAX);
        let rest = |loaded: &Loaded| {
            let signals =
                loaded.signals.iter().filter(|(_, clocks)| from(clocks) && !whole(clocks));
            let sampled = loaded.sampled.iter().filter(|(_, clocks)| from(clocks));
            (signals.cloned().collect::<Vec<_>>(), sampled.cloned().collect::<Vec<_>>())
        };
        assert!(rest(&tail) == rest(&all), "other signals from {start:?}");
        let of_run = |loaded: &Loaded| {
            let signals = loaded.signals.iter().filter(|(_, clocks)| whole(clocks));
            signals.flat_map(|(keys, _)| keys.clone()).collect::<Vec<_>>()
        };
        assert!(of_run(&tail) == of_run(&all), "other signals for the whole run from {start:?}");
    }
    all.batches.len()
}

/// Loads from `start` to the end of the last epoch.
fn loaded<T>(task: &T, slot: WorkerSlot, start: Cursor, epochs: u32) -> Loaded
where
    T: Task,
    T::Batch<usize>: Debug,
{
    let mut loaded = Loaded { batches: Vec::new(), signals: Vec::new(), sampled: Vec::new() };
    let (queue, mut batches) = queue::queue(usize::MAX);
    let loader = task.loader(slot, &|_, _| {});
    session::load(task, start, epochs, loader, &mut loaded, queue);
    let rounds =
        (1..=epochs).flat_map(|epoch| (0..task.rounds()).map(move |index| Round { epoch, index }));
    for round in rounds {
        // Those before the start are not loaded.
        let mut number = if round == start.round { start.batch } else { 0 };
        while let Some(batch) = batches.next(round).expect("loads") {
            let cursor = Cursor { round, batch: number, clock: batch.clock() };
            loaded.batches.push((cursor, format!("{batch:?}")));
            number += 1;
        }
    }
    loaded
}
