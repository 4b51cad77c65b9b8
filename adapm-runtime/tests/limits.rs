//! Machines with little memory: `build` reports the resource that it cannot have, whichever runs
//! out first.

#![cfg(unix)]

use std::env;
use std::process::{Command, Output, Stdio};

use adapm_core::Layout;
use adapm_runtime::Builder;

/// Set for a process that builds a cluster: the number of nodes.
const VARIABLE: &str = "ADAPM_TEST_NODES";

const MARK: &str = "built: ";

/// Not a test by itself: the process with little memory runs this program with this test alone.
#[test]
fn plays_the_process_that_builds() {
    let Ok(nodes) = env::var(VARIABLE) else { return };
    let nodes: usize = nodes.parse().expect("a number");
    let layout = Layout::dense(&[(10_000, 1)]).expect("a valid layout");
    let built = Builder::<f32>::new(layout).nodes(nodes).channels(1).build();
    println!("{MARK}{}", built.map_or_else(|error| error.to_string(), |_| "all".to_owned()));
}

/// Builds a cluster within that much address space.
fn build(nodes: usize, kib: usize) -> Output {
    let program = env::current_exe().expect("a test knows its program");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &kib.to_string()]).arg(program);
    command.args([
        "--exact",
        "plays_the_process_that_builds",
        "--nocapture",
        "--test-threads",
        "1",
    ]);
    command.env(VARIABLE, nodes.to_string()).stdin(Stdio::null());
    command.output().expect("a shell")
}

#[test]
fn many_nodes_with_little_memory_are_refused_in_one_line() {
    // With limits that the nodes' memory exceeds, and limits that their threads exceed.
    let (mut refused, mut built) = (0, 0);
    for (nodes, mib) in
        [(4_000, 500), (4_000, 1_000), (4_000, 2_000), (400, 100), (400, 500), (4, 4_000)]
    {
        let output = build(nodes, mib << 10);
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let outcome =
            said.lines().find_map(|line| line.split_once(MARK)).map(|(_, outcome)| outcome);
        println!("{nodes} nodes in {mib} MiB: {outcome:?}");
        assert!(output.status.success(), "{nodes} nodes in {mib} MiB: {said}\n{errors}");
        match outcome.expect("it says how it ended") {
            "all" => built += 1,
            reason => {
                refused += 1;
                let names = reason.contains("ulimit -v") || reason.contains("memory");
                assert!(names, "{nodes} nodes in {mib} MiB: {reason}");
            }
        }
    }
    assert!(refused >= 4 && built >= 1, "{refused} refused, {built} built");
}
