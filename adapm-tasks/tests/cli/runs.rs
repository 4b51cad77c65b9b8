//! The output of runs: tables for people, JSON lines for programs, one rank a line.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::harness::{Ran, folder, ring, run, text};

/// Returns the arguments of a quick training of the data in `folder`, and more of them.
fn train<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let quick = [
        "train",
        "kge",
        "--data",
        text(folder),
        "--dim",
        "8",
        "--epochs",
        "3",
        "--negative-count",
        "8",
    ];
    [quick.as_slice(), more].concat()
}

#[track_caller]
fn succeeded(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("error"), "{ran:?}");
    ran
}

#[track_caller]
fn objects(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of stdout is an object"))
        .collect()
}

#[track_caller]
fn assert_numbers(object: &Value, fields: &[&str]) {
    for field in fields {
        assert!(object[field].is_number(), "{field} in {object}");
    }
}

/// Checks that an object names its program's version, its start time, and the value of each flag.
#[track_caller]
fn assert_repeats(object: &Value, settings: &[(&str, Value)]) {
    assert_eq!(object["version"], env!("CARGO_PKG_VERSION"), "{object}");
    let date = object["date"].as_str().expect("a text");
    assert!(date.len() == 20 && date.starts_with("20") && date.ends_with('Z'), "{date}");
    for (flag, value) in settings {
        assert_eq!(&object["settings"][flag], value, "{flag} of {object}");
    }
}

#[test]
fn json_holds_an_object_per_epoch_and_one_of_the_run() {
    let folder = folder("json");
    ring(&folder);
    let flags = ["--json", "--nodes", "2", "--workers", "1", "--seed", "7", "--valid-every", "2"];
    let ran = succeeded(run(&train(&folder, &flags)));
    let objects = objects(&ran);
    let [epochs @ .., last] = objects.as_slice() else { panic!("{ran:?}") };

    assert_eq!(epochs.iter().map(|epoch| &epoch["epoch"]).collect::<Vec<_>>(), [1, 2, 3]);
    for epoch in epochs {
        assert_numbers(
            epoch,
            &["seconds", "loss", "local_share", "bytes_sent", "relocations", "replicas"],
        );
        assert_eq!(epoch["triples"], 42);
    }
    assert!(epochs[0]["valid_mrr"].is_null() && epochs[1]["valid_mrr"].is_number(), "{ran:?}");
    assert_eq!((&last["task"], &last["system"]), (&Value::from("kge"), &Value::from("adapm")));
    assert_eq!([&last["nodes"], &last["workers"], &last["seed"]], [2, 1, 7]);
    let seconds = last["epoch_seconds"].as_array().expect("a list");
    assert!(seconds.len() == 3 && seconds.iter().all(Value::is_number), "{last}");
    assert_repeats(
        last,
        &[("seed", 7.into()), ("dim", 8.into()), ("nodes", 2.into()), ("loss", "softmax".into())],
    );
    assert_numbers(last, &["loss", "mrr", "hits_at_1", "hits_at_3", "hits_at_10", "local_share"]);
    assert_numbers(
        last,
        &["bytes_sent", "relocations", "replicas", "staleness_mean", "staleness_p99", "hops_mean"],
    );
    assert!(last["bytes_sent"].as_u64() > Some(0), "{last}");
    assert_eq!((&last["generated"], &last["stopped"]), (&Value::from(false), &Value::from(false)));
    assert!(ran.stderr.contains("epoch   3"), "{ran:?}");
}

/// Nodes of two workers and of one, in one process and as processes; at ten rounds a second.
#[test]
fn nodes_may_have_numbers_of_workers_of_their_own() {
    let folder = folder("unequal");
    ring(&folder);
    let flags = ["--json", "--workers", "2,1", "--rounds-per-second", "10", "--seed", "7"];
    let in_one = succeeded(run(&train(&folder, &[&["--nodes", "2"], flags.as_slice()].concat())));
    let apart = ["launch", "--nodes", "2", "--"];
    let apart = succeeded(run(&[apart.as_slice(), &train(&folder, &flags)].concat()));
    for ran in [in_one, apart] {
        let objects = objects(&ran);
        let [epochs @ .., last] = objects.as_slice() else { panic!("{ran:?}") };
        assert_eq!(last["workers"], serde_json::json!([2, 1]), "{last}");
        assert_eq!(last["settings"]["workers"], "2,1", "{last}");
        assert_eq!(last["settings"]["rounds-per-second"], 10, "{last}");
        assert!(epochs.len() == 3 && epochs.iter().all(|epoch| epoch["triples"] == 42), "{ran:?}");
        assert_numbers(last, &["mrr"]);
        for words in ["with 2,1 workers", "at most 10 a second"] {
            assert!(ran.stderr.contains(words), "{words} in {ran:?}");
        }
    }
    let refused = run(&train(&folder, &["--nodes", "3", "--workers", "2,1"]));
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let error = "--workers 2,1: 3 numbers are needed, one for each node of the run, or one for all";
    assert!(refused.stderr.contains(error), "{refused:?}");
}

