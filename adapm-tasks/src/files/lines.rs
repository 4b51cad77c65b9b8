//! A file that grows line by line while others read it, as `tail -f` does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Stdio;

/// A file of lines, each of which is there as soon as it is written.
#[derive(Debug)]
pub struct LineFile(File);

impl LineFile {
    /// Begins an empty file at `path`, in place of one that is there.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn begin(path: &Path) -> io::Result<Self> {
        drop(OpenOptions::new().write(true).create(true).truncate(true).open(path)?);
        // Behind what is there, whoever else writes.
        OpenOptions::new().append(true).open(path).map(Self)
    }

    /// Goes on with the file at `path`, without those of its lines that `keeps` refuses; begins it
    /// if it is not there.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn go_on(path: &Path, keeps: impl Fn(&str) -> bool) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let lines = text.split_inclusive('\n');
        // A line without an end was being written when its run ended.
        let kept: String = lines.filter(|line| line.ends_with('\n') && keeps(line)).collect();
        if kept != text {
            let partial = path.with_extension("partial");
            fs::write(&partial, kept)?;
            fs::rename(&partial, path)?;
        }
        OpenOptions::new().append(true).create(true).open(path).map(Self)
    }

    /// Returns the file as the output of a process that is to be started.
    #[must_use]
    pub fn into_output(self) -> Stdio {
        self.0.into()
    }

    /// Adds a line, in one write if the system takes it whole.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(format!("{text}\n").as_bytes())
    }
}
