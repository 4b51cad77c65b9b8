//! Folders for Unix sockets that only this user can enter.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Makes a folder called `name` among the temporary files, or in `/tmp` if their folder has a name too long for sockets.
pub(crate) fn private(name: &str) -> io::Result<PathBuf> {
    let path = place(&env::temp_dir(), name);
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

fn place(temporary: &Path, name: &str) -> PathBuf {
    let path = temporary.join(name);
    let fits = path.as_os_str().as_bytes().len() + SOCKET_NAME_MAX <= SOCKET_PATH_MAX;
    if fits { path } else { Path::new("/tmp").join(name) }
}

/// A slash and what the sockets in these folders are called.
const SOCKET_NAME_MAX: usize = 21;
/// Bytes of a socket's path that every system takes; Linux has four more.
const SOCKET_PATH_MAX: usize = 103;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_fits_wherever_temporary_files_are() {
        assert_eq!(place(Path::new("/var/tmp"), "adapm-1"), Path::new("/var/tmp/adapm-1"));
        let long = format!("/{}", "job/".repeat(30));
        assert_eq!(place(Path::new(&long), "adapm-1"), Path::new("/tmp/adapm-1"));
    }
}
