//! Files of triples, well formed or not.

use proptest::prelude::*;

use super::*;

fn file(name: &str, bytes: &[u8]) -> File {
    let read = |_: &Path| Ok(Some(bytes.to_vec()));
    let folder = Folder { path: Path::new(""), read: &read };
    File::at(&folder, name.into()).expect("memory can be read").expect("it is there")
}

/// Names of the triples of a file, and what was noted.
fn read(name: &str, text: &str) -> Result<(Vec<[String; 3]>, Notes), DataError> {
    read_as(ColumnOrder::Hrt, name, text)
}

fn read_as(
    order: ColumnOrder,
    name: &str,
    text: &str,
) -> Result<(Vec<[String; 3]>, Notes), DataError> {
    let (mut entities, mut relations) = (Vocabulary::default(), Vocabulary::default());
    let mut notes = Notes::default();
    let triples =
        file(name, text.as_bytes()).names(order, [&mut entities, &mut relations], &mut notes)?;
    let text = |names: &Vocabulary, index: u32| {
        names.names().text(index as usize).expect("it has a name").into_owned()
    };
    let triple =
        |[h, r, t]: RawTriple| [text(&entities, h), text(&relations, r), text(&entities, t)];
    Ok((triples.into_iter().map(triple).collect(), notes))
}

fn error(name: &str, text: &str) -> String {
    read(name, text).expect_err("it is malformed").to_string()
}

#[test]
fn names_get_indices_by_first_appearance() {
    let (mut entities, mut relations) = (Vocabulary::default(), Vocabulary::default());
    let file = file("x.txt", b"\xef\xbb\xbfb r a\na r b\nb q b\n");
    let read = file.names(ColumnOrder::Hrt, [&mut entities, &mut relations], &mut Notes::default());
    assert_eq!(read, Ok(vec![[0, 0, 1], [1, 0, 0], [0, 1, 0]]));
    let names = |vocabulary: &Vocabulary| -> Vec<Vec<u8>> {
        (0..).map_while(|index| vocabulary.names().bytes(index).map(<[u8]>::to_vec)).collect()
    };
    assert_eq!(
        (names(&entities), names(&relations)),
        (vec![b"b".into(), b"a".into()], vec![b"r".into(), b"q".into()])
    );
}

#[test]
fn tabs_spaces_commas_and_semicolons_separate_the_same_triples() {
    let spaced =
        [["New York", "located in", "USA"], ["a", "is", "b"]].map(|row| row.map(str::to_owned));
    for (name, text) in [
        ("x.txt", "New York\tlocated in\tUSA\na\tis\tb\n"),
        ("x.txt", "New York,located in,USA\na,is,b\n"),
        ("x.csv", "New York,located in,USA\r\n\r\na,is,b"),
        ("x.csv.gz", "\"New York\",\"located in\",USA\n a , is,b\n"),
        ("x.csv", "New York;located in;USA\na;is;b\n"),
        ("x.tsv", "New York\t located in \tUSA\t\na is b\n"),
    ] {
        assert_eq!(read(name, text).expect(text).0, spaced, "{text}");
    }
    // What has three words is no CSV because of a comma.
    let (triples, _) = read("x.txt", "a,b is c\nd is e\n").expect("words");
    assert_eq!(triples[0], ["a,b", "is", "c"]);
    let (triples, _) = read("x.csv", "\"Doe, Jane\",\"said \"\"no\"\"\",x\n").expect("quotes");
    assert_eq!(triples[0], ["Doe, Jane", "said \"no\"", "x"]);
}

#[test]
fn a_first_line_of_names_is_skipped_and_believed() {
    let (triples, notes) = read("x.csv", "Head,Relation,Tail\na,r,b\n").expect("a header");
    assert_eq!(
        (triples, notes.header.as_deref()),
        (vec![["a", "r", "b"].map(str::to_owned)], Some("Head Relation Tail"))
    );
    let (triples, notes) =
        read("x.tsv", "id\tobject\tsubject\tpredicate\n7\tb\ta\tr\n").expect("a header");
    assert_eq!(
        (triples, notes.unused),
        (vec![["a", "r", "b"].map(str::to_owned)], vec!["id".to_owned()])
    );
    let (triples, _) =
        read_as(ColumnOrder::Htr, "x", "a b r\nhead relation tail\n").expect("no header");
    assert_eq!(triples.len(), 2);
    assert_eq!(triples[0], ["a", "r", "b"]);
    assert_eq!(triples[1], ["head", "tail", "relation"]);
}

