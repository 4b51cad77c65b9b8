//! A file of parameters of which the head is read: the values stay there until they are asked for
//! ([`Values`]).
//!
//! | damage | seen |
//! | --- | --- |
//! | another task or version; a head that makes no sense; a file that is longer or shorter than its head says | when it is opened |
//! | a number that is NaN or infinite | where it is read |
//! | any other | by the checksum, which takes all of the file: [`Values::check`] |
//!
//! | who | reads | compares the checksum |
//! | --- | --- | --- |
//! | `export` | all, a piece at a time | before anything is written |
//! | `eval` in one process | what it needs, a piece at a time | before data are read |
//! | `eval` in several processes | in each the values of keys at home there | before that, together: each reads a share of its file for it |
//! | `predict` | what an answer needs | kge, and gnn where that is all: always; else with `--check` |
//! | [`Values::load`]; any, of gzip or a pipe | all | always |
//!
//! Files have one of two forms: safetensors ([`crate::run::tensors`]), which are written, and an
//! older one of our own ([`crate::run::file`]), which is only read. The head of an old one is read
//! in pieces that double until it is complete, so it is parsed twice in all. What cannot be read at
//! any position (gzip, a pipe) is read whole, and its checksum is checked.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::files;
use crate::run::file::{self, CheckpointError, Checksum, Fault, MAGIC, Reader};
use crate::run::tensors::{Header, Parts, SUM_BYTES, Tensor};
use crate::run::values::{Sum, Values, are_finite, floats, lost};

