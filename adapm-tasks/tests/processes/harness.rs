//! Starts processes, reads what they print while they run, and never waits forever.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use adapm_verify::silence::Silence;
use rustix::process::{Pid, Signal, kill_process};

/// A process whose lines are kept as they come. Killed when dropped, if it still runs.
pub(crate) struct Process {
    name: String,
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

/// The end of a process.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The lines of a stream so far, and whether it has ended.
#[derive(Clone, Default)]
struct Lines(Arc<Stream>);

#[derive(Default)]
struct Stream {
    said: Mutex<Said>,
    news: Condvar,
}

#[derive(Default)]
struct Said {
    lines: Vec<String>,
    has_ended: bool,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let here = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                here.change(|said| said.lines.push(line));
            }
            here.change(|said| said.has_ended = true);
        });
        lines
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.0.said.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.news.notify_all();
    }

    /// Waits until `found` finds something or the stream ends; `None` if there is nothing by then,
    /// or no line for too long.
    fn wait<T>(&self, found: impl Fn(&Said) -> Option<T>) -> Option<T> {
        let mut silence = Silence::new();
        let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = found(&said) {
                return Some(found);
            }
            let left = silence.left(said.lines.len())?;
            if said.has_ended {
                return None;
            }
            said = self.0.news.wait_timeout(said, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn text(&self) -> String {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner).lines.join("\n")
    }
}

impl Process {
    pub(crate) fn start(name: &str, command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let stdout = Lines::of(child.stdout.take().expect("stdout is piped"));
        let stderr = Lines::of(child.stderr.take().expect("stderr is piped"));
        Self { name: name.to_owned(), child, stdout, stderr }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to this process alone.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Waits until stdout has `count` lines.
    #[track_caller]
    pub(crate) fn stdout_lines(&self, count: usize) {
        let there = self.stdout.wait(|said| (said.lines.len() >= count).then_some(()));
        assert!(there.is_some(), "{} prints no {count} lines: {}", self.name, self.said());
    }

    /// Waits until a line of stderr holds `words`, and returns it.
    #[track_caller]
    pub(crate) fn stderr_line(&self, words: &str) -> String {
        let line =
            self.stderr.wait(|said| said.lines.iter().find(|line| line.contains(words)).cloned());
        line.unwrap_or_else(|| panic!("{} does not say {words:?}: {}", self.name, self.said()))
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let ended = [&self.stdout, &self.stderr]
            .map(|lines| lines.wait(|said| said.has_ended.then_some(())));
        assert!(ended.iter().all(Option::is_some), "{} hangs: {}", self.name, self.said());
        let code = self.child.wait().expect("a child can be waited for").code();
        Ended { code, stdout: self.stdout.text(), stderr: self.stderr.text() }
    }

    fn said(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", self.stdout.text(), self.stderr.text())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // No effect on a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Returns the one line of an error, which is the last.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        let errors: Vec<&str> =
            self.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(
            errors.len() == 1 && self.stderr.ends_with(errors[0]),
            "not one last line of error: {self:?}"
        );
        errors[0]
    }
}

/// Returns the binary, without the variables of the tests' environment.
pub(crate) fn adapm() -> Command {
    clean(Command::new(binary()))
}

/// Returns the path of the binary.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_adapm")
}

/// Removes variables by which a process would find a launcher.
pub(crate) fn clean(mut command: Command) -> Command {
    let foreign = |name: &str| {
        let prefixes = ["ADAPM_", "SLURM_", "OMPI_", "PMIX_", "PMI_", "MPI_", "MV2_"];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
            || ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "JOB_COMPLETION_INDEX"]
                .contains(&name)
    };
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(foreign) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns all nodes of a run, started one by one as a person would, that meet through a file in
/// `folder`.
pub(crate) fn nodes(folder: &Path, count: usize, flags: &[&str]) -> Vec<Process> {
    (0..count)
        .map(|node| Process::start(&format!("n{node}"), member(folder, node, count).args(flags)))
        .collect()
}

/// Returns one node of several, without the verb.
pub(crate) fn member(folder: &Path, node: usize, count: usize) -> Command {
    let mut command = adapm();
    command
        .env("ADAPM_NODE", node.to_string())
        .env("ADAPM_NODES", count.to_string())
        .env("ADAPM_RENDEZVOUS", format!("file:{}", text(&folder.join("rendezvous"))))
        .env("ADAPM_TOKEN", TOKEN)
        .env("TMPDIR", folder);
    command
}

/// Returns an empty folder of this name for the files of one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("processes").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Writes a graph that trains in an instant, epoch after epoch: a ring of 24 entities, walked in
/// both directions.
pub(crate) fn ring(folder: &Path) -> String {
    let fact = |from: usize, relation: &str, to: usize| {
        format!("e{}\t{relation}\te{}\n", from % 24, to % 24)
    };
    let next = |range: std::ops::Range<usize>| {
        range.map(|at| fact(at, "next", at + 1)).collect::<String>()
    };
    let back = |range: std::ops::Range<usize>| {
        range.map(|at| fact(at + 1, "previous", at)).collect::<String>()
    };
    let data = folder.join("ring");
    fs::create_dir_all(&data).expect("a folder can be made");
    for (name, facts) in [
        ("train.txt", next(0..24) + &back(0..18)),
        ("valid.txt", back(18..21)),
        ("test.txt", back(21..24)),
    ] {
        fs::write(data.join(name), facts).expect("a file can be written");
    }
    text(&data).to_owned()
}

/// Returns the words that train on `data` for so many epochs, without evaluation.
pub(crate) fn train<'a>(data: &'a str, epochs: &'a str) -> Vec<&'a str> {
    let words = "train kge --no-eval --dim 8 --workers 1".split(' ');
    words.chain(["--data", data, "--epochs", epochs]).collect()
}

/// As [`train`], with results as JSON.
pub(crate) fn train_json<'a>(data: &'a str, epochs: &'a str) -> Vec<&'a str> {
    [train(data, epochs), vec!["--json"]].concat()
}

/// Returns a path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the target folder has a name in UTF-8")
}

/// Returns the reason why a program of this name cannot be run, or not with the rights that only
/// root has, if those are needed.
pub(crate) fn lacks(programs: &[&str], needs_root: bool) -> Option<String> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let found = |program: &OsStr| {
        env::split_paths(&paths).chain(extra.clone()).any(|path| path.join(program).is_file())
    };
    if let Some(program) = programs.iter().find(|program| !found(OsStr::new(program))) {
        return Some(format!("{program} is not installed"));
    }
    (needs_root && !rustix::process::geteuid().is_root())
        .then(|| "only root may do this".to_owned())
}

/// Prints that a test was not run. Returns so that it can end a test.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("SKIPPED {name}: {reason}");
}

/// Returns the repetitions of a test: `variable` if it is set.
pub(crate) fn runs(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).ok().and_then(|runs| runs.parse().ok()).unwrap_or(otherwise)
}

/// Lets the machine go on for this long, so that a signal comes at some moment.
pub(crate) fn pass(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

/// Hexadecimal, of 32 bytes.
pub(crate) const TOKEN: &str = "5b0c5d1e7a9f42c68d13e0b7264fa8915b0c5d1e7a9f42c68d13e0b7264fa891";
