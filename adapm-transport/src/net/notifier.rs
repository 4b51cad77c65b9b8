//! Ends the wait of an endpoint from other threads: on behalf of people who call a waker, and of
//! pipes with threads of their own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::{Registry, Token, Waker};

/// Notifies at one endpoint. Costs a system call only while the endpoint waits.
///
/// # Ordering
/// A ringer sets its flag and then looks whether the endpoint waits; the endpoint says that it
/// waits and then looks at the flags. All four are sequentially consistent, so at least one of both
/// sees the other. Taking a flag acquires what the ringer's thread did before.
#[derive(Debug)]
pub(crate) struct Notifier {
    waker: Waker,
    waits: AtomicBool,
    woken: AtomicBool,
    notified: AtomicBool,
}

impl Notifier {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let waker = Waker::new(registry, token)?;
        let flag = || AtomicBool::new(false);
        Ok(Self { waker, waits: flag(), woken: flag(), notified: flag() })
    }

    /// A waker was called: a `recv` is to return.
    pub(crate) fn wake(&self) {
        self.raise(&self.woken);
    }

    /// A pipe with a thread of its own has news, a new one included.
    pub(crate) fn notify(&self) {
        self.raise(&self.notified);
    }

    /// Whether a waker was called since this last returned true.
    pub(super) fn take_wake(&self) -> bool {
        self.woken.load(Ordering::SeqCst) && self.woken.swap(false, Ordering::SeqCst)
    }

    /// Whether a pipe had news since this last returned true.
    pub(super) fn take_notice(&self) -> bool {
        self.notified.load(Ordering::SeqCst) && self.notified.swap(false, Ordering::SeqCst)
    }

    /// The endpoint is about to wait; false: there is something to look at first.
    pub(super) fn start_wait(&self) -> bool {
        self.waits.store(true, Ordering::SeqCst);
        !self.woken.load(Ordering::SeqCst) && !self.notified.load(Ordering::SeqCst)
    }

    /// The endpoint does not wait.
    pub(super) fn end_wait(&self) {
        self.waits.store(false, Ordering::SeqCst);
    }

    fn raise(&self, flag: &AtomicBool) {
        if !flag.swap(true, Ordering::SeqCst) && self.waits.load(Ordering::SeqCst) {
            // Fails only if the system is out of memory; the wait then ends at the next heartbeat.
            let _ = self.waker.wake();
        }
    }
}
