//! Two nodes in this process, and a link of some kind between them.

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout};
use adapm_runtime::{Builder, Nodes};
use adapm_transport::net::{Kind, network};

use super::desk::Desk;
use super::error::BenchError;
use super::rows::Floats;

/// Links within a process, and those of the plan.
pub(super) fn links(desk: &Desk<'_>) -> Vec<Option<Kind>> {
    std::iter::once(None).chain(desk.plan.kinds.iter().copied().map(Some)).collect()
}

pub(super) fn link_name(kind: Option<Kind>) -> &'static str {
    kind.map_or("in process", Kind::scheme)
}

/// Two nodes with a link of this kind between them.
pub(super) fn pair(layout: Layout, kind: Option<Kind>) -> Result<Builder<f32>, BenchError> {
    let builder = Builder::<f32>::new(layout).channels(1);
    let Some(kind) = kind else { return Ok(builder.nodes(2)) };
    let mut ends = Some(network(2, kind)?);
    Ok(builder.nodes(Nodes::over(2, move |_, _| ends.take().expect("there is one channel"))))
}

/// Signals intent for `keys` on both nodes and waits until all are here.
pub(super) fn settle(worker: &mut Floats, keys: &[Key]) -> Result<(), OpError> {
    worker.intent(keys, Clock(0)..Clock(1_000_000_000))?;
    let mut value = [0.0; LEN];
    for key in keys {
        while !worker.pull_if_local(*key, &mut value)? {
            std::thread::yield_now();
        }
    }
    worker.barrier()
}

/// What the worker that measured found.
pub(super) fn first<R>(results: Vec<Result<Option<R>, OpError>>) -> Result<R, BenchError> {
    let mut found = None;
    for result in results {
        found = found.or(result?);
    }
    Ok(found.expect("one worker measures"))
}

/// Elements of a value.
pub(super) const LEN: usize = 25;

/// Calls under way at once.
pub(super) const WINDOW: usize = 64;

/// Keys of which both nodes have a copy.
pub(super) const REPLICAS: u64 = 10_000;
