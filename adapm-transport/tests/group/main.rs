//! Groups of processes, played by threads over the loopback device.

#![cfg(feature = "tcp")]

mod collectives;
mod joining;
mod refusals;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_transport::group::{Group, GroupConfig, GroupError, Rendezvous};

/// Returns a fresh rendezvous file for each test.
fn file() -> Rendezvous {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name =
        format!("adapm-group-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Rendezvous::File(std::env::temp_dir().join(name))
}

fn path(rendezvous: &Rendezvous) -> PathBuf {
    match rendezvous {
        Rendezvous::File(path) | Rendezvous::JobFile(path) => path.clone(),
        Rendezvous::Address(address) => panic!("{address} is no file"),
    }
}

/// Returns a free address of this machine, which the system assigns to no other socket for a while.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

/// Returns settings with times that fit tests.
fn config(node: u16, nodes: usize, rendezvous: &Rendezvous) -> GroupConfig {
    let mut config = GroupConfig::new(NodeId(node), nodes, rendezvous.clone());
    config.dead_after = Duration::from_secs(1);
    config.join_timeout = Duration::from_secs(30);
    config
}

fn join(config: GroupConfig) -> Result<Group, GroupError> {
    Group::join(config, &mut |_| ())
}

/// Runs `work` on each node, each a thread, and returns the results; `adjust` may change its
/// settings.
fn each_with<R: Send>(
    nodes: usize,
    adjust: impl Fn(&mut GroupConfig) + Sync,
    work: impl Fn(Result<Group, GroupError>) -> R + Sync,
) -> Vec<R> {
    let rendezvous = file();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..nodes as u16)
            .map(|node| {
                let mut config = config(node, nodes, &rendezvous);
                adjust(&mut config);
                let work = &work;
                scope.spawn(move || work(join(config)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn each<R: Send>(nodes: usize, work: impl Fn(Group) -> R + Sync) -> Vec<R> {
    each_with(nodes, |_| (), |group| work(group.expect("all join")))
}
