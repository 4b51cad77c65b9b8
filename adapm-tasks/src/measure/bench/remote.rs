//! Pulls and pushes of keys that another node holds.

use std::collections::VecDeque;
use std::time::Instant;

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Pull, System};
use adapm_transport::net::Kind;

use super::desk::Desk;
use super::echo::Echo;
use super::error::BenchError;
use super::figure::{Figure, Goal};
use super::pair::{LEN, WINDOW, first, link_name, links, pair};
use super::rows::{Access, BATCH, Floats};
use super::turns::{TURNS, median};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    for kind in links(desk) {
        for keys in [1, BATCH] {
            for access in Access::ALL {
                let figure = synchronous(kind, access, keys)?;
                desk.add(figure)?;
            }
        }
        let what = format!("pull, {BATCH} keys a call, {WINDOW} calls at once, {}", link_name(kind));
        let rate = outstanding(kind)?;
        desk.add(Figure::new(what, "M keys/s", rate).after("3.2, 1 channel 6.5"))?;
    }
    Ok(())
}

/// Calls of the first node's worker, one after the other, in turns with as many bytes over a bare socket.
fn synchronous(kind: Option<Kind>, access: Access, keys: usize) -> Result<Figure, BenchError> {
    let cluster = pair(layout(), kind)?.system(System::Classic).build()?;
    let values = keys * LEN * size_of::<f32>();
    let (out, back) = match access {
        Access::Pull => (HEAD + keys * PER_KEY, HEAD + values),
        Access::Push => (HEAD + keys * PER_KEY + values, HEAD),
    };
    let echo = kind.map_or_else(Echo::between_threads, |kind| Echo::over(kind, out, back))?;
    // The channels between threads are one worker's.
    let echo = std::sync::Mutex::new(echo);
    let far = far_keys(keys);
    let work = |mut worker: Floats| {
        if worker.node() == NodeId(1) {
            return Ok(None);
        }
        let echo = echo.lock().expect("one worker measures");
        let mut room = vec![0.0; keys * LEN];
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..CALLS {
            let start = Instant::now();
            echo.exchange();
            times[0].push(start.elapsed().as_nanos() as f64 / 1e3);
            let start = Instant::now();
            match access {
                Access::Pull => worker.pull(&far, &mut room)?,
                Access::Push => worker.push(&far, &room)?,
            }
            times[1].push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        Ok(Some(times.map(median)))
    };
    let [floor, value] = first(cluster.run(work)?)?;
    let plural = if keys == 1 { "" } else { "s" };
    let what = format!("{}, {keys} key{plural}, {}", access.name(), link_name(kind));
    let figure = Figure::new(what, "us", value).beside(floor).towards(Goal::AtMost(1.6 * floor));
    Ok(match (access, keys) {
        (Access::Push, _) => figure,
        (Access::Pull, 1) => figure.after("133, 1 channel 123"),
        (Access::Pull, _) => figure.after("184, 1 channel 147"),
    })
}

/// Millions of keys a second with several calls under way.
fn outstanding(kind: Option<Kind>) -> Result<f64, BenchError> {
    let cluster = pair(layout(), kind)?.system(System::Classic).build()?;
    let far = far_keys(KEYS as usize / 2);
    let work = |mut worker: Floats| {
        if worker.node() == NodeId(1) {
            return Ok(None);
        }
        let mut rates = Vec::new();
        for _ in 0..TURNS {
            let mut under_way = VecDeque::<Pull<f32>>::new();
            let start = Instant::now();
            for call in 0..CALLS {
                if under_way.len() == WINDOW {
                    under_way.pop_front().expect("as many as the window").wait()?;
                }
                let keys = far.chunks_exact(BATCH).nth(call % (far.len() / BATCH)).expect("within the keys");
                under_way.push_back(worker.pull_async(keys)?);
            }
            for ticket in under_way {
                ticket.wait()?;
            }
            rates.push((CALLS * BATCH) as f64 / 1e6 / start.elapsed().as_secs_f64());
        }
        Ok(Some(median(rates)))
    };
    first(cluster.run(work)?)
}

fn layout() -> Layout {
    Layout::dense(&[(KEYS, LEN)]).expect("few keys, short values")
}

/// Keys whose home is the second node.
fn far_keys(count: usize) -> Vec<Key> {
    let far = (0..KEYS).map(Key).filter(|key| Layout::home(*key, 2) == NodeId(1));
    far.take(count).collect()
}

const KEYS: u64 = 4_000;

/// Of a message, about, and of a key in it.
const HEAD: usize = 64;
const PER_KEY: usize = 8;

/// Calls of a turn.
const CALLS: usize = 2_000;
