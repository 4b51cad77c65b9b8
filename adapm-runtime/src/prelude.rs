//! Everything that a program needs, with one `use`: `adapm-runtime` is then its only dependency.
//!
//! A whole program. The two rows of each pair move to their average; each worker has a share of the
//! pairs, and signals early at which clock it needs which rows.
//!
//! ```
//! use adapm_runtime::prelude::*;
//!
//! /// Works through a share of the pairs. Returns how far apart their rows were.
//! fn train(mut worker: Worker<f32>, pairs: &[[Key; 2]]) -> Result<f32, OpError> {
//!     for (pair, clock) in pairs.iter().zip(0..) {
//!         worker.intent(pair, Clock(clock)..Clock(clock + 1))?; // These rows will be needed at that clock;
//!     }
//!     let (mut rows, mut apart) = ([0.0; 2 * 4], 0.0);
//!     for pair in pairs {
//!         worker.pull(pair, &mut rows)?; // when it comes, they are here.
//!         let (first, second) = rows.split_at(4);
//!         let half: Vec<f32> = first.iter().zip(second).map(|(first, second)| (second - first) / 2.0).collect();
//!         apart += 2.0 * half[0].abs();
//!         let updates: Vec<f32> = half.iter().copied().chain(half.iter().map(|half| -half)).collect();
//!         worker.push(pair, &updates)?;
//!         worker.advance_clock();
//!     }
//!     Ok(apart)
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // 100 rows of 4 elements, on 2 nodes with 2 workers each.
//!     let builder = Builder::<f32>::new(Layout::dense(&[(100, 4)])?).nodes(2).workers(2);
//!     let cluster = builder.system(System::Adapm).initial(|key, row| row.fill(key.0 as f32)).build()?;
//!
//!     // Row k meets row k + 50.
//!     let pairs: Vec<[Key; 2]> = (0..50).map(|key| [Key(key), Key(key) + 50]).collect();
//!     let shares: Vec<&[[Key; 2]]> = pairs.chunks(13).collect();
//!     let apart = cluster.try_run(|worker| {
//!         let share = worker.number();
//!         train(worker, shares[share])
//!     })?;
//!     assert_eq!(apart.iter().sum::<f32>(), 50.0 * 50.0);
//!
//!     // The work of all is done: main copies can be read.
//!     let mut rows = [0.0; 2 * 4];
//!     cluster.read(&[Key(7), Key(57)], &mut rows)?;
//!     assert_eq!(rows, [32.0; 2 * 4]);
//!     println!("{:.1} % of all accesses were local", 100.0 * cluster.stats().local_share());
//!     Ok(cluster.shutdown()?)
//! }
//! ```
//!
//! | for | there are |
//! | --- | --- |
//! | settings | [`Builder`], [`Layout`], [`System`], [`Nodes`], [`Sampling`], [`Scheme`] |
//! | work | [`Cluster`], [`Worker`], [`IntentHandle`], [`Key`], [`Clock`], [`Sample`], [`Random`] |
//! | steps of an optimizer, by [`Worker::update`] | [`AdaGrad`], [`UpdateRule`] |
//! | calls whose results are awaited later | [`Pull`], [`Done`] |
//! | nodes that are processes (feature `tcp`) | [`launcher`], [`Group`], [`GroupConfig`], [`Rendezvous`], [`Membership`], [`Token`], [`CloseReason`] |
//! | errors and notices | [`BuildError`], [`RunError`], [`TryRunError`], [`OpError`], [`ConfigError`], [`GroupError`], [`Notice`] |
//!
//! Not here: the building blocks of stores, transports and policies. They are written against
//! [`adapm_core`], re-exported as `adapm_runtime::adapm_core` ([`crate::docs::plug_in`]).

pub use adapm_core::error::{ConfigError, OpError};
pub use adapm_core::policy::System;
pub use adapm_core::transport::CloseReason;
pub use adapm_core::update::{AdaGrad, UpdateRule};
pub use adapm_core::{ChannelId, Clock, Key, Layout, NodeId, Value, WorkerId};
#[cfg(feature = "tcp")]
pub use adapm_transport::group::{
    Group, GroupConfig, GroupError, Membership, Rendezvous, launcher,
};
#[cfg(feature = "tcp")]
pub use adapm_transport::net::Token;

pub use crate::builder::{Builder, Nodes};
pub use crate::cluster::Cluster;
pub use crate::error::{BuildError, RunError, TryRunError};
pub use crate::notice::Notice;
pub use crate::sampling::{Random, Sample, Sampling, Scheme};
pub use crate::stats::Stats;
pub use crate::ticket::{Done, Pull};
pub use crate::worker::{IntentHandle, Worker};
