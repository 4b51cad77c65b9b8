//! A directory for Unix sockets that only this user can open.

use std::io;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::net::folder;

/// Exists until it is removed. A process that is killed leaves it behind, with a socket that nobody listens to.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    sockets: AtomicU64,
}

impl Home {
    /// A new one, in the directory for temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("adapm-zmq-{}-{:016x}", process::id(), u64::from_le_bytes(random));
        Ok(Self { path: folder::private(&name)?, sockets: AtomicU64::new(0) })
    }

    /// A path that nothing has.
    pub(super) fn socket(&self) -> PathBuf {
        self.path.join(self.sockets.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// Removes it: connections that stand stay, new ones fail.
    pub(super) fn remove(&self) {
        // If the system refuses, what stays behind is empty.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn nobody_else_may_enter_and_nothing_is_left() {
        let (home, other) = (Home::new().expect("a directory"), Home::new().expect("another"));
        assert_ne!(home.path, other.path);
        let mode = home.path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let _sockets =
            [home.socket(), home.socket()].map(|path| UnixListener::bind(path).expect("two paths"));
        for home in [home, other] {
            home.remove();
            assert!(!home.path.exists());
            home.remove();
        }
    }
}
