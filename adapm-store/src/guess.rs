//! Guesses of the place of main copies that were made in key order, from the key alone.
//!
//! A directory entry has the address of a slot, so a random access waits for memory twice in a row.
//! Main copies of successive keys that are made at once, as on a single node, are adjacent; as long
//! as they stay there, one address gives the places of a whole block of keys, and entry and slot
//! are fetched together. Homes of several nodes are spread by hash: there is nothing to guess. A
//! wrong guess costs a fetch: its target is never read.
//!
//! Not here: the use of guesses ([`crate::arena`]).

#![forbid(unsafe_code)]

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use adapm_core::Key;

/// An address for each block of keys: hints, on which nothing depends, so that loom models need not
/// know them.
pub(crate) struct Guesses {
    firsts: Box<[AtomicUsize]>,
    /// Number of keys of a block, as a power of two.
    shift: u32,
}

impl Guesses {
    /// Creates empty guesses for this many keys; for few keys, whose directory stays in a near
    /// cache, none are ever made.
    pub(crate) fn new(keys: usize) -> Self {
        let block = keys.div_ceil(BLOCKS_MAX).next_power_of_two();
        let blocks = if keys < KEYS_MIN { 0 } else { keys.div_ceil(block) };
        let firsts = (0..blocks).map(|_| AtomicUsize::new(UNKNOWN)).collect();
        Self { firsts, shift: block.trailing_zeros() }
    }

    /// Returns the address of the slot of `key`, if it is where it was made.
    #[inline]
    pub(crate) fn of(&self, key: Key, slot_bytes: usize) -> Option<*const u8> {
        let first = self.firsts.get((key.0 >> self.shift) as usize)?.load(Ordering::Relaxed);
        let addr = first.wrapping_add(self.place(key) * slot_bytes);
        (first != UNKNOWN).then(|| ptr::without_provenance(addr))
    }

    /// Records the address of `key`, one of successive keys whose slots are taken at once: the
    /// first of a block determines the others.
    pub(crate) fn note(&self, key: Key, slot: *const u8) {
        if self.place(key) == 0
            && let Some(first) = self.firsts.get((key.0 >> self.shift) as usize)
        {
            first.store(slot.addr(), Ordering::Relaxed);
        }
    }

    /// Returns the bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.firsts)
    }

    #[inline]
    fn place(&self, key: Key) -> usize {
        key.0 as usize & ((1 << self.shift) - 1)
    }
}

/// No slot is at this address.
const UNKNOWN: usize = 0;
/// 8 KiB of addresses, which stay in the nearest cache; of 32 chunks, 3 % of blocks are cut by the
/// end of one.
const BLOCKS_MAX: usize = 1 << 10;
/// Half a megabyte of directory.
const KEYS_MIN: usize = 1 << 16;
