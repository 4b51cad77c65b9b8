//! The files of the workspace, found by walking the folders, so that a source archive without
//! version control is checked as well. Build output, hidden folders and the fuzzers' corpora are
//! left out.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the workspace that hold its sources.
pub(crate) const FOLDERS: [&str; 6] =
    ["adapm-core", "adapm-transport", "adapm-store", "adapm-runtime", "adapm-tasks", "fuzz"];

/// The other names allowed at the top level, besides dot-files and build output.
pub(crate) const FILES: [&str; 5] =
    ["Cargo.toml", "Cargo.lock", "README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Folders with data or generated files.
const LEFT_OUT: [&str; 3] = ["target", "corpus", "artifacts"];

/// One text file of the workspace.
pub(crate) struct File {
    /// Relative to the workspace, separated by `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns true if the whole file consists of tests.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or("");
        self.path.split('/').any(|part| part == "tests" || part.ends_with("_tests"))
            || name == "tests.rs"
            || name.ends_with("_tests.rs")
    }
}

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the package lies in the workspace").to_owned()
}

/// Returns every text file of the workspace, in the order of the paths.
pub(crate) fn files() -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    for folder in
        FOLDERS.iter().chain(&FILES).chain(&[".ci", ".deny.toml", ".clippy.toml", ".rustfmt.toml"])
    {
        collect(&root, &root.join(folder), &mut files);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn collect(root: &Path, at: &Path, files: &mut Vec<File>) {
    if at.is_dir() {
        let entries = fs::read_dir(at).unwrap_or_else(|error| panic!("{}: {error}", at.display()));
        for entry in entries {
            let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", at.display()));
            let name = entry.file_name();
            let hidden = name.to_string_lossy().starts_with('.');
            if !hidden && !LEFT_OUT.iter().any(|&left_out| name == left_out) {
                collect(root, &entry.path(), files);
            }
        }
    } else if let Ok(text) = fs::read_to_string(at) {
        let relative = at.strip_prefix(root).expect("the walk starts at the root");
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        files.push(File { path: parts.join("/"), text });
    }
}
