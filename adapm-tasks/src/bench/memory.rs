//! Bytes of a copy, by what the process takes of the memory of its host.

use adapm_core::Layout;
use adapm_runtime::{Builder, System};

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
    let Some(alone) = grown_by(1, System::Classic)? else { return Ok(()) };
    let apart = grown_by(2, System::Classic)?.unwrap_or(alone);
    let replicated = grown_by(2, System::Full)?.unwrap_or(alone);
    let per_key = |bytes: f64| (bytes / KEYS as f64).max(0.0);
    let rows = [
        ("a main copy", alone, 4 * LEN + 24),
        ("a key that is elsewhere", apart - alone, 8),
        ("a replica", replicated - alone, 8 * LEN + 48),
    ];
    for (what, bytes, goal) in rows {
        let figure = Figure::new(format!("{what}, {LEN} floats"), "B", per_key(bytes));
        desk.add(figure.towards(Goal::AtMost(goal as f64)))?;
    }
    Ok(())
}

/// Bytes by which this process grows with a cluster; `None` where the system does not tell.
fn grown_by(nodes: usize, system: System) -> Result<Option<f64>, BenchError> {
    let Some(before) = host::memory_resident() else { return Ok(None) };
    let layout = Layout::dense(&[(KEYS, LEN)]).expect("few keys, short values");
    let builder = Builder::<f32>::new(layout).nodes(nodes).channels(1).system(system);
    let cluster = builder.initial(|_, value| value.fill(1.0)).build()?;
    // Replicas are there when workers start.
    cluster.run(|_: Floats| ())?;
    let after = host::memory_resident().unwrap_or(before);
    Ok(Some(after as f64 - before as f64))
}

const KEYS: u64 = 1_000_000;
const LEN: usize = 25;
