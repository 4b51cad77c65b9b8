//! The folder of a run (`--out`, `--out-local`): what starts it again, what happened in it, and its
//! models.
//!
//! | file | what | written |
//! | --- | --- | --- |
//! | `config.toml` | all settings: `--config DIR/config.toml` starts the run again | as training begins |
//! | `log.jsonl` | an object an epoch, as `--json` prints them | epoch by epoch |
//! | `metrics.csv` | the numbers of these objects, an epoch a line | epoch by epoch |
//! | `checkpoints/` | what the run goes on from, if it ends before its time (`--resume`) | now and then |
//! | `best.adapm`, `last.adapm` | parameters of the chosen epoch, and as training ended | in the end |
//!
//! With `--out-local` other hosts than node 0's have settings and checkpoints alone.
//!
//! A folder that is there is refused, unless it is empty, `--overwrite` is given, or its run goes
//! on; one that is of no run is never written to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::cli::config;
use crate::cli::failure::Failure;
use crate::files::{self, LineFile, Output};
use crate::run::checkpoints::{CHECKPOINTS, host};

/// The folder of a run, which begins as training does: what is refused or fails before leaves
/// models and lines of an earlier run as they are, and the same command can be given again.
pub(crate) struct RunFolder {
    path: PathBuf,
    flag: FolderFlag,
    /// The settings that start the run again, as a file.
    settings: String,
    /// The run that is there goes on.
    goes_on: bool,
    lines: Mutex<Option<Lines>>,
    /// The first error of a line.
    failure: Mutex<Option<Failure>>,
}

/// The flag that gives the folder of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderFlag {
    Out,
    OutLocal,
    Resume,
}

impl FolderFlag {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Out => "--out",
            Self::OutLocal => "--out-local",
            Self::Resume => "--resume",
        }
    }

    /// Returns what stands for it with the parameters of the chosen epoch.
    pub(crate) fn best(self) -> &'static str {
        match self {
            Self::Out => "--out, best",
            Self::OutLocal => "--out-local, best",
            Self::Resume => "--resume, best",
        }
    }

    /// Returns what stands for it with the parameters as training ended.
    pub(crate) fn last(self) -> &'static str {
        match self {
            Self::Out => "--out, last",
            Self::OutLocal => "--out-local, last",
            Self::Resume => "--resume, last",
        }
    }
}

/// The files that grow with every epoch.
struct Lines {
    log: LineFile,
    metrics: LineFile,
    /// The columns of the metrics, once the first line is written.
    columns: Vec<String>,
}

/// Checks that a run can have its folder at `path`, or goes on there, before anything is read;
/// makes nothing.
///
/// # Errors
///
/// A folder that is there already, unless it may be overwritten and is one of a run; one without a
/// run that could go on.
pub(crate) fn check(path: &Path, overwrite: bool, goes_on: bool) -> Result<(), Failure> {
    if goes_on {
        return check_run(path);
    }
    let refused =
        |why: &str| Err(Failure::Folder { path: path.to_path_buf(), reason: why.to_owned() });
    let is_empty =
        |entries: fs::ReadDir| entries.filter_map(Result::ok).all(|entry| is_left_over(&entry));
    match fs::read_dir(path).map(is_empty) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            refused("a file is in its place, or in that of a folder above; give another folder")
        }
        Err(error) => refused(&format!("{}; check its permissions", files::reason(&error))),
        Ok(true) => Ok(()),
        Ok(false) if !is_of_a_run(path) => {
            refused("there is something else in it than a run; give another folder")
        }
        Ok(false) if overwrite => Ok(()),
        Ok(false) => refused("it is of another run; give another folder, or --overwrite"),
    }
}

/// Checks that there are settings of a run in the folder at `path`, with which it can go on.
///
/// # Errors
///
/// A folder that has none.
pub(crate) fn check_run(path: &Path) -> Result<(), Failure> {
    if has_settings(path) {
        return Ok(());
    }
    let reason = format!(
        "there is no run in it to go on from, on host {}; give a folder that --out or --out-local has made",
        host()
    );
    Err(Failure::Folder { path: path.to_path_buf(), reason })
}

