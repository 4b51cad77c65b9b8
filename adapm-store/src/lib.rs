//! Stores of latched slots for adapm.

mod arena;
mod dense;
mod entry;
mod slab;
mod sparse;
mod sync;

pub use dense::DenseStore;
pub use sparse::SparseStore;
