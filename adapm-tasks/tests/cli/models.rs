//! Model files: what other programs find in them, and that those of older versions are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{assert_refused, folder, run, text};
use crate::together::{object, succeeded};

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

#[test]
fn models_and_folders_of_runs_are_checked_whole() {
    let folder = folder("models_check");
    let [run_folder, file] = ["run", "model"].map(|name| folder.join(name));
    let words = ["train", "mf", "--rows", "60", "--columns", "40", "--cells", "600"];
    let flags = ["--test-cells", "60", "--dim", "4", "--epochs", "2", "--out", text(&run_folder)];
    succeeded(&[&words[..], &flags, &["--save", text(&file)]].concat());
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/old/kge.adapm");
    let paths = [text(&run_folder), text(&file), text(&old)];
    let shown = succeeded(&[&["check"][..], &paths].concat()).stdout;
    for word in
        ["best.adapm", "last.adapm", "rows 60 x 4, columns 40 x 4", "kge", "as it was written"]
    {
        assert!(shown.contains(word), "no {word} in {shown}");
    }
    let objects = succeeded(&[&["check", "--json"][..], &paths].concat()).stdout;
    let objects = objects.lines().map(|line| serde_json::from_str(line).expect("an object"));
    let is_model = |object: &Value| !text_of(object).contains("checkpoints");
    let objects: Vec<Value> = objects.filter(is_model).collect();
    let tasks: Vec<_> = objects.iter().map(|object| object["task"].as_str()).collect();
    assert_eq!(tasks, ["mf", "mf", "mf", "kge"].map(Some));
    assert_eq!(objects[0]["tensors"][1]["rows"], 40);
    assert_eq!(objects[2]["bytes"].as_u64(), fs::metadata(&file).ok().map(|meta| meta.len()));

    let whole = fs::read(&file).expect("it was saved");
    for (bytes, why) in [
        ([&whole[..], b"x"].concat(), "is damaged"),
        (whole[..whole.len() - 9].to_vec(), "ends early"),
        (b"neither".to_vec(), "is no checkpoint"),
        (Vec::new(), "is no checkpoint"),
    ] {
        fs::write(&file, bytes).expect("a file can be written");
        assert_refused(&run(&["check", text(&file)]), &["model", why]);
    }
    assert_refused(&run(&["check", text(&folder)]), &["neither best.adapm nor last.adapm"]);
    assert_refused(&run(&["check", "nowhere"]), &["nowhere"]);
}

/// Returns type and shape of each tensor, as a reader of safetensors finds them.
fn text_of(object: &Value) -> &str {
    object["path"].as_str().unwrap_or_default()
}

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
    // Of tensors whose rows follow from what was generated, only the length is known.
    let tasks: [(&str, &[&str], &str); 5] = [
        ("kge", &["--reciprocal"], "entities _ 4, relations _ 4, inverses _ 4"),
        (
            "mf",
            &["--rows", "60", "--columns", "40", "--cells", "600", "--test-cells", "60"],
            "rows 60 4, columns 40 4",
        ),
        ("wv", &["--sentences", "200"], "inputs _ 4, outputs _ 4"),
        (
            "ctr",
            &[&ctr[..], &["--hidden", "3", "--cross-layers", "1"]].concat(),
            "features _ 5, deep.1.weights 104 3, deep.1.biases 1 3, deep.2.weights 3 1, deep.2.biases 1 1, \
             cross.1.weights 1 104, cross.1.biases 1 104, cross.outputs 1 104",
        ),
        (
            "gnn",
            &["--graph-nodes", "200", "--features", "learned", "--hidden", "3"],
            "nodes 200 4, first.1.weights 4 3, first.1.biases 1 3, second.1.weights 3 8, second.1.biases 1 8",
        ),
    ];
    for (task, flags, expected) in tasks {
        let model = folder.join(task);
        let words = ["train", task, "--dim", "4", "--epochs", "1", "--no-eval"];
        succeeded(&[&words[..], flags, &["--save", text(&model)]].concat());
        let file = fs::read(&model).expect("it was saved");
        let all = tensors(&file);
        let checked = object(&["check", "--json", text(&model)]);
        let own = checked["tensors"].as_array().expect("tensors").iter().zip(expected.split(", "));
        let found = own.map(|(tensor, expected)| {
            let name = tensor["name"].as_str().expect("a name");
            let [rows, len] =
                ["rows", "numbers"].map(|count| tensor[count].as_u64().expect("a count"));
            assert_eq!(all[name], ("F32".to_owned(), vec![rows, len]), "{task}");
            let rows = if expected.contains('_') { "_".to_owned() } else { rows.to_string() };
            format!("{name} {rows} {len}")
        });
        assert_eq!(found.collect::<Vec<_>>().join(", "), expected);
        let floats = all.values().filter(|(dtype, _)| dtype == "F32").count();
        assert_eq!(floats, expected.split(", ").count(), "{task}");
        assert_eq!(all["adapm.crc32c"], ("U8".to_owned(), vec![4]), "{task}");
        assert!(all["adapm.head"].1[0] > 2, "{task}");
        // Each part of it is checked.
        for at in [20, file.len() / 2, file.len() - 1] {
            let mut changed = file.clone();
            changed[at] ^= 4;
            let damaged = folder.join("damaged");
            fs::write(&damaged, changed).expect("a file can be written");
            assert_refused(&run(&["check", text(&damaged)]), &["damaged; save it again"]);
        }
    }
}
