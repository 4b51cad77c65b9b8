//! Folders of triple files, well formed or not.

use std::fs;
use std::path::{Path, PathBuf};

use adapm_tasks::data::{DataError, Malformation};
use adapm_tasks::kge::{Graph, GraphSource};

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        let path = std::env::temp_dir().join(format!("adapm-{}-folder-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("creates");
        for (file, bytes) in files {
            fs::write(path.join(file), bytes).expect("writes");
        }
        Self(path)
    }

    fn load(&self) -> Result<Graph, DataError> {
        Graph::load(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(graph: &Graph) -> Vec<String> {
    let name = |index| graph.entities().text(index).expect("in range").into_owned();
    (0..graph.entities().len()).map(name).collect()
}

#[test]
fn names_are_read_and_what_train_does_not_know_is_kept_and_counted() {
    let folder = Folder::new(
        "names",
        &[
            ("train.txt", b"a\tr\tb\nb\tr\tc\na\tr\tb\n"),
            ("valid.txt", b"a\tr\tc\r\n"),
            ("test.tsv", b"a\tr\tnew\na\tother\tb\na\tr\tb"),
        ],
    );
    let graph = folder.load().expect("well formed");
    assert_eq!(names(&graph), ["a", "b", "c", "new"]);
    assert_eq!((graph.train().len(), graph.valid().len(), graph.test().len()), (2, 1, 3));
    let counts = graph.counts();
    assert_eq!((counts.duplicates, counts.unknown_valid, counts.unknown_test), (1, 0, 2));
    assert!(matches!(graph.source(), GraphSource::NameFiles(_)) && !graph.is_generated());
}

#[test]
fn ids_are_read_with_or_without_lists_of_names() {
    let train: &[u8] = b"7 0 5\n5 0 4000000000\n";
    let graph = Folder::new("ids", &[("train.del", train)]).load().expect("well formed");
    assert_eq!(names(&graph), ["5", "7", "4000000000"]);
    let first = graph.train()[0];
    assert_eq!((first.subject, first.relation, first.object), (1, 0, 0));

    let listed = Folder::new(
        "listed",
        &[
            ("train.del", b"0\t0\t2\n"),
            ("entity_ids.del", b"0\tzero\n1\tone\n2\ttwo\n"),
            ("relation_ids.del", b"0\tr\n"),
        ],
    );
    let graph = listed.load().expect("well formed");
    assert_eq!(names(&graph), ["zero", "one", "two"]);
    assert!(matches!(graph.source(), GraphSource::IdFiles(_)));
}

#[test]
fn what_is_missing_or_malformed_is_named() {
    let missing = Graph::load(Path::new("no/such/folder")).expect_err("missing");
    assert!(missing.to_string().contains("no/such/folder"));
    let empty = Folder::new("empty", &[]).load().expect_err("no train");
    assert!(matches!(empty, DataError::MissingSplit { split: "train", .. }));
    let blank = Folder::new("blank", &[("train.txt", b"\n\n")]).load().expect_err("no triple");
    assert!(matches!(blank, DataError::Empty { .. }));

    let malformed = Folder::new("malformed", &[("train.txt", b"a r b\n"), ("test.txt", b"a r b\n\na r\n")]);
    let error = malformed.load().expect_err("two fields");
    assert!(error.to_string().contains("test.txt:3:4: "), "{error}");
    let reason = Malformation::TooFewFields(2);
    let path = malformed.0.join("test.txt");
    assert_eq!(error, DataError::Malformed { path, line: 3, column: 4, reason });
    let outside = Folder::new("outside", &[("train.del", b"0 0 9\n"), ("entity_ids.del", b"0\ta\n")]);
    let reason = Malformation::IdOutOfRange;
    let path = outside.0.join("train.del");
    assert_eq!(outside.load(), Err(DataError::Malformed { path, line: 1, column: 5, reason }));
}
