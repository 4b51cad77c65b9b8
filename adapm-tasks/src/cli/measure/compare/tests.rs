//! Tables, CSV and pictures of recorded runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, process};

use serde_json::{Value, json};

use super::cell::{Cell, Ending, Record};
use super::figures::{self, ACCESSES, BYTES, COLUMNS, Merit, Reference, Run};
use super::live::Live;
use super::process::Common;
use super::settings::{Kind, Knobs, Settings};
use super::{picture, run_all, table, tuning, workers_of};
use crate::System;
use crate::cli::args::Given;
use crate::cli::epoch::Labels;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::painter::Painter;
use crate::cli::verbs::{Cli, CompareTask, Verb};

fn merit(task: &str, quality: &'static str) -> Merit {
    let labels = Labels { examples: "triples", quality, ..Labels::default() };
    Merit::of(task, labels)
}

/// Runs of `adapm compare kge`, shortened to the fields that are used; their waits are made up.
fn recorded() -> Vec<Record> {
    serde_json::from_str(include_str!("recorded.json")).expect("records")
}

fn record(system: &str, nodes: usize, epochs: &[(f64, u64, f64)]) -> Record {
    let epochs = epochs.iter().zip(1..).map(|((seconds, triples, mrr), epoch)| {
        json!({"epoch": epoch, "seconds": seconds, "triples": triples, "valid_mrr": mrr, "valid_rmse": mrr})
    });
    Record {
        cell: Cell { system: system.parse().expect("a system"), nodes, seed: 1 },
        ending: Ending::Finished,
        reason: None,
        seconds: 9.0,
        knobs: Knobs::default(),
        tuned: None,
        peak_bytes: None,
        channel_share: None,
        epochs: epochs.collect(),
        result: Some(json!({"means_rmse": 1.0, "workers": 1})),
    }
}

/// Compares with the file `table.txt`, which `ADAPM_BLESS=1` writes anew.
#[test]
fn the_tables_of_recorded_runs_are_these() {
    let (records, merit) = (recorded(), merit("kge", "MRR"));
    let reference = Reference::of(&records, &merit, None);
    let rows = figures::rows(&records, &merit, &reference);
    let text = table::tables(&rows, &merit, &reference, (Output::new(false), 80));
    let text = console::strip_ansi_codes(&text).into_owned() + "\n" + &table::csv(&rows);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/measure/compare/table.txt");
    if std::env::var_os("ADAPM_BLESS").is_some() {
        fs::write(path, &text).expect("can be written");
    }
    let expected = fs::read_to_string(path).expect("it is part of the sources");
    assert!(text == expected, "another table; ADAPM_BLESS=1 takes it:\n{text}");
}

/// An epoch without waits makes none of the others shorter.
#[test]
fn waits_are_those_of_the_run() {
    let mut record = record("classic", 2, &[(1.0, 10, 0.1), (1.0, 10, 0.2), (1.0, 10, 0.2)]);
    for (epoch, waits) in record.epochs.iter_mut().zip([10.0, 0.0, 30.0]) {
        epoch["waits"] = json!(waits);
        epoch["blocked_seconds"] = json!(waits * 0.002);
        epoch["wait_p99"] = json!(waits * 0.001);
    }
    let (merit, reference) = (merit("kge", "MRR"), Reference::default());
    let run = Run { record: &record, merit: &merit, reference: &reference };
    let figure = |field| {
        let column = COLUMNS.iter().find(|column| column.field == field).expect("a column");
        (column.of)(&run).map(|seconds| (seconds * 1e6).round())
    };
    assert_eq!([figure("wait_mean"), figure("wait_p99")], [Some(2_000.0), Some(30_000.0)]);
}

/// An epoch without refreshes makes no copy fresher, and a short one counts little.
#[test]
fn ages_are_weighed_by_refreshes_and_replicas_by_time() {
    let mut record = record("adapm", 2, &[(1.0, 10, 0.1), (3.0, 10, 0.2), (0.0, 10, 0.2)]);
    let figures = [(10, 0.004, 0.008, 100.0), (30, 0.002, 0.016, 200.0), (0, 0.0, 0.0, 0.0)];
    for (epoch, (refreshes, mean, p99, held)) in record.epochs.iter_mut().zip(figures) {
        epoch["refreshes"] = json!(refreshes);
        epoch["staleness_mean"] = json!(mean);
        epoch["staleness_p99"] = json!(p99);
        epoch["held_mean"] = json!(held);
    }
    let (merit, reference) = (merit("kge", "MRR"), Reference::default());
    let figure = |record: &Record, field: &str| {
        let column = COLUMNS.iter().find(|column| column.field == field).expect("a column");
        (column.of)(&Run { record, merit: &merit, reference: &reference })
    };
    let found = ["staleness_mean", "staleness_p99", "held_mean"].map(|f| figure(&record, f));
    assert_eq!(found, [Some(0.0025), Some(0.016), Some(175.0)]);
    record.epochs.drain(..2);
    let found = ["staleness_mean", "staleness_p99", "held_mean"].map(|f| figure(&record, f));
    assert_eq!(found, [None; 3]);
}

