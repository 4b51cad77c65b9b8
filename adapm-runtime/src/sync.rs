//! Primitives of the crate: those of std, or loom's under `--cfg adapm_loom`, whose models then run
//! the shipped code.
//!
//! Not here: threads, which are started in [`crate::cluster`], [`crate::node_handle`] and
//! [`crate::populate`] only and never inside a model, and `Arc`, which is std's in both cases, as
//! loom's does not support unsized contents.

#[cfg(adapm_loom)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::sync::PoisonError;
#[cfg(not(adapm_loom))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::Duration;

/// Locks `mutex`. Ignores poisoning: everything guarded in this crate is consistent between
/// statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification of `condvar`; may return without one.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Like [`wait`], for `limit` at most. Models have no time: there it waits for a notification.
pub(crate) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0
}
