//! The folder of a comparison: one process at a time works in it, and all its runs have the same
//! settings.

use std::fs;
use std::io;
use std::path::Path;

use crate::cli::failure::Failure;
use crate::cli::measure::compare::cell::has_runs;
use crate::cli::measure::compare::process::{SETTINGS, refused, save};
use crate::files::Lock;

/// Opens the folder for runs of these settings, for this process alone. A folder with runs is gone
/// on with if `resumes`.
///
/// # Errors
///
/// A folder that holds something else, or runs of other settings, or that another process uses.
pub(crate) fn open(folder: &Path, settings: &str, resumes: bool) -> Result<Lock, Failure> {
    let file = folder.join(SETTINGS);
    let refuse = |why: String| Err(Failure::Folder { path: folder.to_path_buf(), reason: why });
    let is_new = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(refused(folder, &error)),
        Ok(entries) => entries.flatten().all(|entry| entry.file_name() == LOCK),
    };
    if is_new {
        fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
    } else if !file.is_file() {
        return refuse(
            "there is something else in it than a comparison; give another folder".to_owned(),
        );
    }
    let lock = lock(folder)?;
    if !has_runs(folder) {
        save(&file, settings.as_bytes())?;
        return Ok(lock);
    }
    if !resumes {
        return refuse(
            "a comparison is in it; --resume goes on with it, or give another folder".to_owned(),
        );
    }
    let before = fs::read_to_string(&file).map_err(|error| refused(folder, &error))?;
    let lines = || before.lines().zip(settings.lines());
    match lines().find(|(before, after)| before != after) {
        Some((before, after)) => refuse(format!(
            "its runs have other settings: {before} where now {after}; give another folder"
        )),
        None if before.lines().count() != settings.lines().count() => {
            refuse("its runs have other settings; give another folder".to_owned())
        }
        None => Ok(lock),
    }
}

fn lock(folder: &Path) -> Result<Lock, Failure> {
    let lock = Lock::take(&folder.join(LOCK)).map_err(|error| refused(folder, &error))?;
    lock.ok_or_else(|| Failure::Folder {
        path: folder.to_path_buf(),
        reason: "another compare uses it; wait for its end, or give another folder".to_owned(),
    })
}

/// Returns the words of [`FURTHER`] in the settings of a folder, with what else must be equal if a
/// comparison goes on.
pub(crate) fn further(folder: &Path) -> Option<String> {
    let settings = fs::read_to_string(folder.join(SETTINGS)).ok()?;
    settings.lines().find_map(|line| line.strip_prefix(FURTHER)).map(str::to_owned)
}

/// The start of the line of what is no setting, in the settings of all runs.
pub(crate) const FURTHER: &str = "# Further: ";

const LOCK: &str = "lock";

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn one_process_at_a_time_uses_a_folder() {
        let folder = env::temp_dir().join(format!("adapm-compare-lock-{}", process::id()));
        let first = open(&folder, "dim = 4\n# Further: --workers 3\n", false).expect("it is new");
        let error = open(&folder, "dim = 4\n", true).expect_err("it is used").to_string();
        assert!(error.contains("another compare uses it"), "{error}");
        assert!(error.contains(&folder.display().to_string()), "{error}");
        assert_eq!(further(&folder).as_deref(), Some("--workers 3"));
        drop(first);
        // Nothing is done in it, so other settings may take it, and what stays is no other's.
        open(&folder, "dim = 8\n", false).expect("it is free");
        fs::remove_file(folder.join(SETTINGS)).expect("it is there");
        open(&folder, "dim = 8\n", false).expect("a lock alone is nothing");
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
