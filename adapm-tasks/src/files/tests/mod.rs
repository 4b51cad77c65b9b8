//! Claims about the file layer: existing files stay whole, whichever call fails, and whichever
//! other process writes.

mod faults;
mod kinds;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Output;

/// A folder of one test, removed after it.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("adapm-layer-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path.canonicalize().expect("it was just created"))
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the names in it, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there").filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

static FOLDERS: AtomicU64 = AtomicU64::new(0);
pub(super) static GO_ON: AtomicBool = AtomicBool::new(false);

pub(super) fn prepare(path: &Path) -> Result<Output, super::OutputError> {
    Output::prepare(path, &GO_ON)
}

/// More bytes than are written at once, which end in `last`.
pub(super) fn model(last: u8) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    bytes.push(last);
    bytes
}

pub(super) fn write_all(bytes: &[u8]) -> impl Fn(&mut dyn Write) -> io::Result<()> {
    move |file| bytes.chunks(100_000).try_for_each(|piece| file.write_all(piece))
}
