//! Runtimes of the process, each with one thread: that of tokio links, which a program may lend,
//! and that of ZeroMQ's sockets.
//!
//! Not here: the tasks that run on them.

use core::future::pending;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Builder, Handle};

use crate::threads;

/// Lends a runtime to all endpoints that are opened from here on; call it before the first.
///
/// Without it, the first endpoint that needs a runtime starts one with a thread, which stays until
/// the process ends. A lent runtime must have I/O and time enabled, outlive the endpoints, and be
/// driven all the time: a link on a stalled runtime looks to its peer like a dead node. ZeroMQ's
/// sockets have a thread of their own.
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

/// The error of lending a second runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a runtime was lent before: lend one, once, before the first endpoint is opened")]
pub struct AlreadyLent;

/// Returns the lent runtime, else the runtime of the process.
pub(super) fn shared() -> io::Result<Handle> {
    let lent = lock(&LENT).clone();
    lent.map_or_else(|| started(&OWN, "adapm-link"), Ok)
}

/// Returns the runtime of the process in `own`; the first call starts it, with one thread.
///
/// # Errors
/// If the system refuses a thread or another resource of a runtime.
pub(crate) fn started(own: &Mutex<Option<Handle>>, thread: &str) -> io::Result<Handle> {
    let mut own = lock(own);
    if let Some(handle) = &*own {
        return Ok(handle.clone());
    }
    // A runtime of many threads would start them itself, and panic if it cannot.
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
