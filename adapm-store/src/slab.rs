//! Chunks with room for slots of one size, and the sizes of slots: chunks are made when needed,
//! never move, and are freed when empty.
//!
//! The lowest free slot is taken, so that a store that has shrunk is compacted and its last chunks
//! empty. Not here: the content of slots ([`crate::arena`]).

#![forbid(unsafe_code)]

use std::sync::PoisonError;
use std::vec;

use adapm_core::Value;

use crate::chunk::{Chunk, HEADER_BYTES};
use crate::pages::HUGE_PAGE_BYTES;
use crate::sync::{Mutex, MutexGuard, Watch};

/// The slots for values of one length.
pub(crate) struct Slabs {
    main: Slab,
    replica: Slab,
}

/// Slots of one size.
pub(crate) struct Slab {
    slot_bytes: usize,
    slots_max: usize,
    chunk_slots: usize,
    chunks: Mutex<Chunks>,
}

/// The chunks in the order of their addresses.
#[derive(Default)]
struct Chunks {
    list: Vec<Occupied>,
    /// Chunks before this one are full.
    roomy: usize,
    /// Words of that chunk's bits before this one have no free slot.
    low: usize,
    /// Number of slots of all chunks.
    slots: usize,
    /// Number of slots in use.
    used: usize,
    /// Number of chunks with no slot in use.
    empty: usize,
}

/// A chunk with a bit map of its used slots.
struct Occupied {
    chunk: Chunk,
    used: usize,
    /// One bit per slot, set while it is in use.
    bits: Box<[u64]>,
}

impl Slabs {
    /// Creates slabs for at most `slots` values of `value_len` elements.
    pub(crate) fn new<V: Value>(value_len: usize, slots: usize) -> Self {
        let align = align_of::<V>().max(align_of::<Watch>());
        let main = (HEADER_BYTES + value_len * size_of::<V>()).next_multiple_of(align);
        let replica = (HEADER_BYTES + 2 * value_len * size_of::<V>())
            .next_multiple_of(REPLICA_ALIGN.max(align));
        Self { main: Slab::new(main, slots), replica: Slab::new(replica, slots) }
    }

    pub(crate) fn slab(&self, with_delta: bool) -> &Slab {
        if with_delta { &self.replica } else { &self.main }
    }

    /// Returns the bytes of all chunks and their records.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.main.memory() + self.replica.memory()
    }
}

impl Slab {
    /// Creates a slab without chunks, for at most `slots_max` slots of `slot_bytes` in use at a
    /// time.
    ///
    /// A chunk is a 32nd of what all slots need, within 64 KiB and 64 MiB (one slot if that is
    /// larger): few chunks, which still empty when copies leave; from 16 MiB on, each of whole huge
    /// pages. All chunks together have at most `slots_max` slots, so a full store wastes none.
    pub(crate) fn new(slot_bytes: usize, slots_max: usize) -> Self {
        let all = slot_bytes.saturating_mul(slots_max);
        let bytes = match (all / 32).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX) {
            bytes if all < 8 * HUGE_PAGE_BYTES => bytes,
            bytes => bytes.next_multiple_of(HUGE_PAGE_BYTES),
        };
        let chunk_slots = (bytes / slot_bytes).clamp(1, slots_max);
        Self { slot_bytes, slots_max, chunk_slots, chunks: Mutex::default() }
    }

    /// Takes a slot, whose content is arbitrary.
    pub(crate) fn take(&self) -> *mut u8 {
        self.take_from(&mut self.chunks())
    }

    /// Takes `count` slots at once, adjacent as far as chunks have room.
    pub(crate) fn take_many(&self, count: usize) -> Room<'_> {
        let mut chunks = self.chunks();
        let slots: Vec<_> = (0..count).map(|_| self.take_from(&mut chunks)).collect();
        Room { slab: self, slots: slots.into_iter() }
    }

    fn take_from(&self, chunks: &mut Chunks) -> *mut u8 {
        let Chunks { list, roomy, low, slots, used, empty } = chunks;
        while list.get(*roomy).is_some_and(|chunk| chunk.used == chunk.chunk.slots()) {
            (*roomy, *low) = (*roomy + 1, 0);
        }
        if *roomy == list.len() {
            let chunk = Chunk::new(self.slot_bytes, self.chunk_slots.min(self.slots_max - *slots));
            *slots += chunk.slots();
            *empty += 1;
            *roomy = list.partition_point(|other| other.chunk.addr() < chunk.addr());
            let bits = vec![0; chunk.slots().div_ceil(64)].into();
            if list.len() == list.capacity() {
                // Doubling would cost a tenth of a byte per copy.
                list.reserve_exact(4.max(list.len() / 4));
            }
            list.insert(*roomy, Occupied { chunk, used: 0, bits });
            *low = 0;
        }
        *used += 1;
        *empty -= usize::from(list[*roomy].used == 0);
        list[*roomy].take(low)
    }

    /// Takes back a slot of [`Slab::take`].
    ///
    /// An empty chunk is freed as soon as the others have room for half a chunk, so that a copy
    /// that comes and goes does not cost a chunk each time; or when no slot is in use.
    pub(crate) fn give_back(&self, slot: *mut u8) {
        let mut chunks = self.chunks();
        let Chunks { list, roomy, low, slots, used, empty } = &mut *chunks;
        let at = list.partition_point(|chunk| chunk.chunk.addr() <= slot.addr());
        let at = at.checked_sub(1).expect("a slot lies in a chunk of its slab");
        let chunk = &mut list[at];
        let freed = (slot.addr() - chunk.chunk.addr()) / self.slot_bytes;
        chunk.give_back(freed);
        (*roomy, *low) = (at, freed / 64).min((*roomy, *low));
        *used -= 1;
        *empty += usize::from(chunk.used == 0);
        if *used == 0 {
            *chunks = Chunks::default();
        } else if *empty > 0 && *slots - *used >= self.chunk_slots + self.chunk_slots / 2 {
            let at =
                list.iter().rposition(|chunk| chunk.used == 0).expect("an empty chunk was counted");
            *slots -= list.remove(at).chunk.slots();
            *empty -= 1;
            if at <= *roomy {
                (*roomy, *low) = (at, 0);
            }
        }
    }

    /// Returns the bytes of all chunks and their records.
    pub(crate) fn memory(&self) -> usize {
        let chunks = self.chunks();
        let each = chunks.list.iter().map(|of| size_of_val(&*of.bits) + of.chunk.bytes());
        chunks.list.capacity() * size_of::<Occupied>() + each.sum::<usize>()
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Slots taken at once; unused ones are given back on drop.
pub(crate) struct Room<'a> {
    slab: &'a Slab,
    slots: vec::IntoIter<*mut u8>,
}

