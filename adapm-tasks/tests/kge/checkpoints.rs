//! Parameters in files: complete, the same for any number of nodes, and never trusted.

use std::fs;
use std::path::PathBuf;

use adapm_tasks::System;
use adapm_tasks::kge::{
    Checkpoint, CheckpointError, EvalConfig, Graph, GraphOptions, ModelKind, TaskError,
    TrainConfig, evaluate,
};
use adapm_tasks::run::{Keep, Run};

use crate::{graph, run, small};

/// A file that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("adapm-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn trained(graph: &Graph, config: &TrainConfig) -> Checkpoint {
    run(graph, config).expect("trains").checkpoint.expect("asked for")
}

#[test]
fn parameters_are_kept_only_if_asked_for() {
    let config = small(|config| (config.epochs, config.run.keep) = (1, Keep::Nothing));
    let report = run(&graph(), &config).expect("trains");
    assert!(report.checkpoint.is_none() && report.test.is_some());
}

#[test]
fn initial_values_are_the_same_bytes_from_any_number_of_nodes() {
    let graph = graph();
    let mut saved = Vec::new();
    for (nodes, system) in
        [(1, None), (1, Some(System::Adapm)), (2, Some(System::Full)), (4, Some(System::Lapse))]
    {
        let config = small(|config| {
            (config.cluster.nodes, config.cluster.system, config.epochs, config.run.no_eval) =
                (Some(nodes), system, 0, true);
        });
        let file = Scratch::new(&format!("initial-{nodes}"));
        trained(&graph, &config).save(&file.0).expect("saves");
        saved.push(fs::read(&file.0).expect("is there"));
    }
    assert!(saved.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn ranks_are_the_same_on_any_number_of_nodes() {
    let graph = graph();
    for model in ModelKind::ALL {
        let config =
            small(|config| (config.model, config.epochs, config.reciprocal) = (*model, 1, true));
        let report = run(&graph, &config).expect("trains");
        let checkpoint = report.checkpoint.expect("asked for");
        let file = Scratch::new(model.name());
        checkpoint.save(&file.0).expect("saves");
        let loaded = Checkpoint::load(&file.0).expect("loads");
        assert_eq!(loaded, checkpoint);

        let ranks = |system, nodes| {
            let mut config = EvalConfig::default();
            (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
                (system, Some(nodes), Some(2.into()));
            let report = evaluate(&graph, &loaded, &config, &Run::alone()).expect("ranks");
            assert_eq!(report.own.ranks.len(), 2 * graph.test().len());
            (report.figures, report.own.ranks)
        };
        let expected = ranks(None, 1);
        assert_eq!(expected.0, report.test);
        for nodes in [1, 2, 4] {
            assert_eq!(ranks(Some(System::Adapm), nodes), expected, "{nodes} nodes");
        }
    }
}

fn of_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8; 2]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits")
    };
    digits.as_chunks().0.iter().map(byte).collect()
}

#[test]
fn files_of_version_2_are_read_and_written_as_those_of_today() {
    for (model, reciprocal, hex) in
        [(ModelKind::Complex, false, COMPLEX), (ModelKind::Rescal, true, RESCAL)]
    {
        let file = Scratch::new(&format!("old-{model}"));
        fs::write(&file.0, of_hex(hex)).expect("writes");
        let checkpoint = Checkpoint::load(&file.0).expect("is read");
        assert_eq!((checkpoint.model(), checkpoint.dim()), (model, 2));
        assert_eq!(checkpoint.is_reciprocal(), reciprocal);
        assert_eq!((checkpoint.entities().len(), checkpoint.relations().len()), (3, 2));
        checkpoint.save(&file.0).expect("saves");
        assert!(fs::read(&file.0).expect("is there").windows(5).any(|text| text == b"adapm"));
        assert_eq!(Checkpoint::load(&file.0), Ok(checkpoint));
    }
}

#[test]
fn a_model_that_is_unknown_is_refused() {
    let graph = Graph::families(1, 1);
    let mut bytes =
        trained(&graph, &small(|config| (config.epochs, config.run.no_eval) = (0, true)))
            .write_to(Vec::new())
            .expect("memory takes all bytes");
    let at = bytes.windows(7).position(|name| name == b"complex").expect("names its model");
    bytes[at..at + 7].copy_from_slice(b"simplex");
    let (content, sum) = bytes.split_last_chunk_mut().expect("ends with a checksum");
    *sum = crc32c::crc32c(content).to_le_bytes();
    let file = Scratch::new("simplex");
    fs::write(&file.0, &bytes).expect("writes");
    let outcome = Checkpoint::load(&file.0).map(drop);
    assert_eq!(outcome, Err(CheckpointError::Corrupt { path: file.0.clone() }));
}

