//! The folders of a run whose hosts have one each: which processes share one, and from which
//! checkpoint all of them go on.
//!
//! Each process leaves a sign in its folder, and looks for those of the others: hosts are not told
//! apart by names. What all have told is the same everywhere, so all decide the same, and an error
//! is one error.

use std::path::Path;

use adapm_runtime::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};

use super::error::ResumeError;
use super::record::Record;

/// What a process tells of its folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) host: String,
    /// The processes whose signs are in the folder, ascending.
    pub(super) seen: Vec<usize>,
    /// Some checkpoint was complete in the folders of all.
    pub(super) has_latest: bool,
    /// Checkpoints that it can go on from, as far as its folder goes.
    pub(super) found: Vec<Found>,
}

/// A checkpoint that is complete in the folder of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    name: String,
    /// Of the start that wrote it: so parts of two runs are never taken for one.
    start: String,
    /// Workers of each process, and its host then.
    workers: Vec<usize>,
    hosts: Vec<String>,
    /// Parts that wrote it; some have their files elsewhere.
    parts: usize,
    is_apart: bool,
    /// Rows of each table in the file of this process, if that is there.
    rows: Option<Vec<u64>>,
}

impl Told {
    /// Returns true if all processes share one folder.
    pub(super) fn is_one_folder(all: &[Self]) -> bool {
        all.iter().all(|told| told.seen.len() == all.len())
    }

    /// Returns true if each process sees the same as all that it sees: folders that some share and
    /// others do not have are apart. One that `resumes` may have none.
    pub(super) fn are_folders(all: &[Self], resumes: bool) -> bool {
        all.iter().enumerate().all(|(process, told)| {
            let alike = told.seen.iter().all(|other| all[*other].seen == told.seen);
            alike && (told.seen.contains(&process) || (resumes && told.seen.is_empty()))
        })
    }

    /// Returns true if no process has a checkpoint to go on from.
    pub(super) fn have_none(all: &[Self]) -> bool {
        all.iter().all(|told| told.found.is_empty())
    }

    /// Returns true if some checkpoint was complete in the folders of all.
    pub(super) fn has_latest(all: &[Self]) -> bool {
        all.iter().any(|told| told.has_latest)
    }

    /// Returns true if some folder has a checkpoint without the files of all parts.
    pub(super) fn is_apart(all: &[Self]) -> bool {
        all.iter().flat_map(|told| &told.found).any(|found| found.is_apart)
    }

    /// Returns the newest of its checkpoints.
    pub(super) fn newest(&self) -> Option<String> {
        self.found.iter().map(|found| &found.name).max().cloned()
    }
}

impl Found {
    /// Returns what a process tells of a checkpoint with this record.
    pub(super) fn of(checkpoint: &Checkpoint, record: &Record, process: usize) -> Self {
        Self {
            name: checkpoint.name().to_owned(),
            start: record.start.clone(),
            workers: record.workers.clone(),
            hosts: record.hosts.clone(),
            parts: checkpoint.parts(),
            is_apart: checkpoint.is_apart(),
            rows: checkpoint.rows_of(process).map(<[u64]>::to_vec),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.start) == (&other.name, &other.start)
    }
}

