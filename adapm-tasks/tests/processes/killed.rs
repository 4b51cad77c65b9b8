//! `kill -9` of each node in turn, at any moment: all others end soon, and say which node was lost and where it was.

use std::time::{Duration, Instant};

use adapm_core::testing::rng::Rng;
use rustix::process::Signal;

use crate::harness::{folder, nodes, pass, ring, runs};

const NODES: usize = 3;
const DEAD_AFTER: &str = "2";
const TRANSPORTS: [&str; 4] = ["tcp", "tokio", "zmq", "unix"];

/// One run in which `victim` is killed `delay` after training has begun; how long the last survivor took to end.
fn kill_one(run: u64, victim: usize, transport: &str, delay: Duration) -> Duration {
    let folder = folder(&format!("killed_{run}"));
    let data = ring(&folder);
    let flags =
        ["train", "kge", "--data", &data, "--json", "--no-eval", "--dim", "8", "--epochs", "100000000"];
    let processes = ["--transport", transport, "--dead-after", DEAD_AFTER, "--workers", "1"];
    let mut nodes = nodes(&folder, NODES, &[flags.as_slice(), &processes].concat());
    nodes[0].stdout_lines(1);
    pass(delay);
    let killed = nodes.remove(victim);
    killed.signal(Signal::KILL);
    let since = Instant::now();
    let killed = killed.end();
    assert_eq!(killed.code, None, "{killed:?}");
    for node in nodes {
        let ended = node.end();
        let name = format!("run {run}, {transport}, n{victim} killed after {delay:?}: {ended:?}");
        assert_eq!(ended.code, Some(75), "{name}");
        let error = ended.error();
        assert!(error.contains(&format!("n{victim}")) && error.contains("127.0.0.1:"), "{name}");
    }
    since.elapsed()
}

#[test]
fn every_other_node_ends_and_names_the_one_that_was_killed() {
    let runs = runs("ADAPM_KILL_RUNS", 4);
    let mut rng = Rng::new(runs);
    let mut slowest = Duration::ZERO;
    for run in 0..runs {
        let transport = TRANSPORTS[run as usize % TRANSPORTS.len()];
        let delay = Duration::from_millis(rng.within(0..1_000) as u64);
        slowest = slowest.max(kill_one(run, run as usize % NODES, transport, delay));
    }
    println!(
        "counts: {runs} nodes killed; the slowest survivor took {slowest:.1?} with --dead-after {DEAD_AFTER}"
    );
}
