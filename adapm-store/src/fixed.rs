//! The store of fixed capacity: all memory is in the value itself, for microcontrollers and other
//! places without an allocator.
//!
//! Not here: threads. One context at a time uses the store, enforced by the type system.

#![forbid(unsafe_code)]

use core::cell::{RefCell, RefMut};
use core::fmt;
use core::ops::Range;

use adapm_core::slot::{PackedState, Slot};
use adapm_core::store::Store;
use adapm_core::{Key, Layout, Value, Version};
use heapless::Vec;

/// A store for up to `KEYS` keys whose values and deltas have up to `ELEMENTS` elements in all; it
/// never allocates.
///
/// # Capacity
/// The constructor, [`FixedStore::for_layout`] or [`FixedStore::lay_out`], decides once if a layout
/// fits: there must be room for every key, and for value *and* delta of each, as a node may be
/// asked to hold replicas of all keys at once. No later call can run out. Write the extents as a
/// constant and let [`keys_of`] and [`elements_of`] compute both numbers.
///
/// # Memory
/// 17 B per key and `size_of::<V>()` per element, whether held or not, and some 320 B more. An
/// empty store is all zeros and can be made in a constant: a `static` one is in `.bss`, and the
/// linker reports a chip that is too small.
///
/// # Latch
/// One for all keys, which costs two writes, as there is only one context: the type is `Send` but
/// not `Sync`. To share a store between a program and its interrupt handlers, or between cores, put
/// it into a mutex of the platform and implement [`Store`] for that.
///
/// ```
/// use adapm_core::store::Store;
/// use adapm_core::{Key, Layout};
/// use adapm_store::fixed::{self, FixedStore};
///
/// const EXTENTS: &[(u64, usize)] = &[(64, 4), (2, 100)];
/// let layout = Layout::dense(EXTENTS)?;
/// let store: FixedStore<f32, { fixed::keys_of(EXTENTS) }, { fixed::elements_of(EXTENTS) }> =
///     FixedStore::for_layout(&layout).expect("made for these extents");
/// store.reserve(Key(65), true);
/// store.with_slot(Key(65), |slot| assert_eq!((slot.value.len(), slot.delta.len()), (100, 100)));
/// # Ok::<(), adapm_core::error::ConfigError>(())
/// ```
pub struct FixedStore<V, const KEYS: usize, const ELEMENTS: usize> {
    plan: Plan,
    cells: RefCell<Cells<V, KEYS, ELEMENTS>>,
}

/// The positions of each key's elements: its value, followed by room for its delta.
struct Plan {
    extents: Vec<Extent, EXTENTS_MAX>,
}

struct Extent {
    keys: Range<u64>,
    value_len: usize,
    /// Number of elements of all extents before this one.
    offset: usize,
}

/// The position of one key.
struct Place {
    index: usize,
    offset: usize,
    value_len: usize,
}

struct Cells<V, const KEYS: usize, const ELEMENTS: usize> {
    packed: Vec<PackedState, KEYS>,
    versions: Vec<Version, KEYS>,
    held: Vec<Held, KEYS>,
    elements: Vec<V, ELEMENTS>,
}

/// The copy of a key, apart from its packed state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Value,
    ValueAndDelta,
}

/// The reason that a layout does not fit a [`FixedStore`], which then has no keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// More keys than there is room for.
    #[error("the layout has {needed} keys, the store room for {room}: raise KEYS")]
    Keys {
        /// Keys of the layout.
        needed: u64,
        /// `KEYS` of the store.
        room: usize,
    },
    /// More elements, of values and deltas together, than there is room for.
    #[error("values and deltas have {needed} elements, the store room for {room}: raise ELEMENTS")]
    Elements {
        /// Elements that the layout needs.
        needed: u64,
        /// `ELEMENTS` of the store.
        room: usize,
    },
    /// More extents than [`EXTENTS_MAX`].
    #[error("the layout has {needed} extents, a fixed store takes {EXTENTS_MAX}: join some")]
    Extents {
        /// Extents of the layout.
        needed: usize,
    },
}

