//! The verb `compare`: cells, tables, files, what it goes on with, and what it refuses.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use adapm_verify::silence::patience;
use serde_json::Value;

use crate::harness::{adapm, assert_refused, finish, folder, ring, run, text};

/// Returns the words of a comparison on a ring in a folder that trains in an instant.
fn words<'a>(ring: &'a Path, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let few =
        ["compare", "kge", "--data", text(ring), "--dim", "4", "--epochs", "2", "--runs", "1"];
    [&few, ["--workers", "1", "--out", text(out)].as_slice(), more].concat()
}

fn read(out: &Path) -> Value {
    let text = fs::read_to_string(out.join("compare.json")).expect("is there");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn three_systems_are_compared_on_two_nodes_and_their_figures_add_up() {
    let data = folder("compare");
    ring(&data);
    let out = data.join("cmp");
    let systems = ["--systems", "adapm,full,classic", "--nodes", "2"];
    let ran = run(&words(&data, &out, &systems));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for word in
        ["1/4  adapm on 1 node, seed 1: done", "MRR", "effective", "target: MRR", "accesses"]
    {
        assert!(ran.stdout.contains(word), "no {word:?} in {}", ran.stdout);
    }
    let all = read(&out);
    let runs = all["runs"].as_array().expect("a list");
    assert_eq!((runs.len(), all["rows"].as_array().map(Vec::len)), (4, Some(4)));
    for run in runs {
        assert_eq!(
            (&run["ending"], run["epochs"].as_array().map(Vec::len)),
            (&"finished".into(), Some(2))
        );
        assert!(run["epochs"][0]["valid_mrr"].is_f64(), "evaluated after each epoch: {run}");
        assert_eq!(run["result"]["system"], run["system"]);
        assert_eq!(run["result"]["nodes"], run["nodes"]);
    }
    for row in all["rows"].as_array().expect("a list") {
        let share = |name: &str| row["figures"][name]["mean"].as_f64().unwrap_or(0.0);
        let accesses = share("local_share") + share("waited_share") + share("remote_share");
        assert!((accesses - 1.0).abs() < 1e-9, "{row}");
    }
    // The same accesses, counted by workers where they are local, by engines where they are not.
    let count = |run: &Value| {
        ["local", "waited", "remote"].map(|kind| run["result"][kind].as_u64().expect("a count"))
    };
    let counts: Vec<[u64; 3]> = runs.iter().filter(|run| run["nodes"] == 2).map(count).collect();
    let all: Vec<u64> = counts.iter().map(|kinds| kinds.iter().sum()).collect();
    assert!(all[0] > 0 && all.iter().all(|sum| *sum == all[0]), "{counts:?}");
    assert!(
        counts[1][2] == 0 && counts[2][2] > 0,
        "full has none remote, classic many: {counts:?}"
    );
    let csv = fs::read_to_string(out.join("compare.csv")).expect("is there");
    assert_eq!(csv.lines().count(), 5);
    for picture in ["quality-over-time", "quality-over-epochs", "speed-up", "shares"] {
        let svg = fs::read_to_string(out.join(format!("{picture}.svg"))).expect("is there");
        assert!(svg.contains("classic"), "{picture}");
    }

    // It goes on with what is missing, and with nothing of other settings.
    assert_refused(&run(&words(&data, &out, &systems)), &["--resume goes on"]);
    let more = ["--systems", "adapm,full,classic,lapse", "--nodes", "2", "--resume", "--json"];
    let ran = run(&words(&data, &out, &more));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let started = ran.stderr.matches(": done in").count();
    assert!(started == 1 && ran.stderr.contains("5/5  lapse on 2 nodes"), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 10, "five runs, five rows");
    assert!(ran.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let other = [&more[..], &["--dim", "8"]].concat();
    assert_refused(&run(&words(&data, &out, &other)), &["dim = 4", "dim = 8", "another folder"]);
}

#[test]
fn a_run_that_fails_is_named_and_the_others_go_on() {
    let data = folder("compare-fails");
    ring(&data);
    let out = data.join("cmp");
    // The data of the reference is refused already, and so is all.
    let ran = run(&["compare", "kge", "--data", text(&data.join("none")), "--out", text(&out)]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("error: adapm on 1 node, seed 1 ended with"), "{ran:?}");

    // Nothing is done in the folder, so other settings may take it.
    let ran = run(&words(&data, &out, &["--systems", "adapm,full", "--nodes", "1,500,2"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for word in ["2 of 6 runs failed", "adapm on 500 nodes, seed 1 ended with", "500 nodes for"] {
        assert!(ran.stderr.contains(word), "no {word:?} in {}", ran.stderr);
    }
    assert!(ran.stdout.contains("full on 2 nodes, seed 1: done"), "{}", ran.stdout);
    let endings = read(&out)["runs"].as_array().map(|runs| {
        runs.iter().map(|run| run["ending"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    });
    let endings = endings.expect("a list");
    assert_eq!(endings.iter().filter(|ending| *ending == "failed").count(), 2, "{endings:?}");
}

#[test]
fn a_budget_ends_a_run_and_whole_epochs_count() {
    let data = folder("compare-budget");
    ring(&data);
    let out = data.join("cmp");
    let more = ["--systems", "adapm", "--nodes", "1", "--budget", "2s", "--epochs", "1000000"];
    let ran = run(&words(&data, &out, &more));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("its time is over"), "{}", ran.stdout);
    assert!(ran.stdout.contains("when the budget was spent"), "{}", ran.stdout);
    assert_eq!(read(&out)["runs"][0]["ending"], "budget");
}

#[test]
fn ctrl_c_keeps_what_is_done_and_says_how_to_go_on() {
    let data = folder("compare-ctrl-c");
    ring(&data);
    let out = data.join("cmp");
    // Each of them ends soon, and all together do not.
    let more = ["--nodes", "1", "--epochs", "1000000", "--budget", "1s", "--runs", "50"];
    let mut child = adapm(&words(&data, &out, &more)).spawn().expect("the binary starts");
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let _ = stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line));
    });
    let next = || lines.recv_timeout(patience()).expect("a line");
    while !next().contains("2/200  full on 1 node, seed 1: stopped") {}
    kill(&child, "-INT");
    let ran = finish(child);
    assert_eq!((ran.code, ran.stderr.contains("error")), (Some(130), false), "{ran:?}");
    let last = lines.iter().last().expect("a last line");
    assert!(last.contains(" of 200 runs; the same command with --resume goes on"), "{last}");
    let kept = read(&out)["runs"].as_array().map_or(0, Vec::len);
    assert!(kept > 1 && last.contains(&format!("stopped after {kept} of")), "{last}");
}

/// Sends a signal to a process.
fn kill(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
}

/// Waits until a file that is written meanwhile holds these words.
fn wait_for(file: &Path, words: &str) {
    let end = Instant::now() + patience();
    while !fs::read_to_string(file).is_ok_and(|text| text.contains(words)) {
        assert!(Instant::now() < end, "no {words:?} in {}", file.display());
        thread::yield_now();
    }
}

#[test]
fn a_folder_is_of_one_comparison_and_no_run_outlives_it() {
    let data = folder("compare-lock");
    ring(&data);
    for (name, more, cell) in [
        ("threads", &["--nodes", "1"][..], "adapm-nodes-1-seed-1"),
        // The reference comes first, and has to end.
        ("processes", &["--nodes", "2", "--processes", "--budget", "4s"], "adapm-nodes-2-seed-1"),
    ] {
        let out = data.join(name);
        let more = [more, &["--systems", "adapm", "--epochs", "1000000"]].concat();
        let mut child = adapm(&words(&data, &out, &more)).spawn().expect("the binary starts");
        let log = out.join("cells").join(cell).join("log.jsonl");
        wait_for(&log, "\"epoch\":2,");
        if name == "threads" {
            let again = run(&words(&data, &out, &[&more[..], &["--resume"]].concat()));
            assert_refused(&again, &["another compare uses it", text(&out)]);
        }
        kill(&child, "-KILL");
        child.wait().expect("a child can be waited for");
        // The object of a run that was stopped in good order.
        wait_for(&log, "\"stopped\":true");
    }
}

#[test]
fn more_nodes_than_before_leave_the_number_of_workers() {
    let data = folder("compare-workers");
    ring(&data);
    let out = data.join("cmp");
    let few = ["compare", "kge", "--data", text(&data), "--dim", "4", "--epochs", "1"];
    let few = [&few[..], &["--runs", "1", "--systems", "adapm", "--out", text(&out)]].concat();
    let ran = run(&[&few[..], &["--nodes", "1"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = run(&[&few[..], &["--nodes", "1,8", "--resume"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let runs = &read(&out)["runs"];
    let workers = |run: usize| runs[run]["result"]["settings"]["workers"].clone();
    assert!(workers(0).is_u64() && workers(0) == workers(1), "{runs}");
}

#[test]
fn a_file_that_a_run_prints_is_taken() {
    let data = folder("compare-config");
    ring(&data);
    let (out, file) = (data.join("cmp"), data.join("run.toml"));
    let train = ["train", "kge", "--data", text(&data), "--dim", "4", "--epochs", "2"];
    let more = ["--system", "lapse", "--nodes", "2", "--localize-ahead", "5", "--seed", "7"];
    let ran = run(&[&train[..], &more, &["--print-config"]].concat());
    assert!(ran.stdout.contains("system = ") && ran.stdout.contains("nodes = 2"), "{ran:?}");
    fs::write(&file, &ran.stdout).expect("can be written");
    let words = ["compare", "kge", "--config", text(&file), "--runs", "1", "--workers", "1"];
    let more = ["--systems", "lapse", "--nodes", "3", "--out", text(&out)];
    let ran = run(&[&words[..], &more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let runs = &read(&out)["runs"];
    assert_eq!((&runs[1]["system"], &runs[1]["nodes"]), (&"lapse".into(), &3.into()));
    assert_eq!((&runs[1]["seed"], &runs[1]["knobs"]["localize_ahead"]), (&7.into(), &5.into()));
    // What it says of lapse is of no use to others.
    let words = ["compare", "kge", "--config", text(&file), "--runs", "1", "--systems", "full"];
    let other = data.join("other");
    let ran = run(&[&words[..], &["--out", text(&other)]].concat());
    assert_refused(&ran, &["--localize-ahead", "nothing that is compared takes it"]);
}

#[test]
fn a_partition_of_one_seed_is_for_one_run() {
    let data = folder("compare-seeds");
    let out = data.join("cmp");
    let partition = |task: &str, few: &[&str]| {
        let homes = data.join(task);
        let parts = ["partition", task, "--nodes", "2", "--out", text(&homes)];
        let ran = run(&[&parts[..], few].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        homes
    };
    let few = ["--sentences", "100", "--min-count", "1"];
    let homes = partition("wv", &few);
    let mut words = vec!["compare", "wv", "--homes", text(&homes), "--out", text(&out)];
    words.extend(few);
    for more in [&["--runs", "2"][..], &["--runs", "1", "--seed", "2"]] {
        let told = ["--homes", "it is of seed 1", "--seed 1 --runs 1", "het-gmp makes one"];
        assert_refused(&run(&[&words[..], more].concat()), &told);
    }
    assert!(!out.exists(), "what is refused leaves nothing");
    // Rows and columns are the same under any seed.
    let few = ["--rows", "40", "--columns", "30", "--cells", "300", "--test-cells", "30"];
    let homes = partition("mf", &few);
    let words = ["compare", "mf", "--homes", text(&homes), "--out", text(&out), "--nodes", "2"];
    let more = ["--systems", "het-gmp:3", "--runs", "2", "--epochs", "1", "--workers", "1"];
    let ran = run(&[&words[..], &more, &few].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn nodes_may_be_processes() {
    let data = folder("compare-processes");
    ring(&data);
    let out = data.join("cmp");
    let ran = run(&words(&data, &out, &["--systems", "classic", "--nodes", "2", "--processes"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let runs = &read(&out)["runs"];
    assert_eq!(
        (&runs[1]["result"]["nodes"], &runs[1]["result"]["transport"]),
        (&2.into(), &"tcp".into())
    );
}

#[test]
fn each_setting_is_given_to_the_systems_that_take_it() {
    let data = folder("compare-settings");
    ring(&data);
    let (out, homes) = (data.join("cmp"), data.join("ring.prt"));
    let parts = ["partition", "kge", "--data", text(&data), "--dim", "4", "--nodes", "2"];
    let ran = run(&[&parts[..], &["--out", text(&homes)]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let systems = "lapse,nups,het-gmp:100,ssp:3";
    let more = ["--systems", systems, "--nodes", "2", "--inter", "5", "--bound", "7"];
    let more = [&more[..], &["--replicate", "3", "--homes", text(&homes)]].concat();
    let ran = run(&words(&data, &out, &more));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = read(&out);
    let taken = |run: &Value| {
        let settings = &run["result"]["settings"];
        ["inter", "bound", "replicate", "homes"].map(|flag| !settings[flag].is_null())
    };
    let runs = all["runs"].as_array().expect("a list");
    let found = runs.iter().map(|run| (run["system"].as_str().unwrap_or(""), taken(run)));
    let expected = [
        ("adapm", [false; 4]),
        ("lapse", [false, true, false, true]),
        ("nups", [false, true, true, true]),
        ("het-gmp:100", [true, false, false, true]),
        ("ssp:3", [false, false, false, true]),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);

    let refused = |more: &[&str], expected: &[&str]| {
        assert_refused(&run(&words(&data, &data.join("other"), more)), expected)
    };
    refused(&["--inter", "5"], &["--inter", "nothing that is compared takes it"]);
    refused(&["--systems", "bsp", "--bound", "1"], &["--bound", "takes it"]);
    refused(&["--clock-every", "4"], &["--clock-every", "takes it"]);
    refused(&["--localize-ahead", "8", "--systems", "full"], &["--localize-ahead", "takes it"]);
    refused(&["--nodes", "1,4", "--homes", text(&homes)], &["--homes", "takes it"]);
    refused(&["--systems", "nups,full", "--replicate-factor", "-1"], &["--replicate-factor -1"]);
    refused(&["--homes", text(&data.join("none"))], &["--homes", "none"]);
    assert!(!data.join("other").exists(), "what is refused leaves nothing");
}

#[test]
fn nups_is_tuned_once_for_each_number_of_nodes_and_its_time_is_a_column() {
    let data = folder("compare-tuned");
    ring(&data);
    let out = data.join("cmp");
    let more = ["--systems", "nups,lapse", "--nodes", "2", "--runs", "2", "--tune"];
    let ran = run(&words(&data, &out, &more));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("--tune"), "it is one of the flags: {}", ran.stdout);
    assert!(ran.stdout.contains("nups on 2 nodes: tuned to --replicate-factor "), "{}", ran.stdout);
    let all = read(&out);
    let tuned: Vec<&Value> = all["runs"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|run| run["system"] == "nups" && run["nodes"] == 2)
        .map(|run| {
            let settings = &run["result"]["settings"];
            // A factor of 10 is 10.0 where it was tuned.
            let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{run}"));
            let given = ["replicate-factor", "localize-ahead"].map(|flag| number(&settings[flag]));
            let tuned = &run["tuned"];
            let found = ["replicate_factor", "localize_ahead"].map(|field| number(&tuned[field]));
            assert_eq!(given, found, "{run}");
            &run["tuned"]
        })
        .collect();
    assert!(tuned.len() == 2 && tuned[0] == tuned[1] && tuned[0].is_object(), "{tuned:?}");
    for row in all["rows"].as_array().expect("a list") {
        let is_tuned = row["figures"]["tuning_seconds"].is_object();
        assert_eq!(is_tuned, row["system"] == "nups", "{row}");
    }

    let refused = |more: &[&str], expected: &[&str]| {
        assert_refused(&run(&words(&data, &data.join("other"), more)), expected)
    };
    refused(&["--tune"], &["--tune: nups is not compared"]);
    // What cannot be tuned is a run that fails, and the others go on.
    let more = ["--systems", "nups,lapse", "--nodes", "500,2", "--tune"];
    let ran = run(&words(&data, &data.join("many"), &more));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for word in ["2 of 5 runs failed", "tune nups on 500 nodes", "500 nodes for"] {
        assert!(ran.stderr.contains(word), "no {word:?} in {}", ran.stderr);
    }
    refused(&["--systems", "nups", "--tune", "--replicate", "3"], &["--tune chooses what is hot"]);
    let ahead = ["--systems", "nups", "--tune", "--localize-ahead", "4"];
    refused(&ahead, &["--tune chooses how far ahead"]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let data = folder("compare-refused");
    ring(&data);
    let out = data.join("cmp");
    let refused = |more: &[&str], expected: &[&str]| {
        assert_refused(&run(&words(&data, &out, more)), expected)
    };
    refused(&["--systems", "adapm,claßic"], &["--systems claßic", "adapm", "classic"]);
    refused(&["--runs", "0"], &["--runs 0", "at least 1"]);
    refused(&["--nodes", "1,0"], &["--nodes 0", "at least 1"]);
    refused(&["--budget", "2d"], &["--budget 2d", "90s, 2m or 4h"]);
    refused(&["--target", "high"], &["--target high", "give a number"]);
    refused(&["--save", "model"], &["--save is of one run"]);
    refused(&["--system", "full"], &["--system", "--systems"]);
    refused(&["--dim", "0"], &["--dim 0"]);
    refused(&["--workers", "2,1"], &["--workers 2,1", "as many workers; give one number"]);
    assert!(!out.exists(), "what is refused leaves nothing");
    assert_refused(&run(&["compare", "kge"]), &["--out"]);
    fs::create_dir(&out).expect("can be made");
    fs::write(out.join("notes"), "mine").expect("can be written");
    refused(&[], &["something else in it than a comparison"]);
    refused(&["--resume"], &["something else in it than a comparison"]);
}
