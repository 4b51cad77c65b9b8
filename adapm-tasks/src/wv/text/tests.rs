//! Texts: read, unpacked, cut into shares of whole words.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::wv::Vocabulary;
use crate::wv::text::{words, *};

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("adapm-text-{}-{name}", std::process::id()));
    fs::write(&path, bytes).unwrap();
    path
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_word_belongs_to_exactly_one_share_and_is_whole() {
    let long = vec![b'x'; 3 * PIECE_BYTES as usize + 1];
    let mut one_line = Vec::new();
    (0..40_000).for_each(|i| write!(one_line, "w{i} ").unwrap());
    let mixed =
        [b"a b\r\n\r\nc \xff\xfe d\n".as_slice(), &long, b" e\tf\n", &long, b"\n", &one_line]
            .concat();
    for text in [b"".as_slice(), b"a", b"a b", b" \n\r\n ", b"a\nb\nc", &long, &one_line, &mixed] {
        let expected: Vec<&[u8]> = words(text).collect();
        let path = file("shares", text);
        for all in [1, 2, 3, 7, 64, 1000] {
            // Read from memory, and piece by piece.
            for whole in [Text::of_bytes(text), Text::open(&path).unwrap()] {
                let shares: Vec<Share<'_>> =
                    (0..all).map(|index| whole.share(index, all).unwrap()).collect();
                let bytes: Vec<Vec<u8>> =
                    shares.iter().map(|share| share.bytes().unwrap()).collect();
                assert_eq!(bytes.concat(), text, "{all}");
                let mut found: Vec<Vec<u8>> = Vec::new();
                shares
                    .iter()
                    .for_each(|share| share.words(|word| found.push(word.to_vec())).unwrap());
                assert!(found == expected, "{all} shares of {} bytes", text.len());
            }
        }
        fs::remove_file(path).unwrap();
    }
}

fn bytes_of(text: &Text) -> Vec<u8> {
    text.share(0, 1).unwrap().bytes().unwrap()
}

#[test]
fn a_file_that_becomes_shorter_is_an_error_that_names_it() {
    let path = file("shrinks", &b"some words\n".repeat(100_000));
    let text = Text::open(&path).unwrap();
    let share = text.share(1, 2).unwrap();
    fs::write(&path, b"some words\n".repeat(70_000)).unwrap();
    let error = share.words(|_| {}).unwrap_err();
    assert_eq!(error, DataError::Shrunk { path: path.clone() });
    assert!(
        error.to_string().starts_with(&format!("{} became shorter", path.display())),
        "{error}"
    );
    assert_eq!(Vocabulary::count(&text, 1, 2).unwrap_err(), CorpusError::Text(error));
    fs::remove_file(path).unwrap();
}

#[test]
fn shares_end_with_lines_where_lines_are_short() {
    let text = Text::of_bytes("some words of a line\n".repeat(1000).as_bytes());
    for index in 0..7 {
        assert!(text.share(index, 7).unwrap().bytes().unwrap().ends_with(b"\n"));
    }
}

#[test]
fn shares_of_one_long_line_are_nearly_equal() {
    let text = Text::of_bytes("word ".repeat(100_000).as_bytes());
    for index in 0..8 {
        let len = text.share(index, 8).unwrap().bytes().unwrap().len();
        assert!(len.abs_diff(500_000 / 8) < 10, "{len}");
    }
}

#[test]
fn a_plain_and_a_compressed_file_are_the_same_text() {
    let bytes = "the cat sat on the mat\n".repeat(500);
    let (plain, packed) =
        (file("plain", bytes.as_bytes()), file("packed", &compressed(bytes.as_bytes())));
    let (plain_text, packed_text) = (Text::open(&plain).unwrap(), Text::open(&packed).unwrap());
    assert_eq!(bytes_of(&plain_text), bytes.as_bytes());
    assert_eq!(bytes_of(&packed_text), bytes.as_bytes());
    assert_eq!(plain_text.source(), &TextSource::File(plain.clone()));
    assert_eq!(packed_text.source(), &TextSource::Compressed(packed.clone()));
    // Concatenated files are the concatenated texts.
    let twice = [compressed(b"a "), compressed(b"b")].concat();
    fs::write(&packed, twice).unwrap();
    assert_eq!(bytes_of(&Text::open(&packed).unwrap()), b"a b");
    fs::remove_file(plain).unwrap();
    fs::remove_file(packed).unwrap();
}

#[test]
fn an_empty_file_is_an_empty_text_and_a_byte_order_mark_is_no_word() {
    let (empty, marked) = (file("empty", b""), file("marked", b"\xef\xbb\xbfa"));
    assert_eq!(bytes_of(&Text::open(&empty).unwrap()), b"");
    assert_eq!(bytes_of(&Text::open(&marked).unwrap()), b"a");
    fs::remove_file(empty).unwrap();
    fs::remove_file(marked).unwrap();
}

#[test]
fn a_compressed_file_that_is_cut_short_or_damaged_is_named() {
    let whole = compressed("the cat sat on the mat\n".repeat(500).as_bytes());
    let path = file("cut.gz", b"");
    for len in [2, 9, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(
            Text::open(&path).unwrap_err(),
            CorpusError::Text(DataError::CutShort { path: path.clone() }),
            "{len}"
        );
    }
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&path, damaged).unwrap();
    let error = Text::open(&path).unwrap_err();
    assert_eq!(error, CorpusError::Text(DataError::Damaged { path: path.clone() }));
    assert!(error.to_string().starts_with(&format!("{} is damaged", path.display())));
    fs::remove_file(path).unwrap();
}

#[test]
fn what_is_no_file_is_an_error() {
    let missing = Path::new("no/such/text");
    let error = Text::open(missing).unwrap_err();
    assert!(
        matches!(&error, CorpusError::Text(DataError::Unreadable { error, .. }) if error.kind() == io::ErrorKind::NotFound)
    );
    let expected = "cannot read no/such/text: no such file; check the path";
    assert_eq!(error.to_string(), expected);
    let folder = Text::open(&std::env::temp_dir()).unwrap_err().to_string();
    assert!(folder.ends_with("is a directory; give a file"), "{folder}");
}

#[test]
fn lines_that_end_with_a_return_alone_are_lines_and_what_is_no_text_is_refused() {
    let path = file("returns", b"\xef\xbb\xbfa b\rc d\r");
    assert_eq!(bytes_of(&Text::open(&path).unwrap()), b"a b\nc d\n");
    fs::write(&path, b"BZh91AY&SY and more").unwrap();
    let error = Text::open(&path).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("{} is a bzip2 file, not text; unpack it:", path.display())),
        "{error}"
    );
    fs::remove_file(path).unwrap();
}

#[test]
fn white_space_separates_and_newlines_end_lines() {
    let (a, b, end) = ("a", "\u{fffd}b", "END");
    let tokens = |bytes: &[u8]| {
        let text = Text::of_bytes(bytes);
        let mut tokens = text.share(0, 1).unwrap().tokens();
        let mut found = Vec::new();
        while let Some(token) = tokens.next().unwrap() {
            found.push(match token {
                Token::Word(word) => String::from_utf8_lossy(word).into_owned(),
                Token::LineEnd => end.to_owned(),
            });
        }
        found
    };
    assert_eq!(tokens(b" a\t \x0c\xffb\r\n\na"), [a, b, end, end, a]);
    assert_eq!(tokens(b""), [""; 0]);
    assert_eq!(tokens(b"\r\n "), [end]);
    assert_eq!(words(b"a\n\n \xffb").collect::<Vec<_>>(), [b"a".as_slice(), b"\xffb"]);
}
