//! The runtime of all ZeroMQ sockets of the process: one thread of its own.
//!
//! The sockets of zeromq 0.7 keep their peers in a map whose locks some tasks await and others block for. With several
//! threads a lock can be handed to a task that waits for a thread while every thread blocks for that lock: when many
//! connections broke at once, the process stood still. On one thread no lock is ever contended, as none is kept across an
//! await while there is room in the socket's queue, which `credit` sees to. So a runtime that the program lends is not used.

use core::future::pending;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};

use crate::threads;

/// The runtime; the first call starts it, and it stays until the process ends.
///
/// # Errors
/// If the system refuses a thread or what a runtime needs.
pub(super) fn shared() -> io::Result<Handle> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*own {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    threads::spawn("adapm-zmq", move || runtime.block_on(pending::<()>())).map_err(io::Error::other)?;
    Ok(own.insert(handle).clone())
}

static OWN: Mutex<Option<Handle>> = Mutex::new(None);
