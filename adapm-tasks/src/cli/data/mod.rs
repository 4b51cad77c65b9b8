//! The verb `data`: which data sets the recipes use and where they are to be had; `data check`:
//! what data holds.
//!
//! [`sets`] is the list that files are compared with, [`content`] reads them as a task does.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::data::{self, DATA_VARIABLE, DataError};
use crate::files;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::cli::args::{CheckArgs, DataArgs, DataVerb};
use crate::cli::data::content::Content;
use crate::cli::data::sets::{Published, Set, Task};
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::cli::{format, input};

mod content;
pub(crate) mod sets;

/// Lists data sets, or checks data.
pub(crate) fn run(args: &DataArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    match &args.verb {
        None => list(output),
        Some(DataVerb::Check(args)) => check_sets(args, output, interrupt),
    }
}

fn list(output: Output) -> Result<(), Failure> {
    for set in sets::all() {
        output.object(&set)?;
        output.text(&described(&set, output))?;
    }
    output.text(&match env::var_os(DATA_VARIABLE) {
        Some(root) => format!("${DATA_VARIABLE} is {}\n", Path::new(&root).display()),
        None => {
            format!("${DATA_VARIABLE} is not set: export {DATA_VARIABLE}=FOLDER, then run the commands\n")
        }
    })
}

fn described(set: &Set, output: Output) -> String {
    // Of some sets no file was at hand to be measured.
    let size = match set.files.iter().map(|file| file.bytes).sum() {
        0 => String::new(),
        bytes => format!(", {}", format::bytes(bytes)),
    };
    let name = output.bold(&set.name).to_string();
    let mut table = Table::new(&[]);
    table.row(["what", &format!("{}{size}", set.what)]);
    table.row(["task", set.task.name()]);
    table.row(["origin", &set.origin]);
    table.row(["licence", &set.licence]);
    if let Some(folder) = set.found() {
        table.row(["here", &folder.display().to_string()]);
    }
    let sums = set.files.iter().map(|file| format!("  {}  {}\n", file.sha256, file.name));
    let note =
        set.note.iter().map(|note| format!("  {}\n", format::wrapped(note, output.width() - 2)));
    let commands = set.commands.iter().map(|command| format!("  $ {command}\n"));
    let below: String = sums.chain(note).chain(commands).collect();
    format!("{name}\n{}{below}\n", table.render())
}

/// The findings of a check.
#[derive(Serialize)]
struct Checked {
    path: String,
    /// The data set that it is.
    name: Option<String>,
    task: Task,
    /// All files of the data set are there, as they were published.
    as_published: Option<bool>,
    files: Vec<Compared>,
    #[serde(flatten)]
    content: Content,
}

/// A file beside the one that was published.
#[derive(Serialize)]
struct Compared {
    name: String,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Same,
    Differs,
    Missing,
}

/// Reads data and prints what it is.
pub(super) fn check_sets(
    args: &CheckArgs,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let path = locate(args)?;
    let checked = input::read(output, interrupt, true, || check(&path, args))?;
    output.text(&told(&checked, output))?;
    output.object(&checked)?;
    // What was published is as it is.
    let is_fine = match checked.as_published {
        Some(as_published) => as_published,
        None => checked.content.problems.is_empty(),
    };
    if is_fine { Ok(()) } else { Err(Failure::Odd) }
}

fn check(path: &Path, args: &CheckArgs) -> Result<Checked, Failure> {
    let set = recognise(path, args.task)?;
    let task = args.task.or_else(|| set.as_ref().map(|(set, _)| set.task));
    let task = match task {
        Some(task) => task,
        None => content::task_of(path)?,
    };
    let content = content::read(task, path, args)?;
    let (name, files) = set.map_or((None, Vec::new()), |(set, files)| (Some(set.name), files));
    let as_published = name.is_some().then(|| files.iter().all(|file| file.state == State::Same));
    Ok(Checked { path: path.display().to_string(), name, task, as_published, files, content })
}

