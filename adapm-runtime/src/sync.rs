//! Primitives of the crate: those of std, or loom's under `--cfg adapm_loom`, whose models then run the very code that is
//! shipped, and may plant a [`Mistake`] in it to show that they would find one.
//!
//! Not here: threads, which are started in [`crate::cluster`], [`crate::manager`] and [`crate::populate`] only and never inside a
//! model, and `Arc`, which is std's in both cases: loom's knows no unsized contents.

#[cfg(adapm_loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic::Ordering};
use std::sync::PoisonError;
#[cfg(not(adapm_loom))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

#[cfg(adapm_loom)]
pub use mistake::Mistake;
#[cfg(adapm_loom)]
pub(crate) use mistake::{AtomicBool, AtomicU64};

/// Locks `mutex`. A panic of another holder is its own affair: everything guarded in this crate is whole between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification of `condvar`; may return without one.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Whether a model has planted a mistake; `false` outside of loom.
macro_rules! planted {
    ($mistake:ident) => {{
        #[cfg(adapm_loom)]
        let planted = $crate::sync::Mistake::$mistake.is_planted();
        #[cfg(not(adapm_loom))]
        let planted = false;
        planted
    }};
}
pub(crate) use planted;

#[cfg(adapm_loom)]
mod mistake {
    use std::cell::Cell;

    use super::Ordering;

    /// Mistakes that a model must find.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mistake {
        /// Stores and swaps of flags and clocks do not release.
        StoresRelaxed,
        /// Loads and swaps of flags and clocks do not acquire.
        LoadsRelaxed,
        /// A channel thread looks for work before it says that it sleeps.
        LookBeforeDozing,
        /// A worker looks whether the channel thread sleeps before it leaves its work.
        LookBeforePosting,
        /// A taken mailbox still counts as urgent.
        StayUrgent,
        /// Whoever fills the mailbox wakes nobody.
        SleepWhileFull,
        /// Nobody is told that a full mailbox has room.
        ForgetRoom,
        /// A worker forgets that calls have finished when it no longer holds the list that it took them from.
        ForgetUnlocked,
        /// Whether a worker has ended is looked at before something of it is posted, not while.
        CheckBeforePosting,
    }

    impl Mistake {
        /// Runs `model` with the mistake, which it must find.
        ///
        /// # Panics
        /// As `model` does; the caller expects it.
        pub fn planted_in(self, model: impl FnOnce()) {
            let _planted = Planted::new(self);
            model();
        }

        pub(crate) fn is_planted(self) -> bool {
            PLANTED.get() == Some(self)
        }
    }

    /// The mistake is planted until this is dropped.
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
        /// Of one test: loom runs all threads of a model on the test's own.
        static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
    }

    /// `order` without what the planted mistake takes away.
    fn weakened(order: Ordering) -> Ordering {
        match order {
            Ordering::Release if Mistake::StoresRelaxed.is_planted() => Ordering::Relaxed,
            Ordering::Acquire if Mistake::LoadsRelaxed.is_planted() => Ordering::Relaxed,
            Ordering::AcqRel if Mistake::StoresRelaxed.is_planted() => Ordering::Acquire,
            Ordering::AcqRel if Mistake::LoadsRelaxed.is_planted() => Ordering::Release,
            _ => order,
        }
    }

    macro_rules! weakened {
        ($($name:ident: $value:ty),*) => {$(
            /// Loom's, weaker if that is planted.
            #[derive(Debug, Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    self.0.load(weakened(order))
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.0.store(value, weakened(order));
                }
            }
        )*};
    }

    weakened!(AtomicBool: bool, AtomicU64: u64);

    impl AtomicBool {
        pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
            self.0.swap(value, weakened(order))
        }
    }

    impl AtomicU64 {
        pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_add(value, weakened(order))
        }

        pub(crate) fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_or(value, weakened(order))
        }

        pub(crate) fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_and(value, weakened(order))
        }
    }
}
