//! Fuzz targets of adapm as plain functions from bytes to a verdict: `cargo test -p adapm-fuzz` replays the committed
//! corpus and generated inputs through them on any toolchain, libFuzzer drives the same functions through the entry
//! points in `fuzz_targets/` (feature `libfuzzer`).
//!
//! A target panics on a finding. It returns whether the input got as far as what the target is about, so that the replay
//! notices a target that has come to reject everything. How to run, minimise and keep a finding: `fuzz/README.md`.

#![forbid(unsafe_code)]

mod cluster;
mod decode;
mod inputs;
mod link;
mod peer;
mod slot;
mod store;

pub use cluster::cluster;
pub use decode::decode;
pub use inputs::inputs;
pub use link::link;
pub use slot::slot;
pub use store::store;

/// A target: panics on a finding, else whether the input was deep enough to test anything.
pub type Target = fn(&[u8]) -> bool;

/// Every target by the name of its corpus folder and its libFuzzer entry point.
pub const TARGETS: [(&str, Target); 6] = [
    ("cluster", cluster),
    ("decode", decode),
    ("inputs", inputs),
    ("link", link),
    ("slot", slot),
    ("store", store),
];
