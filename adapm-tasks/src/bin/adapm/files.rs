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
        // What is not there is not read from there: data may go by a name that is no path.
        let known =
            |(flag, path): &(&'static str, &Path)| fs::canonicalize(path).ok().map(|place| (*flag, place));
        let mut places: Vec<_> = self.read.iter().filter_map(known).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_goes_by_a_name_may_give_its_name_to_a_file() {
        let model = std::env::temp_dir().join(format!("adapm-files-{}", std::process::id()));
        let probe =
            |read: &Path| Files { read: vec![("--data", read)], written: vec![("--save", &model)] }.probe();
        assert!(probe(&model).is_ok() && !model.exists());
        fs::write(&model, "something").expect("the folder for temporary files can be written");
        assert!(matches!(probe(&model), Err(Failure::SameFile { flags: ["--save", "--data"], .. })));
        fs::remove_file(&model).expect("it was just written");
    }
}
