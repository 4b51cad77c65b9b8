//! The directory of the dense store: latched entries, and the slots they point to.
//!
//! Each key has one 8-byte entry ([`crate::entry`]), which is never moved nor freed while the store
//! lives. Latching it and reading its content is one step, so only the holder of the latch has the
//! slot's address: releasing or moving a slot frees memory that no other thread can know. Nothing
//! has to be validated again, and there is no deferred reclamation.
//!
//! A slot is packed state, version, value `[value_len]` and perhaps delta `[value_len]`, one after
//! another. [`crate::slab`] chooses the chunk for a slot, [`crate::chunk`] has a chunk's memory.
//!
//! # Ordering
//! The latch orders the uses of a slot by one key; the slab's mutex those of a slot that goes from
//! one key to another.
#![expect(
    unsafe_code,
    reason = "slots are given to many threads from memory that a latch in another place guards"
)]

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::marker::PhantomData;
use core::ptr;
use core::slice;
use std::collections::BTreeMap;

use adapm_core::slot::{PackedState, Pushed, Slot};
use adapm_core::store::Look;
use adapm_core::{Key, Layout, Value, Version};

use crate::chunk::{HEADER_BYTES, Header, watch};
use crate::entry::{Content, Entry, Latched};
use crate::guess::Guesses;
use crate::pages::{Elements, LINE_BYTES};
use crate::slab::Slabs;
use crate::wide::widely;

/// Directory and slots of the keys of a dense layout.
pub(crate) struct Arena<V> {
    entries: Elements<Entry>,
    guesses: Guesses,
    /// The first of `extents`: most layouts have no other.
    first: Extent,
    extents: Box<[Extent]>,
    slabs: Box<[Slabs]>,
    elements: PhantomData<V>,
}

/// Keys up to `end`, exclusive, that no earlier extent has.
#[derive(Clone)]
struct Extent {
    end: u64,
    value_len: usize,
    /// Index into [`Arena::slabs`].
    slabs: usize,
}

