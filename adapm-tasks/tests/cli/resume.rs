//! Runs that are killed or stopped, and go on (`--resume`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use adapm_verify::rng::Rng;
use serde_json::Value;

use crate::harness::{adapm, assert_refused, finish, folder, run, text};
use crate::together::{holds, succeeded};

/// Small jobs of all tasks, of one worker: some seconds each.
const JOBS: [&str; 5] = [
    "kge --dim 8 --epochs 2 --negative-count 10",
    "mf --rows 400 --columns 300 --cells 30000 --dim 8 --epochs 6",
    "wv --sentences 6000 --dim 16 --epochs 2",
    "ctr --examples 40000 --features 2000 --test-examples 4000 --epochs 2",
    "gnn --graph-nodes 2000 --epochs 6",
];

fn words(job: &str) -> Vec<String> {
    job.split(' ').map(str::to_owned).collect()
}

/// Returns a command whose checkpoints are far closer together than they would be.
fn often(words: &[&str]) -> Command {
    let mut command = adapm(words);
    command.env("ADAPM_CHECKPOINT_SECONDS", "0.05");
    command
}

fn start(words: &[&str]) -> Child {
    often(words).spawn().expect("the binary starts")
}

/// Lets the machine go on for this long, so that a signal comes at some moment.
fn pass(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

fn latest(run: &Path) -> Option<String> {
    fs::read_to_string(run.join("checkpoints/latest")).ok()
}

/// Kills a run after it has written another checkpoint, and so long; false if it ended before.
fn kill_after(mut child: Child, run: &Path, delay: Duration) -> bool {
    let (before, since) = (latest(run), Instant::now());
    while latest(run) == before && since.elapsed() < Duration::from_secs(60) {
        if child.try_wait().expect("it is ours").is_some() {
            return false;
        }
        pass(Duration::from_millis(2));
    }
    pass(delay);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    true
}

fn epochs(run: &Path) -> Vec<Value> {
    let log = fs::read_to_string(run.join("log.jsonl")).expect("it is written");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    lines.map(|line| line["epoch"].clone()).collect()
}

#[test]
fn a_run_of_one_worker_that_is_killed_ends_with_the_same_bytes() {
    let mut rng = Rng::new(31);
    for job in JOBS {
        let name = job.split(' ').next().unwrap_or_default();
        let folder = folder(&format!("resume_{name}"));
        let [whole, killed] = ["whole", "killed"].map(|name| folder.join(name));
        let job = words(job);
        let train = |run: &Path| -> Vec<String> {
            let flags = ["--workers", "1", "--out", text(run)].map(str::to_owned);
            [&["train".to_owned()][..], &job, &flags].concat()
        };
        let own = train(&whole);
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        succeeded(&own);
        let first = train(&killed);
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        let mut pause = || Duration::from_millis(rng.within(0..60) as u64);
        let mut kills = u32::from(kill_after(start(&first), &killed, pause()));
        let resume = ["train", "--resume", text(&killed)];
        while kills < 3 && kill_after(start(&resume), &killed, pause()) {
            kills += 1;
        }
        assert!(kills > 0, "{name} ends before it can be killed");
        let ended = finish(start(&resume));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        holds(&ended.stdout, "goes on from step-");
        for model in ["best.adapm", "last.adapm"] {
            let read = |run: &PathBuf| fs::read(run.join(model)).expect("it was saved");
            assert!(
                read(&whole) == read(&killed),
                "{name}: {model} is another after {kills} kills"
            );
        }
        assert_eq!(epochs(&whole), epochs(&killed), "{name}: an epoch is missing or there twice");
    }
}

#[test]
fn any_number_of_nodes_goes_on_with_the_parameters_of_the_checkpoint() {
    let folder = folder("resume_nodes");
    let run = folder.join("run");
    let job = ["train", "kge", "--dim", "8", "--epochs", "1", "--nodes", "2", "--workers", "1"];
    succeeded(&[&job[..], &["--out", text(&run)]].concat());
    let last = fs::read(run.join("last.adapm")).expect("it was saved");
    for nodes in ["1", "3", "4"] {
        let shown = succeeded(&["train", "--resume", text(&run), "--nodes", nodes]).stdout;
        holds(&shown, "goes on from step-");
        assert!(fs::read(run.join("last.adapm")).expect("it was saved") == last, "{nodes} nodes");
    }
    let on = succeeded(&["train", "--resume", text(&run), "--epochs", "2", "--nodes", "3"]).stdout;
    holds(&on, "epoch   2");
    assert_eq!(epochs(&run), [1, 2]);
    // The folder has the settings that it went on with.
    let settings = fs::read_to_string(run.join("config.toml")).expect("it is written");
    holds(&settings, "epochs = 2");
}

#[test]
fn a_run_that_is_stopped_says_how_it_goes_on() {
    let folder = folder("resume_stopped");
    let run = folder.join("run");
    let job = ["train", "kge", "--dim", "8", "--epochs", "1000", "--workers", "1"];
    let child = start(&[&job[..], &["--out", text(&run)]].concat());
    let since = Instant::now();
    while latest(&run).is_none() && since.elapsed() < Duration::from_secs(60) {
        pass(Duration::from_millis(5));
    }
    let before = latest(&run);
    let stop = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(stop.expect("kill runs").success());
    let ended = finish(child);
    assert_eq!(ended.code, Some(143), "{ended:?}");
    holds(&ended.stdout, &format!("go on with: train --resume {}", text(&run)));
    assert_ne!(latest(&run), before, "it has written a last one");
    let on = succeeded(&["train", "--resume", text(&run), "--epochs", "1"]);
    holds(&on.stdout, "goes on from step-");
}

#[test]
fn what_a_run_is_of_cannot_change() {
    let folder = folder("resume_refused");
    let [run_folder, empty] = ["run", "empty"].map(|name| folder.join(name));
    let job = ["train", "mf", "--rows", "60", "--columns", "40", "--cells", "600", "--dim", "4"];
    succeeded(&[&job[..], &["--epochs", "1", "--out", text(&run_folder)]].concat());
    let resume =
        |more: &[&str]| run(&[&["train", "--resume", text(&run_folder)][..], more].concat());
    assert_refused(&resume(&["--dim", "5"]), &["--dim 4, this one 5", "begin a run of its own"]);
    assert_refused(&resume(&["--seed", "2"]), &["--seed 1, this one 2"]);
    assert_refused(&resume(&["--cells", "500"]), &["the run there has data", "this one"]);
    assert_refused(&resume(&["--out", text(&empty)]), &["--out"]);
    let refused = |words: &[&str], told: &[&str]| assert_refused(&run(words), told);
    refused(&["train", "kge", "--resume", text(&run_folder)], &["settings of mf, not of kge"]);
    refused(
        &["train", "--resume", text(&empty)],
        &["empty", "there is no run in it to go on from"],
    );
    fs::remove_dir_all(run_folder.join("checkpoints")).expect("it is there");
    assert_refused(&resume(&[]), &["there is no checkpoint to go on from"]);
    fs::write(run_folder.join("checkpoints"), "").expect("can be written");
    assert_refused(&resume(&[]), &["checkpoints", "not a directory"]);
}

#[test]
fn checkpoints_are_checked_whole_and_shown() {
    let folder = folder("resume_check");
    let run_folder = folder.join("run");
    let job = ["train", "kge", "--dim", "8", "--epochs", "2", "--nodes", "2", "--workers", "1"];
    let ran = finish(start(&[&job[..], &["--out", text(&run_folder)]].concat()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = succeeded(&["check", text(&run_folder)]).stdout;
    for word in ["step-", "best-", "0.00 % of epoch 3", "1,1 of 2 nodes", "mrr", "entities.adagrad"]
    {
        holds(&shown, word);
    }
    let objects = succeeded(&["check", text(&run_folder), "--json"]).stdout;
    let objects =
        objects.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    let steps: Vec<Value> = objects.filter(|object| object["step"].is_u64()).collect();
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert_eq!(steps[1]["workers"], serde_json::json!([1, 1]));
    assert_eq!((&steps[1]["epoch"], &steps[1]["done"]), (&3.into(), &0.into()));

    let name = latest(&run_folder).expect("there is one");
    let step = run_folder.join("checkpoints").join(name.split(' ').next().unwrap_or_default());
    let rows = fs::read_dir(&step).expect("is there").map(|entry| entry.expect("is there").path());
    let rows =
        rows.into_iter().find(|path| path.extension().is_some_and(|end| end == "safetensors"));
    let rows = rows.expect("a file of rows");
    let mut bytes = fs::read(&rows).expect("is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&rows, &bytes).expect("can be written");
    let damaged = "rows-000-of-001.safetensors is damaged: tensor ";
    for words in [&["check", text(&step)][..], &["train", "--resume", text(&run_folder)]] {
        assert_refused(&run(words), &[damaged]);
    }
    // What comes before it in the folder is shown.
    let ran = run(&["check", text(&run_folder)]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    holds(&ran.stderr, damaged);
    // The one before is not.
    let checkpoints = fs::read_dir(run_folder.join("checkpoints")).expect("is there");
    let names = checkpoints.map(|entry| entry.expect("is there").path());
    let is_other = |path: &PathBuf| *path != step && text(path).contains("step-");
    let before = names.into_iter().find(is_other).expect("two are kept");
    holds(&succeeded(&["train", "--resume", text(&before)]).stdout, "goes on from step-");
    succeeded(&["check", text(&run_folder)]);
}
