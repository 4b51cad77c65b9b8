//! Bytes of a copy: what the store has for it, and by how much a process grows with it, which is
//! what engines and workers know of it besides, and what the allocator does not give back. And what
//! goes on while nothing happens.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use adapm_core::error::OpError;
use adapm_core::store::Store;
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, LayoutStore, System};

use crate::measure::bench::figure::{self, BenchError, Desk, Figure, Goal};
use crate::measure::bench::rows::{Floats, LEN, REPLICAS, first, pair, settle};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    let keys = if desk.plan.is_quick { KEYS / 4 } else { KEYS };
    // Both nodes hold values and deltas in the largest cluster, and as much again is for what is
    // known of them.
    if !desk.has_room("bytes of copies", 8 * keys as usize * LEN * size_of::<f32>()) {
        return Ok(());
    }
    // Before anything has been freed that the allocator keeps.
    let grown = grown(keys)?;
    let kept = [Some(false), None, Some(true)].map(|with_delta| in_store(with_delta, keys));
    let copies = ["a main copy", "a key that is elsewhere", "a replica"];
    let goals = [4 * LEN + 24, 8, 8 * LEN + 48].map(|bytes| Goal::AtMost(bytes as f64 + BOOK));
    for ((what, bytes), goal) in copies.iter().zip(kept).zip(goals) {
        desk.add(
            Figure::new(format!("{what}, {LEN} floats, in the store"), "B", bytes).towards(goal),
        )?;
    }
    for (((what, bytes), kept), goal) in
        copies.iter().zip(grown.into_iter().flatten()).zip(kept).zip(goals)
    {
        let figure =
            Figure::new(format!("{what}, {LEN} floats, growth of the process"), "B", bytes);
        desk.add(figure.beside(kept).towards(goal))?;
    }
    Ok(())
}

fn layout(keys: u64) -> Layout {
    Layout::dense(&[(keys, LEN)]).expect("few keys, short values")
}

/// Bytes by which each key makes a store larger that holds copies of all keys, with a delta or
/// without; of none if `None`.
fn in_store(with_delta: Option<bool>, keys: u64) -> f64 {
    let bytes = |keys: u64| {
        let store = LayoutStore::<f32>::new(&layout(keys));
        if let Some(with_delta) = with_delta {
            (0..keys).for_each(|key| store.reserve(Key(key), with_delta));
        }
        store.memory() as f64
    };
    a_key(keys, bytes(keys / PART), bytes(keys))
}

/// Bytes by which main copies, keys that are elsewhere, and replicas make this process larger,
/// each; `None` where the system does not report it.
fn grown(keys: u64) -> Result<Option<[f64; 3]>, BenchError> {
    let mut bytes = [0.0; 3];
    // In ascending order of the memory that the allocator keeps after each.
    for (bytes, (nodes, system)) in
        bytes.iter_mut().zip([(1, System::Classic), (2, System::Classic), (2, System::Full)])
    {
        let Some(of_part) = resident_with(nodes, system, keys / PART)? else { return Ok(None) };
        let Some(of_all) = resident_with(nodes, system, keys)? else { return Ok(None) };
        *bytes = a_key(keys, of_part, of_all);
    }
    let [alone, apart, replicated] = bytes;
    Ok(Some([alone, apart - alone, replicated - alone].map(|bytes| bytes.max(0.0))))
}

/// Bytes of this process with a cluster; `None` where the system does not report it.
fn resident_with(nodes: usize, system: System, keys: u64) -> Result<Option<f64>, BenchError> {
    let builder = Builder::<f32>::new(layout(keys)).nodes(nodes).channels(1).system(system);
    let cluster = builder.initial(|_, value| value.fill(1.0)).build()?;
    // Replicas are there when workers start, and until the last one ends.
    let seen = cluster.run(|mut worker: Floats| -> Result<Option<usize>, OpError> {
        worker.barrier()?;
        let bytes = figure::memory_resident();
        worker.barrier()?;
        Ok(bytes)
    })?;
    let seen = seen.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(seen.into_iter().flatten().max().map(|bytes| bytes as f64))
}

/// Bytes that one more key takes, if the last `keys - keys / PART` make the difference: threads and
/// first tables are no key's.
fn a_key(keys: u64, bytes_of_part: f64, bytes: f64) -> f64 {
    (bytes - bytes_of_part) / (keys - keys / PART) as f64
}

pub(super) fn measure_rest(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    let (messages, processor) = idle()?;
    let what = "two nodes that hold 10 k replicas";
    let figure = Figure::new(format!("messages, {what}"), "1/s", messages);
    desk.add(figure.towards(Goal::AtMost(0.0)).after("thousands"))?;
    let Some(share) = processor else { return Ok(()) };
    desk.add(Figure::new(format!("processor, {what}"), "% of a core", share))
}

/// Messages a second, and the share of a core if the system reports it, in percent.
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
            let share = figure::processor_seconds()
                .zip(spent)
                .map(|(now, before)| (now - before) / seconds);
            found = Some((messages, share.map(|share| 100.0 * share)));
        }
        gate.wait();
        Ok(found)
    };
    first(cluster.run(work)?)
}

/// Bytes a copy for the book about the chunks, as the tests of the store allow.
const BOOK: f64 = 0.5;
/// Tables that double are equally full with a quarter of the keys.
const PART: u64 = 4;
const KEYS: u64 = 4_000_000;

const SETTLING: Duration = Duration::from_millis(500);
const WATCHED: Duration = Duration::from_secs(4);
