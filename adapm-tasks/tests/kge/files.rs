//! Folders of triple files, well formed or not.

use std::fs;
use std::path::{Path, PathBuf};

use adapm_tasks::data::{DataError, Malformation};
use adapm_tasks::kge::{ColumnOrder, Graph, GraphFiles, GraphForm, GraphOptions, GraphSource};

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

fn files(graph: &Graph) -> &GraphFiles {
    match graph.source() {
        GraphSource::Files(files) => files,
        other => panic!("{other:?}"),
    }
}

fn form(graph: &Graph) -> GraphForm {
    files(graph).form
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
    assert_eq!((counts.unknown_entities, counts.unknown_relations, counts.overlap_test), (1, 1, 1));
    assert!(form(&graph) == GraphForm::Names(ColumnOrder::Hrt) && !graph.is_generated());
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
    assert_eq!(form(&graph), GraphForm::Ids);
}

#[test]
fn what_is_missing_or_malformed_is_named() {
    let missing = Graph::load(Path::new("no/such/folder")).expect_err("missing");
    assert!(missing.to_string().contains("no/such/folder"));
    let empty = Folder::new("empty", &[]).load().expect_err("no train");
    assert!(matches!(empty, DataError::MissingSplit { split: "train", .. }));
    let blank = Folder::new("blank", &[("train.txt", b"\n\n")]).load().expect_err("no triple");
    assert!(matches!(blank, DataError::Empty { .. }));

    let malformed =
        Folder::new("malformed", &[("train.txt", b"a r b\n"), ("test.txt", b"a r b\n\na r\n")]);
    let error = malformed.load().expect_err("two fields");
    assert!(error.to_string().contains("test.txt:3:4: "), "{error}");
    let reason = Malformation::TooFewFields(2);
    let path = malformed.0.join("test.txt");
    assert_eq!(error, DataError::Malformed { path, line: 3, column: 4, reason });
    let outside =
        Folder::new("outside", &[("train.del", b"0 0 9\n"), ("entity_ids.del", b"0\ta\n")]);
    let reason = Malformation::IdOutOfRange;
    let path = outside.0.join("train.del");
    assert_eq!(outside.load(), Err(DataError::Malformed { path, line: 1, column: 5, reason }));
}

/// Names of head, relation and tail of a part.
fn facts(graph: &Graph, part: &[adapm_tasks::kge::Triple]) -> Vec<String> {
    let entity = |index: u32| graph.entities().text(index as usize).expect("in range").into_owned();
    let fact = |triple: &adapm_tasks::kge::Triple| {
        let relation = graph.relations().text(triple.relation as usize).expect("in range");
        format!("{} {relation} {}", entity(triple.subject), entity(triple.object))
    };
    part.iter().map(fact).collect()
}

#[test]
fn tables_with_a_header_compressed_or_not_are_the_graph_of_plain_files() {
    let plain: [(&str, &[u8]); 3] = [
        ("train.txt", b"a\tr\tb\nb\tr\tc\n"),
        ("valid.txt", b"a\tr\tc\n"),
        ("test.txt", b"c\tr\tb\n"),
    ];
    let plain = Folder::new("plain", &plain).load().expect("well formed");
    let table = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).expect("memory takes every byte");
        encoder.finish().expect("memory takes every byte")
    };
    let files: [(&str, &[u8]); 3] = [
        ("train.csv.gz", &table("object,subject,predicate,source\nb,a ,r,\"x,y\"\nc,b,r,z\n")),
        ("dev.csv", b"\xef\xbb\xbfhead;relation;tail\r\na;r;c\r\n"),
        ("test.tsv.gz", &table("c\tr\tb\n")),
    ];
    let graph = Folder::new("tables", &files).load().expect("well formed");
    for part in [Graph::train, Graph::valid, Graph::test] {
        assert_eq!(facts(&graph, part(&graph)), facts(&plain, part(&plain)));
    }
    let files = self::files(&graph);
    assert_eq!(
        (files.header.as_deref(), files.trimmed),
        (Some("object subject predicate source"), 1)
    );
    assert_eq!(files.unused, ["source"]);
    let names = files
        .files
        .clone()
        .map(|path| path.expect("there are three").file_name().map(ToOwned::to_owned));
    assert_eq!(names, ["train.csv.gz", "dev.csv", "test.tsv.gz"].map(|name| Some(name.into())));
}

