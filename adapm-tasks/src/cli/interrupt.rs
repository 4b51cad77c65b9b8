//! Signals: the first Ctrl-C, SIGTERM or SIGHUP ends a run cleanly, the second ends the process at
//! once, SIGUSR1 prints how far it is. What comes together counts as once: job systems and
//! launchers that end a job signal each process, and each other.
//!
//! A run that is to end and in which nothing moves any more for the dead time is ended here
//! ([`Watched`]): one signal suffices whatever it waits for. While files are written nothing counts
//! as too long.
//!
//! Not here: how a run notices. The library polls [`Interrupt::stop`] between chunks.

use std::fs;
use std::io::{self, Write as _};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::files;
use adapm_transport::threads;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// The signals received so far. Clones share it.
#[derive(Clone)]
pub(crate) struct Interrupt {
    stop: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    shared: Arc<Shared>,
}

/// The state of the run, for SIGUSR1 and for the watch over its end.
#[derive(Default)]
struct Shared {
    /// Changes as long as something moves.
    life: AtomicU64,
    is_saving: AtomicBool,
    told: Mutex<Told>,
}

struct Told {
    /// The place of this process among several.
    place: Option<String>,
    /// The last report of what goes on.
    state: String,
    since: Instant,
    /// For how long a run that is to end may stand still.
    patience: Duration,
    /// This process, and not another one, reports the state while a run ends.
    tells_ending: bool,
}

impl Default for Told {
    fn default() -> Self {
        let state = "starting".to_owned();
        Self { place: None, state, since: Instant::now(), patience: PATIENCE, tells_ending: true }
    }
}

impl Interrupt {
    /// Returns one that no signal raises.
    pub(crate) fn new() -> Self {
        Self { stop: Arc::default(), signal: Arc::default(), shared: Arc::default() }
    }

    /// Handles signals from here on.
    pub(crate) fn install() -> io::Result<Self> {
        let interrupt = Self::new();
        // Not the flag that ends a run: another process may have raised that because of the same
        // Ctrl-C.
        let again = Arc::new(AtomicBool::new(false));
        let ends = ending_signals();
        for &signal in &ends {
            flag::register_conditional_shutdown(signal, exit_code(signal), Arc::clone(&again))?;
            flag::register_usize(
                signal,
                Arc::clone(&interrupt.signal),
                usize::try_from(signal).unwrap_or(0),
            )?;
            flag::register(signal, Arc::clone(&interrupt.stop))?;
        }
        let mut signals = Signals::new(ends.iter().chain(&[SIGUSR1]))?;
        let asked = interrupt.clone();
        let follow = move || {
            for signal in signals.forever() {
                if signal == SIGUSR1 {
                    asked.tell_state();
                } else if !again.load(Ordering::Relaxed) {
                    thread::sleep(SAME);
                    again.store(true, Ordering::Relaxed);
                }
            }
        };
        threads::spawn("signals", follow).map_err(io::Error::other)?;
        let watched = interrupt.clone();
        threads::spawn("ending", move || watched.watch()).map_err(io::Error::other)?;
        Ok(interrupt)
    }

    /// Does what `signal` would do the first time.
    pub(crate) fn raise(&self, signal: i32) {
        if signal == SIGUSR1 {
            return self.tell_state();
        }
        let number = usize::try_from(signal).unwrap_or(0);
        // The first signal is the reason, whatever comes after it.
        let _ = self.signal.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Sets which of several processes this is, and after which time a run that is to end counts as
    /// standing still.
    pub(crate) fn place(&self, node: usize, nodes: usize, dead_after: Duration) {
        let mut told = self.told();
        told.place = Some(format!("node n{node} of {nodes}"));
        (told.patience, told.tells_ending) = (dead_after, node == 0);
    }

    /// Records what goes on: something moves.
    pub(crate) fn moves(&self, state: impl FnOnce() -> String) {
        self.shared.life.fetch_add(1, Ordering::Relaxed);
        self.told().state = state();
    }

    /// Does what may not be cut short, such as writing a model, however long it takes.
    pub(crate) fn protect<T>(&self, state: impl FnOnce() -> String, work: impl FnOnce() -> T) -> T {
        self.moves(state);
        self.shared.is_saving.store(true, Ordering::Relaxed);
        let done = work();
        self.shared.is_saving.store(false, Ordering::Relaxed);
        self.shared.life.fetch_add(1, Ordering::Relaxed);
        done
    }

    /// Does what may be cut short at once, as nothing is lost.
    pub(crate) fn hurry<T>(&self, work: impl FnOnce() -> T) -> T {
        let patience = std::mem::replace(&mut self.told().patience, SAME);
        let done = work();
        self.told().patience = patience;
        done
    }

    /// Returns the flag that ends a run when raised.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Returns the same flag, for those who keep it.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns the exit code that the signal asks for, once there was one: 130 after Ctrl-C.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(0);
        (signal != 0).then(|| u8::try_from(exit_code(signal)).unwrap_or(1))
    }

