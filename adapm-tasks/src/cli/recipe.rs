//! Recommended settings by name, each with the figures it gives.
//!
//! They are a file a task in the folder `recipes` of this package, which is part of the program: a
//! recipe more is an entry more. Its flags are put in front of those given by hand, which win; its
//! data is taken unless other data is given.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// Settings for a task and data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    name: String,
    /// Name of the data.
    pub(crate) data: String,
    /// Flags that differ from the defaults, as on a command line; names of files hold no spaces.
    pub(crate) flags: String,
    /// Its figures, each with the runs they are of; none if it was not run.
    pub(crate) figures: Vec<Figure>,
    /// Where and when; empty if it was not run.
    pub(crate) machine: String,
    pub(crate) date: String,
}

/// A figure of some runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// The metric.
    pub(crate) metric: String,
    /// One value a run, or the range of them.
    pub(crate) value: String,
    /// Nodes, workers, seeds.
    pub(crate) runs: String,
}

/// A name of no recipe. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[error("no recipe {name} of {task}{}", instead_of(name, task))]
pub(crate) struct UnknownRecipe {
    task: String,
    name: String,
}

impl Recipe {
    /// Returns the name to ask for it by.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its flags and, if wanted, the one that chooses its data.
    pub(crate) fn words(&self, with_data: bool) -> Vec<OsString> {
        let data = ["--data", &self.data].into_iter().filter(|_| with_data);
        data.chain(self.flags.split_whitespace()).map(OsString::from).collect()
    }

    /// Returns the expected figures: `MRR 0.93 (1 node x 2 workers, seed 1)`.
    pub(crate) fn expected(&self) -> String {
        if self.figures.is_empty() {
            return "not run yet, so no figures are known".to_owned();
        }
        let figures = self
            .figures
            .iter()
            .map(|Figure { metric, value, runs }| format!("{metric} {value} ({runs})"))
            .collect::<Vec<_>>();
        figures.join("; ")
    }
}

/// Returns the recipe of a task with this name, in upper or lower case.
pub(crate) fn find(task: &str, name: &str) -> Result<Recipe, UnknownRecipe> {
    let found = all(task).into_iter().find(|recipe| recipe.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| UnknownRecipe { task: task.to_owned(), name: name.to_owned() })
}

/// Returns the recipes of a task, in the order of its file.
pub(crate) fn all(task: &str) -> Vec<Recipe> {
    let Some((_, file)) = FILES.iter().find(|(name, _)| *name == task) else { return Vec::new() };
    serde_json::from_str(file).expect("what is part of the program was checked by a test")
}

/// Returns the recipe that may have been meant by a name, else all there are.
fn instead_of(name: &str, task: &str) -> String {
    let names = all(task).into_iter().map(|recipe| recipe.name).collect();
    match crate::nearest::nearest(name, names) {
        (Some(near), _) => format!("; did you mean {near}?"),
        (None, names) if names.is_empty() => ": there is none yet; leave out --recipe".to_owned(),
        (None, names) => format!(": there are {}", names.join(", ")),
    }
}

/// For each task the names of the data that its recipes are for.
#[cfg(test)]
pub(crate) fn names_of_data() -> Vec<(&'static str, Vec<String>)> {
    let names = |task| all(task).into_iter().map(|recipe| recipe.data).collect();
    FILES.iter().map(|(task, _)| (*task, names(task))).collect()
}

const FILES: [(&str, &str); 5] = [
    ("gnn", include_str!("../../recipes/gnn.json")),
    ("kge", include_str!("../../recipes/kge.json")),
    ("mf", include_str!("../../recipes/mf.json")),
    ("wv", include_str!("../../recipes/wv.json")),
    ("ctr", include_str!("../../recipes/ctr.json")),
];

#[cfg(test)]
mod tests;
