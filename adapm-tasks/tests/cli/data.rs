//! The verb `data`: what is listed, and what a check says of data.

use std::fs;
use std::path::Path;
use std::thread;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::Value;

use crate::harness::{Ran, adapm, assert_refused, finish, folder, ring, run, text, write};
use crate::together::{holds, objects};

fn check(data: &Path, more: &[&str]) -> Ran {
    run(&[&["data", "check", text(data)], more].concat())
}

#[test]
fn data_sets_are_listed_with_origin_licence_and_checksums() {
    let ran = run(&["data"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    for words in [
        "origin    https://github.com/TimDettmers/ConvE",
        "licence   not stated by its origin",
        "  6e4c2782169af21e9743f3b1d200886f5d595bf6bc504ec1351720949c5cdfae  train.txt\n",
        "  $ mkdir -p $ADAPM_DATA/kge/FB15k-237\n",
        "$ADAPM_DATA is not set",
    ] {
        holds(&ran.stdout, words);
    }
    let listed = objects(&run(&["data", "--json"]));
    let names: Vec<&str> = listed.iter().filter_map(|set| set["name"].as_str()).collect();
    for name in ["FB15k-237", "codex-s", "umls", "kinships", "douban-3000", "enwiki-2018.txt"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
    for set in &listed {
        // Of one data set no file was at hand, and a note says so.
        if set["name"] == "criteo" {
            assert_eq!(set["files"], serde_json::json!([]));
            assert!(set["note"].as_str().is_some_and(|note| note.contains("not at hand")), "{set}");
            continue;
        }
        let sum = set["files"][0]["sha256"].as_str();
        assert!(sum.is_some_and(|sum| sum.len() == 64), "{set}");
    }
}

#[test]
fn a_graph_is_checked_without_training() {
    let folder = folder("data_kge");
    ring(&folder);
    let ran = check(&folder, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    for words in [
        "no data set of `adapm data`",
        "names, h r t",
        "42 train, 3 valid, 3 test triples",
        "problems   none",
    ] {
        holds(&ran.stdout, words);
    }
    // Of train, repeated, with names that train does not know.
    write(&folder, "test.txt", "e0\tnext\te1\ne0\tnext\te1\ne0\tnext\tnew \n");
    fs::remove_file(folder.join("valid.txt")).expect("it was written");
    let ran = check(&folder, &["--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let [object] = objects(&ran).try_into().expect("one object");
    let Value::Object(counts) = &object["counts"] else { panic!("{object}") };
    for (name, count) in [
        ("train", 42),
        ("valid", 0),
        ("duplicates_test", 1),
        ("overlap_test", 2),
        ("unknown_test", 1),
        ("unknown_entities", 1),
    ] {
        assert_eq!(counts[name], count, "{name} of {object}");
    }
    assert_eq!((&object["task"], &object["name"]), (&Value::from("kge"), &Value::Null));
    for words in [
        "no valid triples: training selects on triples held back",
        "2 of test are in train, too",
        "1 name with blanks at an end",
        "1 entity unknown to train",
    ] {
        holds(&ran.stderr, words);
    }
    fs::write(folder.join("train.txt"), b"\xff\xfea\0\t\0").expect("a file can be written");
    assert_refused(&check(&folder, &[]), &["train.txt is UTF-16 text"]);
    ring(&folder);
    write(&folder, "test.txt", "e0\tnext\n");
    assert_refused(&check(&folder, &[]), &["test.txt:1:8: "]);
    assert_refused(&check(&folder.join("missing"), &[]), &["missing", "the path does not exist"]);
}

#[test]
fn a_data_set_is_known_by_its_name_and_compared_with_what_was_published() {
    let data = folder("data_named");
    let umls = data.join("kge").join("umls");
    fs::create_dir_all(&umls).expect("a folder can be made");
    ring(&umls);
    let ask = |name: &str| {
        let mut command = adapm(&["data", "check", name, "--json"]);
        command.env("ADAPM_DATA", &data);
        finish(command.spawn().expect("the binary starts"))
    };
    let ran = ask("UMLS");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    holds(&ran.stderr, "umls, but not as it was published");
    let [object] = objects(&ran).try_into().expect("one object");
    assert_eq!(
        (&object["name"], &object["as_published"]),
        (&Value::from("umls"), &Value::from(false))
    );
    assert_eq!(object["files"][0]["state"], "differs");
    let unknown = ask("nosuch");
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    holds(&unknown.stderr, text(&data));
}

#[test]
fn ratings_and_texts_are_checked_as_their_tasks_read_them() {
    let folder = folder("data_others");
    write(&folder, "ratings.csv", "1,2,3\n1,3,4\n2,2,5\n1,2,4\n");
    write(&folder, "text", "the sun is a star\n");
    write(&folder, "words", "the\nsun\n");
    write(&folder, "questions", ": section\na b c d\n");
    let of = |name: &str, task: &str| check(&folder.join(name), &["--task", task]);
    let ratings = of("ratings.csv", "mf");
    assert_eq!(ratings.code, Some(1), "{ratings:?}");
    holds(&ratings.stdout, "1 repeated in train, trained on each time");
    let sentences = of("text", "wv");
    assert_eq!(sentences.code, Some(0), "{sentences:?}");
    holds(&sentences.stdout, "5 words, 5 different");
    let questions = of("questions", "wv");
    assert_eq!(questions.code, Some(0), "{questions:?}");
    holds(&questions.stdout, "questions of analogy");
    let words = of("words", "wv");
    assert_eq!(words.code, Some(1), "{words:?}");
    holds(&words.stdout, "nothing to train on");
}

#[test]
fn a_named_pipe_is_read_once_for_the_task_that_is_given() {
    let folder = folder("data_piped");
    let pipe = folder.join("pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).expect("a pipe can be made");
    assert_refused(&check(&pipe, &[]), &["no telling which task", "give --task"]);
    for (task, text, expected) in [
        ("mf", "1,2,3\n1,3,4\n", "2 train, 0 valid, 0 test cells"),
        ("wv", "the sun is a star\n", "5 words"),
    ] {
        let writer = thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, text)
        });
        let ran = check(&pipe, &["--task", task]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        holds(&ran.stdout, expected);
        writer.join().expect("no panic").expect("somebody reads");
    }
}

#[test]
fn ratings_of_test_that_are_in_train_are_a_problem_wherever_they_are_read() {
    let folder = folder("data_trained");
    write(&folder, "train.csv", "# made by hand\n1,2,3\n1,3,4\n2,2,5\n2,3,1\n");
    write(&folder, "valid.csv", "1,2,3\n");
    write(&folder, "test.csv", "1,3,4\n2,2,5\n3,2,5\n");
    let ran = check(&folder, &["--task", "mf", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let [object] = objects(&ran).try_into().expect("one object");
    for (name, count) in [("trained_valid", 1), ("trained_test", 2), ("unseen_test", 1)] {
        assert_eq!(object["counts"][name], count, "{name} of {object}");
    }
    let problems = [
        "1 of valid are in train, too",
        "2 of test are in train, too: figures are too good",
        "1 of test with a row or column unknown to train: the mean of the other is predicted",
    ];
    assert_eq!(object["problems"], Value::from(problems.as_slice()));
    let comments = "1 line of comments (# or %) at the top left out";
    assert_eq!(
        (&object["notes"][0], &object["counts"]["comments"]),
        (&Value::from(comments), &Value::from(1))
    );
    // The plan of a run says the same.
    let trained = run(&["train", "mf", "--data", text(&folder), "--epochs", "1", "--dim", "2"]);
    assert_eq!(trained.code, Some(0), "{trained:?}");
    problems.into_iter().chain([comments]).for_each(|words| holds(&trained.stdout, words));
}
