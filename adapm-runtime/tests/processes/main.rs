//! Clusters of several processes over the loopback device: nodes are threads here, except those
//! that are to be killed.

#[path = "../support/channels.rs"]
mod channels;
mod conservation;
mod idle;
mod lost;
mod over;
mod phases;
mod settings;
mod unresponsive;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use adapm_core::transport::CloseReason;
use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Builder, Cluster};
use adapm_transport::group::{Group, GroupConfig, Rendezvous};
use adapm_transport::net::Kind;

const KEYS: u64 = 100;

fn keys() -> Vec<Key> {
    (0..KEYS).map(Key).collect()
}

fn builder() -> Builder<i64> {
    Builder::new(Layout::dense(&[(KEYS, 1)]).expect("a valid layout"))
}

/// Returns a fresh rendezvous file for each group.
fn rendezvous() -> Rendezvous {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name =
        format!("adapm-processes-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Rendezvous::File(std::env::temp_dir().join(name))
}

fn join(node: u16, nodes: usize, rendezvous: &Rendezvous) -> Arc<Group> {
    join_by(Kind::Tcp, node, nodes, rendezvous)
}

fn join_by(kind: Kind, node: u16, nodes: usize, rendezvous: &Rendezvous) -> Arc<Group> {
    let mut config = GroupConfig::new(NodeId(node), nodes, rendezvous.clone());
    config.dead_after = Duration::from_secs(2);
    config.join_timeout = Duration::from_secs(60);
    config.kind = kind;
    Arc::new(Group::join(config, &mut |_| ()).expect("all join"))
}

/// Runs `work` on each node, each with a group of its own, and returns the results.
fn each<R: Send>(nodes: usize, work: impl Fn(Arc<Group>) -> R + Sync) -> Vec<R> {
    let rendezvous = rendezvous();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..nodes as u16)
            .map(|node| {
                let (work, rendezvous) = (&work, &rendezvous);
                scope.spawn(move || work(join(node, nodes, rendezvous)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Like [`each`], with a cluster that is shut down in order.
fn clusters<R: Send>(
    nodes: usize,
    builder: impl Fn() -> Builder<i64> + Sync,
    work: impl Fn(&Cluster<i64>, NodeId) -> R + Sync,
) -> Vec<R> {
    each(nodes, |group| {
        let cluster = builder().nodes(&group).build().expect("a valid cluster");
        let result = work(&cluster, group.node());
        assert_eq!(cluster.shutdown(), Ok(()));
        group.leave(CloseReason::Finished);
        result
    })
}