#[test]
fn shares_of_recorded_runs_add_up() {
    let (records, merit) = (recorded(), merit("kge", "MRR"));
    let reference = Reference::of(&records, &merit, None);
    let of = |run: &Run<'_>, field: &str| {
        let column = COLUMNS.iter().find(|column| column.field == field).expect("a column");
        (column.of)(run).unwrap_or(0.0)
    };
    for record in records.iter().filter(|record| record.ending != Ending::Failed) {
        let run = Run { record, merit: &merit, reference: &reference };
        let accesses = ACCESSES.map(|field| of(&run, &format!("{field}_share")));
        assert!((accesses.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{accesses:?}");
        let bytes = BYTES.map(|field| of(&run, &field.replace("_bytes", "_share")));
        let sum = if record.cell.nodes == 1 { 0.0 } else { 1.0 };
        assert!((bytes.iter().sum::<f64>() - sum).abs() < 1e-9, "{bytes:?}");
        for epoch in &record.epochs {
            let number = |field: &str| epoch[field].as_u64().expect("a count");
            let parts: u64 = BYTES.iter().map(|field| number(field)).sum();
            assert_eq!(parts, number("bytes_sent"), "{:?}", record.cell);
        }
    }
}

#[test]
fn the_target_is_of_the_single_node_and_times_are_by_example() {
    let records = [
        record("adapm", 1, &[(2.0, 100, 0.4), (2.0, 100, 0.8), (2.0, 100, 0.7)]),
        // Half the examples an epoch: twice as fast by the clock is as fast by example.
        record("adapm", 2, &[(1.0, 50, 0.9); 4]),
        record("full", 2, &[(1.0, 100, 0.5), (1.0, 100, 0.73)]),
        // It never gets there, whatever its own best is.
        record("classic", 2, &[(4.0, 100, 0.3)]),
    ];
    let merit = merit("kge", "MRR");
    let reference = Reference::of(&records, &merit, None);
    assert_eq!((reference.best, reference.chance), (Some(0.8), Some(0.0)));
    assert!((reference.target.expect("a target") - 0.72).abs() < 1e-9);
    assert_eq!((reference.epoch_seconds, reference.target_seconds), (Some(2.0), Some(4.0)));
    let rows = figures::rows(&records, &merit, &reference);
    let titles: Vec<_> = rows.iter().map(|row| (row.system.name(), row.nodes)).collect();
    assert_eq!(titles, [("adapm", 1), ("adapm", 2), ("full", 2), ("classic", 2)]);
    let speed_ups =
        |at: usize| ["raw_speed_up", "effective_speed_up"].map(|field| rows[at].mean(field));
    assert_eq!(speed_ups(0), [Some(1.0), Some(1.0)]);
    assert_eq!(speed_ups(1), [Some(1.0), Some(4.0)]);
    assert_eq!(speed_ups(2), [Some(2.0), Some(2.0)]);
    assert_eq!(speed_ups(3), [Some(0.5), None]);
    assert_eq!(
        rows.iter().map(figures::Row::trains_otherwise).collect::<Vec<_>>(),
        [false, true, false, false]
    );
    let no_gain = [System::Adapm, System::Full, System::Classic];
    let no_gain = no_gain.map(|system| figures::is_no_gain(&rows, system));
    assert_eq!(no_gain, [false, false, true]);
    // By hand, the target is what was given.
    assert_eq!(Reference::of(&records, &merit, Some(0.3)).target_seconds, Some(2.0));
}

#[test]
fn less_is_better_where_an_error_is_compared() {
    let records = [
        record("adapm", 1, &[(1.0, 10, 0.5), (1.0, 10, 0.2), (1.0, 10, 0.3)]),
        record("lapse", 2, &[(1.0, 10, 0.29), (1.0, 10, 0.27)]),
    ];
    let merit = merit("mf", "RMSE");
    let reference = Reference::of(&records, &merit, None);
    assert_eq!((reference.best, reference.chance), (Some(0.2), Some(1.0)));
    assert!((reference.target.expect("a target") - 0.28).abs() < 1e-9);
    let rows = figures::rows(&records, &merit, &reference);
    assert_eq!((rows[1].mean("target_seconds"), rows[1].mean("quality")), (Some(2.0), Some(0.27)));
}

#[test]
fn without_a_reference_nothing_is_compared_and_all_is_shown() {
    let mut records = vec![record("full", 2, &[(1.0, 100, 0.5)]), record("adapm", 1, &[])];
    (records[1].ending, records[1].reason) = (Ending::Failed, Some("no word".to_owned()));
    let merit = merit("kge", "MRR");
    let reference = Reference::of(&records, &merit, None);
    assert_eq!((reference.target, reference.epoch_seconds), (None, None));
    let rows = figures::rows(&records, &merit, &reference);
    assert_eq!((rows[0].mean("epoch_seconds"), rows[0].mean("raw_speed_up")), (Some(1.0), None));
    let text = table::tables(&rows, &merit, &reference, (Output::new(false), 80));
    assert!(text.contains("no target") && text.contains("adapm on 1 node: 1 run failed"), "{text}");
    assert!(Reference::of(&[], &merit, None).best.is_none());
    assert!(table::csv(&figures::rows(&[], &merit, &reference)).lines().count() == 1);
}

#[test]
fn pictures_have_each_system_and_no_broken_number() {
    let (records, merit) = (recorded(), merit("kge", "MRR"));
    let reference = Reference::of(&records, &merit, None);
    let rows = figures::rows(&records, &merit, &reference);
    for (name, svg) in picture::all(&rows, &merit) {
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}: {svg}");
        for system in ["adapm", "full", "classic"] {
            assert!(svg.contains(system), "{name} lacks {system}");
        }
    }
    // With one run of one system there is still something to draw.
    let alone = [record("adapm", 1, &[(1.0, 10, 0.5)])];
    let reference = Reference::of(&alone, &merit, None);
    let rows = figures::rows(&alone, &merit, &reference);
    assert!(picture::all(&rows, &merit).iter().all(|(_, svg)| svg.starts_with("<svg")));
}

