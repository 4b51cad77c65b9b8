//! A process of a comparison: this program with other words, its files in a folder of its own. It
//! is ended once its time is over, or with the comparison.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::launched;
use crate::cli::measure::compare::live::Live;
use crate::cli::measure::compare::settings::{Kind, Settings};
use crate::cli::measure::compare::usage::Usage;
use crate::files::{self, LineFile, Output};

/// What all runs of a comparison have in common.
pub(crate) struct Common<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) task: &'static str,
    pub(crate) settings: &'a Settings<'a>,
    pub(crate) tunes: bool,
    /// Further words of the command line.
    pub(crate) words: &'a [String],
    pub(crate) as_processes: bool,
    pub(crate) budget: Option<Duration>,
    /// Why a search failed, by the number of nodes: no other run tries it again.
    pub(crate) untuned: RefCell<BTreeMap<usize, String>>,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) live: &'a Live<'a>,
}

/// A process of this program.
pub(crate) struct Process<'a> {
    /// Behind the name of the program.
    pub(crate) words: Vec<String>,
    /// For its files.
    pub(crate) folder: &'a Path,
    /// For people.
    pub(crate) title: &'a str,
    pub(crate) kind: Kind,
    /// The time after which it is stopped.
    pub(crate) budget: Option<Duration>,
}

/// The end of a process.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What it printed.
    pub(crate) log: String,
    /// What it told people.
    said: String,
    stop: Stop,
    pub(crate) seconds: f64,
    /// What it used; nothing is known of several processes.
    pub(crate) usage: Usage,
}

/// What was done to end a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Nothing,
    /// Its time was over, and it was asked to end.
    Asked,
    /// It did not end after that, and was killed.
    Killed,
}

impl Ended {
    /// Returns true if its time was over, and it ended as it was asked to.
    pub(crate) fn is_stopped(&self) -> bool {
        // Without a handler, as before it has begun, the signal itself ends it.
        let is_asked = matches!(self.status.code(), Some(0 | TERMINATED))
            || self.status.signal() == Some(Signal::TERM.as_raw());
        self.stop == Stop::Asked && is_asked && !self.said.lines().any(is_hanging)
    }

    /// Returns why it failed: how it ended, and the last error that it told, else its last word.
    pub(crate) fn reason(&self) -> String {
        if self.stop == Stop::Killed {
            return format!("did not stop within {} s of its budget", GRACE.as_secs());
        }
        let lines = self.said.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.collect();
        let is_error = |line: &&str| line.contains("error") || line.contains(PANICKED);
        let at = lines.iter().rposition(is_error).or(lines.len().checked_sub(1));
        let last = at.map_or("no word", |at| lines[at]);
        // What a panic says is on the next line.
        let more = at.filter(|_| last.contains(PANICKED)).and_then(|at| lines.get(at + 1));
        let more = more.map_or_else(String::new, |more| format!(" {more}"));
        format!("{}: {}{more}", self.status, last.trim_start_matches("error: "))
    }
}

/// Returns true for the line of a process that is ended as nothing moves in it any more; while data
/// is read, it is cut short on purpose.
fn is_hanging(line: &str) -> bool {
    line.contains("stopped: nothing moved") && !line.contains("(reading data)")
}

impl Process<'_> {
    /// Runs it, with its settings in a file; `None` if a signal has ended it.
    ///
    /// # Errors
    ///
    /// Files that cannot be written.
    pub(crate) fn run(&self, common: &Common<'_>) -> Result<Option<Ended>, Failure> {
        let Self { ref words, folder, kind, .. } = *self;
        let refused = |error: io::Error| refused(folder, &error);
        fs::create_dir_all(folder).map_err(refused)?;
        save(&folder.join(SETTINGS), common.settings.of(kind).as_bytes())?;
        let [log, said] = [LOG, SAID].map(|name| folder.join(name));
        let program = std::env::current_exe().map_err(refused)?;
        let began = Instant::now();
        let child = Command::new(program)
            .args(words)
            .env(launched::COMPARED, "1")
            .stdin(Stdio::piped())
            .stdout(fresh(&log).map_err(refused)?.into_output())
            .stderr(fresh(&said).map_err(refused)?.into_output())
            .spawn()
            .map_err(refused)?;
        let (status, stop, usage) = self.wait(child, &log, common).map_err(refused)?;
        if common.interrupt.exit_code().is_some() {
            return Ok(None);
        }
        let read =
            |path: &Path| files::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
        let (log, said) = (read(&log).map_err(refused)?, read(&said).map_err(refused)?);
        let seconds = began.elapsed().as_secs_f64();
        Ok(Some(Ended { status, log, said, stop, seconds, usage }))
    }

    /// Waits for the process; ends it once its time is over, or if this one is to end. Returns how
    /// it ended, what was done for that, and what it used.
    fn wait(
        &self,
        mut child: Child,
        log: &Path,
        common: &Common<'_>,
    ) -> io::Result<(ExitStatus, Stop, Usage)> {
        let deadline = deadline(Instant::now(), self.budget);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let is_one = self.kind.nodes == 1 || !common.as_processes;
        let (mut stop, mut told, mut usage) = (Stop::Nothing, None, Usage::default());
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, stop, usage));
            }
            if is_one {
                usage.look_at(child.id());
            }
            let is_stopped = common.interrupt.exit_code().is_some();
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            match told {
                None if is_stopped || is_over => {
                    (told, stop) = (Some(Instant::now()), Stop::Asked);
                    // Ctrl-C went to it as well; if it has ended, this fails, which is fine.
                    let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
                }
                Some(since) if since.elapsed() > GRACE => {
                    stop = Stop::Killed;
                    let _ = child.kill();
                }
                _ => {}
            }
            common.live.moves(self.title, log);
            thread::sleep(LOOK);
        }
    }
}

