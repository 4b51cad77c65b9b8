//! The search for the flags of nups before its runs, by `adapm tune nups`: a process of its own,
//! once for each number of nodes. Its time is part of the price of the system (AdaPM App. D).

use std::fs;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::System;
use crate::cli::failure::Failure;
use crate::cli::format;
use crate::cli::measure::compare::process::{self, Common, Process, SETTINGS};
use crate::cli::measure::compare::settings::Kind;

/// What nups is tuned to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tuned {
    pub(crate) replicate_factor: f64,
    pub(crate) localize_ahead: u64,
    /// Of the search.
    pub(crate) seconds: f64,
}

impl Tuned {
    /// Returns its flags.
    pub(crate) fn words(&self) -> [String; 4] {
        let Self { replicate_factor, localize_ahead, .. } = self;
        let (factor, ahead) = (replicate_factor.to_string(), localize_ahead.to_string());
        ["--replicate-factor".to_owned(), factor, "--localize-ahead".to_owned(), ahead]
    }

    /// Returns what the object that `tune --json` prints says.
    fn of(object: &Value) -> Option<Self> {
        let best = object.get("best")?;
        Some(Self {
            replicate_factor: best.get("replicate_factor")?.as_f64()?,
            localize_ahead: best.get("localize_ahead")?.as_u64()?,
            seconds: object.get("seconds")?.as_f64()?,
        })
    }
}

/// Returns what runs of this kind are tuned to, if they are: as it was found before, or by a
/// process. `None` if a signal has ended that; the inner error is what it failed with.
///
/// # Errors
///
/// Files that cannot be written.
pub(crate) fn find(
    kind: Kind,
    common: &Common<'_>,
) -> Result<Option<Result<Option<Tuned>, String>>, Failure> {
    if !common.tunes || kind.system != System::Nups || kind.nodes == 1 {
        return Ok(Some(Ok(None)));
    }
    if let Some(reason) = common.untuned.borrow().get(&kind.nodes) {
        return Ok(Some(Err(reason.clone())));
    }
    let folder = common.folder.join(FOLDER).join(format!("{}-nodes-{}", kind.system, kind.nodes));
    let file = folder.join(FOUND);
    let found = fs::read_to_string(&file).ok();
    if let Some(found) = found.and_then(|text| serde_json::from_str(&text).ok()) {
        return Ok(Some(Ok(Some(found))));
    }
    let title = format!("tune {} on {}", kind.system, format::plural(kind.nodes, "node"));
    let settings = folder.join(SETTINGS).display().to_string();
    let nodes = kind.nodes.to_string();
    let words =
        ["tune", System::Nups.name(), common.task, "--config", &settings, "--nodes", &nodes];
    let words = words.map(str::to_owned).into_iter().chain(common.words.iter().cloned());
    let words = words.chain(["--json".to_owned()]).collect();
    // The budget is that of a run.
    let process = Process { words, folder: &folder, title: &title, kind, budget: None };
    let Some(ended) = process.run(common)? else { return Ok(None) };
    let mut objects = ended.log.lines().filter_map(|line| serde_json::from_str(line).ok());
    match objects.next_back().as_ref().and_then(Tuned::of) {
        Some(tuned) if ended.status.success() => {
            let text = serde_json::to_string(&tuned)
                .map_err(|error| process::refused(&file, &error.into()))?;
            process::save(&file, text.as_bytes())?;
            Ok(Some(Ok(Some(tuned))))
        }
        _ => {
            let reason = format!("{title}: {}", ended.reason());
            common.untuned.borrow_mut().insert(kind.nodes, reason.clone());
            Ok(Some(Err(reason)))
        }
    }
}

const FOLDER: &str = "tuned";
const FOUND: &str = "tuned.json";
