//! Tests of reading ratings: every form, and every way a file can be wrong.

use proptest::prelude::*;

use super::*;
use crate::data::RatingFault;
use crate::data::bytes::HEAD_BYTES;

/// Row, column and value of a rating, as written.
type Read = (String, String, f32);

fn parse(text: &[u8]) -> Result<(RatingFormat, Vec<Read>), String> {
    let mut ratings = Vec::new();
    let format = read(text, Path::new("x"), &mut |rating| {
        ratings.push((rating.row.to_string(), rating.column.to_string(), rating.value));
        Ok(())
    });
    format.map(|found| (found.format, ratings)).map_err(|error| error.to_string())
}

fn ratings(text: &str) -> Vec<Read> {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}")).1
}

fn format(text: &str) -> String {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}")).0.to_string()
}

fn read_as(row: &str, column: &str, value: f32) -> Read {
    (row.to_owned(), column.to_owned(), value)
}

/// Returns the place of an error, and how its text begins.
fn error(text: &str) -> String {
    let error = parse(text.as_bytes()).expect_err("malformed");
    assert!(!error.contains('\n'), "{error}");
    error.split(';').next().expect("has a text").to_owned()
}

#[test]
fn forms_are_recognised_by_their_first_line() {
    let expected = [read_as("0", "22", 4.0), read_as("7", "3", -2.5)];
    for (text, name) in [
        ("0 22 4\n7 3 -2.5\n", "u i r by blanks"),
        ("0  22 4\r\n\r\n  7 3\t-2.5", "u i r by blanks"),
        ("0\t22\t4\t881250949\n7\t3\t-2.5\t1\n", "u i r time by tabs"),
        ("0::22::4::978300760\n7::3::-25e-1::0\n", "u i r time by ::"),
        (
            "userId,movieId,rating,timestamp\n0,22,4.0,1\n7, 3, -2.5, 2\n",
            "userId, movieId, rating by commas",
        ),
        ("0,22,4\n7,3,-2.5\n", "u i r by commas"),
        ("0;22;4\n7;3;-2,5\n", "u i r by semicolons"),
        ("sep=;\r\n0;22;4\r\n7;3;-2,5\r\n", "u i r by semicolons"),
        ("# SNAP\n% KONECT\n\n0 22 4\n7 3 -2.5", "u i r by blanks"),
        ("# item rating user\n22 4 0\n3 -2.5 7", "user, item, rating by blanks"),
    ] {
        assert_eq!(format(text), name);
        assert_eq!(ratings(text), expected, "{name}");
    }
    let market =
        "%%MatrixMarket matrix coordinate real general\n% c\n9 30 2\n0009 22 4\n7 3 -2.5\n";
    assert_eq!(format(market), "MatrixMarket");
    assert_eq!(ratings(market), [read_as("9", "22", 4.0), expected[1].clone()]);
}

#[test]
fn a_rating_whose_id_begins_as_a_comment_does_is_no_comment() {
    let found = |text: &str| {
        let mut ids = Vec::new();
        let found = read(text.as_bytes(), Path::new("x"), &mut |rating| {
            ids.push(rating.row.to_string());
            Ok(())
        });
        let found = found.unwrap_or_else(|error| panic!("{error}: {text}"));
        (found.comments, ids.join(" "))
    };
    for (text, comments, ids) in [
        ("#cats,1,3\n%dogs,2,4\ncows,1,5\n", 0, "#cats %dogs cows"),
        ("# made today\n#cats,1,3\n#dogs,2,4\n", 1, "#cats #dogs"),
        ("#\t1\t3\nthe\t2\t4\n", 0, "# the"),
        ("##a::1::3::5\nb::2::4::6\n", 0, "##a b"),
        // Fields that are not those of the others, sizes as of KONECT, names.
        ("#cats,1\n#cats,1,x\n#cats,1,2,3\ncows,1,5\n", 3, "cows"),
        ("% sym weighted\n% 3 4 5\n1 2 3\n", 2, "1"),
        ("%\n#\n\n% 3 4\n1 2 3\n", 3, "1"),
        ("#cats,1,3\nuser,item,rating\n1,2,3\n", 1, "1"),
        ("# user,item,rating\n#cats,1,3\n1,2,3\n", 0, "#cats 1"),
        ("# 1,2,3\n", 0, ""),
    ] {
        assert_eq!(found(text), (comments, ids.to_owned()), "{text}");
    }
}