impl<V: Value> Arena<V> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let keys = usize::try_from(layout.keys().end.0)
            .expect("a dense layout has fewer keys than memory has bytes");
        let mut slots = BTreeMap::<usize, usize>::new();
        for extent in layout.extents() {
            *slots.entry(extent.value_len).or_default() +=
                (extent.keys.end.0 - extent.keys.start.0) as usize;
        }
        let lens: Vec<usize> = slots.keys().copied().collect();
        let slabs: Vec<Slabs> =
            slots.into_iter().map(|(value_len, slots)| Slabs::new::<V>(value_len, slots)).collect();
        let extents: Vec<Extent> = layout
            .extents()
            .iter()
            .map(|extent| Extent {
                end: extent.keys.end.0,
                value_len: extent.value_len,
                slabs: lens.binary_search(&extent.value_len).expect("every length was counted"),
            })
            .collect();
        Self {
            entries: Elements::new(keys, Entry::new),
            guesses: Guesses::new(keys),
            first: extents.first().cloned().expect("a layout has an extent"),
            extents: extents.into(),
            slabs: slabs.into(),
            elements: PhantomData,
        }
    }

    /// Runs `f` on the slot of `key` under its latch.
    #[inline(always)]
    pub(crate) fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, V>) -> R) -> R {
        let (entry, extent) = self.find(key);
        let latched = entry.latch();
        match latched.content() {
            Content::Held { slot, has_delta } => {
                let (value_len, delta_len) =
                    (extent.value_len, if has_delta { extent.value_len } else { 0 });
                // SAFETY: an entry holds the address of a slot that `reserve` has taken from the
                // slab for this length and initialized whole, with a delta exactly if the entry
                // says so. The latch, held until `latched` is dropped, makes this the only use of
                // it; the slices do not overlap, are aligned as every slot is aligned for `V` and
                // header and value are multiples of that, and `f` cannot keep them beyond its call.
                unsafe {
                    watch(slot).exclusively(|| {
                        let mut header = Borrowed::new(slot);
                        let value = slot.add(HEADER_BYTES).cast::<V>();
                        let delta = slice::from_raw_parts_mut(value.add(value_len), delta_len);
                        let value = slice::from_raw_parts_mut(value, value_len);
                        let Header { packed, version } = &mut header.content;
                        f(Slot { packed, version, value, delta })
                    })
                }
            }
            Content::Absent(packed) => {
                let mut absent = Absent { packed, latched };
                f(Slot {
                    packed: &mut absent.packed,
                    version: &mut Version(0),
                    value: &mut [],
                    delta: &mut [],
                })
            }
        }
    }

    /// Adds `update` to the local copy of `key`.
    #[inline(always)]
    pub(crate) fn push(&self, key: Key, update: &[V]) -> Pushed {
        if update.len() < WIDE_LEN {
            self.with_slot(key, |mut slot| slot.push(update))
        } else {
            self.push_long(key, update)
        }
    }

    /// Adds a long update. Out of line, to keep the path of short updates short.
    #[inline(never)]
    fn push_long(&self, key: Key, update: &[V]) -> Pushed {
        self.with_slot(key, |mut slot| widely(|| slot.push(update)))
    }

    /// Gives `key` a value, and a delta exactly if `with_delta`.
    pub(crate) fn reserve(&self, key: Key, with_delta: bool) {
        let slabs = &self.slabs[self.find(key).1.slabs];
        self.reserve_in(key, with_delta, || slabs.slab(with_delta).take());
    }

    /// Gives each of `keys` a value and no delta, and runs `f` on its slot, in order.
    pub(crate) fn reserve_each(&self, keys: &[Key], mut f: impl FnMut(Key, Slot<'_, V>)) {
        let slabs_of = |key: &Key| self.find(*key).1.slabs;
        let content = |key: &Key| self.find(*key).0.latch().content();
        let lacks = |key: &&Key| !matches!(content(key), Content::Held { has_delta: false, .. });
        // Ascending, so that no key counts twice.
        for keys in keys.chunk_by(|a, b| a < b && slabs_of(a) == slabs_of(b)) {
            let lacking = keys.iter().filter(lacks).count();
            let mut room = self.slabs[slabs_of(&keys[0])].slab(false).take_many(lacking);
            let is_run = keys[keys.len() - 1].0 - keys[0].0 == keys.len() as u64 - 1;
            for key in keys {
                self.reserve_in(*key, false, || {
                    let slot = room.next().expect("one was taken for each that lacks one");
                    if is_run {
                        self.guesses.note(*key, slot);
                    }
                    slot
                });
                self.with_slot(*key, |slot| f(*key, slot));
            }
        }
    }

    /// Does what [`Self::reserve`] does, in a slot that `take` takes from the right slab.
    fn reserve_in(&self, key: Key, with_delta: bool, take: impl FnOnce() -> *mut u8) {
        let (entry, extent) = self.find(key);
        let mut latched = entry.latch();
        let before = latched.content();
        if matches!(before, Content::Held { has_delta, .. } if has_delta == with_delta) {
            return;
        }
        let slot = take();
        let value_bytes = extent.value_len * size_of::<V>();
        let delta_bytes = if with_delta { value_bytes } else { 0 };
        // SAFETY: the slab gives slots of header, value and, with a delta, as much again, and no
        // other slot overlaps. The slot that is kept belongs to this key, whose latch is held, and
        // has at least header and value. All-zero bytes are a valid `V`, which is plain old data.
        unsafe {
            watch(slot).exclusively(|| {
                let value = slot.add(HEADER_BYTES);
                match before {
                    Content::Held { slot: old, .. } => watch(old).exclusively(|| {
                        ptr::copy_nonoverlapping(old, slot, size_of::<Header>());
                        ptr::copy_nonoverlapping(old.add(HEADER_BYTES), value, value_bytes);
                    }),
                    Content::Absent(packed) => {
                        slot.cast::<Header>()
                            .write_unaligned(Header { packed, version: Version(0) });
                        value.write_bytes(0, value_bytes);
                    }
                }
                value.add(value_bytes).write_bytes(0, delta_bytes);
            });
        }
        latched.set(Content::Held { slot, has_delta: with_delta });
        if let Content::Held { slot: old, has_delta: had_delta } = before {
            self.slabs[extent.slabs].slab(had_delta).give_back(old);
        }
    }

    /// Frees value and delta of `key`; keeps its packed state.
    pub(crate) fn release(&self, key: Key) {
        let (entry, extent) = self.find(key);
        let mut latched = entry.latch();
        if let Content::Held { slot, has_delta } = latched.content() {
            // SAFETY: the entry of a held key has the address of an initialized slot, and its latch
            // is held.
            let header =
                unsafe { watch(slot).exclusively(|| slot.cast::<Header>().read_unaligned()) };
            latched.set(Content::Absent(header.packed));
            self.slabs[extent.slabs].slab(has_delta).give_back(slot);
        }
    }

    /// Prefetches the first lines of the slot of `key`; ignores unknown keys.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key) {
        if let Some(extent) = self.extent(key)
            && let Some(slot) = self.entries[key.0 as usize].slot_hint()
        {
            prefetch_slot(slot, HEADER_BYTES + extent.value_len * size_of::<V>());
        }
    }

    /// Prefetches the entry of `key` and its slot, as far as the slot's place follows from the key
    /// alone.
    #[inline]
    pub(crate) fn prefetch_guess(&self, key: Key) {
        if let Some((slot, bytes)) = self.guess(key) {
            prefetch_slot(slot, bytes);
            self.prefetch_entry(key);
        }
    }

    /// Returns the probable address of the slot of `key`, and the size of its header and value in
    /// bytes.
    #[inline]
    fn guess(&self, key: Key) -> Option<(*const u8, usize)> {
        let bytes = HEADER_BYTES + self.extent(key)?.value_len * size_of::<V>();
        self.guesses.of(key, bytes).map(|slot| (slot, bytes))
    }

    /// Prefetches the entry of `key`, which [`Self::prefetch`] reads: a latch taken meanwhile would
    /// wait for that read.
    #[inline]
    pub(crate) fn prefetch_entry(&self, key: Key) {
        if let Some(entry) = self.entries.get(key.0 as usize) {
            prefetch_lines::<0, 1>(ptr::from_ref(entry).cast());
        }
    }

    /// Returns the number of elements of the value of `key`, `None` for unknown keys.
    #[inline]
    pub(crate) fn value_len(&self, key: Key) -> Option<usize> {
        self.extent(key).map(|extent| extent.value_len)
    }

    /// Returns the number of keys.
    pub(crate) fn keys(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns the recent content of `key`.
    #[inline]
    pub(crate) fn look(&self, key: Key) -> Look {
        self.find(key).0.look()
    }

    /// Returns true if `key` most likely had a value a moment ago.
    #[inline]
    pub(crate) fn is_held(&self, key: Key) -> bool {
        self.entries[key.0 as usize].is_held()
    }

    /// Returns the bytes of directory and slots.
    pub(crate) fn memory(&self) -> usize {
        let slabs: usize = self.slabs.iter().map(Slabs::memory).sum();
        size_of_val(&*self.entries) + self.guesses.memory() + size_of_val(&*self.extents) + slabs
    }

    #[inline]
    fn find(&self, key: Key) -> (&Entry, &Extent) {
        match self.extent(key) {
            Some(extent) => (&self.entries[key.0 as usize], extent),
            None => no_such_key(key),
        }
    }

    #[inline]
    fn extent(&self, key: Key) -> Option<&Extent> {
        if key.0 < self.first.end {
            Some(&self.first)
        } else if self.extents.len() <= SCANNED_EXTENTS {
            self.extents.iter().find(|extent| key.0 < extent.end)
        } else {
            self.extents.get(self.extents.partition_point(|extent| extent.end <= key.0))
        }
    }
}

