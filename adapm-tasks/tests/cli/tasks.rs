//! Matrix factorization, word vectors and clicks on the command line: train, evaluate, predict,
//! export, on several nodes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{assert_refused, folder, run, text, write};
use crate::together::{holds, launch, object, objects, succeeded};

/// Ratings of 12 users and 8 items, whose ids have gaps, and some to predict, one of them of an
/// item that no user rated.
fn ratings(folder: &Path) {
    let line = |(user, item): (u32, u32)| {
        format!("{} {} {}\n", 10 * user, item + 3, 1 + (user + item) % 5)
    };
    let cells = (0..12).flat_map(|user| (0..8).map(move |item| (user, item)));
    let (train, test): (Vec<_>, Vec<_>) =
        cells.partition(|(user, item)| (user * 8 + item) % 6 != 5);
    write(folder, "train.txt", &train.into_iter().map(line).collect::<String>());
    let unseen = "10 999 3\n".to_owned();
    write(folder, "test.txt", &(test.into_iter().map(line).collect::<String>() + &unseen));
}

#[test]
fn ratings_are_factorized_evaluated_and_exported() {
    let folder = folder("tasks_mf");
    ratings(&folder);
    let (model, lines) = (folder.join("model.adapm"), folder.join("factors.tsv"));
    let train =
        ["train", "mf", "--data", text(&folder), "--dim", "4", "--epochs", "3", "--nodes", "2"];
    let more = ["--workers", "1", "--order", "dsgd", "--json", "--save", text(&model)];
    let ran = succeeded(&[train.as_slice(), &more].concat());
    let objects = objects(&ran);
    let [epochs @ .., last] = objects.as_slice() else { panic!("{ran:?}") };
    assert_eq!(epochs.iter().map(|epoch| &epoch["cells"]).collect::<Vec<_>>(), [80, 80, 80]);
    assert!(epochs[0]["loss"].as_f64() > epochs[2]["loss"].as_f64(), "{ran:?}");
    assert_eq!([&last["task"], &last["order"], &last["saved"]], ["mf", "dsgd", text(&model)]);
    assert_eq!([&last["nodes"], &last["predicted"], &last["unseen"]], [2, 17, 1]);
    assert_eq!((&last["generated"], &last["best_rmse"]), (&Value::from(false), &Value::Null));
    holds(last["data"].as_str().expect("text"), "(u i r by blanks");
    for words in [
        "80 train, 0 valid, 17 test cells; 12 rows, 8 columns",
        "RMSE",
        "--order",
        "epoch   3",
        "left out",
        "means alone",
    ] {
        holds(&ran.stderr, words);
    }

    let eval = |nodes| {
        object(&[
            "eval",
            "mf",
            "--load",
            text(&model),
            "--data",
            text(&folder),
            "--nodes",
            nodes,
            "--json",
        ])
    };
    assert!(last["rmse"].is_number(), "{last}");
    let figures = |object: &Value| [&object["rmse"], &object["means_rmse"]].map(Value::as_f64);
    assert_eq!([figures(&eval("1")), figures(&eval("3"))], [figures(last), figures(last)]);
    assert_eq!(
        [&last["selection"], &last["held_back"]],
        [&Value::from("left out"), &Value::from(0)]
    );

    succeeded(&["export", "mf", "--load", text(&model), "--output", text(&lines)]);
    let exported = fs::read_to_string(&lines).expect("it was written");
    let fields: Vec<Vec<&str>> = exported.lines().map(|line| line.split('\t').collect()).collect();
    let [mean, fields @ ..] = fields.as_slice() else { panic!("{exported}") };
    assert!(mean.len() == 2 && mean[0] == "mean" && mean[1].parse::<f64>().is_ok(), "{mean:?}");
    assert_eq!(fields.len(), 12 + 8);
    assert_eq!(
        (fields[11][..2].to_vec(), fields[12][..2].to_vec()),
        (vec!["row", "110"], vec!["column", "3"])
    );
    assert!(
        fields.iter().all(|fields| fields.len() == 7 && fields[2..].iter().all(|x| x.parse::<f64>().is_ok()))
    );
}

