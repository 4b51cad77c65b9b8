//! The kinds of targets: files, links, pipes, devices, folders, and the files of other runs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, mkfifoat};

use super::{Folder, GO_ON, model, prepare, write_all};
use crate::files::{Output, OutputError, input, is_shared, read};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn fifo(path: &Path) {
    mkfifoat(rustix::fs::CWD, path, Mode::from_raw_mode(0o600)).expect("a pipe can be made");
}

#[test]
fn permissions_and_links_stay() {
    let folder = Folder::new();
    fs::create_dir(folder.join("below")).expect("a folder can be made");
    let (file, link, chain) =
        (folder.join("below/model"), folder.join("link"), folder.join("chain"));
    fs::write(&file, "old").expect("a file can be written");
    fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("it is ours");
    symlink("below/model", &link).expect("a link can be made");
    symlink(&link, &chain).expect("a link can be made");
    prepare(&chain).expect("writable").save(&write_all(&model(1)), &GO_ON).expect("saves");
    assert!(fs::symlink_metadata(&chain).expect("is there").is_symlink());
    assert!(fs::symlink_metadata(&link).expect("is there").is_symlink());
    assert_eq!((fs::read(&file).expect("is there"), mode(&file)), (model(1), 0o640));

    // A link that leads nowhere yet is where the new file is to be.
    symlink("below/new", folder.join("dangling")).expect("a link can be made");
    prepare(&folder.join("dangling"))
        .expect("writable")
        .save(&write_all(b"new"), &GO_ON)
        .expect("saves");
    assert_eq!(fs::read(folder.join("below/new")).expect("is there"), b"new");
    assert_eq!(folder.names(), ["below", "chain", "dangling", "link"]);
}

#[test]
fn a_file_planted_under_a_temporary_name_is_never_written_to() {
    let folder = Folder::new();
    let (path, victim) = (folder.join("model"), folder.join("victim"));
    fs::write(&victim, "kept").expect("a file can be written");
    // The names that programs like this one used to take.
    for name in ["model.partial", "model.tmp", ".model.partial"] {
        symlink(&victim, folder.join(name)).expect("a link can be made");
    }
    let planted = format!("model.{}-{:016x}.partial", 1, 7);
    symlink(&victim, folder.join(&planted)).expect("a link can be made");
    prepare(&path).expect("writable").save(&write_all(&model(1)), &GO_ON).expect("saves");
    assert_eq!(fs::read(&victim).expect("is there"), b"kept");
    assert!(fs::symlink_metadata(&path).expect("is there").is_file());
}

#[test]
fn what_a_killed_run_left_is_removed_and_a_run_that_goes_on_is_left_alone() {
    let folder = Folder::new();
    let path = folder.join("model");
    let left = folder.join("model.12-0123456789abcdef.partial");
    let others =
        ["model.partial", "model.12-0123456789abcdeg.partial", "other.12-0123456789abcdef.partial"];
    fs::write(&left, "of a killed run").expect("a file can be written");
    others.iter().for_each(|name| fs::write(folder.join(name), "").expect("a file can be written"));
    drop(prepare(&path).expect("writable"));
    let mut names: Vec<String> = others.iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    assert_eq!(folder.names(), names, "what this program does not name is not its own");

    fs::write(&left, "of a run that goes on").expect("a file can be written");
    let held = File::open(&left).expect("is there");
    flock(&held, FlockOperation::LockExclusive).expect("nobody else locks it");
    let refused = prepare(&path).expect_err("another run writes it");
    assert!(matches!(&refused, OutputError::Taken(other) if *other == left), "{refused}");
    assert!(left.exists());
    drop(held);
    prepare(&path).expect("the other run is gone");
}

#[test]
fn of_two_runs_with_one_file_the_second_is_refused_also_if_they_begin_at_once() {
    let folder = Folder::new();
    let path = folder.join("model");
    for round in 0..20 {
        let start = std::sync::Barrier::new(2);
        let run = |last| {
            start.wait();
            let output = prepare(&path);
            start.wait();
            output.map(|mut output| output.save(&write_all(&model(last)), &GO_ON).expect("saves"))
        };
        let results = thread::scope(|scope| {
            let other = scope.spawn(|| run(2));
            [run(1), other.join().expect("no panic")]
        });
        let saved = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(saved, 1, "round {round}: {results:?}");
        let found = fs::read(&path).expect("is there");
        assert_eq!(found, model(if results[0].is_ok() { 1 } else { 2 }), "round {round}");
        assert_eq!(folder.names(), ["model"], "round {round}");
    }
}

