//! A process of a comparison: this program with other words, its files in a folder of its own. It
//! is ended once its time is over, or with the comparison.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::compare::settings::{Kind, Settings};
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
    pub(crate) interrupt: &'a Interrupt,
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
}

/// The end of a process.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What it printed.
    pub(crate) log: String,
    /// What it told people.
    said: String,
    /// Its time was over.
    pub(crate) is_over: bool,
    pub(crate) seconds: f64,
    pub(crate) peak_bytes: Option<u64>,
}

impl Ended {
    /// Returns why it failed: its last word.
    pub(crate) fn reason(&self) -> String {
        let last = self.said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no word");
        format!("{}: {}", self.status, last.trim().trim_start_matches("error: "))
    }
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
            .stdin(Stdio::null())
            .stdout(LineFile::begin(&log).map_err(refused)?.into_output())
            .stderr(LineFile::begin(&said).map_err(refused)?.into_output())
            .spawn()
            .map_err(refused)?;
        let (status, is_over, peak_bytes) = self.wait(child, common).map_err(refused)?;
        if common.interrupt.exit_code().is_some() {
            return Ok(None);
        }
        let read =
            |path: &Path| files::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
        let (log, said) = (read(&log).map_err(refused)?, read(&said).map_err(refused)?);
        let seconds = began.elapsed().as_secs_f64();
        Ok(Some(Ended { status, log, said, is_over, seconds, peak_bytes }))
    }

    /// Waits for the process; ends it once its time is over, or if this one is to end. Returns how
    /// it ended, whether its time was over, and the most memory that it had.
    fn wait(
        &self,
        mut child: Child,
        common: &Common<'_>,
    ) -> io::Result<(ExitStatus, bool, Option<u64>)> {
        let deadline = common.budget.map(|budget| Instant::now() + budget);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let is_one = self.kind.nodes == 1 || !common.as_processes;
        let (mut is_over, mut told, mut peak) = (false, None, None);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, is_over, peak.filter(|_| is_one)));
            }
            peak = peak_of(child.id()).or(peak);
            let is_stopped = common.interrupt.exit_code().is_some();
            is_over |= deadline.is_some_and(|deadline| Instant::now() >= deadline);
            match told {
                None if is_stopped || is_over => {
                    told = Some(Instant::now());
                    // Ctrl-C went to it as well; if it has ended, this fails, which is fine.
                    let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
                }
                Some(since) if since.elapsed() > GRACE => {
                    let _ = child.kill();
                }
                _ => {}
            }
            common.interrupt.moves(|| format!("running {}", self.title));
            thread::sleep(LOOK);
        }
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

/// Returns the most memory that a running process has had, where the system tells.
fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The settings that all runs have in common, and those of one.
pub(crate) const SETTINGS: &str = "settings.toml";
const LOG: &str = "log.jsonl";
const SAID: &str = "stderr.txt";
/// Between looks at a process.
const LOOK: Duration = Duration::from_millis(20);
/// A run that was asked to end has so long for it.
const GRACE: Duration = Duration::from_secs(60);
