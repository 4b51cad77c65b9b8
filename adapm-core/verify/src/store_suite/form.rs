//! The input of the suite: the constructor of stores, their layouts, and the elements that they
//! must keep.

use core::ops::Range;

use adapm_core::id::Key;
use adapm_core::layout::{Kind, Layout};
use adapm_core::store::Store;
use adapm_core::value::Value;

use crate::rng::mix;

/// A constructor of stores, and the demands on them; dense layouts and all elements by default.
#[derive(Clone, Debug)]
pub struct Form<F> {
    make: F,
    kind: Kind,
    elements: Elements,
}

/// The elements that a store must keep exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// All of them; the suite draws integers of 16 bits.
    All,
    /// Integers below 128.
    Small,
}

impl<S: Store, F: Fn(&Layout) -> S> Form<F> {
    /// Returns the form of the stores of `make` that keep all elements bit for bit, in dense
    /// layouts.
    pub fn new(make: F) -> Self {
        Self { make, kind: Kind::Dense, elements: Elements::All }
    }

    /// Returns the same form with elements that are small integers: for stores that round others.
    #[must_use]
    pub fn lossy(self) -> Self {
        Self { elements: Elements::Small, ..self }
    }

    /// Returns the same form with sparse layouts, whose keys are all over the range of `u64`.
    #[must_use]
    pub fn sparse(self) -> Self {
        Self { kind: Kind::Sparse, ..self }
    }

    /// Returns a new store, and the keys and elements to use it with.
    pub(super) fn built(&self) -> (Bed, S) {
        // An interpreter takes seconds for each claim on a thousand elements.
        let (middle, long) = if cfg!(miri) { (4, 17) } else { (16, 131) };
        let layout = match self.kind {
            Kind::Dense => Layout::dense(&[(20, 3), (7, 1), (40, middle), (6, long), (9, 3)]),
            Kind::Sparse => {
                let huge = 1 << 62;
                let extents = [(huge, 3), (1 << 20, 1), (huge, middle), (1 << 40, long), (huge, 3)];
                Layout::sparse(&extents)
            }
        };
        let layout = layout.expect("a legal layout");
        let store = (self.make)(&layout);
        let counts = [20, 7, 40, 6, 9];
        let spread = layout.extents().iter().zip(counts);
        let keys = spread.flat_map(|(extent, count)| evenly(extent.keys.clone(), count));
        (Bed { keys: keys.collect(), layout, elements: self.elements }, store)
    }
}

/// Returns `count` keys of a range: the first, the last, and others between; all keys of a short
/// range.
fn evenly(keys: Range<Key>, count: u64) -> impl Iterator<Item = Key> {
    let last = u128::from(keys.end.0 - keys.start.0 - 1);
    (0..count)
        .map(move |at| Key(keys.start.0 + (u128::from(at) * last / u128::from(count - 1)) as u64))
}

/// The layout of a store, the keys of it that the suite uses, and the elements that it writes.
pub(super) struct Bed {
    pub(super) layout: Layout,
    /// Ascending.
    keys: Vec<Key>,
    pub(super) elements: Elements,
}

impl Bed {
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + use<'_> {
        self.keys.iter().copied()
    }

    /// Returns the key at this position.
    pub(super) fn key(&self, at: usize) -> Key {
        self.keys[at]
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the position of a key.
    pub(super) fn place(&self, key: Key) -> usize {
        self.keys.binary_search(&key).expect("a key that is used")
    }

    pub(super) fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).expect("a key of the layout")
    }

    /// Returns true for every other key.
    pub(super) fn has_delta(&self, key: Key) -> bool {
        self.place(key).is_multiple_of(2)
    }

    /// Returns the first key of the longest values, and the next one.
    pub(super) fn long(&self) -> [Key; 2] {
        [self.keys[67], self.keys[68]]
    }
}

impl Elements {
    /// Returns an element for a random number.
    pub(super) fn draw<V: Value + From<i16>>(self, random: u64) -> V {
        match self {
            Self::All => V::from(random as i16),
            Self::Small => V::from((random % 255) as i16 - 127),
        }
    }

    /// Returns an element whose triple is exact, too.
    pub(super) fn draw_third<V: Value + From<i16>>(self, random: u64) -> V {
        match self {
            Self::All => V::from(mix(random) as i16),
            Self::Small => V::from((mix(random) % 85) as i16 - 42),
        }
    }

    /// Returns the addend of push number `at`, counted from 0: one, or in turns one and minus one,
    /// so that sums stay small.
    pub(super) fn step<V: Value + From<i16>>(self, at: u32) -> V {
        V::from(if self == Self::Small && at % 2 == 1 { -1 } else { 1 })
    }

    /// Returns the sum of the first `steps` addends.
    pub(super) fn sum<V: Value + From<i16>>(self, steps: u32) -> V {
        let sum = if self == Self::Small { steps % 2 } else { steps };
        V::from(i16::try_from(sum).expect("few enough steps for an `i16`"))
    }
}
