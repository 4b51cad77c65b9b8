//! Nodes as processes: each node a thread with a group of its own, joined over loopback as
//! processes are.

use adapm_tasks::System;
use adapm_tasks::run::{Mismatch, Run, TaskError};
use adapm_tasks::wv::{Analogies, Corpus, EvalConfig, Text, evaluate, train};

use crate::group::as_each;
use crate::{corpus, small};

#[test]
fn processes_train_and_answer_alike_and_node_0_has_the_vectors() {
    let (corpus, questions) = (corpus(2000), Analogies::generated());
    let config = small(|config| {
        (config.cluster.system, config.cluster.workers, config.epochs, config.sample) =
            (Some(System::Adapm), Some(2.into()), Some(3), 0.0);
    });
    let mut reports = as_each("train", 2, |_, group| {
        train(&corpus, Some(&questions), &config, &Run::in_group(group)).expect("trains")
    });
    for report in &reports {
        assert_eq!((report.nodes, &report.workers, report.stopped), (2, &2.into(), false));
        assert!(report.epochs.is_sorted_by(|a, b| a.loss > b.loss));
        assert_eq!(report.epochs[2].examples, corpus.words());
        assert_eq!((&report.test, report.stats), (&reports[0].test, reports[0].stats));
    }
    assert!(reports[1].checkpoint.is_none());
    let checkpoint = reports[0].checkpoint.take().expect("on node 0");
    let evaluated = as_each("evaluate", 3, |_, group| {
        let config = EvalConfig::default();
        evaluate(&checkpoint.vectors(), &questions, &config, &Run::in_group(group))
            .expect("answers")
    });
    assert!(evaluated.iter().all(|report| report.figures == reports[0].test));
}

#[test]
fn a_node_with_another_text_is_named() {
    let texts =
        [corpus(100), Corpus::count(Text::generated(2, 100), 2, 1).expect("there are words")];
    let config = small(|config| config.cluster.system = Some(System::Adapm));
    let errors = as_each("differs", 2, |node, group| {
        train(&texts[node], None, &config, &Run::in_group(group)).expect_err("differs")
    });
    for error in errors {
        let what = matches!(&error, TaskError::Mismatch { what: Mismatch::Data { .. }, .. });
        assert!(what && error.to_string().contains("bytes with"), "{error}");
    }
}
