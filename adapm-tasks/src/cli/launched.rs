//! The connection of a process to the `adapm launch` or `adapm compare` that started it: without it
//! the process ends.
//!
//! Its stdin is a pipe from the launcher. Lines on it pass on signals (`signal 2`), which ssh does
//! not carry. Its end means that the launcher is gone, and with it the output of this process.

use std::io::{self, BufRead as _, Read as _};

use adapm_transport::threads;

use crate::cli::interrupt::Interrupt;

/// Returns true if `adapm launch` started this process.
pub(crate) fn is_launched() -> bool {
    std::env::var_os("ADAPM_LAUNCHED").is_some()
}

/// Returns the number of processes that `adapm launch` started; `None` if it did not start this.
pub(crate) fn nodes() -> Option<usize> {
    let nodes = std::env::var("ADAPM_NODES").ok().filter(|_| is_launched());
    nodes.and_then(|nodes| nodes.parse().ok())
}

/// Returns true if the launcher draws the progress of this process.
pub(crate) fn has_screen() -> bool {
    is_launched() && std::env::var_os(SCREEN).is_some()
}

/// Returns true if `adapm compare` started this process, or the launcher of it.
pub(crate) fn is_compared() -> bool {
    std::env::var_os(COMPARED).is_some()
}

/// Follows the launcher or the comparison, if there is one: raises the signals that it passes on,
/// and a hang-up when it is gone.
pub(crate) fn follow(interrupt: &Interrupt) -> io::Result<()> {
    if !is_launched() && !is_compared() {
        return Ok(());
    }
    let interrupt = interrupt.clone();
    let follow = move || {
        while let Some(line) = read_line() {
            match line.strip_prefix("signal ").and_then(|number| number.parse().ok()) {
                Some(signal) => interrupt.raise(signal),
                None => continue,
            }
        }
        interrupt.raise(HANGUP);
    };
    threads::spawn("launcher", follow).map(drop).map_err(io::Error::other)
}

/// Returns the next line of stdin, without its end; `None` at the end, and for a line that no
/// launcher writes.
pub(crate) fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let mut stdin = io::stdin().lock();
    let read = stdin.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
    let whole = read.is_ok() && line.pop() == Some(b'\n');
    whole.then(|| String::from_utf8(line).ok()).flatten()
}

/// The environment variable by which a launcher says that it draws the progress.
pub(crate) const SCREEN: &str = "ADAPM_SCREEN";

/// The environment variable by which a comparison says that it started a process.
pub(crate) const COMPARED: &str = "ADAPM_COMPARED";

/// SIGHUP, the signal to a process whose terminal is gone.
const HANGUP: i32 = 1;

/// Longest line in bytes: more than a token in hexadecimal.
const LINE_MAX: u64 = 4096;
