//! One run of a comparison, a cell: a process of its own with its files, so that memory and faults
//! are its own.
//!
//! | file in `cells/NAME` | what |
//! | --- | --- |
//! | `settings.toml` | its settings |
//! | `log.jsonl` | what the run printed: an object an epoch, then one of the run |
//! | `stderr.txt` | what it told people |
//! | `cell.json` | the same with how it ended, written when it has |

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::failure::Failure;
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::compare::settings::{Kind, Settings};
use crate::cli::measure::compare::tuning::{self, Tuned};
use crate::files::{self, LineFile, Output};
use crate::run::flags::manager;

/// A run that is compared: its system, number of nodes and seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) system: String,
    pub(crate) nodes: usize,
    pub(crate) seed: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    Finished,
    /// Stopped as its time was over; its whole epochs count.
    Budget,
    Failed,
}

/// A run that has ended, as it is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) ending: Ending,
    /// Why it failed.
    pub(crate) reason: Option<String>,
    /// Of the whole process.
    pub(crate) seconds: f64,
    /// What its system was tuned to before.
    #[serde(default)]
    pub(crate) tuned: Option<Tuned>,
    /// The most memory that its process had; unknown of several processes.
    pub(crate) peak_bytes: Option<u64>,
    /// The objects that `train --json` prints, an epoch each.
    pub(crate) epochs: Vec<Value>,
    /// The object that it prints last.
    pub(crate) result: Option<Value>,
}

/// What all runs of a comparison have in common.
pub(crate) struct Common<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) task: &'static str,
    pub(crate) settings: &'a Settings<'a>,
    pub(crate) tunes: bool,
    /// Further words of the command line.
    pub(crate) words: &'a [String],
    pub(crate) as_processes: bool,
    pub(crate) budget: Option<Duration>,
    pub(crate) interrupt: &'a Interrupt,
}

impl Cell {
    /// Returns its name for people: `classic on 2 nodes, seed 1`.
    pub(crate) fn title(&self) -> String {
        format!("{} on {}, seed {}", self.system, format::plural(self.nodes, "node"), self.seed)
    }

    /// Returns what decides on its settings.
    fn kind(&self) -> Kind {
        let system = manager(&self.system).ok().flatten().unwrap_or_default();
        Kind { system, nodes: self.nodes }
    }

    /// Returns its folder.
    pub(crate) fn folder(&self, comparison: &Path) -> PathBuf {
        let system = self.system.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        comparison.join(CELLS).join(format!("{system}-nodes-{}-seed-{}", self.nodes, self.seed))
    }

    /// Returns what is recorded of it, if it has ended and does not have to be run again.
    pub(crate) fn recorded(&self, comparison: &Path) -> Option<Record> {
        let text = fs::read_to_string(self.folder(comparison).join(RECORD)).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        (record.cell == *self && record.ending != Ending::Failed).then_some(record)
    }

    /// Returns the words after the name of the program.
    fn words(&self, tuned: Option<&Tuned>, common: &Common<'_>) -> Vec<String> {
        let settings = self.folder(common.folder).join(SETTINGS).display().to_string();
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let nodes = self.nodes.to_string();
        let is_launched = common.as_processes && self.nodes > 1;
        let mut words =
            if is_launched { own(&["launch", "--nodes", &nodes, "--"]) } else { Vec::new() };
        words.extend(own(&["train", common.task, "--config", &settings]));
        if !is_launched {
            words.extend(own(&["--nodes", &nodes]));
        }
        let seed = self.seed.to_string();
        words.extend(own(&["--system", &self.system, "--seed", &seed, "--json"]));
        words.extend_from_slice(common.words);
        words.extend(tuned.into_iter().flat_map(Tuned::words));
        words
    }

    /// Runs it; `None` if a signal has ended it, and it is to be run again.
    ///
    /// # Errors
    ///
    /// Files that cannot be written. A run that fails is a record.
    pub(crate) fn run(&self, common: &Common<'_>) -> Result<Option<Record>, Failure> {
        let (kind, folder) = (self.kind(), self.folder(common.folder));
        match fs::remove_file(folder.join(RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused(&folder, &error));
            }
            _ => {}
        }
        let tuned = if common.tunes && tuning::is_for(kind) {
            match tuning::find(kind, common)? {
                None => return Ok(None),
                Some(found) => found.map(Some),
            }
        } else {
            Ok(None)
        };
        let record = match tuned {
            Err(reason) => self.failed(reason),
            Ok(tuned) => {
                let words = self.words(tuned.as_ref(), common);
                let process = Process { words, folder: &folder, title: &self.title(), kind };
                let Some(ended) = process.run(common)? else { return Ok(None) };
                Record { tuned, ..self.record(&ended) }
            }
        };
        let text =
            serde_json::to_string(&record).map_err(|error| refused(&folder, &error.into()))?;
        save(&folder.join(RECORD), text.as_bytes())?;
        Ok(Some(record))
    }

    /// Returns the record of a run that could not begin.
    fn failed(&self, reason: String) -> Record {
        Record {
            cell: self.clone(),
            ending: Ending::Failed,
            reason: Some(reason),
            seconds: 0.0,
            tuned: None,
            peak_bytes: None,
            epochs: Vec::new(),
            result: None,
        }
    }

    /// Returns the record of a process that has ended.
    fn record(&self, ended: &Ended) -> Record {
        let objects = ended.log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let (epochs, others): (Vec<Value>, Vec<Value>) =
            objects.partition(|object| object.get("epoch").is_some());
        let result = others.into_iter().next_back();
        let ending = match &result {
            Some(_) if ended.status.success() => Ending::Finished,
            // Stopped in an epoch it has a result, stopped before the first none.
            _ if ended.is_over => Ending::Budget,
            _ => Ending::Failed,
        };
        let reason = (ending == Ending::Failed).then(|| ended.reason());
        let (seconds, peak_bytes) = (ended.seconds, ended.peak_bytes);
        Record { ending, reason, seconds, peak_bytes, epochs, result, ..self.failed(String::new()) }
    }
}

