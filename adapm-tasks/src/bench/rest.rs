//! What goes on while nothing happens.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};

use super::moves::{REPLICAS, settle};
use super::remote::{LEN, first, pair};
use super::rows::Floats;
use super::{BenchError, Desk, Figure, Goal};

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
            let (sent, spent, start) = (cluster.stats().messages_sent, processor_ticks(), Instant::now());
            thread::sleep(WATCHED);
            let seconds = start.elapsed().as_secs_f64();
            let messages = (cluster.stats().messages_sent - sent) as f64 / seconds;
            let ticks = processor_ticks().zip(spent).map(|(now, before)| (now - before) as f64);
            found = Some((messages, ticks.map(|ticks| 100.0 * ticks / TICKS_PER_SECOND / seconds)));
        }
        gate.wait();
        Ok(found)
    };
    first(cluster.run(work)?)
}

/// Time of processors that this process has had so far, where the system tells it (proc(5): `utime` and `stime`).
fn processor_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

/// Of the times that Linux tells, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

const SETTLING: Duration = Duration::from_millis(500);
const WATCHED: Duration = Duration::from_secs(4);
