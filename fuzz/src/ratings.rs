//! Target `ratings`: any file is ratings or is refused at one of its lines; ratings survive writing
//! and reading.
//!
//! The first byte chooses the form, and whether a further byte stands for itself or for a typical
//! line. Not here: opening files, and the roles of a folder's files.

use adapm_tasks::data::DataError;
use adapm_tasks::testing::ratings_of;

/// Reads `bytes` as a file. Returns true if it has ratings.
pub fn ratings(bytes: &[u8]) -> bool {
    let Some((&form, rest)) = bytes.split_first() else { return false };
    let file = if form & 1 == 0 { lines(form, rest) } else { rest.to_vec() };
    match ratings_of(&file) {
        Ok(ratings) => {
            assert!(ratings.iter().all(|(.., value)| value.is_finite()), "values are numbers");
            again(&ratings);
            !ratings.is_empty()
        }
        Err(error) => {
            assert!(
                !error.to_string().contains(char::is_control),
                "an error is one line: {error:?}"
            );
            let (line, column) = match &error {
                DataError::Malformed { line, column, .. } => (line, column),
                DataError::UnknownColumns { line, .. } => (line, &1),
                _ => panic!("memory can be read: {error}"),
            };
            let all = file.split(|byte| *byte == b'\n').count() as u64;
            assert!((1..=all).contains(line) && *column >= 1, "{error}: there is no such place");
            false
        }
    }
}

/// Writes the ratings as lines of three fields and reads them again.
fn again(ratings: &[(String, String, f32)]) {
    let quoted = |id: &str| format!("\"{}\"", id.replace('"', "\"\""));
    let line = |(row, column, value): &(String, String, f32)| {
        format!("{value};{};{}\n", quoted(row), quoted(column))
    };
    let lines: String = ratings.iter().map(line).collect();
    let file = format!("rating;user;item\n{lines}");
    let again = ratings_of(file.as_bytes()).expect("what was read can be written");
    assert_eq!(again, ratings, "ratings are read as they are written");
}

/// Returns a file of one of the forms, one line per byte, mostly a sound one; random bytes rarely
/// are.
fn lines(form: u8, bytes: &[u8]) -> Vec<u8> {
    let kind = FORMS[usize::from(form >> 1 & 3)];
    let mut file = kind.head.replace("ENTRIES", &bytes.len().to_string());
    for byte in bytes {
        // One form in four has a few lines that no file may have.
        if form >> 6 == 0 && byte >> 2 == 0x3f {
            file.push_str(ODD[usize::from(byte & 3)]);
            continue;
        }
        let ids = [byte & 3, byte >> 2 & 3].map(|id| (id + kind.first_id).to_string());
        let value = (f32::from(byte >> 4) - 7.5) / 2.0;
        let mut fields = vec![ids[0].clone(), ids[1].clone(), value.to_string()];
        if form & 8 != 0 && kind.may_be_timed {
            fields.push("978300760".to_owned());
        }
        file.push_str(&fields.join(kind.separator));
        file.push_str(if form & 16 == 0 { "\n" } else { "\r\n" });
    }
    file.into_bytes()
}

/// The syntax of a form of file.
#[derive(Clone, Copy)]
struct Form {
    head: &'static str,
    separator: &'static str,
    first_id: u8,
    may_be_timed: bool,
}

const FORMS: [Form; 4] = [
    Form { head: "", separator: " ", first_id: 0, may_be_timed: true },
    Form { head: "userId,movieId,rating\n", separator: ",", first_id: 0, may_be_timed: false },
    Form { head: "", separator: "::", first_id: 0, may_be_timed: true },
    Form {
        head: "%%MatrixMarket matrix coordinate real general\n% a comment\n4 128 ENTRIES\n",
        separator: "\t",
        first_id: 1,
        may_be_timed: false,
    },
];

const ODD: [&str; 4] = ["-1 0 1\n", "0 18446744073709551616 1\n", "0,0,nan\n", "\u{feff}\t\n"];
