//! Bad input ends in one line that says what, where and what to do, and in exit code 2.

use std::fs;

use adapm_tasks::kge::ModelKind;

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
    let variants =
        ["adapm-no-relocation", "adapm-no-replication", "adapm-poisson", "adapm-immediate"];
    let all = [variants.as_slice(), &["classic", "full", "lapse", "nups", "parallax"]].concat();
    assert_refused(&run(&["train", "kge", "--system", "xyz"]), &all);
    let ran = run(&["train", "kge", "--system", "adpam"]);
    assert_refused(&ran, &["adpam", "did you mean adapm?"]);
    let ran = run(&["train", "kge", "--system", "ssp"]);
    assert_refused(&ran, &["ssp needs its staleness: ssp:3"]);
}

#[test]
fn an_unknown_model_is_answered_with_those_there_are() {
    let ran = run(&["train", "kge", "--model", "distmul"]);
    assert_refused(&ran, ModelKind::NAMES);
    assert_refused(&ran, &["'distmul'", "similar value exists: 'distmult'"]);
}

#[test]
fn impossible_numbers_and_words_are_refused() {
    for (flag, value) in [
        ("--nodes", "0"),
        ("--workers", "0"),
        ("--workers", "2,0"),
        ("--workers", "2;1"),
        ("--rounds-per-second", "0"),
        ("--nodes", "two"),
        ("--epochs", "0"),
        ("--epochs", "-1"),
        ("--chunk", "0"),
        ("--negative-count", "0"),
        ("--dim", "-8"),
        ("--model", "conve"),
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
    assert_refused(
        &ask("wordnet"),
        &["wordnet", text(&looked_in), "umls", "kinships", "FB15k-237"],
    );
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

#[test]
fn what_goes_wrong_with_other_tasks_is_told_as_well() {
    let folder = folder("bad_tasks");
    write(&folder, "ratings", "1 2 3\n1 3 x\n");
    write(&folder, "text", "the sun is the sun is the sun\n");
    write(&folder, "questions", ": section\na b c\n");
    let [ratings, sentences, questions] =
        ["ratings", "text", "questions"].map(|name| folder.join(name));
    let (ratings, sentences, questions) = (text(&ratings), text(&sentences), text(&questions));
    let cases: [(&[&str], &[&str]); 12] = [
        (&["train", "mf", "--data", ratings], &["ratings:2:5: "]),
        (
            &["train", "mf", "--data", ratings, "--rows", "5"],
            &["--data", "--rows", "adapm train mf --help"],
        ),
        (
            &["train", "mf", "--rows", "10", "--columns", "10", "--cells", "90"],
            &["--cells 90: ", " to 25"],
        ),
        (
            &["train", "mf", "--system", "none", "--nodes", "2"],
            &["--system none", "leave out --nodes"],
        ),
        (&["train", "mf", "--dim", "0"], &["--dim 0: "]),
        (&["train", "wv", "--data", sentences, "--min-count", "9"], &["text", "9"]),
        (
            &["train", "wv", "--data", sentences, "--questions", questions],
            &["questions:2:1: ", "four words"],
        ),
        (&["train", "wv", "--negatives", "501", "--sentences", "500"], &["negatives", "500"]),
        (&["train", "wv", "--similarity", "no-such-file"], &["no-such-file", "ADAPM_DATA"]),
        (&["eval", "wv", "--load", questions], &["questions", "words dimension"]),
        (&["train", "kge", "--recipe", "umsl"], &["no recipe umsl of kge; did you mean UMLS?"]),
        (
            &["launch", "--nodes", "2", "--", "train", "kge", "--recipe"],
            &["leave out adapm launch"],
        ),
    ];
    for (args, words) in cases {
        assert_refused(&run(args), words);
    }
}

#[test]
fn a_model_is_neither_overwritten_by_its_export_nor_taken_for_another() {
    let folder = folder("bad_export");
    let model = folder.join("model.adapm");
    let matrix =
        ["--rows", "20", "--columns", "20", "--cells", "50", "--dim", "2", "--epochs", "1"];
    let trained = run(&[["train", "mf", "--save", text(&model)].as_slice(), &matrix].concat());
    assert_eq!(trained.code, Some(0), "{trained:?}");
    let export = |task, output| run(&["export", task, "--load", text(&model), "--output", output]);
    let before = fs::read(&model).expect("it was saved");
    assert_refused(
        &export("mf", text(&model)),
        &["model.adapm", "--load", "--output", "another file"],
    );
    assert_eq!(fs::read(&model).expect("it is still there"), before);
    let valid =
        run(&[["eval", "mf", "--load", text(&model), "--split", "valid"].as_slice(), &matrix[..6]]
            .concat());
    assert_refused(&valid, &["no valid part", "--split"]);
    let other = folder.join("other");
    assert_refused(&export("wv", text(&other)), &["a checkpoint of task mf"]);
    assert!(!other.exists(), "what was refused leaves no file");
    let missing = folder.join("missing").join("below");
    assert_refused(&export("mf", text(&missing)), &["cannot write", "--output"]);
}

#[test]
fn no_file_is_written_twice_nor_over_what_is_read() {
    let folder = folder("bad_outputs");
    let sentences = "the sun is a star\n".repeat(20);
    write(&folder, "text", &sentences);
    let [data, model] = ["text", "model"].map(|name| folder.join(name));
    let by_another_way =
        folder.join("..").join(folder.file_name().expect("has a name")).join("model");
    let train = |files: &[&str]| run(&[&["train", "wv", "--data", text(&data)], files].concat());
    let (model, again) = (text(&model), text(&by_another_way));
    assert_refused(
        &train(&["--output", model, "--save", again]),
        &["cannot write", "--output", "--save"],
    );
    assert_refused(
        &train(&["--save", model, "--trace-keys", model]),
        &["(--trace-keys)", "--save"],
    );
    assert_refused(
        &train(&["--save-vocab", text(&data)]),
        &["(--save-vocab)", "--data", "another file"],
    );
    assert!(!by_another_way.exists(), "what was refused leaves no file");
    assert_eq!(fs::read_to_string(&data).expect("it is still there"), sentences);
}