/// The settings are the whole truth: given back as flags, they give the same model.
#[test]
fn the_settings_of_an_object_repeat_the_run() {
    let folder = folder("repeat");
    ring(&folder);
    let (first, second) = (folder.join("first"), folder.join("second"));
    let flags = ["--json", "--workers", "1", "--seed", "9", "--reciprocal", "--save", text(&first)];
    let ran = succeeded(run(&train(&folder, &flags)));
    let last = objects(&ran).pop().expect("an object of the run");
    let mut words = vec!["train".to_owned(), "kge".to_owned()];
    for (flag, value) in last["settings"].as_object().expect("settings by flag") {
        match value {
            Value::Bool(false) => {}
            Value::Bool(true) => words.push(format!("--{flag}")),
            Value::String(value) => words.push(format!("--{flag}={value}")),
            value => words.push(format!("--{flag}={value}")),
        }
    }
    words.extend(["--save".to_owned(), text(&second).to_owned()]);
    succeeded(run(&words.iter().map(String::as_str).collect::<Vec<_>>()));
    let read = |path| std::fs::read(path).expect("it was saved");
    assert!(read(first) == read(second), "another model by {words:?}");
}

#[test]
fn without_evaluation_there_are_no_figures() {
    let folder = folder("no_eval");
    ring(&folder);
    let ran = succeeded(run(&train(&folder, &["--json", "--no-eval"])));
    let objects = objects(&ran);
    let last = objects.last().expect("an object of the run");
    assert!(last["mrr"].is_null() && last["valid_mrr"].is_null(), "{last}");
    assert_eq!(last["chosen_epoch"], 3);
}

#[test]
fn tables_say_what_is_done_who_chose_it_and_what_came_out() {
    let folder = folder("tables");
    ring(&folder);
    let begun = Instant::now();
    let ran = succeeded(run(&train(&folder, &["--nodes", "2", "--system", "classic"])));
    for words in [
        "42 train, 3 valid, 3 test triples; 24 entities, 2 relations",
        "complex, 8 reals an entity",
        "2 nodes x ",
        "--nodes",
        "classic",
        "--system",
        "MRR",
        "valid",
        "test",
        "selected",
        "3 epochs",
        "local (",
        "messages",
        "relocations",
    ] {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "colours in {ran:?}");
    // On a machine that stands still there are signs of life between them, each after a silence.
    let epochs = ran.stdout.lines().filter(|line| line.starts_with("epoch   "));
    assert_eq!(epochs.count(), 3, "a line an epoch in {ran:?}");
    let signs = ran.stderr.lines().count();
    assert!(signs as u64 <= begun.elapsed().as_secs() / 15, "nothing else in {ran:?}");
}

#[test]
fn saved_parameters_give_the_ranks_of_training_on_any_number_of_nodes() {
    let folder = folder("saved");
    ring(&folder);
    let model = folder.join("model.adapm");
    let ran = succeeded(run(&train(&folder, &["--json", "--save", text(&model)])));
    let trained = objects(&ran).pop().expect("an object of the run");
    assert_eq!(trained["saved"], text(&model));

    let evaluate = |nodes: &str| {
        let ranks = folder.join(format!("ranks{nodes}"));
        let args =
            ["eval", "kge", "--load", text(&model), "--data", text(&folder), "--nodes", nodes];
        let ran = succeeded(run(&[args.as_slice(), &["--json", "--ranks", text(&ranks)]].concat()));
        let object = objects(&ran).pop().expect("an object");
        (object["mrr"].clone(), fs::read_to_string(ranks).expect("ranks were written"))
    };
    let (mrr, ranks) = evaluate("1");
    assert_eq!(mrr, trained["mrr"]);
    let numbers: Vec<u32> =
        ranks.lines().map(|line| line.parse().expect("a rank a line")).collect();
    assert!(
        numbers.len() == 6 && numbers.iter().all(|rank| (1..=24).contains(rank)),
        "{numbers:?}"
    );
    assert_eq!(evaluate("2"), (mrr, ranks));
}

#[test]
fn the_demo_compares_three_systems_in_three_tasks() {
    let ran = succeeded(run(&["demo", "--epochs", "1", "--dim", "4", "--nodes", "2"]));
    for words in [
        "generated",
        "adapm",
        "classic",
        "full",
        "training time",
        "local accesses",
        "best possible",
    ] {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }
    for words in
        ["test MRR", "test RMSE", "accuracy", "bytes sent", "relocations", "replicas", "staleness"]
    {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }
    assert!(
        ran.stdout.contains("was fastest") && ran.stdout.contains("adapm train kge --help"),
        "{ran:?}"
    );
}

#[test]
fn the_demo_keeps_its_runs_and_replaces_none() {
    let out = folder("demo_out").join("demo");
    let words = ["demo", "--epochs", "1", "--dim", "4", "--nodes", "1", "--out", text(&out)];
    let ran = succeeded(run(&words));
    assert!(ran.stdout.contains("runs, tables and pictures are in"), "{ran:?}");
    for job in ["kge", "mf", "wv"] {
        assert!(out.join(job).join("compare.json").is_file(), "{job}");
    }
    let again = run(&words);
    assert!(again.code == Some(2) && again.stderr.contains("give another folder"), "{again:?}");
}

#[test]
fn help_and_version_go_to_stdout() {
    let help = succeeded(run(&["help"]));
    assert!(help.stdout.contains("demo") && help.stdout.contains("Examples:"), "{help:?}");
    let train = succeeded(run(&["train", "kge", "--help"]));
    for flag in
        ["--data", "--nodes", "--system", "--localize-ahead", "--save", "--json", "[default: 128]"]
    {
        assert!(train.stdout.contains(flag), "no {flag} in {train:?}");
    }
    assert!(succeeded(run(&["--version"])).stdout.starts_with("adapm "));
}
