//! What goes on while nothing happens.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};

use super::figure::{Figure, Goal};
use super::rows::Floats;
use crate::measure::bench::figure::{self, BenchError, Desk};
use crate::measure::bench::rows::{LEN, REPLICAS, first, pair, settle};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    let (messages, processor) = idle()?;
    let what = "two nodes that hold 10 k replicas";
    let figure = Figure::new(format!("messages, {what}"), "1/s", messages);
    desk.add(figure.towards(Goal::AtMost(0.0)).after("thousands"))?;
    let Some(share) = processor else { return Ok(()) };
    desk.add(Figure::new(format!("processor, {what}"), "% of a core", share))
}

/// Messages a second, and the share of a core if the system tells it, in percent.
fn idle() -> Result<(f64, Option<f64>), BenchError> {
    let layout = Layout::dense(&[(REPLICAS, LEN)]).expect("few keys, short values");
    let cluster = pair(layout, None)?.build()?;
    let gate = Barrier::new(2);
    let work = |mut worker: Floats| -> Result<Option<_>, OpError> {
        let keys: Vec<Key> = (0..REPLICAS).map(Key).collect();
        settle(&mut worker, &keys)?;
        worker.quiesce()?;
        gate.wait();
        let mut found = None;
        if worker.node().index() == 0 {
            thread::sleep(SETTLING);
            let (sent, spent, start) =
                (cluster.stats().messages_sent, figure::processor_seconds(), Instant::now());
            thread::sleep(WATCHED);
            let seconds = start.elapsed().as_secs_f64();
            let messages = (cluster.stats().messages_sent - sent) as f64 / seconds;
            let share = figure::processor_seconds().zip(spent).map(|(now, before)| (now - before) / seconds);
            found = Some((messages, share.map(|share| 100.0 * share)));
        }
        gate.wait();
        Ok(found)
    };
    first(cluster.run(work)?)
}

const SETTLING: Duration = Duration::from_millis(500);
const WATCHED: Duration = Duration::from_secs(4);
