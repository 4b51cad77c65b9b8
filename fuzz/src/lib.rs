//! Fuzz targets of adapm as plain functions from bytes to a verdict: `cargo test -p adapm-fuzz`
//! replays the committed corpus and generated inputs through them on any toolchain, libFuzzer
//! drives the same functions through the entry points in `fuzz_targets/` (`--cfg fuzzing`, which
//! `cargo fuzz` sets).
//!
//! A target panics on a finding. It returns true if the input got as far as the target's subject,
//! so that the replay notices a target that has come to reject everything. How to run, minimise and
//! keep a finding: `fuzz/README.md`.

#![forbid(unsafe_code)]

mod addresses;
mod checkpoint;
mod cluster;
mod datagrams;
mod decode;
mod environment;
mod group;
mod handshake;
mod inputs;
mod link;
mod notes;
mod packets;
mod peer;
mod planted;
mod ratings;
mod round_trip;
#[path = "../../adapm-tasks/src/cli/measure/trace/shares.rs"]
mod shares;
mod slot;
mod store;
mod traces;
mod triples;
mod vectors;
mod words;
mod zmtp;

pub use addresses::addresses;
pub use checkpoint::checkpoint;
pub use cluster::cluster;
pub use datagrams::datagrams;
pub use decode::decode;
pub use environment::environment;
pub use group::group;
pub use handshake::handshake;
pub use inputs::inputs;
pub use link::link;
pub use notes::notes;
pub use packets::packets;
pub use ratings::ratings;
pub use round_trip::round_trip;
pub use slot::slot;
pub use store::store;
pub use traces::traces;
pub use triples::triples;
pub use vectors::vectors;
pub use words::words;
pub use zmtp::zmtp;

/// A target: panics on a finding, else returns true if the input was deep enough to test anything.
pub type Target = fn(&[u8]) -> bool;

/// Hands the names of all targets to a macro. Each is a function of this crate, the name of a
/// corpus folder, and that of a libFuzzer entry point.
#[macro_export]
macro_rules! for_all_targets {
    ($then:ident) => {
        $then! {
            addresses, checkpoint, cluster, datagrams, decode, environment, group, handshake, inputs, link, notes,
            packets, ratings, round_trip, slot, store, traces, triples, vectors, words, zmtp,
        }
    };
}

/// Defines the `main` of an entry point: libFuzzer's with `--cfg fuzzing`, else one that tells how
/// to get that.
#[macro_export]
macro_rules! entry_point {
    ($target:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            $crate::$target(bytes);
        });

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            eprintln!(
                "this is built without libFuzzer: run `cargo fuzz run {}`, see fuzz/README.md",
                stringify!($target)
            );
            std::process::ExitCode::FAILURE
        }
    };
}

macro_rules! table {
    ($($target:ident),+ $(,)?) => {
        /// Every target by its name.
        pub const TARGETS: &[(&str, Target)] = &[$((stringify!($target), $target)),+];
    };
}

for_all_targets!(table);
