//! Files that only their owner may read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Makes a file of mode 600 that holds `text`, synced. A file that is there already stays as it is.
///
/// # Errors
/// What the system refuses; [`io::ErrorKind::AlreadyExists`] if something is at `path`. No file is left then.
pub fn create_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let kept = written.and_then(|()| File::open(folder)?.sync_all());
    if kept.is_err() {
        // Half a secret is none.
        let _ = fs::remove_file(path);
    }
    kept
}
