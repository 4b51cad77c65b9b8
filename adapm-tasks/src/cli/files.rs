//! The files of a command, each with the flag that names it: prepared before hours are spent, never
//! over another that the command reads or writes, and written in the end, whatever happens to one
//! of them.
//!
//! How a file is written is [`crate::files`]'s.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::{self, FileId, Output, OutputError};

use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;

/// The files of a command, each with the flag that names it.
#[derive(Debug, Default)]
pub struct Files<'a> {
    /// Files and folders that it reads.
    pub read: Vec<(&'static str, &'a Path)>,
    /// Files that it writes.
    pub written: Vec<(&'static str, &'a Path)>,
}

impl<'a> Files<'a> {
    /// Returns those of `flags` that are given.
    #[must_use]
    pub fn given<const N: usize>(
        flags: [(&'static str, &'a Option<PathBuf>); N],
    ) -> Vec<(&'static str, &'a Path)> {
        flags
            .into_iter()
            .filter_map(|(flag, path)| path.as_deref().map(|path| (flag, path)))
            .collect()
    }
}

/// Checks that the data is no pipe, if each of several processes reads it.
pub(crate) fn check_shared(files: &Files<'_>) -> Result<(), Failure> {
    match files.read.iter().find(|(_, path)| files::is_shared(path)) {
        Some(&(flag, path)) => Err(Failure::SharedPipe { flag, path: path.to_owned() }),
        None => Ok(()),
    }
}