/// A process of this program.
pub(crate) struct Process<'a> {
    /// Behind the name of the program.
    pub(crate) words: Vec<String>,
    /// For its files.
    pub(crate) folder: &'a Path,
    /// For people.
    pub(crate) title: &'a str,
    pub(crate) kind: Kind,
}

/// The end of a process.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What it printed.
    pub(crate) log: String,
    /// What it told people.
    said: String,
    /// Its time was over.
    is_over: bool,
    seconds: f64,
    peak_bytes: Option<u64>,
}

impl Ended {
    /// Returns why it failed: its last word.
    pub(crate) fn reason(&self) -> String {
        let last = self.said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no word");
        format!("{}: {}", self.status, last.trim().trim_start_matches("error: "))
    }
}

impl Process<'_> {
    /// Runs it, with its settings in a file; `None` if a signal has ended it.
    ///
    /// # Errors
    ///
    /// Files that cannot be written.
    pub(crate) fn run(&self, common: &Common<'_>) -> Result<Option<Ended>, Failure> {
        let Self { ref words, folder, kind, .. } = *self;
        let refused = |error: io::Error| refused(folder, &error);
        fs::create_dir_all(folder).map_err(refused)?;
        save(&folder.join(SETTINGS), common.settings.of(kind).as_bytes())?;
        let [log, said] = [LOG, SAID].map(|name| folder.join(name));
        let program = std::env::current_exe().map_err(refused)?;
        let began = Instant::now();
        let child = Command::new(program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(LineFile::begin(&log).map_err(refused)?.into_output())
            .stderr(LineFile::begin(&said).map_err(refused)?.into_output())
            .spawn()
            .map_err(refused)?;
        let (status, is_over, peak_bytes) = self.wait(child, common).map_err(refused)?;
        if common.interrupt.exit_code().is_some() {
            return Ok(None);
        }
        let read =
            |path: &Path| files::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
        let (log, said) = (read(&log).map_err(refused)?, read(&said).map_err(refused)?);
        let seconds = began.elapsed().as_secs_f64();
        Ok(Some(Ended { status, log, said, is_over, seconds, peak_bytes }))
    }

    /// Waits for the process; ends it once its time is over, or if this one is to end. Returns how
    /// it ended, whether its time was over, and the most memory that it had.
    fn wait(
        &self,
        mut child: Child,
        common: &Common<'_>,
    ) -> io::Result<(ExitStatus, bool, Option<u64>)> {
        let deadline = common.budget.map(|budget| Instant::now() + budget);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let is_one = self.kind.nodes == 1 || !common.as_processes;
        let (mut is_over, mut told, mut peak) = (false, None, None);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, is_over, peak.filter(|_| is_one)));
            }
            peak = peak_of(child.id()).or(peak);
            let is_stopped = common.interrupt.exit_code().is_some();
            is_over |= deadline.is_some_and(|deadline| Instant::now() >= deadline);
            match told {
                None if is_stopped || is_over => {
                    told = Some(Instant::now());
                    // Ctrl-C went to it as well; if it has ended, this fails, which is fine.
                    let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
                }
                Some(since) if since.elapsed() > GRACE => {
                    let _ = child.kill();
                }
                _ => {}
            }
            common.interrupt.moves(|| format!("running {}", self.title));
            thread::sleep(LOOK);
        }
    }
}

impl Record {
    /// Returns true if its command line or its data was refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with("exit status: 2:"))
    }
}

/// Returns true if a run of this comparison is done.
pub(crate) fn has_runs(comparison: &Path) -> bool {
    let Ok(cells) = fs::read_dir(comparison.join(CELLS)) else { return false };
    let texts = cells.flatten().map(|cell| fs::read_to_string(cell.path().join(RECORD)));
    let mut records = texts.flatten().map(|text| serde_json::from_str::<Record>(&text));
    records.any(|record| record.is_ok_and(|record| record.ending != Ending::Failed))
}

/// Writes a file as a whole.
///
/// # Errors
///
/// Refusals of the operating system.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = |file: &mut dyn io::Write| file.write_all(bytes);
    let saved =
        Output::prepare(path, &files::NEVER).and_then(|mut file| file.save(&write, &files::NEVER));
    saved.map_err(|error| Failure::Unwritable { flag: "--out", path: path.to_path_buf(), error })
}

/// Returns the failure of a folder that cannot be used.
pub(crate) fn refused(path: &Path, error: &io::Error) -> Failure {
    let reason = format!("{}; check it", files::reason(error));
    Failure::Folder { path: path.to_path_buf(), reason }
}

/// Returns the most memory that a running process has had, where the system tells.
fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The settings that all runs have in common.
pub(crate) const SETTINGS: &str = "settings.toml";
const CELLS: &str = "cells";
const LOG: &str = "log.jsonl";
const SAID: &str = "stderr.txt";
const RECORD: &str = "cell.json";
/// Between looks at a process.
const LOOK: Duration = Duration::from_millis(20);
/// A run that was asked to end has so long for it.
const GRACE: Duration = Duration::from_secs(60);