/// Returns the end of a time that begins; `None` if it is further away than clocks can say.
fn deadline(now: Instant, budget: Option<Duration>) -> Option<Instant> {
    now.checked_add(budget?)
}

/// Begins a file in place of one that is there, to which a process of before may still write.
fn fresh(path: &Path) -> io::Result<LineFile> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => LineFile::begin(path),
    }
}

/// Writes a file as a whole.
///
/// # Errors
///
/// Refusals of the operating system.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = |file: &mut dyn io::Write| file.write_all(bytes);
    let saved =
        Output::prepare(path, &files::NEVER).and_then(|mut file| file.save(&write, &files::NEVER));
    saved.map_err(|error| Failure::Unwritable { flag: "--out", path: path.to_path_buf(), error })
}

/// Returns the failure of a folder that cannot be used.
pub(crate) fn refused(path: &Path, error: &io::Error) -> Failure {
    let reason = format!("{}; check it", files::reason(error));
    Failure::Folder { path: path.to_path_buf(), reason }
}

/// The settings that all runs have in common, and those of one.
pub(crate) const SETTINGS: &str = "settings.toml";
const LOG: &str = "log.jsonl";
const SAID: &str = "stderr.txt";
/// Between looks at a process.
const LOOK: Duration = Duration::from_millis(20);
/// A run that was asked to end has so long for it.
const GRACE: Duration = Duration::from_secs(60);
/// The exit code of a process that SIGTERM has ended in good order.
const TERMINATED: i32 = 143;
const PANICKED: &str = " panicked at ";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a process with this status of `wait`: a signal, or an exit code times 256.
    fn ended(status: i32, stop: Stop, said: &str) -> Ended {
        let (status, said, log) = (ExitStatus::from_raw(status), said.to_owned(), String::new());
        Ended { status, log, said, stop, seconds: 1.0, usage: Usage::default() }
    }

    #[test]
    fn a_run_is_stopped_if_it_ends_as_it_was_asked() {
        let is_stopped = |status, stop, said| ended(status, stop, said).is_stopped();
        for status in [0, TERMINATED << 8, 15] {
            assert!(is_stopped(status, Stop::Asked, "bye"), "{status}");
            assert!(!is_stopped(status, Stop::Nothing, "bye"), "{status}");
        }
        // It was ended in good order, for it cannot have moved on.
        assert!(is_stopped(
            TERMINATED << 8,
            Stop::Asked,
            "stopped: nothing moved for 0.5 s (reading data); x"
        ));
        let hangs = "n1: stopped: nothing moved for 10 s (epoch 1); nothing was saved";
        assert!(!is_stopped(TERMINATED << 8, Stop::Asked, hangs));
        assert!(!is_stopped(101 << 8, Stop::Asked, ""), "it crashed");
        assert!(!is_stopped(11, Stop::Asked, ""), "it crashed");
        let killed = ended(9, Stop::Killed, "bye");
        assert!(!killed.is_stopped());
        assert_eq!(killed.reason(), "did not stop within 60 s of its budget");
    }

    #[test]
    fn a_reason_is_the_last_error() {
        let reason = |said| ended(1 << 8, Stop::Nothing, said).reason();
        assert_eq!(reason(""), "exit status: 1: no word");
        assert_eq!(reason("a\n b \n\n"), "exit status: 1: b");
        assert_eq!(reason("error: no such file\nbye\n"), "exit status: 1: no such file");
        let panic =
            "x\nthread 'w' (7) panicked at a.rs:1:2:\ntoo far\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(reason(panic), "exit status: 1: thread 'w' (7) panicked at a.rs:1:2: too far");
    }

    #[test]
    fn a_budget_beyond_all_clocks_never_ends() {
        let now = Instant::now();
        assert_eq!(deadline(now, Some(Duration::MAX)), None);
        assert_eq!(deadline(now, Some(Duration::ZERO)), Some(now));
    }

    #[test]
    fn a_log_is_a_new_file() {
        let path = std::env::temp_dir().join(format!("adapm-log-{}", std::process::id()));
        let mut orphan = fresh(&path).expect("a temporary file");
        let mut log = fresh(&path).expect("the same again");
        orphan.line("of before").expect("it is open");
        log.line("of now").expect("it is open");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "of now\n");
        fs::remove_file(&path).expect("it is there");
    }
}
