//! The exact messages of bad input: what, where and what to do, in words of the command line.

use std::fs;
use std::path::Path;

use crate::harness::{Ran, folder, ring, run, text, write};

/// Names of files, and their bytes.
type Files<'a> = &'a [(&'a str, &'a [u8])];

/// Checks that a run was refused with this line, in which `DIR` stands for `folder`.
#[track_caller]
fn assert_message(ran: &Ran, folder: &Path, message: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert_eq!(ran.stderr.replace(text(folder), "DIR"), format!("error: {message}\n"));
}

#[test]
fn hot_keys_that_cannot_be_are_refused() {
    let folder = folder("hot_refused");
    ring(&folder);
    write(&folder, "none.txt", "\n");
    write(&folder, "words.txt", "1\n\nsun\n");
    write(&folder, "far.txt", "2\n3000\n");
    let (none, words, far) =
        (folder.join("none.txt"), folder.join("words.txt"), folder.join("far.txt"));
    let of = |system: &str, flags: &[&str]| {
        let all = ["train", "kge", "--data", text(&folder), "--nodes", "2", "--system", system];
        run(&[&all, flags].concat())
    };
    let told = |flags: &[&str], message: &str| {
        assert_message(&of("nups", flags), &folder, message);
        assert_message(&of("parallax", flags), &folder, message);
    };
    told(&["--replicate", "0"], "--replicate 0: give a whole number of at least 1");
    told(&["--replicate-factor", "0"], "--replicate-factor 0: give a positive number");
    told(
        &["--replicate", "2", "--replicate-factor", "3"],
        "--replicate 2: give either this or replicate-factor",
    );
    let gone = folder.join("gone.txt");
    told(
        &["--replicate-keys", text(&gone)],
        "cannot read DIR/gone.txt (--replicate-keys): no such file; check the path",
    );
    told(
        &["--replicate-keys", text(&none)],
        "DIR/none.txt lists no key; give one number a line (--replicate-keys)",
    );
    told(
        &["--replicate-keys", text(&words)],
        "DIR/words.txt:3: sun is not the number of a key; give one number a line (--replicate-keys)",
    );
    // How many keys there are follows from the data.
    let ran = of("nups", &["--replicate-keys", text(&far)]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let place = format!("{}:2: there is no key 3000: keys are 0 to ", text(&far));
    assert!(ran.stderr.contains(&place), "{ran:?}");
    let ran = of("nups", &["--replicate", "3000"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let told = "--replicate 3000: give a whole number from 1 to ";
    assert!(ran.stderr.contains(told), "{ran:?}");
    for system in ["adapm", "lapse", "full", "classic", "none"] {
        for (flag, value) in [("--replicate", "3"), ("--replicate-factor", "2")] {
            let all = ["train", "kge", "--data", text(&folder), "--system", system, flag, value];
            let message =
                format!("{flag} {value}: only nups and parallax have hot keys; leave it out");
            assert_message(&run(&all), &folder, &message);
        }
    }
}

#[test]
fn bounds_that_nothing_keeps_are_refused() {
    let folder = folder("bound_refused");
    ring(&folder);
    let told = |flags: &[&str], message: &str| {
        let all = [&["train", "kge", "--data", text(&folder)], flags].concat();
        assert_message(&run(&all), &folder, message);
    };
    told(&["--system", "none", "--bound", "0"], "--bound needs a system, not none: leave it out");
    for (system, nodes) in [("bsp", "1"), ("ssp:3", "2")] {
        told(
            &["--nodes", nodes, "--system", system, "--bound", "1"],
            &format!("--bound: {system} has a bound of its own; leave it out"),
        );
    }
    told(
        &["--nodes", "2", "--clock-every", "5"],
        "--clock-every: nothing bounds how far workers are apart; give --bound, or leave it out",
    );
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let of = |flags: &[&str]| run(&[&["tune", "nups", "kge"], flags].concat());
    let nowhere = Path::new("/no/such/folder");
    assert_message(
        &of(&[]),
        nowhere,
        "tune needs several nodes, as one has all keys: give --nodes 2 or more",
    );
    assert_message(
        &of(&["--nodes", "2", "--replicate", "3"]),
        nowhere,
        "tune chooses what is hot: leave out --replicate and its like",
    );
    assert_message(
        &of(&["--nodes", "2", "--save", "model"]),
        nowhere,
        "tune trains parts of epochs and keeps nothing: leave out --save, --out and --trace-keys",
    );
    for (flags, told) in [
        (&["--print-config"][..], "tune prints what it finds: leave out --print-config"),
        (
            &["--localize-ahead", "4"],
            "tune chooses how far ahead keys are localized: leave out --localize-ahead",
        ),
        (&["--system", "full"], "tune nups is of nups: leave out --system"),
        (
            &["--homes", "/no/such/homes.prt"],
            "cannot read /no/such/homes.prt (--homes): no such file; check the path",
        ),
    ] {
        assert_message(&of(&[&["--nodes", "2"], flags].concat()), nowhere, told);
    }
    let recipes = of(&["--recipe"]);
    assert_eq!(recipes.code, Some(0), "{recipes:?}");
    assert!(recipes.stdout.contains("recipes of train kge"), "{recipes:?}");
}

#[test]
fn impossible_values_are_named_with_the_flag_as_it_was_typed() {
    let whole = "give a whole number from 1 to 65536";
    let cases: [(&str, &str, &str, &str); 31] = [
        ("kge", "--dim", "3", "the model complex needs an even dimension"),
        ("kge", "--dim", "0", whole),
        ("kge", "--dim", "65538", whole),
        ("kge", "--learning-rate", "nan", "give a positive number"),
        ("kge", "--learning-rate", "0e0", "give a positive number"),
        ("kge", "--learning-rate", "inf", "give a positive number"),
        ("kge", "--initial-deviation", "-1e-3", "give a positive number"),
        ("kge", "--n3", "-1", "give 0 or a positive number"),
        ("kge", "--l2-entity", "NaN", "give 0 or a positive number"),
        ("kge", "--l2-relation", "inf", "give 0 or a positive number"),
        ("kge", "--localize-ahead", "0", "give a whole number of at least 1"),
        ("kge", "--negative-count", "2000000", "give a whole number from 1 to 1048576"),
        ("kge", "--chunk", "65537", whole),
        ("mf", "--dim", "0", whole),
        ("mf", "--learning-rate", "-inf", "give a positive number"),
        ("mf", "--l2", "-1", "give 0 or a positive number"),
        ("mf", "--initial-deviation", "0", "give a positive number"),
        ("mf", "--rank", "0", "give a whole number from 1 to 1024"),
        ("mf", "--rows", "0", "give a whole number from 1 to 4294967295"),
        ("mf", "--columns", "4000000000", "give a whole number from 1 to 268435456"),
        ("mf", "--cells", "600000", "give a whole number from 1 to 500000"),
        ("mf", "--test-cells", "1000000000", "give a whole number from 0 to 268435456"),
        ("mf", "--noise", "nan", "give 0 or a positive number"),
        ("wv", "--dim", "100000", whole),
        ("wv", "--learning-rate", "-0.5", "give a positive number"),
        ("wv", "--window", "0", "give a whole number from 1 to 65535"),
        ("wv", "--ahead", "0", "give a whole number of at least 1"),
        ("wv", "--sample", "2", "give a share, from 0 to 1"),
        ("wv", "--sample", "-1e-3", "give a share, from 0 to 1"),
        ("wv", "--sample", "nan", "give a share, from 0 to 1"),
        ("wv", "--negatives", "501", "give a whole number from 0 to 500"),
    ];
    for (task, flag, value, wanted) in cases {
        let ran = run(&["train", task, &format!("{flag}={value}")]);
        assert_message(&ran, Path::new("nothing"), &format!("{flag} {value}: {wanted}"));
    }
}

#[test]
fn words_that_are_no_value_are_named_the_same_way() {
    let cases: [(&[&str], &str, &str, &str); 13] = [
        (&["train", "kge"], "--epochs", "0", "give a whole number of at least 1"),
        (&["train", "kge"], "--epochs", "-1", "give a whole number of at least 1"),
        (&["train", "kge"], "--chunk", "0", "give a whole number of at least 1"),
        (&["train", "kge"], "--seed", "-1", "give a whole number"),
        (&["train", "kge"], "--seed", "1.5", "give a whole number"),
        (&["train", "kge"], "--seed", "99999999999999999999", "give a smaller whole number"),
        (&["train", "kge"], "--n3", "much", "give a number"),
        (&["train", "mf"], "--rows", "-5", "give a whole number from 0 to 4294967295"),
        (&["train", "wv"], "--window", "70000", "give a whole number from 0 to 65535"),
        (&["train", "wv"], "--sentences", "0", "give a whole number from 1 to 100000000"),
        (&["train", "wv"], "--min-count", "-1", "give a whole number"),
        (&["demo"], "--dim", "-8", "give a whole number"),
        (&["simulate"], "--compute", "nan", "give a number from 0.01 to 100"),
    ];
    for (verb, flag, value, wanted) in cases {
        let ran = run(&[verb, &[flag, value]].concat());
        let help = format!("see `adapm {} --help`", verb.join(" "));
        assert_message(&ran, Path::new("nothing"), &format!("{flag} {value}: {wanted}; {help}"));
    }
}

/// Checks the errors for folders of these names and files, given as graphs.
#[track_caller]
fn assert_graphs(folder: &Path, cases: &[(&str, Files<'_>, &str)]) {
    for (name, files, message) in cases {
        let data = folder.join(name);
        fs::create_dir(&data).expect("a folder can be made");
        for (name, bytes) in *files {
            fs::write(data.join(name), bytes).expect("a file can be written");
        }
        assert_message(&run(&["train", "kge", "--data", text(&data)]), folder, message);
    }
}

#[test]
fn triples_that_cannot_be_read_are_named_with_place_and_remedy() {
    let folder = folder("refused_triples");
    let wide = |text: &str| -> Vec<u8> {
        let units = [0xfeff].into_iter().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    let cases: [(&str, Files<'_>, &str); 7] = [
        (
            "utf16",
            &[("train.txt", &wide("a\tr\tb\n"))],
            "DIR/utf16/train.txt is UTF-16 text; convert it to UTF-8: iconv -f UTF-16 -t UTF-8 DIR/utf16/train.txt > DIR/utf16/train.utf8.txt",
        ),
        (
            "latin",
            &[("train.txt", b"a\tr\tcaf\xe9\n")],
            "DIR/latin/train.txt:1:8: the byte E9 is not UTF-8; convert the file from its encoding, such as: iconv -f WINDOWS-1252 -t UTF-8 DIR/latin/train.txt > DIR/latin/train.utf8.txt",
        ),
        (
            "empty",
            &[("train.txt", b"\n")],
            "no triple in DIR/empty/train.txt; give data with at least one",
        ),
        (
            "two",
            &[("train.txt", b"a r b\n\na r\n")],
            "DIR/two/train.txt:3:4: a triple has three fields, this line has 2; separate them by tabs, spaces or commas",
        ),
        (
            "four",
            &[("train.tsv", b"a\tr\tb\n"), ("dev.tsv", b"a\tr\tb\tc\n")],
            "DIR/four/dev.tsv:1:7: a triple has three fields, a fourth begins here; use tabs if names contain spaces",
        ),
        (
            "quote",
            &[("train.csv", b"a,r,b\na,\"r,b\nc,r,d\n")],
            "DIR/quote/train.csv:2:4: a name holds a tab or the end of a line; close the quote before it, or remove it",
        ),
        (
            "header",
            &[("train.csv", b"head,relation,tail,weight\na,r,b,1\na,r,b\n")],
            "DIR/header/train.csv:3:6: the first line names 4 columns, this line has 3; give it as many",
        ),
    ];
    assert_graphs(&folder, &cases);
}

#[test]
fn graphs_whose_files_are_not_those_that_are_looked_for_are_refused_with_a_remedy() {
    let folder = folder("refused_graphs");
    let cases: [(&str, Files<'_>, &str); 4] = [
        (
            "none",
            &[("entity.txt", b"a\n")],
            "no train.txt, train.tsv, train.csv or train.del, nor one of them with .gz, in DIR/none; give the folder that holds them, or one file of triples",
        ),
        (
            "htr",
            &[("train.txt", b"a b likes\nb c likes\nc a knows\n")],
            "the columns of DIR/htr/train.txt look like h t r; give the column order, htr or hrt (--column-order)",
        ),
        (
            "openke",
            &[("train2id.txt", b"1\n0 1 0\n")],
            "DIR/openke/train2id.txt is OpenKE's, its columns are h t r; read it in the column order htr (--column-order htr)",
        ),
        (
            "ids",
            &[("train.del", b"0\t0\tx\n")],
            "DIR/ids/train.del:1:5: not a decimal id; name the file .txt or .tsv if it holds names",
        ),
    ];
    assert_graphs(&folder, &cases);
    ring(&folder);
    assert_message(
        &run(&["train", "kge", "--data", text(&folder.join("train.txt"))]),
        &folder,
        "DIR/train.txt is one part of a graph, valid.txt is another; give the folder DIR",
    );
    assert_message(
        &run(&["train", "kge", "--data", text(&folder), "--data-seed", "2"]),
        &folder,
        "DIR is a folder, whose parts no seed chooses; leave --data-seed out, or give one file",
    );
}

#[test]
fn texts_and_vectors_from_which_nothing_comes_are_named_with_place_and_remedy() {
    let folder = folder("messages_wv");
    write(&folder, "lines", &"the\nsun\nis\na\nstar\n".repeat(9));
    write(&folder, "rare", "the sun is a star\n");
    fs::write(folder.join("text.bz2"), b"BZh91AY&SY and more").expect("a file can be written");
    write(&folder, "sentences", "the sun is a star\n");
    let [lines, rare, packed, sentences] =
        ["lines", "rare", "text.bz2", "sentences"].map(|name| folder.join(name));
    let train = |data: &Path, more: &[&str]| {
        run(&[&["train", "wv", "--no-eval", "--data", text(data)], more].concat())
    };
    assert_message(
        &train(&lines, &[]),
        &folder,
        "nothing to train on: no line of DIR/lines has two words that occur 5 times or more; write a sentence a line, or give a lower minimum count (--min-count)",
    );
    assert_message(
        &train(&rare, &[]),
        &folder,
        "nothing to train on: 0 words of DIR/rare occur 5 times or more, 2 are needed; give more text, or a lower minimum count (--min-count)",
    );
    assert_message(
        &train(&packed, &[]),
        &folder,
        "DIR/text.bz2 is a bzip2 file, not text; unpack it: bunzip2 -k DIR/text.bz2",
    );
    assert_message(
        &run(&["eval", "wv", "--load", text(&sentences)]),
        &folder,
        "DIR/sentences: the first line is neither `words dimension` (word2vec) nor a word and its numbers (GloVe); give a file of vectors",
    );
}
