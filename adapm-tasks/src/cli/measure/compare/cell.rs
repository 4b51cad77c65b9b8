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
use crate::cli::measure::compare::settings::{Kind, Knobs};
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
    /// What makes it another run than by default; unknown of one that did not begin.
    #[serde(default)]
    pub(crate) knobs: Knobs,
    /// What its system was tuned to before.
    #[serde(default)]
    pub(crate) tuned: Option<Tuned>,
    /// The most memory that its process had; unknown of several processes.
    pub(crate) peak_bytes: Option<u64>,
    /// The share of its processor time that channels had; as little known.
    #[serde(default)]
    pub(crate) channel_share: Option<f64>,
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
        done(&self.folder(comparison)).filter(|record| record.cell == *self)
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
                let (title, budget) = (&*self.title(), common.budget);
                let process = Process { words, folder: &folder, title, kind, budget };
                let Some(ended) = process.run(common)? else { return Ok(None) };
                let mut words = common.words.to_vec();
                words.extend(tuned.iter().flat_map(Tuned::words));
                let mut knobs = common.settings.knobs(kind, &words);
                knobs.localize_ahead =
                    tuned.as_ref().map(|tuned| tuned.localize_ahead).or(knobs.localize_ahead);
                Record { knobs, ..self.record(&ended, tuned) }
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
            knobs: Knobs::default(),
            tuned: None,
            peak_bytes: None,
            channel_share: None,
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
        let is_mixed = !ascend(&epochs);
        let ending = match &result {
            _ if is_mixed => Ending::Failed,
            Some(_) if ended.status.success() => Ending::Finished,
            // Stopped in an epoch it has a result, stopped before the first none.
            _ if ended.is_stopped() => Ending::Budget,
            _ => Ending::Failed,
        };
        let reason = match ending {
            Ending::Failed if is_mixed => Some(MIXED.to_owned()),
            Ending::Failed => Some(ended.reason()),
            _ => None,
        };
        let (seconds, usage) = (ended.seconds, &ended.usage);
        Record {
            cell: self.clone(),
            ending,
            reason,
            seconds,
            knobs: Knobs::default(),
            tuned,
            peak_bytes: usage.peak_bytes,
            channel_share: usage.channel_share(),
            epochs,
            result,
        }
    }
}

impl Record {
    pub(crate) fn has_failed(&self) -> bool {
        self.ending == Ending::Failed
    }

    /// Returns true if its command line or its data was refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with("exit status: 2:"))
    }
}

/// Returns true if a run of this comparison is done.
pub(crate) fn has_runs(comparison: &Path) -> bool {
    let Ok(mut cells) = fs::read_dir(comparison.join(CELLS)) else { return false };
    cells.any(|cell| cell.is_ok_and(|cell| done(&cell.path()).is_some()))
}

/// Returns what is recorded in the folder of a run, if that is done and of one run alone.
fn done(folder: &Path) -> Option<Record> {
    let text = fs::read_to_string(folder.join(RECORD)).ok()?;
    let record: Record = serde_json::from_str(&text).ok()?;
    (record.ending != Ending::Failed && ascend(&record.epochs)).then_some(record)
}

/// Returns true if epochs have ascending numbers, as in the log of one run.
fn ascend(epochs: &[Value]) -> bool {
    let numbers: Vec<Option<u64>> = epochs.iter().map(|epoch| epoch["epoch"].as_u64()).collect();
    numbers.is_sorted_by(|one, other| one < other)
}

const CELLS: &str = "cells";
const RECORD: &str = "cell.json";
const MIXED: &str =
    "a log with epochs of several runs; end the others, then --resume runs it again";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_of_several_runs_is_none() {
        let epochs = |numbers: &[u64]| -> Vec<Value> {
            numbers.iter().map(|number| json!({"epoch": number})).collect()
        };
        assert!([&[][..], &[1], &[1, 2, 4]].iter().all(|numbers| ascend(&epochs(numbers))));
        assert!([&[1, 1][..], &[1, 2, 1]].iter().all(|numbers| !ascend(&epochs(numbers))));

        let comparison = std::env::temp_dir().join(format!("adapm-cell-{}", std::process::id()));
        let cell = Cell { system: System::Full, nodes: 2, seed: 1 };
        let folder = cell.folder(&comparison);
        fs::create_dir_all(&folder).expect("a temporary folder");
        for (numbers, is_done) in [(&[1, 2, 1, 2][..], false), (&[1, 2], true)] {
            let mut record = cell.not_begun(String::new());
            (record.ending, record.epochs) = (Ending::Finished, epochs(numbers));
            let text = serde_json::to_string(&record).expect("JSON");
            fs::write(folder.join(RECORD), text).expect("can be written");
            assert_eq!(cell.recorded(&comparison).is_some(), is_done, "{numbers:?}");
            assert_eq!(has_runs(&comparison), is_done, "{numbers:?}");
        }
        fs::remove_dir_all(&comparison).expect("it is there");
    }
}