#[test]
fn comments_may_be_long_but_not_endless() {
    let comment = format!("# {}\n", "x".repeat(100));
    for lines in [HEAD_BYTES / comment.len(), HEAD_BYTES / comment.len() + 1, 5_000] {
        let text = format!("{}1,2,3\n4,5,x\n", comment.repeat(lines));
        assert_eq!(error(&text), format!("x:{}:5: not a number", lines + 2));
        assert_eq!(
            ratings(&text.replace('x', "6")),
            [read_as("1", "2", 3.0), read_as("4", "5", 6.0)]
        );
    }
    let ids: String = (0..9_000).map(|id| format!("#{id},1,3\n")).collect();
    assert_eq!(ratings(&ids).len(), 9_000);
    assert!(error(&comment.repeat(170_000)).ends_with(": 16 MiB of comments and no rating"));
    assert!(
        error(&format!("# a\n#{}", "x".repeat(3 << 16)))
            .starts_with("x:2:65536: a line without end")
    );
}

#[test]
fn names_of_columns_are_believed() {
    let expected = [read_as("31", "509", 2.0), read_as("23", "525", 5.0)];
    for text in [
        "rating,userId,movieId\n2,31,509\n5,23,525\n",
        "userId,movieId,timestamp,rating\n31,509,1223314885,2\n23,525,1216886729,5\n",
        ",uid,iid,score\n0,31,509,2\n1,23,525,5\n",
        "user_id:token\titem_id:token\trating:float\n31\t509\t2.0\n23\t525\t5\n",
        "item user stars\n509 31 2\n525 23 5\n",
        "movie::rating::user\n509::2::31\n525::5::23\n",
        "\"User-ID\";\"ISBN\";\"Book-Rating\"\n\"31\";\"509\";\"2\"\n\"23\";\"525\";\"5,0\"\n",
    ] {
        assert_eq!(ratings(text), expected, "{text}");
    }
    assert_eq!(
        error("a,b,c\n1,2,3\n"),
        "x:1: no name of a column of users (rows) among `a`, `b`, `c`"
    );
}

#[test]
fn names_that_are_no_names_are_shown_on_one_short_line() {
    let text = format!("a\u{7}b,{},c\n1,2,3\n", "x".repeat(1_000));
    let error = parse(text.as_bytes()).expect_err("which is which?");
    assert!(!error.contains(char::is_control) && error.len() < 300, "{error}");
    assert!(error.contains("`a b`, `xxxx") && error.contains("xxx...`, `c`"), "{error}");
}

#[test]
fn ids_that_are_no_numbers_are_names() {
    let expected = [
        read_as("ann, the first", "034545104X", 4.5),
        read_as("1.0", "0002005018", 3.0),
        read_as("-8845298781299428018", "say \"x\"; y", 1.0),
    ];
    let text = "user,item,rating\n\"ann, the first\",034545104X,4.5\n1.0,0002005018,3\n\
                -8845298781299428018,\"say \"\"x\"\"; y\",\"1,0\"\n";
    assert_eq!(ratings(text), expected);
    // Between tabs a quote belongs to the name, unless the first line has quotes.
    let tabs = ratings("user\titem\tplays\n1\t\"Weird Al\" Yankovic\t7\n");
    assert_eq!(tabs, [read_as("1", "\"Weird Al\" Yankovic", 7.0)]);
    let quoted = ratings("\"u\"\t\"i\"\t\"r\"\n\"a; b\"\t\"2\"\t7\n");
    assert_eq!(quoted, [read_as("a; b", "2", 7.0)]);
}

#[test]
fn a_symmetric_matrix_has_both_of_each_pair() {
    let text = "%%MatrixMarket MATRIX Coordinate Integer symmetric\n3 3 2\n2 1 5\n3 3 6\n";
    assert_eq!(
        ratings(text),
        [read_as("2", "1", 5.0), read_as("1", "2", 5.0), read_as("3", "3", 6.0)]
    );
    assert_eq!(format(text), "MatrixMarket, symmetric");
}

