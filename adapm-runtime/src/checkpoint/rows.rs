//! The file of rows that one part of a cluster writes: safetensors.
//!
//! | tensor | type, shape | what |
//! | --- | --- | --- |
//! | `T.keys` | I64 `[m]` | rows of table `T` by the hash of their key ([`Layout::home_hash`]) |
//! | `T.rows` | F32 `[m, dim]` | their parameters |
//! | `T.state.NAME` | F32 `[m, n]` | what the optimizer keeps of them |
//! | `adapm.crc32c` | U32 | CRC-32C of each MiB of each tensor before this one |
//!
//! What is at home on one of any number of nodes is one slice of each tensor. The checksum of the
//! header and of the last tensor is in the manifest: so no byte can change unseen, and a reader
//! checks what it reads and no more.

use std::fs::File;
use std::hint;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use adapm_core::{Key, Layout};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::error::{CheckpointError, Fault};
use super::part::Part;
use crate::tables::{self, Table, Tables};

/// What the manifest says of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FileInfo {
    pub(super) name: String,
    /// Rows of each table.
    pub(super) rows: Vec<u64>,
    pub(super) bytes: u64,
    /// Of the header and of the tensor of checksums.
    pub(super) crc32c: String,
}

/// Returns the name of the file of one of so many parts.
pub(super) fn name_of(part: usize, parts: usize) -> String {
    format!("rows-{part:03}-of-{parts:03}.safetensors")
}

/// Checks that a file can have all rows of each table: they are numbered by 32 bits.
pub(super) fn check(tables: &Tables) -> Result<(), Fault> {
    let mut tables = tables.as_slice().iter();
    let found = tables.find(|table| u32::try_from(table.rows()).is_err());
    found.map_or(Ok(()), |table| {
        Err(Fault::Rows { table: table.name().to_owned(), rows: table.rows() })
    })
}

/// Writes the file of these parts, each once, and brings it to the disk. Tables are ones that
/// [`check`] admits.
pub(super) fn write(
    disk: &dyn Disk,
    (folder, name): (&Path, &str),
    tables: &Tables,
    parts: &[Part],
) -> io::Result<FileInfo> {
    let order = Order::of(tables, parts);
    let rows: Vec<u64> = order.rows.iter().map(|rows| rows.len() as u64).collect();
    let (header, data_len) = header(tables, &rows)?;
    let mut out = Summed {
        file: disk.create(&folder.join(name))?,
        disk,
        sums: Vec::new(),
        sum: 0,
        room: BLOCK,
        buffer: Vec::with_capacity(BUFFER),
    };
    disk.write(&mut out.file, &header)?;
    for rows in &order.rows {
        for row in rows {
            out.put(&i64::from(*row).to_le_bytes())?;
        }
        out.end_tensor()?;
    }
    let mut found = Vec::with_capacity(ROWS_AT_ONCE);
    for (table, rows) in order.rows.iter().enumerate() {
        for range in columns(&tables.as_slice()[table]) {
            for rows in rows.chunks(ROWS_AT_ONCE) {
                order.parts_of(table, rows, range.clone(), &mut found);
                for value in &found {
                    out.put_floats(value)?;
                }
            }
            out.end_tensor()?;
        }
    }
    out.end(&header, name, rows, header.len() as u64 + data_len)
}

/// The rows of parts, in the order in which they are written.
struct Order<'a> {
    tables: &'a Tables,
    parts: &'a [Part],
    /// For each part and table, how many keys of the part come before, and where the table's values
    /// begin.
    begins: Vec<Vec<(usize, usize)>>,
    /// For each table its rows in the parts, by the hashes of their keys.
    rows: Vec<Vec<u32>>,
}

