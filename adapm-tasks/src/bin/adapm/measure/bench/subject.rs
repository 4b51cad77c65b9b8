//! What can be measured, by name.

use std::str::FromStr;

use adapm_tasks::measure::bench::Group;

use super::job::Job;

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Calls of the parameter manager.
    Calls(Group),
    /// What calls send and execute.
    Counts,
    /// Training, as processes of their own.
    Training(Job),
}

impl Subject {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let calls = Group::ALL.into_iter().map(Self::Calls);
        calls.chain([Self::Counts]).chain(Job::ALL.into_iter().map(Self::Training))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Calls(group) => group.name(),
            Self::Counts => "counts",
            Self::Training(job) => job.name(),
        }
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|subject| subject.name() == name).ok_or_else(|| format!("no group {name}"))
    }
}
