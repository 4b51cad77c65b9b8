//! Files that are no ratings, or not quite: the exact line that says what is wrong, where, and what
//! to do.

use std::fs;
use std::path::Path;
use std::thread;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::harness::{Ran, adapm, assert_refused, finish, folder, ring, run, text, write};

/// Returns the error of `train mf` for a file with these bytes, run in its folder.
fn refused(folder: &Path, name: &str, bytes: &[u8]) -> String {
    fs::write(folder.join(name), bytes).expect("a file can be written");
    said(&train(folder, name))
}

fn train(folder: &Path, data: &str) -> Ran {
    let mut command = adapm(&["train", "mf", "--data", data, "--epochs", "1", "--dim", "2"]);
    finish(command.current_dir(folder).spawn().expect("the binary starts"))
}

/// Returns the one line of a run that was refused.
#[track_caller]
fn said(ran: &Ran) -> String {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    let line = ran.stderr.strip_prefix("error: ").and_then(|line| line.strip_suffix('\n'));
    line.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

fn wide(text: &str, has_mark: bool) -> Vec<u8> {
    let mark = has_mark.then_some(0xfeff);
    mark.into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn bytes_that_are_no_text_are_named() {
    let folder = folder("no_text_ratings");
    let table = "userId,movieId,rating\n1,31,2.5\n1,1029,3.0\n";
    let mut tar = vec![0; 512];
    tar[..9].copy_from_slice(b"train.txt");
    tar[257..262].copy_from_slice(b"ustar");
    for (name, bytes, expected) in [
        (
            "wide.csv",
            wide(table, true),
            "wide.csv is UTF-16 text; convert it to UTF-8: iconv -f UTF-16 -t UTF-8 wide.csv > wide.utf8.csv",
        ),
        (
            "wide too.csv",
            wide(table, false),
            "wide too.csv is UTF-16 text; convert it to UTF-8: iconv -f UTF-16LE -t UTF-8 'wide too.csv' > \
             'wide too.utf8.csv'",
        ),
        (
            "r.txt.bz2",
            b"BZh91AY&SY\x8b\x9f".to_vec(),
            "r.txt.bz2 is a bzip2 file, not text; unpack it: bunzip2 -k r.txt.bz2",
        ),
        (
            "r.xz",
            b"\xfd7zXZ\0\0\x04".to_vec(),
            "r.xz is an xz file, not text; unpack it: unxz -k r.xz",
        ),
        (
            "r.xlsx",
            b"PK\x03\x04\x14\0\x06\0xl/workbook.xml".to_vec(),
            "r.xlsx is an Excel workbook, not text; save it as CSV (UTF-8) there",
        ),
        (
            "r.zip",
            b"PK\x03\x04\x14\0\0\0r.csv".to_vec(),
            "r.zip is a zip archive, not text; unpack it: unzip r.zip",
        ),
        ("r.tar", tar, "r.tar is a tar archive, not text; unpack it: tar -xf r.tar"),
        (
            "r.db",
            b"SQLite format 3\0\x10".to_vec(),
            "r.db is an SQLite database, not text; export it as CSV",
        ),
        ("r.bin", (0..=255).collect(), "r.bin is binary data, not text; give a text file"),
        (
            "cut.csv.gz",
            b"\x1f\x8b\x08\0\0\0".to_vec(),
            "cut.csv.gz is cut short; compress or copy it again",
        ),
        (
            "latin.csv",
            b"userId,movieId,rating\n1,Caf\xe9,2.5\n".to_vec(),
            "latin.csv:2:6: the byte E9 is not UTF-8; convert the file from its encoding, such as: iconv -f \
             WINDOWS-1252 -t UTF-8 latin.csv > latin.utf8.csv",
        ),
    ] {
        assert_eq!(refused(&folder, name, &bytes), expected);
    }
}

#[test]
fn lines_that_are_no_ratings_are_named_by_file_line_and_column() {
    let folder = folder("bad_ratings");
    for (bytes, expected) in [
        (
            "a,b,c\n1,2,3\n",
            "r.csv:1: no name of a column of users (rows) among `a`, `b`, `c`; name the columns user, item and \
             rating, or uid, userId, row (a line of values has a number)",
        ),
        (
            "userId,movieId,tag,genre\n1,2,fine,drama\n",
            "r.csv:1: no name of a column of values among `userId`, `movieId`, `tag`, `genre`; name the columns user, \
             item and rating, or score, stars, value (a line of values has a number)",
        ),
        (
            "user,item,rating,Rating\n1,2,3,4\n",
            "r.csv:1: two columns of values among `user`, `item`, `rating`, `Rating`; name the other one differently",
        ),
        (
            "1,2,3,4,5\n",
            "r.csv:1:9: 5 fields, and no line of names says which are row, column and value; put one first, such as \
             user,item,rating and a name for each other field",
        ),
        (
            "1,2,978300760,5\n",
            "r.csv:1:5: a time where the value is expected; put a line of names first, such as user,item,time,rating",
        ),
        (
            "{\"user\": \"A2\", \"asin\": \"B0\", \"overall\": 5.0}\n",
            "r.csv:1:1: this is JSON; write a table of user, item and rating, such as CSV",
        ),
        ("1,2\n", "r.csv:1:4: a rating has 3 fields in this file, this line has 2; complete it"),
        (
            "1,2,3\n4,5,6,7\n",
            "r.csv:2:7: a rating has 3 fields in this file, another begins here; remove it",
        ),
        ("1,2,3\n\n4,,6\n", "r.csv:3:3: this field is empty; fill it in, or remove the line"),
        ("u,i,r\n1,2,good\n", "r.csv:2:5: not a number; give a decimal value"),
        (
            "u,i,r\n1,2,nan\n",
            "r.csv:2:5: not a finite number; remove the rating or give it a value",
        ),
        (
            "u,i,r\n1,\"2,3\n4,5,6\n",
            "r.csv:2:1: a line of this rating ends within quotes; close the quote, or double it",
        ),
        ("u,i,r\n", "no rating in r.csv; give data with at least one"),
        (
            "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n",
            "r.csv:1:34: no matrix of ratings; give one that is coordinate, real or integer, general or symmetric",
        ),
    ] {
        assert_eq!(refused(&folder, "r.csv", bytes.as_bytes()), expected, "{bytes}");
    }
}

#[test]
fn data_of_another_task_is_sent_there() {
    let folder = folder("no_ratings");
    fs::create_dir_all(folder.join("graph")).expect("a folder can be made");
    ring(&folder.join("graph"));
    assert_eq!(
        said(&train(&folder, "graph")),
        "graph looks like triples (head, relation and tail a line); use it with adapm train kge"
    );
    let prose =
        "it was a bright cold day in april\nand the clocks were striking thirteen\nwinston smith\n";
    assert_eq!(
        refused(&folder, "prose.txt", prose.as_bytes()),
        "prose.txt looks like text (words); use it with adapm train wv"
    );
    let vectors: String =
        (0..30).map(|word| format!("w{word} {}\n", "0.25 -0.5 ".repeat(10))).collect();
    assert_eq!(
        refused(&folder, "vectors.txt", vectors.as_bytes()),
        "vectors.txt looks like word vectors (a word and its numbers a line); use it with adapm eval wv --load"
    );
}

#[test]
fn a_run_that_needs_more_memory_than_there_is_says_the_sum() {
    let generated =
        ["--rows", "4000000", "--columns", "1000", "--cells", "10000", "--test-cells", "10"];
    let ran = run(&[["train", "mf", "--dim", "65536"].as_slice(), &generated].concat());
    assert_refused(
        &ran,
        &[
            "this run needs at least 2097.",
            " GB: parameters 1049.",
            "the best of them 1048.",
            " are available",
            "--dim",
        ],
    );
}

#[test]
fn ratings_are_read_as_their_columns_are_named_and_names_are_kept() {
    let folder = folder("named_ratings");
    let rating = |at: usize| (at % 7, at * 5 % 11, 1 + at % 5);
    let lines = |line: &dyn Fn((usize, usize, usize)) -> String| {
        (0..60).map(rating).map(line).collect::<String>()
    };
    let plain = lines(&|(user, item, value)| format!("u{user},\"i, {item}\",{value}\n"));
    write(&folder, "plain.csv", &format!("user,item,rating\n{plain}"));
    let turned =
        lines(&|(user, item, value)| format!("{value},0;97830{item};\"i, {item}\";u{user}\n"));
    write(
        &folder,
        "turned.csv",
        &format!("stars;when;product;customer\n{turned}").replace("when", "timestamp"),
    );
    let exported = ["plain", "turned"].map(|name| {
        let (data, model) =
            (folder.join(format!("{name}.csv")), folder.join(format!("{name}.adapm")));
        let table = folder.join(format!("{name}.tsv"));
        let trained = run(&[
            "train",
            "mf",
            "--data",
            text(&data),
            "--dim",
            "2",
            "--epochs",
            "2",
            "--workers",
            "1",
            "--save",
            text(&model),
        ]);
        assert_eq!(trained.code, Some(0), "{trained:?}");
        let evaluated = run(&["eval", "mf", "--load", text(&model), "--data", text(&data)]);
        assert_eq!(evaluated.code, Some(0), "{evaluated:?}");
        let exported = run(&["export", "mf", "--load", text(&model), "--output", text(&table)]);
        assert_eq!(exported.code, Some(0), "{exported:?}");
        fs::read_to_string(table).expect("it was exported")
    });
    // What was learnt is used by the names, on other files too.
    let eval = |data: &Path, more: &[&str]| {
        let model = folder.join("plain.adapm");
        let ran =
            run(&[&["eval", "mf", "--load", text(&model), "--data", text(data)], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    assert!(eval(&folder.join("turned.csv"), &[]).contains("one in ten held out"));
    write(&folder, "new.tsv", "rating\titem\tuser\n3\ti, 5\tu1\n4\ti, 7\tu3\n1\ti, 7\tnobody\n");
    let other = eval(&folder.join("new.tsv"), &[]);
    assert!(other.contains("not the data trained on") && other.contains("3 test cells"), "{other}");
    assert!(other.contains("1 of test with a row or column unknown to train"), "{other}");
    assert_eq!(exported[0], exported[1]);
    assert!(
        exported[0].contains("row\tu0\t") && exported[0].contains("column\ti, 10\t"),
        "{}",
        exported[0]
    );
}

#[test]
fn a_named_pipe_is_read_once() {
    let folder = folder("piped_ratings");
    let pipe = folder.join("pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).expect("a pipe can be made");
    let piped = |ratings: &str, args: &[&str]| {
        let (pipe, ratings) = (pipe.clone(), ratings.to_owned());
        let writer = thread::spawn(move || fs::write(pipe, ratings));
        let mut command = adapm(args);
        let ran = finish(command.current_dir(&folder).spawn().expect("the binary starts"));
        writer.join().expect("no panic").expect("somebody reads");
        ran
    };
    let lines = |value: u32| {
        (0..60).map(|at| format!("{} {} {value}.5\n", at % 7, at * 5 % 11)).collect::<String>()
    };
    let train = ["train", "mf", "--data", "pipe", "--epochs", "1", "--dim", "2", "--save", "model"];
    let trained = piped(&lines(1), &train);
    assert_eq!(trained.code, Some(0), "{trained:?}");
    // What is wrong with it is no reason to look at it again.
    assert!(said(&piped("1 2 3\n1 2\n", &train)).starts_with("pipe:2:4: a rating has 3 fields"));
    let eval = ["eval", "mf", "--load", "model", "--data", "pipe"];
    assert!(said(&piped("1 2 3\n1 2\n", &eval)).starts_with("pipe:2:4: a rating has 3 fields"));
    // Ratings that were trained on, and others, which are gone over once more by the ids of the
    // model.
    for (value, expected) in [(1, "one in ten held out"), (2, "not the data trained on")] {
        let evaluated = piped(&lines(value), &eval);
        assert_eq!(evaluated.code, Some(0), "{evaluated:?}");
        assert!(evaluated.stdout.contains(expected), "{evaluated:?}");
    }
}