impl<'a> Order<'a> {
    fn of(tables: &'a Tables, parts: &'a [Part]) -> Self {
        let begins = parts.iter().map(|part| {
            let (mut key, mut value, mut begins) = (0, 0, Vec::new());
            for (at, table) in tables.as_slice().iter().enumerate() {
                begins.push((key, value));
                let count = part.rank(Key(tables.end(at))) - key;
                (key, value) = (key + count, value + count * table.row_len());
            }
            let (keys, values) = (part.count(), part.values().len());
            assert_eq!((key, value), (keys, values), "a part has keys of tables, and their values");
            begins
        });
        let begins = begins.collect();
        let mut rows: Vec<Vec<u32>> = Vec::new();
        for (at, table) in tables.as_slice().iter().enumerate() {
            let (end, first) = (tables.end(at), tables.end(at) - table.rows());
            let count = parts.iter().map(|part| part.rank(Key(end)) - part.rank(Key(first))).sum();
            let mut own_rows = Vec::with_capacity(count);
            for part in parts {
                own_rows.extend(part.keys_in(first..end).map(|key| (key.0 - first) as u32));
            }
            own_rows.sort_unstable_by_key(|row| Layout::home_hash(Key(first + u64::from(*row))));
            rows.push(own_rows);
        }
        Self { tables, parts, begins, rows }
    }

    /// Finds one part of each of these rows of a table.
    ///
    /// They lie far from each other, and a processor that reads and writes one after the other
    /// waits for each; looking at all of them first, it waits for many at a time.
    fn parts_of(&self, table: usize, rows: &[u32], part: Range<usize>, found: &mut Vec<&'a [f32]>) {
        found.clear();
        found.extend(rows.iter().map(|row| &self.value(table, *row)[part.clone()]));
        let ends = |value: &&[f32]| [value.first().copied(), value.last().copied()];
        let ends = found.iter().flat_map(ends).flatten();
        hint::black_box(ends.fold(0, |looked, end| looked ^ end.to_bits()));
    }

    /// Returns the value of a row of this table.
    fn value(&self, table: usize, row: u32) -> &'a [f32] {
        let of = &self.tables.as_slice()[table];
        let key = Key(self.tables.end(table) - of.rows() + u64::from(row));
        let part = self.parts.iter().position(|part| part.has(key)).expect("a row of the parts");
        let (first, value) = self.begins[part][table];
        let begin = value + (self.parts[part].rank(key) - first) * of.row_len();
        &self.parts[part].values()[begin..begin + of.row_len()]
    }
}

/// Returns the places of parameters and of each state in a row.
fn columns(table: &Table) -> Vec<Range<usize>> {
    let mut start = 0;
    let lens = [table.dim()].into_iter().chain(table.state().iter().map(|state| state.len));
    let ranges = lens.map(|len| {
        start += len;
        start - len..start
    });
    ranges.collect()
}

/// Returns the names of parameters and of each state of a table.
fn names(table: &Table) -> Vec<String> {
    let states = table.state().iter().map(|state| tables::state_of(&state.name));
    let names = [tables::ROWS.to_owned()].into_iter().chain(states);
    names.map(|name| format!("{}.{name}", table.name())).collect()
}

fn keys_of(table: &Table) -> String {
    format!("{}.{}", table.name(), tables::KEYS)
}

/// Returns the tensors of a file with so many rows of each table, without that of checksums.
fn infos(tables: &Tables, rows: &[u64]) -> Vec<(String, TensorInfo)> {
    let mut end = 0;
    let mut info = |dtype: Dtype, shape: Vec<usize>| {
        let begin = end;
        end += shape.iter().product::<usize>() * dtype.bitsize() / 8;
        TensorInfo { dtype, shape, data_offsets: (begin, end) }
    };
    let all = || tables.as_slice().iter().zip(rows);
    let keys: Vec<_> = all()
        .map(|(table, rows)| (keys_of(table), info(Dtype::I64, vec![*rows as usize])))
        .collect();
    let rows = all().flat_map(|(table, rows)| {
        let named = names(table).into_iter().zip(columns(table));
        named.map(|(name, range)| (name, [*rows as usize, range.len()]))
    });
    let rows: Vec<_> = rows.map(|(name, shape)| (name, info(Dtype::F32, shape.to_vec()))).collect();
    keys.into_iter().chain(rows).collect()
}