/// Returns true if the run in a folder was begun by an earlier start of the same launch.
pub(crate) fn is_of_this_launch(path: &Path) -> bool {
    let Some(launch) = launch() else { return false };
    fs::read_to_string(settings_of(path)).is_ok_and(|text| text.lines().any(|line| line == launch))
}

/// Returns the line of a folder's settings that names the launch, if that starts runs again.
fn launch() -> Option<String> {
    let launch = std::env::var(LAUNCH).ok().filter(|launch| !launch.is_empty());
    launch.map(|launch| format!("# launch {launch}"))
}

/// Returns the path of the settings of the run in a folder.
pub(crate) fn settings_of(path: &Path) -> PathBuf {
    path.join(CONFIG)
}

/// Returns true for what a run leaves that ends, by a signal too, before its folder has begun: the
/// settings come last.
fn is_left_over(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let is_empty = || entry.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
    name == CHECKPOINTS
        || [CONFIG, BEST, LAST].iter().any(|of| files::is_partial(&name, of.as_bytes()))
        || ([LOG, METRICS].iter().any(|lines| name == *lines) && is_empty())
}

/// Returns true if a run has begun in this folder.
fn is_of_a_run(path: &Path) -> bool {
    let has_run = path.join(LOG).is_file() || path.join(CHECKPOINTS).is_dir();
    has_run && has_settings(path)
}

fn has_settings(path: &Path) -> bool {
    let settings = fs::read_to_string(path.join(CONFIG));
    settings.is_ok_and(|text| text.starts_with(config::HEAD))
}

impl RunFolder {
    /// Returns the folder of a run with these settings, which begins or `goes_on`; makes nothing.
    pub(crate) fn of(path: &Path, flag: FolderFlag, settings: String, goes_on: bool) -> Self {
        let (path, lines, failure) = (path.to_path_buf(), Mutex::default(), Mutex::default());
        let settings =
            launch().map_or(settings.clone(), |launch| format!("{settings}\n{launch}\n"));
        Self { path, flag, settings, goes_on, lines, failure }
    }

    /// Makes the folder, unless it is there; changes nothing in it.
    ///
    /// # Errors
    ///
    /// Refusals of the operating system.
    pub(crate) fn made(self) -> Result<Self, Failure> {
        fs::create_dir_all(&self.path).map_err(|error| self.refused(&error))?;
        Ok(self)
    }

