//! Programs that are started to be measured: what they print, and how they end.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::files;
use adapm_transport::threads;
use rustix::process::{Pid, Signal, kill_process};

use crate::cli::interrupt::Interrupt;
use crate::cli::launch::error::temporary;

/// Runs a program, which people know as `name`, and gives what it printed. If this process is to
/// end, `ending` notifies the other.
pub(super) fn run(
    command: &mut Command,
    name: &str,
    ending: Signal,
    interrupt: &Interrupt,
) -> Result<String, ChildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start = |error| ChildError::start(&program, error);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    let readers =
        listen(child.stdout.take()).and_then(|out| Ok([out, listen(child.stderr.take())?]));
    let readers = readers.inspect_err(|_| drop(child.kill())).map_err(start);
    let status = wait(&mut child, ending, interrupt).map_err(start)?;
    let readers = readers?;
    let [printed, said] = readers.map(|reader| reader.join().unwrap_or_default());
    if let Some(code) = interrupt.exit_code() {
        return Err(ChildError::Interrupted(code));
    }
    if !status.success() {
        let said = said
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("no word")
            .trim()
            .to_owned();
        return Err(ChildError::Failed { command: name.to_owned(), status, said });
    }
    Ok(printed)
}

/// Waits for a process; a signal that ends this one ends it, too.
fn wait(child: &mut Child, ending: Signal, interrupt: &Interrupt) -> io::Result<ExitStatus> {
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.exit_code().is_some() && !is_told {
            is_told = true;
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            // Ctrl-C went to it as well; if it has ended, this fails, which is fine.
            let _ = pid.map(|pid| kill_process(pid, ending));
        }
        thread::sleep(LOOK);
    }
}

/// All that comes through a pipe, in a thread.
fn listen<R: Read + Send + 'static>(pipe: Option<R>) -> io::Result<thread::JoinHandle<String>> {
    let listen = move || {
        let mut bytes = Vec::new();
        // Output that is cut off is no JSON, which is reported.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    threads::spawn("listen", listen).map_err(io::Error::other)
}

/// An error of a program that was started to be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    /// It could not be started.
    #[error("cannot start {program}: {}", files::reason(error))]
    Start { program: String, error: io::Error },
    /// There is no place for what it writes.
    #[error("cannot create a folder in {}: {}", temporary(), files::reason(.0))]
    Folder(io::Error),
    /// It failed; how, and the last line that it wrote to stderr.
    #[error("{command} ended with {status}: {}", said.trim_start_matches("error: "))]
    Failed { command: String, status: ExitStatus, said: String },
    /// It printed or wrote something else than metrics.
    #[error("{command} reported no metrics; run it by hand to see")]
    Output { command: String },
    /// A signal ended this process; the exit code it asks for.
    #[error("interrupted")]
    Interrupted(u8),
}

impl ChildError {
    pub(super) fn start(program: &str, error: io::Error) -> Self {
        Self::Start { program: program.to_owned(), error }
    }
}

/// Between looks at a process: nothing beside what it computes.
const LOOK: Duration = Duration::from_millis(20);