/// Returns the bytes before the data, and how many those of the data are.
fn header(tables: &Tables, rows: &[u64]) -> io::Result<(Vec<u8>, u64)> {
    let mut infos = infos(tables, rows);
    let end = infos.last().map_or(0, |(_, info)| info.data_offsets.1);
    let sums = infos.iter().map(|(_, info)| blocks_of(info)).sum::<usize>();
    let data_offsets = (end, end + sums * size_of::<u32>());
    infos
        .push((SUMS.to_owned(), TensorInfo { dtype: Dtype::U32, shape: vec![sums], data_offsets }));
    let metadata = Metadata::new(None, infos).map_err(io::Error::other)?;
    let mut text = serde_json::to_vec(&metadata)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut text);
    Ok((bytes, data_offsets.1 as u64))
}

/// Returns the number of blocks of a tensor.
fn blocks_of(info: &TensorInfo) -> usize {
    (info.data_offsets.1 - info.data_offsets.0).div_ceil(BLOCK)
}

/// Writes data, and sums up each block of them.
struct Summed<'a> {
    file: File,
    disk: &'a dyn Disk,
    sums: Vec<u32>,
    /// Of the running block, of which so many bytes are missing.
    sum: u32,
    room: usize,
    buffer: Vec<u8>,
}

impl Summed<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn put_floats(&mut self, values: &[f32]) -> io::Result<()> {
        for values in values.chunks(BUFFER / size_of::<f32>()) {
            if self.buffer.len() + size_of_val(values) > BUFFER {
                self.flush()?;
            }
            let start = self.buffer.len();
            self.buffer.resize(start + size_of_val(values), 0);
            let (bytes, _) = self.buffer[start..].as_chunks_mut();
            bytes.iter_mut().zip(values).for_each(|(bytes, value)| *bytes = value.to_le_bytes());
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut rest = self.buffer.as_slice();
        while !rest.is_empty() {
            let (bytes, behind) = rest.split_at(rest.len().min(self.room));
            self.sum = crc32c::crc32c_append(self.sum, bytes);
            self.room -= bytes.len();
            if self.room == 0 {
                self.sums.push(std::mem::take(&mut self.sum));
                self.room = BLOCK;
            }
            rest = behind;
        }
        self.disk.write(&mut self.file, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends a tensor: the next one begins a block.
    fn end_tensor(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.room < BLOCK {
            self.sums.push(std::mem::take(&mut self.sum));
            self.room = BLOCK;
        }
        Ok(())
    }

    fn end(
        mut self,
        header: &[u8],
        name: &str,
        rows: Vec<u64>,
        bytes: u64,
    ) -> io::Result<FileInfo> {
        self.end_tensor()?;
        let sums: Vec<u8> = self.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        self.disk.write(&mut self.file, &sums)?;
        self.disk.sync(&self.file)?;
        let crc32c = hex(crc32c::crc32c_append(crc32c::crc32c(header), &sums));
        Ok(FileInfo { name: name.to_owned(), rows, bytes, crc32c })
    }
}

/// A checksum as text.
pub(super) fn hex(sum: u32) -> String {
    format!("{sum:08x}")
}

/// An open file of rows, whose header is as the manifest says.
#[derive(Debug)]
pub(super) struct RowsFile<'a> {
    file: File,
    path: &'a Path,
    tables: &'a Tables,
    rows: &'a [u64],
    infos: Vec<(String, TensorInfo)>,
    /// Where the data begin.
    data: u64,
    sums: Vec<u32>,
}

impl<'a> RowsFile<'a> {
    /// Opens a file, and checks its length, its header and its checksums.
    pub(super) fn open(
        path: &'a Path,
        info: &'a FileInfo,
        tables: &'a Tables,
    ) -> Result<Self, CheckpointError> {
        let refused = |fault| CheckpointError::new(path, fault);
        let read = |error: io::Error| refused(Fault::of(&error));
        let file = File::open(path).map_err(read)?;
        let len = file.metadata().map_err(read)?.len();
        if len != info.bytes {
            return Err(refused(Fault::Length { found: len, expected: info.bytes }));
        }
        let damaged = || refused(Fault::Damaged("its header".to_owned()));
        let (expected, data_len) =
            header(tables, &info.rows).map_err(|error| refused(Fault::of(&error)))?;
        if expected.len() as u64 + data_len != len {
            return Err(damaged());
        }
        let infos = infos(tables, &info.rows);
        let end = infos.last().map_or(0, |(_, info)| info.data_offsets.1) as u64;
        let mut found = vec![0; expected.len()];
        file.read_exact_at(&mut found, 0).map_err(read)?;
        let mut sums = vec![0; (data_len - end) as usize];
        file.read_exact_at(&mut sums, expected.len() as u64 + end).map_err(read)?;
        if hex(crc32c::crc32c_append(crc32c::crc32c(&found), &sums)) != info.crc32c
            || found != expected
        {
            return Err(damaged());
        }
        let (words, _) = sums.as_chunks();
        let sums = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let data = expected.len() as u64;
        Ok(Self { file, path, tables, rows: &info.rows, infos, data, sums })
    }