#[test]
fn clicks_are_trained_on_judged_predicted_and_exported() {
    let folder = folder("tasks_ctr");
    let [model, lines, data] = ["m.adapm", "m.tsv", "shop.csv"].map(|name| folder.join(name));
    let row = |at: usize| format!("{},{},{}\n", at % 7, ["a", "b", "c"][at % 3], at * 5 % 7 / 4);
    let table: String = (0..400).map(row).collect();
    write(&folder, "shop.csv", &format!("size,colour,bought\n{table}"));
    let schema = "size:cat,colour:cat,bought:label";
    let train = ["train", "ctr", "--data", text(&data), "--schema", schema, "--dim", "4"];
    let more = ["--hidden", "8", "--epochs", "20", "--batch", "16", "--nodes", "2", "--json"];
    let ran = object(&[&train, &more[..], &["--save", text(&model)]].concat());
    // The label follows from the size.
    assert!(ran["auc"].as_f64().is_some_and(|auc| auc > 0.99), "{ran}");
    let eval = |nodes: &str| {
        let words = ["eval", "ctr", "--load", text(&model), "--data", text(&data), "--json"];
        object(&[&words, &["--nodes", nodes][..]].concat())["auc"].clone()
    };
    assert_eq!([eval("1"), eval("3")], [ran["auc"].clone(), ran["auc"].clone()]);

    // Of other data, all examples are judged; the model may not know all of their features.
    let judged = |table: &str| {
        write(&folder, "later.csv", table);
        let later = folder.join("later.csv");
        succeeded(&["eval", "ctr", "--load", text(&model), "--data", text(&later)]).stdout
    };
    let stdout = judged("colour,size,bought\nb,6,1\nnew,1,0\n");
    holds(&stdout, "1 features of these examples are unknown to the model");
    holds(&stdout, "2 of test");
    assert!(!stdout.contains("nothing can be learnt"), "{stdout}");
    holds(&judged("colour,size,bought\nb,6,1\na,1,1\n"), "the same label: there is no AUC");

    // To predict, labels do not matter, and may be missing.
    write(&folder, "new.csv", "colour,size\nb,6\nnew,1\n");
    let new = folder.join("new.csv");
    let predict = ["predict", "ctr", "--load", text(&model), "--data", text(&new)];
    let ran = succeeded(&predict);
    let probabilities: Vec<f32> =
        ran.stdout.lines().map(|line| line.parse().expect("a probability")).collect();
    assert!(matches!(probabilities[..], [a, b] if (0.0..=1.0).contains(&a) && a != b), "{ran:?}");
    let ran = succeeded(&[&predict, &["--json"][..]].concat());
    holds(&ran.stdout, "{\"task\":\"ctr\",\"example\":2,\"probability\":");

    succeeded(&["export", "ctr", "--load", text(&model), "--output", text(&lines)]);
    let exported = fs::read_to_string(&lines).expect("it was written");
    assert!(exported.lines().all(|line| line.split('\t').count() == 6), "{exported}");
    holds(&exported, "colour b\t");
    let checked = run(&["data", "check", text(&data), "--task", "ctr", "--schema", schema]);
    holds(&checked.stdout, "309 train, 34 valid, 57 test examples");
    let refused = run(&["predict", "mf", "--load", text(&model), "--row", "1"]);
    assert_refused(&refused, &["of task ctr"]);
}