/// Returns the path that is meant: itself, or what has this name among the data of a task.
fn locate(args: &CheckArgs) -> Result<PathBuf, Failure> {
    let tasks: Vec<Task> = args.task.map_or(Task::ALL.to_vec(), |task| vec![task]);
    let mut last = None;
    for task in tasks {
        match data::locate(task.name(), &args.data) {
            Ok(path) => return Ok(path),
            Err(error) => last = Some(error),
        }
    }
    let error = match last {
        // Where it was looked for is the folder of all tasks.
        Some(DataError::UnknownName { name, searched: Some(_) }) if args.task.is_none() => {
            DataError::UnknownName {
                name,
                searched: std::env::var_os(DATA_VARIABLE).map(PathBuf::from),
            }
        }
        Some(error) => error,
        None => DataError::UnknownName { name: args.data.clone(), searched: None },
    };
    Err(Failure::Data(error))
}

/// Returns the data set with the most files that are as they were published, else the one whose
/// name this is.
fn recognise(path: &Path, task: Option<Task>) -> Result<Option<(Set, Vec<Compared>)>, Failure> {
    let mut best: Option<(usize, Set, Vec<Compared>)> = None;
    for set in sets::all().into_iter().filter(|set| task.is_none_or(|task| set.task == task)) {
        // A pipe is one, too.
        let is_file = !path.is_dir();
        if set.files.is_empty() || is_file && set.files.len() > 1 {
            continue;
        }
        let compare = |file: &Published| {
            let at = if is_file { path.to_path_buf() } else { path.join(&file.name) };
            let state = compare(&at, file).map_err(|error| unreadable(&at, error))?;
            Ok(Compared { name: file.name.clone(), state })
        };
        let files = set.files.iter().map(compare).collect::<Result<Vec<_>, Failure>>()?;
        let is_named =
            path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(set.name.as_str()));
        let same = files.iter().filter(|file| file.state == State::Same).count();
        let score = 2 * same + usize::from(is_named);
        if score > best.as_ref().map_or(0, |(best, ..)| *best) {
            best = Some((score, set, files));
        }
    }
    Ok(best.map(|(_, set, files)| (set, files)))
}

fn compare(path: &Path, published: &Published) -> io::Result<State> {
    let len = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::Missing),
        Err(error) => return Err(error),
    };
    // What is longer or shorter need not be read.
    if len != published.bytes {
        return Ok(State::Differs);
    }
    let mut sum = Sha256::new();
    let mut file = files::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match io::Read::read(&mut file, &mut piece)? {
            0 => break,
            read => sum.update(&piece[..read]),
        }
    }
    let hex: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(if hex == published.sha256 { State::Same } else { State::Differs })
}

fn unreadable(path: &Path, error: io::Error) -> Failure {
    Failure::Data(DataError::Unreadable { path: path.to_path_buf(), error: error.into() })
}

fn told(checked: &Checked, output: Output) -> String {
    let Checked { path, name, task, as_published, files, content } = checked;
    let mut table = Table::new(&[]);
    let what = match (name, as_published) {
        (Some(name), Some(true)) => format!("{name}, as it was published"),
        (Some(name), _) => format!("{name}, but not as it was published"),
        (None, _) => "no data set of `adapm data`".to_owned(),
    };
    table.row(["data set", &what]);
    for file in files {
        let state = match file.state {
            State::Same => "as published",
            State::Differs => "differs: its checksum is another one",
            State::Missing => "missing",
        };
        table.row(["", &format!("{}: {state}", file.name)]);
    }
    table.row(["task", task.name()]);
    table.row(["format", &content.format]);
    for line in &content.counts_told {
        table.row(["", line]);
    }
    for (heading, lines) in [("notes", &content.notes), ("problems", &content.problems)] {
        for (at, line) in lines.iter().enumerate() {
            table.row([if at == 0 { heading } else { "" }, line]);
        }
    }
    if content.problems.is_empty() {
        table.row(["problems", "none"]);
    }
    format!("{}\n{}", output.bold(path), table.render())
}

const PIECE_BYTES: usize = 1 << 18;