/// Returns the checkpoint to go on from, which all processes have, each with its own file: the
/// newest; `None` if there is none. `workers`: of each process now.
///
/// # Errors
///
/// Other processes than those that wrote it, and files that are missing.
pub(super) fn newest_of_all(
    run: &Path,
    all: &[Told],
    workers: &[usize],
) -> Result<Option<String>, ResumeError> {
    let of = |told: &Told, found: &Found| told.found.iter().any(|own| own.is_same(found));
    let has_file = |told: &Told, found: &Found| {
        told.found.iter().any(|own| own.is_same(found) && own.rows.is_some())
    };
    let any = || all.iter().flat_map(|told| &told.found);
    let everywhere = any().filter(|found| all.iter().all(|told| has_file(told, found)));
    let fits = |found: &&Found| found.parts == all.len() && found.workers == workers;
    if let Some(found) = everywhere.filter(fits).max_by_key(|found| &found.name) {
        return Ok(Some(found.name.clone()));
    }
    // Of two runs that of most processes, or of the first.
    let holders = |found: &Found| all.iter().filter(|told| of(told, found)).count();
    let newest = any().rev().max_by_key(|found| (&found.name, holders(found)));
    let Some(found) = newest else { return Ok(None) };
    let path = run.to_path_buf();
    if !fits(&found) {
        let hosts: Vec<&str> = all.iter().map(|told| &*told.host).collect();
        let there = found.hosts.iter().map(|host| &**host).collect::<Vec<&str>>();
        let there = seats(found.parts, &found.workers, &there);
        let here = seats(all.len(), workers, &hosts);
        return Err(ResumeError::OtherSeats { path, there, here });
    }
    let missing = all.iter().enumerate().filter(|(_, told)| !has_file(told, found));
    let missing = missing.map(|(process, told)| {
        let at = found.hosts.get(process).filter(|host| **host != told.host);
        let at = at.map_or_else(String::new, |host| format!(", it was on {host}"));
        let what = if of(told, found) { "has the files of others" } else { "has none of it" };
        format!("node {process} on {} ({what}{at})", told.host)
    });
    let missing = missing.collect::<Vec<String>>().join(", ");
    Err(ResumeError::Missing { path, name: found.name.clone(), missing })
}

/// Returns the first table of which the files of all processes do not have all rows, as its place,
/// and how many they have.
pub(super) fn lacking(all: &[Told], name: &str, rows: &[u64]) -> Option<(usize, u64)> {
    let named = |told: &Told| told.found.iter().find(|found| found.name == name).cloned();
    let own: Vec<Found> = all.iter().filter_map(named).collect();
    let of = |found: &Found, at: usize| found.rows.as_ref().and_then(|rows| rows.get(at).copied());
    let sum = |at: usize| own.iter().filter_map(|found| of(found, at)).fold(0, u64::saturating_add);
    (0..rows.len()).map(|at| (at, sum(at))).find(|(at, sum)| *sum != rows[*at])
}

/// Returns the newest of the names that are in all lists.
pub(super) fn newest_everywhere<'a>(
    mut lists: impl Iterator<Item = &'a [String]>,
) -> Option<&'a str> {
    let first = lists.next()?.iter();
    let others: Vec<&[String]> = lists.collect();
    let of_all = first.filter(|name| others.iter().all(|others| others.contains(name)));
    of_all.max().map(String::as_str)
}

