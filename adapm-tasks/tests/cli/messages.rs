//! Messages, letter for letter: what is wrong, where, and what to do.
#![cfg(unix)]

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{adapm, finish, folder, ring, run, text, write};
use crate::together::{launch, together};

/// Checks that `command` prints `message` and nothing else, and ends with this exit code.
#[track_caller]
fn assert_says(command: &mut Command, code: i32, message: &str) {
    let ran = finish(command.spawn().expect("the binary starts"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
    assert_eq!(ran.stderr, format!("error: {message}\n"));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = folder("messages_read");
    ring(&folder);
    write(&folder, "text", "the sun is a star\n".repeat(9).as_str());
    let at = |name: &str| text(&folder.join(name)).to_owned();
    let (here, nosuch, triples) = (at(""), at("nosuch"), at("train.txt"));
    let here = here.trim_end_matches('/');
    let missing = format!("cannot read {nosuch} (--load): no such file; check the path");
    let eval = |task: &str, model: &str| adapm(&["eval", task, "--load", model]);
    for task in ["kge", "mf", "wv", "ctr", "gnn"] {
        assert_says(&mut eval(task, &nosuch), 2, &missing);
        assert_says(
            &mut adapm(&["export", task, "--load", &nosuch, "--output", &at("out")]),
            2,
            &missing,
        );
    }
    assert_says(&mut eval("kge", here), 2, &format!("{here} (--load) is a directory; give a file"));
    assert_says(
        &mut eval("kge", &at("text/x")),
        2,
        &format!(
            "cannot read {} (--load): not a directory; what it lies in is a file; check the path",
            at("text/x")
        ),
    );
    assert_says(
        &mut adapm(&["eval", "kge", "--load", &triples]),
        2,
        &format!("{triples} is no checkpoint of adapm; give a file written by --save"),
    );
    for (name, fault) in [
        ("text", "is not a trace; give a file written by --trace-keys"),
        ("", "is a directory; give a file"),
    ] {
        let path = if name.is_empty() { here.to_owned() } else { at(name) };
        assert_says(&mut adapm(&["trace", &path]), 2, &format!("{path} {fault}"));
    }
    assert_says(
        &mut adapm(&["trace", &nosuch]),
        2,
        &format!("cannot read {nosuch}: no such file; check the path"),
    );
    let bytes = folder.join("bytes");
    std::fs::write(&bytes, vec![0xff; 10_000]).expect("a file can be written");
    let fault = format!("{} is not a trace; give a file written by --trace-keys", text(&bytes));
    assert_says(&mut adapm(&["trace", text(&bytes)]), 2, &fault);
}

#[test]
fn files_that_cannot_be_written() {
    let folder = folder("messages_write");
    let nosuch = folder.join("nosuch").join("model");
    let save = |path: &Path| adapm(&["train", "mf", "--save", text(path)]);
    let fault = "there is no such folder; give a file in a folder you may write";
    assert_says(
        &mut save(&nosuch),
        2,
        &format!("cannot write {} (--save): {fault}", text(&nosuch)),
    );
    let fault = "it is a folder; give a file";
    assert_says(
        &mut save(&folder),
        2,
        &format!("cannot write {} (--save): {fault}", text(&folder)),
    );
}

#[test]
fn a_stdout_that_is_full() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    for args in [["train", "kge", "--recipe"], ["bench", "signals", "--quick"]] {
        let mut command = adapm(&args);
        command.stdout(Stdio::from(full.try_clone().expect("it is ours")));
        assert_says(&mut command, 1, "cannot write to stdout: no space left on device");
    }
}

#[test]
fn secrets_and_folders_of_a_cluster() {
    let folder = folder("messages_cluster");
    let nosuch = text(&folder.join("nosuch")).to_owned();
    let join =
        ["--node", "0", "--nodes", "2", "--rendezvous", "127.0.0.1:9", "--token-file", &nosuch];
    let fault = format!(
        "cannot read the secret in {nosuch} (--token-file): no such file; create it with: adapm token {nosuch}"
    );
    assert_says(&mut adapm(&[&["train", "kge"], join.as_slice()].concat()), 2, &fault);
    assert_says(
        &mut adapm(&launch(&["--nodes", "2", "--token-file", &nosuch], &["train", "kge"])),
        2,
        &fault,
    );
    let below = format!("{nosuch}/token");
    let fault = format!("cannot make a secret in {below}: no such file or directory");
    assert_says(&mut adapm(&["token", &below]), 2, &fault);
    assert_says(
        adapm(&launch(&["--nodes", "2"], &["train", "kge"])).env("TMPDIR", &nosuch),
        1,
        &format!("cannot create a folder in {nosuch} (TMPDIR): no such file or directory"),
    );
}

#[test]
fn a_launch_without_dashes() {
    let command = ["train", "kge", "--epochs", "1"];
    let put =
        "put -- before the command: adapm launch --nodes 2 --transport tcp -- train kge --epochs 1";
    let words = [["launch", "--nodes", "2", "--transport", "tcp"].as_slice(), &command].concat();
    assert_says(&mut adapm(&words), 2, put);
    let put = "put -- before the command: adapm launch --hosts a,b -- eval wv";
    assert_says(&mut adapm(&["launch", "--hosts", "a,b", "eval", "wv"]), 2, put);
}

#[test]
fn nodes_of_different_tasks() {
    let folder = folder("messages_tasks");
    ring(&folder);
    let meeting = format!("file:{}", text(&folder.join("rendezvous")));
    let node = |number: &str, task: &str| {
        let place = ["--node", number, "--nodes", "2", "--rendezvous", &meeting];
        adapm(&[["train", task, "--epochs", "1", "--no-eval"].as_slice(), &place].concat())
    };
    let said =
        "error: node n1 runs train mf, the others train kge; start all nodes with the same task\n";
    for ran in together(vec![node("0", "kge"), node("1", "mf")]) {
        assert!(ran.code == Some(2) && ran.stderr.ends_with(said), "{ran:?}");
    }
}

#[test]
fn training_that_diverges_names_what_the_data_calls_it() {
    let folder = folder("messages_diverged");
    ring(&folder);
    let cases: [(&[&str], &[&str]); 3] = [
        (
            &["train", "kge", "--data", text(&folder), "--dim", "8"],
            &["entity e", "relation next", "relation previous"],
        ),
        (
            &[
                "train",
                "mf",
                "--rows",
                "20",
                "--columns",
                "20",
                "--cells",
                "90",
                "--optimizer",
                "sgd",
            ],
            &["row ", "column "],
        ),
        (
            &["train", "wv", "--sentences", "100", "--dim", "8"],
            &["word ", "output vector of word "],
        ),
    ];
    for (args, names) in cases {
        let ran =
            run(&[args, &["--learning-rate", "1e30", "--no-eval", "--workers", "1"]].concat());
        let last = ran.stderr.lines().last().unwrap_or_default();
        let rest = last
            .strip_prefix("error: training diverged: the update of ")
            .unwrap_or_else(|| panic!("{ran:?}"));
        assert!(names.iter().any(|name| rest.starts_with(name)) && ran.code == Some(1), "{ran:?}");
        // That of word vectors has fallen a little by then.
        let rate = rest.split_once(" is not a finite number with learning rate ");
        let rate = rate
            .and_then(|(_, rest)| rest.strip_suffix("; lower it"))
            .and_then(|rate| rate.parse().ok());
        assert!(rate.is_some_and(|rate: f64| (1e29..=1e30).contains(&rate)), "{rest}");
    }
}