    /// Prints what goes on, in one line.
    fn tell_state(&self) {
        let told = self.told();
        let place = told.place.as_deref().map_or_else(String::new, |place| format!("{place}, "));
        let ending = if self.stop.load(Ordering::Relaxed) { ", stopping" } else { "" };
        let seconds = told.since.elapsed().as_secs();
        let line =
            format!("state: {place}process {}, {seconds} s: {}{ending}", process::id(), told.state);
        drop(told);
        // A user who has sent the signal reads stderr; if it is closed, there is no such user.
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// Ends the process if it is to end and stands still.
    fn watch(&self) {
        let mut watched = Watched::new(Instant::now());
        loop {
            thread::sleep(LOOK);
            let (patience, tells) = {
                let told = self.told();
                (told.patience, told.tells_ending)
            };
            let life = self.shared.life.load(Ordering::Relaxed);
            let is_saving = self.shared.is_saving.load(Ordering::Relaxed);
            let stop = self.stop.load(Ordering::Relaxed);
            match watched.look(Instant::now(), stop, life, is_saving, patience) {
                Verdict::GoOn => {}
                Verdict::Tell if tells => {
                    drop(writeln!(io::stderr(), "stopping: {}", self.told().state))
                }
                Verdict::Tell => {}
                Verdict::End => {
                    files::discard();
                    let state = self.told().state.clone();
                    let seconds = patience.as_secs_f64();
                    let _ = writeln!(
                        io::stderr(),
                        "stopped: nothing moved for {seconds} s ({state}); nothing was saved"
                    );
                    process::exit(self.exit_code().map_or(exit_code(SIGTERM), i32::from));
                }
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.shared.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that is to end, as seen from outside.
struct Watched {
    life: u64,
    moved: Instant,
    told: Instant,
    is_stopping: bool,
}

/// The next action of the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    GoOn,
    /// Something moves: time to report it. A launcher takes it for a sign of life.
    Tell,
    End,
}

impl Watched {
    fn new(now: Instant) -> Self {
        Self { life: 0, moved: now, told: now, is_stopping: false }
    }

    fn look(
        &mut self,
        now: Instant,
        stop: bool,
        life: u64,
        is_saving: bool,
        patience: Duration,
    ) -> Verdict {
        if !stop {
            return Verdict::GoOn;
        }
        if !std::mem::replace(&mut self.is_stopping, true) {
            (self.moved, self.told, self.life) = (now, now, life);
        }
        let has_moved = is_saving || self.life != life;
        if has_moved {
            (self.moved, self.life) = (now, life);
        }
        if has_moved && now.saturating_duration_since(self.told) >= patience / 3 {
            self.told = now;
            return Verdict::Tell;
        }
        if now.saturating_duration_since(self.moved) >= patience {
            Verdict::End
        } else {
            Verdict::GoOn
        }
    }
}

/// Returns the signals that end a run. A SIGHUP that is ignored, as `nohup` asks for, stays so.
pub(crate) fn ending_signals() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut ends = vec![SIGINT, SIGTERM];
    if !ignores(&status, SIGHUP) {
        ends.push(SIGHUP);
    }
    ends
}

/// Returns true if a process of this status, as Linux tells it, ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Signals within this time have one reason.
const SAME: Duration = Duration::from_millis(500);
/// The time after which a run that is to end counts as standing still, unless a flag sets it.
const PATIENCE: Duration = DEAD_AFTER;
/// The time after which a node counts as lost, unless a flag sets it.
pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// Returns the exit code that shells report for a program that a signal ended.
fn exit_code(signal: i32) -> i32 {
    128 + signal
}

#[cfg(test)]
mod tests {
    use signal_hook::low_level::raise;

    use super::*;

    #[test]
    fn the_first_signal_does_not_end_a_run_that_another_process_has_stopped() {
        let interrupt = Interrupt::install().expect("signals can be handled");
        interrupt.stop().store(true, Ordering::Relaxed);
        // Handled by this thread before it goes on; it would end all tests here and now.
        raise(SIGTERM).expect("a signal to this very thread");
        raise(SIGTERM).expect("the same, passed on by a launcher");
        assert_eq!(interrupt.exit_code(), Some(143));
        interrupt.raise(1);
        assert_eq!(interrupt.exit_code(), Some(143), "the first signal is the reason");
        // Else the watch would end the process, and all tests in it, as nothing moves.
        interrupt.stop().store(false, Ordering::Relaxed);
    }

    #[test]
    fn a_run_that_is_to_end_is_ended_once_nothing_moves() {
        let (start, patience) = (Instant::now(), Duration::from_secs(9));
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watched = Watched::new(start);
        let mut look = |seconds, stop, life, is_saving| {
            watched.look(at(seconds), stop, life, is_saving, patience)
        };
        assert_eq!(look(100, false, 0, false), Verdict::GoOn, "it may stand still forever");
        assert_eq!(look(101, true, 5, false), Verdict::GoOn);
        assert_eq!(look(109, true, 5, false), Verdict::GoOn);
        assert_eq!(look(109, true, 6, false), Verdict::Tell);
        assert_eq!(look(111, true, 7, false), Verdict::GoOn, "not too often");
        assert_eq!(look(119, true, 7, false), Verdict::GoOn);
        assert_eq!(look(119, true, 7, true), Verdict::Tell, "a file may take as long as it takes");
        assert_eq!(look(200, true, 7, true), Verdict::Tell);
        assert_eq!(look(208, true, 7, false), Verdict::GoOn);
        assert_eq!(look(209, true, 7, false), Verdict::End);
    }

    #[test]
    fn a_signal_that_is_ignored_is_known() {
        assert!(ignores("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n", SIGHUP));
        assert!(!ignores("SigIgn:\t0000000000004002\n", SIGHUP));
        assert!(ignores("SigIgn:\t0000000000004002\n", SIGTERM));
        assert!(!ignores("", SIGHUP));
    }
}
