//! Files of users: never replaced by something worse, never lost, whatever is done to a run.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use adapm_verify::silence::patience;

use crate::harness::{
    Collected, Ran, adapm, assert_refused, collect, finish, folder, ring, run, text, write,
};

/// Returns a run that has printed its plan, and so has begun to train; nothing else of it has been
/// read.
fn begun(command: &mut Command) -> Begun {
    let mut child = command.spawn().expect("the binary starts");
    let stderr = collect(child.stderr.take().expect("stderr is piped"));
    let (sender, lines) = mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    thread::spawn(move || {
        stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let plan = lines.recv_timeout(patience()).expect("the plan comes first");
    assert!(plan.starts_with("train "), "{plan}");
    Begun { child, lines, stderr }
}

struct Begun {
    child: Child,
    lines: mpsc::Receiver<String>,
    stderr: Collected,
}

impl Begun {
    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    fn end(mut self) -> Ran {
        let stderr = self.stderr.text().unwrap_or_else(|| {
            self.child.kill().expect("a hanging child can be ended");
            panic!("the binary hangs");
        });
        let stdout: Vec<String> = self.lines.iter().collect();
        let code = self.child.wait().expect("a child can be waited for").code();
        Ran { code, stdout: stdout.join("\n"), stderr }
    }
}

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there").filter_map(Result::ok);
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Writes the ring with a hundred times as many facts to train on.
fn long_ring(folder: &Path) {
    ring(folder);
    let facts = (24..4_200).map(|from| format!("e{from}\tnext\te{}\n", from + 1));
    let short = fs::read_to_string(folder.join("train.txt")).expect("it was written");
    write(folder, "train.txt", &(short + &facts.collect::<String>()));
}

/// Training whose first epoch takes a minute or more (kge: of the long ring), each step little
/// enough for a busy machine, and which ends at once if it is asked to.
const ENDLESS: [(&str, &[&str]); 3] = [
    (
        "kge",
        &["--negatives", "independent", "--negative-count", "500", "--chunk", "1", "--dim", "2000"],
    ),
    ("mf", &["--rows", "5000", "--columns", "5000", "--cells", "6000000", "--dim", "2000"]),
    ("wv", &["--sentences", "30000", "--dim", "2000", "--negatives", "50"]),
];

#[test]
fn a_run_that_is_stopped_in_its_first_epoch_keeps_the_file_that_is_there() {
    let folder = folder("first_epoch");
    long_ring(&folder);
    let model = folder.join("model");
    for ((task, flags), (signal, code)) in
        ENDLESS.into_iter().zip([("-INT", 130), ("-TERM", 143), ("-TERM", 143)])
    {
        fs::write(&model, "a good model").expect("a file can be written");
        let data = if task == "kge" { vec!["--data", text(&folder)] } else { Vec::new() };
        let arguments = [&["train", task, "--save", text(&model)], data.as_slice(), flags].concat();
        let begun = begun(&mut adapm(&arguments));
        begun.signal(signal);
        let ran = begun.end();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(fs::read(&model).expect("it is there"), b"a good model", "{task}");
        assert!(ran.stdout.contains("model stays as it was: no epoch was completed"), "{ran:?}");
    }
    assert_eq!(
        names(&folder),
        ["model", "test.txt", "train.txt", "valid.txt"],
        "nothing else is left"
    );
}

#[test]
fn processes_that_are_stopped_in_their_first_epoch_keep_the_file_that_is_there() {
    let folder = folder("first_epoch_launch");
    long_ring(&folder);
    let model = folder.join("model");
    fs::write(&model, "a good model").expect("a file can be written");
    let train =
        [&["train", "kge", "--data", text(&folder), "--save", text(&model)], ENDLESS[0].1].concat();
    let begun = begun(&mut adapm(&[&["launch", "--nodes", "2", "--"], train.as_slice()].concat()));
    begun.signal("-TERM");
    let ran = begun.end();
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert_eq!(fs::read(&model).expect("it is there"), b"a good model");
    assert!(ran.stdout.contains("model stays as it was: no epoch was completed"), "{ran:?}");
}

#[test]
fn a_terminal_that_is_gone_ends_a_run_in_good_order() {
    let status = fs::read_to_string("/proc/self/status").expect("the system tells");
    let ignored =
        status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("it is there").trim();
    if u64::from_str_radix(ignored, 16).expect("a number") & 1 == 1 {
        return eprintln!("SKIPPED: SIGHUP is ignored here, and so by all that is started here");
    }
    let folder = folder("hang_up");
    ring(&folder);
    let model = folder.join("model");
    let flags =
        ["--json", "--no-eval", "--dim", "8", "--epochs", "1000000", "--save", text(&model)];
    let mut child = adapm(&[["train", "kge", "--data", text(&folder)].as_slice(), &flags].concat())
        .spawn()
        .expect("starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    stdout.read_line(&mut String::new()).expect("an epoch ends");
    // As the terminal of a session that is gone takes nothing.
    drop(stdout);
    let hung_up = Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
    assert!(hung_up.expect("kill runs").success());
    let ran = finish(child);
    assert!(model.exists(), "{ran:?}");
}

#[test]
fn data_is_not_overwritten_however_it_is_named() {
    let root = folder("data_as_output");
    let umls = root.join("kge").join("umls");
    fs::create_dir_all(&umls).expect("a folder can be made");
    ring(&umls);
    fs::write(
        root.join("ratings.dat"),
        "1::1::5::0\n1::2::3::0\n2::1::4::0\n2::2::1::0\n".repeat(5),
    )
    .expect("a file can be written");
    std::os::unix::fs::symlink(umls.join("valid.txt"), root.join("link"))
        .expect("a link can be made");
    let before: Vec<Vec<u8>> =
        ["train.txt", "valid.txt"].map(|name| fs::read(umls.join(name)).expect("there")).into();
    let kge = |data: &str, flag: &str, output: &Path| {
        let mut command =
            adapm(&["train", "kge", "--data", data, "--epochs", "1", flag, text(output)]);
        finish(command.env("ADAPM_DATA", &root).spawn().expect("the binary starts"))
    };
    for data in [text(&umls), "umls"] {
        for flag in ["--save", "--trace-keys"] {
            for output in [umls.join("train.txt"), umls.join("valid.txt"), root.join("link")] {
                assert_refused(
                    &kge(data, flag, &output),
                    &["cannot write", flag, "it was read as", "another file"],
                );
            }
        }
    }
    let ratings = ["train", "mf", "--data", text(&root), "--save", text(&root.join("ratings.dat"))]
        .map(str::to_owned);
    assert_refused(
        &run(&ratings.each_ref().map(String::as_str)),
        &["--save", "it was read as", "ratings.dat"],
    );
    let after: Vec<Vec<u8>> =
        ["train.txt", "valid.txt"].map(|name| fs::read(umls.join(name)).expect("there")).into();
    assert_eq!(before, after);
    assert_eq!(names(&umls), ["test.txt", "train.txt", "valid.txt"]);
}

#[test]
fn a_model_that_does_not_fit_is_written_elsewhere_behind_the_results() {
    let folder = folder("full");
    ring(&folder);
    let train =
        ["train", "kge", "--data", ".", "--dim", "8", "--epochs", "1", "--save", "/dev/full"];
    let ran = finish(adapm(&train).current_dir(&folder).spawn().expect("the binary starts"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("result on "), "{ran:?}");
    let rescued =
        names(&folder).into_iter().find(|name| name.starts_with("full.rescued-")).expect("a file");
    for word in ["/dev/full (--save)", "no space left on device", "it is in ", &rescued, "instead"]
    {
        assert!(ran.stderr.contains(word), "no {word:?} in {ran:?}");
    }
    let eval = ["eval", "kge", "--data", ".", "--load", &rescued];
    let evaluated = finish(adapm(&eval).current_dir(&folder).spawn().expect("the binary starts"));
    assert_eq!(evaluated.code, Some(0), "{evaluated:?}");
}

#[test]
fn more_room_than_there_is_is_asked_for_before_training() {
    let folder = folder("no_room");
    let model = folder.join("model");
    let flags = [
        "train",
        "mf",
        "--rows",
        "4000000000",
        "--columns",
        "10",
        "--cells",
        "20",
        "--dim",
        "65536",
    ];
    let ran = run(&[&flags, ["--save", text(&model)].as_slice()].concat());
    assert_refused(
        &ran,
        &["cannot write", "(--save)", "it needs 1048576.0 GB", "are free in", text(&folder)],
    );
    assert_eq!(names(&folder), Vec::<String>::new());
}

#[test]
fn the_second_of_two_runs_with_one_file_is_refused() {
    let folder = folder("two_runs");
    long_ring(&folder);
    let model = folder.join("model");
    let train =
        [&["train", "kge", "--data", text(&folder), "--save", text(&model)], ENDLESS[0].1].concat();
    let first = begun(&mut adapm(&train));
    let second = run(&train);
    assert_refused(
        &second,
        &["cannot write", "model (--save)", "another run is going to write it"],
    );
    first.signal("-INT");
    assert_eq!(first.end().code, Some(130));
    assert_eq!(names(&folder), ["test.txt", "train.txt", "valid.txt"]);
}

#[test]
fn what_was_not_evaluated_is_written_beside_what_is_there() {
    let folder = folder("not_evaluated");
    ring(&folder);
    let model = folder.join("model");
    fs::write(&model, "a good model").expect("a file can be written");
    let flags = ["--json", "--dim", "8", "--epochs", "1000000", "--valid-every", "1000000"];
    let train =
        [&["train", "kge", "--data", text(&folder), "--save", text(&model)], flags.as_slice()]
            .concat();
    let mut child = adapm(&train).spawn().expect("the binary starts");
    let stderr = collect(child.stderr.take().expect("stderr is piped"));
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    stdout.read_line(&mut String::new()).expect("an epoch ends");
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("kill runs").success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("text");
    let stderr = stderr.text().expect("it ends");
    assert_eq!(finish(child).code, Some(130), "{stderr}");
    assert_eq!(fs::read(&model).expect("it is there"), b"a good model");
    let beside = names(&folder)
        .into_iter()
        .find(|name| name.starts_with("model.not-evaluated-"))
        .expect("a file");
    assert!(
        stderr.contains("model stays as it was: parameters of epoch ") && stderr.contains(&beside),
        "{stderr}"
    );
    assert!(rest.lines().last().expect("an object").contains(&beside), "{rest}");
}

#[test]
fn a_pipe_or_stdin_cannot_be_the_data_of_several_processes() {
    let folder = folder("shared_pipe");
    write(&folder, "text", "the sun is a star\n");
    std::os::unix::fs::symlink("/dev/stdin", folder.join("link")).expect("a link can be made");
    let link: PathBuf = folder.join("link");
    for data in ["/dev/stdin", "/dev/fd/0", text(&link)] {
        let ran = run(&["launch", "--nodes", "2", "--", "train", "wv", "--data", data]);
        assert_refused(&ran, &[data, "(--data)", "several processes"]);
    }
    let alone = [
        "train",
        "wv",
        "--data",
        "/dev/stdin",
        "--node",
        "0",
        "--nodes",
        "2",
        "--rendezvous",
        "127.0.0.1:1",
    ];
    assert_refused(&run(&alone), &["/dev/stdin", "(--data)", "several processes"]);
}

#[test]
fn one_signal_ends_a_run_that_waits_for_its_data() {
    let mut command = adapm(&["train", "wv", "--data", "/dev/stdin"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary starts");
    // It is asked until it answers: it may not have begun to handle signals.
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let stdin = child.stdin.take().expect("stdin is piped");
    let pid = child.id().to_string();
    let began = Instant::now();
    while !handles_usr1(&pid) {
        assert!(began.elapsed() < patience(), "it never handles signals");
        thread::yield_now();
    }
    assert!(Command::new("kill").args(["-USR1", &pid]).status().expect("kill runs").success());
    let mut line = String::new();
    stderr.read_line(&mut line).expect("text");
    assert!(line.starts_with("state: process "), "{line}");
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("stopped: nothing moved"), "{rest}");
    assert_eq!(child.wait().expect("it ended").code(), Some(143));
    drop(stdin);
}

/// Returns true if a process has begun to handle SIGUSR1.
fn handles_usr1(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap_or("0")
        .trim()
        .to_owned();
    u64::from_str_radix(&mask, 16).unwrap_or(0) >> 9 & 1 == 1
}

#[test]
fn a_launch_that_is_asked_tells_where_its_processes_are() {
    let folder = folder("state");
    long_ring(&folder);
    let train = [&["train", "kge", "--data", text(&folder)], ENDLESS[0].1].concat();
    let mut child = adapm(&[&["launch", "--nodes", "2", "--"], train.as_slice()].concat())
        .spawn()
        .expect("starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    stdout.read_line(&mut String::new()).expect("the plan comes first");
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let kill = |signal: &str| Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(kill("-USR1").expect("kill runs").success());
    let (mut said, wanted) = (
        String::new(),
        ["state: n0 is process ", "n0 | state: node n0 of 2, ", "n1 | state: node n1 of 2, "],
    );
    while !wanted.iter().all(|words| said.contains(words)) {
        assert!(stderr.read_line(&mut said).expect("text") > 0, "it ended: {said}");
    }
    assert!(kill("-TERM").expect("kill runs").success());
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ended").code(), Some(143), "{said}");
}
