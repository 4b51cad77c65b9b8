//! The parameters of a model, in key order: in memory, or in a file of which they are read where
//! they are asked for, at their positions. A model in a file may be larger than memory, and many
//! threads may read it at once.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::run::consistency::Digest;
use crate::run::file::{CheckpointError, Checksum, Fault};

/// The parameters of a model, in key order: in memory, or in a file. Cheap to clone.
#[derive(Clone)]
pub struct Values {
    source: Source,
    /// The first ones of the source.
    len: usize,
    /// The checksum of the file that they come from.
    sum: Option<u64>,
}

#[derive(Clone)]
enum Source {
    Memory(Arc<Vec<f32>>),
    File(Arc<InFile>),
}

/// A file that is read at any position.
#[derive(Debug)]
struct InFile {
    file: File,
    path: PathBuf,
    /// The checksum of all bytes before the values.
    before: Sum,
    /// Positions of the values.
    values: Range<u64>,
    /// Position of the checksum.
    end: u64,
    /// The checksum was compared.
    is_checked: AtomicBool,
}

/// The checksum of a file of either form.
#[derive(Clone, Debug)]
pub(crate) enum Sum {
    Old(Checksum),
    Crc(u32),
}

impl Sum {
    /// Adds the next bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Old(sum) => sum.add(bytes),
            Self::Crc(sum) => *sum = crc32c::crc32c_append(*sum, bytes),
        }
    }

    /// Returns the bytes with which the file ends.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Old(sum) => sum.sum().to_le_bytes().to_vec(),
            Self::Crc(sum) => sum.to_le_bytes().to_vec(),
        }
    }
}

impl From<Arc<Vec<f32>>> for Values {
    fn from(values: Arc<Vec<f32>>) -> Self {
        Self { len: values.len(), source: Source::Memory(values), sum: None }
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Arc::new(values).into()
    }
}

impl Default for Values {
    /// None.
    fn default() -> Self {
        Vec::new().into()
    }
}

impl fmt::Debug for Values {
    /// A number instead of millions of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.source {
            Source::Memory(_) => "memory".to_owned(),
            Source::File(file) => file.path.display().to_string(),
        };
        write!(f, "{} values in {place}", self.len)
    }
}

/// The same numbers, wherever they are. What cannot be read is equal to nothing.
impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        let (mut own, mut others) = (Ahead::new(self), Ahead::new(other));
        self.len == other.len
            && pieces(0..self.len).all(|piece| {
                let own = own.get(piece.clone());
                own.is_ok_and(|own| others.get(piece).is_ok_and(|others| own == others))
            })
    }
}

impl Values {
    /// Returns those at these positions of a file, which ends with its checksum: `before` is that
    /// of the bytes before them.
    ///
    /// # Errors
    ///
    /// A file that has become shorter; what the operating system refuses.
    pub(crate) fn in_file(
        (file, path): (File, &Path),
        before: Sum,
        values: Range<u64>,
        end: u64,
    ) -> Result<Self, CheckpointError> {
        let mut sum = before.bytes();
        let is_checked = AtomicBool::new(false);
        let file = InFile { file, path: path.to_path_buf(), before, values, end, is_checked };
        file.read(file.end, &mut sum)?;
        let len = usize::try_from((file.values.end - file.values.start) / 4).unwrap_or(usize::MAX);
        Ok(Self { source: Source::File(Arc::new(file)), len, sum: Some(number(&sum)) })
    }

