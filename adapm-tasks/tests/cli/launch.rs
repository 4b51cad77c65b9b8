//! `launch` with processes of every kind: well-behaved, failing, killed, stubborn, talkative.
//!
//! The processes here are small scripts that are started as on other hosts, through a stand-in for
//! ssh; real nodes are in `nodes.rs`.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::harness::{Ran, adapm, assert_refused, finish, folder, run, text, write};

/// Processes that do what `script` says, on hosts `a` and so on; `$ADAPM_NODE` tells which one it
/// is.
struct Scripted {
    folder: PathBuf,
    hosts: &'static str,
}

impl Scripted {
    fn new(name: &str, hosts: &'static str, script: &str) -> Self {
        let folder = folder(name);
        executable(
            &folder,
            "ssh",
            "[ \"$1 $2 $3 $4\" = '-T -o BatchMode=yes --' ] || exit 99\nexec sh -c \"$6\"\n",
        );
        executable(&folder, "node", script);
        Self { folder, hosts }
    }

    fn start(&self, dead_after: &str) -> Child {
        let program = self.folder.join("node");
        let flags = [
            "launch",
            "--hosts",
            self.hosts,
            "--remote-program",
            text(&program),
            "--dead-after",
            dead_after,
        ];
        let mut command = adapm(&[flags.as_slice(), &["--", "train", "kge", "--json"]].concat());
        command
            .env("TMPDIR", &self.folder)
            .env("ADAPM_SSH", self.folder.join("ssh"))
            .spawn()
            .expect("the binary starts")
    }

    fn run(&self) -> Ran {
        finish(self.start("0.1"))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).expect("a process wrote this file")
    }
}

fn executable(folder: &Path, name: &str, script: &str) {
    write(folder, name, &format!("#!/bin/sh\n{script}"));
    let path = folder.join(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// Reads lines of the launcher's stderr until one holds `words`.
fn wait_for(child: &mut Child, words: &str) -> String {
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut line = String::new();
    while stderr.read_line(&mut line).expect("lines of text") > 0 {
        if line.contains(words) {
            // What follows is dropped; a closed pipe must not matter to the launcher.
            return line;
        }
        line.clear();
    }
    panic!("no line with {words:?}");
}

#[test]
fn stdout_is_that_of_node_0_and_all_else_has_a_prefix() {
    let script = "echo \"{\\\"node\\\":$ADAPM_NODE}\"; printf 'one\\ntwo' >&2";
    let ran = Scripted::new("launch_output", "a,b", script).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"node\":0}\n"), "{ran:?}");
    let mut lines: Vec<&str> = ran.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["n0 | one", "n0 | two", "n1 | one", "n1 | two", "n1 | {\"node\":1}"],
        "{ran:?}"
    );
}

#[test]
fn lines_of_many_processes_are_never_mixed() {
    let script = "i=0; while [ $i -lt 200 ]; do echo \"$ADAPM_NODE begin $i 0123456789 end\" >&2; i=$((i + 1)); done";
    let ran = Scripted::new("launch_lines", "a,b,c", script).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut count = [0; 3];
    for line in ran.stderr.lines() {
        let (prefix, line) = line.split_once(" | ").expect("a prefix");
        let node: usize = prefix.strip_prefix('n').expect("a node").parse().expect("a number");
        assert_eq!(
            line,
            format!("{node} begin {} 0123456789 end", count[node]),
            "in order and whole"
        );
        count[node] += 1;
    }
    assert_eq!(count, [200; 3]);
}

#[test]
fn every_process_is_told_its_place_and_one_secret_that_is_new_each_time() {
    let script = "read secret; cd \"${0%/*}\"; echo \"$secret\" >> secrets; \
                  echo \"$ADAPM_NODE $ADAPM_NODES $ADAPM_RENDEZVOUS $ADAPM_LAUNCHED $ADAPM_DEAD_AFTER $*\" > place$ADAPM_NODE";
    let scripted = Scripted::new("launch_place", "me@alpha,beta", script);
    assert_eq!(scripted.run().code, Some(0));
    assert_eq!(scripted.read("place0"), "0 2 alpha:4157 1 0.1 train kge --json\n");
    assert_eq!(scripted.read("place1"), "1 2 alpha:4157 1 0.1 train kge --json\n");
    assert_eq!(scripted.run().code, Some(0));
    let secrets = scripted.read("secrets");
    let secrets: Vec<&str> = secrets.lines().collect();
    assert!(secrets.iter().all(|secret| secret.len() == 64), "{secrets:?}");
    assert!(
        secrets[0] == secrets[1] && secrets[2] == secrets[3] && secrets[0] != secrets[2],
        "{secrets:?}"
    );
}

