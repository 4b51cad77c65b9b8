//! The processes of one cluster: they find each other through node 0, know which are missing, and
//! exchange bytes.
//!
//! ```
//! use adapm_core::NodeId;
//! use adapm_core::transport::CloseReason;
//! use adapm_transport::group::{Group, GroupConfig, GroupError, Rendezvous};
//!
//! // Each node is a process of its own; here they are threads.
//! let file = std::env::temp_dir().join(format!("adapm-doc-{}", std::process::id()));
//! let member = |node: u16| {
//!     let config = GroupConfig::new(NodeId(node), 2, Rendezvous::File(file.clone()));
//!     let group = Group::join(config, &mut |membership| eprintln!("{} of 2 joined", membership.joined()))?;
//!     let all = group.all_gather(&[node as u8])?;
//!     group.leave(CloseReason::Finished);
//!     Ok::<_, GroupError>(all)
//! };
//! let [here, there] = std::thread::scope(|scope| {
//!     let members = [0, 1].map(|node| scope.spawn(move || member(node)));
//!     members.map(|member| member.join().expect("no panic"))
//! });
//! assert_eq!(here?, [[0], [1]]);
//! assert_eq!(there?, [[0], [1]]);
//! # Ok::<(), GroupError>(())
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | [`launcher`] | the launcher of the processes: Slurm, MPI, torchrun, Kubernetes |
//! | `config`, `folder`, `place`, `join` | from settings to a process that has joined |
//! | `control`, `shared`, `handle` | the control thread, and the requests of other threads to it |
//! | `collective` | exchange of bytes, to all or to node 0, without I/O |
//! | `losses` | the verdict on lost nodes when some cannot reach others, without I/O |
//! | `message`, `mesh` | frames, and the endpoint that carries them |
//! | `membership`, `error` | the nodes that are there, and errors |
//!
//! Not here: parameters, which have endpoints of their own, one per channel ([`Group::listen`]); a
//! group that goes on after it has lost a node.

mod collective;
mod config;
mod control;
mod error;
mod folder;
mod handle;
mod join;
pub mod launcher;
mod losses;
mod member;
mod membership;
mod mesh;
mod message;
mod place;
mod shared;
#[cfg(feature = "testing")]
pub(crate) mod testing;

pub use config::{GroupConfig, Rendezvous};
pub use error::GroupError;
pub use folder::FolderError;
pub use member::Group;
pub use membership::{Member, Membership};
pub use shared::LossWatch;
