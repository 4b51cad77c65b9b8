//! The verb `simulate`: figures, pictures, and what it refuses.

use std::fs;

use serde_json::Value;

use crate::harness::{adapm, assert_refused, finish, folder, run, text};

#[test]
fn a_simulation_prints_a_row_per_run_and_what_the_paper_states() {
    let ran = run(&[
        "simulate",
        "--task",
        "kge",
        "--system",
        "adapm,classic",
        "--nodes",
        "8",
        "--workers",
        "1",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "knowledge graph embeddings (kge)",
        "speed-up",
        "classic",
        "beside the paper",
        "Table 2: adapm",
        "agree",
    ] {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }
}

#[test]
fn programs_get_objects_and_the_same_ones_again() {
    let args = [
        "simulate",
        "--task",
        "mf",
        "--nodes",
        "2",
        "--system",
        "adapm",
        "--workers",
        "2",
        "--json",
    ];
    let (first, second) = (run(&args), run(&args));
    assert_eq!((first.code, &first.stdout), (Some(0), &second.stdout), "{first:?}");
    let rows: Vec<Value> =
        first.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[0]["nodes"], &rows[1]["nodes"], &rows[1]["task"]),
        (&1.into(), &2.into(), &"mf".into())
    );
    assert!(
        rows[1]["speed_up"].as_f64().is_some_and(|times| times > 1.0 && times <= 2.1),
        "{}",
        rows[1]
    );
}

#[test]
fn a_picture_per_workload_is_written() {
    let folder = folder("simulated").join("plots");
    let args = [
        "simulate",
        "--task",
        "kge,mf",
        "--nodes",
        "2,4",
        "--system",
        "adapm",
        "--workers",
        "1",
        "--svg",
        text(&folder),
    ];
    assert_eq!(run(&args).code, Some(0));
    for name in ["kge.svg", "mf.svg"] {
        let svg = fs::read_to_string(folder.join(name)).expect("the picture is there");
        assert!(
            svg.starts_with("<svg") && svg.contains("raw speed-up") && svg.contains("adapm"),
            "{svg}"
        );
    }
}

#[test]
fn what_cannot_be_simulated_is_refused_in_one_line() {
    for (flag, value) in [
        ("--task", "mnist"),
        ("--system", "full"),
        ("--system", "none"),
        ("--system", "adapm,ssp"),
        ("--system", "adapm,ssp:x"),
        ("--nodes", "0"),
        ("--nodes", "2,many"),
        ("--nodes", "5000"),
        ("--workers", "0"),
        ("--machine", "laptop"),
        ("--bandwidth", "0"),
        ("--latency", "slow"),
        ("--latency", "1000001"),
        ("--channels", "none"),
        ("--seed", "x"),
        ("--compute", "0"),
        ("--compute", "1e-300"),
        ("--compute", "nan"),
        ("--round", "0"),
        ("--nodes", "18446744073709551617"),
    ] {
        assert_refused(
            &run(&["simulate", flag, value]),
            &[flag, value.rsplit(',').next().unwrap_or(value)],
        );
    }
    let folder = folder("simulated_nowhere");
    let file = folder.join("file");
    fs::write(&file, "").expect("a file can be written");
    let inside = file.join("plots");
    assert_refused(&run(&["simulate", "--svg", text(&inside)]), &["--svg", text(&inside)]);
}

#[test]
fn a_simulation_ends_when_nobody_reads_its_tables() {
    let args = ["simulate", "--task", "kge", "--system", "adapm", "--nodes", "2", "--workers", "1"];
    let mut child = adapm(&args).spawn().expect("the binary starts");
    drop(child.stdout.take());
    let ran = finish(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "as other tools");
}

#[test]
fn workers_that_compute_longer_take_longer() {
    let seconds = |compute: &str| {
        let args = [
            "simulate",
            "--task",
            "kge",
            "--system",
            "adapm",
            "--nodes",
            "2",
            "--workers",
            "2",
            "--json",
        ];
        let ran = run(&[&args[..], &["--compute", compute, "--round", "1000"]].concat());
        let row: Value =
            serde_json::from_str(ran.stdout.lines().nth(1).expect("a row")).expect("JSON");
        let check = row["check_age_mean"].as_f64().expect("a time");
        assert!(check > 0.000_9, "rounds are a millisecond apart: {row}");
        row["epoch_seconds"].as_f64().expect("a time")
    };
    let (once, twice) = (seconds("1"), seconds("2"));
    assert!((twice / once - 2.0).abs() < 0.2, "{once} {twice}");
}