#[test]
fn a_process_that_is_killed_is_named_last_and_gives_the_exit_code() {
    let script = "[ $ADAPM_NODE = 2 ] && kill -9 $$; exit 75";
    let ran = Scripted::new("launch_killed", "a,b,c", script).run();
    assert_eq!(ran.code, Some(137), "{ran:?}");
    assert_eq!(
        ran.stderr.lines().last(),
        Some("error: node n2 was killed by signal 9; the others ended"),
        "{ran:?}"
    );
}

#[test]
fn those_that_lost_others_are_not_to_blame() {
    let script = "read secret; [ $ADAPM_NODE = 1 ] || exit 75; echo broken >&2; exit 3";
    let ran = Scripted::new("launch_failed", "a,b,c", script).run();
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let last = "error: node n1 ended with exit code 3, see its lines above; the others ended";
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), ["n1 | broken", last], "{ran:?}");
    let ran = Scripted::new("launch_lost", "a,b", "exit 75").run();
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert!(ran.stderr.contains("lost another node or did not meet all; start again"), "{ran:?}");
}

#[test]
fn those_that_do_not_end_by_themselves_are_asked_and_then_ended() {
    let script =
        "read secret; [ $ADAPM_NODE = 0 ] && exit 1; read word; echo \"got $word\" >&2; exit 75";
    let ran = Scripted::new("launch_asked", "a,b", script).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let last =
        "error: node n0 ended with exit code 1, see its lines above; the others had to be ended";
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), ["n1 | got signal 15", last], "{ran:?}");

    let script = "[ $ADAPM_NODE = 0 ] && exit 1; trap '' TERM; while :; do read word; done";
    let ran = Scripted::new("launch_stubborn", "a,b", script).run();
    assert_eq!((ran.code, ran.stderr.lines().last()), (Some(1), Some(last)), "{ran:?}");
}

#[test]
fn a_signal_is_passed_on_once_and_gives_the_exit_code() {
    for (number, code) in [("-INT", 130), ("-TERM", 143)] {
        let script = "read secret; echo ready >&2; read word; echo $word > \"$0.got$ADAPM_NODE\"; exit $((128 + ${word#signal }))";
        let scripted = Scripted::new("launch_signal", "a", script);
        let mut child = scripted.start("10");
        wait_for(&mut child, "n0 | ready");
        signal(&child, number);
        assert_eq!(finish(child).code, Some(code), "{number}");
        assert_eq!(scripted.read("node.got0"), format!("signal {}\n", code - 128));
    }
}

#[test]
fn one_signal_ends_a_launch_whose_processes_stand_still() {
    let script = "read secret; echo ready >&2; trap '' TERM; while :; do read word; done";
    let mut child = Scripted::new("launch_still", "a,b", script).start("0.1");
    wait_for(&mut child, "n1 | ready");
    signal(&child, "-TERM");
    assert_eq!(finish(child).code, Some(143));
}

#[test]
fn when_one_is_stopped_the_others_are_asked_to_stop_too() {
    let script = "read secret; [ $ADAPM_NODE = 1 ] && exit 143; read word; [ \"$word\" = 'signal 15' ] && exit 143; exit 1";
    let ran = finish(Scripted::new("launch_stopped", "a,b,c", script).start("86400"));
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert_eq!(ran.stderr, "error: node n1 was stopped by signal 15; the others ended\n");
}

#[test]
fn processes_learn_that_their_launcher_is_gone() {
    let scripted = Scripted::new(
        "launch_gone",
        "a",
        "read secret; echo ready >&2; exec > \"$0.gone\"; read word || echo gone",
    );
    executable(&scripted.folder, "fifo", "mkfifo \"${0%/*}/node.gone\"");
    assert!(Command::new(scripted.folder.join("fifo")).status().expect("sh runs").success());
    let mut child = scripted.start("10");
    // Opening a pipe waits for the process that writes to it; its end is what is waited for.
    let gone = std::thread::spawn({
        let path = scripted.folder.join("node.gone");
        move || fs::read_to_string(path)
    });
    wait_for(&mut child, "n0 | ready");
    child.kill().expect("it is ours");
    assert_eq!(finish(child).code, None);
    assert_eq!(gone.join().expect("a reader").expect("text"), "gone\n");
}

