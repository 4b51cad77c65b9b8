//! Model files: what other programs find in them, and that those of older versions are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{folder, run, text};
use crate::together::succeeded;

/// Files of format version 1 or 2, and what that program exported of them.
#[test]
fn files_of_older_versions_are_read() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/old");
    let folder = folder("models_old");
    for task in ["kge", "mf", "wv", "ctr", "gnn"] {
        let [model, expected] =
            ["adapm", "tsv"].map(|ending| old.join(task).with_extension(ending));
        let out = folder.join(task);
        succeeded(&["export", task, "--load", text(&model), "--output", text(&out)]);
        let read = |path: &Path| fs::read_to_string(path).expect("a file of the test");
        assert_eq!(read(&out), read(&expected), "{task}");
    }
}

/// Returns type and shape of each tensor, as a reader of safetensors finds them.
fn tensors(file: &[u8]) -> BTreeMap<String, (String, Vec<u64>)> {
    let (len, rest) = file.split_first_chunk().expect("a length");
    let len = usize::try_from(u64::from_le_bytes(*len)).expect("it fits");
    let header: BTreeMap<String, Value> = serde_json::from_slice(&rest[..len]).expect("JSON");
    let of = |info: &Value| {
        let shape = info["shape"].as_array().expect("a shape").iter();
        let shape = shape.map(|count| count.as_u64().expect("a count")).collect();
        (info["dtype"].as_str().expect("a type").to_owned(), shape)
    };
    let own = header.iter().filter(|(name, _)| *name != "__metadata__");
    own.map(|(name, info)| (name.clone(), of(info))).collect()
}

#[test]
fn models_of_all_tasks_are_safetensors_with_names() {
    let folder = folder("models_names");
    let ctr =
        ["--examples", "200", "--test-examples", "50", "--features", "1000", "--model", "dcn"];
    let tasks: [(&str, &[&str], &str); 5] = [
        ("kge", &["--reciprocal"], "entities inverses relations"),
        (
            "mf",
            &["--rows", "60", "--columns", "40", "--cells", "600", "--test-cells", "60"],
            "columns rows",
        ),
        ("wv", &["--sentences", "200"], "inputs outputs"),
        (
            "ctr",
            &[&ctr[..], &["--hidden", "3", "--cross-layers", "1"]].concat(),
            "cross.1.biases cross.1.weights cross.outputs deep.1.biases deep.1.weights deep.2.biases \
             deep.2.weights features",
        ),
        (
            "gnn",
            &["--graph-nodes", "200", "--features", "learned", "--hidden", "3"],
            "first.1.biases first.1.weights nodes second.1.biases second.1.weights",
        ),
    ];
    for (task, flags, names) in tasks {
        let model = folder.join(task);
        let words = ["train", task, "--dim", "4", "--epochs", "1", "--no-eval"];
        succeeded(&[&words[..], flags, &["--save", text(&model)]].concat());
        let file = fs::read(&model).expect("it was saved");
        let tensors = tensors(&file);
        let floats = tensors.iter().filter(|(_, (dtype, _))| dtype == "F32");
        assert_eq!(floats.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" "), names);
        let len = |(_, shape): &(String, Vec<u64>)| shape.iter().product::<u64>();
        assert_eq!(tensors["adapm.crc32c"], ("U8".to_owned(), vec![4]), "{task}");
        assert!(len(&tensors["adapm.head"]) > 2, "{task}");

        // Each part of it is checked.
        for at in [9, file.len() / 2, file.len() - 1] {
            let mut changed = file.clone();
            changed[at] ^= 4;
            let damaged = folder.join("damaged");
            fs::write(&damaged, changed).expect("a file can be written");
            let ran = run(&["eval", task, "--load", text(&damaged)]);
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(2), ""),
                "{task}, byte {at}: {ran:?}"
            );
            assert!(ran.stderr.starts_with("error: "), "{task}, byte {at}: {ran:?}");
        }
    }
}
