//! Elements of values, and the aligned block that carries values between nodes.
//!
//! A value is `[value_len]` elements of one [`Value`] type per run. Blocks hold them raw and
//! little-endian; only little-endian hosts are supported, so a block's bytes are the wire's.

use alloc::vec::Vec;
use core::fmt::Debug;

const _: () = assert!(cfg!(target_endian = "little"), "adapm supports little-endian hosts only");

mod sealed {
    /// Plain old data of a fixed little-endian form; sealed, as the wire knows these types only.
    pub trait Element: bytemuck::Pod {}

    impl Element for f32 {}
    impl Element for f64 {}
    impl Element for i64 {}
}

/// Elements of the longest value.
pub(crate) const LEN_MAX: usize = 1 << 20;

/// An element of a value: `f32`, `f64` or `i64`.
pub trait Value:
    sealed::Element + Copy + Default + Debug + PartialEq + Send + Sync + 'static
{
    /// Bytes of one element.
    const WIDTH: usize = size_of::<Self>();
    /// The type's name in layout digests and messages for people.
    const NAME: &'static str;

    /// Adds an update, an integer wraps around.
    fn accumulate(&mut self, update: Self);
}

impl Value for f32 {
    const NAME: &'static str = "f32";

    fn accumulate(&mut self, update: Self) {
        *self += update;
    }
}

impl Value for f64 {
    const NAME: &'static str = "f64";

    fn accumulate(&mut self, update: Self) {
        *self += update;
    }
}

impl Value for i64 {
    const NAME: &'static str = "i64";

    fn accumulate(&mut self, update: Self) {
        *self = self.wrapping_add(update);
    }
}

/// Adds `updates` to `values`, element by element; both `[value_len]`.
pub fn accumulate<V: Value>(values: &mut [V], updates: &[V]) {
    debug_assert_eq!(values.len(), updates.len(), "an update has the length of its value");
    for (value, update) in values.iter_mut().zip(updates) {
        value.accumulate(*update);
    }
}

/// Values of one message: raw, little-endian, 8-byte aligned, one after another in the order of the
/// message's key lists.
#[derive(Clone, Default)]
pub struct Block {
    /// The bytes, and behind them memory that is ready to be written; what is there means nothing.
    words: Vec<u64>,
    bytes: usize,
}

impl Block {
    /// An empty block that allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new(), bytes: 0 }
    }

    /// Appends the elements of `values`.
    #[inline]
    pub fn push<V: Value>(&mut self, values: &[V]) {
        self.push_bytes(bytemuck::cast_slice(values));
    }

    /// Appends bytes as they came from the wire: a part of an element, if need be.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let (start, end) = (self.bytes, self.bytes + bytes.len());
        if end > size_of_val(&*self.words) {
            self.make_ready(end);
        }
        self.bytes = end;
        self.bytes_mut()[start..].copy_from_slice(bytes);
    }

    /// Appends `len` elements that `fill` writes; they are zero before.
    pub fn push_with<V: Value, R>(&mut self, len: usize, fill: impl FnOnce(&mut [V]) -> R) -> R {
        let start = self.bytes;
        self.resize(start + len * V::WIDTH);
        fill(bytemuck::cast_slice_mut(&mut self.bytes_mut()[start..]))
    }

    /// Makes room for `bytes` more without adding any.
    pub fn reserve(&mut self, bytes: usize) {
        self.words.reserve((self.bytes + bytes).div_ceil(8).saturating_sub(self.words.len()));
    }

    /// All elements as `V`.
    ///
    /// # Panics
    /// If the block's length is no multiple of the element's width; see [`Block::len_as`].
    #[must_use]
    pub fn values<V: Value>(&self) -> &[V] {
        bytemuck::cast_slice(self.bytes())
    }

    /// Number of elements of type `V`, `None` if the block's length is no multiple of the element's
    /// width.
    #[must_use]
    pub fn len_as<V: Value>(&self) -> Option<usize> {
        self.bytes.is_multiple_of(V::WIDTH).then(|| self.bytes / V::WIDTH)
    }

    /// The bytes as they go on the wire.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    /// The bytes, to be overwritten by a transport after [`Block::resize`].
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }

    /// Sets the length in bytes; new bytes are zero.
    pub fn resize(&mut self, bytes: usize) {
        let (before, ready) = (self.bytes, size_of_val(&*self.words));
        self.words.resize(bytes.div_ceil(8), 0);
        self.bytes = bytes;
        if bytes > before {
            self.bytes_mut()[before..bytes.min(ready)].fill(0);
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Drops all values and keeps the memory, ready to be written.
    pub fn clear(&mut self) {
        self.bytes = 0;
    }

    /// Makes memory for `bytes` bytes in all ready to be written: what is there already, at once,
    /// not value by value.
    #[cold]
    fn make_ready(&mut self, bytes: usize) {
        let words = bytes.div_ceil(8);
        self.words.reserve(words - self.words.len());
        self.words.resize(words.max(self.words.capacity().min(2 * words)), 0);
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Block {}

impl Debug for Block {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Block({} bytes)", self.bytes)
    }
}
