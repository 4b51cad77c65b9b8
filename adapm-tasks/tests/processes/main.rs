//! Real processes of the binary: killed, held up, interrupted, slowed down, cut off, meeting under
//! odd names, and as mpirun and srun start them.
//!
//! What needs a tool or a right that the machine lacks prints `SKIPPED name: reason` and passes;
//! `.ci/run` installs what it can. `ADAPM_KILL_RUNS` (20 there) and `ADAPM_PAUSE_RUNS` ask for more
//! runs, `cargo test -- --nocapture` shows figures.
#![cfg(unix)]

mod harness;

mod interrupted;
mod killed;
mod launchers;
mod machines;
mod meeting;
mod mounts;
mod namespaces;
mod partitions;
mod paused;
mod quality;
mod refused;
mod restarts;
mod slurm;
