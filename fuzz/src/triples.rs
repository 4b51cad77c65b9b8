//! Target `triples`: any files are a knowledge graph or are refused with a line and a column; a
//! graph survives writing and reading.
//!
//! The first byte chooses the format, and whether a further byte stands for itself or for a typical
//! line; the rest, cut at zeros, is the files. Not here: finding and opening files.

use std::collections::HashSet;

use adapm_tasks::data::DataError;
use adapm_tasks::kge::{Graph, GraphSource, Names, Triple};
use adapm_tasks::testing::graph_of;

const IDS: [&str; 5] = ["train.del", "entity_ids.del", "relation_ids.del", "valid.del", "test.del"];
const TEXTS: [&str; 3] = ["train.txt", "valid.txt", "test.txt"];
const TABLES: [&str; 3] = ["train.tsv", "valid.tsv", "test.tsv"];

/// Reads `bytes` as files. Returns true if they are a graph.
pub fn triples(bytes: &[u8]) -> bool {
    let Some((&format, rest)) = bytes.split_first() else { return false };
    let is_lines = format & 4 != 0;
    let file = |file: &[u8]| -> Vec<u8> {
        if is_lines {
            file.iter().flat_map(|byte| line(*byte, format)).collect()
        } else {
            file.to_vec()
        }
    };
    let files: Vec<Vec<u8>> = rest.split(|byte| *byte == 0).map(file).collect();
    let names: &[&str] = match format & 3 {
        0 | 1 => &IDS,
        2 => &TEXTS,
        _ => &TABLES,
    };
    // An empty file counts as missing, so that each may be missing.
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .zip(&files)
        .map(|(name, file)| (*name, file.as_slice()))
        .filter(|(_, file)| !file.is_empty())
        .collect();
    match graph_of(&files) {
        Ok(graph) => {
            check(&graph);
            again(&graph);
            true
        }
        Err(error) => {
            assert!(
                !error.to_string().contains(char::is_control),
                "an error is one line: {error:?}"
            );
            if let DataError::Malformed { path, line, column, .. } = &error {
                let file =
                    files.iter().find(|(name, _)| path.ends_with(name)).expect("it names the file");
                let lines = file.1.split(|byte| *byte == b'\n').count() as u64;
                assert!(
                    (1..=lines).contains(line) && *column >= 1,
                    "{error}: there is no such place"
                );
            }
            false
        }
    }
}

/// Returns a line of a file, mostly a sound one; random bytes rarely are.
fn line(byte: u8, format: u8) -> Vec<u8> {
    let [a, b, c] = [byte & 3, byte >> 2 & 3, byte >> 4 & 3];
    // One format in four has a few lines that no file may have.
    let is_odd = format >> 5 == 0 && byte >> 2 == 0x3f;
    let line = match byte >> 6 {
        _ if is_odd => {
            ["0 0\n", "\t\n", "4294967296\t0\t0\n", "\u{feff}"][usize::from(byte & 3)].to_owned()
        }
        0 | 1 => format!("{a}\t{b}\t{c}\n"),
        2 => format!(" {a} {b}  {c}\r\n"),
        _ if format & 8 != 0 => format!("{a}\tname {b}{c}\n"),
        _ => format!("{c}{a}\t{b}\t{a}\n\n"),
    };
    line.into_bytes()
}

/// Checks the invariants of every graph.
fn check(graph: &Graph) {
    let splits = [graph.train(), graph.valid(), graph.test()];
    let (entities, relations) = (graph.entities().len() as u32, graph.relations().len() as u32);
    for triple in splits.into_iter().flatten() {
        let Triple { subject, relation, object } = *triple;
        assert!(
            subject < entities && object < entities && relation < relations,
            "{triple:?} has no name"
        );
    }
    let mut train = graph.train().to_vec();
    train.sort_unstable();
    train.dedup();
    assert!(
        !train.is_empty() && train.len() == graph.train().len(),
        "facts to train on are there once"
    );
    for names in [graph.entities(), graph.relations()] {
        let all = (0..names.len()).filter_map(|index| names.bytes(index));
        assert!(
            all.clone().all(|name| !name.contains(&b'\t') && !name.contains(&b'\n')),
            "a name is one field"
        );
    }
}

/// Writes the graph as names and reads it again.
fn again(graph: &Graph) {
    // A file of names cannot express the end of a line within a name, a byte order mark before the
    // first, or the choice between two ids of one name;
    let sayable = |names: &Names| {
        let mut seen = HashSet::new();
        (0..names.len()).filter_map(|index| names.bytes(index)).all(|name| {
            seen.insert(name)
                && !name.ends_with(b"\r")
                && !name.starts_with(b"\xef\xbb\xbf")
                && !name.iter().all(u8::is_ascii_whitespace)
        })
    };
    // nor that its first line is a triple instead of a header, if there may be more lines like one
    // that was skipped.
    let has_header = matches!(graph.source(), GraphSource::Files(files) if files.header.is_some());
    if has_header || !sayable(graph.entities()) || !sayable(graph.relations()) {
        return;
    }
    let written = [graph.train(), graph.valid(), graph.test()].map(|split| written(graph, split));
    let files: Vec<(&str, &[u8])> = TABLES
        .into_iter()
        .zip(&written)
        .filter(|(_, file)| !file.is_empty())
        .map(|(name, file)| (name, file.as_slice()))
        .collect();
    let again = graph_of(&files).expect("what was read can be written");
    let rewritten =
        [again.train(), again.valid(), again.test()].map(|split| self::written(&again, split));
    assert_eq!(rewritten, written, "a graph is read as it is written");
}

fn written(graph: &Graph, split: &[Triple]) -> Vec<u8> {
    let mut file = Vec::new();
    let entity = |index: u32| graph.entities().bytes(index as usize).expect("checked");
    for triple in split {
        let relation = graph.relations().bytes(triple.relation as usize).expect("checked");
        file.extend([entity(triple.subject), relation, entity(triple.object)].join(&b'\t'));
        file.push(b'\n');
    }
    file
}