fn seats(processes: usize, workers: &[usize], hosts: &[&str]) -> String {
    let workers: Vec<String> = workers.iter().map(usize::to_string).collect();
    let what = if processes == 1 { "process" } else { "processes" };
    format!("{processes} {what} (workers {}, hosts {})", workers.join(","), hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, start: &str, has_file: bool) -> Found {
        let hosts = ["ann", "bob"].map(str::to_owned).to_vec();
        let rows = has_file.then(|| vec![5, 1]);
        let (name, start) = (name.to_owned(), start.to_owned());
        Found { name, start, workers: vec![2, 1], hosts, parts: 2, is_apart: true, rows }
    }

    fn told(host: &str, found: Vec<Found>) -> Told {
        Told { host: host.to_owned(), seen: Vec::new(), has_latest: false, found }
    }

    fn chosen(all: &[Told], workers: &[usize]) -> Result<Option<String>, String> {
        newest_of_all(Path::new("runs/a"), all, workers).map_err(|error| error.to_string())
    }

    #[test]
    fn processes_share_a_folder_if_each_sees_what_the_others_see() {
        let sees = |seen: &[usize]| Told { seen: seen.to_vec(), ..told("ann", Vec::new()) };
        let are_folders = |seen: &[&[usize]], resumes: bool| {
            let all: Vec<Told> = seen.iter().map(|seen| sees(seen)).collect();
            Told::are_folders(&all, resumes)
        };
        assert!(are_folders(&[&[0, 2], &[1], &[0, 2]], false));
        assert!(are_folders(&[&[0], &[]], true), "a folder is gone");
        let odd: [&[&[usize]]; 4] =
            [&[&[0], &[]], &[&[0, 1], &[1]], &[&[0, 1], &[0]], &[&[0], &[0, 1]]];
        for seen in odd {
            assert!(!are_folders(seen, false), "{seen:?}");
        }
    }

    #[test]
    fn the_newest_that_all_have_is_gone_on_from() {
        let ann = told("ann", vec![found("s-1", "x", true), found("s-2", "x", true)]);
        let bob = told("bob", vec![found("s-1", "x", true), found("s-3", "x", true)]);
        assert_eq!(chosen(&[ann.clone(), bob.clone()], &[2, 1]), Ok(Some("s-1".to_owned())));
        assert_eq!(chosen(&[ann.clone(), ann.clone()], &[2, 1]), Ok(Some("s-2".to_owned())));
        let none = told("bob", Vec::new());
        assert_eq!(chosen(&[none.clone(), none.clone()], &[2, 1]), Ok(None));
        let other = told("bob", vec![found("s-2", "y", true)]);
        for all in [[ann.clone(), none], [ann.clone(), other]] {
            let error = chosen(&all, &[2, 1]).expect_err("bob has nothing of the run");
            assert!(error.contains("of s-2 files are missing: node 1 on bob (has none"), "{error}");
            assert!(!error.contains("node 0"), "{error}");
        }
    }

    #[test]
    fn folders_that_were_swapped_are_named_with_where_they_were() {
        let of = |host: &str| told(host, vec![found("s-1", "x", false)]);
        let error = chosen(&[of("bob"), of("ann")], &[2, 1]).expect_err("swapped");
        let first = "node 0 on bob (has the files of others, it was on ann)";
        let second = "node 1 on ann (has the files of others, it was on bob)";
        assert!(error.contains(&format!("{first}, {second}; start each node")), "{error}");
    }

    #[test]
    fn other_seats_are_refused_with_both() {
        let of = |host: &str| told(host, vec![found("s-1", "x", true)]);
        let error = chosen(&[of("ann")], &[3]).expect_err("one process");
        let there = "2 processes (workers 2,1, hosts ann,bob)";
        assert!(error.contains(there), "{error}");
        assert!(error.contains("this one has 1 process (workers 3, hosts ann)"), "{error}");
        assert!(chosen(&[of("ann"), of("bob")], &[1, 2]).is_err());
    }

    #[test]
    fn all_rows_are_in_some_file() {
        let all = [(); 2].map(|()| told("ann", vec![found("s-1", "x", true)]));
        assert_eq!(lacking(&all, "s-1", &[10, 2]), None);
        assert_eq!(lacking(&all, "s-1", &[10, 3]), Some((1, 2)));
        assert_eq!(lacking(&all[..1], "s-1", &[10, 2]), Some((0, 5)));
    }

    #[test]
    fn what_is_in_all_lists_is_complete_everywhere() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let lists: [Vec<String>; 3] = [list(&["a", "b", "c"]), list(&["b", "a"]), list(&["b"])];
        let newest = |lists: &[Vec<String>]| {
            newest_everywhere(lists.iter().map(Vec::as_slice)).map(str::to_owned)
        };
        assert_eq!(newest(&lists).as_deref(), Some("b"));
        assert_eq!(newest(&lists[..1]).as_deref(), Some("c"));
        assert_eq!(newest(&[list(&["a"]), list(&[])]), None);
        assert_eq!(newest(&[]), None);
    }
}