/// All of a saved model but its parameters.
pub(crate) trait Head: Sized {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// Parts that are missing or contradict each other.
    fn of_parts(parts: &Parts<'_>) -> Result<Self, Fault>;

    /// Reads it from a file of the older form.
    ///
    /// # Errors
    ///
    /// Bytes that are missing or make no sense.
    fn of_old(reader: &mut Reader<'_>) -> Result<Self, Fault>;

    /// Returns the tensors of its parameters, in key order; `None` if they cannot be counted.
    fn tensors(&self) -> Option<Vec<Tensor>>;

    /// Reads it, and checks that the file's tensors of parameters are its own.
    ///
    /// # Errors
    ///
    /// As [`of_parts`](Self::of_parts), and other tensors.
    fn of(parts: &Parts<'_>) -> Result<Self, Fault> {
        let head = Self::of_parts(parts)?;
        let own = head.tensors().ok_or(Fault::Corrupt)?;
        if are_alike(&own, &parts.header.tensors()) { Ok(head) } else { Err(Fault::Corrupt) }
    }

    /// Returns itself, if it has so many parameters.
    ///
    /// # Errors
    ///
    /// It has more or fewer.
    fn with(self, floats: u64) -> Result<Self, Fault> {
        let counts = |tensors: Vec<Tensor>| {
            let mut counts = tensors.iter().map(|tensor| tensor.rows.checked_mul(tensor.len));
            counts.try_fold(0, |sum: u64, count| sum.checked_add(count?))
        };
        let has = self.tensors().and_then(counts) == Some(floats);
        if has { Ok(self) } else { Err(Fault::Corrupt) }
    }
}

/// Returns true if these are the same tensors in the same order; that of tensors without numbers
/// does not count, as they have one place in a file.
pub(crate) fn are_alike(these: &[Tensor], those: &[Tensor]) -> bool {
    let has_numbers = |tensor: &&Tensor| tensor.rows > 0 && tensor.len > 0;
    these.len() == those.len()
        && these.iter().filter(has_numbers).eq(those.iter().filter(has_numbers))
        && these.iter().all(|tensor| those.contains(tensor))
}

/// Reads the head of a file of `task`, and opens its values.
///
/// # Errors
///
/// What the operating system refuses; a head that makes no sense; more or fewer bytes than it says.
pub(crate) fn open<H: Head>(path: &Path, task: &str) -> Result<(H, Values), CheckpointError> {
    let unreadable =
        |error: io::Error| CheckpointError::Io { path: path.to_path_buf(), error: error.into() };
    let is_regular = std::fs::metadata(path).map_err(unreadable)?.is_file();
    if is_regular {
        let file = files::open(path).map_err(unreadable)?;
        let len = file.metadata().map_err(unreadable)?.len();
        let mut first = vec![0; FIRST.min(usize::try_from(len).unwrap_or(usize::MAX))];
        file.read_exact_at(&mut first, 0).map_err(unreadable)?;
        if !first.starts_with(GZIP) {
            return match <[u8; FIRST]>::try_from(&*first) {
                Ok(first) if first != MAGIC => open_tensors((file, len, first), path, task),
                _ => open_old(file, len, path, task),
            };
        }
    }
    parse(&file::read(path)?, path, task)
}

/// Takes apart the bytes of the file of `task` at `path`.
///
/// # Errors
///
/// As [`open`], and bytes or numbers that are not as they were written.
pub(crate) fn parse<H: Head>(
    bytes: &[u8],
    path: &Path,
    task: &str,
) -> Result<(H, Values), CheckpointError> {
    let read = || match bytes.first_chunk() {
        Some(first) if *first != MAGIC => {
            let len = bytes.len() as u64;
            let header = Header::len(*first, len)?;
            let header = Header::parse(&bytes[..header as usize], len)?.of(task)?;
            let [start, end, data] =
                [header.values().start, header.values().end, header.data()].map(|at| at as usize);
            let (summed, sum) = bytes.split_at(bytes.len() - SUM_BYTES);
            if crc32c::crc32c(summed).to_le_bytes() != sum {
                return Err(Fault::Corrupt);
            }
            let (before, behind) = (&bytes[data..start], &bytes[end..]);
            let head = H::of(&Parts { header: &header, before, behind })?;
            Ok((head, floats(&bytes[start..end]).collect::<Vec<f32>>(), sum))
        }
        _ => {
            let mut reader = Reader::new(task.as_bytes(), bytes)?;
            let (head, values) = (H::of_old(&mut reader)?, reader.values()?);
            Ok((head, values, &bytes[bytes.len() - OLD_SUM_BYTES..]))
        }
    };
    let at = |fault: Fault| fault.at(path);
    let (head, values, sum) = read().map_err(at)?;
    let head = head.with(values.len() as u64).map_err(at)?;
    let are_finite = are_finite(values.iter().copied());
    let values = are_finite.then(|| Values::read_whole(values, sum));
    Ok((head, values.ok_or_else(|| at(Fault::Corrupt))?))
}

/// What the file of a model tells by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspected {
    /// The name of its task.
    pub task: String,
    /// Its bytes, as they are read: those of gzip once they are decompressed.
    pub bytes: u64,
    /// The tensors of parameters; none of a file of the older form, which does not name them.
    pub tensors: Vec<Tensor>,
}

/// Reads the whole file of a model of any task, and compares its checksum. Holds a piece of it at a
/// time, unless it is compressed or a pipe.
///
/// # Errors
///
/// What the operating system refuses; a file of something else, or one that is not as it was
/// written.
pub fn inspect(path: &Path) -> Result<Inspected, CheckpointError> {
    let at = |fault: Fault| fault.at(path);
    let lost = |error: io::Error| lost(&error, path);
    let is_regular = std::fs::metadata(path).map_err(lost)?.is_file();
    // A pipe can be opened but once.
    let file = if is_regular { Some(files::open(path).map_err(lost)?) } else { None };
    let is_plain = file.as_ref().map_or(Ok(false), |file| is_gzip(file).map(|is| !is));
    let (mut source, len): (Box<dyn io::Read>, u64) = match file {
        Some(file) if is_plain.map_err(lost)? => {
            let len = file.metadata().map_err(lost)?.len();
            (Box::new(file), len)
        }
        _ => {
            let bytes = file::read(path)?;
            let len = bytes.len() as u64;
            (Box::new(io::Cursor::new(bytes)), len)
        }
    };
    let mut first = Vec::new();
    source.by_ref().take(FIRST_OF_OLD).read_to_end(&mut first).map_err(lost)?;
    let header = match first.first_chunk() {
        Some(begin) if *begin != MAGIC => {
            let wanted = Header::len(*begin, len).map_err(at)?;
            let rest = wanted.saturating_sub(first.len() as u64);
            source.by_ref().take(rest).read_to_end(&mut first).map_err(lost)?;
            let header = first.get(..wanted as usize).ok_or_else(|| at(Fault::Truncated))?;
            Some(Header::parse(header, len).map_err(at)?)
        }
        _ => None,
    };
    let (task, tensors, mut sum) = match &header {
        Some(header) => (header.task(), header.tensors(), Sum::Crc(0)),
        None => (file::task_of(&first), Vec::new(), Sum::Old(Checksum::default())),
    };
    let task = task.map_err(at)?;
    let end = sum.bytes().len();
    // The last bytes, which may be the checksum, wait until it is known that more follow.
    let mut piece = first;
    loop {
        let summed = piece.len().saturating_sub(end);
        sum.add(&piece[..summed]);
        piece.drain(..summed);
        if source.by_ref().take(PIECE).read_to_end(&mut piece).map_err(lost)? == 0 {
            break;
        }
    }
    if piece == sum.bytes() {
        Ok(Inspected { task, bytes: len, tensors })
    } else {
        Err(at(Fault::Corrupt))
    }
}

fn is_gzip(file: &File) -> io::Result<bool> {
    let mut first = [0; GZIP.len()];
    let read = file.read_at(&mut first, 0)?;
    Ok(first[..read] == *GZIP)
}

/// [`open`] of safetensors that can be read at any position: a file, its length, its first bytes.
fn open_tensors<H: Head>(
    (file, len, first): (File, u64, [u8; FIRST]),
    path: &Path,
    task: &str,
) -> Result<(H, Values), CheckpointError> {
    let read = |range: Range<u64>| {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, range.start).map_err(|error| lost(&error, path))?;
        Ok::<_, CheckpointError>(bytes)
    };
    let at = |fault: Fault| fault.at(path);
    let header = Header::len(first, len).map_err(at)?;
    let bytes = read(0..header)?;
    let header = Header::parse(&bytes, len).and_then(|header| header.of(task)).map_err(at)?;
    let values = header.values();
    let (before, behind) = (read(header.data()..values.start)?, read(values.end..len)?);
    let parts = Parts { header: &header, before: &before, behind: &behind };
    let floats = (values.end - values.start) / 4;
    let head = H::of(&parts).and_then(|head: H| head.with(floats)).map_err(at)?;
    let sum = Sum::Crc(crc32c::crc32c_append(crc32c::crc32c(&bytes), &before));
    let end = len - SUM_BYTES as u64;
    Ok((head, Values::in_file((file, path), sum, values, end)?))
}

