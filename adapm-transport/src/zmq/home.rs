//! A directory for Unix sockets that only this user can open.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

/// Exists as long as this does.
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
        let path = env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, sockets: AtomicU64::new(0) })
    }

    /// A path that nothing has.
    pub(super) fn socket(&self) -> PathBuf {
        self.path.join(self.sockets.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What stays behind is empty sockets that nobody listens to.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
