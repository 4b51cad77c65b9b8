//! A source that cuts its bytes at given places: the result of reading a stream must not depend on
//! the cuts.

use std::io::{self, IoSliceMut, Read};

/// A source of bytes in pieces of the lengths of `cuts`, in turn; an empty piece means that the
/// source would block.
///
/// At least one cut must be above 0, else nothing ever arrives.
#[derive(Debug)]
pub struct Pieces<'a> {
    bytes: &'a [u8],
    cuts: Vec<usize>,
    turn: usize,
    ends: bool,
}

impl<'a> Pieces<'a> {
    /// Creates a source that ends after `bytes`.
    #[must_use]
    pub fn ending(bytes: &'a [u8], cuts: Vec<usize>) -> Self {
        Self { bytes, cuts, turn: 0, ends: true }
    }

    /// Creates a source that blocks after `bytes`.
    #[must_use]
    pub fn blocking(bytes: &'a [u8], cuts: Vec<usize>) -> Self {
        Self { ends: false, ..Self::ending(bytes, cuts) }
    }

    /// Returns true if all bytes were given.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && self.ends {
            return Ok(0);
        }
        let cut = self.cuts[self.turn % self.cuts.len()];
        self.turn += 1;
        let len = cut.min(room.len()).min(self.bytes.len());
        if len == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (now, later) = self.bytes.split_at(len);
        room[..len].copy_from_slice(now);
        self.bytes = later;
        Ok(len)
    }

    fn read_vectored(&mut self, rooms: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut all = 0;
        for room in rooms {
            match self.read(room) {
                Ok(len) if len == room.len() => all += len,
                Ok(len) => return Ok(all + len),
                Err(error) => return if all > 0 { Ok(all) } else { Err(error) },
            }
        }
        Ok(all)
    }
}