/// Most extents of a layout.
pub const EXTENTS_MAX: usize = 8;

/// Returns the number of keys of a layout with these extents of (number of keys, value length):
/// `KEYS` of a [`FixedStore`] for it.
#[must_use]
pub const fn keys_of(extents: &[(u64, usize)]) -> usize {
    let (mut keys, mut i) = (0, 0);
    while i < extents.len() {
        keys += extents[i].0 as usize;
        i += 1;
    }
    keys
}

/// Returns the number of elements of all values and deltas of a layout with these extents:
/// `ELEMENTS` of a [`FixedStore`] for it.
#[must_use]
pub const fn elements_of(extents: &[(u64, usize)]) -> usize {
    let (mut elements, mut i) = (0, 0);
    while i < extents.len() {
        elements += 2 * extents[i].0 as usize * extents[i].1;
        i += 1;
    }
    elements
}

impl<V: Value, const KEYS: usize, const ELEMENTS: usize> FixedStore<V, KEYS, ELEMENTS> {
    /// Creates a store without keys, for [`FixedStore::lay_out`].
    #[must_use]
    pub const fn new() -> Self {
        let cells = Cells {
            packed: Vec::new(),
            versions: Vec::new(),
            held: Vec::new(),
            elements: Vec::new(),
        };
        Self { plan: Plan { extents: Vec::new() }, cells: RefCell::new(cells) }
    }

    /// Creates an empty store for the keys of `layout`. It is as large as its capacity: mind the
    /// stack.
    ///
    /// # Errors
    /// If the layout does not fit.
    pub fn for_layout(layout: &Layout) -> Result<Self, CapacityError> {
        let mut store = Self::new();
        store.lay_out(layout)?;
        Ok(store)
    }

    /// Makes room for the keys of `layout`, and forgets everything held before.
    ///
    /// # Errors
    /// If the layout does not fit; the store then has no keys.
    pub fn lay_out(&mut self, layout: &Layout) -> Result<(), CapacityError> {
        self.plan.extents.clear();
        let cells = self.cells.get_mut();
        cells.resize(0, 0);
        let keys = layout.keys().end.0;
        if keys > KEYS as u64 {
            return Err(CapacityError::Keys { needed: keys, room: KEYS });
        }
        let pairs = layout.extents().iter().map(|extent| {
            let keys = extent.keys.end.0 - extent.keys.start.0;
            keys.saturating_mul(2 * extent.value_len as u64)
        });
        let elements = pairs.fold(0_u64, u64::saturating_add);
        if elements > ELEMENTS as u64 {
            return Err(CapacityError::Elements { needed: elements, room: ELEMENTS });
        }
        if layout.extents().len() > EXTENTS_MAX {
            return Err(CapacityError::Extents { needed: layout.extents().len() });
        }
        self.plan = Plan::of(layout);
        cells.resize(keys as usize, elements as usize);
        Ok(())
    }

    fn place(&self, key: Key) -> Place {
        self.plan.place(key).unwrap_or_else(|| panic!("{key} is no key of the layout"))
    }

    fn cells(&self) -> RefMut<'_, Cells<V, KEYS, ELEMENTS>> {
        self.cells
            .try_borrow_mut()
            .expect("a function that works on a slot does not call the store")
    }
}

impl<V: Value, const KEYS: usize, const ELEMENTS: usize> Default for FixedStore<V, KEYS, ELEMENTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Value, const KEYS: usize, const ELEMENTS: usize> Store for FixedStore<V, KEYS, ELEMENTS> {
    type Value = V;