impl Iterator for Room<'_> {
    type Item = *mut u8;

    fn next(&mut self) -> Option<*mut u8> {
        self.slots.next()
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.slots.by_ref().for_each(|slot| self.slab.give_back(slot));
    }
}

impl Occupied {
    /// Takes the lowest free slot; the words of bits before `low` have none.
    fn take(&mut self, low: &mut usize) -> *mut u8 {
        let is_roomy = |bits: &u64| *bits != u64::MAX;
        let ahead = self.bits[*low..].iter().position(is_roomy);
        *low += ahead.expect("a roomy chunk has a free slot");
        let bit = self.bits[*low].trailing_ones();
        self.bits[*low] |= 1 << bit;
        self.used += 1;
        self.chunk.slot(*low * 64 + bit as usize)
    }

    fn give_back(&mut self, slot: usize) {
        let mask = 1 << (slot % 64);
        assert!(self.bits[slot / 64] & mask != 0, "a slot is given back once");
        self.bits[slot / 64] &= !mask;
        self.used -= 1;
    }
}

/// Alignment of replicas: their budget, unlike that of main copies, allows every value to be
/// aligned for SIMD.
const REPLICA_ALIGN: usize = 16;
const CHUNK_BYTES_MIN: usize = 64 << 10;
const CHUNK_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_lowest_free_slot_and_frees_empty_chunks() {
        let slab = Slab::new(16 << 10, 64);
        assert_eq!(slab.memory(), 0);
        let mut slots: Vec<_> = (0..12).map(|_| slab.take()).collect();
        slots.sort();
        slots.dedup();
        assert_eq!(slots.len(), 12, "no slot is given twice");
        let three = slab.memory();

        slab.give_back(slots[1]);
        slab.give_back(slots[9]);
        assert_eq!([slab.take(), slab.take()], [slots[1], slots[9]]);

        slots[4..].iter().rev().for_each(|slot| slab.give_back(*slot));
        let two = slab.memory();
        assert!(two < three, "one empty chunk of two is kept");
        assert_eq!(slab.take(), slots[4]);
        assert_eq!(slab.memory(), two);

        slots[..5].iter().for_each(|slot| slab.give_back(*slot));
        assert_eq!(slab.memory(), 0);
    }

    #[test]
    fn slots_taken_at_once_lie_side_by_side_and_come_back_if_nobody_wants_them() {
        let slab = Slab::new(1 << 10, 1_000);
        let mut room = slab.take_many(20);
        let taken: Vec<usize> = room.by_ref().take(8).map(|slot| slot.addr()).collect();
        assert!(taken.windows(2).all(|two| two[1] == two[0] + (1 << 10)));
        drop(room);
        assert_eq!(slab.take().addr(), taken[7] + (1 << 10), "the lowest that came back");
        assert_eq!(slab.chunks().used, 9);
        assert_eq!(slab.take_many(991).count(), 991, "all that are left");
        let chunks = slab.chunks();
        assert_eq!([chunks.used, chunks.slots], [1_000; 2]);
    }

    #[test]
    fn a_full_slab_has_no_free_slot() {
        let (many, more) = if cfg!(miri) { (40, 300) } else { (10_000, 70_000) };
        for (slot_bytes, slots) in [(1 << 24, 3), (417, many), (20, more), (16, 1)] {
            let slab = Slab::new(slot_bytes, slots);
            let all: Vec<_> = (0..slots).map(|_| slab.take()).collect();
            assert_eq!(slab.chunks().slots, slots);
            all.iter().for_each(|slot| slab.give_back(*slot));
            assert_eq!(slab.memory(), 0);
        }
    }
}
