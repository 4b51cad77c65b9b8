//! Elements of values, and the aligned block that carries values between nodes.
//!
//! A value is `[value_len]` elements of one [`Value`] type per run. Blocks hold them raw and
//! little-endian; only little-endian hosts are supported, so a block's bytes are the wire's.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::marker::PhantomData;

/// Traits that elements implement; derive them with the feature `derive` of the crate `bytemuck`.
pub use bytemuck::{Pod, Zeroable};

const _: () = assert!(cfg!(target_endian = "little"), "adapm supports little-endian hosts only");

/// Elements of the longest value.
pub(crate) const LEN_MAX: usize = 1 << 20;

/// An element of a value: plain bytes, and their sum.
///
/// `f32`, `f64` and `i64` are elements, and so is any type of your own that keeps the laws below.
/// The trait is about the sum of *elements* only: pushes reach a main copy by several ways and in
/// any order, some of them already added to others.
///
/// # Laws
/// - `accumulate` commutes and associates: a replica adds pushes to its delta, and the owner adds
///   the delta. Where sums are rounded ([`Value::ROUNDS`]), they associate up to that.
/// - All zero bytes are the default and change nothing: new memory is zeroed, and a delta begins
///   so.
/// - An element is nothing but its bytes: a node writes them, another one reads them. No pointer,
///   no index into memory that is not sent.
/// - [`Value::magnitude`] is 0 for the default, and never negative or NaN.
///
/// Maximum, minimum and other operations whose neutral element is not zero bytes are impossible.
/// Check your type with `adapm_verify::value_suite!`.
///
/// # Size
/// The size is at least a byte, the alignment at most 8. Other types do not compile:
///
/// ```compile_fail
/// #[repr(C, align(16))]
/// #[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
/// struct Aligned([u64; 2]);
///
/// impl adapm_core::Value for Aligned {
///     const NAME: &'static str = "aligned";
///     fn accumulate(&mut self, _update: Self) {}
/// }
/// adapm_core::Block::new().push(&[Aligned::default()]);
/// ```
///
/// # Example
/// A counter that saturates, on any number of nodes:
///
/// ```
/// use adapm_core::Value;
///
/// #[repr(transparent)]
/// #[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
/// struct Saturating(u32);
///
/// impl Value for Saturating {
///     const NAME: &'static str = "saturating u32";
///
///     fn accumulate(&mut self, update: Self) {
///         self.0 = self.0.saturating_add(update.0);
///     }
///
///     fn magnitude(self) -> f64 {
///         f64::from(self.0)
///     }
/// }
/// adapm_core::Block::new().push(&[Saturating(7)]);
/// ```
pub trait Value: Pod + Default + Debug + PartialEq + Send + Sync + 'static {
    /// The type's name in layout digests and messages for people. Nodes whose digests are equal
    /// exchange values: a type of another meaning has another name.
    const NAME: &'static str;
    /// True if sums are rounded, so that they depend on the order of additions. Nothing that
    /// rounds further, as a filter that quantises updates, is applied to a type that says false.
    const ROUNDS: bool = false;

    /// Adds an update.
    fn accumulate(&mut self, update: Self);

    /// The size of an update, for filters that hold small ones back: 0 for the default, never
    /// negative or NaN. Defaults to 0 for all, with which a filter cannot tell updates apart.
    #[must_use]
    fn magnitude(self) -> f64 {
        0.0
    }
}

impl Value for f32 {
    const NAME: &'static str = "f32";
    const ROUNDS: bool = true;

    fn accumulate(&mut self, update: Self) {
        *self += update;
    }

    fn magnitude(self) -> f64 {
        f64::from(self).magnitude()
    }
}

impl Value for f64 {
    const NAME: &'static str = "f64";
    const ROUNDS: bool = true;

    fn accumulate(&mut self, update: Self) {
        *self += update;
    }

    /// Of a NaN infinite: no filter holds it back.
    fn magnitude(self) -> f64 {
        if self.is_nan() { f64::INFINITY } else { self.abs() }
    }
}

/// Wraps around.
impl Value for i64 {
    const NAME: &'static str = "i64";

    fn accumulate(&mut self, update: Self) {
        *self = self.wrapping_add(update);
    }

    fn magnitude(self) -> f64 {
        self.unsigned_abs() as f64
    }
}

/// Refuses to compile for elements that blocks cannot carry.
struct Carried<V>(PhantomData<V>);

impl<V> Carried<V> {
    const CHECKED: () = {
        assert!(size_of::<V>() > 0, "an element of a value has at least one byte");
        assert!(align_of::<V>() <= 8, "an element of a value has an alignment of at most 8");
    };
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
    /// The bytes, followed by memory that is ready to be written, with meaningless content.
    words: Vec<u64>,
    bytes: usize,
}

impl Block {
    /// Creates an empty block, without allocation.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new(), bytes: 0 }
    }

    /// Appends the elements of `values`.
    #[inline]
    pub fn push<V: Value>(&mut self, values: &[V]) {
        const { Carried::<V>::CHECKED };
        self.push_bytes(bytemuck::cast_slice(values));
    }

    /// Appends bytes as they came from the wire, even a part of an element.
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
        const { Carried::<V>::CHECKED };
        let start = self.bytes;
        self.resize(start + len * size_of::<V>());
        fill(bytemuck::cast_slice_mut(&mut self.bytes_mut()[start..]))
    }

    /// Reserves room for `bytes` more bytes without adding any.
    pub fn reserve(&mut self, bytes: usize) {
        self.words.reserve((self.bytes + bytes).div_ceil(8).saturating_sub(self.words.len()));
    }

    /// Returns all elements as `V`.
    ///
    /// # Panics
    /// If the block's length is no multiple of the element's width; see [`Block::len_as`].
    #[must_use]
    pub fn values<V: Value>(&self) -> &[V] {
        const { Carried::<V>::CHECKED };
        bytemuck::cast_slice(self.bytes())
    }

    /// Returns the number of elements of type `V`, `None` if the block's length is no multiple of
    /// the element's width.
    #[must_use]
    pub fn len_as<V: Value>(&self) -> Option<usize> {
        const { Carried::<V>::CHECKED };
        self.bytes.is_multiple_of(size_of::<V>()).then(|| self.bytes / size_of::<V>())
    }

    /// Returns the bytes in wire format.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    /// Returns the bytes, for a transport to overwrite after [`Block::resize`].
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

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns true if there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Drops all values and keeps the memory, ready to be written.
    pub fn clear(&mut self) {
        self.bytes = 0;
    }

    /// Makes memory for `bytes` bytes in all ready to be written: existing memory at once, not
    /// value by value.
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
