//! The container of a trained model: safetensors, which other programs read without help.
//!
//! | tensor | type, shape | what |
//! | --- | --- | --- |
//! | the task's | F32, `[rows, numbers of a row]` | parameters, in key order, one behind the other |
//! | `NAME.names` | U8 | a name for each row of `NAME`, and a line end behind each |
//! | others of the task | U64 or F64 | a number for each row |
//! | `adapm.head` | U8 | all else that it takes to use the parameters, as JSON |
//! | `adapm.crc32c` | U8, `[4]` | the last one: CRC-32C of all bytes before, little-endian |
//!
//! The header's `__metadata__` has one entry, `adapm`: JSON with `version` and `task`. Numbers of
//! eight bytes come first, then the parameters, then bytes, so that each begins where its type may.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io;
use std::ops::Range;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data::names::Names;
use crate::run::file::Fault;

/// A tensor of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its rows.
    pub rows: u64,
    /// The numbers of a row.
    pub len: u64,
}

impl Tensor {
    /// Returns a tensor of so many rows of so many numbers.
    pub fn new(name: impl Into<Cow<'static, str>>, rows: u64, len: usize) -> Self {
        Self { name: name.into(), rows, len: len as u64 }
    }
}

/// The entry of the header.
#[derive(Debug, Serialize, Deserialize)]
struct Origin {
    version: u32,
    task: String,
}

/// A file to be written.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    origin: Origin,
    parts: Vec<Part<'a>>,
}

#[derive(Debug)]
struct Part<'a> {
    name: Cow<'a, str>,
    dtype: Dtype,
    shape: Vec<usize>,
    data: Data<'a>,
}

#[derive(Debug)]
enum Data<'a> {
    Bytes(Vec<u8>),
    Words(Vec<u64>),
    Floats(&'a [f32]),
}

impl<'a> Draft<'a> {
    /// Begins the file of a model of `task`.
    ///
    /// # Errors
    ///
    /// A head that is no JSON.
    pub(crate) fn new(task: &str, head: &impl Serialize) -> io::Result<Self> {
        let origin = Origin { version: VERSION, task: task.to_owned() };
        let draft = Self { origin, parts: Vec::new() };
        Ok(draft.bytes(HEAD.into(), serde_json::to_vec(head)?))
    }

    /// Adds numbers of 64 bits.
    pub(crate) fn words(mut self, name: impl Into<Cow<'a, str>>, words: &[u64]) -> Self {
        let (shape, data) = (vec![words.len()], Data::Words(words.to_vec()));
        self.parts.push(Part { name: name.into(), dtype: Dtype::U64, shape, data });
        self
    }

    /// Adds real numbers.
    pub(crate) fn numbers(mut self, name: impl Into<Cow<'a, str>>, numbers: &[f64]) -> Self {
        let words = numbers.iter().map(|number| number.to_bits()).collect();
        let (shape, data) = (vec![numbers.len()], Data::Words(words));
        self.parts.push(Part { name: name.into(), dtype: Dtype::F64, shape, data });
        self
    }

    /// Adds the names of the rows of a tensor.
    pub(crate) fn names(self, of: &str, names: &Names) -> Self {
        let all = (0..names.len()).filter_map(|index| names.bytes(index));
        let lines = all.flat_map(|name| name.iter().chain(b"\n")).copied().collect();
        self.bytes(names_of(of).into(), lines)
    }

    fn bytes(mut self, name: Cow<'a, str>, bytes: Vec<u8>) -> Self {
        let (shape, data) = (vec![bytes.len()], Data::Bytes(bytes));
        self.parts.push(Part { name, dtype: Dtype::U8, shape, data });
        self
    }

