//! A file of parameters of which only the head is read, and such values as are asked for.
//!
//! | damage | seen |
//! | --- | --- |
//! | another magic number, version or task; a head that makes no sense; a file that is longer or shorter than its head says | always |
//! | a number that is NaN or infinite | where it is read |
//! | any other | by the checksum, if all values are read from the first on, or by [`Values::check_rest`] |
//!
//! The head is read in pieces that double until it is complete, so it is parsed twice in all. What
//! cannot be read at any position (gzip, a pipe) is read whole, and its checksum is checked.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files;
use crate::run::file::{self, CheckpointError, Checksum, Fault, Reader};

/// The values of a file, in key order.
#[derive(Debug)]
pub(crate) struct Values {
    source: Source,
    floats: u64,
}

#[derive(Debug)]
enum Source {
    Memory(Arc<Vec<f32>>),
    File(Box<Open>),
}

/// A file that is read at any position.
#[derive(Debug)]
struct Open {
    file: File,
    path: PathBuf,
    /// Position of the first value.
    start: u64,
    /// The checksum of all bytes before `summed`.
    sum: Checksum,
    summed: u64,
    /// Position of the checksum.
    end: u64,
    /// The checksum was checked.
    is_checked: bool,
    bytes: Vec<u8>,
}

/// Reads the head of a file of `task` by `head`, and opens its values.
///
/// # Errors
///
/// What the operating system refuses; a head that `head` refuses; more or fewer bytes than the head
/// and the number of values say.
pub(crate) fn open<H>(
    path: &Path,
    task: &[u8],
    head: impl Fn(&mut Reader<'_>) -> Result<H, Fault>,
) -> Result<(H, Values), CheckpointError> {
    let unreadable =
        |error: io::Error| CheckpointError::Io { path: path.to_path_buf(), error: error.into() };
    let is_regular = std::fs::metadata(path).map_err(unreadable)?.is_file();
    if is_regular {
        let file = files::open(path).map_err(unreadable)?;
        let len = file.metadata().map_err(unreadable)?.len();
        let mut first = vec![0; GZIP.len().min(usize::try_from(len).unwrap_or(usize::MAX))];
        file.read_exact_at(&mut first, 0).map_err(unreadable)?;
        if first != GZIP {
            return open_at(file, len, path, task, head);
        }
    }
    let bytes = file::read(path)?;
    let read = || {
        let mut reader = Reader::new(task, &bytes)?;
        Ok((head(&mut reader)?, reader.values()?))
    };
    let (head, values) = read().map_err(|fault: Fault| fault.at(path))?;
    Ok((head, Values::of(Arc::new(values))))
}

/// [`open`] of a file of `len` bytes that can be read at any position.
fn open_at<H>(
    file: File,
    len: u64,
    path: &Path,
    task: &[u8],
    head: impl Fn(&mut Reader<'_>) -> Result<H, Fault>,
) -> Result<(H, Values), CheckpointError> {
    let mut first = Vec::new();
    let mut wanted = PIECE;
    loop {
        let (had, size) = (first.len(), usize::try_from(wanted.min(len)).unwrap_or(usize::MAX));
        first.resize(size, 0);
        file.read_exact_at(&mut first[had..], had as u64).map_err(|error| lost(&error, path))?;
        let read = || {
            let mut reader = Reader::new(task, &first)?;
            let head = head(&mut reader)?;
            let floats = reader.count()?;
            Ok((head, floats, first.len() - reader.left()))
        };
        let (head, floats, start) = match read() {
            Err(Fault::Truncated) if (size as u64) < len => {
                wanted *= 2;
                continue;
            }
            read => read.map_err(|fault: Fault| fault.at(path))?,
        };
        let start = start as u64;
        let end = floats.checked_mul(4).and_then(|bytes| bytes.checked_add(start));
        match end.and_then(|end| end.checked_add(SUM_BYTES)) {
            Some(all) if all == len => {}
            Some(all) if all < len => return Err(Fault::Corrupt.at(path)),
            _ => return Err(Fault::Truncated.at(path)),
        }
        let mut sum = Checksum::default();
        sum.add(&first[..start as usize]);
        let (path, end) = (path.to_path_buf(), len - SUM_BYTES);
        let (summed, is_checked, bytes) = (start, false, Vec::new());
        let open = Open { file, path, start, sum, summed, end, is_checked, bytes };
        return Ok((head, Values { source: Source::File(Box::new(open)), floats }));
    }
}

impl Values {
    /// Returns values that are in memory.
    pub(crate) fn of(values: Arc<Vec<f32>>) -> Self {
        Self { floats: values.len() as u64, source: Source::Memory(values) }
    }

    /// Reads as many values as `into` holds, from number `first` on.
    ///
    /// # Errors
    ///
    /// What the operating system refuses; a file that has become shorter; a number of a file that
    /// is not finite.
    ///
    /// # Panics
    ///
    /// If there are not as many values: the caller asks for those of a key that the head has.
    pub(crate) fn read(&mut self, first: usize, into: &mut [f32]) -> Result<(), CheckpointError> {
        match &mut self.source {
            Source::Memory(values) => {
                into.copy_from_slice(&values[first..first + into.len()]);
                Ok(())
            }
            Source::File(open) => {
                let at = open.start + 4 * first as u64;
                assert!(at + 4 * into.len() as u64 <= open.end, "values of a key that there is");
                open.read(at, 4 * into.len())?;
                for (value, bytes) in into.iter_mut().zip(open.bytes.as_chunks().0) {
                    *value = f32::from_le_bytes(*bytes);
                }
                // No early end, for the compiler to compare in lanes.
                let are_finite = into.iter().fold(true, |all, value| all & value.is_finite());
                if are_finite { Ok(()) } else { Err(Fault::Corrupt.at(&open.path)) }
            }
        }
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> u64 {
        self.floats
    }

    /// Reads what was not read yet and compares the checksum, at most once. Values that were read
    /// from the first on are not read again.
    ///
    /// # Errors
    ///
    /// A file that is not as it was written; what the operating system refuses.
    pub(crate) fn check_rest(&mut self) -> Result<(), CheckpointError> {
        match &mut self.source {
            Source::File(open) if !open.is_checked => open.check_rest(),
            _ => Ok(()),
        }
    }
}

impl Open {
    /// Reads `len` bytes from `at` on into `self.bytes`, and adds to the checksum what continues
    /// it.
    fn read(&mut self, at: u64, len: usize) -> Result<(), CheckpointError> {
        self.bytes.resize(len, 0);
        self.file.read_exact_at(&mut self.bytes, at).map_err(|error| lost(&error, &self.path))?;
        let fresh = self.summed.checked_sub(at).and_then(|seen| usize::try_from(seen).ok());
        if let Some(fresh) = fresh.and_then(|seen| self.bytes.get(seen..)) {
            self.sum.add(fresh);
            self.summed += fresh.len() as u64;
        }
        Ok(())
    }

    fn check_rest(&mut self) -> Result<(), CheckpointError> {
        while self.summed < self.end {
            let len = PIECE.min(self.end - self.summed) as usize;
            self.read(self.summed, len)?;
        }
        let mut written = [0; SUM_BYTES as usize];
        self.file
            .read_exact_at(&mut written, self.end)
            .map_err(|error| lost(&error, &self.path))?;
        if self.sum.sum() != u64::from_le_bytes(written) {
            return Err(Fault::Corrupt.at(&self.path));
        }
        self.is_checked = true;
        Ok(())
    }
}

/// Returns the error of reading a file whose length was known.
fn lost(error: &io::Error, path: &Path) -> CheckpointError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::Truncated.at(path),
        _ => CheckpointError::Io { path: path.to_path_buf(), error: error.into() },
    }
}

/// Bytes that are read at once at first, and when nothing else says how many.
const PIECE: u64 = 1 << 16;
const SUM_BYTES: u64 = 8;
const GZIP: &[u8] = b"\x1f\x8b";

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::io::Write as _;
    use std::process;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::run::file::Writer;

    /// Returns a file with a head of so many names.
    fn written(names: usize) -> Vec<u8> {
        let write = || {
            let mut writer = Writer::new(b"count", Vec::new())?;
            writer.count(names as u64)?;
            (0..names).try_for_each(|name| writer.text(format!("name {name}").as_bytes()))?;
            writer.values(&[0.5, -2.0, 3.0, 4.0])
        };
        write().expect("memory takes all bytes")
    }

    fn head(reader: &mut Reader<'_>) -> Result<u64, Fault> {
        let names = reader.count()?;
        (0..names).try_for_each(|_| reader.text().map(drop))?;
        Ok(names)
    }

    /// Opens a file of these bytes.
    fn opened(name: &str, bytes: &[u8]) -> Result<(u64, Values), CheckpointError> {
        let path = env::temp_dir().join(format!("adapm-partial-{name}-{}", process::id()));
        fs::write(&path, bytes).expect("the folder for temporary files can be written");
        let opened = open(&path, b"count", head);
        fs::remove_file(&path).expect("it was just written");
        opened
    }

    fn read(values: &mut Values, first: usize, count: usize) -> Result<Vec<f32>, CheckpointError> {
        let mut into = vec![0.0; count];
        values.read(first, &mut into).map(|()| into)
    }

    #[test]
    fn values_are_read_at_any_place_whatever_the_length_of_the_head() {
        for names in [0, 1, 10_000, 50_000] {
            let (head, mut values) = opened("any", &written(names)).expect("it is whole");
            assert_eq!((head, values.len()), (names as u64, 4));
            assert_eq!(read(&mut values, 2, 2), Ok(vec![3.0, 4.0]));
            assert_eq!(read(&mut values, 0, 3), Ok(vec![0.5, -2.0, 3.0]));
            assert_eq!(values.check_rest(), Ok(()));
            assert_eq!(values.check_rest(), Ok(()));
        }
    }

    #[test]
    fn gzip_is_read_whole() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&written(3)).expect("memory takes every byte");
        let bytes = encoder.finish().expect("memory takes every byte");
        let (head, mut values) = opened("gzip", &bytes).expect("it is whole");
        assert_eq!((head, read(&mut values, 1, 2)), (3, Ok(vec![-2.0, 3.0])));
        assert_eq!(values.check_rest(), Ok(()));
    }

    #[test]
    fn a_file_of_another_length_is_refused_when_it_is_opened() {
        let whole = written(5);
        for len in 0..whole.len() {
            assert!(opened("cut", &whole[..len]).is_err(), "cut at {len}");
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert!(matches!(opened("long", &longer), Err(CheckpointError::Corrupt { .. })));
    }

    #[test]
    fn damage_is_seen_by_the_checksum_in_whatever_order_values_were_read() {
        let whole = written(5);
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            for order in [vec![], vec![(0, 4)], vec![(2, 2), (0, 2)], vec![(0, 3), (1, 2)]] {
                let checked = opened("damage", &changed).and_then(|(_, mut values)| {
                    order
                        .iter()
                        .try_for_each(|(at, count)| read(&mut values, *at, *count).map(drop))?;
                    values.check_rest()
                });
                assert!(checked.is_err(), "changed at {at}, read in order {order:?}");
            }
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_seen_where_it_is_read() {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut bytes = written(1);
            let at = bytes.len() - 8 - 4;
            bytes[at..at + 4].copy_from_slice(&odd.to_le_bytes());
            let (_, mut values) = opened("odd", &bytes).expect("the length is right");
            assert!(read(&mut values, 0, 3).is_ok());
            assert!(matches!(read(&mut values, 2, 2), Err(CheckpointError::Corrupt { .. })));
        }
    }
}
