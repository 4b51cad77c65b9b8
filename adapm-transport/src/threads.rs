//! Threads that the system may refuse: they are started without a panic, and a refusal names the
//! limit.
//!
//! `std::thread::spawn` and `Scope::spawn` panic where no thread can be had, as on machines with a
//! tight process limit. So all crates start theirs here; Clippy refuses the others.

use std::path::{Path, PathBuf};
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::{io, panic};

/// Starts a thread.
///
/// ```
/// let thread = adapm_transport::threads::spawn("adder", || 1 + 1)?;
/// assert_eq!(thread.join().expect("no panic"), 2);
/// # Ok::<(), adapm_transport::threads::SpawnError>(())
/// ```
///
/// # Errors
/// If the system refuses it; `work` is dropped.
pub fn spawn<T, F>(name: impl Into<String>, work: F) -> Result<JoinHandle<T>, SpawnError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let name = name.into();
    Builder::new()
        .name(name.clone())
        .spawn(work)
        .map_err(|error| SpawnError::of_thread(&name, &error))
}

/// Starts a thread of a scope.
///
/// # Errors
/// If the system refuses it; `work` is dropped.
pub fn spawn_scoped<'scope, T, F>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    work: F,
) -> Result<ScopedJoinHandle<'scope, T>, SpawnError>
where
    T: Send + 'scope,
    F: FnOnce() -> T + Send + 'scope,
{
    let name = name.into();
    let thread = Builder::new().name(name.clone()).spawn_scoped(scope, work);
    thread.map_err(|error| SpawnError::of_thread(&name, &error))
}

/// Does `work` for each part, the last in the caller's thread and each other in a thread of its
/// own, and returns the results in order. Parts for which the system refuses a thread are done in
/// the caller's, too.
///
/// # Panics
/// With the panic of `work`.
pub fn map<P, R>(
    name: &str,
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> R + Sync,
) -> Vec<R>
where
    P: Copy + Send,
    R: Send,
{
    let (work, mut parts) = (&work, parts.into_iter().peekable());
    thread::scope(|scope| {
        let mut started = Vec::new();
        while let Some(part) = parts.next() {
            let thread =
                parts.peek().and_then(|_| spawn_scoped(scope, name, move || work(part)).ok());
            started.push(thread.ok_or(part));
        }
        // Its own part first, as the others work meanwhile.
        let own: Vec<_> = started.into_iter().map(|thread| thread.map_err(work)).collect();
        let done = own.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload)),
            Err(result) => result,
        });
        done.collect()
    })
}

/// A refused thread or process. Its text is one line: the subject, the system's words, the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start {what}: {reason}; {}", allowed(limits))]
pub struct SpawnError {
    what: String,
    /// The system's error.
    reason: String,
    limits: Vec<String>,
}

impl SpawnError {
    /// Creates the refusal of a thread, with the present limits.
    #[must_use]
    pub fn of_thread(name: &str, error: &io::Error) -> Self {
        Self { what: format!("thread \"{name}\""), reason: error.to_string(), limits: limits() }
    }

    /// Creates the refusal of a process, with the present limits; `None` if the error is about
    /// something else, such as a missing file.
    #[must_use]
    pub fn of_process(program: &str, error: &io::Error) -> Option<Self> {
        use io::ErrorKind::{OutOfMemory, WouldBlock};

        matches!(error.kind(), WouldBlock | OutOfMemory).then(|| Self {
            what: format!("process {program}"),
            reason: error.to_string(),
            limits: limits(),
        })
    }
}

fn allowed(limits: &[String]) -> String {
    if limits.is_empty() {
        return "this machine allows no more processes and threads: end some".to_owned();
    }
    format!("allowed are {}: raise that, or use fewer workers", limits.join(", "))
}

/// Returns the exhausted limit of processes and threads, else the possible ones: what has filled a
/// control group may have ended since.
fn limits() -> Vec<String> {
    let text = |max| format!("{max} processes and threads in its control group (pids.max)");
    if let Some(max) = of_control_group(Group::is_full) {
        return vec![text(max)];
    }
    let was_full = of_control_group(Group::was_full).map(text);
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    was_full.into_iter().chain(of_process(&limits)).collect()
}

/// Returns the address space that this process may still take, in bytes; `None` if it has no bound,
/// or none that can be read.
#[must_use]
pub fn address_space_left() -> Option<u64> {
    let max = bound(&std::fs::read_to_string("/proc/self/limits").ok()?, "Max address space")?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let taken: u64 = taken.split_whitespace().next()?.parse().ok()?;
    Some(max.saturating_sub(taken << 10))
}