    /// Writes the file with these parameters.
    ///
    /// # Errors
    ///
    /// More or fewer parameters than the tables have, and what `inner` refuses.
    pub(crate) fn write<W: io::Write>(
        mut self,
        tensors: &'a [Tensor],
        values: &'a [f32],
        inner: W,
    ) -> io::Result<W> {
        let mut rest = values;
        for Tensor { name, rows, len } in tensors {
            let count = rows.checked_mul(*len).and_then(|count| usize::try_from(count).ok());
            let split = count.and_then(|count| rest.split_at_checked(count));
            let (data, behind) = split.ok_or(io::ErrorKind::InvalidInput)?;
            let (shape, data) = (vec![*rows as usize, *len as usize], Data::Floats(data));
            self.parts.push(Part { name: (&**name).into(), dtype: Dtype::F32, shape, data });
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.parts.sort_by_key(|part| Reverse(part.dtype.bitsize()));
        let mut out = Summed { inner, sum: 0 };
        out.write(&self.header()?)?;
        for part in &self.parts {
            match &part.data {
                Data::Bytes(bytes) => out.write(bytes)?,
                Data::Words(words) => out.write_all(words, u64::to_le_bytes)?,
                Data::Floats(floats) => out.write_all(floats, f32::to_le_bytes)?,
            }
        }
        let sum = out.sum.to_le_bytes();
        out.write(&sum)?;
        Ok(out.inner)
    }

    /// Returns the bytes before the data.
    fn header(&self) -> io::Result<Vec<u8>> {
        let mut end = 0;
        let mut info = |dtype: Dtype, shape: &[usize]| {
            let begin = end;
            end += shape.iter().product::<usize>() * dtype.bitsize() / 8;
            TensorInfo { dtype, shape: shape.to_vec(), data_offsets: (begin, end) }
        };
        let mut infos: Vec<(String, TensorInfo)> = (self.parts.iter())
            .map(|part| (part.name.clone().into_owned(), info(part.dtype, &part.shape)))
            .collect();
        infos.push((SUM.to_owned(), info(Dtype::U8, &[SUM_BYTES])));
        let entry = (ENTRY.to_owned(), serde_json::to_string(&self.origin)?);
        let metadata = Metadata::new(Some([entry].into_iter().collect()), infos);
        let mut header = serde_json::to_vec(&metadata.map_err(io::Error::other)?)?;
        header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.append(&mut header);
        Ok(bytes)
    }
}

/// Adds to the checksum what is written.
struct Summed<W> {
    inner: W,
    sum: u32,
}

impl<W: io::Write> Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum = crc32c::crc32c_append(self.sum, bytes);
        self.inner.write_all(bytes)
    }

    fn write_all<T: Copy, const N: usize>(
        &mut self,
        numbers: &[T],
        to_bytes: impl Fn(T) -> [u8; N],
    ) -> io::Result<()> {
        for numbers in numbers.chunks(1 << 12) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| to_bytes(*number)).collect();
            self.write(&bytes)?;
        }
        Ok(())
    }
}

/// Where everything is in a file.
#[derive(Debug)]
pub(crate) struct Header {
    metadata: Metadata,
    /// Position of the data.
    data: u64,
    /// Places of the parameters in the data.
    values: Range<u64>,
}

impl Header {
    /// Returns the number of bytes to read before [`Header::parse`], from the first eight of a file
    /// of `len` bytes; `None` if no file of this form begins so.
    pub(crate) fn len(first: [u8; 8], len: u64) -> Option<u64> {
        let header = u64::from_le_bytes(first);
        let all = header.checked_add(8)?;
        (header <= HEADER_MAX && all <= len).then_some(all)
    }

    /// Takes apart the first bytes of a file of `len` bytes, of a model of `task`.
    ///
    /// # Errors
    ///
    /// Bytes of something else, or of another version; a file longer or shorter than they say.
    pub(crate) fn parse(bytes: &[u8], task: &str, len: u64) -> Result<Self, Fault> {
        let text = bytes.get(8..).ok_or(Fault::Foreign)?;
        let metadata: Metadata = serde_json::from_slice(text).map_err(|_| Fault::Foreign)?;
        let entry = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let origin = entry.and_then(|entry| serde_json::from_str(entry).ok());
        let Origin { version, task: of } = origin.ok_or(Fault::Foreign)?;
        if version != VERSION {
            return Err(Fault::Version { found: version, read: VERSION });
        }
        if of != task {
            return Err(Fault::of_task(of.as_bytes()));
        }
        let data = bytes.len() as u64;
        match data.checked_add(metadata.data_len() as u64) {
            Some(all) if all == len => {}
            Some(all) if all < len => return Err(Fault::Corrupt),
            _ => return Err(Fault::Truncated),
        }
        let last = metadata.offset_keys().pop();
        let is_summed = last.as_deref() == Some(SUM)
            && metadata.info(SUM).is_some_and(|info| info.shape == [SUM_BYTES]);
        let values = is_summed.then(|| values_of(&metadata)).flatten().ok_or(Fault::Corrupt)?;
        Ok(Self { metadata, data, values })
    }