    /// Returns values that were read from a file, which ends with these bytes.
    pub(crate) fn read_whole(values: Vec<f32>, sum: &[u8]) -> Self {
        Self { sum: Some(number(sum)), ..values.into() }
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first `len` ones, or all if there are fewer.
    #[must_use]
    pub fn first(&self, len: usize) -> Self {
        Self { len: self.len.min(len), ..self.clone() }
    }

    /// Reads as many values as `into` holds, from number `first` on. From a file: these alone.
    ///
    /// # Errors
    ///
    /// What the operating system refuses; a file that has become shorter; a number of a file that
    /// is not finite.
    ///
    /// # Panics
    ///
    /// If there are not as many values.
    pub fn read(&self, first: usize, into: &mut [f32]) -> Result<(), CheckpointError> {
        let has_all = first.checked_add(into.len()).is_some_and(|end| end <= self.len);
        assert!(has_all, "values of a key that there is");
        match &self.source {
            Source::Memory(values) => into.copy_from_slice(&values[first..first + into.len()]),
            Source::File(file) => file.read_values(first, into)?,
        }
        Ok(())
    }

    /// Returns all of them if they are in memory.
    #[must_use]
    pub fn in_memory(&self) -> Option<&[f32]> {
        match &self.source {
            Source::Memory(values) => Some(&values[..self.len]),
            Source::File(_) => None,
        }
    }

    /// Returns the same in memory. Of a file all is read, and its checksum is compared.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn load(self) -> Result<Self, CheckpointError> {
        if self.in_memory().is_some() {
            return Ok(self);
        }
        self.check()?;
        let mut values = vec![0.0; self.len];
        self.read(0, &mut values)?;
        Ok(Self { sum: self.sum, ..values.into() })
    }

    /// Reads all of the file, if they are in one, a piece at a time, and compares its checksum.
    /// Once is enough for all clones.
    ///
    /// # Errors
    ///
    /// A file that is not as it was written; a number that is not finite; what the operating system
    /// refuses.
    pub fn check(&self) -> Result<(), CheckpointError> {
        let Source::File(file) = &self.source else { return Ok(()) };
        // Relaxed: at worst the file is read once more.
        if file.is_checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut sum = file.before.clone();
        file.sum_up(file.values.start..file.end, &mut sum)?;
        self.compare(&sum)
    }

    /// Reads one of so many shares of the file, one behind the other, a piece at a time. Returns
    /// what [`compare_shares`](Self::compare_shares) is to be told of it; `None` if it has compared
    /// the checksum: where one share is all, and of a file of the older form, whose checksum has no
    /// shares.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub(crate) fn sum_up_share(
        &self,
        share: usize,
        shares: usize,
    ) -> Result<Option<(u32, u64)>, CheckpointError> {
        let Source::File(file) = &self.source else { return Ok(None) };
        if shares == 1 || matches!(file.before, Sum::Old(_)) {
            return self.check().map(|()| None);
        }
        let Range { start, end } = file.values.start..file.end;
        let len = (end - start) / 4 / shares as u64 * 4;
        let begin = start + len * share as u64;
        let own = begin..if share + 1 == shares { end } else { begin + len };
        let mut sum = Sum::Crc(0);
        file.sum_up(own.clone(), &mut sum)?;
        Ok(Some((number(&sum.bytes()) as u32, own.end - own.start)))
    }

    /// Compares the checksum of the file, whose shares are these, in order.
    ///
    /// # Errors
    ///
    /// A file that is not as it was written.
    pub(crate) fn compare_shares(
        &self,
        shares: &[Option<(u32, u64)>],
    ) -> Result<(), CheckpointError> {
        let Source::File(file) = &self.source else { return Ok(()) };
        let Sum::Crc(before) = file.before else { return Ok(()) };
        let all = shares.iter().try_fold(before, |sum, share| {
            let (share, len) = (*share)?;
            Some(crc32c::crc32c_combine(sum, share, len as usize))
        });
        // Another process may have a compressed copy, which it has compared alone.
        all.map_or_else(|| self.check(), |sum| self.compare(&Sum::Crc(sum)))
    }

    /// Compares the checksum of the file with this one.
    fn compare(&self, sum: &Sum) -> Result<(), CheckpointError> {
        let Source::File(file) = &self.source else { return Ok(()) };
        if Some(number(&sum.bytes())) != self.sum {
            return Err(Fault::Corrupt.at(&file.path));
        }
        file.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns a number that differs between values that differ: of those of a file its checksum,
    /// which stands there.
    pub(crate) fn digest(&self) -> u64 {
        self.sum.unwrap_or_else(|| {
            let mut digest = Digest::new();
            digest.values(self.in_memory().unwrap_or_default());
            digest.sum()
        })
    }
}