#[test]
fn a_run_without_an_epoch_hides_no_other() {
    let (merit, reference) = (merit("kge", "MRR"), Reference::default());
    let of = |records: &[Record]| {
        let rows = figures::rows(records, &merit, &reference);
        let mut pictures = picture::all(&rows, &merit);
        pictures.swap_remove(0).1
    };
    let mut records = vec![record("full", 2, &[(1.0, 10, 0.5), (1.0, 10, 0.6)])];
    let alone = of(&records);
    records.push(Record { ending: Ending::Budget, ..record("full", 2, &[]) });
    assert!(alone.contains("full") && of(&records) == alone, "{alone}");
}

#[test]
fn a_run_that_failed_has_a_line_of_its_own() {
    let mut records = vec![record("full", 2, &[(1.0, 10, 0.5)]), record("lapse", 2, &[])];
    (records[1].ending, records[1].reason) = (Ending::Failed, Some("no word".to_owned()));
    let (merit, reference) = (merit("kge", "MRR"), Reference::default());
    let text = table::csv(&figures::rows(&records, &merit, &reference));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[2].starts_with("lapse,2,1,failed,\"\",,,"), "{text}");
    let columns = lines.iter().map(|line| line.matches(',').count());
    assert!(columns.clone().all(|count| Some(count) == columns.clone().next()), "{text}");
}

/// The accuracy on analogies is measured at the end, where a run that was stopped is not.
#[test]
fn a_table_says_why_stopped_word_vectors_have_no_quality() {
    let merit = merit("wv", "accuracy");
    let mut records = vec![record("adapm", 1, &[(1.0, 10, 0.0)])];
    records[0].result = Some(json!({"workers": 1, "accuracy": 0.5}));
    records.push(Record { ending: Ending::Budget, ..record("full", 2, &[(1.0, 10, 0.0)]) });
    let reference = Reference::of(&records, &merit, None);
    let rows = figures::rows(&records, &merit, &reference);
    let text = table::tables(&rows, &merit, &reference, (Output::new(false), 200));
    let told = "full on 2 nodes: 1 run without accuracy, which is measured at the end";
    assert!(text.contains(told) && !text.contains("did not reach"), "{text}");
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let written = serde_json::to_value(recorded()).expect("JSON");
    let read: Vec<Record> = serde_json::from_value(written.clone()).expect("records");
    assert_eq!(serde_json::to_value(read).expect("JSON"), written);
    assert_eq!(written[0]["system"], Value::from("adapm"));
}

