//! The names in the objects of `--json`: programs read them, so none of them changes by chance.

use std::collections::BTreeSet;

use crate::harness::{folder, run, text};
use crate::together::objects;

/// Fields of the parameter manager.
const MANAGER: &str = "local_share local waited remote blocked_seconds waits wait_mean wait_p99 gated_seconds \
    relocations replicas releases renews coerced refusals held_mean held_max bytes_sent delta_bytes \
    refresh_bytes replica_bytes relocation_bytes operation_bytes answer_bytes head_bytes messages_sent \
    refreshes staleness_mean staleness_p99 deltas delta_updates_mean delta_updates_max delay_mean delay_p99 hops_mean";
const EPOCH: &str = "epoch seconds loss evaluation_seconds";
const RUN: &str = "task version date settings recipe system transport data generated seed dim nodes workers \
    epochs epoch_seconds partition_seconds loss chosen_epoch stopped saved";
const EVALUATION: &str =
    "task version date settings system transport data generated dim nodes workers seconds stopped";
const RANKS: &str =
    "mrr mrr_optimistic mrr_pessimistic hits_at_1 hits_at_3 hits_at_10 baseline_mrr best_mrr";
const ERRORS: &str = "rmse mae predicted unseen means_rmse means_mae best_rmse";
const CLICKS: &str = "auc log_loss calibration best_auc best_log_loss linear_auc";
const CLASSES: &str = "accuracy log_loss classified bound_accuracy features_accuracy";
const ANSWERS: &str = "accuracy baseline_accuracy coverage accuracy_of_all semantic_accuracy \
    syntactic_accuracy questions similarity similarity_coverage best_accuracy";

#[track_caller]
fn assert_names(args: &[&str], expected: &[[&str; 3]]) {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let objects = objects(&ran);
    assert!(objects.len() >= expected.len(), "{ran:?}");
    for (object, expected) in objects.iter().rev().zip(expected) {
        let found: BTreeSet<&str> =
            object.as_object().expect("an object").keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> =
            expected.iter().chain([&MANAGER]).flat_map(|names| names.split_whitespace()).collect();
        assert_eq!(found, expected, "{args:?}");
    }
}

#[test]
fn objects_of_each_task_have_the_names_that_programs_read() {
    let folder = folder("json-names");
    let files = ["kge", "mf", "wv", "ctr", "gnn"].map(|task| folder.join(task));
    let [kge, mf, wv, ctr, gnn] = files.each_ref().map(|file| text(file));
    let matrix = ["--rows", "60", "--columns", "40", "--cells", "600", "--test-cells", "60"];
    let train = |task, data: &[&'static str], file| {
        let words = ["train", task, "--json", "--dim", "4", "--epochs", "2", "--save", file];
        [&words, data].concat()
    };
    let own = "model held_back frequency_weight negatives negative_count chunk sampling learning_rate valid_mrr";
    let run = [RUN, own, RANKS];
    assert_names(&train("kge", &["--no-eval"], kge), &[run, [EPOCH, "triples valid_mrr", ""]]);
    let own = "order optimizer learning_rate l2 cells selection held_back valid_rmse gain";
    let run = [RUN, own, ERRORS];
    assert_names(&train("mf", &matrix, mf), &[run, [EPOCH, "cells valid_rmse", ""]]);
    let own = "window negatives drawn sampling optimizer learning_rate words vocabulary";
    let run = [RUN, own, ANSWERS];
    let short = ["--sentences", "300", "--min-count", "1"];
    assert_names(&train("wv", &short, wv), &[run, [EPOCH, "words valid_accuracy", ""]]);

    let few = ["--examples", "300", "--test-examples", "60", "--features", "1000", "--hidden", "4"];
    let own = "model train features valid_auc";
    assert_names(
        &train("ctr", &few, ctr),
        &[[RUN, own, CLICKS], [EPOCH, "examples valid_auc", ""]],
    );

    let own = "hidden graph_nodes edges classes valid_accuracy";
    assert_names(
        &train("gnn", &["--graph-nodes", "300"], gnn),
        &[[RUN, own, CLASSES], [EPOCH, "nodes valid_accuracy", ""]],
    );

    let own = "split model frequency_weight queries";
    assert_names(&["eval", "kge", "--json", "--load", kge], &[[EVALUATION, own, RANKS]]);
    let words = [&["eval", "mf", "--json", "--load", mf], matrix.as_slice()].concat();
    assert_names(&words, &[[EVALUATION, "split", ERRORS]]);
    assert_names(&["eval", "wv", "--json", "--load", wv], &[[EVALUATION, "vocabulary", ANSWERS]]);
    assert_names(&["eval", "ctr", "--json", "--load", ctr], &[[EVALUATION, "split model", CLICKS]]);
    let words = ["eval", "gnn", "--json", "--load", gnn, "--graph-nodes", "300"];
    assert_names(&words, &[[EVALUATION, "split hidden", CLASSES]]);
}
