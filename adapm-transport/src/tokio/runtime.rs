//! Runtimes of the process, each with one thread: the one that carries, which a program may lend,
//! and that of ZeroMQ's sockets.
//!
//! Not here: what runs on it.

use core::future::pending;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Builder, Handle};

use crate::threads;

/// Lends a runtime to all endpoints that are opened from here on; call it before the first.
///
/// Without it, the first endpoint that needs a runtime starts one with a thread, which stays until
/// the process ends. What is lent must have I/O and time enabled and outlive the endpoints, and
/// somebody must drive it: a link on a runtime that stands still looks to its peer like a node that
/// has died. ZeroMQ's sockets have a thread of their own.
///
/// ```
/// let runtime = tokio::runtime::Runtime::new()?;
/// adapm_transport::tokio::lend(runtime.handle().clone())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If one was lent before; it stays.
pub fn lend(handle: Handle) -> Result<(), AlreadyLent> {
    let mut lent = lock(&LENT);
    if lent.is_some() {
        return Err(AlreadyLent);
    }
    *lent = Some(handle);
    Ok(())
}

/// A runtime was lent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a runtime was lent before: lend one, once, before the first endpoint is opened")]
pub struct AlreadyLent;

/// What was lent, else the runtime of the process.
pub(super) fn shared() -> io::Result<Handle> {
    let lent = lock(&LENT).clone();
    lent.map_or_else(|| started(&OWN, "adapm-link"), Ok)
}

/// The runtime of the process that is kept in `own`; the first call starts it, with one thread.
///
/// # Errors
/// If the system refuses a thread or what a runtime needs.
pub(crate) fn started(own: &Mutex<Option<Handle>>, thread: &str) -> io::Result<Handle> {
    let mut own = lock(own);
    if let Some(handle) = &*own {
        return Ok(handle.clone());
    }
    // One of many threads would start them itself, and panic if it cannot.
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    threads::spawn(thread, move || runtime.block_on(pending::<()>())).map_err(io::Error::other)?;
    Ok(own.insert(handle).clone())
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

static LENT: Mutex<Option<Handle>> = Mutex::new(None);
static OWN: Mutex<Option<Handle>> = Mutex::new(None);
