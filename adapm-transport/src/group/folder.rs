//! The folder in which the processes of a job meet. Only this user may write there, else a stranger
//! could name another address as node 0's.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::error::SystemError;

/// A folder that is removed once it is empty.
#[derive(Debug)]
pub(super) struct JobFolder(PathBuf);

/// Errors of the folder of a rendezvous file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It cannot be created or inspected.
    #[error(
        "the processes cannot meet in {}: {}; give --rendezvous HOST:PORT", path.display(), error.reason()
    )]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        error: SystemError,
    },
    /// Others can write to it.
    #[error(
        "the processes cannot meet in {}: somebody else can write there; remove it, or give --rendezvous HOST:PORT",
        .0.display()
    )]
    Foreign(PathBuf),
}

impl JobFolder {
    /// Creates the folder of `file`, or takes the one that another process of the job has created.
    pub(super) fn of(file: &Path) -> Result<Self, FolderError> {
        let path = file.parent().unwrap_or(Path::new(".")).to_owned();
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(FolderError::Unusable { path, error: error.into() });
            }
            _ => {}
        }
        match fs::symlink_metadata(&path) {
            Err(error) => Err(FolderError::Unusable { path, error: error.into() }),
            Ok(found) => {
                let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
                if own && found.mode() & 0o077 == 0 {
                    Ok(Self(path))
                } else {
                    Err(FolderError::Foreign(path))
                }
            }
        }
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // Succeeds in the last process; a killed one leaves an empty folder among temporary ones.
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("adapm-folder-{}-{name}", std::process::id()))
    }

    #[test]
    fn all_processes_of_a_job_take_the_same_folder_and_the_last_removes_it() {
        let folder = path("shared");
        let file = folder.join("rendezvous");
        let (one, two) =
            (JobFolder::of(&file).expect("made"), JobFolder::of(&file).expect("taken"));
        fs::write(&file, "x").expect("a file");
        drop(one);
        assert!(file.exists(), "a folder that is in use stays");
        fs::remove_file(&file).expect("node 0 removes its file");
        drop(two);
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_to_which_others_can_write_is_refused() {
        let folder = path("open");
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("it is ours");
        let error = JobFolder::of(&folder.join("rendezvous")).expect_err("open to all").to_string();
        assert!(error.contains("somebody else can write there"), "{error}");
        let link = path("link");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("it is ours");
        symlink(&folder, &link).expect("a link");
        assert!(matches!(JobFolder::of(&link.join("rendezvous")), Err(FolderError::Foreign(_))));
        fs::remove_file(&link).expect("it is there");
        fs::remove_dir(&folder).expect("it is there");
        let nowhere = JobFolder::of(&path("none").join("deep/rendezvous"));
        assert!(matches!(nowhere, Err(FolderError::Unusable { .. })));
    }
}
