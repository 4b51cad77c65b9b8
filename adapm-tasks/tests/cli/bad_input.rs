//! Bad input ends in one line that says what, where and what to do, and in exit code 2.

use std::fs;

use crate::harness::{adapm, assert_refused, finish, folder, ring, run, text, write};

#[test]
fn an_unknown_verb_task_or_flag_is_answered_with_the_nearest() {
    assert_refused(&run(&["trian"]), &["trian", "'train'", "adapm --help"]);
    assert_refused(&run(&["train"]), &["requires a subcommand", "kge", "adapm train --help"]);
    assert_refused(&run(&["train", "kgee"]), &["kgee", "'kge'"]);
    assert_refused(
        &run(&["train", "kge", "--nodse", "2"]),
        &["--nodse", "'--node'", "adapm train kge --help"],
    );
    assert_refused(&run(&["demo", "more"]), &["more", "adapm demo --help"]);
    assert_refused(&run(&["eval", "kge"]), &["--load <FILE>"]);
}

#[test]
fn an_unknown_system_is_answered_with_those_there_are() {
    let all = ["adapm-no-relocation", "adapm-no-replication", "adapm-immediate", "classic", "full", "lapse"];
    let ran = run(&["train", "kge", "--system", "adpam"]);
    assert_refused(&ran, &all);
    assert_refused(&ran, &["'adpam'", "similar value exists: 'adapm'"]);
}

#[test]
fn impossible_numbers_and_words_are_refused() {
    for (flag, value) in [
        ("--nodes", "0"),
        ("--workers", "0"),
        ("--nodes", "two"),
        ("--epochs", "0"),
        ("--epochs", "-1"),
        ("--chunk", "0"),
        ("--negative-count", "0"),
        ("--dim", "-8"),
        ("--model", "transe"),
        ("--negatives", "none"),
        ("--loss", "hinge"),
        ("--seed", "1.5"),
        ("--learning-rate", "fast"),
    ] {
        assert_refused(&run(&["train", "kge", flag, value]), &[flag, value]);
    }
}

#[test]
fn unknown_data_says_where_it_was_looked_for_and_what_is_near() {
    let data = folder("unknown_data");
    for name in ["FB15k-237", "umls", "kinships"] {
        fs::create_dir_all(data.join("kge").join(name)).expect("a folder can be made");
    }
    let ask = |name: &str| {
        let mut command = adapm(&["train", "kge", "--data", name]);
        command.env("ADAPM_DATA", &data);
        finish(command.spawn().expect("the binary starts"))
    };
    let looked_in = data.join("kge");
    assert_refused(&ask("fb15k"), &["fb15k", text(&looked_in), "did you mean FB15k-237?"]);
    assert_refused(&ask("wordnet"), &["wordnet", text(&looked_in), "umls", "kinships", "FB15k-237"]);
    assert_refused(&run(&["train", "kge", "--data", "umls"]), &["umls", "ADAPM_DATA"]);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_training() {
    let folder = folder("unwritable");
    ring(&folder);
    let missing = folder.join("missing").join("model");
    let save = |path| run(&["train", "kge", "--data", text(&folder), "--save", path]);
    assert_refused(&save(text(&missing)), &["--save", text(&missing), "folder you may write"]);
    assert_refused(&save(text(&folder)), &["--save", text(&folder)]);
    let ranks = run(&["eval", "kge", "--load", "model", "--ranks", text(&missing)]);
    assert_refused(&ranks, &["--ranks", text(&missing)]);
    write(&folder, "model", "kept");
    assert_refused(&save(text(&folder.join("model").join("below"))), &["--save"]);
    assert_eq!(fs::read_to_string(folder.join("model")).expect("the file is still there"), "kept");
}
