//! Ctrl-C ends a run cleanly: what was done so far is printed and kept.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use adapm_verify::silence::patience;
use serde_json::Value;

use crate::harness::{adapm, collect, finish, folder, ring, text};

#[test]
fn ctrl_c_prints_what_was_done_and_keeps_the_parameters() {
    let folder = folder("ctrl_c");
    ring(&folder);
    let model = folder.join("model.adapm");
    let flags =
        ["--json", "--no-eval", "--dim", "8", "--epochs", "1000000", "--save", text(&model)];
    let mut command =
        adapm(&[["train", "kge", "--data", text(&folder)].as_slice(), &flags].concat());
    let mut child = command.spawn().expect("the binary starts");
    // Both streams are drained all the time: a full pipe would hold up the run.
    let stderr = collect(child.stderr.take().expect("stderr is piped"));
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let _ = stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line));
    });

    let first = lines.recv_timeout(patience()).expect("an epoch ends");
    assert!(first.starts_with("{\"epoch\":1,"), "{first}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    let stderr = stderr.text().unwrap_or_else(|| {
        child.kill().expect("a hanging child can be ended");
        panic!("the binary goes on after Ctrl-C");
    });

    assert_eq!(finish(child).code, Some(130), "{stderr}");
    assert!(stderr.contains("result on ") && !stderr.contains("error"), "{stderr}");
    let last: Value =
        serde_json::from_str(&lines.iter().last().expect("a last line")).expect("an object");
    assert_eq!((&last["task"], &last["stopped"]), (&Value::from("kge"), &Value::from(true)));
    assert!(model.exists());
}
