//! The crate's primitives: from `std`, or from `loom` under `--cfg adapm_loom`, whose models then
//! run the shipped code.
//!
//! Not here: their users, see [`crate::arena`].

#![forbid(unsafe_code)]

pub(crate) use primitives::*;

/// Those of loom are beside the models, which weaken them.
#[cfg(adapm_loom)]
#[path = "../tests/loom/primitives.rs"]
pub mod primitives;

#[cfg(not(adapm_loom))]
mod primitives {
    pub(crate) use std::sync::atomic::{AtomicPtr, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};

    /// Swaps `new` in. Returns the previous value.
    #[inline(always)]
    pub(crate) fn replace(entry: &AtomicPtr<u8>, new: *mut u8, order: Ordering) -> *mut u8 {
        entry.swap(new, order)
    }

    /// Lets the holder of a latch finish: spins longer on each `attempt`, then yields the
    /// processor.
    pub(crate) fn pause(attempt: u32) {
        if attempt < SPINNING_ATTEMPTS {
            for _ in 0..1 << attempt {
                std::hint::spin_loop();
            }
        } else {
            std::thread::yield_now();
        }
    }

    /// 63 pauses, about as long as a transition of a slot may take; a slower holder has been
    /// descheduled.
    const SPINNING_ATTEMPTS: u32 = 6;

    /// A mark for memory that one thread at a time may use; takes no space and checks nothing
    /// outside of loom.
    #[derive(Debug)]
    pub(crate) struct Watch;

    impl Watch {
        pub(crate) fn new() -> Self {
            Self
        }

        /// Runs `f`, which uses the memory.
        #[inline(always)]
        pub(crate) fn exclusively<R>(&self, f: impl FnOnce() -> R) -> R {
            f()
        }
    }
}
