//! `predict` of each task: answers in their forms, what is known left out, and queries that cannot
//! be answered.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Ran, adapm, assert_refused, finish, folder, ring, run, text, write};
use crate::together::objects;

/// Trains a model of the data in `folder` and returns its path.
fn trained(folder: &Path, task: &str, more: &[&str]) -> String {
    let model = text(&folder.join(format!("{task}.adapm"))).to_owned();
    let words = ["train", task, "--dim", "8", "--epochs", "2", "--workers", "1", "--save", &model];
    let ran = run(&[words.as_slice(), more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    model
}

/// Returns a model of a ring of 24 entities.
fn ringed(folder: &Path) -> String {
    ring(folder);
    trained(folder, "kge", &["--data", text(folder), "--no-eval"])
}

/// Ratings of 12 rows and 8 columns: each row has rated six of them in train and one in test.
fn rated(folder: &Path) -> String {
    let line = |row: usize, column: usize| {
        format!("u{row}\tfilm {}\t{}\n", (row + column) % 8, 1 + (row * column) % 5)
    };
    let lines = |columns: std::ops::Range<usize>| {
        let cells = (0..12).flat_map(|row| columns.clone().map(move |column| (row, column)));
        cells.map(|(row, column)| line(row, column)).collect::<String>()
    };
    write(folder, "train.txt", &lines(0..6));
    write(folder, "test.txt", &lines(6..7));
    trained(folder, "mf", &["--data", text(folder), "--no-eval"])
}

/// Returns vectors of a few words in word2vec's form.
fn vectors(folder: &Path) -> String {
    let text_of = "6 2\nsun 1 0\nmoon 3 4\nstone 0 -1\nSea 0 2\nking 1 1\nqueen 1 2\n";
    write(folder, "words.txt", text_of);
    text(&folder.join("words.txt")).to_owned()
}

#[track_caller]
fn answered(args: &[&str]) -> Ran {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// Returns the fields of each line.
fn fields(ran: &Ran) -> Vec<Vec<&str>> {
    ran.stdout.lines().map(|line| line.split('\t').collect()).collect()
}

#[test]
fn known_facts_are_left_out_unless_asked_for_and_ranks_are_those_of_eval() {
    let folder = folder("predict_kge");
    let model = ringed(&folder);
    let data = text(&folder);
    let predict = |more: &[&str]| {
        let words = ["predict", "kge", "--load", &model, "--json", "--top", "99"];
        objects(&answered(&[&words, more].concat())).remove(0)
    };
    let head = ["--head", "e3", "--relation", "next"];
    let names = |object: &Value| -> Vec<String> {
        let answers = object["answers"].as_array().expect("a list").iter();
        answers.map(|answer| answer["name"].as_str().expect("a name").to_owned()).collect()
    };
    let with_data = [&head[..], &["--data", data]].concat();
    let unknown = predict(&with_data);
    assert_eq!(names(&unknown).len(), 23, "{unknown}");
    assert!(!names(&unknown).contains(&"e4".to_owned()), "{unknown}");
    let known = predict(&[with_data.as_slice(), &["--known"]].concat());
    let is_known = |answer: &&Value| answer["known"] == true;
    let marked: Vec<&Value> =
        known["answers"].as_array().expect("a list").iter().filter(is_known).collect();
    assert_eq!((names(&known).len(), marked.len()), (24, 1), "{known}");
    assert_eq!(marked[0]["name"], "e4");
    let without = predict(&head);
    assert_eq!(names(&without).len(), 24, "{without}");
    assert_eq!(without["answers"][0]["known"], Value::Null);

    let ranks = folder.join("ranks");
    answered(&["eval", "kge", "--load", &model, "--data", data, "--ranks", text(&ranks)]);
    let ranks: Vec<u64> = fs::read_to_string(ranks)
        .expect("ranks were written")
        .lines()
        .map(|rank| rank.parse().expect("a rank"))
        .collect();
    let test = fs::read_to_string(folder.join("test.txt")).expect("it was just written");
    for (triple, ranks) in test.lines().zip(ranks.chunks(2)) {
        let [head, relation, tail] = triple.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{triple}")
        };
        let asked = ["--head", head, "--relation", relation, "--tail", tail, "--data", data];
        let judged = predict(&asked);
        let found = [&judged["tail_rank"], &judged["head_rank"]];
        assert_eq!(found.map(|rank| rank.as_u64()), [Some(ranks[0]), Some(ranks[1])], "{judged}");
        assert_eq!(judged["known"], true);
    }
}

#[test]
fn a_file_and_stdin_are_answered_line_by_line_and_each_answer_names_its_query() {
    let folder = folder("predict_lines");
    let model = ringed(&folder);
    let data = text(&folder);
    let lines = "e3\tnext\t?\n\n?\tnext\te9\ne1 previous e0\ne5\tnext\n";
    write(&folder, "queries", lines);
    let queries = folder.join("queries");
    let words = ["predict", "kge", "--load", &model, "--data", data, "--top", "2", "--queries"];
    let ran = answered(&[words.as_slice(), &[text(&queries)]].concat());
    assert_eq!(ran.stderr, "", "{ran:?}");
    let found = fields(&ran);
    let heads: Vec<String> = found.iter().map(|line| line[..4].join(" ")).collect();
    let expected = ["e3 next ? 1", "e3 next ? 2", "? next e9 1", "? next e9 2"];
    assert_eq!(heads[..4], expected, "{ran:?}");
    assert_eq!((found[4][..3].join(" "), found[4].len()), ("e1 previous e0".to_owned(), 8));
    assert_eq!((found[4][7], heads[5].as_str(), found.len()), ("yes", "e5 next ? 1", 7));
    assert!(found[..4].iter().all(|line| line[5].parse::<f32>().is_ok()), "{ran:?}");

    let mut child =
        adapm(&[words.as_slice(), &["-"]].concat()).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(lines.as_bytes()).expect("it reads");
    drop(stdin);
    assert_eq!(finish(child).stdout, ran.stdout);
    write(&folder, "nothing", "\n");
    let nothing = folder.join("nothing");
    assert_eq!(answered(&[words.as_slice(), &[text(&nothing)]].concat()).stdout, "");

    // By flags the same numbers, as a table.
    let ran = answered(&[
        "predict",
        "kge",
        "--load",
        &model,
        "--data",
        data,
        "--head",
        "e3",
        "--relation",
        "next",
    ]);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert_eq!(words[..6], ["e3", "next", "?", "rank", "name", "score"], "{ran:?}");
    assert_eq!(words[6..8], ["1", found[0][4]], "{ran:?}");
}

#[test]
fn cells_have_values_and_rows_their_highest_columns_without_those_that_are_rated() {
    let folder = folder("predict_mf");
    let model = rated(&folder);
    let words = ["predict", "mf", "--load", &model];
    let data = ["--data", text(&folder)];
    let cell = answered(&[&words[..], &["--row", "u3", "--column", "film 1", "--json"]].concat());
    let value = objects(&cell)[0]["value"].as_f64().expect("a number");
    assert!((0.0..=6.0).contains(&value) && cell.stderr.is_empty(), "{cell:?}");

    let row = [&words[..], &["--row", "u3", "--json"]].concat();
    let all = answered(&row);
    assert!(all.stderr.contains("without --data"), "{all:?}");
    let answers = |ran: &Ran| objects(ran)[0]["answers"].as_array().expect("a list").clone();
    assert_eq!(answers(&all).len(), 8, "{all:?}");
    let same = answers(&all).into_iter().find(|answer| answer["name"] == "film 1");
    assert_eq!(same.expect("it is there")["value"], value);
    // Six are in train, one in test.
    let unrated = answered(&[row.as_slice(), &data].concat());
    assert_eq!((answers(&unrated).len(), unrated.stderr.as_str()), (1, ""), "{unrated:?}");
    assert_eq!(answers(&unrated)[0]["name"], "film 2");
    let known = answered(&[row.as_slice(), &data, &["--known"]].concat());
    let rated = answers(&known).into_iter().filter(|answer| answer["known"] == true).count();
    assert_eq!((answers(&known).len(), rated), (8, 7), "{known:?}");

    write(&folder, "queries", "u3\tfilm 1\nu0\nu3\tfilm 2\n");
    let queries = folder.join("queries");
    let ran = answered(&[&words[..], &["--queries", text(&queries), "--top", "1"]].concat());
    let found = fields(&ran);
    assert_eq!(found.len(), 3, "{ran:?}");
    assert_eq!(found[0][..2], ["u3", "film 1"]);
    assert!((found[0][2].parse::<f64>().expect("a number") - value).abs() < 1e-6, "{ran:?}");
    assert_eq!(found[1][..3], ["u0", "?", "1"]);
}

#[test]
fn neighbours_and_analogies_are_answered_by_vectors_of_any_form() {
    let folder = folder("predict_wv");
    let words = vectors(&folder);
    let ran = answered(&["predict", "wv", "--load", &words, "--word", "SUN", "--top", "2"]);
    let expected = "SUN\n  rank   name   cosine\n     1   king   0.7071\n     2   moon   0.6000\n";
    assert_eq!(ran.stdout, expected);
    let asked = ["--word", "sea", "--words", "2", "--json"];
    let ran = answered(&[&["predict", "wv", "--load", &words], &asked[..]].concat());
    let expected = "{\"task\":\"wv\",\"word\":\"sea\",\"answers\":[{\"name\":\"moon\",\"cosine\":0.8},\
                    {\"name\":\"sun\",\"cosine\":0.0}]}\n";
    assert_eq!(ran.stdout, expected);
    write(&folder, "queries", "sun\nsun king moon\n");
    let queries = folder.join("queries");
    let model = trained(&folder, "wv", &["--sentences", "300", "--min-count", "1"]);
    let lines = |load: &str| {
        answered(&["predict", "wv", "--load", load, "--queries", text(&queries), "--top", "1"])
    };
    let ran = lines(&words);
    let found = fields(&ran);
    assert_eq!(found[0][..3], ["sun", "1", "king"], "{ran:?}");
    assert_eq!(found[1][..5], ["sun", "king", "moon", "1", "Sea"], "{ran:?}");

    // The same vectors in each form that is read.
    let (plain, binary) = (folder.join("plain"), folder.join("binary"));
    for (path, form) in [(&plain, "text"), (&binary, "binary")] {
        let words = ["export", "wv", "--load", &model, "--output", text(path), "--format", form];
        answered(&words);
    }
    let exported = fs::read_to_string(&plain).expect("it was just written");
    let (_, glove) = exported.split_once('\n').expect("a first line");
    write(&folder, "glove", glove);
    let of = |at: usize| glove.lines().nth(at).and_then(|line| line.split(' ').next());
    let [a, b, c] = [3, 9, 20].map(|at| of(at).expect("a word"));
    let answers = |load: &str| {
        answered(&["predict", "wv", "--load", load, "--analogy", a, b, c, "--json"]).stdout
    };
    let expected = answers(&model);
    for path in [plain, binary, folder.join("glove")] {
        assert_eq!(answers(text(&path)), expected, "{}", path.display());
    }
}

#[test]
fn objects_have_the_names_that_programs_read() {
    let folder = folder("predict_json");
    let (kge, words) = (ringed(&folder), vectors(&folder));
    let ratings = folder.join("ratings");
    fs::create_dir(&ratings).expect("a folder can be made");
    let mf = rated(&ratings);
    let keys = |object: &Value| -> BTreeSet<String> {
        object.as_object().expect("an object").keys().cloned().collect()
    };
    let set = |names: &str| names.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    for (args, names, answer) in [
        (
            vec!["kge", "--load", &kge, "--head", "e1", "--relation", "next"],
            "task head relation tail answers entities frequency_weight data",
            "name score known",
        ),
        (
            vec!["kge", "--load", &kge, "--head", "e1", "--relation", "next", "--tail", "e2"],
            "task head relation tail tail_score tail_rank head_score head_rank known entities \
             frequency_weight data",
            "",
        ),
        (
            vec!["mf", "--load", &mf, "--row", "u1"],
            "task row column answers data",
            "name value known",
        ),
        (
            vec!["mf", "--load", &mf, "--row", "u1", "--column", "film 0"],
            "task row column value data",
            "",
        ),
        (vec!["wv", "--load", &words, "--word", "sun"], "task word answers", "name cosine"),
        (
            vec!["wv", "--load", &words, "--analogy", "sun", "moon", "sea"],
            "task analogy answers",
            "name cosine",
        ),
    ] {
        let ran = answered(&[&["predict"], args.as_slice(), &["--json"]].concat());
        let object = objects(&ran).remove(0);
        assert_eq!(keys(&object), set(names), "{args:?}");
        assert_eq!(object["task"], args[0]);
        if !answer.is_empty() {
            assert_eq!(keys(&object["answers"][0]), set(answer), "{args:?}");
        }
    }
}

#[test]
fn queries_that_cannot_be_answered_are_refused_in_one_line() {
    let folder = folder("predict_refused");
    let (kge, words) = (ringed(&folder), vectors(&folder));
    let ratings = folder.join("ratings");
    fs::create_dir(&ratings).expect("a folder can be made");
    let mf = rated(&ratings);
    write(&folder, "bad", "e1\tnext\t?\n\ne1\te2\tnext\tx\n");
    write(&folder, "unknown", "e1\tnext\t?\ne1\tnxt\t?\n");
    write(&folder, "open", "?\tnext\t?\n");
    let at = |name: &str| text(&folder.join(name)).to_owned();
    let (bad, unknown, open, nosuch) = (at("bad"), at("unknown"), at("open"), at("nosuch"));
    let bad_line = format!("{bad}:3: give head, relation and tail");
    let unknown_line = format!("{unknown}:2: no relation nxt in {kge}; did you mean next");
    let open_line = format!("{open}:1: give head, relation and tail");
    for (args, words) in [
        (vec!["kge", "--load", &kge], vec!["nothing is asked", "--relation", "--queries"]),
        (vec!["mf", "--load", &mf], vec!["nothing is asked", "--row", "--queries"]),
        (vec!["wv", "--load", &words], vec!["nothing is asked", "--word", "--queries"]),
        (vec!["kge", "--load", &kge, "--head", "e1"], vec!["give --relation with --head"]),
        (vec!["kge", "--load", &kge, "--relation", "next"], vec!["give --relation with --head"]),
        (vec!["mf", "--load", &mf, "--column", "film 1"], vec!["give --row"]),
        (vec!["wv", "--load", &words, "--analogy", "sun", "moon"], vec!["3 values"]),
        (vec!["wv", "--load", &words, "--word", "a", "--queries", "b"], vec!["cannot be used"]),
        (
            vec!["kge", "--load", &kge, "--head", "e99", "--relation", "next"],
            vec!["no entity e99 in ", "(--head)", "did you mean e9"],
        ),
        (
            vec!["kge", "--load", &kge, "--tail", "e1", "--relation", "previos"],
            vec!["no relation previos", "(--relation)", "did you mean previous"],
        ),
        (vec!["mf", "--load", &mf, "--row", "u77"], vec!["no row u77", "(--row)", "u7"]),
        (
            vec!["mf", "--load", &mf, "--row", "u7", "--column", "flim 2"],
            vec!["no column flim 2", "(--column)", "film 2"],
        ),
        (
            vec!["wv", "--load", &words, "--analogy", "sun", "mon", "sea"],
            vec!["no word mon", "(--analogy)", "moon"],
        ),
        (vec!["kge", "--load", &mf, "--queries", &bad], vec![&bad_line]),
        (vec!["kge", "--load", &kge, "--queries", &open], vec![&open_line]),
        (vec!["kge", "--load", &kge, "--queries", &unknown], vec![&unknown_line]),
        (
            vec!["kge", "--load", &kge, "--queries", &nosuch],
            vec!["cannot read", &nosuch, "no such file"],
        ),
        (vec!["kge", "--load", &mf, "--head", "a", "--relation", "b"], vec!["of task mf"]),
        (vec!["mf", "--load", &kge, "--row", "a"], vec!["of task kge"]),
        (vec!["wv", "--load", &kge, "--word", "a"], vec!["of task kge"]),
        (vec!["mf", "--load", &nosuch, "--row", "a"], vec![&nosuch, "(--load)", "no such file"]),
        (vec!["mf", "--load", &words, "--row", "a"], vec!["is no checkpoint of adapm"]),
        (
            vec!["kge", "--load", &kge, "--head", "e1", "--relation", "next", "--top", "0"],
            vec!["--top 0", "at least 1"],
        ),
        (
            vec!["kge", "--load", &kge, "--head", "e1", "--relation", "next", "--data", &nosuch],
            vec![&nosuch],
        ),
    ] {
        assert_refused(&run(&[&["predict"], args.as_slice()].concat()), &words);
    }
}

#[test]
fn damaged_models_and_other_data_are_refused_and_nothing_is_answered() {
    let folder = folder("predict_damaged");
    let kge = ringed(&folder);
    let ratings = folder.join("ratings");
    fs::create_dir(&ratings).expect("a folder can be made");
    let mf = rated(&ratings);
    let of_kge = ["--head", "e1", "--relation", "next"];
    let damaged = folder.join("damaged");
    for (task, model, query) in [("kge", &kge, &of_kge[..]), ("mf", &mf, &["--row", "u1"])] {
        let whole = fs::read(model).expect("it was just written");
        for len in [0, 5, 20, 100, whole.len() / 2, whole.len() - 1] {
            fs::write(&damaged, &whole[..len]).expect("a file can be written");
            let words = ["predict", task, "--load", text(&damaged)];
            assert_refused(&run(&[&words, query].concat()), &[text(&damaged)]);
        }
        for at in [9, 30, 40, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 0x41;
            fs::write(&damaged, &changed).expect("a file can be written");
            let words = ["predict", task, "--load", text(&damaged), "--check"];
            assert_refused(&run(&[&words, query].concat()), &[text(&damaged)]);
        }
    }
    // The last relation, which is not asked for, is read for the checksum alone.
    let mut changed = fs::read(&kge).expect("it was just written");
    let at = changed.len() - 9;
    changed[at] ^= 1;
    fs::write(&damaged, &changed).expect("a file can be written");
    let ran = run(&[&["predict", "kge", "--load", text(&damaged)], &of_kge[..]].concat());
    assert_refused(&ran, &["is damaged"]);

    let other = folder.join("other");
    fs::create_dir(&other).expect("a folder can be made");
    ring(&other);
    let same = [&["predict", "kge", "--load", &kge, "--data", text(&other)], &of_kge[..]].concat();
    assert_eq!(run(&same).code, Some(0));
    write(&other, "train.txt", "e1\tnext\te2\ne2\tnext\te3\n");
    assert_refused(&run(&same), &["other data", "give the data it was trained on"]);
}
