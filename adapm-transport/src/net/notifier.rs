//! A notifier that ends the wait of an endpoint from other threads: for callers of a waker, and for
//! pipes with threads of their own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::{Registry, Token, Waker};

/// The notifier of one endpoint. Costs a system call only while the endpoint waits.
///
/// # Ordering
/// A notifying thread sets its flag and then checks whether the endpoint waits; the endpoint
/// announces its wait and then checks the flags. All four are sequentially consistent, so at least
/// one of both sees the other. Taking a flag acquires the earlier work of the notifying thread.
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

    /// Makes a `recv` return, on behalf of a waker.
    pub(crate) fn wake(&self) {
        self.raise(&self.woken);
    }

    /// Announces news of a pipe with a thread of its own, or a new pipe.
    pub(crate) fn notify(&self) {
        self.raise(&self.notified);
    }

    /// Returns true if a waker was called since this last returned true.
    pub(super) fn take_wake(&self) -> bool {
        self.woken.load(Ordering::SeqCst) && self.woken.swap(false, Ordering::SeqCst)
    }

    /// Returns true if a pipe had news since this last returned true.
    pub(super) fn take_notice(&self) -> bool {
        self.notified.load(Ordering::SeqCst) && self.notified.swap(false, Ordering::SeqCst)
    }

    /// Announces the wait of the endpoint. Returns false if there is something to look at first.
    pub(super) fn start_wait(&self) -> bool {
        self.waits.store(true, Ordering::SeqCst);
        !self.woken.load(Ordering::SeqCst) && !self.notified.load(Ordering::SeqCst)
    }

    /// Ends the wait of the endpoint.
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