/// [`open`] of a file of the older form that can be read at any position.
fn open_old<H: Head>(
    file: File,
    len: u64,
    path: &Path,
    task: &str,
) -> Result<(H, Values), CheckpointError> {
    let mut first = Vec::new();
    let mut wanted = PIECE;
    loop {
        let (had, size) = (first.len(), usize::try_from(wanted.min(len)).unwrap_or(usize::MAX));
        first.resize(size, 0);
        file.read_exact_at(&mut first[had..], had as u64).map_err(|error| lost(&error, path))?;
        let read = || {
            let mut reader = Reader::new(task.as_bytes(), &first)?;
            let head = H::of_old(&mut reader)?;
            let floats = reader.count()?;
            Ok((head.with(floats)?, floats, first.len() - reader.left()))
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
        match end.and_then(|end| end.checked_add(OLD_SUM_BYTES as u64)) {
            Some(all) if all == len => {}
            Some(all) if all < len => return Err(Fault::Corrupt.at(path)),
            _ => return Err(Fault::Truncated.at(path)),
        }
        let mut before = Sum::Old(Checksum::default());
        before.add(&first[..start as usize]);
        let end = len - OLD_SUM_BYTES as u64;
        return Ok((head, Values::in_file((file, path), before, start..end, end)?));
    }
}

/// Bytes that tell the form of a file.
const FIRST: usize = MAGIC.len();
/// Bytes of a file of the older form in which its task is named.
const FIRST_OF_OLD: u64 = 64;
/// Bytes that are read at once at first, and when nothing else says how many.
const PIECE: u64 = 1 << 16;
const OLD_SUM_BYTES: usize = 8;
const GZIP: &[u8] = b"\x1f\x8b";

#[cfg(test)]
mod tests;
