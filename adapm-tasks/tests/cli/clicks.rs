//! Clicks as they are found: files of each form, packed or not, and a public data set, where
//! `ADAPM_DATA` names a folder that has it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use adapm_tasks::data::{DATA_VARIABLE, locate};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::harness::{Ran, adapm, assert_refused, finish, folder, run, text, write};
use crate::together::{holds, object, succeeded};

/// Returns 700 lines of a form, of which the label follows from the first feature.
fn lines(line: impl Fn(usize, usize) -> String) -> String {
    (0..700).fold(String::new(), |mut all, at| {
        let _ = writeln!(all, "{}\t{}", usize::from(at % 7 > 4), line(at % 7, at * 5 % 11));
        all
    })
}

fn criteo(first: usize, second: usize) -> String {
    let missing = if second > 4 { String::new() } else { second.to_string() };
    let names = (0..25).fold(String::new(), |all, _| all + "\t68fd1e64");
    format!("{first}{}{missing}{names}\t{second:08x}", "\t".repeat(12))
}

#[test]
fn each_form_is_read_packed_or_not_and_judged_and_predicted() {
    let folder = folder("clicks_forms");
    let forms = [
        ("criteo", lines(criteo)),
        ("svm", lines(|first, second| format!("{first}:1 {}:0.5", 100 + second))),
        ("ffm", lines(|first, second| format!("0:{first}:1 1:{second}:1"))),
    ];
    for (form, lines) in forms {
        write(&folder, form, &lines);
        let packed = format!("{form}.gz");
        let file = File::create(folder.join(&packed)).expect("a file can be written");
        let mut packer = GzEncoder::new(file, Compression::fast());
        packer.write_all(lines.as_bytes()).and_then(|()| packer.try_finish()).expect("it packs");
        let [of_text, of_packed] = [form, &packed].map(|name| train(&folder, name));
        assert_eq!(of_text, of_packed, "{form}");
        assert!(
            of_text.iter().all(|auc| auc.as_f64().is_some_and(|auc| auc > 0.99)),
            "{of_text:?}"
        );
    }
}

/// Trains on a file and predicts all of it. Returns the AUC of the run and of an evaluation.
fn train(folder: &Path, name: &str) -> [Value; 2] {
    let [data, model] = [name.to_owned(), format!("{name}.adapm")].map(|name| folder.join(name));
    let data = ["--data", text(&data)];
    let flags =
        ["--dim", "4", "--hidden", "8", "--batch", "16", "--workers", "1", "--epochs", "20"];
    let save = ["--json", "--save", text(&model)];
    let trained = object(&[&["train", "ctr"][..], &data, &flags, &save].concat());
    let load = ["--load", text(&model)];
    let judged = object(&[&["eval", "ctr", "--json"][..], &load, &data].concat());
    let predicted = succeeded(&[&["predict", "ctr"][..], &load, &data].concat()).stdout;
    let probabilities: Vec<f32> =
        predicted.lines().map(|line| line.parse().expect("a probability")).collect();
    assert_eq!(probabilities.len(), 700, "{name}");
    let of = |clicks: bool| {
        let is_one = move |at: &usize| (at % 7 > 4) == clicks;
        (0..700).filter(is_one).map(|at| probabilities[at])
    };
    let (lowest, highest) = (of(true).fold(1.0, f32::min), of(false).fold(0.0, f32::max));
    assert!(lowest > highest, "{name}: clicks from {lowest}, others up to {highest}");
    [&trained, &judged].map(|object| object["auc"].clone())
}

#[test]
fn a_line_of_too_few_columns_is_named_and_so_is_an_empty_part() {
    let folder = folder("clicks_short");
    let whole = lines(criteo);
    let (first, rest) = whole.split_once('\n').expect("there are many lines");
    let cut = first.trim_end_matches(|c| c != '\t').trim_end();
    let train = |name: &str| run(&["train", "ctr", "--data", text(&folder.join(name))]);
    write(&folder, "first", &format!("\n{cut}\n{rest}"));
    assert_refused(&train("first"), &["first:2:1: neither Criteo's form (40 columns", "39 here"]);
    write(&folder, "last", &format!("{whole}{cut}"));
    assert_refused(&train("last"), &["last:701:1: 39 columns, 40 are expected"]);
    for part in ["valid", "test"] {
        let parts = folder.join(part);
        fs::create_dir(&parts).expect("a folder can be made");
        write(&parts, "train.tsv", &whole);
        write(&parts, &format!("{part}.tsv"), "\n");
        assert_refused(&train(part), &[&format!("{part}.tsv"), "no example"]);
    }
}

/// Runs a recipe on a public data set; `None` (and a line that says so) if it is not there.
pub(crate) fn recipe(task: &'static str, data: &str, args: &[&str]) -> Option<Value> {
    let Ok(_) = locate(task, Path::new(data)) else {
        eprintln!("skipped: no {data} under ${DATA_VARIABLE}");
        return None;
    };
    let mut command = adapm(args);
    command.env(DATA_VARIABLE, std::env::var_os(DATA_VARIABLE).unwrap_or_default());
    let Ran { code, stdout, stderr } = finish(command.spawn().expect("the binary starts"));
    assert_eq!(code, Some(0), "{stderr}");
    let last = stdout.lines().last().expect("a result");
    Some(serde_json::from_str(last).expect("an object"))
}

/// Wide & Deep on Adult, which 4 of 20 epochs take to 0.91.
#[test]
fn adult_is_learnt_on_one_node_on_several_and_by_processes() {
    let flags = ["train", "ctr", "--recipe", "adult", "--epochs", "4", "--json", "--workers", "1"];
    let ways: [&[&str]; 4] = [
        &flags,
        &[&flags[..], &["--nodes", "2"]].concat(),
        &[&flags[..], &["--nodes", "4"]].concat(),
        &[&["launch", "--nodes", "2", "--"], &flags[..]].concat(),
    ];
    let aucs: Vec<f64> = ways
        .iter()
        .filter_map(|args| recipe("ctr", "adult-income", args))
        .map(|object| object["auc"].as_f64().expect("evaluated"))
        .collect();
    println!("AUC {aucs:?}");
    assert!(aucs.iter().all(|auc| *auc >= 0.905 && (auc - aucs[0]).abs() < 0.01), "{aucs:?}");
}

/// Where features are few beside what a node has to do, what is not local after the first epoch is
/// an exception (AdaPM §5.4).
#[test]
fn generated_clicks_are_local_on_four_nodes() {
    let words = ["train", "ctr", "--nodes", "4", "--workers", "1", "--epochs", "3", "--json"];
    let sizes = ["--examples", "40000", "--test-examples", "5000", "--features", "20000"];
    let ran = succeeded(&[&words[..], &sizes].concat());
    holds(&ran.stdout, "\"auc\"");
    let epochs: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let late = |epoch: &Value| {
        let count =
            |name: &str| epoch[name].as_f64().unwrap_or_else(|| panic!("no {name}: {epoch}"));
        let late = count("waited") + count("remote");
        late / (late + count("local"))
    };
    let shares: Vec<f64> = epochs[1..3].iter().map(late).collect();
    assert!(shares.iter().all(|share| *share < 0.005), "{shares:?}");
}
