//! Bytes of a copy: what the store has for it, and by how much a process grows with it, which is what engines and workers know of it
//! besides, and what the allocator does not give back.

use adapm_core::store::Store;
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, LayoutStore, System};

use super::desk::Desk;
use super::error::BenchError;
use super::figure::{Figure, Goal};
use super::host;
use super::rows::Floats;

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    // Both nodes hold values and deltas in the largest cluster.
    if !desk.has_room("bytes of copies", 4 * KEYS as usize * LEN * size_of::<f32>()) {
        return Ok(());
    }
    // Before anything has been freed that the allocator keeps.
    let grown = grown()?;
    let kept = [Some(false), None, Some(true)].map(in_store);
    let copies = ["a main copy", "a key that is elsewhere", "a replica"];
    for (what, bytes) in copies.iter().zip(kept) {
        desk.add(Figure::new(format!("{what}, {LEN} floats, in the store"), "B", bytes))?;
    }
    let goals = [4 * LEN + 24, 8, 8 * LEN + 48];
    for (((what, bytes), kept), goal) in copies.iter().zip(grown.into_iter().flatten()).zip(kept).zip(goals) {
        let figure = Figure::new(format!("{what}, {LEN} floats, growth of the process"), "B", bytes);
        desk.add(figure.beside(kept).towards(Goal::AtMost(goal as f64)))?;
    }
    Ok(())
}

fn layout(keys: u64) -> Layout {
    Layout::dense(&[(keys, LEN)]).expect("few keys, short values")
}

/// Bytes by which each key makes a store larger that holds copies of all keys, with a delta or without; of none if `None`.
fn in_store(with_delta: Option<bool>) -> f64 {
    let bytes = |keys: u64| {
        let store = LayoutStore::<f32>::new(&layout(keys));
        if let Some(with_delta) = with_delta {
            (0..keys).for_each(|key| store.reserve(Key(key), with_delta));
        }
        store.memory() as f64
    };
    (bytes(KEYS) - bytes(KEYS / 2)) / (KEYS - KEYS / 2) as f64
}

/// Bytes a key by which this process grows with main copies, keys that are elsewhere, and replicas; `None` where the system does not tell.
fn grown() -> Result<Option<[f64; 3]>, BenchError> {
    let Some(alone) = grown_by(1, System::Classic)? else { return Ok(None) };
    let apart = grown_by(2, System::Classic)?.unwrap_or(alone);
    let replicated = grown_by(2, System::Full)?.unwrap_or(alone);
    Ok(Some([alone, apart - alone, replicated - alone].map(|bytes| (bytes / KEYS as f64).max(0.0))))
}

/// Bytes by which this process grows with a cluster; `None` where the system does not tell.
fn grown_by(nodes: usize, system: System) -> Result<Option<f64>, BenchError> {
    let Some(before) = host::memory_resident() else { return Ok(None) };
    let builder = Builder::<f32>::new(layout(KEYS)).nodes(nodes).channels(1).system(system);
    let cluster = builder.initial(|_, value| value.fill(1.0)).build()?;
    // Replicas are there when workers start.
    cluster.run(|_: Floats| ())?;
    let after = host::memory_resident().unwrap_or(before);
    Ok(Some(after as f64 - before as f64))
}

const KEYS: u64 = 1_000_000;
const LEN: usize = 25;
