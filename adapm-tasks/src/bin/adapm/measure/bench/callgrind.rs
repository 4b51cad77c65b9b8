//! What callgrind is asked for, and what of its profiles is wanted: instructions of all threads, and calls of the allocator.
//!
//! Format: "Callgrind Format Specification" in the manual of valgrind. Names are written out once and are numbers from then on.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// What all threads did between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) instructions: u64,
    /// Unknown if the program has no names.
    pub(super) allocations: Option<u64>,
}

/// Where callgrind writes, until this is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new folder among temporary ones.
    pub(super) fn new() -> io::Result<Self> {
        let make = |attempt| {
            let name = format!("adapm-bench-{}-{attempt}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).map(|()| Self(path))
        };
        // A process of this number may have been killed before.
        let is_new =
            |made: &io::Result<_>| !matches!(made, Err(error) if error.kind() == ErrorKind::AlreadyExists);
        (1..ATTEMPTS).map(make).find(is_new).unwrap_or_else(|| make(ATTEMPTS))
    }

    /// What was counted between the marks, the first two profiles being what came before each.
    pub(super) fn profile(&self) -> Option<Profile> {
        read(&fs::read_to_string(self.0.join("profile.2")).ok()?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies among temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Flags that begin a new profile wherever a function is called whose name contains `mark`.
pub(super) fn flags(folder: &Folder, mark: &str) -> [String; 4] {
    [
        "--tool=callgrind".to_owned(),
        "--quiet".to_owned(),
        format!("--dump-before=*{mark}*"),
        format!("--callgrind-out-file={}", folder.0.join("profile").display()),
    ]
}

/// What a profile says.
fn read(text: &str) -> Option<Profile> {
    let mut allocators = HashSet::new();
    let (mut instructions, mut allocations, mut has_names) = (None, 0, false);
    let mut callee = "";
    for line in text.lines() {
        let Some((field, value)) = line.split_once(['=', ':']) else { continue };
        match field {
            "fn" | "cfn" => {
                let (number, name) = value.split_once(' ').unwrap_or((value, ""));
                has_names |= !name.is_empty() && !name.starts_with("0x") && name != "???";
                if ALLOCATORS.contains(&name) {
                    allocators.insert(number);
                }
                callee = number;
            }
            "calls" if allocators.contains(callee) => {
                allocations += value.split_once(' ')?.0.parse::<u64>().ok()?;
            }
            "totals" => instructions = Some(value.trim().parse().ok()?),
            _ => {}
        }
    }
    Some(Profile { instructions: instructions?, allocations: has_names.then_some(allocations) })
}

/// By what the command allocates.
const ALLOCATORS: &[&str] = if cfg!(feature = "mimalloc") {
    &["mi_malloc_aligned", "mi_zalloc_aligned", "mi_realloc_aligned"]
} else {
    &["malloc", "calloc", "realloc", "posix_memalign"]
};

/// Names tried for a folder.
const ATTEMPTS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(lines: &[&str]) -> String {
        let head = ["version: 1", "part: 2", "positions: line", "events: Ir", "summary: 1200", ""];
        [&head, lines, &["", "totals: 1200"]].concat().join("\n")
    }

    #[test]
    fn calls_of_the_allocator_are_allocations() {
        let allocator = ALLOCATORS[0];
        let first = format!("cfn=(3) {allocator}");
        let lines = [
            "fl=(1) channel.rs",
            "fn=(1) adapm_runtime::channel",
            "16 400",
            "cob=(2)",
            &first,
            "calls=5 20",
            "16 250",
            "cfn=(4) free",
            "calls=9 30",
            "17 90",
            "fn=(4)",
            "9 50",
            "cfn=(3)",
            "calls=2 20",
            "12 60",
            "fn=(3)",
            "3 410",
        ];
        assert_eq!(read(&profile(&lines)), Some(Profile { instructions: 1_200, allocations: Some(7) }));
    }

    #[test]
    fn a_program_without_names_tells_instructions_only() {
        let lines = ["fn=(1) 0x00000000001234f0", "16 400", "cfn=(2) ???", "calls=5 20", "16 250"];
        assert_eq!(read(&profile(&lines)), Some(Profile { instructions: 1_200, allocations: None }));
        assert_eq!(read("no profile"), None);
    }

    #[test]
    fn each_folder_is_a_new_one() {
        let folders = [(); 2].map(|()| Folder::new().expect("temporary files can be written"));
        assert_ne!(folders[0].0, folders[1].0);
        let paths = folders.map(|folder| folder.0.clone());
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
