//! Settings in a file: `--config` and `--print-config`.

use std::path::Path;

use crate::harness::{assert_refused, folder, ring, run, text, write};

/// Returns the last object that a run prints, without what differs from run to run.
fn object(args: &[&str]) -> serde_json::Value {
    let ran = run(&[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let last = ran.stdout.lines().last().expect("an object");
    let mut object: serde_json::Value = serde_json::from_str(last).expect("JSON");
    for key in [
        "date",
        "epoch_seconds",
        "blocked_seconds",
        "waits",
        "wait_mean",
        "wait_p99",
        "staleness_mean",
        "staleness_p99",
    ] {
        object.as_object_mut().expect("an object").remove(key);
    }
    object
}

/// Returns the settings that a command prints.
fn printed(args: &[&str]) -> String {
    let ran = run(&[args, &["--print-config"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran.stdout
}

/// One node with one worker, of which a run depends on its settings alone.
const SMALL: [&str; 10] =
    ["train", "kge", "--epochs", "2", "--dim", "4", "--workers", "1", "--negative-count", "4"];

#[test]
fn printed_settings_start_the_same_run_again() {
    let folder = folder("config_again");
    ring(&folder);
    let args = [SMALL.as_slice(), &["--data", text(&folder), "--l2-entity", "1e-7"]].concat();
    let settings = printed(&args);
    write(&folder, "run.toml", &settings);
    let file = folder.join("run.toml");
    let again = ["train", "kge", "--config", text(&file)];
    assert_eq!(printed(&again), settings, "a file leads to itself");
    assert_eq!(object(&again), object(&args));
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_recipe() {
    let folder = folder("config_order");
    write(&folder, "run.toml", "epochs = 3\nn3 = 0.25\nreciprocal = false\n");
    let file = folder.join("run.toml");
    let args = ["train", "kge", "--recipe", "UMLS", "--config", text(&file), "--epochs", "5"];
    let settings = printed(&args);
    for line in ["epochs = 5", "n3 = 0.25", "reciprocal = false", "data = \"umls\""] {
        let has = settings.lines().any(|other| other.eq_ignore_ascii_case(line));
        assert!(has, "no {line} in {settings}");
    }
    // A path that looks like a number is none.
    let settings = printed(&["train", "kge", "--data", "007"]);
    assert!(settings.contains("data = \"007\"\n"), "{settings}");
    // Other data takes the place of the file's, with all that chooses it.
    write(&folder, "mf.toml", "rows = 30\ncolumns = 20\n");
    let file = folder.join("mf.toml");
    let settings = printed(&["train", "mf", "--config", text(&file), "--data", "mine.tsv"]);
    assert!(settings.contains("data = \"mine.tsv\"") && !settings.contains("rows"), "{settings}");
    // The plan says what of the file does not count.
    write(&folder, "mine.tsv", &"1 1 3\n1 2 4\n2 1 5\n".repeat(5));
    let (data, file) = (folder.join("mine.tsv"), text(&file));
    let ran = run(&["train", "mf", "--config", file, "--data", text(&data), "--epochs", "1"]);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    let plan = words.join(" ");
    let left_out = format!("not rows and columns of {file}, as --data is given");
    assert!(ran.code == Some(0) && plan.contains(&left_out), "{ran:?}");
    assert!(!plan.contains("--config"), "{ran:?}");
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_line() {
    let folder = folder("config_wrong");
    let cases: [(&str, &str, &[&str]); 12] = [
        (
            "unknown",
            "epochs = 3\nnegative-counts = 7\n",
            &[":2: ", "negative-counts is no setting", "did you mean negative-count?"],
        ),
        ("underscore", "l2_entity = 1\n", &[":1: ", "did you mean l2-entity?"]),
        ("output", "epochs = 1\njson = true\n", &[":2: ", "--json on the command line"]),
        ("place", "node = 1\n", &[":1: ", "--node on the command line"]),
        ("task", "\ntask = \"mf\"\n", &[":2: ", "settings of mf, not of kge", "train mf"]),
        ("rows", "columns = 9\ntask = \"mf\"\n", &[":2: ", "settings of mf, not of kge"]),
        ("value", "epochs = 1\ndim = \"many\"\n", &[":2: --dim many: give a whole number"]),
        ("range", "dim = 4\nlearning-rate = -1.0\n", &[":2: learning-rate -1", "positive"]),
        ("switch", "no-eval = 1\n", &[":1: no-eval is yes or no"]),
        ("type", "dim = 2026-11-27\n", &[":1: dim is a date", "a number"]),
        ("syntax", "dim = 4\nepochs 3\n", &[":2: ", "lines such as `dim = 128`"]),
        ("twice", "dim = 4\ndim = 6\n", &[":2: ", "duplicate key"]),
    ];
    for (name, settings, words) in cases {
        write(&folder, name, settings);
        let file = folder.join(name);
        let place = format!("{}{}", text(&file), words[0]);
        let words = [&[place.as_str()], &words[1..]].concat();
        assert_refused(&run(&["train", "kge", "--config", text(&file)]), &words);
    }
    let missing = folder.join("missing");
    let config = |path: &Path| run(&["train", "kge", "--config", text(path)]);
    assert_refused(&config(&missing), &[text(&missing), "--config", "no such file"]);
    assert_refused(&config(&folder), &[text(&folder), "--config", "is a directory"]);
}
