//! The data sets that recipes use: a file of this package, which is part of the program.

use std::path::{Path, PathBuf};

use crate::data;
use serde::{Deserialize, Serialize};

/// A data set.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Set {
    /// Its name below `$ADAPM_DATA/<task>`: a folder, or a file.
    pub(crate) name: String,
    pub(crate) task: Task,
    pub(crate) what: String,
    /// The source of the data.
    pub(crate) origin: String,
    pub(crate) licence: String,
    pub(crate) files: Vec<Published>,
    /// A remark for people, beside the commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Commands of a shell that make the folder.
    pub(crate) commands: Vec<String>,
}

/// A file as it was published.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// Hexadecimal, as `sha256sum` prints it.
    pub(crate) sha256: String,
}

/// The task that data is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Task {
    Kge,
    Mf,
    Wv,
    Ctr,
    Gnn,
}

impl Task {
    pub(crate) const ALL: [Self; 5] = [Self::Kge, Self::Mf, Self::Wv, Self::Ctr, Self::Gnn];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kge => "kge",
            Self::Mf => "mf",
            Self::Wv => "wv",
            Self::Ctr => "ctr",
            Self::Gnn => "gnn",
        }
    }
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no task.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("give kge, mf, wv, ctr or gnn")]
pub(crate) struct UnknownTask;

impl std::str::FromStr for Task {
    type Err = UnknownTask;

    fn from_str(name: &str) -> Result<Self, UnknownTask> {
        Self::ALL.into_iter().find(|task| task.name() == name).ok_or(UnknownTask)
    }
}

impl Set {
    /// Returns the path where `--data` finds it by its name.
    pub(crate) fn found(&self) -> Option<PathBuf> {
        data::locate(self.task.name(), Path::new(&self.name)).ok()
    }
}

/// Returns all of them.
pub(crate) fn all() -> Vec<Set> {
    serde_json::from_str(FILE).expect("what is part of the program was checked by a test")
}

const FILE: &str = include_str!("../../../recipes/data.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_data_set_says_where_it_is_from_and_what_its_files_are() {
        for set in all() {
            let Set { name, files, .. } = &set;
            assert!(set.origin.contains("https://") && !set.licence.is_empty(), "{name}");
            assert!(!set.commands.is_empty() || set.note.is_some(), "{name}");
            let place = format!("$ADAPM_DATA/{}", set.task);
            assert!(
                set.commands
                    .iter()
                    .all(|command| !command.contains("ADAPM_DATA") || command.contains(&place))
            );
            for file in files {
                let is_sum =
                    |sum: &str| sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(is_sum(&file.sha256) && file.bytes > 0, "{name}/{}", file.name);
            }
        }
    }

    #[test]
    fn the_data_of_every_recipe_is_listed() {
        for (task, recipes) in crate::cli::recipe::names_of_data() {
            for name in recipes {
                let is_it = |set: &Set| set.task.name() == task && set.name == name;
                assert!(all().iter().any(is_it), "{task}/{name}");
            }
        }
    }
}