#[test]
fn word_vectors_are_trained_asked_and_exported() {
    let folder = folder("tasks_wv");
    let [model, vectors, binary, words] =
        ["model.adapm", "vectors.txt", "vectors.bin", "words"].map(|name| folder.join(name));
    write(
        &folder,
        "pairs",
        "country01 capital01 5\ncountry01 walk03 1\nnoun02 nouns02 4\nnothing here 2\n",
    );
    let pairs = folder.join("pairs");
    let train =
        ["train", "wv", "--sentences", "1500", "--min-count", "1", "--dim", "8", "--epochs", "2"];
    let files = ["--save", text(&model), "--output", text(&vectors), "--save-vocab", text(&words)];
    let more = ["--nodes", "2", "--workers", "1", "--similarity", text(&pairs), "--json"];
    let ran = succeeded(&[train.as_slice(), &files, &more].concat());
    let last = objects(&ran).pop().expect("an object");
    for field in [
        "accuracy",
        "baseline_accuracy",
        "coverage",
        "accuracy_of_all",
        "semantic_accuracy",
        "similarity",
        "bytes_sent",
    ] {
        assert!(last[field].is_number(), "{field} in {last}");
    }
    assert_eq!(
        [&last["questions"], &last["best_accuracy"]],
        [&Value::from(960), &Value::from(1.0)]
    );
    assert_eq!(
        (&last["generated"], &last["similarity_coverage"]),
        (&Value::from(true), &Value::from(0.75))
    );
    for words in [
        "generated sentences (seed 1)",
        "best possible",
        "gram1-plural",
        "coverage",
        "baseline",
        "Spearman",
    ] {
        holds(&ran.stderr, words);
    }

    let eval = |file: &Path, nodes| {
        let asked = ["--load", text(file), "--nodes", nodes, "--workers", "1", "--json"];
        object(&[["eval", "wv"].as_slice(), &asked].concat())
    };
    let args =
        ["export", "wv", "--load", text(&model), "--output", text(&binary), "--format", "binary"];
    succeeded(&args);
    let (saved, exported, read) = (eval(&model, "1"), eval(&binary, "3"), eval(&vectors, "2"));
    assert_eq!(
        [&saved, &exported, &read].map(|object| object["accuracy"].as_f64()),
        [last["accuracy"].as_f64(); 3]
    );
    let similar = ["eval", "wv", "--load", text(&vectors), "--similarity", text(&pairs), "--json"];
    let similar = object(&similar);
    assert_eq!((&similar["similarity"], &similar["accuracy"]), (&last["similarity"], &Value::Null));

    // The words that were written are read again.
    let again = [train.as_slice(), &["--read-vocab", text(&words), "--no-eval", "--json"]].concat();
    let again = object(&again);
    assert_eq!((&again["vocabulary"], &again["accuracy"]), (&last["vocabulary"], &Value::Null));
}

#[test]
fn tables_of_generated_data_name_it_and_the_best_that_is_possible() {
    let matrix =
        ["--rows", "60", "--columns", "40", "--cells", "400", "--test-cells", "50", "--dim", "4"];
    let ran = succeeded(&[["train", "mf", "--epochs", "2"].as_slice(), &matrix].concat());
    for words in [
        "result on generated 60 x 40 matrix of rank 4, noise 0.2 (seed 1)",
        "best possible",
        "columnwise",
    ] {
        holds(&ran.stdout, words);
    }
    let ran = succeeded(&["train", "kge", "--epochs", "1", "--dim", "4", "--negative-count", "4"]);
    holds(&ran.stdout, "best possible   1.0000");
}

#[test]
fn each_node_may_be_a_process_and_keys_are_traced_by_name() {
    let folder = folder("tasks_processes");
    ratings(&folder);
    let trace = folder.join("run.trace");
    let mf = ["train", "mf", "--data", text(&folder), "--dim", "4", "--epochs", "2", "--json"];
    let traced = ["--workers", "1", "--trace-keys", text(&trace), "--trace", "row:50,column:4"];
    let ran = succeeded(&launch(&["--nodes", "2"], &[mf.as_slice(), &traced].concat()));
    assert_eq!(objects(&ran).pop().expect("an object")["nodes"], 2);
    let shown = succeeded(&["trace", text(&trace)]);
    for words in ["row 50, in 6 of 80 ratings", "column 4, in 8 of 80 ratings"] {
        holds(&shown.stdout, words);
    }
    let wv = [
        "train",
        "wv",
        "--sentences",
        "200",
        "--min-count",
        "1",
        "--dim",
        "4",
        "--epochs",
        "1",
        "--json",
    ];
    let ran = succeeded(&launch(&["--nodes", "2"], &[wv.as_slice(), &["--workers", "1"]].concat()));
    let last = objects(&ran).pop().expect("an object");
    assert!(last["nodes"] == 2 && last["accuracy"].is_number(), "{last}");
}

#[test]
fn recipes_are_listed_by_one_process() {
    let ran = succeeded(&["train", "kge", "--recipe"]);
    for words in [
        "UMLS",
        "--epochs 100 --n3 0.005 --reciprocal",
        "test MRR",
        "seeds 1, 2, 3",
        " cores of an ",
    ] {
        holds(&ran.stdout, words);
    }
}