    /// Reads all bytes and compares their checksums.
    pub(super) fn verify(&self) -> Result<(), CheckpointError> {
        let mut bytes = Vec::new();
        (0..self.infos.len()).try_for_each(|tensor| {
            let blocks = blocks_of(&self.infos[tensor].1);
            (0..blocks).try_for_each(|at| self.block(tensor, at, &mut bytes).map(|_| ()))
        })
    }

    /// Reads the bytes of a tensor from `start` on, as many as `into` has room for, each block
    /// checked: whole blocks straight into their place, of others what is wanted.
    fn read(
        &self,
        tensor: usize,
        mut start: usize,
        mut into: &mut [u8],
    ) -> Result<(), CheckpointError> {
        let mut cut = Vec::new();
        while !into.is_empty() {
            let (block, from) = (start / BLOCK, start % BLOCK);
            let whole = self.len_of(tensor, block);
            let len = into.len().min(whole - from);
            let (now, rest) = into.split_at_mut(len);
            if len == whole {
                self.fill(tensor, block, now)?;
            } else {
                now.copy_from_slice(&self.block(tensor, block, &mut cut)?[from..from + len]);
            }
            (start, into) = (start + len, rest);
        }
        Ok(())
    }

    /// Reads a block of a tensor into `bytes`, and returns it.
    fn block<'b>(
        &self,
        tensor: usize,
        block: usize,
        bytes: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], CheckpointError> {
        bytes.resize(self.len_of(tensor, block), 0);
        self.fill(tensor, block, bytes)?;
        Ok(bytes)
    }

    /// Reads a block of a tensor into `bytes`, which are as many as it has, and checks it.
    fn fill(&self, tensor: usize, block: usize, bytes: &mut [u8]) -> Result<(), CheckpointError> {
        let (name, info) = &self.infos[tensor];
        let start = self.data + (info.data_offsets.0 + block * BLOCK) as u64;
        let read = self.file.read_exact_at(bytes, start);
        read.map_err(|error| CheckpointError::of(self.path, &error))?;
        let first = self.infos[..tensor].iter().map(|(_, info)| blocks_of(info)).sum::<usize>();
        if crc32c::crc32c(bytes) == self.sums[first + block] {
            return Ok(());
        }
        Err(CheckpointError::new(self.path, Fault::Damaged(format!("tensor {name}"))))
    }