/// Returns a bound of `/proc/self/limits`.
fn bound(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A control group, by its folder.
struct Group(PathBuf);

impl Group {
    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.0.join(name)).ok()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.read(name)?.trim().parse().ok()
    }

    fn max(&self) -> Option<u64> {
        self.number("pids.max")
    }

    fn is_full(&self) -> bool {
        self.number("pids.current").zip(self.max()).is_some_and(|(current, max)| current >= max)
    }

    /// Older systems count in the group of whoever was refused, whichever group was full.
    fn was_full(&self) -> bool {
        let events = self.read("pids.events.local").or_else(|| self.read("pids.events"));
        events.is_some_and(|events| has_refused(&events))
    }
}

/// Returns true if a group with these events has ever refused a process or thread.
fn has_refused(events: &str) -> bool {
    let times = events.lines().find_map(|line| line.strip_prefix("max "));
    times.is_some_and(|times| times.trim() != "0")
}

/// Returns the limit of the first control group of this process that has one and for which `is`
/// returns true.
fn of_control_group(is: impl Fn(&Group) -> bool) -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(folder_of).find_map(|(root, path)| {
        let folders = Path::new(&path).ancestors();
        let mut groups = folders.map(|folder| Group(Path::new(root).join(folder)));
        groups.find_map(|group| group.max().filter(|_| is(&group)))
    })
}

/// Returns the control group in a line of `/proc/self/cgroup` if it counts processes: in a
/// hierarchy of its own, or in the one of version 2.
fn folder_of(line: &str) -> Option<(&'static str, String)> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let root = match controllers {
        "" => "/sys/fs/cgroup",
        _ if controllers.split(',').any(|controller| controller == "pids") => "/sys/fs/cgroup/pids",
        _ => return None,
    };
    Some((root, path.trim_start_matches('/').to_owned()))
}

/// Limits of `/proc/self/limits` on the resources of a thread.
fn of_process(limits: &str) -> Vec<String> {
    let processes = bound(limits, "Max processes")
        .map(|max| format!("{max} processes and threads of this user (ulimit -u)"));
    let memory = bound(limits, "Max address space")
        .map(|max| format!("{} KiB of address space (ulimit -v)", max >> 10));
    processes.into_iter().chain(memory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_thread_reason_and_limits_in_one_line() {
        let error = io::Error::from_raw_os_error(11);
        let mut refusal = SpawnError::of_thread("adapm n0 w1", &error);
        refusal.limits = of_process(
            "Max processes             100    100    processes\nMax address space unlimited unlimited bytes\n",
        );
        let text = "cannot start thread \"adapm n0 w1\": Resource temporarily unavailable (os error 11); allowed are 100 processes \
                    and threads of this user (ulimit -u): raise that, or use fewer workers";
        assert_eq!(refusal.to_string(), text);
        refusal.limits.clear();
        assert!(
            refusal
                .to_string()
                .ends_with("; this machine allows no more processes and threads: end some")
        );
        assert_eq!(SpawnError::of_process("ssh", &io::Error::from(io::ErrorKind::NotFound)), None);
        assert!(SpawnError::of_process("ssh", &error).is_some());
    }

    #[test]
    fn limits_are_read_as_the_system_writes_them() {
        let both = "Max processes  7  9  processes\nMax address space  2048  4096  bytes\n";
        assert_eq!(of_process(both).len(), 2);
        assert_eq!(of_process(both)[1], "2 KiB of address space (ulimit -v)");
        assert_eq!(
            of_process("Max processes  unlimited  unlimited  processes\n"),
            Vec::<String>::new()
        );
        assert_eq!(folder_of("8:pids:/a/b"), Some(("/sys/fs/cgroup/pids", "a/b".to_owned())));
        assert_eq!(folder_of("0::/a"), Some(("/sys/fs/cgroup", "a".to_owned())));
        assert_eq!(folder_of("4:memory:/a"), None);
        assert!(has_refused("max 12\n") && !has_refused("max 0\n") && !has_refused(""));
    }

    #[test]
    fn parts_are_done_in_order_whatever_their_number() {
        for count in 0..5 {
            let squares = map("squares", 0..count, |part| part * part);
            assert_eq!(squares, (0..count).map(|part| part * part).collect::<Vec<_>>());
        }
        let payload =
            panic::catch_unwind(|| map("panics", 0..3, |part| assert!(part != 1, "planned")));
        assert_eq!(payload.expect_err("it goes on").downcast_ref::<&str>(), Some(&"planned"));
    }

    #[test]
    fn a_thread_that_is_started_works() {
        let mut value = 1;
        std::thread::scope(|scope| {
            spawn_scoped(scope, "adder", || value += 1)
                .expect("there is room for a thread")
                .join()
                .expect("no panic");
        });
        assert_eq!(value, 2);
    }
}