#[test]
fn what_cannot_be_a_file_is_refused_at_the_start() {
    let folder = Folder::new();
    assert!(matches!(prepare(&folder.join("")), Err(OutputError::Folder)));
    assert!(matches!(prepare(&folder.join("none/model")), Err(OutputError::Refused(_))));
    assert!(matches!(prepare(&folder.join("model/")), Err(OutputError::Folder)));
    let socket = folder.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket can be made");
    assert!(matches!(prepare(&socket), Err(OutputError::Special)));
    assert_eq!(folder.names(), ["socket"], "what was refused leaves no file");
}

#[test]
fn a_device_is_written_to_and_not_synced() {
    prepare(Path::new("/dev/null"))
        .expect("writable")
        .save(&write_all(&model(1)), &GO_ON)
        .expect("saves");
    let full = prepare(Path::new("/dev/full")).expect("it is found in the end only");
    let folder = Folder::new();
    let error = { full }.save(&write_all(&model(1)), &GO_ON).expect_err("it is full");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    let output = prepare(Path::new("/dev/full")).expect("writable");
    let elsewhere =
        output.rescue(Some(&folder.join("")), "rescued", &write_all(&model(1))).expect("saves");
    assert_eq!(fs::read(&elsewhere).expect("is there"), model(1));
    assert!(folder.names()[0].starts_with("full.rescued-"), "{:?}", folder.names());
}

#[test]
fn a_pipe_without_reader_is_refused_and_one_with_a_reader_gets_all() {
    let folder = Folder::new();
    let path = folder.join("pipe");
    fifo(&path);
    // A run that is to stop does not wait for a reader.
    assert!(matches!(Output::prepare(&path, &AtomicBool::new(true)), Err(OutputError::NoReader)));
    let reader = path.clone();
    let read = thread::spawn(move || {
        let mut bytes = Vec::new();
        File::open(reader).and_then(|mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
    });
    let mut output = prepare(&path).expect("somebody reads");
    output.save(&write_all(&model(1)), &GO_ON).expect("writes");
    drop(output);
    assert_eq!(read.join().expect("no panic").expect("reads"), model(1));
    assert_eq!(folder.names(), ["pipe"]);
}

#[test]
fn a_pipe_whose_reader_does_not_read_does_not_hold_up_a_run_that_is_to_stop() {
    let folder = Folder::new();
    let path = folder.join("pipe");
    fifo(&path);
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let _reader =
        OpenOptions::new().read(true).custom_flags(flags).open(&path).expect("it can be read");
    let mut output = prepare(&path).expect("somebody reads");
    let error =
        output.save(&write_all(&model(1)), &AtomicBool::new(true)).expect_err("nobody reads");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[test]
fn room_is_asked_for_with_sizes() {
    let folder = Folder::new();
    let output = prepare(&folder.join("model")).expect("writable");
    output.check_space(1).expect("there is a byte");
    let error = output.check_space(u64::MAX).expect_err("no disk has it");
    assert!(matches!(&error, OutputError::NoSpace { needed: u64::MAX, .. }), "{error}");
    assert!(error.to_string().contains("18446744073.7 GB"), "{error}");
}

#[test]
fn what_is_written_by_and_by_takes_its_name_in_the_end() {
    let folder = Folder::new();
    let path = folder.join("trace");
    fs::write(&path, "old").expect("a file can be written");
    let output = prepare(&path).expect("writable");
    let mut writer = output.writer().expect("open");
    std::io::Write::write_all(&mut writer, b"new").expect("writes");
    assert_eq!(fs::read(&path).expect("is there"), b"old");
    output.commit().expect("commits");
    assert_eq!(
        (fs::read(&path).expect("is there"), folder.names()),
        (b"new".to_vec(), vec!["trace".into()])
    );
}

#[test]
fn a_file_that_was_read_is_known_by_whatever_path() {
    let folder = Folder::new();
    let (path, link, hard) = (folder.join("data"), folder.join("link"), folder.join("hard"));
    fs::write(&path, "data").expect("a file can be written");
    symlink(&path, &link).expect("a link can be made");
    fs::hard_link(&path, &hard).expect("a link can be made");
    assert_eq!(input(&path), None);
    assert_eq!(read(&link).expect("is there"), b"data");
    for path in [&path, &link, &hard] {
        assert_eq!(input(path), Some(link.clone()));
    }
    assert_eq!(input(&folder.join("none")), None);
}

#[test]
fn only_pipes_and_open_files_are_no_data_for_several_processes() {
    let folder = Folder::new();
    fs::write(folder.join("data"), "data").expect("a file can be written");
    fifo(&folder.join("pipe"));
    symlink("/dev/stdin", folder.join("link")).expect("a link can be made");
    assert!(!is_shared(&folder.join("data")) && !is_shared(&folder.join("none")));
    for path in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].map(Path::new) {
        assert!(is_shared(path), "{}", path.display());
    }
    assert!(is_shared(&folder.join("pipe")) && is_shared(&folder.join("link")));
}
