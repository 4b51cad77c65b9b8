//! Where slots lie: chunks of them, straight from the allocator, and what a slot begins with.
//!
//! Not here: which slot is whose ([`crate::slab`]), what is in it ([`crate::arena`]).
#![expect(unsafe_code, reason = "a chunk is memory that others give away piece by piece")]

use core::ptr::{self, NonNull};
use std::alloc::{self, alloc, handle_alloc_error};

use adapm_core::Version;
use adapm_core::slot::Word;

use crate::entry::Entry;
use crate::sync::Watch;

/// What a slot begins with. It need not be aligned there, so that slots of an odd number of `f32` leave no gap.
#[derive(Clone, Copy, PartialEq)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) word: Word,
    pub(crate) version: Version,
}

/// The memory of some slots of one size, aligned to a cache line, or to a huge page if it fills one.
pub(crate) struct Chunk {
    base: NonNull<u8>,
    slot_bytes: usize,
    slots: usize,
}

// SAFETY: a chunk is an address and two numbers; it reads and writes its memory only when it comes and goes.
unsafe impl Send for Chunk {}

impl Chunk {
    pub(crate) fn new(slot_bytes: usize, slots: usize) -> Self {
        let layout = Self::layout(slot_bytes, slots);
        // SAFETY: a slot has a header and there is at least one, so the layout's size is not zero.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: just allocated.
        unsafe { prefer_huge_pages(base.as_ptr(), layout.size()) };
        assert!(
            Entry::can_hold(base.as_ptr().wrapping_add(layout.size())),
            "an address leaves room for the tags"
        );
        for slot in 0..slots {
            // SAFETY: the slot lies in the memory just allocated and is aligned for `Watch`, as `Slabs::new` has rounded
            // its size.
            unsafe {
                base.as_ptr().add(slot * slot_bytes + size_of::<Header>()).cast::<Watch>().write(Watch::new())
            };
        }
        Self { base, slot_bytes, slots }
    }

    /// The address of slot number `slot`.
    pub(crate) fn slot(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.slots, "a chunk has the slots it was made with");
        self.base.as_ptr().wrapping_add(slot * self.slot_bytes)
    }

    /// How many slots it has.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Where the chunk begins.
    pub(crate) fn addr(&self) -> usize {
        self.base.addr().get()
    }

    /// What it has of the allocator.
    pub(crate) fn bytes(&self) -> usize {
        Self::layout(self.slot_bytes, self.slots).size()
    }

    fn layout(slot_bytes: usize, slots: usize) -> alloc::Layout {
        let bytes = slot_bytes.checked_mul(slots).expect("a chunk fits into memory");
        // The last page can only be a huge one if all of it is there: worth a quarter of a byte a slot.
        let whole = bytes.next_multiple_of(HUGE_PAGE_BYTES);
        let bytes = if whole - bytes <= slots / 4 { whole } else { bytes };
        let align = if bytes < HUGE_PAGE_BYTES { LINE_BYTES } else { HUGE_PAGE_BYTES };
        alloc::Layout::from_size_align(bytes, align).expect("a chunk fits into memory")
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        for slot in 0..self.slots {
            // SAFETY: `new` has put a `Watch` into each slot.
            unsafe { ptr::drop_in_place(self.slot(slot).add(size_of::<Header>()).cast::<Watch>()) };
        }
        // SAFETY: allocated by `new` with the same layout. The slab drops a chunk when none of its slots is in use, or
        // together with the directory.
        unsafe { alloc::dealloc(self.base.as_ptr(), Self::layout(self.slot_bytes, self.slots)) };
    }
}

/// Asks for memory of `len` elements to be mapped in huge pages: random accesses of a large store else wait for the page table more
/// than for the value. A wish; systems that do not know it go without.
///
/// Only what nobody has touched is mapped so, and an allocator may have written into what it gives: the pages are given back first.
///
/// # Safety
/// The memory lies in one allocation, and nobody needs what is in it.
pub(crate) unsafe fn prefer_huge_pages<T>(start: *mut T, len: usize) {
    let bytes = len * size_of::<T>();
    if bytes < HUGE_PAGE_BYTES || cfg!(any(miri, not(target_os = "linux"))) {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};

        // Whole pages: the kernel rounds up what is not, and beyond the end somebody else may have memory.
        let page = rustix::param::page_size();
        let skipped = start.addr().next_multiple_of(page) - start.addr();
        let (first, whole) = (start.wrapping_byte_add(skipped), (bytes - skipped) / page * page);
        for advice in [Advice::LinuxDontNeed, Advice::LinuxHugepage] {
            // SAFETY: whole pages of an allocation whose content nobody needs; it stays accessible.
            let _ = unsafe { madvise(first.cast(), whole, advice) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = start;
}

/// The watch of a slot.
///
/// # Safety
/// `slot` lies in a chunk, which stays as long as the watch is used.
#[inline]
pub(crate) unsafe fn watch<'a>(slot: *mut u8) -> &'a Watch {
    // SAFETY: `Chunk::new` has put one there, aligned, and nobody writes there.
    unsafe { &*slot.add(size_of::<Header>()).cast::<Watch>() }
}

/// Word, version and, under loom, the watch.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>() + size_of::<Watch>();
pub(crate) const LINE_BYTES: usize = 64;
/// What the usual processors and systems call huge; where it is another size, chunks are merely aligned to it.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

#[cfg(all(test, not(any(miri, adapm_loom))))]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_memory_that_is_given_back_stays() {
        let mut bytes = vec![7_u8; 3 * HUGE_PAGE_BYTES];
        let (start, len) = (1_000, HUGE_PAGE_BYTES + 5_000);
        // SAFETY: the vector's own memory; its bytes are still bytes.
        unsafe { prefer_huge_pages(bytes.as_mut_ptr().wrapping_add(start), len) };
        assert!(bytes[..start].iter().chain(&bytes[start + len..]).all(|byte| *byte == 7));
        bytes.fill(1);
        assert!(bytes.iter().all(|byte| *byte == 1));
    }

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
