//! A file as bytes, read by the operating system where they are looked at.
//!
//! The one thing about a map that no type can rule out is that somebody else changes the file: bytes may then change between
//! two looks, and a file that is made shorter ends the process with a bus error. Whoever opens a file this way says so.
#![expect(unsafe_code, reason = "nobody can promise that a file stays as it is")]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// The bytes of `file`, which is a regular one and stays as it is while they are in use.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only, and its bytes are taken as they are: no length, index or encoding is ever read from
    // them twice. That nobody writes to the file meanwhile is asked of the user where a corpus is opened.
    unsafe { Mmap::map(file) }
}
