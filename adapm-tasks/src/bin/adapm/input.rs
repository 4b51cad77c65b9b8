//! Finding and reading data, and probing files that are written in the end, before hours are spent.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use adapm_tasks::data::{self, DATA_VARIABLE, DataError};
use adapm_tasks::kge::{Graph, TaskError};

use crate::args::{DataArgs, Given};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Screen;

/// Reads the graph that is asked for, or generates one.
pub(crate) fn graph(args: &DataArgs, output: Output, interrupt: &Interrupt) -> Result<Graph, Failure> {
    let screen = Screen::new("read", output, interrupt.stop());
    screen.waiting("reading data");
    let graph = match &args.data {
        None => Graph::family(args.data_seed),
        Some(name) => {
            let folder = data::locate("kge", name).map_err(unknown)?;
            Graph::load(&folder).map_err(TaskError::Data)?
        }
    };
    screen.finish()?;
    Ok(graph)
}

/// The flags that chose the data, and where its name was looked up.
pub(crate) fn origin(args: &DataArgs, given: &Given) -> String {
    let flags = given.among(&["data", "data-seed"]);
    let by_name = args.data.as_ref().is_some_and(|name| !name.exists());
    if by_name { format!("{flags}, in ${DATA_VARIABLE}") } else { flags }
}

/// Checks that `path` can be written, and leaves no trace.
pub(crate) fn probe_writable(flag: &'static str, path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
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

fn unknown(error: DataError) -> Failure {
    let DataError::UnknownName { name, searched: Some(folder) } = &error else {
        return TaskError::Data(error).into();
    };
    let (near, names) = nearest_first(&name.to_string_lossy(), names_in(folder));
    Failure::UnknownData { error, near, names }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The name that may have been meant, and the names nearest first, as many as one line can hold.
fn nearest_first(wanted: &str, names: Vec<String>) -> (Option<String>, Vec<String>) {
    let wanted = wanted.to_lowercase();
    let closeness = |name: &String| strsim::jaro_winkler(&wanted, &name.to_lowercase());
    let mut ranked: Vec<(f64, String)> = names.into_iter().map(|name| (closeness(&name), name)).collect();
    ranked.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    ranked.truncate(NAMES_MAX);
    let near =
        ranked.first().filter(|(closeness, _)| *closeness >= CLOSENESS_MIN).map(|(_, name)| name.clone());
    (near, ranked.into_iter().map(|(_, name)| name).collect())
}

/// Names that one line can hold.
const NAMES_MAX: usize = 8;

/// Jaro-Winkler similarity from which on a name may have been meant.
const CLOSENESS_MIN: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_comes_first_whatever_its_case() {
        let names = || ["umls", "codex-s", "FB15k-237", "kinships"].map(str::to_owned).to_vec();
        let near = |wanted| nearest_first(wanted, names()).0;
        assert_eq!(near("fb15k237").as_deref(), Some("FB15k-237"));
        assert_eq!(near("KINSHIP").as_deref(), Some("kinships"));
        assert_eq!(near("wordnet"), None);
        assert_eq!(nearest_first("codexs", names()).1[0], "codex-s");
    }
}