/// A latched absent key whose packed state may be changed; the change is kept even if the latcher
/// panics.
struct Absent<'a> {
    packed: PackedState,
    latched: Latched<'a>,
}

impl Drop for Absent<'_> {
    #[inline]
    fn drop(&mut self) {
        self.latched.set(Content::Absent(self.packed));
    }
}

/// The header of a latched slot, copied out for changes and written back if changed; a pull leaves
/// the slot's lines clean.
struct Borrowed {
    content: Header,
    before: Header,
    slot: *mut u8,
}

impl Borrowed {
    /// # Safety
    /// `slot` is an initialized slot that no other reference uses before this is dropped.
    #[inline]
    unsafe fn new(slot: *mut u8) -> Self {
        // SAFETY: the caller's promise.
        let content = unsafe { slot.cast::<Header>().read_unaligned() };
        Self { content, before: content, slot }
    }
}

impl Drop for Borrowed {
    #[inline]
    fn drop(&mut self) {
        if self.content != self.before {
            // SAFETY: `new` was promised that the slot is this one's until here.
            unsafe { self.slot.cast::<Header>().write_unaligned(self.content) };
        }
    }
}

#[cold]
fn no_such_key(key: Key) -> ! {
    panic!("{key} is no key of the layout")
}

/// Prefetches the first lines of a slot whose header and value have so many bytes.
#[inline]
fn prefetch_slot(slot: *const u8, bytes: usize) {
    // Fixed numbers of lines: a loop up to the slot's end costs more than a line too many.
    prefetch_lines::<0, 2>(slot);
    if bytes <= 2 * LINE_BYTES {
        prefetch_lines::<0, 1>(slot.wrapping_add(bytes - 1));
        return;
    }
    prefetch_lines::<2, 4>(slot);
    if bytes > 4 * LINE_BYTES {
        prefetch_lines::<4, 8>(slot);
    }
}

