//! Models of all tasks in files: evaluations of them on any number of nodes, and damage.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};

use crate::graphs::rings;
use crate::harness::{assert_refused, folder, run, text, write};
use crate::together::{launch, object, succeeded};

/// Trains a small model of each task and returns them.
pub(crate) fn models(folder: &Path) -> [(&'static str, String); 5] {
    let few = |task: &str| -> &[&str] {
        match task {
            "kge" => &["--model", "rescal", "--reciprocal", "--negative-count", "4", "--no-eval"],
            "mf" => &["--rows", "30", "--columns", "20", "--cells", "150", "--test-cells", "20"],
            "wv" => &["--sentences", "100", "--min-count", "1", "--no-eval"],
            "ctr" => &["--examples", "200", "--test-examples", "50", "--features", "1000"],
            _ => &["--features", "learned", "--graph-nodes", "200"],
        }
    };
    ["kge", "mf", "wv", "ctr", "gnn"].map(|task| {
        let model = text(&folder.join(task)).to_owned();
        let words = ["train", task, "--dim", "4", "--epochs", "1", "--save", &model];
        let ran = run(&[&words[..], few(task)].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (task, model)
    })
}

/// Returns the words of an evaluation of a model of [`models`].
fn eval<'a>(task: &'a str, model: &'a str) -> Vec<&'a str> {
    let data: &[&str] = match task {
        "mf" => &["--rows", "30", "--columns", "20", "--cells", "150", "--test-cells", "20"],
        "gnn" => &["--graph-nodes", "200"],
        _ => &[],
    };
    [&["eval", task, "--load", model, "--workers", "1"][..], data].concat()
}

/// Returns the figures of an evaluation.
fn figures(args: &[&str]) -> Map<String, Value> {
    let Value::Object(mut object) = object(args) else { panic!("an object") };
    object.retain(|name, _| FIGURES.contains(&name.as_str()));
    object
}

/// Those of all tasks.
const FIGURES: [&str; 10] = [
    "mrr",
    "hits_at_1",
    "hits_at_10",
    "rmse",
    "mae",
    "accuracy",
    "accuracy_of_all",
    "auc",
    "log_loss",
    "calibration",
];

#[test]
fn an_evaluation_finds_the_same_in_one_process_or_several_and_in_a_compressed_file() {
    let folder = folder("saved_eval");
    let compressed = folder.join("compressed");
    for (task, model) in models(&folder) {
        let json = [&eval(task, &model)[..], &["--json"]].concat();
        let expected = figures(&json);
        assert!(expected.len() > 1, "{expected:?}");
        for more in [["--nodes", "2"], ["--system", "none"]] {
            assert_eq!(figures(&[&json[..], &more].concat()), expected, "{task} {more:?}");
        }
        assert_eq!(figures(&launch(&["--nodes", "2"], &json)), expected, "{task}");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&fs::read(&model).expect("it was saved")).expect("memory takes it");
        fs::write(&compressed, encoder.finish().expect("memory takes it")).expect("can be written");
        let json = [&eval(task, text(&compressed))[..], &["--json", "--nodes", "2"]].concat();
        assert_eq!(figures(&json), expected, "{task}");
    }
}

#[test]
fn damage_of_a_model_is_told_before_anything_is_evaluated_or_written() {
    let folder = folder("saved_damage");
    let [damaged, out] = ["damaged", "out"].map(|name| folder.join(name));
    let (damaged, out) = (text(&damaged), text(&out));
    for (task, model) in models(&folder) {
        let whole = fs::read(&model).expect("it was saved");
        let changed = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let cut = whole[..whole.len() - 3].to_vec();
        for (bytes, why) in [
            (changed(whole.len() / 2), "is damaged; save it again"),
            (changed(whole.len() - 9), "is damaged; save it again"),
            (cut, "ends early; save it again"),
        ] {
            fs::write(damaged, bytes).expect("a file can be written");
            for nodes in ["1", "2"] {
                let ran = run(&[&eval(task, damaged)[..], &["--nodes", nodes]].concat());
                assert_refused(&ran, &[damaged, why]);
                assert_eq!(ran.stdout, "", "{task}");
            }
            for form in [&["--format", "npy", "--table", table_of(task)][..], &[]] {
                let words = ["export", task, "--load", damaged, "--output", out];
                assert_refused(&run(&[&words[..], form].concat()), &[damaged, why]);
                assert!(!Path::new(out).exists(), "{task} left a file");
            }
        }
    }
}

#[test]
fn a_prediction_of_clicks_or_nodes_reads_what_it_needs_and_all_if_that_is_asked_for() {
    let folder = folder("saved_share");
    let [clicks, new, other, clicks_model, nodes_model] =
        ["shop.csv", "new.csv", "other.csv", "clicks", "nodes"].map(|name| folder.join(name));
    let row = |at: usize| format!("{},{},{}\n", at % 7, ["a", "b", "c"][at % 3], at * 5 % 7 / 4);
    let table: String = (0..200).map(row).collect();
    write(&folder, "shop.csv", &format!("size,colour,bought\n{table}"));
    write(&folder, "new.csv", "size,colour\n1,a\n2,c\n");
    write(&folder, "other.csv", "size,colour\n1,a\n2,b\n");
    rings(&folder);
    let schema = ["--schema", "size:cat,colour:cat,bought:label"];
    let train = |task: &str, data: &str, model: &str, more: &[&str]| {
        let words = ["train", task, "--data", data, "--dim", "4", "--epochs", "1", "--save", model];
        succeeded(&[&words[..], more].concat());
    };
    train("ctr", text(&clicks), text(&clicks_model), &schema);
    train("gnn", text(&folder), text(&nodes_model), &["--features", "learned"]);

    let graph = text(&folder);
    let [new, other] = [&new, &other].map(|path| text(path));
    // A row that is spoilt: of a feature, which the first file has not, or of a node in the ring
    // where the first one is not.
    for (task, model, table, (spoilt, width), [first, second]) in [
        ("ctr", &clicks_model, "embeddings", ("colour b", 4), [["--data", new], ["--data", other]]),
        ("gnn", &nodes_model, "nodes", ("21", 4), [["--node", "0"], ["--node", "21"]]),
    ] {
        let [numbers, names] = ["numbers", "names"].map(|name| folder.join(name));
        let files = ["--output", text(&numbers), "--names", text(&names)];
        let words = ["export", task, "--load", text(model), "--format", "npy", "--table", table];
        succeeded(&[&words[..], &files].concat());
        let names = fs::read_to_string(names).expect("it was written");
        let at = names.lines().position(|name| name == spoilt).expect("it has a name");
        let (numbers, len) = (fs::read(numbers).expect("it was written"), 4 * width);
        let from = numbers.len() - names.lines().count() * len + at * len;
        let mut file = fs::read(model).expect("it was saved");
        let row = &numbers[from..from + len];
        let place = file.windows(len).position(|window| window == row).expect("it is there");
        let data: &[&str] = if task == "gnn" { &["--data", graph] } else { &[] };
        let predict = |more: &[&str]| {
            run(&[&["predict", task, "--load", text(model)][..], data, more].concat())
        };
        let expected = predict(&first);
        assert_eq!(expected.code, Some(0), "{expected:?}");
        file[place..place + len].fill(0xff);
        fs::write(model, file).expect("a file can be written");
        assert_eq!(predict(&first).stdout, expected.stdout, "{task}");
        let refused = |ran| assert_refused(&ran, &[text(model), "is damaged; save it again"]);
        refused(predict(&second));
        refused(predict(&[&first[..], &["--check"]].concat()));
    }
}

fn table_of(task: &str) -> &'static str {
    match task {
        "kge" => "entities",
        "mf" => "rows",
        "wv" => "words",
        "ctr" => "embeddings",
        _ => "nodes",
    }
}
