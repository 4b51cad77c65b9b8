//! Finding and reading data.

use std::fs;
use std::path::{Path, PathBuf};

use crate::data::{self, DATA_VARIABLE, DataError};
use crate::nearest::nearest;
use crate::run::TaskError;

use crate::cli::args::Given;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::progress::Screen;

/// Reads or generates data, and shows that on the screen. A process that is alone needs not finish
/// that if it is to end.
pub(crate) fn read<T>(
    output: Output,
    interrupt: &Interrupt,
    is_alone: bool,
    read: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let screen = Screen::new("read", output, interrupt);
    screen.waiting("reading data");
    // Others would take the end of this process for a failure.
    let data = if is_alone { interrupt.hurry(read) } else { read() }?;
    screen.finish()?;
    Ok(data)
}

/// Returns the path that `name` means for a task: itself, or what has this name among the task's
/// data.
pub(crate) fn locate(task: &'static str, name: &Path) -> Result<PathBuf, Failure> {
    data::locate(task, name).map_err(unknown)
}

/// Returns the flags that chose the data called `name`, and where that was looked up.
pub(crate) fn origin(name: Option<&Path>, flags: &[&str], given: &Given) -> String {
    let flags = given.among(flags);
    let by_name = name.is_some_and(|name| !name.exists());
    if by_name { format!("{flags}, in ${DATA_VARIABLE}") } else { flags }
}

fn unknown(error: DataError) -> Failure {
    let DataError::UnknownName { name, searched: Some(folder) } = &error else {
        return TaskError::Data(error).into();
    };
    let (near, names) = nearest(&name.to_string_lossy(), names_in(folder));
    Failure::UnknownData { error: Box::new(error), near, names }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