    /// Returns the number of bytes of a block of a tensor.
    fn len_of(&self, tensor: usize, block: usize) -> usize {
        let (begin, end) = self.infos[tensor].1.data_offsets;
        BLOCK.min(end - begin - block * BLOCK)
    }

    /// Finds the places of the rows of a table whose keys' hashes are in `hashes`, and reads which
    /// rows they are.
    pub(super) fn find(
        &self,
        table: usize,
        hashes: &Range<u128>,
    ) -> Result<(Range<usize>, Vec<u32>), CheckpointError> {
        let (of, count) = (&self.tables.as_slice()[table], self.rows[table] as usize);
        let keys = self.tensor(&keys_of(of));
        let read = |at: usize, rows: &mut [u64]| -> Result<(), CheckpointError> {
            self.read(keys, size_of::<u64>() * at, bytemuck::cast_slice_mut(rows))?;
            rows.iter_mut().for_each(|row| *row = u64::from_le(*row));
            Ok(())
        };
        let hash = |at: usize| -> Result<u128, CheckpointError> {
            let mut row = [0];
            read(at, &mut row)?;
            Ok(self.hash(table, row[0]))
        };
        let places = bound(count, hashes.start, &hash)?..bound(count, hashes.end, &hash)?;
        let (mut rows, mut some) = (Vec::with_capacity(places.len()), Vec::new());
        while rows.len() < places.len() {
            let at = places.start + rows.len();
            // To the end of a block.
            some.resize((KEYS_IN_BLOCK - at % KEYS_IN_BLOCK).min(places.end - at), 0);
            read(at, &mut some)?;
            // No table with more rows than 32 bits count is written.
            let has = |row: &&u64| **row < of.rows() && u32::try_from(**row).is_ok();
            if let Some(row) = some.iter().find(|row| !has(row)) {
                let wrong = format!("tensor {}: there is no row {row}", keys_of(of));
                return Err(CheckpointError::new(self.path, Fault::Damaged(wrong)));
            }
            rows.extend(some.iter().map(|row| *row as u32));
        }
        Ok((places, rows))
    }

    /// Reads one part of the rows of a table from `place` on, parameters (0) or a state: as many
    /// numbers as `into` has room for.
    pub(super) fn values(
        &self,
        (table, part): (usize, usize),
        place: usize,
        into: &mut [f32],
    ) -> Result<(), CheckpointError> {
        let of = &self.tables.as_slice()[table];
        let tensor = self.tensor(&names(of)[part]);
        let start = size_of::<f32>() * columns(of)[part].len() * place;
        self.read(tensor, start, bytemuck::cast_slice_mut(into))?;
        into.iter_mut().for_each(|value| *value = f32::from_bits(u32::from_le(value.to_bits())));
        Ok(())
    }

    /// Returns the hash of the key of a row.
    fn hash(&self, table: usize, row: u64) -> u128 {
        self.tables.key(table, row).map_or(0, |key| u128::from(Layout::home_hash(key)))
    }

    fn tensor(&self, name: &str) -> usize {
        self.infos.iter().position(|(other, _)| other == name).expect("a tensor of the tables")
    }
}

/// Returns the first of `count` places whose hash is not below `hash`: hashes ascend.
fn bound(
    count: usize,
    hash: u128,
    of: &dyn Fn(usize) -> Result<u128, CheckpointError>,
) -> Result<usize, CheckpointError> {
    if hash == 0 {
        return Ok(0);
    }
    if hash > u128::from(u64::MAX) {
        return Ok(count);
    }
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if of(middle)? < hash { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

const SUMS: &str = "adapm.crc32c";
/// Bytes of data that have one checksum; few in tests, so that there is more than one block.
pub(super) const BLOCK: usize = if cfg!(test) { 256 } else { 1 << 20 };
const KEYS_IN_BLOCK: usize = BLOCK / size_of::<u64>();
/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;
/// Rows that are looked at before they are written.
const ROWS_AT_ONCE: usize = 256;
