//! The container of a trained model: safetensors, which other programs read without help.
//!
//! | tensor | type, shape | what |
//! | --- | --- | --- |
//! | the task's | F32, `[rows, numbers of a row]` | parameters, in key order, one behind the other |
//! | `NAME.names` | U8 | a name for each row of `NAME`, and a line end behind each |
//! | others of the task | U64 or F64 | numbers, mostly one for each row |
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
use crate::run::values::{Ahead, Values, pieces};

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
    Words(Cow<'a, [u64]>),
    Names(&'a Names),
    /// Numbers of a range of the parameters.
    Floats(Range<usize>),
}

impl<'a> Draft<'a> {
    /// Begins the file of a model of `task`.
    ///
    /// # Errors
    ///
    /// A head that cannot be written as JSON.
    pub(crate) fn new(task: &str, head: &impl Serialize) -> io::Result<Self> {
        let origin = Origin { version: VERSION, task: task.to_owned() };
        let draft = Self { origin, parts: Vec::new() };
        Ok(draft.bytes(HEAD.into(), serde_json::to_vec(head)?))
    }

    /// Adds numbers of 64 bits.
    pub(crate) fn words(mut self, name: impl Into<Cow<'a, str>>, words: &'a [u64]) -> Self {
        let (shape, data) = (vec![words.len()], Data::Words(words.into()));
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
    pub(crate) fn names(mut self, of: &str, names: &'a Names) -> Self {
        let bytes = lines(names).map(|line| line.len() + 1).sum();
        let (name, shape, data) = (names_of(of).into(), vec![bytes], Data::Names(names));
        self.parts.push(Part { name, dtype: Dtype::U8, shape, data });
        self
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
    /// Tensors of more or fewer values, of one name, or with a name of ours; values that cannot be
    /// read; what `inner` refuses.
    pub(crate) fn write<W: io::Write>(
        mut self,
        tensors: &'a [Tensor],
        values: &Values,
        inner: W,
    ) -> io::Result<W> {
        let mut first = 0;
        for Tensor { name, rows, len } in tensors {
            let count = rows.checked_mul(*len).and_then(|count| usize::try_from(count).ok());
            let end = count.and_then(|count| count.checked_add(first));
            let end = end.filter(|end| *end <= values.len());
            let end = end.ok_or_else(|| refused("there are fewer values than tensors have"))?;
            let (shape, data) = (vec![*rows as usize, *len as usize], Data::Floats(first..end));
            self.parts.push(Part { name: (&**name).into(), dtype: Dtype::F32, shape, data });
            first = end;
        }
        if first < values.len() {
            return Err(refused("there are more values than tensors have"));
        }
        let names = || self.parts.iter().map(|part| &*part.name);
        if names().any(|name| name == SUM || name == RESERVED) || has_twins(names()) {
            return Err(refused("two tensors have one name, or one has a name of adapm"));
        }
        self.parts.sort_by_key(|part| Reverse(part.dtype.bitsize()));
        let (mut out, mut values) = (Summed { inner, sum: 0 }, Ahead::new(values));
        out.write(&self.header()?)?;
        for part in &self.parts {
            match &part.data {
                Data::Bytes(bytes) => out.write(bytes)?,
                Data::Words(words) => out.write_all(words, u64::to_le_bytes)?,
                Data::Names(names) => {
                    lines(names)
                        .try_for_each(|line| out.write(line).and_then(|()| out.write(b"\n")))?;
                }
                Data::Floats(range) => {
                    for piece in pieces(range.clone()) {
                        out.write_all(values.get(piece)?, f32::to_le_bytes)?;
                    }
                }
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
        if header.len() as u64 > HEADER_MAX {
            return Err(refused("there are too many tensors"));
        }
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
    task: String,
    metadata: Metadata,
    /// Position of the data.
    data: u64,
    /// Places of the parameters in the data.
    values: Range<u64>,
}

impl Header {
    /// Returns the number of bytes to read before [`Header::parse`], from the first eight of a file
    /// of `len` bytes.
    ///
    /// # Errors
    ///
    /// No file of this form begins so, or it ends early.
    pub(crate) fn len(first: [u8; 8], len: u64) -> Result<u64, Fault> {
        let header = u64::from_le_bytes(first);
        match header.checked_add(8) {
            Some(all) if header <= HEADER_MAX && all <= len => Ok(all),
            Some(_) if header <= HEADER_MAX => Err(Fault::Truncated),
            _ => Err(Fault::Foreign),
        }
    }

    /// Takes apart the first bytes of a file of `len` bytes, of a model of any task.
    ///
    /// # Errors
    ///
    /// Bytes of something else, or of another version; a file longer or shorter than they say.
    pub(crate) fn parse(bytes: &[u8], len: u64) -> Result<Self, Fault> {
        let text = bytes.get(8..).ok_or(Fault::Foreign)?;
        // What is damaged may still say whose it is.
        let is_ours = text.windows(ENTRY.len()).any(|window| window == ENTRY.as_bytes());
        let broken = || if is_ours { Fault::Corrupt } else { Fault::Foreign };
        let metadata: Metadata = serde_json::from_slice(text).map_err(|_| broken())?;
        let entry = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let origin = entry.and_then(|entry| serde_json::from_str(entry).ok());
        let Origin { version, task } = origin.ok_or_else(broken)?;
        if version != VERSION {
            return Err(Fault::Version { found: version, read: VERSION });
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
        Ok(Self { task, metadata, data, values })
    }

    /// Returns itself if it is of a model of `task`.
    ///
    /// # Errors
    ///
    /// It is of another one.
    pub(crate) fn of(self, task: &str) -> Result<Self, Fault> {
        if self.task == task { Ok(self) } else { Err(Fault::of_task(self.task.as_bytes())) }
    }

    /// Returns the name of the task.
    ///
    /// # Errors
    ///
    /// What is no name.
    pub(crate) fn task(&self) -> Result<String, Fault> {
        match Fault::of_task(self.task.as_bytes()) {
            Fault::Task(task) => Ok(task),
            fault => Err(fault),
        }
    }

    /// Returns the tensors of parameters, in order.
    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        let of = |name: String| {
            let info = self.metadata.info(&name).filter(|info| info.dtype == Dtype::F32)?;
            let [rows, len] = *info.shape.first_chunk()?;
            Some(Tensor::new(name, rows as u64, len))
        };
        self.metadata.offset_keys().into_iter().filter_map(of).collect()
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

/// Returns the places of the parameters, which are one behind the other, each in rows.
fn values_of(metadata: &Metadata) -> Option<Range<u64>> {
    let mut all: Option<Range<u64>> = None;
    for name in metadata.offset_keys() {
        let TensorInfo { dtype, shape, data_offsets: (begin, end) } = metadata.info(&name)?;
        let (begin, end) = (*begin as u64, *end as u64);
        match &mut all {
            _ if *dtype != Dtype::F32 => {}
            _ if shape.len() != 2 => return None,
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
        let bytes = self.bytes(HEAD, Dtype::U8)?.ok_or(Fault::Corrupt)?;
        serde_json::from_slice(bytes).map_err(|_| Fault::Corrupt)
    }

    /// Returns numbers of 64 bits, `None` if there is no such tensor.
    ///
    /// # Errors
    ///
    /// One of another type.
    pub(crate) fn words(&self, name: &str) -> Result<Option<Vec<u64>>, Fault> {
        Ok(self.bytes(name, Dtype::U64)?.map(words))
    }

    /// Returns real numbers.
    ///
    /// # Errors
    ///
    /// No such tensor, or one of another type; a number that is NaN or infinite.
    pub(crate) fn numbers(&self, name: &str) -> Result<Vec<f64>, Fault> {
        let bytes = self.bytes(name, Dtype::F64)?.ok_or(Fault::Corrupt)?;
        let numbers: Vec<f64> = words(bytes).into_iter().map(f64::from_bits).collect();
        let are_finite = numbers.iter().all(|number| number.is_finite());
        if are_finite { Ok(numbers) } else { Err(Fault::Corrupt) }
    }

    /// Returns the names of the rows of a tensor, `None` if they have none.
    ///
    /// # Errors
    ///
    /// A tensor of another type, a last line without its end.
    pub(crate) fn names(&self, of: &str) -> Result<Option<Names>, Fault> {
        let Some(lines) = self.bytes(&names_of(of), Dtype::U8)? else { return Ok(None) };
        let mut names = Names::default();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            names.push(line.strip_suffix(b"\n").ok_or(Fault::Corrupt)?);
        }
        Ok(Some(names))
    }

    /// Returns the bytes of a tensor, which has to be of this type, if there is one.
    fn bytes(&self, name: &str, dtype: Dtype) -> Result<Option<&[u8]>, Fault> {
        let Some(info) = self.header.metadata.info(name) else { return Ok(None) };
        let (begin, end) = info.data_offsets;
        let values = self.header.values.end as usize;
        let bytes = match begin.checked_sub(values) {
            Some(begin) => self.behind.get(begin..end - values),
            None => self.before.get(begin..end),
        };
        bytes.filter(|_| info.dtype == dtype).map(Some).ok_or(Fault::Corrupt)
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn has_twins<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.windows(2).any(|two| two[0] == two[1])
}

/// Returns all names.
fn lines(names: &Names) -> impl Iterator<Item = &[u8]> {
    (0..names.len()).filter_map(|index| names.bytes(index))
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn names_of(tensor: &str) -> String {
    format!("{tensor}.names")
}

/// Files of our own form had versions 1 and 2.
const VERSION: u32 = 3;
const ENTRY: &str = "adapm";
const HEAD: &str = "adapm.head";
const SUM: &str = "adapm.crc32c";
/// The name of what is no tensor in a header.
const RESERVED: &str = "__metadata__";
/// Bytes of the checksum.
pub(crate) const SUM_BYTES: usize = 4;
/// Bytes of the longest header: room for ten thousand tensors. It is read before it is known whose
/// it is, into many times as much memory.
const HEADER_MAX: u64 = 1 << 20;
/// Bytes of which the header is a multiple, so that data begin at one.
const ALIGNMENT: usize = 8;