    fn value_len(&self, key: Key) -> usize {
        self.plan.place(key).map_or(0, |place| place.value_len)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, V>) -> R) -> R {
        let place = self.place(key);
        f(self.cells().slot(&place))
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        let place = self.place(key);
        let mut cells = self.cells();
        if cells.held[place.index] == Held::Nothing {
            cells.versions[place.index] = Version(0);
            cells.elements[place.value()].fill(V::default());
        }
        if with_delta && cells.held[place.index] != Held::ValueAndDelta {
            cells.elements[place.delta()].fill(V::default());
        }
        cells.held[place.index] = if with_delta { Held::ValueAndDelta } else { Held::Value };
    }

    fn release(&self, key: Key) {
        let place = self.place(key);
        self.cells().held[place.index] = Held::Nothing;
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, V>)) {
        let mut cells = self.cells();
        for extent in &self.plan.extents {
            let (start, end) =
                (keys.start.0.max(extent.keys.start), keys.end.0.min(extent.keys.end));
            for key in start..end {
                let place = extent.place(key);
                if cells.held[place.index] != Held::Nothing {
                    f(Key(key), cells.slot(&place));
                }
            }
        }
    }
}

impl<V, const KEYS: usize, const ELEMENTS: usize> fmt::Debug for FixedStore<V, KEYS, ELEMENTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.plan.extents.last().map_or(0, |extent| extent.keys.end);
        write!(f, "FixedStore({keys} of {KEYS} keys, room for {ELEMENTS} elements)")
    }
}

impl Plan {
    fn of(layout: &Layout) -> Self {
        let mut offset = 0;
        let extents = layout.extents().iter().map(|extent| {
            let keys = extent.keys.start.0..extent.keys.end.0;
            let begin = offset;
            offset += 2 * (keys.end - keys.start) as usize * extent.value_len;
            Extent { keys, value_len: extent.value_len, offset: begin }
        });
        Self { extents: extents.collect() }
    }

    fn place(&self, key: Key) -> Option<Place> {
        self.extents.iter().find(|extent| key.0 < extent.keys.end).map(|extent| extent.place(key.0))
    }
}

impl Extent {
    /// Returns the place of a key. Keys and elements were counted when they were laid out: they fit
    /// `usize`.
    fn place(&self, key: u64) -> Place {
        let offset = self.offset + 2 * (key - self.keys.start) as usize * self.value_len;
        Place { index: key as usize, offset, value_len: self.value_len }
    }
}

impl Place {
    fn value(&self) -> Range<usize> {
        self.offset..self.offset + self.value_len
    }

    fn delta(&self) -> Range<usize> {
        self.offset + self.value_len..self.offset + 2 * self.value_len
    }
}

impl<V: Value, const KEYS: usize, const ELEMENTS: usize> Cells<V, KEYS, ELEMENTS> {
    /// Forgets everything and resizes.
    fn resize(&mut self, keys: usize, elements: usize) {
        const FITS: &str = "the capacity was checked";
        self.packed.clear();
        self.packed.resize(keys, PackedState::EMPTY).expect(FITS);
        self.versions.clear();
        self.versions.resize(keys, Version(0)).expect(FITS);
        self.held.clear();
        self.held.resize(keys, Held::Nothing).expect(FITS);
        self.elements.clear();
        self.elements.resize(elements, V::default()).expect(FITS);
    }

    fn slot(&mut self, place: &Place) -> Slot<'_, V> {
        let Self { packed, versions, held, elements } = self;
        let held = held[place.index];
        let version = &mut versions[place.index];
        if held == Held::Nothing {
            // Changes of the version of an absent key are lost.
            *version = Version(0);
        }
        let (value_len, delta_len) = match held {
            Held::Nothing => (0, 0),
            Held::Value => (place.value_len, 0),
            Held::ValueAndDelta => (place.value_len, place.value_len),
        };
        let (value, delta) =
            elements[place.offset..][..value_len + delta_len].split_at_mut(value_len);
        Slot { packed: &mut packed[place.index], version, value, delta }
    }
}
