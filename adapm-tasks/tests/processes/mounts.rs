//! Disks of a run's own: a file that is mounted by itself, a disk that is too small, and one that
//! fills up.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{Ended, Process, binary, clean, folder, lacks, ring, skip};

/// Starts a run in `folder` after `mounts`, which a shell makes in a namespace of the run's own.
fn behind(mounts: &str, folder: &Path, args: &[&str]) -> Process {
    let script = format!("set -e; {mounts}; exec \"$@\"");
    let mut command = clean(Command::new("unshare"));
    command.args(["--mount", "sh", "-c", &script, "sh", binary()]).args(args).current_dir(folder);
    Process::start("mounted", &mut command)
}

fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    words.iter().for_each(|word| assert!(ended.stderr.contains(word), "no {word:?} in {ended:?}"));
}

#[test]
fn a_file_that_is_mounted_by_itself_is_refused_before_training() {
    if let Some(reason) = lacks(&["unshare", "mount"], true) {
        return skip("mounts", &reason);
    }
    let folder = folder("mounted_file");
    let data = ring(&folder);
    ["outside", "model"]
        .iter()
        .for_each(|name| fs::write(folder.join(name), "kept").expect("writable"));
    let train = ["train", "kge", "--data", &data, "--save", "model"];
    let ended = behind("mount --bind outside model", &folder, &train).end();
    refused(&ended, &["model (--save)", "it is mounted by itself", "mount its folder"]);
    for name in ["outside", "model"] {
        assert_eq!(fs::read(folder.join(name)).expect("it is there"), b"kept");
    }
    // What the error says to do.
    fs::create_dir(folder.join("inside")).expect("a folder can be made");
    let train =
        ["train", "kge", "--data", &data, "--dim", "8", "--epochs", "1", "--save", "inside/model"];
    assert_eq!(behind("mount --bind . inside", &folder, &train).end().code, Some(0));
    assert!(fs::read(folder.join("model")).expect("it is there").len() > 1000);
}

#[test]
fn a_disk_that_is_too_small_is_refused_with_sizes() {
    if let Some(reason) = lacks(&["unshare", "mount"], true) {
        return skip("mounts", &reason);
    }
    let folder = folder("small_disk");
    let data = ring(&folder);
    fs::create_dir(folder.join("disk")).expect("a folder can be made");
    let train = ["train", "kge", "--data", &data, "--dim", "20000", "--save", "disk/model"];
    let ended = behind("mount -t tmpfs -o size=1m none disk", &folder, &train).end();
    // 24 entities and 2 relations of 20,000 numbers.
    refused(&ended, &["disk/model (--save)", "it needs 2.1 MB, 1.0 MB are free in"]);
}

#[test]
fn a_disk_that_fills_up_costs_no_model() {
    if let Some(reason) = lacks(&["unshare", "mount"], true) {
        return skip("mounts", &reason);
    }
    let folder = folder("full_disk");
    let data = ring(&folder);
    fs::create_dir(folder.join("disk")).expect("a folder can be made");
    let flags =
        ["--dim", "2000", "--negative-count", "8", "--epochs", "100000000", "--no-eval", "--json"];
    let train =
        [&["train", "kge", "--data", &data, "--save", "disk/model"], flags.as_slice()].concat();
    let run = behind("mount -t tmpfs -o size=1m none disk; echo old > disk/model", &folder, &train);
    run.stdout_lines(1);
    let inside = Path::new("/proc").join(run.id().to_string()).join("root");
    let disk = inside
        .join(folder.strip_prefix("/").expect("folders of tests have whole paths"))
        .join("disk");
    let filled = fs::write(disk.join("of_others"), vec![1; 2 << 20]).expect_err("it takes less");
    assert_eq!(filled.kind(), std::io::ErrorKind::StorageFull);
    let old = fs::File::open(disk.join("model")).expect("it is there");
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(std::io::read_to_string(&old).expect("it is the same file"), "old\n");
    assert!(ended.stderr.find("result on ") < ended.stderr.find("error: "), "{ended:?}");
    for words in ["disk/model (--save)", "it needs 208.", "are free in", "it is in ", "instead"] {
        assert!(ended.stderr.contains(words), "no {words:?} in {ended:?}");
    }
    let rescued = fs::read_dir(&folder).expect("it is there").filter_map(Result::ok);
    let rescued = rescued
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("model.rescued-"));
    assert!(fs::read(rescued.expect("a file")).expect("it is there").len() > 208_000);
}
