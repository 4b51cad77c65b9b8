//! Reading and writing of bytes and nothing else: what benchmarks compare with.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use adapm_transport::threads;
use rustix::fs::{Advice, fadvise};

/// Returns how many bytes files have.
pub(crate) fn bytes(files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// Has the system forget what it keeps of files in memory.
///
/// # Errors
///
/// What the operating system refuses.
pub(crate) fn drop_cached(files: &[PathBuf]) -> io::Result<()> {
    for path in files {
        fadvise(&File::open(path)?, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

/// Reads a file to its end.
///
/// # Errors
///
/// What the operating system refuses.
pub(crate) fn read(path: &Path) -> io::Result<()> {
    let (mut file, mut bytes) = (File::open(path)?, vec![0; AT_ONCE]);
    while file.read(&mut bytes)? > 0 {}
    Ok(())
}

/// Reads files to their ends into memory of their own, each by a thread, and returns them.
///
/// # Errors
///
/// What the operating system refuses.
pub(crate) fn read_into_memory(files: &[PathBuf]) -> io::Result<Vec<Vec<u8>>> {
    let read = |path: &PathBuf| {
        let mut file = File::open(path)?;
        let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX)];
        // In pieces as large as the blocks of a checkpoint, which is what this is compared with.
        bytes.chunks_mut(AT_ONCE / 8).try_for_each(|bytes| file.read_exact(bytes))?;
        Ok(bytes)
    };
    threads::map("adapm bench", files, read).into_iter().collect()
}

/// Writes so many bytes to a new file, brings them to the disk, and removes it.
///
/// # Errors
///
/// What the operating system refuses.
pub(crate) fn write(path: &Path, bytes: u64) -> io::Result<()> {
    let (mut file, mut left) = (File::create(path)?, bytes);
    let some = vec![1; AT_ONCE];
    while left > 0 {
        let len = left.min(AT_ONCE as u64);
        file.write_all(&some[..len as usize])?;
        left -= len;
    }
    file.sync_all()?;
    fs::remove_file(path)
}

/// Bytes that are read or written at once.
const AT_ONCE: usize = 8 << 20;