    /// Begins the folder, in place of what an earlier run has left there; does nothing if it has
    /// begun, or if the run there goes on: that is known when it does.
    ///
    /// # Errors
    ///
    /// Refusals of the operating system.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        if self.goes_on { Ok(()) } else { self.begin_anew() }
    }

    fn begin_anew(&self) -> Result<(), Failure> {
        let mut lines = lock(&self.lines);
        if lines.is_some() {
            return Ok(());
        }
        self.remove(&[BEST, LAST])?;
        *lines = Some(self.no_lines()?);
        self.write_settings()
    }

    /// Begins the folder of a host that does not share node 0's: it has the settings, and nothing
    /// that an earlier run has left there, unless that run goes on.
    ///
    /// # Errors
    ///
    /// Refusals of the operating system.
    pub(crate) fn begin_elsewhere(&self) -> Result<(), Failure> {
        if !self.goes_on {
            self.remove(&[BEST, LAST, LOG, METRICS])?;
        }
        self.write_settings()
    }

    fn remove(&self, names: &[&str]) -> Result<(), Failure> {
        for name in names {
            match fs::remove_file(self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.refused(&error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write_settings(&self) -> Result<(), Failure> {
        let path = self.path.join(CONFIG);
        let write = |file: &mut dyn io::Write| file.write_all(self.settings.as_bytes());
        let save = || Output::prepare(&path, &files::NEVER)?.save(&write, &files::NEVER);
        let flag = self.flag.name();
        save().map_err(|error| Failure::Unwritable { flag, path: path.clone(), error })
    }

    /// Goes on with the lines of epochs before this one: later ones are done again.
    ///
    /// # Errors
    ///
    /// Refusals of the operating system.
    pub(crate) fn keep_epochs(&self, before: u32) -> Result<(), Failure> {
        self.write_settings()?;
        *lock(&self.lines) = Some(self.lines_before(before)?);
        Ok(())
    }

    fn no_lines(&self) -> Result<Lines, Failure> {
        let begin = |name: &str| {
            LineFile::begin(&self.path.join(name)).map_err(|error| self.refused(&error))
        };
        Ok(Lines { log: begin(LOG)?, metrics: begin(METRICS)?, columns: Vec::new() })
    }

    fn lines_before(&self, epoch: u32) -> Result<Lines, Failure> {
        let is_before = |found: Option<u64>| found.is_none_or(|found| found < u64::from(epoch));
        let keeps_object = |line: &str| {
            let object = serde_json::from_str::<Value>(line).unwrap_or_default();
            is_before(object.get(EPOCH).and_then(Value::as_u64))
        };
        // The first line has the names of columns.
        let keeps_row = |line: &str| is_before(line.split(',').next().and_then(|n| n.parse().ok()));
        let refused = |error: io::Error| self.refused(&error);
        let log = LineFile::go_on(&self.path.join(LOG), keeps_object).map_err(refused)?;
        let metrics = LineFile::go_on(&self.path.join(METRICS), keeps_row).map_err(refused)?;
        let text = fs::read_to_string(self.path.join(METRICS)).map_err(refused)?;
        let columns = text.lines().next().into_iter().flat_map(|line| line.split(','));
        Ok(Lines { log, metrics, columns: columns.map(str::to_owned).collect() })
    }

    /// Adds an epoch, as an object of numbers by name.
    pub(crate) fn epoch(&self, epoch: &impl serde::Serialize) {
        // The first start of a launch has come to no checkpoint.
        if let Err(failure) = self.begin_anew() {
            lock(&self.failure).get_or_insert(failure);
        }
        let mut lines = lock(&self.lines);
        let added = lines.as_mut().map_or(Ok(()), |lines| lines.epoch(epoch));
        if let Err(error) = added {
            let (path, reason) = (self.path.clone(), files::reason(&error));
            lock(&self.failure).get_or_insert(Failure::Unlogged { path, reason });
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn flag(&self) -> FolderFlag {
        self.flag
    }

    /// Returns the first error of what was to be written.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        lock(&self.failure).take().map_or(Ok(()), Err)
    }

    fn refused(&self, error: &io::Error) -> Failure {
        let reason = format!("{}; check it", files::reason(error));
        Failure::Folder { path: self.path.clone(), reason }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lines {
    fn epoch(&mut self, epoch: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_string(epoch)?;
        self.log.line(&text)?;
        let Value::Object(fields) = serde_json::from_str(&text)? else { return Ok(()) };
        if self.columns.is_empty() {
            // The number of the epoch first.
            let others = fields.keys().filter(|name| *name != EPOCH);
            self.columns = [EPOCH].into_iter().map(str::to_owned).chain(others.cloned()).collect();
            self.metrics.line(&self.columns.join(","))?;
        }
        let cell = |name: &String| match fields.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
        };
        let cells: Vec<String> = self.columns.iter().map(cell).collect();
        self.metrics.line(&cells.join(","))
    }
}

/// The variable by which `launch --restarts` names itself to what it starts.
pub(crate) const LAUNCH: &str = "ADAPM_LAUNCH";

/// The field that numbers epochs.
const EPOCH: &str = "epoch";

const CONFIG: &str = "config.toml";
const LOG: &str = "log.jsonl";
const METRICS: &str = "metrics.csv";
/// The parameters of the chosen epoch.
pub(crate) const BEST: &str = "best.adapm";
/// The parameters as training ended.
pub(crate) const LAST: &str = "last.adapm";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("adapm-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn begun(path: &Path, settings: &str) -> RunFolder {
        let run = RunFolder::of(path, FolderFlag::Out, settings.to_owned(), false)
            .made()
            .expect("can be made");
        run.begin().expect("can be written");
        run
    }

    #[test]
    fn epochs_are_lines_of_the_log_and_of_the_metrics() {
        let path = folder("epochs");
        let run = begun(&path, "task = \"kge\"\n");
        run.epoch(&json!({"epoch": 1, "loss": 2.5, "valid_mrr": null}));
        let read = |name: &str| fs::read_to_string(path.join(name)).expect("is there");
        // What was done is there while the run goes on.
        assert_eq!(read(METRICS), "epoch,loss,valid_mrr\n1,2.5,\n");
        run.epoch(&json!({"epoch": 2, "loss": 2.0, "valid_mrr": 0.5}));
        run.finish().expect("nothing was refused");
        assert_eq!(read(METRICS), "epoch,loss,valid_mrr\n1,2.5,\n2,2.0,0.5\n");
        assert_eq!(read(CONFIG), "task = \"kge\"\n");
        let log = read(LOG);
        let objects = log.lines().map(serde_json::from_str::<Value>);
        let epochs: Vec<_> = objects.map(|object| object.expect("JSON")["epoch"].clone()).collect();
        assert_eq!(epochs, [json!(1), json!(2)]);
        fs::remove_dir_all(&path).expect("can be removed");
    }

    #[test]
    fn another_hosts_folder_has_the_settings_and_nothing_of_an_earlier_run() {
        let path = folder("elsewhere");
        let run = begun(&path, config::HEAD);
        fs::write(path.join(BEST), "of the run before").expect("can be written");
        for goes_on in [true, false] {
            let run = RunFolder::of(&path, FolderFlag::Out, config::HEAD.to_owned(), goes_on);
            run.begin_elsewhere().expect("can be written");
            assert!(has_settings(&path));
            for name in [BEST, LOG, METRICS] {
                assert_eq!(path.join(name).exists(), goes_on, "{name}");
            }
        }
        drop(run);
        fs::remove_dir_all(&path).expect("can be removed");
    }

    #[test]
    fn settings_that_cannot_be_written_name_the_flag_that_was_given() {
        let path = folder("unwritable");
        for flag in [FolderFlag::Out, FolderFlag::OutLocal, FolderFlag::Resume] {
            let run = RunFolder::of(&path, flag, config::HEAD.to_owned(), true).made();
            let run = run.expect("can be made");
            fs::create_dir(path.join(CONFIG)).expect("can be made");
            let error = run.begin_elsewhere().expect_err("a folder is in its place").to_string();
            assert!(error.contains(&format!("{CONFIG} ({}):", flag.name())), "{error}");
            fs::remove_dir_all(&path).expect("can be removed");
        }
    }

    #[test]
    fn a_folder_that_is_there_is_refused_unless_it_is_empty_or_given_up() {
        let path = folder("taken");
        let refused =
            |overwrite| check(&path, overwrite, false).map_err(|failure| failure.to_string());
        assert_eq!(refused(false), Ok(()));
        fs::create_dir(&path).expect("can be made");
        assert_eq!(refused(false), Ok(()));
        fs::write(path.join("thesis.tex"), "years of work").expect("can be written");
        for overwrite in [false, true] {
            assert!(refused(overwrite).is_err_and(|text| text.contains("something else")));
        }
        fs::remove_file(path.join("thesis.tex")).expect("can be removed");
        // Made, but not begun, it is still empty, wherever its process was killed.
        RunFolder::of(&path, FolderFlag::Out, String::new(), false).made().expect("can be made");
        assert_eq!(refused(false), Ok(()));
        let partial = [BEST, CONFIG].map(|of| format!("{of}.7-0123456789abcdef.partial"));
        for name in partial.iter().map(String::as_str).chain([LOG, METRICS]) {
            fs::write(path.join(name), "").expect("can be written");
            assert_eq!(refused(false), Ok(()), "{name}");
        }
        fs::write(path.join(LOG), "of another program").expect("can be written");
        assert!(refused(false).is_err_and(|text| text.contains("something else")));
        begun(&path, config::HEAD);
        fs::write(path.join(BEST), "of the run before").expect("can be written");
        assert!(refused(false).is_err_and(|text| text.contains("another run; give another")));
        assert_eq!(refused(true), Ok(()));
        let run = RunFolder::of(&path, FolderFlag::Out, config::HEAD.to_owned(), false)
            .made()
            .expect("can be made");
        assert!(path.join(BEST).exists(), "nothing is lost before the run begins");
        run.begin().expect("can be written");
        assert!(!path.join(BEST).exists());
        fs::remove_file(path.join(LOG)).expect("can be removed");
        assert!(refused(true).is_err_and(|text| text.contains("something else")));
        fs::remove_dir_all(&path).expect("can be removed");
        fs::write(&path, "").expect("can be written");
        assert!(refused(true).is_err_and(|text| text.contains("a file is in its place")));
        fs::remove_file(&path).expect("can be removed");
    }
}