#[test]
fn blanks_at_the_ends_of_names_are_cut_and_counted() {
    let (triples, notes) = read("x.tsv", "a \tr\t b\na\tr\tb\t\n").expect("tabs");
    assert_eq!((triples[0].clone(), notes.trimmed), (triples[1].clone(), 2));
}

#[test]
fn a_malformed_row_is_named_with_file_line_and_column() {
    for (name, text, place) in [
        ("x.txt", "a r b\n\na r\n", "x.txt:3:4: a triple has three fields, this line has 2"),
        (
            "x.txt",
            "a\tr\tb\nc\tr\td\te\n",
            "x.txt:2:7: a triple has three fields, a fourth begins here",
        ),
        ("x.tsv", "a\t\tb\n", "x.tsv:1:3: this field is empty"),
        ("x.csv", "a,r,b\n\n\"x,y\", ,b\n", "x.csv:3:8: this field is empty"),
        (
            "x.csv",
            "a,r,b\n\"x,y\",r,b,c\n",
            "x.csv:2:11: a triple has three fields, a fourth begins here",
        ),
        ("x.csv", "a,r,b\na,r\n", "x.csv:2:4: a triple has three fields, this line has 2"),
        ("x.csv", "a,r,b\na,\"r,b\nc,r,d\n", "x.csv:2:4: a name holds a tab or the end of a line"),
        (
            "x.csv",
            "subject,predicate,object,x\na,r,b\n",
            "x.csv:2:6: the first line names 4 columns, this line has 3",
        ),
    ] {
        let error = error(name, text);
        assert!(error.starts_with(place), "{error}");
    }
    let ids = |bytes: &[u8], limits| {
        file("x.del", bytes).ids(ColumnOrder::Hrt, limits).expect_err("malformed")
    };
    let error = ids(b"1\t2\t3\n\n1\t2\tx\n", [None; 3]);
    assert_eq!(error.to_string().split(": ").next(), Some("x.del:3:5"));
    let error = ids(b"0 0 7\n", [Some(7), Some(1), Some(7)]);
    let reason = Malformation::IdOutOfRange;
    assert_eq!(error, DataError::Malformed { path: "x.del".into(), line: 1, column: 5, reason });
}

#[test]
fn a_list_of_names_has_each_id_once() {
    assert_eq!(file("x", b"1\tb c\n0\ta \n").id_names(), Ok(vec![b"a".as_slice(), b"b c"]));
    let reason = |bytes: &[u8]| match file("x", bytes).id_names() {
        Err(DataError::Malformed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(b"0\ta\n0\tb\n"), Malformation::DuplicateId);
    assert_eq!(reason(b"0\ta\n2\tb\n"), Malformation::IdOutOfRange);
}

#[test]
fn openkes_files_begin_with_how_many_lines_there_are() {
    assert_eq!(
        file("x", b"2\n0 1 2\r\n1 0 3\n").counted_ids([None; 3]),
        Ok(vec![[0, 2, 1], [1, 3, 0]])
    );
    assert_eq!(file("x", b"1\n/m/x y\t0\n").counted_names(), Ok(vec![b"/m/x y".as_slice()]));
    let error =
        |bytes: &[u8]| file("x", bytes).counted_ids([None; 3]).expect_err("malformed").to_string();
    assert_eq!(error(b"3\n0 1 2\n"), "x:1:1: 3 lines should follow, 1 do; copy the file again");
    assert!(error(b"0 1 2\n").starts_with("x:1:1: this is not the number of the lines below"));
    assert!(error(b"2\n0 1 2\n0 x 2\n").starts_with("x:3:3: "));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), soup in "[0-9 ,;\"\t\n\ra]{0,80}") {
        for (name, bytes) in [("x.csv", &bytes[..]), ("x", &bytes), ("x.csv", soup.as_bytes()), ("x", soup.as_bytes())] {
            let file = file(name, bytes);
            let names = [&mut Vocabulary::default(), &mut Vocabulary::default()];
            let _ = file.names(ColumnOrder::Htr, names, &mut Notes::default());
            let _ = file.ids(ColumnOrder::Hrt, [None, Some(3), None]);
            let _ = file.id_names();
            let _ = file.counted_ids([None, Some(3), None]);
            let _ = file.counted_names();
        }
    }
}
