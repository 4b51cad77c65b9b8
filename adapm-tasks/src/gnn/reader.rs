//! Graphs in text: a folder with `nodes.txt`, `edges.txt` and perhaps `features.txt`; and what
//! reading other forms shares.
//!
//! | file | line |
//! | --- | --- |
//! | `nodes.txt` | `node class part`; part is train, valid, test or none; class is -1, or left out, of a node without |
//! | `edges.txt` | `node node` |
//! | `features.txt` | line `i`: `index:value ...` of node `i`, or nothing |
//!
//! Fields are separated by spaces or tabs, or by commas. Each file may be compressed by gzip, with
//! or without `.gz` behind its name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::data::bytes;
use crate::data::graph_fault::{CLASS_MAX, GraphFault, INDEX_MAX, PART_MAX};
use crate::data::{DataError, Malformation};
use crate::gnn::graph::{Features, Graph, Part, SparseRows};

/// Reads the graph in a folder whose file of nodes is at `path`.
///
/// # Errors
///
/// A file that is missing, unreadable or malformed; no node.
pub(crate) fn read(folder: &Path, path: &Path) -> Result<Graph, DataError> {
    let missing = |name| DataError::MissingGraph { folder: folder.to_path_buf(), name };
    let (labels, parts) = nodes_of(&bytes::read(path)?, path)?;
    let path = find(folder, "edges.txt").ok_or(missing("edges.txt"))?;
    let edges = edges_of(&bytes::read(&path)?, &path, labels.len())?;
    let features = match find(folder, "features.txt") {
        Some(path) => Features::Sparse(sparse_of(&bytes::read(&path)?, &path, labels.len())?),
        None => Features::Missing,
    };
    Ok(Graph::new(&edges, features, labels, parts))
}

/// Reads the part of each node from a file with lines `node part`, one for each node of train.
///
/// # Errors
///
/// A file that is unreadable or malformed, or lacks a node of train.
pub(crate) fn read_parts(path: &Path, graph: &Graph) -> Result<Vec<u32>, DataError> {
    let text = bytes::read(path)?;
    let mut parts: Vec<Option<u32>> = vec![None; graph.nodes()];
    let mut found = 0;
    for (line, content) in lines(&text) {
        let fault = |(column, reason)| malformed(path, line, column, reason);
        let words: Vec<Word<'_>> = words(content).collect();
        if words.is_empty() {
            continue;
        }
        let [node, part] = exactly(&words, content).map_err(fault)?;
        let place = &mut parts[known_node(node, graph.nodes()).map_err(fault)? as usize];
        let number = decimal(part.text).filter(|part| *part <= PART_MAX);
        let number = number.ok_or((part.column, GraphFault::NotAPart)).map_err(fault)?;
        if place.replace(number).is_some() {
            return Err(fault((node.column, GraphFault::RepeatedNode)));
        }
        found += 1;
    }
    if graph.train().iter().any(|node| parts[*node as usize].is_none()) {
        let reason = GraphFault::OtherLines { found, expected: graph.train().len() };
        return Err(malformed(path, found as u64 + 1, 1, reason));
    }
    Ok(parts.into_iter().map(|part| part.unwrap_or(0)).collect())
}

type Classes = (Vec<Option<u32>>, Vec<Option<Part>>);

fn nodes_of(text: &[u8], path: &Path) -> Result<Classes, DataError> {
    let count = lines(text).filter(|(_, line)| words(line).next().is_some()).count();
    if count == 0 {
        return Err(DataError::NoNode { path: path.to_path_buf() });
    }
    let (mut labels, mut parts) = (vec![None; count], vec![None; count]);
    let mut is_listed = vec![false; count];
    for (line, content) in lines(text) {
        let fault = |(column, reason)| malformed(path, line, column, reason);
        let words: Vec<Word<'_>> = words(content).collect();
        let (node, class, part) = match words[..] {
            [] => continue,
            [node, part] => (node, None, part),
            [node, class, part] => (node, Some(class), part),
            _ => return Err(fault(wrong_count(&words, content, 3))),
        };
        let number = known_node(node, count).map_err(fault)? as usize;
        if std::mem::replace(&mut is_listed[number], true) {
            return Err(fault((node.column, GraphFault::RepeatedNode)));
        }
        let class = class.filter(|class| class.text != b"-1");
        labels[number] = class.map(self::class).transpose().map_err(fault)?;
        parts[number] = match part.text {
            b"train" => Some(Part::Train),
            b"valid" => Some(Part::Valid),
            b"test" => Some(Part::Test),
            b"none" => None,
            _ => return Err(fault((part.column, GraphFault::UnknownPart))),
        };
        if parts[number].is_some() && labels[number].is_none() {
            return Err(fault((part.column, GraphFault::NoClass)));
        }
    }
    Ok((labels, parts))
}

/// Reads lines of two nodes each.
pub(crate) fn edges_of(
    text: &[u8],
    path: &Path,
    nodes: usize,
) -> Result<Vec<(u32, u32)>, DataError> {
    let mut edges = Vec::new();
    for (line, content) in lines(text) {
        let fault = |(column, reason)| malformed(path, line, column, reason);
        let words: Vec<Word<'_>> = words(content).collect();
        if words.is_empty() {
            continue;
        }
        let [from, to] = exactly(&words, content).map_err(fault)?;
        let known = |word| known_node(word, nodes).map_err(fault);
        edges.push((known(from)?, known(to)?));
    }
    Ok(edges)
}