/// Files that are going to be written.
pub struct Outputs {
    outputs: Vec<(&'static str, Output)>,
    interrupt: Interrupt,
    /// The flag of each file that was or was not written, where it is, and a sentence that says so.
    told: Vec<(&'static str, Option<PathBuf>, String)>,
    failure: Option<Failure>,
    /// The content to be written is known to be good.
    is_judged: bool,
    /// The content to be written can be had again at any time.
    is_copy: bool,
}

impl Outputs {
    /// Checks that each file can be written and is no other of them. What is only found while data
    /// is read is checked by [`Outputs::check_inputs`].
    pub(crate) fn prepare(files: &Files<'_>, interrupt: &Interrupt) -> Result<Self, Failure> {
        let interrupt = interrupt.clone();
        let mut outputs = Self {
            outputs: Vec::new(),
            interrupt,
            told: Vec::new(),
            failure: None,
            is_judged: true,
            is_copy: false,
        };
        for &(flag, path) in &files.written {
            let id = FileId::at(path);
            let is_read = |(_, other): &&(&str, &Path)| id.is_some() && FileId::at(other) == id;
            if let Some((other, _)) = files.read.iter().find(is_read) {
                return Err(Failure::SameFile { path: path.to_owned(), flags: [flag, other] });
            }
            outputs.add(flag, path)?;
        }
        outputs.check_inputs()?;
        Ok(outputs)
    }

    /// One more file, which is none of the others.
    pub(crate) fn add(&mut self, flag: &'static str, path: &Path) -> Result<(), Failure> {
        if let Some((other, _)) = self.outputs.iter().find(|(_, output)| output.is_at(path)) {
            return Err(Failure::SameFile { path: path.to_owned(), flags: [flag, other] });
        }
        let output = Output::prepare(path, self.interrupt.stop())
            .map_err(|error| Failure::Unwritable { flag, path: path.to_owned(), error })?;
        self.outputs.push((flag, output));
        Ok(())
    }

    /// Checks that none of them is a file that was read, by any path, or the one that stdout goes
    /// to.
    pub(crate) fn check_inputs(&self) -> Result<(), Failure> {
        self.outputs.iter().try_for_each(|(flag, output)| check_input(flag, output))
    }

    /// Checks that there is room for as many bytes as each file will have.
    pub(crate) fn check_space(&self, sizes: &[(&'static str, u64)]) -> Result<(), Failure> {
        for (flag, output) in &self.outputs {
            // All of them, as they may be on one disk.
            let needed =
                sizes.iter().filter(|(sized, _)| self.has(sized)).map(|(_, bytes)| bytes).sum();
            if sizes.iter().any(|(sized, _)| sized == flag) {
                let path = output.path().to_owned();
                output.check_space(needed).map_err(|error| Failure::Unwritable {
                    flag,
                    path,
                    error,
                })?;
            }
        }
        Ok(())
    }

    /// Returns true if the file of this flag is wanted, and not yet written.
    #[must_use]
    pub fn has(&self, flag: &str) -> bool {
        self.outputs.iter().any(|(other, _)| *other == flag)
    }

    /// Writes the file of this flag, if it is wanted; in another folder if it cannot be written
    /// there. A result that was not evaluated does not replace an older file: it goes beside that
    /// file.
    pub fn save(
        &mut self,
        flag: &'static str,
        what: &str,
        write: impl Fn(&mut dyn Write) -> io::Result<()>,
    ) {
        let Some(mut output) = self.take(flag) else { return };
        let is_beside = !self.is_judged && output.replaces();
        let (path, stop) = (output.path().to_owned(), self.interrupt.stop());
        let attempt = || {
            let saved = match (check_input(flag, &output), is_beside) {
                (Err(failure), _) => Err(failure),
                (Ok(()), true) => output
                    .rescue(None, "not-evaluated", &write)
                    .map_err(|error| unwritable(flag, &output, error)),
                (Ok(()), false) => match output.save(&write, stop) {
                    Ok(()) => Ok(output.path().to_owned()),
                    Err(error) => Err(unwritable(flag, &output, error)),
                },
            };
            saved.map_err(|failure| {
                if self.is_copy && is_left(&failure, &path) {
                    return (Box::new(Failure::Stdout(io::ErrorKind::BrokenPipe.into())), None);
                }
                let rescue = |folder: PathBuf| output.rescue(Some(&folder), "rescued", &write).ok();
                (Box::new(failure), folders().find_map(rescue))
            })
        };
        let saved = self.interrupt.protect(|| format!("writing {}", path.display()), attempt);
        match saved {
            Ok(place) if is_beside => {
                let what = format!("{} stays as it was: {what}, not evaluated,", path.display());
                self.tell(flag, place, &what);
            }
            Ok(place) => self.tell(flag, place, what),
            Err((failure, _)) if matches!(*failure, Failure::Stdout(_)) => {
                self.failure.get_or_insert(*failure);
            }
            Err((failure, elsewhere)) => {
                if let Some(place) = &elsewhere {
                    self.tell(flag, place.clone(), what);
                }
                self.failure.get_or_insert(Failure::Elsewhere(failure, elsewhere));
            }
        }
    }

    /// Sets whether the content to be written is known to be good.
    pub(crate) fn judge(&mut self, is_judged: bool) {
        self.is_judged = is_judged;
    }

    /// Declares that all output can be produced again: a reader of stdout that leaves misses
    /// nothing.
    pub(crate) fn copies(&mut self) {
        self.is_copy = true;
    }

    /// Reports that the files that are still to be written are not, and why.
    pub(crate) fn leave(&mut self, reason: &str) {
        for (flag, output) in std::mem::take(&mut self.outputs) {
            let path = output.path().display();
            let stays = if output.replaces() { "stays as it was" } else { "is not written" };
            self.told.push((flag, None, format!("{path} {stays}: {reason}")));
        }
    }

    /// Returns the file of this flag, to be written by and by.
    pub(crate) fn take(&mut self, flag: &str) -> Option<Output> {
        let at = self.outputs.iter().position(|(other, _)| *other == flag)?;
        Some(self.outputs.remove(at).1)
    }

    /// Returns a sentence for each file.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(|(_, _, sentence)| sentence.as_str())
    }

    /// Returns the path of the file of this flag, if it was written.
    pub(crate) fn saved(&self, flag: &str) -> Option<&Path> {
        self.told.iter().find(|(other, ..)| *other == flag)?.1.as_deref()
    }

    /// Returns the first failure.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }

    fn tell(&mut self, flag: &'static str, path: PathBuf, what: &str) {
        let sentence = format!("{what} are in {}", path.display());
        self.told.push((flag, Some(path), sentence));
    }
}

/// The one place where outputs are compared with all that was read.
fn check_input(flag: &'static str, output: &Output) -> Result<(), Failure> {
    let path = output.path();
    if let Some(input) = files::input(path) {
        return Err(Failure::Overwrites { flag, path: path.to_owned(), input });
    }
    let id = FileId::at(path);
    let is_own = |name: &&str| {
        output.replaces() && id.is_some() && FileId::at(&Path::new("/dev").join(name)) == id
    };
    if let Some(stream) = ["stdout", "stderr"].into_iter().find(is_own) {
        return Err(Failure::SameFile { path: path.to_owned(), flags: [flag, stream] });
    }
    Ok(())
}

fn unwritable(flag: &'static str, output: &Output, error: OutputError) -> Failure {
    Failure::Unwritable { flag, path: output.path().to_owned(), error }
}

/// Returns true if the file was stdout, whose reader has left.
fn is_left(failure: &Failure, path: &Path) -> bool {
    let Failure::Unwritable { error, .. } = failure else { return false };
    error.kind() == io::ErrorKind::BrokenPipe && files::is_stdout(path)
}

/// Returns the folders to try for a file that cannot be written to its place.
fn folders() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    // Not $TMPDIR: that of a launched process is removed with the launcher.
    let temporary = ["/var/tmp", "/tmp"].map(PathBuf::from);
    env::current_dir().into_iter().chain(home).chain(temporary)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn data_that_goes_by_a_name_may_give_its_name_to_a_file() {
        let interrupt = Interrupt::new();
        let model = env::temp_dir().join(format!("adapm-files-{}", std::process::id()));
        let prepare = |read: &Path| {
            let (read, written) = (vec![("--data", read)], vec![("--save", model.as_path())]);
            Outputs::prepare(&Files { read, written }, &interrupt)
        };
        assert!(prepare(&model).is_ok() && !model.exists());
        fs::write(&model, "something").expect("the folder for temporary files can be written");
        assert!(matches!(
            prepare(&model),
            Err(Failure::SameFile { flags: ["--save", "--data"], .. })
        ));
        fs::remove_file(&model).expect("it was just written");
    }
}
