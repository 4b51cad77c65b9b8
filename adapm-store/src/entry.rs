//! One entry of the directory: the content of a key, and its latch, in 8 bytes.
//!
//! | low three bits | upper 61 bits | key |
//! | --- | --- | --- |
//! | `000` | its packed state | absent |
//! | `010`, `110` | address of its slot, `110`: which has a delta | held |
//! | `001` | 0 | latched; the latcher knows the content |
//!
//! # Ordering
//! The swap that latches acquires, the store that unlatches releases: the next latcher sees
//! everything written before. Hints read relaxed: nothing may depend on them.
//!
//! Not here: the slots ([`crate::arena`]).

#![forbid(unsafe_code)]

use core::ptr;

use adapm_core::slot::PackedState;
use adapm_core::store::Look;

use crate::sync::{AtomicPtr, Ordering, pause, replace};

/// The content of one key, behind its latch. A pointer, so that a slot's address keeps its
/// provenance.
pub(crate) struct Entry(AtomicPtr<u8>);

/// The content of an entry.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// No value; the packed state is here.
    Absent(PackedState),
    /// A slot with the packed state, the version, the value and perhaps a delta.
    Held { slot: *mut u8, has_delta: bool },
}

/// An entry whose latch is held, until this is dropped.
pub(crate) struct Latched<'a> {
    entry: &'a Entry,
    /// The content of the entry when the latch is released.
    now: *mut u8,
}

impl Entry {
    /// Creates the entry of an absent key without any record.
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(Content::Absent(PackedState::EMPTY).encode()))
    }

    /// Returns true if the address leaves room for the tags.
    pub(crate) fn can_hold(slot: *mut u8) -> bool {
        slot.addr() >> (usize::BITS - TAG_BITS) == 0
    }

    /// Waits for the latch and takes it.
    #[inline]
    pub(crate) fn latch(&self) -> Latched<'_> {
        let mut now = replace(&self.0, ptr::without_provenance_mut(LATCHED), Ordering::Acquire);
        if now.addr() == LATCHED {
            now = self.await_latch();
        }
        Latched { entry: self, now }
    }

    /// Returns the slot's recent address, for prefetching only: it may have been freed since.
    #[inline]
    pub(crate) fn slot_hint(&self) -> Option<*const u8> {
        let seen = self.0.load(Ordering::Relaxed);
        (seen.addr() & HELD != 0).then(|| seen.map_addr(|addr| addr >> TAG_BITS).cast_const())
    }

    /// Returns the recent content of the key.
    #[inline]
    pub(crate) fn look(&self) -> Look {
        let seen = self.0.load(Ordering::Relaxed).addr();
        if seen & HELD != 0 {
            Look::Held { with_delta: seen & DELTA != 0 }
        } else if seen == LATCHED {
            Look::Unknown
        } else {
            Look::Absent(PackedState::from_bits((seen >> TAG_BITS) as u64))
        }
    }

    /// Returns true if the key had a value a moment ago, without a branch. Returns true for a
    /// latched key: if that is wrong, the caller finds out when it takes the latch, and chooses
    /// another key.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        let seen = self.0.load(Ordering::Relaxed).addr();
        seen & (HELD | LATCHED) != 0
    }

    #[cold]
    fn await_latch(&self) -> *mut u8 {
        let mut attempt = 0;
        loop {
            pause(attempt);
            attempt = attempt.saturating_add(1);
            let seen = replace(&self.0, ptr::without_provenance_mut(LATCHED), Ordering::Acquire);
            if seen.addr() != LATCHED {
                return seen;
            }
        }
    }
}

impl Latched<'_> {
    /// Replaces the content.
    #[inline]
    pub(crate) fn set(&mut self, content: Content) {
        self.now = content.encode();
    }

    /// Returns the content.
    #[inline]
    pub(crate) fn content(&self) -> Content {
        let addr = self.now.addr();
        if addr & HELD != 0 {
            let slot = self.now.map_addr(|addr| addr >> TAG_BITS);
            Content::Held { slot, has_delta: addr & DELTA != 0 }
        } else {
            Content::Absent(PackedState::from_bits((addr >> TAG_BITS) as u64))
        }
    }
}

impl Drop for Latched<'_> {
    #[inline]
    fn drop(&mut self) {
        self.entry.0.store(self.now, Ordering::Release);
    }
}

impl Content {
    #[inline]
    fn encode(self) -> *mut u8 {
        match self {
            Self::Absent(packed) => {
                ptr::without_provenance_mut((packed.bits() as usize) << TAG_BITS)
            }
            Self::Held { slot, has_delta } => slot
                .map_addr(|addr| (addr << TAG_BITS) | if has_delta { HELD | DELTA } else { HELD }),
        }
    }
}

const _: () = assert!(usize::BITS == 64, "words of 61 bits are kept in pointers");

const TAG_BITS: u32 = 3;
const LATCHED: usize = 0b001;
const HELD: usize = 0b010;
const DELTA: usize = 0b100;