fn sparse_of(text: &[u8], path: &Path, nodes: usize) -> Result<SparseRows, DataError> {
    let (mut rows, mut row) = (SparseRows::default(), Vec::new());
    for (line, content) in lines(text) {
        let fault = |(column, reason)| malformed(path, line, column, reason);
        if line > nodes as u64 && words(content).next().is_some() {
            let found = lines(text).count();
            return Err(fault((1, GraphFault::OtherLines { found, expected: nodes })));
        }
        row.clear();
        for word in words(content) {
            row.push(feature(word).map_err(fault)?);
        }
        row.sort_by_key(|(index, ..)| *index);
        if let Some(two) = row.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(fault((two[1].2, GraphFault::RepeatedFeature)));
        }
        if line <= nodes as u64 {
            rows.indices.extend(row.iter().map(|(index, ..)| *index));
            rows.values.extend(row.iter().map(|(_, value, _)| *value));
            rows.end_row();
        }
    }
    if rows.ends.len() < nodes {
        let (found, expected) = (rows.ends.len(), nodes);
        return Err(malformed(
            path,
            found as u64 + 1,
            1,
            GraphFault::OtherLines { found, expected },
        ));
    }
    rows.width = rows.indices.iter().max().map_or(1, |index| *index as usize + 1);
    Ok(rows)
}

/// Returns index, value and column of a feature.
fn feature(word: Word<'_>) -> Result<(u32, f32, u64), Located> {
    let none = (word.column, GraphFault::NotAFeature);
    let colon = memchr::memchr(b':', word.text).ok_or(none)?;
    let index = decimal(&word.text[..colon]).filter(|index| *index <= INDEX_MAX).ok_or(none)?;
    let text = &word.text[colon + 1..];
    let value = number(Word { text, column: word.column + colon as u64 + 1 })?;
    Ok((index, value, word.column))
}

/// A field of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a [u8],
    /// The byte of the line at which it starts, from 1.
    pub(crate) column: u64,
}

/// A fault with its column.
pub(crate) type Located = (u64, GraphFault);

/// Returns the lines with their numbers from 1, also blank ones, without line end.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let is_empty = text.is_empty();
    let lines = text.split(|byte| *byte == b'\n').filter(move |_| !is_empty);
    (1..).zip(lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)))
}

/// Returns the fields of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    let mut start = 0;
    std::iter::from_fn(move || {
        start += line[start..].iter().position(|byte| !is_between(byte))?;
        let len = line[start..].iter().position(is_between).unwrap_or(line.len() - start);
        let word = Word { text: &line[start..start + len], column: start as u64 + 1 };
        start += len;
        Some(word)
    })
}

/// Returns the words of a line if there are `N`.
fn exactly<'a, const N: usize>(words: &[Word<'a>], line: &[u8]) -> Result<[Word<'a>; N], Located> {
    words.try_into().map_err(|_| wrong_count(words, line, N))
}

fn wrong_count(words: &[Word<'_>], line: &[u8], expected: usize) -> Located {
    match words.get(expected) {
        Some(word) => (word.column, GraphFault::TooManyFields { expected }),
        None => {
            let found = words.len();
            (line.len() as u64 + 1, GraphFault::TooFewFields { found, expected })
        }
    }
}

/// Returns the node that a word names.
pub(crate) fn known_node(word: Word<'_>, nodes: usize) -> Result<u32, Located> {
    if word.text.is_empty() || !word.text.iter().all(u8::is_ascii_digit) {
        return Err((word.column, GraphFault::NotANode));
    }
    let node = decimal(word.text).filter(|node| (*node as usize) < nodes);
    node.ok_or((word.column, GraphFault::UnknownNode { nodes }))
}

/// Returns the class that a word names.
pub(crate) fn class(word: Word<'_>) -> Result<u32, Located> {
    let class = decimal(word.text).filter(|class| *class <= CLASS_MAX);
    class.ok_or((word.column, GraphFault::NotAClass))
}

/// Returns the finite number that a word is.
pub(crate) fn number(word: Word<'_>) -> Result<f32, Located> {
    let number = str::from_utf8(word.text).ok().and_then(|text| text.parse::<f32>().ok());
    let number = number.ok_or((word.column, GraphFault::NotANumber))?;
    if number.is_finite() { Ok(number) } else { Err((word.column, GraphFault::NotFinite)) }
}

fn decimal(text: &[u8]) -> Option<u32> {
    let is_decimal = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| is_decimal)?.parse().ok()
}

pub(crate) fn malformed(path: &Path, line: u64, column: u64, reason: GraphFault) -> DataError {
    let (path, reason) = (path.to_path_buf(), Malformation::Graph(reason));
    DataError::Malformed { path, line, column, reason }
}

/// Returns the file of this name in a folder, compressed or not.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let plain = folder.join(name);
    let mut compressed = OsString::from(&plain);
    compressed.push(".gz");
    [plain, compressed.into()].into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests;
