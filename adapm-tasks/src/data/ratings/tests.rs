//! Tests of reading ratings: every form, and every way a file can be wrong.

use proptest::prelude::*;

use super::*;

/// Row, column and value of a rating.
type Read = (u64, u64, f32);

fn parse(text: &[u8]) -> Result<(RatingFormat, Vec<Read>), String> {
    let mut ratings = Vec::new();
    let format = read(text, Path::new("x"), &mut |rating| {
        ratings.push((rating.row, rating.column, rating.value));
        Ok(())
    });
    format.map(|format| (format, ratings)).map_err(|error| error.to_string())
}

fn ratings(text: &str) -> Vec<Read> {
    parse(text.as_bytes()).expect("well formed").1
}

fn format(text: &str) -> String {
    parse(text.as_bytes()).expect("well formed").0.to_string()
}

/// Where an error is, and how its text begins.
fn error(text: &str) -> String {
    let error = parse(text.as_bytes()).expect_err("malformed");
    assert!(!error.contains('\n'), "{error}");
    error.split(';').next().expect("has a text").to_owned()
}

#[test]
fn forms_are_recognised_by_their_first_line() {
    let expected = [(0, 22, 4.0), (7, 3, -2.5)];
    for (text, name) in [
        ("0 22 4\n7 3 -2.5\n", "u i r by blanks"),
        ("\u{feff}0\t22\t4\r\n\r\n  7 3\t-2.5", "u i r by blanks"),
        ("0\t22\t4\t881250949\n7\t3\t-2.5\t1\n", "u i r time by blanks"),
        ("0::22::4::978300760\n7::3::-25e-1::0\n", "u i r time by ::"),
        ("userId,movieId,rating,timestamp\n0,22,4.0,1\n7, 3, -2.5, 2\n", "u i r time by commas below names"),
        ("0,22,4\n7,3,-2.5\n", "u i r by commas"),
        ("%%MatrixMarket matrix coordinate real general\n% c\n9 30 2\n0009 22 4\n7 3 -2.5\n", "MatrixMarket"),
    ] {
        assert_eq!(format(text), name);
        let first = if name == "MatrixMarket" { (9, 22, 4.0) } else { expected[0] };
        assert_eq!(ratings(text), [first, expected[1]], "{name}");
    }
}

#[test]
fn a_symmetric_matrix_has_both_of_each_pair() {
    let text = "%%MatrixMarket MATRIX Coordinate Integer symmetric\n3 3 2\n2 1 5\n3 3 6\n";
    assert_eq!(ratings(text), [(2, 1, 5.0), (1, 2, 5.0), (3, 3, 6.0)]);
    assert_eq!(format(text), "MatrixMarket, symmetric");
}

#[test]
fn a_header_that_lies_is_found_out() {
    let market = |rest: &str| error(&format!("%%MatrixMarket matrix coordinate real general\n{rest}"));
    assert_eq!(market("2 2 2\n1 1 1\n"), "x:3:1: the file ends after 1 of 2 entries declared");
    assert_eq!(market("2 2 1\n1 1 1\n1 2 1\n"), "x:4:1: more than the 1 entries declared");
    assert_eq!(market("2 2 5\n"), "x:2:5: more entries than rows x columns");
    assert_eq!(market("2 2 1\n1 3 1\n"), "x:3:3: outside of the matrix, whose header declares 1 to 2");
    assert_eq!(market("2 2 1\n0 1 1\n"), "x:3:1: outside of the matrix, whose header declares 1 to 2");
    assert_eq!(market(""), "x:1:1: no sizes");
    assert_eq!(market("2 2\n"), "x:2:4: no sizes");
    let large = "18446744073709551615 18446744073709551615 99999999999999999\n1 1 1\n";
    assert_eq!(market(large), "x:3:1: the file ends after 1 of 99999999999999999 entries declared");
}

#[test]
fn matrices_that_are_no_ratings_are_refused() {
    for (banner, column) in [
        ("matrix coordinate pattern general", 34),
        ("matrix coordinate complex general", 34),
        ("matrix array real general", 23),
        ("matrix coordinate real skew-symmetric", 39),
        ("vector coordinate real general", 16),
    ] {
        let text = error(&format!("%%MatrixMarket {banner}\n1 1 1\n1 1 1\n"));
        assert_eq!(text, format!("x:1:{column}: no matrix of ratings"), "{banner}");
    }
    assert_eq!(
        error("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n"),
        "x:2:3: no matrix of ratings"
    );
    assert!(error("%%MatrixMarket\n").starts_with("x:1:15: a rating has 5 fields"));
}

#[test]
fn malformed_lines_are_named_with_line_and_column() {
    for (line, expected) in [
        ("1 2", "2:4: a rating has 3 fields in this file, this line has 2"),
        ("1 2 3 4", "2:7: a rating has 3 fields in this file, another begins here"),
        ("-1 2 3", "2:1: this id is negative"),
        ("1 -2 3", "2:3: this id is negative"),
        ("1 x 3", "2:3: not a decimal id"),
        ("1.5 2 3", "2:1: not a decimal id"),
        ("1 18446744073709551616 3", "2:3: this id is 2^64 or more"),
        ("1 2 x", "2:5: not a number"),
        ("1 2 \u{e4}", "2:5: not a number"),
        ("1 2 NaN", "2:5: not a finite number"),
        ("1 2 -inf", "2:5: not a finite number"),
        ("1 2 1e39", "2:5: not a finite number"),
    ] {
        assert_eq!(error(&format!("0 0 1\n{line}\n")), format!("x:{expected}"), "{line}");
    }
    assert_eq!(error("1,,3\n"), "x:1:3: this field is empty");
    assert_eq!(error("1,2,3,4,5\n"), "x:1:8: a rating has 4 fields in this file, another begins here");
    assert_eq!(error("1::2::3::4\n1::2::3\n"), "x:2:8: a rating has 4 fields in this file, this line has 3");
    assert_eq!(error("u,i,r\n1,2,nan\n"), "x:2:5: not a finite number");
}

#[test]
fn bytes_without_line_end_are_not_gathered() {
    let endless = vec![b'7'; 3 << 16];
    let text = parse(&endless).expect_err("no line of ratings");
    assert!(text.starts_with("x:1:65536: a line without end"), "{text}");
}

#[test]
fn what_the_caller_refuses_is_located() {
    let refused = read(b"1 2 3\n4 5 6\n".as_slice(), Path::new("x"), &mut |rating| {
        if rating.row == 4 { Err(RatingFault::TooManyIds) } else { Ok(()) }
    });
    assert!(refused.expect_err("refused").to_string().starts_with("x:2:1: more than 2^32 - 1"));
}

#[test]
fn files_without_ratings_have_none() {
    assert_eq!(ratings(""), []);
    assert_eq!(ratings("\n \n"), []);
    assert_eq!(ratings("user,item,rating\n"), []);
    assert_eq!(ratings("%%MatrixMarket matrix coordinate real general\n5 5 0\n"), []);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        soup in "(%%MatrixMarket matrix coordinate real general\n)?[0-9:,e. \t\n\r-]{0,80}",
    ) {
        for bytes in [bytes.as_slice(), soup.as_bytes()] {
            if let Ok((_, ratings)) = parse(bytes) {
                prop_assert!(ratings.iter().all(|(_, _, value)| value.is_finite()));
            }
        }
    }
}
