//! Machine learning tasks with sparse access, on top of the adaptive parameter manager.
//!
//! What a task consists of: [`data`] reads or generates its examples, a folder per task ([`kge`],
//! [`mf`], [`wv`], [`ctr`], [`gnn`]) holds model, step and evaluation of results, [`run`] what
//! every task's run has in common, [`metric`] the figures that are reported, [`export`] the forms
//! in which other programs read vectors, [`exchange`] the messages between nodes if they are
//! processes, [`measure`] the tools that measure. Tasks use the public API of `adapm-runtime` only
//! and run unchanged under every system, on one node or many.
//!
//! [`cli`] is the command line, the binary `adapm` of this package.
//!
#![doc = include_str!("../../adapm-core/docs/pages.md")]

#[cfg(feature = "cli")]
pub mod cli;
pub mod ctr;
pub mod data;
mod dense;
pub mod docs;
pub mod exchange;
pub mod export;
pub mod files;
pub mod gnn;
pub mod kge;
mod matrix;
pub mod measure;
pub mod metric;
pub mod mf;
mod nearest;
mod optim;
mod partition;
pub mod run;
mod simd;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod top;
pub mod wv;

pub use adapm_runtime::{InvalidSystem, Scheme, System, UnknownScheme};
