//! Memory of slots: chunks, and the headers of slots.
//!
//! Not here: where the memory comes from ([`crate::pages`]), which slot belongs to which key
//! ([`crate::slab`]), the content of slots ([`crate::arena`]).
#![expect(unsafe_code, reason = "a chunk is memory that others give away piece by piece")]

use core::ptr;

use adapm_core::Version;
use adapm_core::slot::PackedState;

use crate::entry::Entry;
use crate::pages::{HUGE_PAGE_BYTES, Memory};
use crate::sync::Watch;

/// The header of a slot. It may be unaligned, so that slots of an odd number of `f32` leave no gap.
#[derive(Clone, Copy, PartialEq)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) packed: PackedState,
    pub(crate) version: Version,
}

/// The memory of some slots of one size.
pub(crate) struct Chunk {
    memory: Memory,
    slot_bytes: usize,
    slots: usize,
}

impl Chunk {
    pub(crate) fn new(slot_bytes: usize, slots: usize) -> Self {
        let bytes = slot_bytes.checked_mul(slots).expect("a chunk fits into memory");
        // Only a whole page can be a huge one. Filling up the last page is worth a quarter of a
        // byte per slot.
        let whole = bytes.next_multiple_of(HUGE_PAGE_BYTES);
        let memory = Memory::new(if whole - bytes <= slots / 4 { whole } else { bytes });
        let base = memory.base().as_ptr();
        assert!(
            Entry::can_hold(base.wrapping_add(memory.bytes())),
            "an address leaves room for the tags"
        );
        for slot in 0..slots {
            // SAFETY: the slot lies in the memory just made and is aligned for `Watch`, as
            // `Slabs::new` has rounded its size.
            unsafe {
                base.add(slot * slot_bytes + size_of::<Header>())
                    .cast::<Watch>()
                    .write(Watch::new())
            };
        }
        Self { memory, slot_bytes, slots }
    }

    /// Returns the address of slot number `slot`.
    pub(crate) fn slot(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.slots, "a chunk has the slots it was made with");
        self.memory.base().as_ptr().wrapping_add(slot * self.slot_bytes)
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the address of the chunk.
    pub(crate) fn addr(&self) -> usize {
        self.memory.base().addr().get()
    }

    /// Returns the size of the chunk in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}

impl Drop for Chunk {
    /// Frees the memory. The slab drops a chunk when none of its slots is in use, or together with
    /// the directory.
    fn drop(&mut self) {
        for slot in 0..self.slots {
            // SAFETY: `new` has put a `Watch` into each slot.
            unsafe { ptr::drop_in_place(self.slot(slot).add(size_of::<Header>()).cast::<Watch>()) };
        }
    }
}

/// Returns the watch of a slot: a mark with which loom finds concurrent use; empty outside of loom.
///
/// # Safety
/// `slot` lies in a chunk, which stays as long as the watch is used.
#[inline]
pub(crate) unsafe fn watch<'a>(slot: *mut u8) -> &'a Watch {
    // SAFETY: `Chunk::new` has put one there, aligned, and no code writes there.
    unsafe { &*slot.add(size_of::<Header>()).cast::<Watch>() }
}

/// Size of packed state, version and, under loom, the watch.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>() + size_of::<Watch>();

#[cfg(all(test, not(any(miri, adapm_loom))))]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_nearly_fills_huge_pages_fills_them() {
        let huge = HUGE_PAGE_BYTES;
        for (slot_bytes, bytes) in
            [(116, huge), (816, huge), (8_016, 261 * 8_016), (huge + huge / 2, huge + huge / 2)]
        {
            let chunk = Chunk::new(slot_bytes, (huge / slot_bytes).max(1));
            assert_eq!(chunk.bytes(), bytes, "slots of {slot_bytes} bytes");
        }
    }
}