fn common<'a>(
    folder: &'a Path,
    settings: &'a Settings<'a>,
    live: &'a Live<'a>,
    interrupt: &'a Interrupt,
) -> Common<'a> {
    let (task, words, untuned) = ("kge", &[][..], RefCell::default());
    let (tunes, as_processes, budget) = (true, false, None);
    Common { folder, task, settings, tunes, words, as_processes, budget, untuned, interrupt, live }
}

/// What is missing is not run, and what comes after it is collected all the same.
#[test]
fn a_signal_leaves_out_what_is_missing_and_nothing_else() {
    let folder = env::temp_dir().join(format!("adapm-compare-signal-{}", process::id()));
    let (given, interrupt) = (Given::default(), Interrupt::new());
    let settings = Settings::none(&given);
    let recorded = record("full", 2, &[(1.0, 10, 0.5)]);
    let missing = record("lapse", 2, &[]);
    let own = recorded.cell.folder(&folder);
    fs::create_dir_all(&own).expect("a temporary folder");
    let text = serde_json::to_string(&recorded).expect("JSON");
    fs::write(own.join("cell.json"), text).expect("can be written");
    interrupt.raise(2);
    let live = Live::new(Painter::nobody(), "compare kge", 3, &interrupt);
    let common = common(&folder, &settings, &live, &interrupt);
    let cells = [missing.cell.clone(), recorded.cell.clone(), missing.cell];
    let found = run_all(&cells, &common, &merit("kge", "MRR"), Output::new(true).silent());
    let found = found.expect("nothing is run");
    assert!(found.len() == 1 && found[0].cell == recorded.cell, "{found:?}");
    fs::remove_dir_all(&folder).expect("it is there");
}

#[test]
fn a_search_that_failed_is_not_tried_again() {
    let folder = env::temp_dir().join(format!("adapm-compare-untuned-{}", process::id()));
    let (given, interrupt) = (Given::default(), Interrupt::new());
    let settings = Settings::none(&given);
    let live = Live::new(Painter::nobody(), "compare kge", 3, &interrupt);
    let common = common(&folder, &settings, &live, &interrupt);
    common.untuned.replace(BTreeMap::from([(2, "no memory".to_owned())]));
    let kind = Kind { system: System::Nups, nodes: 2 };
    let found = tuning::find(kind, &common).expect("nothing is written").expect("no signal");
    assert_eq!(found, Err("no memory".to_owned()));
    assert!(!folder.exists(), "no process was started");
}

#[test]
fn a_comparison_goes_on_with_its_number_of_workers() {
    assert_eq!(workers_of("--workers 3 --valid-every 1, each node as a process"), Some(3));
    assert_eq!(workers_of("--valid-every 1 --workers 12, nups tuned"), Some(12));
    assert_eq!(workers_of("--valid-every 1"), None);
}

/// What a run has by itself is no knob; what it cannot have neither.
#[test]
fn knobs_are_what_is_chosen() {
    let words = ["adapm", "compare", "kge", "--dim", "4", "--inter", "5", "--workers", "2"];
    let more = ["--clock-every", "7", "--localize-ahead", "9", "--out", "x", "--runs", "2"];
    let words = words.iter().chain(&more).map(Into::into).collect();
    let (cli, given) = Cli::read(words).expect("is a command line");
    let Some(Verb::Compare { task: CompareTask::Kge(args) }) = cli.verb else { panic!("compare") };
    let mut args = args;
    args.comparison.systems =
        ["lapse", "ssp:3", "het-gmp:5"].map(|s| s.parse().expect("one")).into();
    let settings = Settings::new(&args, &given).expect("each flag is taken");
    let knobs = |system: &str, nodes| {
        let kind = Kind { system: system.parse().expect("a system"), nodes };
        let Knobs { flags, clock_every, localize_ahead } = settings.knobs(kind, &[]);
        (flags, clock_every, localize_ahead)
    };
    let common = "--dim 4 --workers 2".to_owned();
    assert_eq!(knobs("adapm", 1), (common.clone(), None, None));
    let of_lapse = "--dim 4 --localize-ahead 9 --workers 2".to_owned();
    assert_eq!(knobs("lapse", 2), (of_lapse, None, Some(9)));
    let of_ssp = "--clock-every 7 --dim 4 --workers 2".to_owned();
    assert_eq!(knobs("ssp:3", 2), (of_ssp, Some(7), None));
}
