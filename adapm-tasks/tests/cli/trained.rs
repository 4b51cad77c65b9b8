//! Training by processes on loopback: one result, failures that are named, no process that stays.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command};

use adapm_verify::silence::patience;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use crate::harness::{Collected, Ran, adapm, collect, finish, folder, ring, run, text};
use crate::together::{holds, launch, objects, together};

/// Returns a quick training of the data in `folder`.
fn quick<'a>(folder: &'a Path, epochs: &'a str) -> Vec<&'a str> {
    vec![
        "train",
        "kge",
        "--data",
        text(folder),
        "--dim",
        "8",
        "--epochs",
        epochs,
        "--negative-count",
        "8",
        "--workers",
        "1",
    ]
}

/// A launch that goes on until it is ended, and what its first node printed about the processes.
struct Going {
    launcher: Child,
    stdout: Collected,
    stderr: BufReader<ChildStderr>,
    head: String,
    pids: Vec<i32>,
}

impl Going {
    /// Waits until an epoch is over.
    fn start(folder: &Path, nodes: &str, more: &[&str]) -> Self {
        let command = [quick(folder, "1000000").as_slice(), &["--no-eval"], more].concat();
        let mut launcher = adapm(&launch(&["--nodes", nodes, "--dead-after", "1"], &command))
            .spawn()
            .expect("it starts");
        let mut stderr = BufReader::new(launcher.stderr.take().expect("stderr is piped"));
        let (mut head, mut line) = (String::new(), String::new());
        while head.matches(", process ").count().to_string() != nodes {
            assert!(stderr.read_line(&mut head).expect("text") > 0, "it ended: {head}");
        }
        let mut stdout = BufReader::new(launcher.stdout.take().expect("stdout is piped"));
        while !line.starts_with("epoch ") && !line.starts_with("{\"epoch\"") {
            line.clear();
            assert!(stdout.read_line(&mut line).expect("text") > 0, "it ended: {head}");
        }
        let stdout = collect(stdout);
        let pids = head.lines().filter_map(|line| line.split_once(", process "));
        let pids = pids.map(|(_, rest)| {
            rest.split_whitespace().next().expect("a number").parse().expect("a number")
        });
        let pids = pids.collect();
        Self { launcher, stdout, stderr, head, pids }
    }

    /// Returns the rest of its output, and how it ends.
    fn finish(mut self) -> Ran {
        let rest = collect(self.stderr);
        let rest = rest.text().unwrap_or_else(|| {
            let _ = self.launcher.kill();
            panic!("the launcher hangs")
        });
        let stdout = self.stdout.text().unwrap_or_default();
        Ran { stdout, stderr: self.head + &rest, code: finish(self.launcher).code }
    }
}

fn signal(pid: i32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.expect("kill runs").success(), "{pid}");
}

#[test]
fn launched_nodes_train_one_model_and_print_one_result() {
    for (nodes, transport) in
        [("2", "tcp"), ("4", "tcp"), ("2", "unix"), ("2", "tokio"), ("2", "zmq")]
    {
        let folder = folder(&format!("nodes_{nodes}_{transport}"));
        ring(&folder);
        let command = [quick(&folder, "2").as_slice(), &["--json"]].concat();
        let ran = run(&launch(&["--nodes", nodes, "--transport", transport], &command));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let objects = objects(&ran);
        assert_eq!(objects.len(), 3, "{ran:?}");
        assert_eq!(objects[0]["triples"], 42, "{ran:?}");
        assert_eq!(objects[2]["nodes"].to_string(), nodes, "{ran:?}");
        assert!(
            objects[2]["mrr"].is_number() && objects[2]["bytes_sent"].as_u64() > Some(0),
            "{ran:?}"
        );
        holds(
            &ran.stderr,
            &format!(
                "n0 | cluster   {nodes} processes over {transport} (sealed), meeting at file:"
            ),
        );
        holds(
            &ran.stderr,
            "node from ADAPM_NODE, count from ADAPM_NODES, meeting from ADAPM_RENDEZVOUS",
        );
        holds(&ran.stderr, "n0 | epoch   2");
        for line in ran.stderr.lines() {
            assert!(line.starts_with('n') && line[2..].starts_with(" | "), "{line:?} in {ran:?}");
            assert!(line.starts_with("n0") || !line.contains("epoch"), "{line:?} in {ran:?}");
        }
    }
}

