//! Kinds of bytes that are no UTF-8 text: encodings of two or four bytes a character, archives,
//! formats of other programs.
//!
//! A file is known by its first bytes, whatever its name. Bytes are called binary if more than one
//! in 32 of the first 64 KiB is a control character that no text has; a stray one does not make a
//! text binary.

use std::fmt;
use std::path::Path;

use memchr::memmem;

/// A kind of bytes that no task reads, with a way to make text of it.
#[derive(Clone, Copy)]
pub struct Foreign(&'static Kind);

impl Foreign {
    /// Returns the kind of a file that begins with these bytes, as many as are at hand up to
    /// [`HEAD_BYTES`]; `None` for text.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let kind = KINDS.iter().find(|kind| kind.begins(head)).or_else(|| without_mark(head));
        kind.or_else(|| is_binary(head).then_some(&BINARY)).map(Self)
    }

    /// The end of a sentence that begins with the file's name: what it is and, after a semicolon,
    /// what to do.
    pub(crate) fn describe(
        self,
        path: &Path,
        is_compressed: bool,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let Kind { name, remedy, .. } = self.0;
        let inner = if is_compressed { path.with_extension("") } else { path.to_path_buf() };
        let (quoted, inner) = (quoted(path), quoted(&inner));
        f.write_str(if is_compressed { "holds, compressed by gzip, " } else { "is " })?;
        match remedy {
            Remedy::Convert(from) if is_compressed => {
                write!(
                    f,
                    "{name}; convert it to UTF-8: zcat {quoted} | iconv -f {from} -t UTF-8 > {inner}"
                )
            }
            Remedy::Convert(from) => {
                let new = converted(path);
                write!(f, "{name}; convert it to UTF-8: iconv -f {from} -t UTF-8 {quoted} > {new}")
            }
            Remedy::Command(command) if is_compressed => {
                write!(f, "{name}, not text; unpack it: gunzip -k {quoted}; {command} {inner}")
            }
            Remedy::Command(command) => {
                write!(f, "{name}, not text; unpack it: {command} {quoted}")
            }
            Remedy::Advice(advice) => write!(f, "{name}, not text; {advice}"),
        }
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl PartialEq for Foreign {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Foreign {}

/// One kind.
struct Kind {
    /// Bytes it has at a place.
    signature: &'static [u8],
    at: usize,
    /// Further bytes, somewhere in the head.
    holds: &'static [u8],
    name: &'static str,
    remedy: Remedy,
}

/// A way to text.
#[derive(Clone, Copy)]
enum Remedy {
    /// From this encoding, as iconv calls it.
    Convert(&'static str),
    /// The command that unpacks it, without the file's name.
    Command(&'static str),
    Advice(&'static str),
}

impl Kind {
    const fn new(signature: &'static [u8], name: &'static str, remedy: Remedy) -> Self {
        Self { signature, at: 0, holds: b"", name, remedy }
    }

    fn begins(&self, head: &[u8]) -> bool {
        head.get(self.at..).is_some_and(|head| head.starts_with(self.signature))
            && memmem::find(head, self.holds).is_some()
    }
}

/// UTF-16 and UTF-32 without a byte order mark: what is Latin has a zero in most characters, always
/// at the same places.
fn without_mark(head: &[u8]) -> Option<&'static Kind> {
    let head = &head[..head.len().min(ENCODING_BYTES)];
    let characters = head.len() / 4;
    let mut zeros = [0; 4];
    for four in head.as_chunks::<4>().0 {
        zeros.iter_mut().zip(four).for_each(|(zeros, byte)| *zeros += usize::from(*byte == 0));
    }
    let (many, few) =
        (|count: usize| 4 * count > characters, |count: usize| 50 * count <= characters);
    match zeros.map(|zeros| (many(zeros), few(zeros))) {
        [(false, _), (true, _), (true, _), (true, _)] => Some(&UTF_32_LITTLE),
        [(true, _), (true, _), (true, _), (false, _)] => Some(&UTF_32_BIG),
        [(_, true), (true, _), (_, true), (true, _)] => Some(&UTF_16_LITTLE),
        [(true, _), (_, true), (true, _), (_, true)] => Some(&UTF_16_BIG),
        _ => None,
    }
}

fn is_binary(head: &[u8]) -> bool {
    let is_control = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127);
    32 * head.iter().filter(is_control).count() > head.len()
}

/// Returns the command that makes UTF-8 of a text in the encoding that iconv calls `from`.
pub(crate) fn conversion(path: &Path, from: &str) -> String {
    let quoted = quoted(path);
    if path.extension().is_some_and(|ending| ending == "gz") {
        return format!(
            "zcat {quoted} | iconv -f {from} -t UTF-8 > {}",
            self::quoted(&path.with_extension(""))
        );
    }
    format!("iconv -f {from} -t UTF-8 {quoted} > {}", converted(path))
}

/// `x.utf8.csv` for `x.csv`.
fn converted(path: &Path) -> String {
    let ending = path.extension().map(|ending| format!("utf8.{}", ending.to_string_lossy()));
    quoted(&path.with_extension(ending.as_deref().unwrap_or("utf8")))
}

/// Returns a path as a word of a shell command.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "._/+=:,@%-".contains(c);
    if text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Bytes at the start of a file that tell its kind.
pub(crate) const HEAD_BYTES: usize = 1 << 16;
/// Bytes that tell an encoding.
const ENCODING_BYTES: usize = 1 << 12;

const UTF_16_LITTLE: Kind = Kind::new(b"", "UTF-16 text", Remedy::Convert("UTF-16LE"));
const UTF_16_BIG: Kind = Kind::new(b"", "UTF-16 text", Remedy::Convert("UTF-16BE"));
const UTF_32_LITTLE: Kind = Kind::new(b"", "UTF-32 text", Remedy::Convert("UTF-32LE"));
const UTF_32_BIG: Kind = Kind::new(b"", "UTF-32 text", Remedy::Convert("UTF-32BE"));
const BINARY: Kind = Kind::new(b"", "binary data", Remedy::Advice("give a text file"));
const AS_CSV: Remedy = Remedy::Advice("save it as CSV (UTF-8) there");
const FROM_PROGRAM: Remedy = Remedy::Advice("export it as CSV");

/// In the order in which they are tried.
static KINDS: &[Kind] = &[
    Kind::new(b"\xff\xfe\0\0", "UTF-32 text", Remedy::Convert("UTF-32")),
    Kind::new(b"\0\0\xfe\xff", "UTF-32 text", Remedy::Convert("UTF-32")),
    Kind::new(b"\xff\xfe", "UTF-16 text", Remedy::Convert("UTF-16")),
    Kind::new(b"\xfe\xff", "UTF-16 text", Remedy::Convert("UTF-16")),
    Kind::new(b"\x1f\x8b", "a gzip file", Remedy::Command("gunzip -k")),
    Kind { holds: b"1AY&SY", ..Kind::new(b"BZh", "a bzip2 file", Remedy::Command("bunzip2 -k")) },
    Kind::new(b"\xfd7zXZ\0", "an xz file", Remedy::Command("unxz -k")),
    Kind::new(b"\x28\xb5\x2f\xfd", "a zstd file", Remedy::Command("unzstd")),
    Kind::new(b"\x04\x22\x4d\x18", "an lz4 file", Remedy::Command("lz4 -d")),
    Kind::new(b"\x1f\x9d", "a compress (.Z) file", Remedy::Command("uncompress -k")),
    Kind { holds: b"xl/", ..Kind::new(b"PK\x03\x04", "an Excel workbook", AS_CSV) },
    Kind { holds: b"opendocument", ..Kind::new(b"PK\x03\x04", "an OpenDocument file", AS_CSV) },
    Kind {
        holds: b"[Content_Types].xml",
        ..Kind::new(b"PK\x03\x04", "an Office document", AS_CSV)
    },
    Kind { holds: b".npy", ..Kind::new(b"PK\x03\x04", "an archive of NumPy arrays", FROM_PROGRAM) },
    Kind::new(b"PK\x03\x04", "a zip archive", Remedy::Command("unzip")),
    Kind::new(b"PK\x05\x06", "an empty zip archive", Remedy::Advice("give a text file")),
    Kind::new(b"7z\xbc\xaf\x27\x1c", "a 7z archive", Remedy::Command("7z x")),
    Kind::new(b"Rar!\x1a\x07", "a rar archive", Remedy::Command("unrar x")),
    Kind { at: 257, ..Kind::new(b"ustar", "a tar archive", Remedy::Command("tar -xf")) },
    Kind::new(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Office file", AS_CSV),
    Kind::new(b"%PDF-", "a PDF document", Remedy::Advice("give a text file")),
    Kind::new(b"SQLite format 3\0", "an SQLite database", FROM_PROGRAM),
    Kind::new(b"PAR1\x15", "a Parquet file", FROM_PROGRAM),
    Kind::new(b"ARROW1\0", "an Arrow file", FROM_PROGRAM),
    Kind::new(b"FEA1\0", "a Feather file", FROM_PROGRAM),
    Kind::new(b"Obj\x01", "an Avro file", FROM_PROGRAM),
    Kind::new(b"\x89HDF\r\n\x1a\n", "an HDF5 file", FROM_PROGRAM),
    Kind::new(b"\x93NUMPY", "a NumPy array", Remedy::Advice("write it as text: numpy.savetxt")),
    Kind::new(b"\x80\x04\x95", "a Python pickle", FROM_PROGRAM),
    Kind {
        holds: b"\0",
        ..Kind::new(
            b"adapmckp",
            "a file of trained parameters",
            Remedy::Advice("give it to --load"),
        )
    },
    Kind::new(
        b"version https://git-lfs.github.com/spec/",
        "a Git LFS pointer to the data",
        Remedy::Advice("fetch the data: git lfs pull"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    struct Described<'a>(&'a [u8], &'a str, bool);

    impl fmt::Display for Described<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            Foreign::of(self.0).expect("no text").describe(Path::new(self.1), self.2, f)
        }
    }

    fn encoded(text: &str, width: usize, is_big: bool, has_mark: bool) -> Vec<u8> {
        let mark = has_mark.then_some('\u{feff}');
        let characters = mark.into_iter().chain(text.chars()).map(u32::from);
        let bytes = |c: u32| match is_big {
            true => c.to_be_bytes()[4 - width..].to_vec(),
            false => c.to_le_bytes()[..width].to_vec(),
        };
        characters.flat_map(bytes).collect()
    }

    #[test]
    fn encodings_of_two_and_four_bytes_are_told_with_a_mark_and_without() {
        for text in
            ["userId,movieId,rating\n1,31,2.5\n", "a\tb\tc\n", "stra\u{df}e in Z\u{fc}rich\r\n"]
        {
            for (width, is_big, has_mark, from) in [
                (2, false, true, "UTF-16"),
                (2, true, true, "UTF-16"),
                (2, false, false, "UTF-16LE"),
                (2, true, false, "UTF-16BE"),
                (4, false, true, "UTF-32"),
                (4, true, true, "UTF-32"),
                (4, false, false, "UTF-32LE"),
                (4, true, false, "UTF-32BE"),
            ] {
                let bytes = encoded(text, width, is_big, has_mark);
                let expected = format!(
                    "is {} text; convert it to UTF-8: iconv -f {from} -t UTF-8 a/x.csv > a/x.utf8.csv",
                    &from[..6]
                );
                assert_eq!(Described(&bytes, "a/x.csv", false).to_string(), expected);
            }
        }
    }

    #[test]
    fn archives_and_files_of_other_programs_are_told_by_their_first_bytes() {
        let mut tar = vec![b'a'; 600];
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, expected) in [
            (b"BZh91AY&SY".as_slice(), "is a bzip2 file, not text; unpack it: bunzip2 -k 'my x'"),
            (
                b"PK\x03\x04..xl/workbook.xml",
                "is an Excel workbook, not text; save it as CSV (UTF-8) there",
            ),
            (b"PK\x03\x04..ratings.csv", "is a zip archive, not text; unpack it: unzip 'my x'"),
            (&tar, "is a tar archive, not text; unpack it: tar -xf 'my x'"),
            (b"SQLite format 3\0", "is an SQLite database, not text; export it as CSV"),
            (b"\x01\x02\x03\x04some", "is binary data, not text; give a text file"),
        ] {
            assert_eq!(Described(bytes, "my x", false).to_string(), expected);
        }
        assert_eq!(
            Described(&tar, "x.tar.gz", true).to_string(),
            "holds, compressed by gzip, a tar archive, not text; unpack it: gunzip -k x.tar.gz; tar -xf x.tar"
        );
    }

    #[test]
    fn texts_are_texts() {
        let latin = b"caf\xe9 na\xefve \xe0 la carte\n".as_slice();
        let stray = [
            "a text with a stray zero\0 and at its end that of a file of DOS\n".as_bytes(),
            b"\x1a",
        ]
        .concat();
        for text in [
            b"".as_slice(),
            b"\n",
            b"a",
            b"\xef\xbb\xbfa,b\r\n",
            latin,
            &stray,
            "\u{430}\u{431}".as_bytes(),
        ] {
            assert_eq!(Foreign::of(text), None, "{text:?}");
        }
    }
}