#[test]
fn a_header_that_lies_is_found_out() {
    let market =
        |rest: &str| error(&format!("%%MatrixMarket matrix coordinate real general\n{rest}"));
    assert_eq!(market("2 2 2\n1 1 1\n"), "x:3:1: the file ends after 1 of 2 entries declared");
    assert_eq!(market("2 2 1\n1 1 1\n1 2 1\n"), "x:4:1: more than the 1 entries declared");
    assert_eq!(market("2 2 5\n"), "x:2:5: more entries than rows x columns");
    assert_eq!(
        market("2 2 1\n1 3 1\n"),
        "x:3:3: outside of the matrix, whose header declares 1 to 2"
    );
    assert_eq!(
        market("2 2 1\n0 1 1\n"),
        "x:3:1: outside of the matrix, whose header declares 1 to 2"
    );
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
        ("1 2 x", "2:5: not a number"),
        ("1 2 \u{e4}", "2:5: not a number"),
        ("1 2 NaN", "2:5: not a finite number"),
        ("1 2 -inf", "2:5: not a finite number"),
        ("1 2 1e39", "2:5: not a finite number"),
        ("1 2\0 3", "2:4: an id with a tab, a line end or another control character"),
    ] {
        assert_eq!(error(&format!("0 0 1\n{line}\n")), format!("x:{expected}"), "{line}");
    }
    assert_eq!(error("1,,3\n"), "x:1:3: this field is empty");
    assert_eq!(
        error("1,2,3,4,5\n"),
        "x:1:9: 5 fields, and no line of names says which are row, column and value"
    );
    assert_eq!(error("{\"user\": 1, \"item\": 2, \"overall\": 5.0}\n"), "x:1:1: this is JSON");
    assert_eq!(error("1,2,978300760,4\n"), "x:1:5: a time where the value is expected");
    assert_eq!(
        error("1::2::3::4\n1::2::3\n"),
        "x:2:8: a rating has 4 fields in this file, this line has 3"
    );
    assert_eq!(error("u,i,r\n1,2,nan\n"), "x:2:5: not a finite number");
    assert_eq!(error("u,i,r\r\n1,2,3\r\n\r\n1,2,x\r\n"), "x:4:5: not a number");
    assert_eq!(error("u;i;r\n1;2;1.234,5\n"), "x:2:5: not a number");
    // Quotes are counted.
    assert_eq!(error("u,i,r\n\"1\",\"2\",\"x\"\n"), "x:2:10: not a number");
    assert_eq!(error("u,i,r\n1,\"2,3\n4,5,6\n"), "x:2:1: a line of this rating ends within quotes");
    let latin = parse(b"u,i,r\n1,caf\xe9,3\n").expect_err("not UTF-8");
    assert!(latin.starts_with("x:2:6: the byte E9 is not UTF-8"), "{latin}");
}

#[test]
fn bytes_without_line_end_are_not_gathered() {
    let endless = vec![b'7'; 3 << 16];
    let text = parse(&endless).expect_err("no line of ratings");
    assert!(text.starts_with("x:1:65536: a line without end"), "{text}");
    let open = [b"u,i,r\n1,2,\"".as_slice(), &endless].concat();
    let text = parse(&open).expect_err("a quote that is not closed");
    assert!(text.starts_with("x:2:1: a line without end, or a quote that is not closed"), "{text}");
}

#[test]
fn what_the_caller_refuses_is_located() {
    let refused = read(b"1 2 3\n4 5 6\n".as_slice(), Path::new("x"), &mut |rating| {
        if rating.row == RatingId::Number(4) { Err(RatingFault::TooManyIds) } else { Ok(()) }
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
        soup in "(%%MatrixMarket matrix coordinate real general\n|u,i,r\n)?[0-9:,;e. \"\t\n\r-]{0,80}",
    ) {
        for bytes in [bytes.as_slice(), soup.as_bytes()] {
            if let Ok((_, ratings)) = parse(bytes) {
                prop_assert!(ratings.iter().all(|(_, _, value)| value.is_finite()));
            }
        }
    }
}
