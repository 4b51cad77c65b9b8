//! Ctrl-C: once ends the run cleanly, twice ends the process at once. What comes together counts as once: job systems and
//! launchers that end a job signal each process, and each other.
//!
//! Not here: how a run notices. The library polls [`Interrupt::stop`] between chunks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use adapm_transport::threads;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// What signals have asked for so far. Clones share it.
#[derive(Clone)]
pub(crate) struct Interrupt {
    stop: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Handles SIGINT and SIGTERM from here on.
    pub(crate) fn install() -> io::Result<Self> {
        let interrupt = Self { stop: Arc::default(), signal: Arc::default() };
        // Not the flag that ends a run: another process may have raised that because of the same Ctrl-C.
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, exit_code(signal), Arc::clone(&again))?;
            flag::register_usize(
                signal,
                Arc::clone(&interrupt.signal),
                usize::try_from(signal).unwrap_or(0),
            )?;
            flag::register(signal, Arc::clone(&interrupt.stop))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let follow = move || {
            if signals.forever().next().is_some() {
                thread::sleep(SAME);
                again.store(true, Ordering::Relaxed);
            }
        };
        threads::spawn("signals", follow).map_err(io::Error::other)?;
        Ok(interrupt)
    }

    /// Does what `signal` would do the first time.
    pub(crate) fn raise(&self, signal: i32) {
        let number = usize::try_from(signal).unwrap_or(0);
        // The first signal is the reason, whatever comes after it.
        let _ = self.signal.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The flag that ends a run when raised.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// The same flag, for those who keep it.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// The exit code that the signal asks for, once there was one: 130 after Ctrl-C.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(0);
        (signal != 0).then(|| u8::try_from(exit_code(signal)).unwrap_or(1))
    }
}

/// Signals within this time have one reason.
const SAME: Duration = Duration::from_millis(500);

/// What shells report for a program that a signal ended.
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
    }
}