#[test]
fn the_other_order_of_columns_is_read_only_if_it_is_asked_for() {
    let named = Folder::new("htr", &[("train.txt", b"a b likes\nb c likes\nc a knows\n")]);
    assert!(matches!(named.load(), Err(DataError::OtherOrder { .. })));
    let load = |folder: &Folder, order| {
        let mut options = GraphOptions::default();
        options.column_order = Some(order);
        Graph::load_with(&folder.0, &options)
    };
    let graph = load(&named, ColumnOrder::Htr).expect("well formed");
    assert_eq!(facts(&graph, graph.train()), ["a likes b", "b likes c", "c knows a"]);
    let graph = load(&named, ColumnOrder::Hrt).expect("well formed");
    assert_eq!(facts(&graph, graph.train()), ["a b likes", "b c likes", "c a knows"]);

    let ids: [(&str, &[u8]); 5] = [
        ("train2id.txt", b"2\n0 1 0\n1 0 1\n"),
        ("valid2id.txt", b"1\n1 2 0\n"),
        ("test2id.txt", b"0\n"),
        ("entity2id.txt", b"3\n/m/a\t0\n/m/b\t1\n/m/c\t2\n"),
        ("relation2id.txt", b"2\nlikes\t0\nknows\t1\n"),
    ];
    let ids = Folder::new("openke", &ids);
    assert!(matches!(ids.load(), Err(DataError::OpenKe { .. })));
    assert!(matches!(load(&ids, ColumnOrder::Hrt), Err(DataError::OpenKe { .. })));
    let graph = load(&ids, ColumnOrder::Htr).expect("well formed");
    assert_eq!(facts(&graph, graph.train()), ["/m/a likes /m/b", "/m/b knows /m/a"]);
    assert_eq!(facts(&graph, graph.valid()), ["/m/b likes /m/c"]);
    assert_eq!((form(&graph), graph.test().len()), (GraphForm::OpenKe, 0));
}

#[test]
fn one_file_is_split_and_one_part_of_a_folder_is_refused() {
    let text: String =
        (0..200).map(|i| format!("e{}\tr{}\te{}\n", i % 20, i % 2, i * 3 % 37)).collect();
    let folder = Folder::new("alone", &[("all.tsv", text.as_bytes()), ("train.txt", b"a r b\n")]);
    let graph = Graph::load(&folder.0.join("all.tsv")).expect("well formed");
    assert_eq!([graph.train(), graph.valid(), graph.test()].map(<[_]>::len), [160, 20, 20]);
    assert_eq!((files(&graph).split_seed, graph.counts().unknown_entities), (Some(1), 0));
    assert!(Graph::load(&folder.0.join("train.txt")).is_ok(), "there is no other part");
    fs::write(folder.0.join("dev.tsv.gz"), b"").expect("writes");
    let refused = Graph::load(&folder.0.join("train.txt"));
    assert!(matches!(refused, Err(DataError::OneSplit { .. })), "{refused:?}");
}

#[test]
fn what_is_in_several_parts_or_repeated_is_counted_and_kept() {
    let files: [(&str, &[u8]); 3] = [
        ("train.txt", b"a r b\nb r c\nb r c\n"),
        ("valid.txt", b"a r b\na r c\na r c\n"),
        ("test.txt", b"a r c\nb r c\nb r c\nd q e\n"),
    ];
    let graph = Folder::new("several", &files).load().expect("well formed");
    let counts = graph.counts();
    assert_eq!([counts.duplicates, counts.duplicates_valid, counts.duplicates_test], [1, 1, 1]);
    assert_eq!([counts.overlap_valid, counts.overlap_test, counts.valid_in_test], [1, 2, 2]);
    assert_eq!([counts.unknown_valid, counts.unknown_test], [0, 1]);
    assert_eq!([counts.unknown_entities, counts.unknown_relations], [2, 1]);
    assert_eq!((graph.valid().len(), graph.test().len()), (3, 4));
}
