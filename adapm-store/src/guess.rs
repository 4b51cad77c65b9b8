//! Where main copies lie that were made in the order of their keys, told from the key alone.
//!
//! A directory entry has the address of a slot, so an access of one key of many waits for memory
//! twice, one after the other. Main copies of successive keys that are made at once, as those of a
//! node that is alone, lie side by side; as long as they stay there, one address tells where all of
//! a block of keys are, and entry and slot are fetched together. Homes of several nodes are spread
//! by hash: there is nothing to guess. A guess that is wrong costs a fetch: nobody reads what it
//! points to.
//!
//! Not here: what is done with it ([`crate::arena`]).

#![forbid(unsafe_code)]

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use adapm_core::Key;

/// An address for each block of keys: hints, on which nothing depends, so that models need not know
/// them.
pub(crate) struct Guesses {
    firsts: Box<[AtomicUsize]>,
    /// Keys of a block, as a power of two.
    shift: u32,
}

impl Guesses {
    /// Nothing is known yet of so many keys; of few, whose directory stays in a near cache, nothing
    /// ever is.
    pub(crate) fn new(keys: usize) -> Self {
        let block = keys.div_ceil(BLOCKS_MAX).next_power_of_two();
        let blocks = if keys < KEYS_MIN { 0 } else { keys.div_ceil(block) };
        let firsts = (0..blocks).map(|_| AtomicUsize::new(UNKNOWN)).collect();
        Self { firsts, shift: block.trailing_zeros() }
    }

    /// Where the slot of `key` is, if it lies where it was made.
    #[inline]
    pub(crate) fn of(&self, key: Key, slot_bytes: usize) -> Option<*const u8> {
        let first = self.firsts.get((key.0 >> self.shift) as usize)?.load(Ordering::Relaxed);
        let addr = first.wrapping_add(self.place(key) * slot_bytes);
        (first != UNKNOWN).then(|| ptr::without_provenance(addr))
    }

    /// Notes where `key`, one of successive keys whose slots are taken at once, is: the first of a
    /// block tells of the others.
    pub(crate) fn note(&self, key: Key, slot: *const u8) {
        if self.place(key) == 0
            && let Some(first) = self.firsts.get((key.0 >> self.shift) as usize)
        {
            first.store(slot.addr(), Ordering::Relaxed);
        }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.firsts)
    }

    #[inline]
    fn place(&self, key: Key) -> usize {
        key.0 as usize & ((1 << self.shift) - 1)
    }
}

/// No slot lies there.
const UNKNOWN: usize = 0;
/// 8 KiB of addresses, which stay in the nearest cache; of 32 chunks, 3 % of blocks are cut by the
/// end of one.
const BLOCKS_MAX: usize = 1 << 10;
/// Half a megabyte of directory.
const KEYS_MIN: usize = 1 << 16;
