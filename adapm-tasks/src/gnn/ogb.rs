//! Graphs as the Open Graph Benchmark publishes them (Hu et al., NeurIPS 2020): CSV without names.
//!
//! ```text
//!   raw/edge.csv.gz        node,node           split/time/train.csv.gz   node
//!   raw/node-label.csv.gz  class               split/time/valid.csv.gz
//!   raw/node-feat.csv.gz   number,number,...   split/time/test.csv.gz
//! ```
//!
//! A node is a line of `node-label`, which is empty or `nan` where no class is known. The folder
//! `raw` may be left out, and `.gz`. Of several splits the first by name is taken; there may be
//! none.

use std::path::{Path, PathBuf};

use crate::data::{DataError, GraphFault, bytes};
use crate::gnn::graph::{Features, Graph, Part};
use crate::gnn::reader::{class, edges_of, find, known_node, lines, malformed, number, words};

/// Reads the graph in a folder.
///
/// # Errors
///
/// A file that is missing, unreadable or malformed.
pub(crate) fn read(folder: &Path) -> Result<Graph, DataError> {
    let file = |name: &str| find(&folder.join("raw"), name).or_else(|| find(folder, name));
    let missing = |name| DataError::MissingGraph { folder: folder.to_path_buf(), name };
    let edges = file("edge.csv").ok_or(missing("nodes.txt and edges.txt, or edge.csv"))?;
    let labels = file("node-label.csv").ok_or(missing("node-label.csv"))?;
    let labels = labels_of(&bytes::read(&labels)?, &labels)?;
    let mut parts = vec![None; labels.len()];
    if let Some(split) = split_folder(folder) {
        for (part, name) in PARTS {
            if let Some(path) = find(&split, name) {
                put(&bytes::read(&path)?, &path, part, &labels, &mut parts)?;
            }
        }
    }
    let edges = edges_of(&bytes::read(&edges)?, &edges, labels.len())?;
    let features = match file("node-feat.csv") {
        Some(path) => features_of(&bytes::read(&path)?, &path, labels.len())?,
        None => Features::Missing,
    };
    Ok(Graph::new(&edges, features, labels, parts))
}

/// Returns the first folder of a split, if there is any: without one, no node is of a part.
fn split_folder(folder: &Path) -> Option<PathBuf> {
    let entries = folder.join("split").read_dir().ok()?;
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(|folder| PARTS.iter().any(|(_, name)| find(folder, name).is_some())).min()
}

fn labels_of(text: &[u8], path: &Path) -> Result<Vec<Option<u32>>, DataError> {
    let mut labels = Vec::new();
    for (line, content) in lines(text) {
        let fault = |(column, reason)| malformed(path, line, column, reason);
        let mut words = words(content);
        labels.push(match words.next() {
            None => None,
            Some(word) if word.text.eq_ignore_ascii_case(b"nan") => None,
            Some(word) => Some(class(word).map_err(fault)?),
        });
        if let Some(word) = words.next() {
            return Err(fault((word.column, GraphFault::TooManyFields { expected: 1 })));
        }
    }
    if labels.is_empty() {
        return Err(DataError::NoNode { path: path.to_path_buf() });
    }
    Ok(labels)
}

/// Puts the nodes of a file in a part.
fn put(
    text: &[u8],
    path: &Path,
    part: Part,
    labels: &[Option<u32>],
    parts: &mut [Option<Part>],
) -> Result<(), DataError> {
    for (line, content) in lines(text) {
        let fault = |(column, reason)| malformed(path, line, column, reason);
        let mut words = words(content);
        let Some(word) = words.next() else { continue };
        if let Some(word) = words.next() {
            return Err(fault((word.column, GraphFault::TooManyFields { expected: 1 })));
        }
        let node = known_node(word, labels.len()).map_err(fault)? as usize;
        if labels[node].is_none() {
            return Err(fault((word.column, GraphFault::NoClass)));
        }
        if parts[node].replace(part).is_some_and(|other| other != part) {
            return Err(fault((word.column, GraphFault::TwoParts)));
        }
    }
    Ok(())
}

fn features_of(text: &[u8], path: &Path, nodes: usize) -> Result<Features, DataError> {
    let (mut values, mut width, mut rows) = (Vec::new(), None, 0);
    for (line, content) in lines(text) {
        let fault = |(column, reason)| malformed(path, line, column, reason);
        let before = values.len();
        for word in words(content) {
            values.push(number(word).map_err(fault)?);
        }
        let found = values.len() - before;
        let expected = *width.get_or_insert(found);
        if found != expected || found == 0 {
            let expected = expected.max(1);
            return Err(fault((
                content.len() as u64 + 1,
                GraphFault::OtherLength { found, expected },
            )));
        }
        rows += 1;
    }
    if rows != nodes {
        let reason = GraphFault::OtherLines { found: rows, expected: nodes };
        return Err(malformed(path, rows as u64 + 1, 1, reason));
    }
    Ok(Features::Dense { width: width.unwrap_or(1), values })
}

/// The file of each part.
const PARTS: [(Part, &str); 3] =
    [(Part::Train, "train.csv"), (Part::Valid, "valid.csv"), (Part::Test, "test.csv")];
