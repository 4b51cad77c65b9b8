//! Nodes as processes, for tests: each node a thread with a group of its own, joined over loopback
//! as processes are.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, panic, thread};

use adapm_core::NodeId;
use adapm_core::transport::CloseReason;
use adapm_transport::group::{Group, GroupConfig, Rendezvous};

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Does `work` as each node of a group of `nodes`, and returns what comes out, by node.
pub(crate) fn as_each<R: Send>(
    name: &str,
    nodes: usize,
    work: impl Fn(usize, &Arc<Group>) -> R + Sync,
) -> Vec<R> {
    let folder = std::env::temp_dir().join(format!(
        "adapm-{}-{}-{name}",
        env!("CARGO_CRATE_NAME"),
        std::process::id()
    ));
    let folder = Folder(folder);
    fs::create_dir_all(&folder.0).expect("creates");
    let (work, file) = (&work, folder.0.join("rendezvous"));
    thread::scope(|scope| {
        let join = |node: usize| {
            let id = NodeId(u16::try_from(node).expect("few nodes"));
            let config = GroupConfig::new(id, nodes, Rendezvous::File(file.clone()));
            scope.spawn(move || {
                let group = Arc::new(Group::join(config, &mut |_| {}).expect("joins"));
                let outcome = work(node, &group);
                group.leave(CloseReason::Finished);
                outcome
            })
        };
        let threads: Vec<_> = (0..nodes).map(join).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|p| panic::resume_unwind(p)));
        ended.collect()
    })
}
