//! Graphs that are read, and the place of each fault of those that are not.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;
use crate::run::Split;

const NODES: &str = "0 1 train\n1 0 valid\n2 none\n3 1 test\n";
const EDGES: &str = "0 1\n1 2\n";
const FEATURES: &str = "0:1 4:0.5\n\n2:1\n\n";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
        if name.ends_with(".gz") {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).expect("memory takes every byte");
            fs::write(path, encoder.finish().expect("memory takes every byte")).expect("a file");
        } else {
            fs::write(path, text).expect("a file");
        }
    }
    folder
}

fn read_files(files: &[(&str, &str)]) -> Result<Graph, String> {
    let folder = folder(files);
    let shown = format!("{}/", folder.path().display());
    Graph::load(folder.path()).map_err(|error| error.to_string().replace(&shown, ""))
}

fn read_with(name: &str, text: &str) -> Result<Graph, String> {
    let files = [("nodes.txt", NODES), ("edges.txt", EDGES), ("features.txt", FEATURES)];
    read_files(&files.map(|file| if file.0 == name { (name, text) } else { file }))
}

fn refused(name: &str, text: &str) -> String {
    read_with(name, text).expect_err(text)
}

#[test]
fn a_folder_of_text_is_a_graph_plain_or_compressed() {
    let graph = read_with("", "").expect("a graph");
    assert_eq!((graph.nodes(), graph.classes(), graph.counts().edges), (4, 2, 2));
    assert_eq!((graph.train(), graph.held_out(Split::Test)), (&[0][..], &[3][..]));
    assert_eq!((graph.label(2), graph.around(3)), (None, &[3][..]));
    let marked = NODES.replace("2 none", "2 -1 none");
    assert_eq!(read_with("nodes.txt", &marked).as_ref(), Ok(&graph));
    assert_eq!((graph.counts().alone, graph.counts().bare), (1, 2));
    let Features::Sparse(rows) = &graph.features else { panic!("sparse") };
    assert_eq!((rows.width, rows.row(0)), (5, (&[0, 4][..], &[1.0, 0.5][..])));
    let compressed =
        [("nodes.txt.gz", NODES), ("edges.txt.gz", EDGES), ("features.txt.gz", FEATURES)];
    assert_eq!(read_files(&compressed), Ok(graph));
    let bare = read_files(&[("nodes.txt", NODES), ("edges.txt", EDGES)]).expect("a graph");
    assert_eq!(bare.features, Features::Missing);
}

#[test]
fn faults_of_nodes_and_edges_have_their_place() {
    let starts = |text: String, with: &str| assert!(text.starts_with(with), "{text}");
    starts(
        refused("edges.txt", "0 1\n1 4\n"),
        "edges.txt:2:3: there is no such node: nodes are 0 to 3",
    );
    starts(refused("edges.txt", "0 -1\n"), "edges.txt:1:3: not a decimal number");
    starts(refused("edges.txt", "0\n"), "edges.txt:1:2: 2 fields are expected, this line has 1");
    starts(refused("edges.txt", "0 1 2\n"), "edges.txt:1:5: 2 fields are expected, another");
    starts(
        refused("nodes.txt", "0 1 train\n1 train\n"),
        "nodes.txt:2:3: a node of this part needs a class",
    );
    starts(refused("nodes.txt", "0 1 train\n2 1 test\n"), "nodes.txt:2:1: there is no such node");
    starts(refused("nodes.txt", "0 1 train\n0 1 test\n"), "nodes.txt:2:1: this node is listed");
    starts(refused("nodes.txt", "0 x train\n"), "nodes.txt:1:3: not a class");
    starts(
        refused("nodes.txt", "0 -1 train\n"),
        "nodes.txt:1:6: a node of this part needs a class",
    );
    starts(refused("nodes.txt", "0 70000 train\n"), "nodes.txt:1:3: not a class");
    starts(refused("nodes.txt", "0 1 dev\n"), "nodes.txt:1:5: not a part");
    starts(refused("nodes.txt", "0 1 train x\n"), "nodes.txt:1:11: 3 fields");
    starts(refused("nodes.txt", "\n"), "no node in nodes.txt");
    starts(read_files(&[("nodes.txt", NODES)]).expect_err("no edges"), "no edges.txt in ");
    starts(read_files(&[]).expect_err("nothing"), "no nodes.txt and edges.txt, or edge.csv in ");
}

