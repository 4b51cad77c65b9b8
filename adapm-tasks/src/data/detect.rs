//! Detection of the task that a file's data looks like, by its first lines.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::data::bytes::{self, HEAD_BYTES};
use crate::data::lines::lines;
use crate::data::looks::Looks;
use crate::data::ratings::{Separator, names_ratings};

/// Determines what a file looks like by its first 64 KiB, a folder by its training data; `None` if
/// that is not clear, or cannot be read.
#[must_use]
pub fn looks_like(path: &Path) -> Option<Looks> {
    let file = if path.is_dir() { training_file(path)? } else { path.to_path_buf() };
    let mut head = Vec::new();
    let source = bytes::open(&file).ok()?;
    source.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    if head.len() == HEAD_BYTES {
        // The last line is a part of one.
        let end = memchr::memrchr(b'\n', &head).unwrap_or(head.len());
        head.truncate(end);
    }
    of_lines(&head)
}

/// Returns the training data of a folder by the names that any task looks for.
fn training_file(folder: &Path) -> Option<PathBuf> {
    let mut names: Vec<PathBuf> =
        folder.read_dir().ok()?.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    names.sort_unstable();
    let stems = ["train.", "ratings.", "u.data"];
    let is_of = |path: &&PathBuf, stem: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().to_lowercase().starts_with(stem))
    };
    stems
        .iter()
        .find_map(|stem| names.iter().find(|path| is_of(path, stem) && path.is_file()).cloned())
}

fn of_lines(text: &[u8]) -> Option<Looks> {
    if text.starts_with(b"%%MatrixMarket") {
        return Some(Looks::Ratings);
    }
    let is_comment = |line: &[u8]| line.starts_with(b"#") || line.starts_with(b"%");
    let mut rows: Vec<&[u8]> =
        lines(text).map(|(_, line)| line).skip_while(|line| is_comment(line)).take(LINES).collect();
    let separator = Separator::of(rows.get(rows.len() / 2)?);
    if names_ratings(rows[0]) {
        return Some(Looks::Ratings);
    }
    let has_number = |line: &[u8]| separator.split(line).iter().any(|field| is_number(field));
    if rows.len() > 1 && !has_number(rows[0]) && rows[1..].iter().all(|line| has_number(line)) {
        // Names of columns.
        rows.remove(0);
    }
    let rows: Vec<Vec<Vec<u8>>> = rows.into_iter().map(|line| separator.split(line)).collect();
    let len = rows[rows.len() / 2].len();
    let usual = rows.iter().filter(|row| row.len() == len).count();
    let is_regular = 20 * usual >= 19 * rows.len();
    // A line may be wrong, and a name may be a number.
    let numbers = |place: usize| {
        let is_one = |row: &&Vec<Vec<u8>>| row.get(place).is_some_and(|field| is_number(field));
        2 * rows.iter().filter(is_one).count() >= rows.len()
    };
    let different =
        |place: usize| rows.iter().filter_map(|row| row.get(place)).collect::<HashSet<_>>().len();
    match (is_regular, len) {
        (true, 3) if (0..3).all(numbers) => of_numbers(&rows, different(1), different(2)),
        (true, 3 | 4) if numbers(2) => Some(Looks::Ratings),
        (true, 3) => Some(Looks::Triples),
        (true, VECTOR_FIELDS..) if (1..len).all(numbers) => Some(Looks::Vectors),
        (true, 4..) if (0..len).filter(|place| numbers(*place)).count() >= 3 => {
            Some(Looks::Ratings)
        }
        _ if separator == Separator::Blank && !(0..len).any(numbers) => Some(Looks::Text),
        _ => None,
    }
}

/// Three numbers a line: ratings have few different values or fractions, triples few different
/// relations.
fn of_numbers(rows: &[Vec<Vec<u8>>], seconds: usize, thirds: usize) -> Option<Looks> {
    let has_fraction = |row: &Vec<Vec<u8>>| row[2].contains(&b'.');
    if rows.iter().any(has_fraction) || (rows.len() >= FEW && 2 * thirds < seconds) {
        return Some(Looks::Ratings);
    }
    (rows.len() >= FEW && 2 * seconds < thirds).then_some(Looks::Triples)
}

fn is_number(field: &[u8]) -> bool {
    str::from_utf8(field.trim_ascii())
        .is_ok_and(|text| text.replace(',', ".").parse::<f64>().is_ok())
}

/// Lines that are looked at.
const LINES: usize = 1_000;
/// Lines of numbers that tell nothing if there are fewer.
const FEW: usize = 20;
/// Fields from which on a line is a vector.
const VECTOR_FIELDS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_told_from_its_lines() {
        let numbers = |line: &dyn Fn(usize) -> String| (0..60).map(line).collect::<String>();
        for (text, expected) in [
            (numbers(&|i| format!("{} {} {}\n", i % 7, i, i % 5)), Some(Looks::Ratings)),
            (numbers(&|i| format!("{}\t{}\t{}.5\n", i % 7, i % 3, i)), Some(Looks::Ratings)),
            (
                numbers(&|i| format!("{}::{}::{}::97830{i}\n", i % 7, i, i % 5)),
                Some(Looks::Ratings),
            ),
            (
                "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n".to_owned(),
                Some(Looks::Ratings),
            ),
            ("user,item,rating\n1,2,good\n".to_owned(), Some(Looks::Ratings)),
            ("ann,alien,4.5\nbob,brazil,3\n".to_owned(), Some(Looks::Ratings)),
            ("a\tr\tb\nb c\tr\ta\n".to_owned(), Some(Looks::Triples)),
            ("a r b\nb r a\n".to_owned(), Some(Looks::Triples)),
            (numbers(&|i| format!("{i}\t{}\t{}\n", i % 3, 60 - i)), Some(Looks::Triples)),
            (
                "the cat sat\non the mat it liked\nand so on\nand on and on\n".to_owned(),
                Some(Looks::Text),
            ),
            (numbers(&|i| format!("w{i} {}\n", "0.25 -1e-3 ".repeat(10))), Some(Looks::Vectors)),
            ("1 2 3\n1 3 x\n".to_owned(), None),
            ("1 2 3\n2 3 1\n".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(of_lines(text.as_bytes()), expected, "{text}");
        }
    }
}
