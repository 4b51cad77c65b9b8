//! Each call of a save fails once, twice, always, or is the last one of its process: the old or the
//! new file is there, whole.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, abort};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use super::{Folder, GO_ON, model, write_all};
use crate::files::target::{Os, System};
use crate::files::{Output, OutputError};

/// The injected outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Fails(Errno),
    /// Before the call is made.
    Ends,
    /// A write that writes half, then ends.
    EndsHalfway,
}

/// The operating system, one or more of whose calls fail.
#[derive(Debug)]
struct Faulty {
    calls: AtomicUsize,
    /// The calls that fail, counted from 0.
    at: std::ops::Range<usize>,
    fault: Fault,
    log: std::sync::Mutex<Vec<&'static str>>,
}

impl Faulty {
    fn new(at: std::ops::Range<usize>, fault: Fault) -> Self {
        Self { calls: AtomicUsize::new(0), at, fault, log: Default::default() }
    }

    fn call<T>(&self, name: &'static str, go_on: impl Fn() -> io::Result<T>) -> io::Result<T> {
        self.log.lock().expect("no test panics with it").push(name);
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            _ if !self.at.contains(&call) => go_on(),
            Fault::Fails(errno) => Err(errno.into()),
            Fault::Ends | Fault::EndsHalfway => abort(),
        }
    }
}

impl System for Faulty {
    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        self.call("create", || Os.create(path, mode))
    }

    fn lock(&self, file: &File) -> io::Result<()> {
        self.call("lock", || Os.lock(file))
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        if self.fault == Fault::EndsHalfway && self.at.contains(&self.calls.load(Ordering::Relaxed))
        {
            let _ = Os.write(file, &bytes[..bytes.len() / 2]);
        }
        self.call("write", || Os.write(file, bytes))
    }

    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        self.call("set mode", || Os.set_mode(file, mode))
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        let is_folder = file.metadata()?.is_dir();
        self.call(if is_folder { "sync folder" } else { "sync" }, || Os.sync(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename", || Os.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call("remove", || Os.remove(path))
    }

    fn pause(&self, _: Duration) {}
}

/// Saves as a run does, from its start to its end.
fn save(path: &Path, system: &Arc<Faulty>) -> Result<(), OutputError> {
    let system: Arc<dyn System> = Arc::clone(system) as Arc<dyn System>;
    Output::prepare_by(path, &GO_ON, system)?.save(&write_all(&model(2)), &GO_ON)
}

/// Returns the calls of a save in which none fails.
fn calls() -> Vec<&'static str> {
    let (folder, system) = (Folder::new(), Arc::new(Faulty::new(0..0, Fault::Ends)));
    fs::write(folder.join("model"), model(1)).expect("a file can be written");
    save(&folder.join("model"), &system).expect("nothing fails");
    system.log.lock().expect("no test panics with it").clone()
}

#[test]
fn a_save_syncs_the_file_before_it_takes_the_name_and_the_folder_behind_it() {
    let calls = calls();
    let start = ["lock", "create", "lock", "write", "sync", "rename", "sync folder"];
    let (rehearsal, real) = calls.split_at(start.len());
    assert_eq!(rehearsal, start);
    let writes = real.iter().take_while(|call| **call == "write").count();
    assert!(writes > 1, "the file is written in pieces: {real:?}");
    assert_eq!(real[writes..], ["set mode", "sync", "rename", "sync folder"]);
}

#[test]
fn whatever_call_fails_the_old_or_the_new_file_is_there_whole() {
    let calls = calls();
    let mut counts = [0, 0];
    for errno in [Errno::NOSPC, Errno::IO, Errno::DQUOT] {
        for (first, name) in calls.iter().enumerate() {
            for failing in [1, 2, usize::MAX - first] {
                let folder = Folder::new();
                let path = folder.join("model");
                fs::write(&path, model(1)).expect("a file can be written");
                let system = Arc::new(Faulty::new(first..first + failing, Fault::Fails(errno)));
                let saved = save(&path, &system);
                let found = fs::read(&path).expect("a file is there");
                let context = format!("{errno:?} at call {first} ({name}), {failing} of them");
                assert!(found == model(1) || found == model(2), "{context}: damaged");
                assert!(saved.is_err() || found == model(2), "{context}: it is said to be saved");
                counts[usize::from(saved.is_ok())] += 1;
                // What a failing system does not let go is removed by the next run.
                drop(super::prepare(&path).expect("it works again"));
                assert_eq!(folder.names(), ["model"], "{context}");
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 30), "both ends are frequent: {counts:?}");
}

#[test]
fn a_process_that_ends_at_any_call_leaves_the_old_or_the_new_file_whole() {
    let calls = calls();
    let mut found_old = 0;
    for (call, name) in calls.iter().enumerate() {
        for fault in ["ends", "ends halfway"] {
            if fault == "ends halfway" && *name != "write" {
                continue;
            }
            let folder = Folder::new();
            let path = folder.join("model");
            fs::write(&path, model(1)).expect("a file can be written");
            let this = env::current_exe().expect("this program has a path");
            let ended = Command::new(this)
                .args(["--exact", "files::tests::faults::child", "--nocapture"])
                .env("ADAPM_TEST_SAVE", format!("{call}:{fault}:{}", path.display()))
                .output()
                .expect("this program starts");
            assert_eq!(
                std::os::unix::process::ExitStatusExt::signal(&ended.status),
                Some(6),
                "{ended:?}"
            );
            let found = fs::read(&path).expect("a file is there");
            assert!(
                found == model(1) || found == model(2),
                "{fault} at call {call} ({name}): damaged"
            );
            found_old += usize::from(found == model(1));
            // The next run removes what is left.
            let mut output = super::prepare(&path).expect("nobody writes it any more");
            assert_eq!(
                folder.names().len(),
                2,
                "{fault} at call {call} ({name}): {:?}",
                folder.names()
            );
            output.save(&write_all(&model(3)), &GO_ON).expect("nothing fails");
            assert_eq!(folder.names(), ["model"]);
            assert_eq!(fs::read(&path).expect("a file is there"), model(3));
        }
    }
    assert!(found_old >= calls.len() - 1, "only the last call comes behind the change of name");
}

/// No test of its own: the process that ends within a save, if it is told to.
#[test]
fn child() {
    let Ok(told) = env::var("ADAPM_TEST_SAVE") else { return };
    let mut words = told.splitn(3, ':');
    let mut word = || words.next().expect("three words");
    let call: usize = word().parse().expect("a number");
    let fault = if word() == "ends" { Fault::Ends } else { Fault::EndsHalfway };
    let system = Arc::new(Faulty::new(call..usize::MAX, fault));
    let saved = save(Path::new(word()), &system);
    unreachable!("the save ended: {saved:?}");
}
