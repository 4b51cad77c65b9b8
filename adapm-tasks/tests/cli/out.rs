//! The folder of a run, and runs that end for want of progress.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{folder, run, text};

/// Words of a small training run, with `more`.
fn train<'a>(task: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let few: &[&str] = match task {
        "mf" => &["--rows", "60", "--columns", "40", "--cells", "600", "--test-cells", "60"],
        "wv" => &["--sentences", "300", "--min-count", "1"],
        "ctr" => {
            &["--examples", "300", "--test-examples", "60", "--features", "1000", "--hidden", "8"]
        }
        "gnn" => &["--graph-nodes", "300", "--hidden", "4"],
        _ => &["--negative-count", "20"],
    };
    let words = ["train", task, "--dim", "4", "--workers", "1", "--epochs", "3"];
    [&words, few, more].concat()
}

#[test]
fn a_folder_starts_its_run_again_with_the_same_bytes_whatever_is_printed() {
    let all = folder("out");
    let [one, two, three] = ["one", "two", "three"].map(|name| all.join(name));
    for task in ["kge", "mf", "wv", "ctr", "gnn"] {
        let ran = run(&train(task, &["--out", text(&one), "--seed", "7"]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for file in ["config.toml", "log.jsonl", "metrics.csv", "best.adapm", "last.adapm"] {
            assert!(one.join(file).is_file(), "{task}: {file}");
        }
        let settings = one.join("config.toml");
        let saved = all.join("saved");
        let again = ["train", task, "--config", text(&settings), "--json", "--save", text(&saved)];
        assert_eq!(run(&[&again, ["--out", text(&two)].as_slice()].concat()).code, Some(0));
        let third = ["train", task, "--config", text(&settings), "--out", text(&three)];
        assert_eq!(run(&third).code, Some(0));
        let read =
            |folder: &std::path::Path, file: &str| fs::read(folder.join(file)).expect("is there");
        for file in ["best.adapm", "last.adapm"] {
            assert!(read(&one, file) == read(&two, file), "{task}: {file}");
            assert!(read(&one, file) == read(&three, file), "{task}: {file}");
        }
        assert!(read(&all, "saved") == read(&one, "best.adapm"), "{task}");
        let settings_of = |folder| String::from_utf8(read(folder, "config.toml")).expect("text");
        assert_eq!(settings_of(&one), settings_of(&two));
        let log = fs::read_to_string(two.join("log.jsonl")).expect("is there");
        let epochs: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let metrics = fs::read_to_string(two.join("metrics.csv")).expect("is there");
        let metrics: Vec<&str> = metrics.lines().collect();
        assert_eq!(metrics.len(), 1 + epochs.len(), "{task}");
        let column = metrics[0].split(',').position(|name| name == "loss").expect("a column");
        for (line, epoch) in metrics[1..].iter().zip(&epochs) {
            let loss: f64 = line.split(',').nth(column).expect("a cell").parse().expect("a number");
            assert_eq!(Some(loss), epoch["loss"].as_f64(), "{task}");
        }
        [&one, &two, &three]
            .into_iter()
            .for_each(|folder| fs::remove_dir_all(folder).expect("can be removed"));
    }
}

#[test]
fn a_folder_of_another_run_or_of_something_else_is_refused_and_stays_as_it_is() {
    let all = folder("out-taken");
    let (taken, other) = (all.join("taken"), all.join("other"));
    assert_eq!(run(&train("mf", &["--out", text(&taken)])).code, Some(0));
    let before = fs::read(taken.join("best.adapm")).expect("is there");
    let refused = |more: &[&str], expected: &str| {
        let ran = run(&train("kge", more));
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{ran:?}");
    };
    refused(&["--out", text(&taken)], "it is of another run; give another folder, or --overwrite");
    assert!(before == fs::read(taken.join("best.adapm")).expect("is there"));
    fs::create_dir(&other).expect("can be made");
    fs::write(other.join("notes"), "mine").expect("can be written");
    refused(&["--out", text(&other), "--overwrite"], "something else in it than a run");
    refused(&["--out", text(&other.join("notes"))], "a file is in its place");
    refused(&["--overwrite"], "--out");
    let ran = run(&train("kge", &["--out", text(&taken), "--overwrite"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let settings = fs::read_to_string(taken.join("config.toml")).expect("is there");
    assert!(settings.contains("task = \"kge\""), "{settings}");
    assert!(before != fs::read(taken.join("best.adapm")).expect("is there"));
}

#[test]
fn a_run_that_is_refused_leaves_the_folder_as_it_was() {
    let all = folder("out-refused");
    let (fresh, taken) = (all.join("fresh"), all.join("taken"));
    // More nodes than keys, which is found when the data is read.
    let refused = |folder: &Path, more: &[&str]| {
        let words = train("mf", &["--nodes", "500", "--out", text(folder)]);
        let ran = run(&[words.as_slice(), more].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains("500 nodes for"), "{ran:?}");
    };
    refused(&fresh, &[]);
    assert_eq!(run(&train("mf", &["--out", text(&fresh)])).code, Some(0));
    assert_eq!(run(&train("mf", &["--out", text(&taken)])).code, Some(0));
    let files = ["config.toml", "log.jsonl", "metrics.csv", "best.adapm", "last.adapm"];
    let read = || files.map(|file| fs::read(taken.join(file)).expect("is there"));
    let before = read();
    refused(&taken, &["--overwrite"]);
    let best = taken.join("best.adapm");
    let same = train("mf", &["--out", text(&taken), "--overwrite", "--save", text(&best)]);
    assert_eq!(run(&same).code, Some(2));
    assert!(read() == before, "something was changed");
}

#[test]
fn the_first_of_several_processes_writes_the_folder() {
    let all = folder("out-launched");
    let out = all.join("run");
    let words = train("kge", &["--no-eval", "--out", text(&out)]);
    let ran = run(&[["launch", "--nodes", "2", "--"].as_slice(), &words].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let log = fs::read_to_string(out.join("log.jsonl")).expect("is there");
    assert_eq!(log.lines().count(), 3);
    let model = out.join("best.adapm");
    assert_eq!(run(&["eval", "kge", "--load", text(&model)]).code, Some(0));
}

#[test]
fn a_run_without_progress_ends_after_its_patience() {
    for task in ["kge", "mf", "wv", "ctr", "gnn"] {
        // Steps so long, or so short, that nothing is learnt.
        let rate: &[&str] = match task {
            "wv" => &["--learning-rate", "1e-30"],
            "ctr" => &["--learning-rate", "1e-30", "--hidden", "0"],
            "gnn" => &["--learning-rate", "1e-30"],
            _ => &["--learning-rate", "8", "--valid-every", "1"],
        };
        let words = train(task, &["--epochs", "60", "--patience", "2", "--json"]);
        let ran = run(&[words.as_slice(), rate].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let last: Value =
            serde_json::from_str(ran.stdout.lines().last().expect("an object")).expect("JSON");
        let done = last["epoch_seconds"].as_array().expect("a list").len() as u64;
        assert!(done < 60 && last["epochs"].as_u64() == Some(done), "{task}: {last}");
        if !["wv", "ctr", "gnn"].contains(&task) {
            assert_eq!(last["chosen_epoch"].as_u64(), Some(done - 2), "{task}: {last}");
        }
    }
}
