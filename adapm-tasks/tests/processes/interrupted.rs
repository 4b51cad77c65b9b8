//! Ctrl-C or SIGTERM at one node ends all of them, in good order.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Process, folder, nodes, ring, train_json};

const NODES: usize = 3;

#[track_caller]
fn ends_all(name: &str, signal: Signal, at: usize) {
    let folder = folder(name);
    let data = ring(&folder);
    let flags = train_json(&data, "100000000");
    let nodes = nodes(&folder, NODES, &flags);
    nodes[0].stdout_lines(2);
    nodes[at].signal(signal);
    let ended: Vec<_> = nodes.into_iter().map(Process::end).collect();
    for (index, node) in ended.iter().enumerate() {
        // The others need not know which signal it was; they were asked to end.
        let code = node.code.expect("it ended by itself");
        let asked = index != at && code == 128 + Signal::TERM.as_raw();
        assert!(code == 128 + signal.as_raw() || asked, "{node:?}");
        assert!(!node.stderr.contains("error"), "{node:?}");
    }
    let last = ended[0].stdout.lines().last().expect("epochs and a result");
    let last: Value = serde_json::from_str(last).expect("an object");
    assert_eq!((&last["task"], &last["stopped"]), (&Value::from("kge"), &Value::from(true)));
}

#[test]
fn ctrl_c_at_node_0_ends_all() {
    ends_all("ctrl_c_0", Signal::INT, 0);
}

#[test]
fn ctrl_c_at_another_node_ends_all() {
    ends_all("ctrl_c_2", Signal::INT, 2);
}

#[test]
fn sigterm_at_another_node_ends_all() {
    ends_all("sigterm_1", Signal::TERM, 1);
}
