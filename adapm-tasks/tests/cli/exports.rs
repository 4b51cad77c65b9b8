//! `export` in the forms that all tasks have: NumPy's file, the Embedding Projector's, and names
//! beside.

use std::fs;
use std::path::Path;

use crate::harness::{assert_refused, folder, run, text, write};
use crate::saved::models;
use crate::together::holds;

/// Returns the shape and the numbers of a file of NumPy's format 1.0, as its specification says.
fn npy(bytes: &[u8]) -> ([usize; 2], Vec<f32>) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(end % 64, 0);
    let header = str::from_utf8(&bytes[10..end]).expect("text");
    let header = header.strip_suffix('\n').expect("a line").trim_end();
    let shape = header
        .strip_prefix("{'descr': '<f4', 'fortran_order': False, 'shape': (")
        .and_then(|rest| rest.strip_suffix("), }"));
    let (rows, width) = shape.and_then(|shape| shape.split_once(", ")).expect("a shape");
    let shape = [rows, width].map(|size| size.parse().expect("a number"));
    let number = |bytes: &[u8]| f32::from_le_bytes([0, 1, 2, 3].map(|at| bytes[at]));
    (shape, bytes[end..].chunks(4).map(number).collect())
}

/// Returns the names and numbers that a task's own form has of a table: behind a label, so many
/// fields after the name.
fn own(
    text: &str,
    task: &str,
    label: &str,
    skipped: usize,
    width: usize,
) -> Vec<(String, Vec<f32>)> {
    let between = if task == "wv" { ' ' } else { '\t' };
    let lines = text.lines().skip(usize::from(task == "wv"));
    let fields = lines.map(|line| line.split(between).collect::<Vec<_>>());
    let fields = fields.filter(|fields| label.is_empty() || fields[0] == label);
    let from = usize::from(!label.is_empty());
    fields
        .map(|fields| {
            let numbers = fields[from + 1 + skipped..][..width].iter();
            let numbers = numbers.map(|number| number.parse().expect("a number"));
            (fields[from].to_owned(), numbers.collect())
        })
        .collect()
}

#[test]
fn every_table_is_written_with_the_same_bits_and_names_in_all_forms() {
    let folder = folder("exports");
    let [own_file, npy_file, lines_file, names_file] =
        ["own", "npy", "lines", "names"].map(|name| folder.join(name));
    let tables = [
        ("kge", "entities", "entity", 0),
        ("kge", "relations", "relation", 0),
        ("kge", "inverses", "inverse", 0),
        ("mf", "rows", "row", 1),
        ("mf", "columns", "column", 1),
        ("wv", "words", "", 0),
        ("ctr", "embeddings", "", 1),
        ("ctr", "weights", "", 0),
        ("gnn", "nodes", "", 0),
    ];
    for (task, model) in models(&folder) {
        let words = ["export", task, "--load", &model];
        let export = |more: &[&str]| {
            let ran = run(&[&words[..], more].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.stdout
        };
        export(&["--output", text(&own_file)]);
        let of_own = fs::read_to_string(&own_file).expect("it was written");
        for (_, table, label, skipped) in tables.iter().filter(|table| table.0 == task) {
            let chosen = ["--table", table, "--output"];
            let told = export(&[&["--format", "npy"][..], &chosen, &[text(&npy_file)]].concat());
            let ([rows, width], numbers) = npy(&fs::read(&npy_file).expect("it was written"));
            let noun = if width == 1 { "number" } else { "numbers" };
            holds(&told, &format!("{table} with {width} {noun} each"));
            let expected = own(&of_own, task, label, *skipped, width);
            assert_eq!(expected.len(), rows, "{task} {table}");
            let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let all: Vec<f32> = expected.iter().flat_map(|row| row.1.clone()).collect();
            assert_eq!(bits(&numbers), bits(&all), "{task} {table}");

            let form = ["--format", "projector", "--names", text(&names_file)];
            export(&[&form[..], &chosen, &[text(&lines_file)]].concat());
            let lines = fs::read_to_string(&lines_file).expect("it was written");
            let read: Vec<f32> = lines
                .lines()
                .flat_map(|line| line.split('\t'))
                .map(|number| number.parse().expect("a number"))
                .collect();
            assert_eq!((lines.lines().count(), bits(&read)), (rows, bits(&all)), "{task} {table}");
            let names = fs::read_to_string(&names_file).expect("it was written");
            assert!(names.lines().eq(expected.iter().map(|row| row.0.as_str())), "{task} {table}");
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_no_file() {
    let folder = folder("exports_bad");
    let (kge, out) = (folder.join("kge"), folder.join("out"));
    let words = ["train", "kge", "--dim", "4", "--epochs", "1", "--no-eval", "--save", text(&kge)];
    assert_eq!(run(&words).code, Some(0));
    let (kge, out) = (text(&kge), text(&out));
    let export = |more: &[&str]| run(&[&["export", "kge", "--load", kge][..], more].concat());
    let npy = ["--output", out, "--format", "npy"];
    let refused = |more: &[&str], words: &[&str]| {
        assert_refused(&export(&[&npy[..], more].concat()), words);
        assert!(!Path::new(out).exists(), "{more:?} left a file");
    };
    let several =
        "the model has vectors of several kinds; give --table entities or --table relations";
    refused(&[], &[several]);
    refused(&["--table", "inverses"], &["the model has no inverses (--table)", "--table entities"]);
    let entities = ["--table", "entities", "--names"];
    refused(&[&entities[..], &[out]].concat(), &["cannot write", "--names", "--output"]);
    refused(&[&entities[..], &[kge]].concat(), &["cannot write", "--names", "--load"]);
    refused(&["--format", "tsv", "--names", "x"], &["--names is for --format npy or projector"]);
    refused(&["--format", "tsv", "--table", "x"], &["--table is for --format npy or projector"]);
    refused(&["--format", "csv"], &["csv", "tsv, npy, projector"]);
    let both = ["--table", "entities", "--format", "npy", "--output", "-", "--names", "-"];
    assert_refused(&export(&both), &["cannot write", "--names", "--output"]);
    write(&folder, "text", "no model\n");
    let foreign = folder.join("text");
    let words = ["export", "gnn", "--load", text(&foreign), "--output", out];
    assert_refused(&run(&words), &["is no checkpoint of adapm"]);
}

#[test]
fn one_of_both_files_may_be_stdout_and_stands_there_alone() {
    let folder = folder("exports_stdout");
    let [model, names] = ["mf", "names"].map(|name| folder.join(name));
    let sizes = ["--rows", "30", "--columns", "20", "--cells", "150", "--test-cells", "20"];
    let words = ["train", "mf", "--dim", "4", "--epochs", "1", "--save", text(&model)];
    assert_eq!(run(&[&words[..], &sizes].concat()).code, Some(0));
    let words = ["export", "mf", "--load", text(&model), "--format", "projector"];
    let export = |more: &[&str]| run(&[&words[..], &["--table", "rows"], more].concat());
    let ran = export(&["--output", "-", "--names", text(&names)]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 30), "{ran:?}");
    assert!(ran.stdout.lines().all(|line| line.split('\t').count() == 4), "{ran:?}");
    holds(&ran.stderr, "names of 30 rows are in");
    let lines = folder.join("lines");
    let ran = export(&["--output", text(&lines), "--names", "-"]);
    assert_eq!(ran.stdout, fs::read_to_string(names).expect("it was written"));
    holds(&ran.stderr, "30 rows with 4 numbers each in the projector's form are in");
}
