//! Files of data as bytes: opened, decompressed, and text only. All readers of data begin here.
//!
//! | a file | becomes |
//! | --- | --- |
//! | gzip, by its first bytes, of one or several members | the bytes within |
//! | a byte order mark (UTF-8) | nothing |
//! | `\r` at the end of each line, and no `\n` | `\n` |
//! | what is no text ([`Foreign`]) | [`DataError::NotText`] |
//! | gzip that ends early or is damaged | [`DataError::CutShort`], [`DataError::Damaged`] |
//!
//! `\r\n` is left to the reader of lines, as is text that is not UTF-8: see [`check_text`].

use std::io::{self, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memrchr};

pub(crate) use crate::data::foreign::HEAD_BYTES;
use crate::data::{DataError, Foreign, Malformation};
use crate::files;

/// The text of a file, from front to back.
pub(crate) struct Source {
    reader: Box<dyn Read>,
    is_compressed: bool,
}

/// The form of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// Text as it is, after so many bytes of a byte order mark.
    Text {
        /// 0 or 3.
        mark: usize,
    },
    /// Text whose lines end with `\r`, after a byte order mark or not.
    LoneReturns {
        /// 0 or 3.
        mark: usize,
    },
    /// gzip.
    Compressed,
}

/// Opens a file whose text is read from front to back.
///
/// # Errors
///
/// A file that is missing or unreadable, or is no text, by its first 64 KiB.
pub(crate) fn open(path: &Path) -> Result<Source, DataError> {
    Source::new(files::open(path).map_err(|error| failure(path, &error))?, path)
}

/// Reads the text of a whole file.
///
/// # Errors
///
/// As [`open`]; gzip that ends early or is damaged.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    open(path)?.all(path)
}

/// Reads a whole file, which need not be text, and decompresses it if it is gzip.
///
/// # Errors
///
/// A file that is missing or unreadable; gzip that ends early or is damaged.
pub(crate) fn read_binary(path: &Path) -> Result<Vec<u8>, DataError> {
    let bytes = files::read(path).map_err(|error| failure(path, &error))?;
    if !bytes.starts_with(GZIP) {
        return Ok(bytes);
    }
    let mut inner = Vec::new();
    MultiGzDecoder::new(bytes.as_slice())
        .read_to_end(&mut inner)
        .map_err(|error| failure(path, &error))?;
    Ok(inner)
}

/// Determines the form of a file by its first bytes, as many as are at hand up to [`HEAD_BYTES`].
///
/// # Errors
///
/// No text.
pub(crate) fn head(first: &[u8], path: &Path, is_compressed: bool) -> Result<Head, DataError> {
    if first.starts_with(GZIP) && !is_compressed {
        return Ok(Head::Compressed);
    }
    if let Some(kind) = Foreign::of(first) {
        return Err(DataError::NotText { path: path.to_path_buf(), kind, is_compressed });
    }
    let mark = first.len() - without_mark(first).len();
    // One at the very end of what is at hand may be half of a `\r\n`.
    let ends = first.len() == HEAD_BYTES;
    let has_returns = memchr(b'\r', &first[..first.len() - usize::from(ends)]).is_some();
    let is_lone = has_returns && memchr(b'\n', first).is_none();
    Ok(if is_lone { Head::LoneReturns { mark } } else { Head::Text { mark } })
}

/// Returns the error of reading a file, compressed or not.
pub(crate) fn failure(path: &Path, error: &io::Error) -> DataError {
    let path = path.to_path_buf();
    match error.kind() {
        // Said by the decoder alone: a file has an end wherever it has one.
        io::ErrorKind::UnexpectedEof => DataError::CutShort { path },
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => DataError::Damaged { path },
        _ => DataError::Unreadable { path, error: error.into() },
    }
}

/// Text without the byte order mark that it may begin with.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Checks that text is UTF-8 without zero bytes, as names have to be.
///
/// # Errors
///
/// The first line that is not, with the byte.
pub(crate) fn check_text(bytes: &[u8], path: &Path) -> Result<(), DataError> {
    let zero = memchr(0, bytes).map(|at| (at, Malformation::Zero));
    let foreign = str::from_utf8(bytes).err().map(|error| {
        let at = error.valid_up_to();
        (at, Malformation::NotUtf8 { byte: bytes[at] })
    });
    let Some((at, reason)) = zero.into_iter().chain(foreign).min_by_key(|(at, _)| *at) else {
        return Ok(());
    };
    let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64 + 1;
    let column = (at - memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1)) as u64 + 1;
    Err(DataError::Malformed { path: path.to_path_buf(), line, column, reason })
}

impl Source {
    /// Returns the text that `reader` reads; `path` is for errors.
    ///
    /// # Errors
    ///
    /// No text; what `reader` refuses.
    pub(crate) fn new(mut reader: impl Read + 'static, path: &Path) -> Result<Self, DataError> {
        let first = first_of(&mut reader, path)?;
        match head(&first, path, false)? {
            Head::Compressed => {
                let mut decoder = MultiGzDecoder::new(io::BufReader::with_capacity(
                    HEAD_BYTES,
                    Cursor::new(first).chain(reader),
                ));
                let first = first_of(&mut decoder, path)?;
                let head = head(&first, path, true)?;
                Ok(Self { reader: rest(first, head, decoder), is_compressed: true })
            }
            head => Ok(Self { reader: rest(first, head, reader), is_compressed: false }),
        }
    }

