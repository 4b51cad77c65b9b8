//! SIGSTOP for less than the dead time: all wait, go on, and come to the same end.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{folder, nodes, pass, ring, runs, train_json};

const NODES: usize = 3;

#[test]
fn a_node_that_is_held_up_for_a_while_is_waited_for() {
    for run in 0..runs("ADAPM_PAUSE_RUNS", 2) {
        let folder = folder(&format!("paused_{run}"));
        let data = ring(&folder);
        let flags = train_json(&data, "100");
        let nodes = nodes(&folder, NODES, &[flags.as_slice(), &["--dead-after", "10"]].concat());
        nodes[0].stdout_lines(1);
        let held = &nodes[run as usize % NODES];
        held.signal(Signal::STOP);
        pass(Duration::from_millis(1_500));
        held.signal(Signal::CONT);
        let ended: Vec<_> = nodes.into_iter().map(crate::harness::Process::end).collect();
        for node in &ended {
            assert_eq!(node.code, Some(0), "run {run}: {node:?}");
            assert!(!node.stderr.contains("error"), "run {run}: {node:?}");
        }
        let objects: Vec<Value> = ended[0]
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect();
        assert_eq!(objects.len(), 101, "an object for each epoch and one for the run");
        let loss = |at: usize| objects[at]["loss"].as_f64().expect("an epoch has a loss");
        assert!(
            loss(99) < loss(0) / 2.0,
            "run {run}: {} is not much less than {}",
            loss(99),
            loss(0)
        );
    }
}
