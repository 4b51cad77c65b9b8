//! Vectors in files: written, read back, by others too, and damaged.

use std::fs;
use std::process::{self, Command};

use super::*;

fn vectors() -> Vectors {
    let mut words = Names::default();
    [b"the".as_slice(), "m\u{e4}use".as_bytes(), b"\xff\xfe", b"1.5"]
        .iter()
        .for_each(|word| words.push(word));
    let values =
        [1.0, -0.25, 1e-9, f32::MIN_POSITIVE, 0.1, 3.0e38, -0.0, 2.0, 1.0 / 3.0, 0.5, 7.0, -1.0];
    Vectors::new(words, 3, values.to_vec()).unwrap()
}

fn bytes(vectors: &Vectors, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    vectors.write_to(&mut bytes, format).unwrap();
    bytes
}

fn fault(bytes: &[u8], format: Format) -> (u64, VectorFault) {
    match Vectors::of_bytes(bytes, Path::new("vectors"), format) {
        Err(CorpusError::Vectors { vector, reason, .. }) => (vector, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_bytes_are_those_of_word2vec() {
    let mut words = Names::default();
    [b"a".as_slice(), b"bc"].iter().for_each(|word| words.push(word));
    let vectors = Vectors::new(words, 2, vec![1.0, -0.5, 0.25, 2.0]).unwrap();
    assert_eq!(bytes(&vectors, Format::Text), b"2 2\na 1 -0.5\nbc 0.25 2\n");
    let expected =
        b"2 2\na \x00\x00\x80\x3f\x00\x00\x00\xbf\nbc \x00\x00\x80\x3e\x00\x00\x00\x40\n";
    assert_eq!(bytes(&vectors, Format::Binary), expected);
}

#[test]
fn what_is_written_is_read_back_bit_by_bit() {
    for format in [Format::Text, Format::Binary] {
        let bytes = bytes(&vectors(), format);
        let read = Vectors::of_bytes(&bytes, Path::new("vectors"), format).unwrap();
        assert_eq!(read.words(), vectors().words());
        let bits =
            |vectors: &Vectors| vectors.values().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&read), bits(&vectors()));
    }
    // gensim leaves the end of a line away; numbers whose bytes are white space are numbers.
    let no_ends = b"2 1\na \x20\x0a\x20\x0ab \x00\x00\x80\x3f";
    let read = Vectors::of_bytes(no_ends, Path::new("vectors"), Format::Binary).unwrap();
    assert_eq!(read.values(), [f32::from_le_bytes(*b"\x20\x0a\x20\x0a"), 1.0]);
}

#[test]
fn files_that_contradict_their_header_say_where() {
    let text = |text: &str| fault(text.as_bytes(), Format::Text);
    for header in ["", "3", "x y\n", "2\n", "0 2\n", "2 0\n", "-1 2\n"] {
        assert_eq!(text(header), (0, VectorFault::Header), "{header:?}");
    }
    assert_eq!(text("99999999999 99999999999\na 1"), (0, VectorFault::Missing));
    for value in ["NaN", "-inf", "1e99"] {
        assert_eq!(
            text(&format!("2 2\na 1 2\nb 1 {value}\n")),
            (2, VectorFault::NotFinite),
            "{value}"
        );
    }
    assert_eq!(fault(b"1 1\na \0\0\xc0\x7f\n", Format::Binary), (1, VectorFault::NotFinite));
    assert_eq!(text("4611686018427387904 4\na 1"), (0, VectorFault::Missing));
    assert_eq!(text("2 2\na 1 2\n"), (2, VectorFault::Missing));
    assert_eq!(text("2 2\na 1 2\nb 1"), (2, VectorFault::Missing));
    assert_eq!(text("2 2\na 1 x\nb 1 2"), (1, VectorFault::NotANumber));
    assert_eq!(text("2 2\na 1 2\na 1 2"), (2, VectorFault::DuplicateWord));
    assert_eq!(text("1 2\na 1 2 3"), (1, VectorFault::Surplus));
    assert_eq!(
        fault(b"1 2\na \x00\x00\x80\x3f\x00\x00\x80", Format::Binary),
        (1, VectorFault::Missing)
    );
    let whole = bytes(&vectors(), Format::Binary);
    for len in 0..whole.len() - 1 {
        assert!(
            Vectors::of_bytes(&whole[..len], Path::new("cut"), Format::Binary).is_err(),
            "{len}"
        );
    }
}

#[test]
fn vectors_need_a_value_for_every_word_and_dimension() {
    assert!(Vectors::new(vectors().words().clone(), 3, vec![0.0; 11]).is_none());
    assert!(Vectors::new(Names::default(), 0, Vec::new()).is_none());
    assert_eq!(vectors().vector(1), Some([f32::MIN_POSITIVE, 0.1, 3.0e38].as_slice()));
    assert_eq!(vectors().vector(4), None);
}

/// Returns the Python that `ADAPM_PYTHON` names, else `python3`, if it has gensim.
fn python() -> Option<String> {
    let python = std::env::var("ADAPM_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_it = Command::new(&python).args(["-c", "import gensim"]).output();
    has_it.is_ok_and(|output| output.status.success()).then_some(python)
}

#[test]
fn gensim_reads_both_forms() {
    let Some(python) = python() else {
        eprintln!("skipped: no python3 with gensim (ADAPM_PYTHON can name one)");
        return;
    };
    let mut words = Names::default();
    [b"the".as_slice(), "m\u{e4}use".as_bytes()].iter().for_each(|word| words.push(word));
    let vectors = Vectors::new(words, 3, vec![1.0, -0.25, 1e-9, 0.1, 3.0e38, 1.0 / 3.0]).unwrap();
    for format in [Format::Text, Format::Binary] {
        let name = format!("adapm-vectors-{}-{}", process::id(), format.name());
        let path = std::env::temp_dir().join(name);
        vectors.save(&path, format).unwrap();
        let program = "import sys\nfrom gensim.models import KeyedVectors\n\
            v = KeyedVectors.load_word2vec_format(sys.argv[1], binary=sys.argv[2] == 'binary')\n\
            print(v.index_to_key == ['the', 'm\\u00e4use'], v.vectors.astype('<f4').tobytes().hex())";
        let output =
            Command::new(&python).args(["-c", program]).arg(&path).arg(format.name()).output();
        fs::remove_file(path).unwrap();
        let hex: String = vectors
            .values()
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .map(|x| format!("{x:02x}"))
            .collect();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            format!("True {hex}"),
            "{errors}"
        );
    }
}

#[test]
fn the_form_of_a_file_is_found_in_its_first_vector() {
    for format in [Format::Text, Format::Binary] {
        assert_eq!(detect(&bytes(&vectors(), format)), VectorForm::Word2vec(format));
    }
    // What is neither is read as text, whose faults are easier to find.
    for text in [b"".as_slice(), b"2 2", b"2 2\n", b"no header\n", b"1 2\nword 1 2", b"the\n"] {
        assert_eq!(detect(text), VectorForm::Word2vec(Format::Text), "{text:?}");
    }
    assert_eq!(detect(b"1 2\nword 1"), VectorForm::Word2vec(Format::Binary));
    assert_eq!(detect(b"the 0.5 -1e-3\n"), VectorForm::Glove);
}

#[test]
fn vectors_of_glove_have_no_header_and_words_with_spaces() {
    let read = |text: &str| Vectors::of_any(text.as_bytes(), Path::new("glove.txt"));
    let (vectors, form) = read("the 0.5 -1\r\n. . . 0.25 2e1\nat name@domain.com 1 2\n").unwrap();
    assert_eq!(
        (form, vectors.dim(), vectors.values()),
        (VectorForm::Glove, 2, [0.5, -1.0, 0.25, 20.0, 1.0, 2.0].as_slice())
    );
    let words: Vec<_> = (0..3).map(|number| vectors.words().text(number).unwrap()).collect();
    assert_eq!(words, ["the", "._._.", "at_name@domain.com"]);
    let fault = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        fault("the 1 2\na 1\n"),
        "glove.txt, vector 2: not as many numbers as in the first line; copy the file again"
    );
    assert!(fault("the 1 2\na x 1\n").starts_with("glove.txt, vector 2: not a number"));
    assert!(fault("the 1 2\na 1 nan\n").starts_with("glove.txt, vector 2: a number is NaN"));
    assert!(
        fault("the 1 2\nthe 1 2\n")
            .starts_with("glove.txt, vector 2: this word has a vector already")
    );
}
