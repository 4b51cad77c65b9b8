//! Memory by the piece: small pieces from the allocator, large ones straight from the system, in
//! huge pages.
//!
//! Otherwise random accesses of a large store wait for the page table more than for the value. An
//! allocator will not do: it surrounds pieces aligned to huge pages by records of its own, which
//! take another huge page per piece (mimalloc: 16 MiB for 14).
//!
//! Not here: the content.
#![expect(unsafe_code, reason = "memory that others divide")]

use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::slice;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// A piece of memory, aligned to a cache line, or to a huge page if it fills one. Its initial
/// content is arbitrary.
pub(crate) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address and a size; nothing here reads or writes what is there.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates at least `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        // The system gives whole pages in any case.
        let whole = if is_mapped(bytes) {
            bytes.next_multiple_of(system::page_bytes())
        } else {
            bytes.max(1)
        };
        let layout = layout(whole);
        let base = if is_mapped(whole) {
            system::map(layout)
        } else {
            // SAFETY: its size is not zero.
            NonNull::new(unsafe { alloc(layout) })
        };
        Self { base: base.unwrap_or_else(|| handle_alloc_error(layout)), bytes: whole }
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if is_mapped(self.bytes) {
            system::unmap(self.base, self.bytes);
        } else {
            // SAFETY: allocated by `new` with this layout, and the former user of this piece has
            // given it back.
            unsafe { dealloc(self.base.as_ptr(), layout(self.bytes)) };
        }
    }
}

/// Elements in a piece of memory.
pub(crate) struct Elements<T> {
    memory: Memory,
    len: usize,
    elements: PhantomData<T>,
}

impl<T> Elements<T> {
    /// Creates `len` elements by calls of `make`.
    pub(crate) fn new(len: usize, make: impl Fn() -> T) -> Self {
        const { assert!(align_of::<T>() <= LINE_BYTES, "a piece is aligned to a line") };
        let memory =
            Memory::new(len.checked_mul(size_of::<T>()).expect("elements fit into memory"));
        // Counted up, so that finished elements are dropped if `make` panics.
        let mut elements = Self { memory, len: 0, elements: PhantomData };
        while elements.len < len {
            // SAFETY: there is room for `len` elements, and memory is aligned for them.
            unsafe { elements.start().add(elements.len).write(make()) };
            elements.len += 1;
        }
        elements
    }

    #[inline]
    fn start(&self) -> *mut T {
        self.memory.base.as_ptr().cast()
    }
}

impl<T> Deref for Elements<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` has made so many, and only `drop` has more than shared access.
        unsafe { slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T> Drop for Elements<T> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and no reference to them is left.
        unsafe { ptr::drop_in_place(ptr::slice_from_raw_parts_mut(self.start(), self.len)) };
    }
}

/// Returns true if a piece of this size comes straight from the system.
fn is_mapped(bytes: usize) -> bool {
    system::MAPS && bytes >= HUGE_PAGE_BYTES
}

fn layout(bytes: usize) -> Layout {
    let align = if bytes < HUGE_PAGE_BYTES { LINE_BYTES } else { HUGE_PAGE_BYTES };
    Layout::from_size_align(bytes, align).expect("a piece fits into memory")
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use core::ptr::{self, NonNull};
    use std::alloc::Layout;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    pub(super) const MAPS: bool = true;

    pub(super) fn page_bytes() -> usize {
        rustix::param::page_size()
    }

    /// Maps whole pages; huge ones are only requested: systems without them ignore that.
    pub(super) fn map(layout: Layout) -> Option<NonNull<u8>> {
        // The system aligns to its own pages: maps more than needed, and keeps an aligned part.
        let all = layout.size().checked_add(layout.align())?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: wherever nothing is mapped.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), all, access, MapFlags::PRIVATE) }.ok()?;
        let start = NonNull::new(start.cast::<u8>())?;
        let before = start.align_offset(layout.align());
        // SAFETY: both lie within what was mapped.
        let (base, end) = unsafe { (start.add(before), start.add(before + layout.size())) };
        unmap(start, before);
        unmap(end, all - before - layout.size());
        // SAFETY: pages that were just mapped, which stay as they are.
        let _ = unsafe { madvise(base.as_ptr().cast(), layout.size(), Advice::LinuxHugepage) };
        Some(base)
    }

    /// Returns unused whole pages of [`map`] to the system.
    pub(super) fn unmap(start: NonNull<u8>, bytes: usize) {
        if bytes > 0 {
            // SAFETY: pages of this module, and all who knew of them are gone.
            let given_back = unsafe { munmap(start.as_ptr().cast(), bytes) };
            debug_assert!(given_back.is_ok(), "what was mapped can be given back");
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use core::ptr::NonNull;
    use std::alloc::Layout;

    pub(super) const MAPS: bool = false;

    pub(super) fn page_bytes() -> usize {
        1
    }

    pub(super) fn map(_: Layout) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn unmap(_: NonNull<u8>, _: usize) {}
}

pub(crate) const LINE_BYTES: usize = 64;
/// The usual size of huge pages; where it differs, pieces are merely aligned to it.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

#[cfg(all(test, not(any(miri, adapm_loom))))]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_and_can_be_written_to_their_ends() {
        for bytes in [1, 100, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES + 5_000] {
            let (memory, other) = (Memory::new(bytes), Memory::new(bytes));
            let align = if bytes < HUGE_PAGE_BYTES { LINE_BYTES } else { HUGE_PAGE_BYTES };
            assert!(
                memory.bytes() >= bytes && memory.base().addr().get() % align == 0,
                "{bytes} bytes"
            );
            for (piece, byte) in [(&memory, 7), (&other, 1)] {
                // SAFETY: all of a piece is one's own.
                unsafe { piece.base().write_bytes(byte, piece.bytes()) };
            }
            drop(other);
            // SAFETY: written before.
            let bytes = unsafe { slice::from_raw_parts(memory.base().as_ptr(), memory.bytes()) };
            assert!(bytes.iter().all(|byte| *byte == 7), "who goes takes nothing of others along");
        }
    }

    #[test]
    fn elements_are_made_and_dropped_once() {
        let count = std::rc::Rc::new(());
        for len in [0, 3, HUGE_PAGE_BYTES / 8 + 1] {
            let elements = Elements::new(len, || std::rc::Rc::clone(&count));
            assert_eq!((elements.len(), std::rc::Rc::strong_count(&count)), (len, len + 1));
            drop(elements);
            assert_eq!(std::rc::Rc::strong_count(&count), 1);
        }
    }
}
