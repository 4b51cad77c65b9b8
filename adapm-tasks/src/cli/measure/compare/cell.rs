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

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::System;
use crate::cli::failure::Failure;
use crate::cli::format;
use crate::cli::measure::compare::process::{Common, Ended, Process, SETTINGS, refused, save};
use crate::cli::measure::compare::settings::Kind;
use crate::cli::measure::compare::tuning::{self, Tuned};
use crate::run::flags::by_text;

/// A run that is compared: its system, number of nodes and seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    #[serde(with = "by_text")]
    pub(crate) system: System,
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

impl Cell {
    /// Returns its name for people: `classic on 2 nodes, seed 1`.
    pub(crate) fn title(&self) -> String {
        format!("{} on {}, seed {}", self.system, format::plural(self.nodes, "node"), self.seed)
    }

    /// Returns its folder.
    pub(crate) fn folder(&self, comparison: &Path) -> PathBuf {
        let system = self.system.to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
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
        words.extend(own(&["--system", &self.system.to_string(), "--seed", &seed, "--json"]));
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
        let kind = Kind { system: self.system, nodes: self.nodes };
        let folder = self.folder(common.folder);
        fs::create_dir_all(&folder).map_err(|error| refused(&folder, &error))?;
        match fs::remove_file(folder.join(RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused(&folder, &error));
            }
            _ => {}
        }
        let Some(tuned) = tuning::find(kind, common)? else { return Ok(None) };
        let record = match tuned {
            Err(reason) => self.not_begun(reason),
            Ok(tuned) => {
                let words = self.words(tuned.as_ref(), common);
                let process = Process { words, folder: &folder, title: &self.title(), kind };
                let Some(ended) = process.run(common)? else { return Ok(None) };
                self.record(&ended, tuned)
            }
        };
        let text =
            serde_json::to_string(&record).map_err(|error| refused(&folder, &error.into()))?;
        save(&folder.join(RECORD), text.as_bytes())?;
        Ok(Some(record))
    }

    /// Returns the record of a run that could not begin.
    fn not_begun(&self, reason: String) -> Record {
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

    /// Returns the record of a process that has ended, of a system that was tuned to this.
    fn record(&self, ended: &Ended, tuned: Option<Tuned>) -> Record {
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
        let (cell, seconds, peak_bytes) = (self.clone(), ended.seconds, ended.peak_bytes);
        Record { cell, ending, reason, seconds, tuned, peak_bytes, epochs, result }
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

const CELLS: &str = "cells";
const RECORD: &str = "cell.json";
