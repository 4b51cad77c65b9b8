//! A cluster whose nodes are processes: counts words of a text, each process its share, over TCP.
//!
//! `cargo run -p adapm-runtime --example tcp_cluster` starts three processes of itself. A cluster's
//! launcher can start any number, on any machines:
//!
//! ```text
//! mpirun -n 3 tcp_cluster
//! srun -N 3 tcp_cluster
//! ADAPM_NODE=0 ADAPM_NODES=3 ADAPM_RENDEZVOUS=10.0.0.1:4157 tcp_cluster      # by hand, each node
//! ```
//!
//! Beyond one machine all need the same secret of at least 32 bytes in `ADAPM_TOKEN`.

use std::env;
use std::error::Error;
use std::process::{Child, Command, exit};
use std::sync::Arc;

use adapm_runtime::prelude::*;

const WORDS: [&str; 8] = ["the", "cat", "sat", "on", "mat", "and", "a", "dog"];
const TEXT: &str =
    "the cat sat on the mat and a dog sat on the cat and the dog and the cat sat on a mat";

fn main() {
    // The launcher of this process determines its node; without one, it starts three.
    let done = match launcher::join(&mut show) {
        Ok(Some(group)) => run(Arc::new(group)),
        Ok(None) => start_all(3),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        exit(1);
    }
}

/// Runs one node, until it leaves.
fn run(group: Arc<Group>) -> Result<(), Box<dyn Error>> {
    let layout = Layout::dense(&[(WORDS.len() as u64, 1)])?;
    // Every process builds its own node with the same settings.
    let cluster = Builder::<i64>::new(layout).nodes(&group).workers(2).build()?;
    let counts = cluster.try_run(|mut worker| {
        // Each worker of each process counts its share of the words.
        for word in TEXT.split(' ').skip(worker.number()).step_by(worker.all_workers()) {
            let key = WORDS.iter().position(|known| *known == word).ok_or(OpError::Ended)?;
            worker.push(&[Key(key as u64)], &[1])?;
        }
        worker.quiesce()?;
        let keys: Vec<Key> = (0..WORDS.len() as u64).map(Key).collect();
        let mut counts = vec![0; WORDS.len()];
        worker.pull(&keys, &mut counts)?;
        Ok::<_, OpError>(counts)
    })?;
    let counts = counts.first().ok_or("a node has workers")?;
    // The group exchanges data outside the cluster: here, the counts that each process has seen.
    let seen = group.all_gather(format!("{counts:?}").as_bytes())?;
    if group.node() == NodeId(0) {
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "all see the same counts");
        for (word, count) in WORDS.iter().zip(counts) {
            println!("{word:>4} {count}");
        }
    }
    cluster.shutdown()?;
    group.leave(CloseReason::Finished);
    Ok(())
}

fn show(membership: &Membership) {
    if membership.node() == NodeId(0) {
        let missing: Vec<String> = membership.missing().iter().map(ToString::to_string).collect();
        eprintln!(
            "{} of {} nodes are here; missing: [{}]",
            membership.joined(),
            membership.nodes(),
            missing.join(", ")
        );
    }
}

/// Starts all nodes on this machine; they meet by a file.
fn start_all(nodes: usize) -> Result<(), Box<dyn Error>> {
    let file = env::temp_dir().join(format!("adapm-tcp-cluster-{}", std::process::id()));
    let rendezvous = format!("file:{}", file.display());
    let program = env::current_exe()?;
    let start = |node: usize| {
        let place = [("ADAPM_NODE", node.to_string()), ("ADAPM_NODES", nodes.to_string())];
        Command::new(&program).envs(place).env("ADAPM_RENDEZVOUS", &rendezvous).spawn()
    };
    let children: Vec<Child> = (0..nodes).map(start).collect::<Result<_, _>>()?;
    for mut child in children {
        if !child.wait()?.success() {
            return Err("a node has failed: see its message above".into());
        }
    }
    Ok(())
}