#[test]
fn any_program_is_launched_by_its_path_and_finds_its_place_in_the_environment() {
    let script = "echo node $ADAPM_NODE of $ADAPM_NODES";
    let ran = run(&["launch", "--nodes", "2", "--", "/bin/sh", "-c", script]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "node 0 of 2\n"), "{ran:?}");
    assert!(ran.stderr.contains("n1 | node 1 of 2\n"), "{ran:?}");
    let ran = run(&["launch", "--nodes", "2", "--", "/nosuch/program"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("/nosuch/program"), "{ran:?}");
}

#[test]
fn a_plan_is_that_of_as_many_nodes_as_there_are_processes() {
    let words = ["wv", "--sentences", "300", "--min-count", "1", "--epochs", "1", "--workers", "1"];
    let ran = run(&[["launch", "--nodes", "2", "--", "train"].as_slice(), &words].concat());
    assert!(ran.code == Some(0) && ran.stdout.contains("sampling preloc"), "{ran:?}");
    let ran = run(&[["train"].as_slice(), &words].concat());
    assert!(ran.code == Some(0) && ran.stdout.contains("sampling local"), "{ran:?}");
}

#[test]
fn a_command_that_cannot_run_on_several_processes_is_refused_at_once() {
    let launch =
        |command: &[&str]| run(&[["launch", "--nodes", "2", "--"].as_slice(), command].concat());
    assert_refused(
        &launch(&["demo"]),
        &["'demo' does not run on several processes", "train kge, eval kge"],
    );
    assert_refused(
        &launch(&["launch", "--nodes", "2", "--", "demo"]),
        &["'launch' does not run on several"],
    );
    assert_refused(&launch(&["adapm"]), &["train kge"]);
    assert_refused(&launch(&["own_task"]), &["'own_task' does not run", "./own_task"]);
    for words in [&["train", "--data", "a9a.svm"][..], &["eval", "fm"], &["train"]] {
        let named = words.get(1).map_or("nothing".to_owned(), |word| format!("'{word}'"));
        let needs = format!("`adapm {}` needs a task, and {named} is none", words[0]);
        assert_refused(&launch(words), &[&needs, "such as ./own_task"]);
    }
    assert_refused(
        &launch(&["train", "kge", "--nodes", "4"]),
        &["--nodes is 4 after -- but 2 processes"],
    );
    assert_refused(
        &launch(&["train", "kge", "--node", "1"]),
        &["--node and --rendezvous are the launcher's"],
    );
    assert_refused(
        &launch(&["train", "kge", "--epohcs", "1"]),
        &["--epohcs", "'--epochs'", "adapm train kge --help"],
    );
    assert_refused(&run(&["launch", "--nodes", "2"]), &["VERB"]);
    assert_refused(&run(&["launch", "--", "train", "kge"]), &["--nodes"]);
    assert_refused(
        &run(&["launch", "--nodes", "0", "--", "train", "kge"]),
        &["--nodes", "at least 1"],
    );
    assert_refused(
        &run(&["launch", "--nodes", "2", "--port", "5", "--", "train", "kge"]),
        &["--hosts"],
    );
    assert_refused(
        &run(&["launch", "--nodes", "2", "--transport", "ipx", "--", "train", "kge"]),
        &["ipx", "tcp", "zmq"],
    );
}

#[test]
fn hosts_that_are_none_and_programs_that_are_missing_are_refused() {
    let launch = |hosts: &str| run(&["launch", "--hosts", hosts, "--", "train", "kge"]);
    assert_refused(
        &launch("a,-oProxyCommand=x"),
        &["'-oProxyCommand=x' in --hosts is no name of a host"],
    );
    assert_refused(&launch("a,,b"), &["'' in --hosts"]);
    assert_refused(
        &launch("localhost,b"),
        &["'localhost' in --hosts: give the name by which the other hosts reach"],
    );
    let mut command = adapm(&["launch", "--hosts", "a", "--", "train", "kge"]);
    let ran =
        finish(command.env("ADAPM_SSH", "no-such-program -v").spawn().expect("the binary starts"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.starts_with("error: cannot start node n0 with no-such-program -v: "),
        "{ran:?}"
    );
}

#[test]
fn a_secret_that_others_may_read_is_refused() {
    let folder = folder("launch_secret");
    write(&folder, "token", "0123456789abcdef0123456789abcdef\n");
    let token = folder.join("token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let flags = ["launch", "--nodes", "2", "--token-file", text(&token), "--", "train", "kge"];
    assert_refused(&run(&flags), &["others may read the secret", "(mode 644): run chmod 600"]);
}
