//! Files that cannot be used, and choices that do not go with the data: one line that says which
//! and where.

use std::fs;
use std::path::Path;

use crate::harness::{assert_refused, folder, ring, run, text, write};

fn train(folder: &Path, more: &[&str]) -> crate::harness::Ran {
    let quick = [
        "train",
        "kge",
        "--data",
        text(folder),
        "--dim",
        "8",
        "--epochs",
        "1",
        "--negative-count",
        "8",
    ];
    run(&[quick.as_slice(), more].concat())
}

#[test]
fn a_malformed_triple_is_named_by_file_and_line() {
    let folder = folder("malformed");
    ring(&folder);
    write(&folder, "valid.txt", "e1\tnext\te2\ne2\tnext\n");
    assert_refused(&train(&folder, &[]), &["valid.txt:2", "three fields"]);
    write(&folder, "valid.txt", "e1\tnext\te2\ne2\tnext\te3\te4\n");
    assert_refused(&train(&folder, &[]), &["valid.txt:2", "three fields"]);
}

#[test]
fn a_folder_without_triples_is_refused() {
    let folder = folder("no_triples");
    assert_refused(&train(&folder, &[]), &["train.txt", text(&folder)]);
    write(&folder, "train.txt", "");
    assert_refused(&train(&folder, &[]), &["train.txt"]);
}

#[test]
fn choices_that_do_not_go_together_or_with_the_data_are_refused() {
    let folder = folder("choices");
    ring(&folder);
    // 24 entities and 2 relations are 26 keys.
    assert_refused(&train(&folder, &["--nodes", "27"]), &["27 nodes", "26 keys"]);
}

#[test]
fn parameters_that_cannot_be_used_are_refused() {
    let folder = folder("parameters");
    ring(&folder);
    let model = folder.join("model.adapm");
    let saved = train(&folder, &["--no-eval", "--save", text(&model)]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    let eval = |model: &Path| run(&["eval", "kge", "--data", text(&folder), "--load", text(model)]);
    assert_eq!(eval(&model).code, Some(0));

    let missing = folder.join("missing");
    assert_refused(&eval(&missing), &[text(&missing)]);
    assert_refused(&eval(&folder), &[text(&folder)]);
    let bytes = fs::read(&model).expect("the parameters were saved");
    for (name, bytes) in [
        ("empty", &bytes[..0]),
        ("cut_in_the_head", &bytes[..9]),
        ("cut_at_the_end", &bytes[..bytes.len() - 1]),
        ("other", b"e1\tnext\te2\ne2\tnext\te3\n".as_slice()),
    ] {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("a file can be written");
        assert_refused(&eval(&path), &[text(&path)]);
    }
    // Parameters of other names than those of the data.
    write(&folder, "train.txt", "a\tb\tc\n");
    let eval_of_other_data = eval(&model);
    assert_refused(&eval_of_other_data, &[]);
}
