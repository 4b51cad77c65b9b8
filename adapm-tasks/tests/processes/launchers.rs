//! Several nodes in one command: `adapm launch`, and mpirun where it is installed.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Ended, Process, adapm, binary, clean, folder, lacks, ring, skip};

const TRAIN: [&str; 8] = ["--json", "--no-eval", "--dim", "8", "--epochs", "100", "--workers", "1"];

/// Checks that the run has ended well, and that only node 0 has printed results.
#[track_caller]
pub(crate) fn is_one_run(ended: &Ended, nodes: usize, epochs: usize) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let objects: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|_| panic!("no object: {line} in {ended:?}"))
        })
        .collect();
    assert_eq!(
        objects.len(),
        epochs + 1,
        "an object for each epoch and one for the run: {ended:?}"
    );
    let last = objects.last().expect("more than one");
    assert_eq!(last["nodes"], nodes, "{last}");
}

#[test]
fn launch_starts_nodes_that_train_together() {
    for transport in ["tcp", "tokio", "zmq", "unix"] {
        let folder = folder(&format!("launch_{transport}"));
        let data = ring(&folder);
        let mut command = adapm();
        command.env("TMPDIR", &folder).args([
            "launch",
            "--nodes",
            "3",
            "--transport",
            transport,
            "--",
        ]);
        command.args(["train", "kge", "--data", &data]).args(TRAIN);
        is_one_run(&Process::start(transport, &mut command).end(), 3, 100);
    }
}

#[test]
fn mpirun_starts_nodes_that_train_together() {
    if let Some(reason) = lacks(&["mpirun"], false) {
        return skip("mpirun", &reason);
    }
    let folder = folder("mpirun");
    let data = ring(&folder);
    let mut command = clean(Command::new("mpirun"));
    command.args(["--oversubscribe", "-n", "3"]).env("TMPDIR", &folder);
    // Open MPI refuses root unless two variables allow it; containers have no other user.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.arg(binary()).args(["train", "kge", "--data", &data]).args(TRAIN);
    is_one_run(&Process::start("mpirun", &mut command).end(), 3, 100);
}