#[test]
fn faults_of_features_have_their_place() {
    let starts = |text: String, with: &str| assert!(text.starts_with(with), "{text}");
    starts(refused("features.txt", "0:1 1:nan\n\n\n\n"), "features.txt:1:7: not a finite number");
    starts(refused("features.txt", "0:1e99\n\n\n\n"), "features.txt:1:3: not a finite number");
    starts(refused("features.txt", "0:1\n3\n\n\n"), "features.txt:2:1: not a feature");
    starts(refused("features.txt", "0:1\n-3:1\n\n\n"), "features.txt:2:1: not a feature");
    starts(refused("features.txt", "99999999:1\n"), "features.txt:1:1: not a feature");
    starts(refused("features.txt", "0:x\n"), "features.txt:1:3: not a number");
    starts(refused("features.txt", "3:1 0:1 3:2\n"), "features.txt:1:9: this node has");
    starts(refused("features.txt", "0:1\n\n"), "features.txt:3:1: a line for each of 4 nodes");
    starts(refused("features.txt", "\n\n\n\n0:1\n"), "features.txt:5:1: a line for each of 4");
}

#[test]
fn parts_may_be_without_nodes_and_nodes_without_classes() {
    for nodes in ["0 1 test\n1 none\n2 none\n3 none\n", "0 none\n1 none\n2 none\n3 -1 none\n"] {
        assert!(read_with("nodes.txt", nodes).expect("a graph").train().is_empty());
    }
    let graph = read_with("nodes.txt", "0 1 train\n1 0 train\n2 none\n3 none\n").expect("a graph");
    assert!(graph.held_out(Split::Valid).is_empty() && graph.held_out(Split::Test).is_empty());
}

#[test]
fn parts_of_a_file_are_those_of_the_nodes_of_train() {
    let graph = read_with("", "").expect("a graph");
    let parts = |text: &str| {
        let folder = folder(&[("parts.txt", text)]);
        let shown = format!("{}/", folder.path().display());
        let parts = read_parts(&folder.path().join("parts.txt"), &graph);
        parts.map_err(|error| error.to_string().replace(&shown, ""))
    };
    assert_eq!(parts("0 3\n2 1\n"), Ok(vec![3, 0, 1, 0]));
    for (text, place) in
        [("1 1\n", "2:1:"), ("0 x\n", "1:3:"), ("0 1\n0 1\n", "2:1:"), ("9 1", "1:1:")]
    {
        let error = parts(text).expect_err(text);
        assert!(error.starts_with(&format!("parts.txt:{place}")), "{error}");
    }
}

const OGB: [(&str, &str); 6] = [
    ("raw/edge.csv.gz", "0,1\n1,2\n"),
    ("raw/node-label.csv.gz", "1\n0\nnan\n1\n"),
    ("raw/node-feat.csv.gz", "0.5,1\n-1,2\n0,0\n1e-3,4\n"),
    ("split/time/train.csv.gz", "0\n"),
    ("split/time/valid.csv.gz", "1\n"),
    ("split/time/test.csv", "3\n"),
];

#[test]
fn a_folder_of_the_open_graph_benchmark_is_a_graph() {
    let graph = read_files(&OGB).expect("a graph");
    assert_eq!((graph.nodes(), graph.classes(), graph.counts().edges), (4, 2, 2));
    let parts = [graph.train(), graph.held_out(Split::Valid), graph.held_out(Split::Test)];
    assert_eq!(parts, [&[0][..], &[1], &[3]]);
    let values = vec![0.5, 1.0, -1.0, 2.0, 0.0, 0.0, 1e-3, 4.0];
    assert_eq!(graph.features, Features::Dense { width: 2, values });
}

#[test]
fn faults_of_the_open_graph_benchmark_have_their_place() {
    let refused = |name: &str, text: &str| {
        let files = OGB.map(|file| if file.0 == name { (name, text) } else { file });
        read_files(&files).expect_err(text)
    };
    let starts = |text: String, with: &str| assert!(text.starts_with(with), "{text}");
    let features = "raw/node-feat.csv.gz";
    starts(
        refused(features, "1,2\n1,2,3\n"),
        "raw/node-feat.csv.gz:2:6: the first node has 2 features",
    );
    starts(
        refused(features, "1,2\n1\n"),
        "raw/node-feat.csv.gz:2:2: the first node has 2 features",
    );
    starts(refused(features, "1,2\n1,nan\n"), "raw/node-feat.csv.gz:2:3: not a finite number");
    starts(refused(features, "1,2\n"), "raw/node-feat.csv.gz:2:1: a line for each of 4 nodes");
    starts(refused("raw/edge.csv.gz", "0,4\n"), "raw/edge.csv.gz:1:3: there is no such node");
    starts(refused("split/time/test.csv", "2\n"), "split/time/test.csv:1:1: a node of this part");
    starts(
        refused("split/time/test.csv", "0\n"),
        "split/time/test.csv:1:1: this node is in another",
    );
    starts(refused("raw/node-label.csv.gz", ""), "no node in raw/node-label.csv.gz");
    starts(read_files(&OGB[..1]).expect_err("no labels"), "no node-label.csv in ");
    for without_train in [&OGB[..3], &OGB[4..], &[OGB[5], ("split/old/readme", "")]] {
        let files = [&OGB[..3], without_train].concat();
        assert!(read_files(&files).expect("a graph").train().is_empty());
    }
}
