//! `partition`, `train --homes`, and the system that needs one.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Ran, assert_refused, folder, ring, run, text, write};

/// Data that trains in an instant, for each task.
const FEW: [(&str, &[&str]); 5] = [
    ("kge", &["--no-eval"]),
    ("mf", &["--rows", "30", "--columns", "20", "--cells", "150", "--test-cells", "20"]),
    ("wv", &["--sentences", "100", "--min-count", "1", "--no-eval"]),
    ("ctr", &["--examples", "200", "--test-examples", "50", "--features", "1000"]),
    ("gnn", &["--features", "learned", "--graph-nodes", "200"]),
];

/// Partitions the data of a task for two nodes, and returns the object of `--json`.
fn partition(task: &str, flags: &[&str], out: &Path) -> Value {
    let words = ["partition", task, "--dim", "4", "--nodes", "2", "--json", "--out", text(out)];
    let ran = run(&[&words[..], flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).expect("an object")
}

fn train(task: &str, more: &[&str]) -> Ran {
    let words = ["train", task, "--dim", "4", "--epochs", "2", "--workers", "1", "--json"];
    run(&[&words[..], more].concat())
}

#[test]
fn every_task_is_partitioned_and_trains_on_its_parts() {
    let folder = folder("partitions");
    ring(&folder);
    for (task, flags) in FEW {
        let data: &[&str] = if task == "kge" { &["--data", text(&folder)] } else { &[] };
        let flags = &[flags, data].concat()[..];
        let file = folder.join(task);
        let found = partition(task, flags, &file);
        let sum = |name: &str| {
            let parts = found["parts"].as_array().expect("a list");
            parts.iter().map(|part| part[name].as_u64().expect("a number")).sum::<u64>()
        };
        for name in ["keys", "samples", "accesses"] {
            assert_eq!(Some(sum(name)), found[name].as_u64(), "{task}: {name} of {found}");
        }
        let share = |name: &str| found[name].as_f64().expect("a share");
        let [without, with, by_hash] =
            ["remote_share", "remote_share_with_replicas", "remote_share_by_hash"].map(share);
        assert!(with <= without && without < by_hash, "{task}: {found}");
        let again = folder.join("again");
        partition(task, flags, &again);
        let [first, second] = [&file, &again].map(|path| fs::read(path).expect("it was written"));
        assert_eq!(first, second, "{task}");

        let remote = |more: &[&str]| {
            let words = ["--nodes", "2", "--system", "classic"];
            let ran = train(task, &[&words[..], flags, more].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let last: Value = ran
                .stdout
                .lines()
                .last()
                .map(serde_json::from_str)
                .expect("one")
                .expect("an object");
            let of = |name: &str| last[name].as_f64().expect("a count");
            of("remote") / (of("remote") + of("local") + of("waited"))
        };
        let (hashed, listed) = (remote(&[]), remote(&["--homes", text(&file)]));
        if task != "wv" {
            assert!(listed < hashed, "{task}: {listed} instead of {hashed}");
        }
    }
}

/// HET-GMP makes the partition that it is not given: the one that `partition` writes.
#[test]
fn het_gmp_replicates_what_the_partition_says() {
    let folder = folder("partitions-het-gmp");
    let file = folder.join("clicks.prt");
    let flags = ["--examples", "2000", "--test-examples", "50", "--features", "1000"];
    partition("ctr", &flags, &file);
    let ran = |more: &[&str]| {
        let words = ["--nodes", "2", "--system"];
        let ran = train("ctr", &[&words[..], more, &flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let last = ran.stdout.lines().last().map(serde_json::from_str::<Value>);
        (last.expect("a line").expect("an object"), ran.stderr)
    };
    let remote = |told: &Value| told["remote"].as_f64().expect("a count");
    let (made, told) = ran(&["het-gmp:0"]);
    assert!(told.contains("partitioned in "), "{told}");
    let (given, told) = ran(&["het-gmp:0", "--homes", text(&file)]);
    assert!(!told.contains("partitioned in "), "{told}");
    assert_eq!(remote(&made), remote(&given));
    assert!(made["partition_seconds"].is_f64(), "{made}");
    assert!(given["partition_seconds"].is_null(), "it was made before: {given}");
    let (none, _) = ran(&["classic", "--homes", text(&file)]);
    assert!(remote(&made) < remote(&none), "{made} {none}");
    let unequal = train(
        "ctr",
        &[&["--nodes", "2", "--workers", "2,1", "--system", "het-gmp:9"], &flags[..]].concat(),
    );
    assert_refused(&unequal, &["--workers", "give one number for all"]);
    let flag = train(
        "ctr",
        &[&["--nodes", "2", "--system", "het-gmp:9", "--replicate", "3"], &flags[..]].concat(),
    );
    assert_refused(&flag, &["only nups and parallax have hot keys"]);
    let other = train("ctr", &["--nodes", "2", "--system", "full", "--inter", "5"]);
    assert_refused(&other, &["--inter", "only het-gmp has such a bound"]);
    let renewed = |inter| ran(&["het-gmp:1000", "--inter", inter]).0["renews"].as_u64();
    assert!(renewed("0") > Some(0), "replicas lag, and are not refreshed");
    assert_eq!(renewed("1000000"), Some(0));
    let number = train("ctr", &["--nodes", "2", "--system", "het-gmp"]);
    assert_refused(&number, &["het-gmp needs its staleness: het-gmp:100"]);
}

#[test]
fn a_partition_of_something_else_is_refused_in_one_line() {
    let folder = folder("partitions-refused");
    ring(&folder);
    let data = ["--data", text(&folder)];
    let file = folder.join("ring.prt");
    partition("kge", &[&data[..], &["--no-eval"]].concat(), &file);
    let bytes = fs::read(&file).expect("it was written");
    let with = |task: &str, path: &Path, more: &[&str]| {
        let words = ["--no-eval", "--homes", text(path)];
        train(task, &[&words[..], more].concat())
    };
    let two = [&data[..], &["--nodes", "2"]].concat();
    assert_eq!(with("kge", &file, &two).code, Some(0));
    let again = "make it again with adapm partition";
    let three = [&data[..], &["--nodes", "3"]].concat();
    assert_refused(&with("kge", &file, &three), &["for 2 nodes, the run has 3", again]);
    assert_refused(&with("kge", &file, &["--nodes", "2"]), &["keys, the run has", again]);
    let unequal = [&two[..], &["--workers", "2,1"]].concat();
    assert_refused(&with("kge", &file, &unequal), &["--workers", "give one number for all"]);
    assert_refused(&with("mf", &file, &["--nodes", "2"]), &["is a partition of task kge"]);
    // One fact less, of the same entities and relations.
    let train_file = folder.join("train.txt");
    let facts = fs::read_to_string(&train_file).expect("it is there");
    let fewer: String = facts.lines().skip(1).map(|line| format!("{line}\n")).collect();
    write(&folder, "train.txt", &fewer);
    assert_refused(&with("kge", &file, &two), &["of other samples", again]);
    write(&folder, "train.txt", &facts);
    for (name, bytes, words) in [
        ("cut", bytes[..bytes.len() - 9].to_vec(), ["ends early", again]),
        ("foreign", b"PK".to_vec(), ["is no partition of adapm", "give a file"]),
        ("damaged", [&bytes[..60], &[!bytes[60]], &bytes[61..]].concat(), ["is damaged", again]),
        ("newer", [&bytes[..8], &[9], &bytes[9..]].concat(), ["has format version 9", again]),
    ] {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("a file");
        assert_refused(&with("kge", &path, &two), &words);
    }
    assert_refused(&with("kge", &folder.join("none"), &two), &["no such file"]);
}

#[test]
fn what_cannot_be_partitioned_is_refused_in_one_line() {
    let folder = folder("partitions-none");
    let out = folder.join("out");
    let words = ["partition", "mf", "--cells", "100", "--rows", "30", "--columns", "20", "--out"];
    let refused = |more: &[&str]| run(&[&words[..], &[text(&out)], more].concat());
    assert_refused(&refused(&[]), &["give --nodes N"]);
    assert_refused(&refused(&["--nodes", "257"]), &["--nodes 257", "256 parts at most"]);
    assert_refused(&refused(&["--nodes", "51"]), &["51 nodes", "50 keys"]);
    let rate = ["--nodes", "2", "--store-rate", "1.5"];
    assert_refused(&refused(&rate), &["store rate of 1.5", "use 0 to 1"]);
    let bandwidths = |content: &str| {
        write(&folder, "bandwidths", content);
        refused(&["--nodes", "2", "--bandwidth", text(&folder.join("bandwidths"))])
    };
    assert_eq!(bandwidths("0 10\n10, 0\n").code, Some(0));
    assert_refused(&bandwidths("1 1 1\n1 1 1\n"), &["line 1 has 3 numbers; give 2"]);
    assert_refused(&bandwidths("1 1\n"), &["it has 1 lines; give one for each of 2 nodes"]);
    assert_refused(&bandwidths("1 1\nfast 1\n"), &["line 2 is no list of numbers"]);
    assert_refused(&bandwidths("1 -1\n1 1\n"), &["is not above 0"]);
    fs::remove_file(&out).expect("that of the sound bandwidths");
    let words = ["partition", "gnn", "--graph-nodes", "200", "--nodes", "2", "--out", text(&out)];
    assert_refused(&run(&words), &["no samples that access keys of their own"]);
    assert!(!out.exists());
}