/// Prefetches lines; beyond 8 lines the hardware prefetcher has noticed the pattern.
#[inline]
fn prefetch_lines<const START: usize, const END: usize>(slot: *const u8) {
    #[cfg(target_arch = "x86_64")]
    for line in START..END {
        // SAFETY: a hint about an address, which need not be valid; SSE belongs to x86_64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slot.wrapping_add(line * LINE_BYTES).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

/// Least length of updates for wide instructions: for shorter ones the call costs more than they
/// save.
const WIDE_LEN: usize = if cfg!(miri) { 8 } else { 64 };

/// Number of extents up to which a scan beats a search.
const SCANNED_EXTENTS: usize = 8;

#[cfg(all(test, not(any(miri, adapm_loom))))]
mod tests {
    use super::*;

    const KEYS: u64 = 100_000;

    /// Creates main copies of those keys, in blocks. Returns how many of all keys are guessed
    /// rightly and wrongly.
    fn guessed(keys: impl Iterator<Item = u64>) -> (usize, usize) {
        let arena = Arena::<f32>::new(
            &Layout::dense(&[(KEYS / 2, 3), (KEYS / 2, 25)]).expect("a legal layout"),
        );
        let keys: Vec<Key> = keys.map(Key).collect();
        keys.chunks(30_000).for_each(|keys| arena.reserve_each(keys, |_, _| {}));
        let (mut right, mut wrong) = (0, 0);
        for key in (0..KEYS).map(Key) {
            let Some((guess, _)) = arena.guess(key) else { continue };
            match arena.find(key).0.latch().content() {
                Content::Held { slot, .. } if slot.cast_const().addr() == guess.addr() => {
                    right += 1
                }
                _ => wrong += 1,
            }
        }
        (right, wrong)
    }

    #[test]
    fn slots_of_successive_keys_are_guessed_but_for_the_ends_of_chunks() {
        let (right, wrong) = guessed(0..KEYS);
        assert!(right > 90_000 && right + wrong == 100_000, "{right} right, {wrong} wrong");
    }

    #[test]
    fn nothing_is_guessed_of_keys_here_and_there() {
        assert_eq!(guessed((0..KEYS).filter(|key| key % 3 > 0)), (0, 0));
    }
}
