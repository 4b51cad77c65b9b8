//! Stores of latched slots for adapm.

mod arena;
mod dense;
mod entry;
mod slab;
mod sync;

pub use dense::DenseStore;
