//! `--trace-keys` and `trace`: from a run to a picture, and the errors for files that are no
//! traces.

use std::fs;
use std::path::Path;

use crate::harness::{assert_refused, folder, ring, run, text, write};

/// Two nodes, one traced key; every column of the summary is known.
const TOLD: &str = "\
adapm trace 2
nodes 2
system adapm
origin 10
key k7 the <odd> & \"only\" one
0 k7 n0 main-arrived
0 mark epoch 1
15000000 k7 n1 intent-active
30000000 k7 n0 main-left n1
30000000 k7 n1 main-arrived
40000000 k7 n0 intent-active
45000000 k7 n0 replica-set-up n1
54000000 k7 n0 intent-expired
54000000 k7 n0 replica-dropped
60000000 end
";

fn train<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed =
        ["train", "kge", "--data", data, "--dim", "8", "--epochs", "2", "--negative-count", "4"];
    [fixed.as_slice(), more].concat()
}

#[test]
fn a_traced_run_can_be_shown_and_drawn() {
    let folder = folder("traced_run");
    ring(&folder);
    let (file, picture) = (folder.join("run.trace"), folder.join("run.svg"));
    let keys = ["--trace-keys", text(&file), "--trace", "entity:e3,relation:next,key:0"];
    let ran = run(&train(
        text(&folder),
        &[&["--nodes", "2", "--workers", "1"], keys.as_slice()].concat(),
    ));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(&format!(" events of 3 keys are in {}\n", text(&file))), "{ran:?}");

    let shown = run(&["trace", text(&file)]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let wanted = [
        "adapm on 2 nodes, ",
        "epoch 1 at ",
        " entity e3, in 4 of 42 triples\n",
        " relation next, in 24 of 42 triples\n",
        "\n  n0   ",
        "\n  n1   ",
    ];
    for wanted in wanted {
        assert!(shown.stdout.contains(wanted), "no {wanted:?} in {}", shown.stdout);
    }
    assert!(!shown.stdout.contains("cut off"), "{}", shown.stdout);

    let drawn = run(&["trace", text(&file), "--svg", text(&picture)]);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    let svg = fs::read_to_string(&picture).expect("the picture is there");
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for words in ["main copy", "relation next, in 24 of 42 triples", "seconds since the start"] {
        assert!(svg.contains(words), "no {words:?} in the picture");
    }
}

#[test]
fn a_traced_run_learns_the_same() {
    let folder = folder("traced_same");
    ring(&folder);
    let file = folder.join("run.trace");
    let learned = |name: &str, more: &[&str]| {
        let model = folder.join(name);
        let topology = ["--nodes", "1", "--workers", "1", "--save", text(&model)];
        let ran = run(&train(text(&folder), &[topology.as_slice(), more].concat()));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        fs::read(&model).expect("the parameters were kept")
    };
    let plain = learned("plain", &[]);
    assert!(plain == learned("traced", &["--trace-keys", text(&file)]), "parameters differ");
    assert!(file.exists());
}

