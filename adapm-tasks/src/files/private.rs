//! Files that only their owner may read.

use std::io;
use std::path::Path;

use super::system::{Os, System};

/// Makes a file of mode 600 that holds `text`, synced. A file that is there already stays as it is.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if something is at `path`; else what the system refuses, and then no file is left.
pub fn create_private(path: &Path, text: &str) -> io::Result<()> {
    create(&Os, path, text)
}

fn create(system: &dyn System, path: &Path, text: &str) -> io::Result<()> {
    let file = system.create(path, 0o600)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match system.write(&file, rest)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => rest = &rest[written..],
            }
        }
        system.sync(&file)?;
        system.sync_folder(folder)
    };
    // Half a secret is none.
    write().inspect_err(|_| drop(system.remove(path)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Syncs files with one outcome and folders with another.
    #[derive(Debug)]
    struct Syncing(Option<io::ErrorKind>, Option<io::ErrorKind>);

    impl System for Syncing {
        fn sync(&self, file: &File) -> io::Result<()> {
            let outcome = if file.metadata()?.is_dir() { self.1 } else { self.0 };
            outcome.map_or(Ok(()), |kind| Err(kind.into()))
        }
    }

    #[test]
    fn a_secret_that_may_not_last_is_removed_and_one_where_folders_are_not_synced_is_kept() {
        use io::ErrorKind::{StorageFull, Unsupported};
        for (index, (system, is_kept)) in [
            (Syncing(None, None), true),
            (Syncing(None, Some(Unsupported)), true),
            (Syncing(Some(StorageFull), None), false),
            (Syncing(None, Some(StorageFull)), false),
        ]
        .into_iter()
        .enumerate()
        {
            let path = std::env::temp_dir().join(format!("adapm-private-{}-{index}", std::process::id()));
            assert_eq!(create(&system, &path, "a secret").is_ok(), is_kept, "{system:?}");
            assert_eq!(
                fs::read_to_string(&path).ok().as_deref(),
                is_kept.then_some("a secret"),
                "{system:?}"
            );
            let _ = fs::remove_file(&path);
        }
    }
}
