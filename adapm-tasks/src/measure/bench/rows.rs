//! Random rows: accesses through a worker, and the same of a flat array. And two nodes in this
//! process, with a link between them.

use std::hint::black_box;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout};
use adapm_runtime::{Builder, Nodes, Worker};
use adapm_transport::net::{Kind, network};

use crate::measure::bench::figure::{BenchError, Desk};

/// Keys of a call that has several.
pub(super) const BATCH: usize = 100;

pub(super) type Floats = Worker<f32>;

/// Reading or adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Pull,
    Push,
}

impl Access {
    pub(super) const ALL: [Self; 2] = [Self::Pull, Self::Push];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push",
        }
    }
}

/// The rows to access: keys in some order, so many a call, and room for their values.
pub(super) struct Rows<'a> {
    order: &'a [Key],
    batch: usize,
    len: usize,
    values: Vec<f32>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(order: &'a [Key], batch: usize, len: usize) -> Self {
        Self { order, batch, len, values: vec![0.25; batch * len] }
    }

    /// Keys that are accessed in all.
    pub(super) fn accesses(&self) -> usize {
        self.order.len()
    }

    /// The floor of pulls: copies of rows.
    pub(super) fn copy(&mut self, flat: &[f32]) {
        for keys in self.order.chunks(self.batch) {
            for (key, room) in keys.iter().zip(self.values.chunks_mut(self.len)) {
                room.copy_from_slice(&flat[key.0 as usize * self.len..][..self.len]);
            }
            black_box(&mut self.values);
        }
    }

    /// The floor of pushes: sums of rows.
    pub(super) fn add(&mut self, flat: &mut [f32]) {
        for keys in self.order.chunks(self.batch) {
            for (key, update) in keys.iter().zip(self.values.chunks(self.len)) {
                let row = &mut flat[key.0 as usize * self.len..][..self.len];
                row.iter_mut().zip(update).for_each(|(value, update)| *value += update);
            }
        }
        black_box(flat);
    }

    /// The same through a worker.
    pub(super) fn access(&mut self, access: Access, worker: &mut Floats) -> Result<(), OpError> {
        for keys in self.order.chunks(self.batch) {
            match access {
                Access::Pull => worker.pull(keys, &mut self.values)?,
                Access::Push => worker.push(keys, &self.values)?,
            }
            black_box(&mut self.values);
        }
        Ok(())
    }
}

/// Links within a process, and those of the plan.
pub(super) fn links(desk: &Desk<'_>) -> Vec<Option<Kind>> {
    std::iter::once(None).chain(desk.plan.kinds.iter().copied().map(Some)).collect()
}

pub(super) fn link_name(kind: Option<Kind>) -> &'static str {
    kind.map_or("in process", Kind::scheme)
}

/// Returns two nodes with a link of this kind between them.
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

/// Returns the result of the worker that measured.
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

/// Keys that both nodes have a copy of.
pub(super) const REPLICAS: u64 = 10_000;