    /// Returns the positions of the parameters.
    pub(crate) fn values(&self) -> Range<u64> {
        self.data + self.values.start..self.data + self.values.end
    }

    /// Returns the position of the data.
    pub(crate) fn data(&self) -> u64 {
        self.data
    }
}

/// Returns the places of the parameters, which are one behind the other.
fn values_of(metadata: &Metadata) -> Option<Range<u64>> {
    let mut all: Option<Range<u64>> = None;
    for name in metadata.offset_keys() {
        let TensorInfo { dtype, data_offsets: (begin, end), .. } = metadata.info(&name)?;
        let (begin, end) = (*begin as u64, *end as u64);
        match &mut all {
            _ if *dtype != Dtype::F32 => {}
            None => all = Some(begin..end),
            Some(before) if before.end == begin => before.end = end,
            Some(_) => return None,
        }
    }
    Some(all.unwrap_or(0..0))
}

/// A file without its parameters.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) header: &'a Header,
    /// The data before the parameters, and behind them.
    pub(crate) before: &'a [u8],
    pub(crate) behind: &'a [u8],
}

impl Parts<'_> {
    /// Returns the head.
    ///
    /// # Errors
    ///
    /// One that is none of the task's.
    pub(crate) fn head<H: DeserializeOwned>(&self) -> Result<H, Fault> {
        let bytes = self.bytes(HEAD, Dtype::U8).ok_or(Fault::Corrupt)?;
        serde_json::from_slice(bytes).map_err(|_| Fault::Corrupt)
    }

    /// Returns numbers of 64 bits, `None` if there is no such tensor.
    pub(crate) fn words(&self, name: &str) -> Option<Vec<u64>> {
        self.bytes(name, Dtype::U64).map(words)
    }

    /// Returns real numbers.
    ///
    /// # Errors
    ///
    /// No such tensor.
    pub(crate) fn numbers(&self, name: &str) -> Result<Vec<f64>, Fault> {
        let bytes = self.bytes(name, Dtype::F64).ok_or(Fault::Corrupt)?;
        Ok(words(bytes).into_iter().map(f64::from_bits).collect())
    }

    /// Returns the names of the rows of a tensor, `None` if they have none.
    pub(crate) fn names(&self, of: &str) -> Option<Names> {
        let lines = self.bytes(&names_of(of), Dtype::U8)?;
        let mut names = Names::default();
        lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| {
            names.push(line.strip_suffix(b"\n").unwrap_or(line));
        });
        Some(names)
    }

    /// Returns the tensors of parameters, in order.
    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        let metadata = &self.header.metadata;
        let of = |name: String| {
            let info = metadata.info(&name).filter(|info| info.dtype == Dtype::F32)?;
            let [rows, len] = *info.shape.first_chunk()?;
            Some(Tensor::new(name, rows as u64, len))
        };
        metadata.offset_keys().into_iter().filter_map(of).collect()
    }

    /// Returns the bytes of a tensor of this type, if there is one.
    fn bytes(&self, name: &str, dtype: Dtype) -> Option<&[u8]> {
        let info = self.header.metadata.info(name).filter(|info| info.dtype == dtype)?;
        let (begin, end) = info.data_offsets;
        let values = &self.header.values;
        match begin.checked_sub(values.end as usize) {
            Some(begin) => self.behind.get(begin..end - values.end as usize),
            None => self.before.get(begin..end),
        }
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn names_of(tensor: &str) -> String {
    format!("{tensor}.names")
}

const VERSION: u32 = 1;
const ENTRY: &str = "adapm";
const HEAD: &str = "adapm.head";
const SUM: &str = "adapm.crc32c";
/// Bytes of the checksum.
pub(crate) const SUM_BYTES: usize = 4;
/// Bytes of the longest header that other programs read.
const HEADER_MAX: u64 = 100_000_000;
/// Bytes of which the header is a multiple, so that data begin at one.
const ALIGNMENT: usize = 8;
