//! Relocation, and replicas that both nodes write.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};
use adapm_runtime::{Done, System};
use adapm_transport::net::Kind;

use crate::measure::bench::figure::{BenchError, Desk, Figure, Goal, TURNS, median};
use crate::measure::bench::rows::{
    BATCH, Floats, LEN, REPLICAS, WINDOW, first, link_name, links, pair, settle,
};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    for kind in links(desk) {
        let link = link_name(kind);
        let figure =
            Figure::new(format!("relocation, {LEN} floats, {link}"), "M keys/s", relocation(kind)?);
        desk.add(figure.towards(Goal::AtLeast(3.0)).after("0.38, 1 channel 1.0"))?;
        let rate = replicas(kind)?;
        let [delay, quiet] = delays(kind)?;
        let figure =
            Figure::new(format!("10 k replicas, both nodes write, {link}"), "M keys/s", rate);
        desk.add(figure.towards(Goal::AtLeast(8.0)).after("2.9, 1 channel 3.8"))?;
        let figure =
            Figure::new(format!("a push until the other node reads it, {link}"), "us", delay);
        desk.add(figure.towards(Goal::AtMost(600.0)).after("600, 1 channel 1050"))?;
        desk.add(Figure::new(format!("a quiesce of nodes at rest, {link}"), "us", quiet))?;
    }
    Ok(())
}

/// Millions of keys a second that go from one node to the other while both only ask in turns.
fn relocation(kind: Option<Kind>) -> Result<f64, BenchError> {
    let cluster = pair(layout(), kind)?.system(System::Lapse).build()?;
    let keys: Vec<Key> = (0..KEYS).map(Key).collect();
    let work = |mut worker: Floats| -> Result<Option<f64>, OpError> {
        let mut rates = Vec::new();
        for turn in 0..=2 * TURNS {
            worker.barrier()?;
            if turn % 2 == worker.node().index() {
                continue;
            }
            let start = Instant::now();
            let mut under_way = VecDeque::<Done>::new();
            for keys in keys.chunks(BATCH) {
                if under_way.len() == WINDOW {
                    under_way.pop_front().expect("as many as the window").wait()?;
                }
                under_way.push_back(worker.localize_async(keys)?);
            }
            for ticket in under_way {
                ticket.wait()?;
            }
            // Half of the keys begin at home with the first who asks.
            if turn > 1 {
                rates.push(KEYS as f64 / 1e6 / start.elapsed().as_secs_f64());
            }
        }
        Ok(Some(median(rates)))
    };
    first(cluster.run(work)?)
}

/// Millions of updates of keys a second that reach the other node while both write all keys.
fn replicas(kind: Option<Kind>) -> Result<f64, BenchError> {
    let cluster = pair(layout(), kind)?.build()?;
    let work = |mut worker: Floats| -> Result<Option<f64>, OpError> {
        let keys: Vec<Key> = (0..REPLICAS).map(Key).collect();
        settle(&mut worker, &keys)?;
        let mut times = Vec::new();
        let update = vec![1.0; BATCH * LEN];
        for turn in 0..=TURNS {
            worker.barrier()?;
            let start = Instant::now();
            for keys in keys.chunks(BATCH) {
                worker.push(keys, &update)?;
            }
            worker.wait_sync()?;
            worker.barrier()?;
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
        Ok(Some(2.0 * REPLICAS as f64 / 1e6 / median(times)))
    };
    first(cluster.run(work)?)
}

/// Microseconds from a push to the moment at which the other node reads it while nothing else is
/// written, and of a quiesce then. Under a system in which no change waits for more.
fn delays(kind: Option<Kind>) -> Result<[f64; 2], BenchError> {
    let cluster = pair(layout(), kind)?.system(System::Full).build()?;
    let gate = Barrier::new(2);
    let begun = Instant::now();
    let work = |mut worker: Floats| trips(&mut worker, &gate, begun).map(Some);
    let mut results = cluster.run(work)?.into_iter().collect::<Result<Vec<_>, OpError>>()?;
    let [seen, pushed] =
        [results.pop(), results.pop()].map(|result| result.flatten().expect("both measure"));
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let delays =
        pushed.iter().zip(&seen).map(|(pushed, seen)| micros(pushed.moment.abs_diff(seen.moment)));
    let quiets = pushed.iter().map(|trip| micros(trip.quiet));
    Ok([median(delays.collect()), median(quiets.collect())])
}

/// One push that is waited for.
struct Trip {
    /// The time that the quiesce before it took.
    quiet: Duration,
    /// When the first node has pushed, or the second has read what it pushed.
    moment: Duration,
}

/// Pushes often, each time after a pause of its own from the end of a quiesce on: rounds go on from
/// there.
fn trips(worker: &mut Floats, gate: &Barrier, begun: Instant) -> Result<Vec<Trip>, OpError> {
    let (key, mut value, mut trips) = (Key(0), [0.0; LEN], Vec::new());
    worker.pull(&[key], &mut value)?;
    for trip in 0..TRIPS {
        worker.barrier()?;
        let start = Instant::now();
        worker.quiesce()?;
        let (end, quiet) = (Instant::now(), start.elapsed());
        worker.pull(&[key], &mut value)?;
        let before = value[0];
        gate.wait();
        let moment = if worker.node().index() == 0 {
            let pause = PAUSE_MAX * (trip * COPRIME % TRIPS) as u32 / TRIPS as u32;
            while end.elapsed() < pause {
                std::thread::yield_now();
            }
            let moment = begun.elapsed();
            worker.push(&[key], &[1.0; LEN])?;
            moment
        } else {
            while value[0] == before {
                std::thread::yield_now();
                worker.pull(&[key], &mut value)?;
            }
            begun.elapsed()
        };
        trips.push(Trip { quiet, moment });
    }
    worker.quiesce()?;
    Ok(trips)
}

fn layout() -> Layout {
    Layout::dense(&[(KEYS, LEN)]).expect("few keys, short values")
}

/// Keys that are relocated.
const KEYS: u64 = 40_000;

/// Pushes that are waited for.
const TRIPS: usize = 200;

/// Pauses follow each other in the order of its multiples.
const COPRIME: usize = 77;

/// As long as rounds are apart when nothing happens.
const PAUSE_MAX: Duration = Duration::from_millis(2);
