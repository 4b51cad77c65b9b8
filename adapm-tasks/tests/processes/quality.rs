//! The same quality as in one process, over every transport, on generated data.

use serde_json::Value;

use crate::harness::{Process, adapm, folder};

/// Mean reciprocal rank on test of one run with these flags before the verb.
fn mrr(name: &str, launch: &[&str], seed: &str) -> f64 {
    let folder = folder(&format!("quality_{name}_{seed}"));
    let mut command = adapm();
    command.env("TMPDIR", &folder).args(launch).args(["train", "kge", "--json", "--seed", seed]);
    command.args([
        "--dim",
        "24",
        "--epochs",
        "20",
        "--valid-every",
        "20",
        "--negative-count",
        "100",
        "--workers",
        "1",
    ]);
    let ended = Process::start(name, &mut command).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last: Value =
        serde_json::from_str(ended.stdout.lines().last().expect("a result")).expect("an object");
    find_mrr(&last).unwrap_or_else(|| panic!("no mrr in {last}"))
}

/// The test figure of a run's object.
fn find_mrr(object: &Value) -> Option<f64> {
    object["test"]["mrr"].as_f64().or_else(|| object["mrr"].as_f64())
}

/// The middle one of three seeds: single runs of so small a model now and then end far from the others.
fn median(name: &str, launch: &[&str]) -> f64 {
    let mut found = ["1", "2", "3"].map(|seed| mrr(name, launch, seed));
    println!("{name}: {found:.4?}");
    found.sort_by(f64::total_cmp);
    found[1]
}

#[test]
fn processes_reach_what_one_process_reaches() {
    let alone = median("one process", &[]);
    for (nodes, transport) in [("2", "tcp"), ("4", "tcp"), ("2", "tokio"), ("2", "zmq"), ("2", "unix")] {
        let name = format!("{nodes} processes over {transport}");
        let found = median(&name, &["launch", "--nodes", nodes, "--transport", transport, "--"]);
        assert!((found - alone).abs() < TOLERANCE, "{name}: {found}, in one process {alone}");
    }
}

/// Twice what most seeds differ by, in one process.
const TOLERANCE: f64 = 0.08;