    /// Returns true if it is decompressed while it is read.
    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Reads the rest.
    pub(crate) fn all(mut self, path: &Path) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        self.reader.read_to_end(&mut bytes).map_err(|error| failure(path, &error))?;
        Ok(bytes)
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Returns the first bytes of a file, as many as determine its form.
fn first_of(reader: &mut impl Read, path: &Path) -> Result<Vec<u8>, DataError> {
    let mut first = Vec::with_capacity(HEAD_BYTES);
    reader
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut first)
        .map_err(|error| failure(path, &error))?;
    Ok(first)
}

/// Returns the text that begins with the bytes `first` and goes on with those of `reader`.
fn rest(first: Vec<u8>, head: Head, reader: impl Read + 'static) -> Box<dyn Read> {
    let (Head::Text { mark } | Head::LoneReturns { mark }) = head else {
        return Box::new(Cursor::new(first).chain(reader));
    };
    let mut first = Cursor::new(first);
    first.set_position(mark as u64);
    let text = first.chain(reader);
    if matches!(head, Head::LoneReturns { .. }) { Box::new(Returns(text)) } else { Box::new(text) }
}

/// A text with `\n` for each `\r`.
struct Returns<R>(R);

impl<R: Read> Read for Returns<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.0.read(buffer)?;
        buffer[..len].iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
        Ok(len)
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const GZIP: &[u8] = b"\x1f\x8b";

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn text(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let path = Path::new("x.txt.gz");
        let source = Source::new(Cursor::new(bytes.to_vec()), path);
        source.and_then(|source| source.all(path)).map_err(|error| error.to_string())
    }

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes every byte");
        encoder.finish().expect("memory takes every byte")
    }

    #[test]
    fn plain_and_compressed_text_are_the_same_text() {
        let long = "some line\n".repeat(20_000).into_bytes();
        for bytes in [b"".as_slice(), b"a\r\nb", &long] {
            assert_eq!(text(bytes).as_deref(), Ok(bytes));
            assert_eq!(text(&compressed(bytes)).as_deref(), Ok(bytes));
            let marked = [BYTE_ORDER_MARK, bytes].concat();
            assert_eq!(text(&marked).as_deref(), Ok(bytes));
            assert_eq!(text(&compressed(&marked)).as_deref(), Ok(bytes));
        }
        // Concatenated files are the concatenated texts.
        assert_eq!(
            text(&[compressed(b"a "), compressed(b"b")].concat()).as_deref(),
            Ok(b"a b".as_slice())
        );
    }

    #[test]
    fn lone_returns_end_lines_and_others_stay() {
        assert_eq!(text(b"a b\rc d\r").as_deref(), Ok(b"a b\nc d\n".as_slice()));
        assert_eq!(text(b"a\rb\nc\r\n").as_deref(), Ok(b"a\rb\nc\r\n".as_slice()));
        // The return that is the last byte of the head belongs to the newline after it.
        let split = [vec![b'a'; HEAD_BYTES - 1], b"\r\nb\r\n".to_vec()].concat();
        assert_eq!(text(&split).as_deref(), Ok(split.as_slice()));
        let long = "line\r".repeat(HEAD_BYTES);
        assert_eq!(text(long.as_bytes()), Ok(long.replace('\r', "\n").into_bytes()));
    }

    #[test]
    fn gzip_that_is_cut_short_or_damaged_is_named() {
        let whole = compressed("the cat sat on the mat\n".repeat(9_000).as_bytes());
        for len in [2, 9, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            let expected = "x.txt.gz is cut short; compress or copy it again";
            assert_eq!(text(&whole[..len]), Err(expected.to_owned()), "{len}");
        }
        let mut damaged = whole.clone();
        *damaged.last_mut().expect("it has bytes") ^= 1;
        assert_eq!(
            text(&damaged),
            Err("x.txt.gz is damaged; compress or copy it again".to_owned())
        );
    }

    #[test]
    fn what_is_no_text_is_refused_within_gzip_too() {
        let bzip = text(b"BZh91AY&SY").expect_err("no text");
        assert_eq!(bzip, "x.txt.gz is a bzip2 file, not text; unpack it: bunzip2 -k x.txt.gz");
        let wide = text(&compressed(b"\xff\xfea\0")).expect_err("no text");
        assert_eq!(
            wide,
            "x.txt.gz holds, compressed by gzip, UTF-16 text; convert it to UTF-8: zcat x.txt.gz | iconv -f UTF-16 -t UTF-8 > x.txt"
        );
        let twice = text(&compressed(&compressed(b"a"))).expect_err("no text");
        assert!(twice.starts_with("x.txt.gz holds, compressed by gzip, a gzip file"), "{twice}");
    }

    #[test]
    fn text_that_is_not_utf8_is_named_by_line_and_byte() {
        let check =
            |bytes: &[u8]| check_text(bytes, Path::new("x")).map_err(|error| error.to_string());
        assert_eq!(check("stra\u{df}e\n".as_bytes()), Ok(()));
        let latin = check(b"a\nb caf\xe9\n").expect_err("not UTF-8");
        assert!(latin.starts_with("x:2:6: the byte E9 is not UTF-8"), "{latin}");
        let zero = check(b"a\0\xe9").expect_err("a zero");
        assert!(zero.starts_with("x:1:2: a zero byte"), "{zero}");
    }
}
