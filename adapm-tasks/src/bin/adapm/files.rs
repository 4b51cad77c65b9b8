//! Files that are written in the end: probed before hours are spent, and never over another that the command reads or writes.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The files of a command, each with the flag that names it.
#[derive(Debug, Default)]
pub(crate) struct Files<'a> {
    pub(crate) read: Vec<(&'static str, &'a Path)>,
    pub(crate) written: Vec<(&'static str, &'a Path)>,
}

impl<'a> Files<'a> {
    /// Those of `flags` that are given.
    pub(crate) fn given<const N: usize>(
        flags: [(&'static str, &'a Option<PathBuf>); N],
    ) -> Vec<(&'static str, &'a Path)> {
        flags.into_iter().filter_map(|(flag, path)| path.as_deref().map(|path| (flag, path))).collect()
    }

    /// Checks that each can be written and is no other of them, and leaves no trace.
    pub(crate) fn probe(&self) -> Result<(), Failure> {
        let mut places: Vec<_> = self.read.iter().map(|(flag, path)| (*flag, place(path))).collect();
        for (flag, path) in &self.written {
            probe_writable(flag, path)?;
            let here = place(path);
            if let Some((other, _)) = places.iter().find(|(_, place)| *place == here) {
                return Err(Failure::SameFile { path: path.to_path_buf(), flags: [*flag, *other] });
            }
            places.push((*flag, here));
        }
        Ok(())
    }
}

/// Where a file is, or is going to be, by whatever path.
fn place(path: &Path) -> PathBuf {
    let beside = |(folder, name): (&Path, _)| {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        fs::canonicalize(folder).ok().map(|folder| folder.join(name))
    };
    let known = fs::canonicalize(path).ok();
    known
        .or_else(|| path.parent().zip(path.file_name()).and_then(beside))
        .unwrap_or_else(|| path.to_path_buf())
}

/// Checks that `path` can be written, and leaves no trace.
pub(crate) fn probe_writable(flag: &'static str, path: &Path) -> Result<(), Failure> {
    let probe = || -> io::Result<()> {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(_) => fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().append(true).open(path).map(drop)
            }
            Err(error) => Err(error),
        }
    };
    probe().map_err(|error| Failure::Unwritable { flag, path: PathBuf::from(path), error })
}
