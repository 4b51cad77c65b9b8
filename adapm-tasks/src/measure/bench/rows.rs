//! Random rows: accesses through a worker, and the same of a flat array.

use std::hint::black_box;

use adapm_core::Key;
use adapm_core::error::OpError;
use adapm_runtime::Worker;

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

/// What is accessed: keys in some order, so many a call, and room for their values.
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