#[test]
fn each_process_writes_its_part_and_trace_puts_them_together() {
    let folder = folder("traced_processes");
    ring(&folder);
    let file = folder.join("run.trace");
    let command =
        train(text(&folder), &["--workers", "1", "--no-eval", "--trace-keys", text(&file)]);
    let ran = run(&[["launch", "--nodes", "2", "--"].as_slice(), &command].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = run(&["trace", text(&file)]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.starts_with("adapm on 2 nodes, ") && !shown.stdout.contains("missing"),
        "{shown:?}"
    );
    let both = [folder.join("run.trace.n1"), folder.join("run.trace.n0")];
    assert_eq!(run(&["trace", text(&both[0]), text(&both[1])]).stdout, shown.stdout);

    let one = run(&["trace", text(&both[1])]);
    assert!(one.stdout.contains("its part is missing"), "{one:?}");
    assert_refused(
        &run(&["trace", text(&both[1]), text(&both[1])]),
        &["two of the files are of n0"],
    );
    fs::remove_file(&both[0]).expect("it is ours");
    assert_refused(&run(&["trace", text(&file)]), &["no part of n1: copy ", "run.trace.n1"]);
}

#[test]
fn a_trace_is_summed_up_to_the_column() {
    let folder = folder("traced_told");
    write(&folder, "told.trace", TOLD);
    let file = folder.join("told.trace");
    let expected = "\
adapm on 2 nodes, 60 ms, 8 events of 1 key
  epoch 1 at 0 s

k7 the <odd> & \"only\" one
       main copy   times   replica   times    intent   0 s                                                      60 ms
  n0     50.00 %       1   15.00 %       1   23.33 %   |MMMMMMMMMMMMMMMMMMMMMMMMMMMMMM          .....RRRRRRRRR      |
  n1     50.00 %       1    0.00 %       0   75.00 %   |               ...............MMMMMMMMMMMMMMMMMMMMMMMMMMMMMM|

  M main copy, R replica for at least half of a column's time, m and r for less; . intent but no copy
";
    assert_eq!(run(&["trace", text(&file)]).stdout, expected);

    let part = run(&["trace", text(&file), "--from", "0.030", "--until", "0.050"]);
    assert!(part.stdout.starts_with("adapm on 2 nodes, 0.030 s to 0.050 s of 60 ms, "), "{part:?}");
    assert!(part.stdout.contains("  n1    100.00 %"), "{part:?}");
    let picture = folder.join("told.svg");
    assert_eq!(run(&["trace", text(&file), "--svg", text(&picture)]).code, Some(0));
    let svg = fs::read_to_string(picture).expect("the picture is there");
    assert!(
        svg.contains("the &lt;odd&gt; &amp; ") && !svg.contains("<odd>"),
        "names are text: {svg}"
    );
}

#[test]
fn what_is_no_trace_or_no_key_is_refused() {
    let folder = folder("traced_bad");
    ring(&folder);
    let told = |name: &str, tale: &str| {
        write(&folder, name, tale);
        run(&["trace", text(&folder.join(name))])
    };
    assert_refused(
        &told("csv", "a,b\n"),
        &["csv is not a trace; give a file written by --trace-keys"],
    );
    let impossible = TOLD.replace("main-left n1", "replica-dropped");
    assert_refused(&told("edited", &impossible), &["edited:9: cannot follow the event before"]);
    assert_refused(&told("empty", ""), &["empty is not a trace"]);
    assert_refused(
        &run(&["trace", text(&folder.join("none"))]),
        &["cannot read ", "none: no such file"],
    );
    assert_refused(&run(&["trace"]), &["<FILE>"]);
    write(&folder, "told.trace", TOLD);
    let file = folder.join("told.trace");
    assert_refused(
        &run(&["trace", text(&file), "--from", "1"]),
        &["--from and --until", "ends at 0.060 s"],
    );
    assert_refused(&run(&["trace", text(&file), "--from", "-1"]), &["--from", "-1"]);
    write(&folder, "wide.trace", &TOLD.replace("nodes 2", "nodes 65536"));
    let (wide, out) = (folder.join("wide.trace"), folder.join("wide.svg"));
    let drawn = run(&["trace", text(&wide), "--svg", text(&out)]);
    assert_refused(&drawn, &["65536 rows are too many for a picture, at most 10000"]);
    let nowhere = folder.join("no/such/folder.svg");
    assert_refused(
        &run(&["trace", text(&file), "--svg", text(&nowhere)]),
        &["cannot write", "--svg"],
    );

    let refused = |more: &[&str], words: &[&str]| {
        let ran = run(&train(text(&folder), more));
        assert_refused(&ran, words);
    };
    let out = folder.join("run.trace");
    let traced = |keys| ["--trace-keys", text(&out), "--trace", keys];
    refused(&traced("entity:nobody"), &["no entity nobody in the data", "(--trace)"]);
    refused(&traced("key:99999"), &["no key 99999; keys are 0 to 25"]);
    refused(&traced("nobody"), &["nobody", "entity:NAME, relation:NAME or key:NUMBER"]);
    refused(&["--trace", "key:0"], &["--trace-keys"]);
    refused(&["--trace-keys", text(&nowhere)], &["cannot write", "--trace-keys"]);
    assert!(!Path::new(&out).exists(), "what was refused leaves no file");
}
