//! A cluster whose nodes are processes: counts words of a text, each process its share, joined over TCP.
//!
//! `cargo run -p adapm-runtime --example tcp_cluster` starts three processes of itself. By hand, in any order and on any
//! machines, with a port that is free on the first:
//!
//! ```text
//! tcp_cluster 0 3 10.0.0.1:4157      # node 0 listens there
//! tcp_cluster 1 3 10.0.0.1:4157
//! tcp_cluster 2 3 10.0.0.1:4157
//! ```
//!
//! Beyond one machine all need the same secret of at least 32 bytes in `ADAPM_TOKEN`.

use std::env;
use std::error::Error;
use std::process::{Child, Command, exit};
use std::sync::Arc;

use adapm_core::error::OpError;
use adapm_core::transport::Farewell;
use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::Builder;
use adapm_transport::group::{Group, GroupConfig, Rendezvous, Roster};
use adapm_transport::net::Token;

const WORDS: [&str; 8] = ["the", "cat", "sat", "on", "mat", "and", "a", "dog"];
const TEXT: &str = "the cat sat on the mat and a dog sat on the cat and the dog and the cat sat on a mat";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [] => start_all(3),
        [node, nodes, rendezvous] => {
            let rendezvous = match rendezvous.strip_prefix("file:") {
                Some(path) => Rendezvous::File(path.into()),
                None => Rendezvous::Address(rendezvous.clone()),
            };
            let mut config = GroupConfig::new(NodeId(node.parse()?), nodes.parse()?, rendezvous);
            if let Ok(secret) = env::var("ADAPM_TOKEN") {
                config.token = Some(Token::new(secret.as_bytes())?);
            }
            if let Err(error) = run(config) {
                eprintln!("node n{node}: {error}");
                exit(1);
            }
            Ok(())
        }
        _ => Err("give a node, the number of nodes and where node 0 listens; or nothing".into()),
    }
}

/// One node, from joining to leaving.
fn run(config: GroupConfig) -> Result<(), Box<dyn Error>> {
    let group = Arc::new(Group::join(config, &mut show)?);
    let layout = Layout::dense(&[(WORDS.len() as u64, 1)])?;
    // Every process builds its own node with the same settings.
    let cluster = Builder::<i64>::new(layout).nodes(&group).workers(2).build()?;
    let counts = cluster.run(|mut worker| {
        let me = worker.node().index() * worker.workers() + worker.id().index();
        let all = worker.nodes() * worker.workers();
        // Each worker of each process counts its share of the words.
        for word in TEXT.split(' ').skip(me).step_by(all) {
            let key = WORDS.iter().position(|known| *known == word).ok_or(OpError::Ended)?;
            worker.push(&[Key(key as u64)], &[1])?;
        }
        worker.quiesce()?;
        let keys: Vec<Key> = (0..WORDS.len() as u64).map(Key).collect();
        let mut counts = vec![0; WORDS.len()];
        worker.pull(&keys, &mut counts)?;
        Ok::<_, OpError>(counts)
    })?;
    let counts = counts.into_iter().next().ok_or("a node has workers")??;
    // What the cluster does not know is exchanged by the group: here, who has seen which counts.
    let seen = group.all_gather(format!("{counts:?}").as_bytes())?;
    if group.node() == NodeId(0) {
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "all see the same counts");
        for (word, count) in WORDS.iter().zip(&counts) {
            println!("{word:>4} {count}");
        }
    }
    cluster.shutdown()?;
    group.leave(Farewell::Finished);
    Ok(())
}

fn show(roster: &Roster) {
    if roster.node() == NodeId(0) {
        let missing: Vec<String> = roster.missing().iter().map(ToString::to_string).collect();
        eprintln!(
            "{} of {} nodes are here; missing: [{}]",
            roster.joined(),
            roster.nodes(),
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
        Command::new(&program).args([&node.to_string(), &nodes.to_string(), &rendezvous]).spawn()
    };
    let children: Vec<Child> = (0..nodes).map(start).collect::<Result<_, _>>()?;
    for mut child in children {
        if !child.wait()?.success() {
            return Err("a node has failed: see its message above".into());
        }
    }
    Ok(())
}
