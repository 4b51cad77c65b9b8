//! The primitives of `src/sync.rs` under loom, and mistakes in their use, which a model plants to
//! show that it would find them. The crate includes this file under `--cfg adapm_loom`; it is not
//! in shipped builds.

pub(crate) use loom::sync::atomic::Ordering;
pub(crate) use loom::sync::{Mutex, MutexGuard};

/// Mistakes that a model plants to show that it would find them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The swap that latches an entry does not acquire.
    LatchRelaxed,
    /// The store that unlatches an entry does not release.
    UnlatchRelaxed,
    /// An entry's content is looked up before its latch is taken, not with it.
    LookUpEarly,
}

impl Mistake {
    /// Runs `model` with the mistake, which it must find.
    ///
    /// # Panics
    /// Like `model`; the caller expects it.
    pub fn planted_in(self, model: impl FnOnce()) {
        let _planted = Planted::new(self);
        model();
    }

    fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

/// A guard that plants the mistake until it is dropped.
struct Planted;

impl Planted {
    fn new(mistake: Mistake) -> Self {
        PLANTED.set(Some(mistake));
        Self
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

std::thread_local! {
    /// Per test: loom runs all threads of a model on the test's own.
    static PLANTED: core::cell::Cell<Option<Mistake>> = const { core::cell::Cell::new(None) };
}

/// Loom's primitive, weakened if that mistake is planted.
#[derive(Debug)]
pub(crate) struct AtomicPtr<T>(loom::sync::atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        Self(loom::sync::atomic::AtomicPtr::new(pointer))
    }

    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        self.0.load(order)
    }

    pub(crate) fn store(&self, new: *mut T, order: Ordering) {
        self.0.store(
            new,
            if Mistake::UnlatchRelaxed.is_planted() { Ordering::Relaxed } else { order },
        );
    }
}

/// Swaps `new` in. Returns the previous value; does not write if that was `new`.
///
/// # Departure
/// A swap of equal values would be a store, which loom may order after the store of a releasing
/// holder, forever: no processor does that, but the model would not end.
pub(crate) fn replace(entry: &AtomicPtr<u8>, new: *mut u8, order: Ordering) -> *mut u8 {
    let order = if Mistake::LatchRelaxed.is_planted() { Ordering::Relaxed } else { order };
    let early = Mistake::LookUpEarly.is_planted().then(|| entry.load(Ordering::Relaxed));
    let mut expected = std::ptr::null_mut();
    loop {
        match entry.0.compare_exchange(expected, new, order, Ordering::Relaxed) {
            Ok(seen) => return early.filter(|early| *early != new).unwrap_or(seen),
            Err(seen) if seen == new => return seen,
            Err(seen) => expected = seen,
        }
    }
}

/// Lets another thread of the model run.
pub(crate) fn pause(_attempt: u32) {
    loom::thread::yield_now();
}

/// A mark for memory that one thread at a time may use: loom fails the model if two do, or if the
/// second does not see the first one's writes.
#[derive(Debug)]
pub(crate) struct Watch(loom::cell::UnsafeCell<()>);

impl Watch {
    pub(crate) fn new() -> Self {
        Self(loom::cell::UnsafeCell::new(()))
    }

    /// Runs `f`, which uses the memory.
    pub(crate) fn exclusively<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.with_mut(|_| f())
    }
}