#[test]
fn parameters_of_other_data_are_refused() {
    let config = small(|config| (config.epochs, config.run.no_eval) = (0, true));
    let checkpoint = trained(&graph(), &config);
    let other = Graph::families(1, 5);
    let outcome = evaluate(&other, &checkpoint, &EvalConfig::default(), &Run::alone());
    assert!(matches!(outcome, Err(TaskError::Checkpoint(CheckpointError::OtherData { .. }))));
}

#[test]
fn parameters_trained_on_other_facts_of_the_same_names_are_refused() {
    let file = Scratch::new("parts.tsv");
    let facts: String =
        (0..200).map(|at| format!("e{}\tr{}\te{}\n", at % 20, at % 3, at * 7 % 20)).collect();
    fs::write(&file.0, facts).expect("writes");
    let graph = |seed| {
        let mut options = GraphOptions::default();
        options.seed = seed;
        Graph::load_with(&file.0, &options).expect("reads")
    };
    let (graph, other) = (graph(7), graph(1));
    assert_eq!(graph.entities(), other.entities());
    // Whether some of train was held back to select on or not.
    for holds_back in [false, true] {
        let config = small(|config| (config.epochs, config.run.no_eval) = (1, !holds_back));
        let checkpoint = trained(&graph, &config);
        let rank = |graph| evaluate(graph, &checkpoint, &EvalConfig::default(), &Run::alone());
        assert!(rank(&graph).is_ok());
        let error = rank(&other).expect_err("other facts");
        assert!(
            matches!(
                error,
                TaskError::Checkpoint(CheckpointError::OtherTraining { of: "triples" })
            ),
            "{error}"
        );
        assert!(error.to_string().contains("--data-seed"), "{error}");
    }
}

#[test]
fn a_damaged_file_is_an_error_of_one_line() {
    let config = small(|config| (config.epochs, config.run.no_eval) = (0, true));
    let file = Scratch::new("damaged");
    trained(&Graph::families(1, 1), &config).save(&file.0).expect("saves");
    let bytes = fs::read(&file.0).expect("is there");
    let name = file.0.display().to_string();
    let load = |bytes: &[u8]| {
        fs::write(&file.0, bytes).expect("writes");
        let outcome = Checkpoint::load(&file.0);
        if let Err(error) = &outcome {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.starts_with(&name), "{text}");
        }
        outcome.map(drop)
    };
    assert_eq!(load(&bytes), Ok(()));
    for len in (0..bytes.len()).step_by(97) {
        assert!(load(&bytes[..len]).is_err(), "cut at {len}");
    }
    for at in (0..bytes.len()).step_by(61) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        assert!(load(&bytes).is_err(), "flipped at {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(load(&longer), Err(CheckpointError::Corrupt { .. })));
    let version = |found: u8, read| {
        Err(CheckpointError::Version { path: file.0.clone(), found: found.into(), read })
    };
    for found in [1, 9] {
        let mut old = of_hex(COMPLEX);
        old[8] = found;
        assert_eq!(load(&old), version(found, 2));
    }
    let at = bytes.windows(11).position(|text| text == br#"version\":3"#).expect("says it");
    let mut newer = bytes.clone();
    newer[at + 10] = b'4';
    assert_eq!(load(&newer), version(4, 3));
    assert!(matches!(load(b"no checkpoint at all"), Err(CheckpointError::Foreign { .. })));
    let missing = Checkpoint::load(&file.0.with_extension("missing"));
    assert!(
        matches!(missing, Err(CheckpointError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound)
    );
}

/// Files of two facts, `a r b` and `b s c`, as they were written before there were other models.
const COMPLEX: &str = "\
         616461706d636b7002000000030000006b676507000000636f6d706c6578020000000000000000ec \
         b514561225d71e030000000000000001000000610100000062010000006302000000000000000100 \
         000072010000007389c99ac94e1a295e0a00000000000000045b273ed6f0da3d74bd3f3d8adac9be \
         8e493c3edf5dbb3e88bf0abef422dbbcdced4cbe10dcfdbdef21cb6e13220669";
const RESCAL: &str = "\
         616461706d636b7002000000030000006b67650600000072657363616c0200000000000000019d01 \
         e4facd3c449703000000000000000100000061010000006201000000630200000000000000010000 \
         0072010000007389c99ac94e1a295e1600000000000000b40f9d3ea914b43ee871a2becfcae4bd10 \
         dfc83d16da553d063a08bec816dbbc45a241be28d112be5c11c1bc10b0ffbd92fb04be581a103c9a \
         8cd8bddf9a3fbde4c55fbe84505bbe07ce29bd409aff3be9d24abe148c29be0bee73210b640dbc";
