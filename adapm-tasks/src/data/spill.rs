//! Data while they are read: in memory, or, if they are many, in a temporary file, where they cost
//! no memory that the system cannot take back.
//!
//! A file that cannot be written, as a disk is full, costs nothing but memory: the data are held.
#![expect(unsafe_code, reason = "a file has to be mapped to be used as a slice")]

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};

/// Read data, as a slice. Cheap to clone if they are in a file.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T>(Place<T>);

#[derive(Clone, Debug)]
enum Place<T> {
    Held(Vec<T>),
    Spilled(Arc<Mmap>, PhantomData<T>),
}

impl<T> Kept<T> {
    /// Returns the data of a mapped file.
    pub(crate) fn spilled(file: Mmap) -> Self {
        Self(Place::Spilled(Arc::new(file), PhantomData))
    }

    /// Returns true if they are in a file.
    pub(crate) fn is_spilled(&self) -> bool {
        matches!(self.0, Place::Spilled(..))
    }
}

impl<T> From<Vec<T>> for Kept<T> {
    fn from(held: Vec<T>) -> Self {
        Self(Place::Held(held))
    }
}

impl<T: Pod> Deref for Kept<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Place::Held(held) => held,
            Place::Spilled(file, _) => bytemuck::cast_slice(file),
        }
    }
}

/// Data while they are read.
#[derive(Debug)]
pub(crate) struct Gathering<T> {
    /// The last ones; all if there is no file.
    held: Vec<T>,
    /// The others, in order.
    file: Option<File>,
    /// Those in the file.
    written: usize,
    /// Number held from which on they are appended to the file; `None`: never.
    held_max: Option<usize>,
    /// Why data of the file are lost.
    lost: Option<io::Error>,
}

impl<T: Pod> Gathering<T> {
    /// Holds up to `held_max` in memory; with more, all are in a file in the end.
    pub(crate) fn new(held_max: usize) -> Self {
        Self { held_max: Some(held_max), ..Self::from(Vec::new()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.written + self.held.len()
    }

    pub(crate) fn push(&mut self, one: T) {
        if self.held_max.is_some_and(|held_max| self.held.len() >= held_max) {
            self.spill();
        }
        self.held.push(one);
    }

    /// Returns the file with all data, if there is one.
    pub(crate) fn file(&mut self) -> Option<&File> {
        if self.file.is_some() {
            self.spill();
        }
        self.file.as_ref()
    }

    /// Reads all into memory.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn into_held(mut self) -> io::Result<Vec<T>> {
        self.hold();
        self.lost.map_or(Ok(self.held), Err)
    }

    /// Returns all data, once `change` has changed them.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn finish(mut self, change: impl FnOnce(&mut [T])) -> io::Result<Kept<T>> {
        if let Some(mut map) = self.file().and_then(|file| map_mut(file).ok()) {
            change(bytemuck::cast_slice_mut(&mut map));
            return Ok(Kept::spilled(map.make_read_only()?));
        }
        let mut held = self.into_held()?;
        change(&mut held);
        Ok(held.into())
    }

    /// Appends what is held to the file.
    fn spill(&mut self) {
        match self.append() {
            Ok(()) => {
                self.written += self.held.len();
                self.held = Vec::new();
                self.held_max = self.held_max.map(|held_max| held_max.min(APPENDED_MAX));
            }
            Err(_) => self.hold(),
        }
    }

    fn append(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all(bytemuck::cast_slice(&self.held))
    }

    /// Reads all into memory, where they stay.
    fn hold(&mut self) {
        let mut all = vec![T::zeroed(); self.written];
        if let Some(mut file) = self.file.take() {
            let bytes = bytemuck::cast_slice_mut(&mut all);
            self.lost = file.rewind().and_then(|()| file.read_exact(bytes)).err();
        }
        all.append(&mut self.held);
        (self.held, self.written, self.held_max) = (all, 0, None);
    }
}

impl<T> From<Vec<T>> for Gathering<T> {
    /// Holds these and what is added to them.
    fn from(held: Vec<T>) -> Self {
        Self { held, file: None, written: 0, held_max: None, lost: None }
    }
}

/// Maps a temporary file to be read.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the file has no name, so no other process opens it, and this one only reads it as
    // long as the map exists.
    unsafe { Mmap::map(file) }
}

/// Maps a temporary file to be changed. What has been written has its place on the disk: the map
/// cannot fail for want of it.
pub(crate) fn map_mut(file: &File) -> io::Result<MmapMut> {
    // SAFETY: the file has no name, and only this map of it exists.
    unsafe { MmapMut::map_mut(file) }
}

/// Data appended to the file at once.
const APPENDED_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// The same file, that can only be read.
    #[cfg(target_os = "linux")]
    fn read_only(file: File) -> File {
        use std::os::fd::AsRawFd as _;
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("it is open")
    }

    #[test]
    fn data_of_a_file_are_those_of_memory_also_changed() {
        for count in [0, 1, 100, 101, 70_000, 200_000] {
            let mut gathering = Gathering::new(100);
            (0..count).for_each(|number: u32| gathering.push(number));
            assert_eq!(gathering.len(), count as usize);
            let change = |numbers: &mut [u32]| numbers.iter_mut().for_each(|number| *number *= 3);
            let kept = gathering.finish(change).expect("no file is broken");
            assert_eq!(kept.is_spilled(), count > 100, "{count}");
            assert!(kept.iter().copied().eq((0..count).map(|number| 3 * number)), "{count}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_spilled_is_held() {
        for failing_at in [150, 400, 999] {
            let mut gathering = Gathering::new(100);
            for number in 0..1_000_u32 {
                if number == failing_at {
                    gathering.file = gathering.file.take().map(read_only);
                }
                gathering.push(number);
            }
            let held = gathering.finish(|_| {}).expect("the file can be read");
            assert!(held.iter().copied().eq(0..1_000) && !held.is_spilled(), "{failing_at}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_has_lost_data_is_an_error() {
        let mut gathering = Gathering::new(100);
        (0..1_000_u32).for_each(|number| gathering.push(number));
        let file = gathering.file.take().expect("some were spilled");
        file.set_len(40).expect("the file is writable");
        gathering.file = Some(read_only(file));
        assert!(gathering.into_held().is_err());
    }
}