#[test]
fn every_node_may_use_a_transport_of_its_own() {
    let folder = folder("nodes_mixed");
    ring(&folder);
    let meeting = format!("file:{}", text(&folder.join("rendezvous")));
    let node = |(number, transport): (usize, &str)| {
        let number = number.to_string();
        let flags = [
            "--node",
            &number,
            "--nodes",
            "4",
            "--rendezvous",
            &meeting,
            "--transport",
            transport,
            "--json",
        ];
        adapm(&[quick(&folder, "2").as_slice(), &flags].concat())
    };
    let ran = together(["tcp", "tokio", "zmq", "unix"].into_iter().enumerate().map(node).collect());
    for ran in &ran {
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let last = objects(&ran[0]).pop().expect("an object");
    assert_eq!((&last["nodes"], last["mrr"].is_number()), (&Value::from(4), true), "{last}");
}

#[test]
fn saved_parameters_of_processes_give_the_ranks_of_one_process() {
    let folder = folder("nodes_saved");
    ring(&folder);
    let model = folder.join("model.adapm");
    let train = [quick(&folder, "2").as_slice(), &["--save", text(&model)]].concat();
    let ran = run(&launch(&["--nodes", "2"], &train));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    holds(&ran.stdout, "2 processes x 1 worker");
    let ranks = |name: &str, prefix: &[&str]| {
        let file = folder.join(name);
        let eval = [
            "eval",
            "kge",
            "--load",
            text(&model),
            "--data",
            text(&folder),
            "--ranks",
            text(&file),
        ];
        let ran = run(&[prefix, &eval].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        fs::read_to_string(file).expect("ranks were written")
    };
    assert_eq!(ranks("apart", &["launch", "--nodes", "3", "--"]), ranks("alone", &[]));
}

#[test]
fn a_node_that_is_killed_is_named_by_all() {
    let folder = folder("nodes_killed");
    ring(&folder);
    let going = Going::start(&folder, "3", &[]);
    assert_eq!(going.pids.len(), 3, "{}", going.head);
    signal(going.pids[2], "-KILL");
    let ran = going.finish();
    assert_eq!(ran.code, Some(137), "{ran:?}");
    let last = "error: node n2 was killed by signal 9; the others ended";
    assert_eq!(ran.stderr.lines().last(), Some(last), "{ran:?}");
    for survivor in ["n0", "n1"] {
        holds(&ran.stderr, &format!("{survivor} | error: node n2 (127.0.0.1:"));
    }
}

#[test]
fn no_process_outlives_its_launcher() {
    let folder = folder("nodes_orphans");
    ring(&folder);
    let going = Going::start(&folder, "2", &[]);
    let handle = |pid: &i32| {
        let pid = Pid::from_raw(*pid).expect("a number above 0");
        pidfd_open(pid, PidfdFlags::empty()).expect("it lives")
    };
    let handles: Vec<_> = going.pids.iter().map(handle).collect();
    let mut launcher = going.launcher;
    launcher.kill().expect("it is ours");
    for handle in &handles {
        let mut ends = [PollFd::new(handle, PollFlags::IN)];
        let hang = Timespec {
            tv_sec: i64::try_from(patience().as_secs()).expect("a few minutes"),
            tv_nsec: 0,
        };
        assert_eq!(poll(&mut ends, Some(&hang)), Ok(1), "a process lives on");
    }
    assert_eq!(finish(launcher).code, None);
}

#[test]
fn a_signal_to_the_launcher_or_to_a_node_stops_all_in_good_order() {
    for (to_launcher, name, code) in
        [(true, "-INT", 130), (true, "-TERM", 143), (false, "-TERM", 143)]
    {
        let folder = folder("nodes_stopped");
        ring(&folder);
        let model = folder.join("model.adapm");
        let going = Going::start(&folder, "2", &["--json", "--save", text(&model)]);
        let pid = i32::try_from(going.launcher.id()).expect("a small number");
        signal(if to_launcher { pid } else { going.pids[1] }, name);
        let ran = going.finish();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(objects(&ran).last().expect("a last object")["stopped"], true, "{ran:?}");
        assert!(model.exists(), "{ran:?}");
    }
}

#[test]
fn nodes_that_train_something_else_are_named() {
    let folder = folder("nodes_different");
    ring(&folder);
    let meeting = format!("file:{}", text(&folder.join("rendezvous")));
    let node = |number: &str, more: &[&str]| {
        let flags =
            ["--node", number, "--nodes", "2", "--rendezvous", &meeting, "--join-timeout", "5"];
        adapm(&[quick(&folder, "1").as_slice(), &flags, more].concat())
    };
    let ran = together(vec![node("0", &[]), node("1", &["--learning-rate", "0.5"])]);
    for ran in &ran {
        assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{ran:?}");
        holds(ran.stderr.lines().last().expect("a line"), "error: node n");
    }
    // What only one of them can know: the others report that it ended, and that starting again may
    // help.
    let ran = together(vec![node("0", &[]), node("1", &["--data", "no/such/folder"])]);
    assert_eq!([ran[0].code, ran[1].code], [Some(75), Some(2)], "{ran:?}");
    holds(&ran[0].stderr, "error: node n1 (127.0.0.1:");
    holds(&ran[1].stderr, "error: no data no/such/folder");
}