impl InFile {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), CheckpointError> {
        self.file.read_exact_at(into, at).map_err(|error| lost(&error, &self.path))
    }

    /// Adds these bytes to a checksum, a piece at a time, and looks at the values among them.
    fn sum_up(&self, range: Range<u64>, sum: &mut Sum) -> Result<(), CheckpointError> {
        let (mut piece, mut at) = (vec![0; PIECE], range.start);
        while at < range.end {
            let are_values = at < self.values.end;
            let end = if are_values { self.values.end.min(range.end) } else { range.end };
            let piece = &mut piece[..(PIECE as u64).min(end - at) as usize];
            self.read(at, piece)?;
            if are_values && !are_finite(floats(piece)) {
                return Err(Fault::Corrupt.at(&self.path));
            }
            sum.add(piece);
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn read_values(&self, first: usize, into: &mut [f32]) -> Result<(), CheckpointError> {
        self.read(self.values.start + 4 * first as u64, bytemuck::cast_slice_mut(into))?;
        into.iter_mut().for_each(|value| *value = f32::from_le_bytes(value.to_ne_bytes()));
        let are_finite = are_finite(into.iter().copied());
        if are_finite { Ok(()) } else { Err(Fault::Corrupt.at(&self.path)) }
    }
}

/// Values for one who asks for them in order: of a file a piece is read at once.
#[derive(Debug)]
pub(crate) struct Ahead {
    values: Values,
    /// The number of the first one of the piece.
    first: usize,
    piece: Vec<f32>,
}

impl Ahead {
    /// Returns these values, of which none is read yet.
    pub(crate) fn new(values: &Values) -> Self {
        Self { values: values.clone(), first: 0, piece: Vec::new() }
    }

    /// Returns true if these are the values, in one place.
    pub(crate) fn is_of(&self, values: &Values) -> bool {
        match (&self.values.source, &values.source) {
            (Source::Memory(own), Source::Memory(others)) => Arc::ptr_eq(own, others),
            (Source::File(own), Source::File(others)) => Arc::ptr_eq(own, others),
            _ => false,
        }
    }

    /// Returns the values of a range.
    ///
    /// # Errors
    ///
    /// As [`Values::read`].
    ///
    /// # Panics
    ///
    /// If there are not as many values.
    pub(crate) fn get(&mut self, range: Range<usize>) -> Result<&[f32], CheckpointError> {
        let end = self.values.len();
        self.get_before(range, |_| end)
    }

    /// Returns the values of a range. Where a piece is read, it ends before the value whose number
    /// `end` returns for the number of the one that a piece at most ends before.
    ///
    /// # Errors
    ///
    /// As [`Values::read`].
    ///
    /// # Panics
    ///
    /// If there are not as many values.
    pub(crate) fn get_before(
        &mut self,
        range: Range<usize>,
        end: impl FnOnce(usize) -> usize,
    ) -> Result<&[f32], CheckpointError> {
        let Self { values, first, piece } = self;
        let values = &*values;
        if let Some(values) = values.in_memory() {
            return Ok(&values[range]);
        }
        if range.start < *first || range.end > *first + piece.len() {
            let most = range.end.max(range.start + PIECE / 4);
            let end = end(most).min(most).max(range.end);
            // Nothing is there if it cannot be read.
            piece.clear();
            let mut read = std::mem::take(piece);
            read.resize(end - range.start, 0.0);
            values.read(range.start, &mut read)?;
            (*first, *piece) = (range.start, read);
        }
        Ok(&piece[range.start - *first..range.end - *first])
    }
}

/// Cuts a range of values into pieces.
pub(crate) fn pieces(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(PIECE / 4).map(move |start| start..end.min(start + PIECE / 4))
}

/// Returns the error of reading a file whose length was known.
pub(crate) fn lost(error: &io::Error, path: &Path) -> CheckpointError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::Truncated.at(path),
        _ => CheckpointError::Io { path: path.to_path_buf(), error: error.into() },
    }
}

/// Returns the numbers of a multiple of four bytes.
pub(crate) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value))
}

/// Returns true if none is NaN or infinite.
pub(crate) fn are_finite(values: impl Iterator<Item = f32>) -> bool {
    // No early end, for the compiler to compare in lanes.
    values.fold(true, |all, value| all & value.is_finite())
}

/// Returns the number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Bytes that are read at once when nothing else says how many.
const PIECE: usize = 1 << 18;

#[cfg(test)]
pub(crate) mod tests;
