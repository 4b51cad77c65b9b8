//! Texts without enough to train on, and those that only look like it.

use std::fs;
use std::path::PathBuf;

use adapm_tasks::run::{ConfigError, TaskError};
use adapm_tasks::wv::{Analogies, Corpus, CorpusError, Text};

use crate::{corpus, run, small};

/// A file that is gone when the test is over.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("adapm-{}-wv-{name}", std::process::id()));
        fs::write(&path, bytes).expect("writes");
        Self(path)
    }

    fn corpus(&self) -> Result<Corpus, CorpusError> {
        Corpus::count(Text::open(&self.0)?, 1, 2)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_text_without_two_words_is_an_error_that_names_it() {
    for (name, bytes) in [
        ("empty", b"".as_slice()),
        ("blank", b"\r\n \t\r\n"),
        ("word", b"word"),
        ("one", b"a a\na a\r\n"),
    ] {
        let file = File::new(name, bytes);
        let text = file.corpus().expect_err("too few").to_string();
        assert!(text.contains(&file.0.display().to_string()) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn words_of_any_bytes_and_length_on_any_lines_are_trained_on() {
    let long = [b'x'; 100_000];
    let text = [
        b"caf\xc3\xa9 \xff\xfe \x00 \r\n".as_slice(),
        &long,
        b" \xff\xfe\r",
        &long,
        b"\n\n\0 \xff\xfe",
    ]
    .concat();
    let file = File::new("bytes", &text);
    let corpus = file.corpus().expect("four words");
    assert_eq!((corpus.vocabulary().len(), corpus.words()), (4, 8));
    let report =
        run(&corpus, &small(|config| (config.cluster.nodes, config.sample) = (Some(1), 0.0)))
            .expect("trains");
    let checkpoint = report.checkpoint.expect("is asked for");
    assert_eq!(checkpoint.words().bytes(0), Some(b"\xff\xfe".as_slice()));
    assert_eq!(report.test.expect("asked").total().coverage(), 0.0);
}

#[test]
fn two_words_in_one_sentence_are_enough_and_more_workers_than_lines_are_harmless() {
    let file = File::new("two", b"a b");
    let config = small(|config| {
        (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
            (Some(adapm_tasks::System::Adapm), Some(2), Some(3.into()));
        // How many negatives are the word itself would differ from epoch to epoch.
        (config.sample, config.negatives) = (0.0, 0);
        (config.epochs, config.learning_rate) = (Some(30), 1.0);
    });
    let report = run(&file.corpus().expect("two words"), &config).expect("trains");
    let losses = [report.epochs[0].loss, report.epochs[29].loss];
    assert!(losses[1] < 0.9 * losses[0], "{losses:?}");
}

#[test]
fn choices_that_make_no_sense_are_errors() {
    let corpus = corpus(50);
    let error = run(&corpus, &small(|config| config.dim = 0)).expect_err("impossible");
    assert!(matches!(error, TaskError::Config(ConfigError::Value { field: "dim", .. })), "{error}");
    let error = run(&corpus, &small(|config| config.negatives = 10_000)).expect_err("impossible");
    assert_eq!(error.to_string(), "negatives 10000: give a whole number from 0 to 500");
    // None at all: the loss of pairs that are there falls, and nothing fails.
    assert!(run(&corpus, &small(|config| config.negatives = 0)).is_ok());
    assert!(Analogies::load(std::path::Path::new("no/such/questions")).is_err());
}
