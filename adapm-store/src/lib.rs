//! Stores of latched slots, which hold a node's local copies.
//!
//! | store | for | an absent key takes | a pull or push of a held key |
//! | --- | --- | --- | --- |
//! | [`DenseStore`] | dense layouts | 8 B | one atomic swap, two places in memory |
//! | [`SparseStore`] | any `u64` as key, where few keys exist | nothing, or 16 B in a map while its location is known | one mutex, one look-up |
//! | [`FixedStore`] | no allocator, no threads | as much as a held one: 17 B, value and delta | two writes, two places in memory |
//!
//! All keep the contract of [`adapm_core::store::Store`]. The first two are shared by the workers
//! of a node and by its [`adapm_core::engine::Engine`]s, and need the feature `std`, which is on by
//! default. A store knows slots, not messages: the transitions of [`adapm_core::slot`] decide what
//! happens to a slot.
//!
//! ```
//! use adapm_core::slot::Pushed;
//! use adapm_core::store::Store;
//! use adapm_core::{Key, Layout};
//! use adapm_store::DenseStore;
//!
//! // 1,000 keys of 64 elements, then 10 of 4,096.
//! let store = DenseStore::<f32>::new(&Layout::dense(&[(1_000, 64), (10, 4_096)])?);
//!
//! // The engine makes this node the owner of a key: memory first, then the transition.
//! store.reserve(Key(7), false);
//! store.with_slot(Key(7), |mut slot| slot.create_main_copy());
//!
//! // Workers push and pull, from as many threads as they like.
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| {
//!             let pushed = store.with_slot(Key(7), |mut slot| slot.push(&[0.5; 64]));
//!             assert_eq!(pushed, Pushed::Done);
//!         });
//!     }
//! });
//! let mut value = [0.0; 64];
//! assert!(store.with_slot(Key(7), |slot| slot.pull(&mut value)));
//! assert_eq!(value, [1.0; 64]);
//!
//! // A key without a local copy refuses: the worker's slow path takes it.
//! assert!(!store.with_slot(Key(8), |slot| slot.pull(&mut value)));
//! # Ok::<(), adapm_core::error::ConfigError>(())
//! ```
//!
//! # On a microcontroller
//!
//! With `default-features = false` the crate is `no_std`, has no unsafe code and holds
//! [`FixedStore`] alone. Size, place and layout of the store are then decided before the program
//! runs:
//!
//! ```
//! use adapm_core::Layout;
//! use adapm_store::fixed::{self, FixedStore};
//!
//! /// 64 keys of 4 elements and 2 of 100.
//! const EXTENTS: &[(u64, usize)] = &[(64, 4), (2, 100)];
//! type Parameters = FixedStore<f32, { fixed::keys_of(EXTENTS) }, { fixed::elements_of(EXTENTS) }>;
//!
//! // All zeros: with `cortex_m::singleton!` or `static_cell` it is in `.bss`, and the linker tells if the chip has room.
//! let mut store = const { Parameters::new() };
//! store.lay_out(&Layout::dense(EXTENTS)?).expect("the store was made for these extents");
//! # Ok::<(), adapm_core::error::ConfigError>(())
//! ```
//!
//! | question | answer |
//! | --- | --- |
//! | What if the layout is larger than the store? | [`fixed::CapacityError`] at construction says what to raise; no later call can run out |
//! | What does it take? | 17 B for a key, and twice its value: a replica has a delta |
//! | May an interrupt handler use it? | Not by itself: it is not `Sync`. Behind a mutex of the platform, as any other `Send` value |
//! | What if `f` of `with_slot` calls the store? | A panic that says so; the contract forbids it |
//! | What else allocates? | The engine: queues and messages. The example below runs with 20 KiB of heap, link session included |
//!
//! `adapm-runtime/examples/bare-metal` is a whole node on a Cortex-M4 that shares parameters with a
//! cluster over a serial line.
//!
//! # A store of your own
//!
//! Implement [`Store`](adapm_core::store::Store) for your type: `with_slot`, `reserve`, `release`,
//! `visit` and `value_len`. The element type is the trait's; everything else, from the latch to the
//! place of values, is yours. Six rules are easily missed:
//!
//! - A packed state outlives its value: `release` keeps it, and an absent key has one, too, that
//!   `with_slot` may change.
//! - `reserve` of a held key keeps value, packed state and version, and changes only the delta.
//! - Memory that `release` frees may not be touched by a thread that has just looked the key up:
//!   look up under the latch, or check again after taking it.
//! - `prefetch`, `prefetch_entry` and `prefetch_guess` must be legal for any key at any time; omit
//!   them if they would need the latch.
//! - `look` may always answer `Unknown`. Any other answer must be true for the thread that calls
//!   `reserve` and `release`.
//! - `push` and `is_held` are optional, for speed: the first does everything that a push to the
//!   slot does, under the latch; the second returns if a key has a value, exactly if no other
//!   thread is at the key.
//!
//! Then run the whole contract in one line (of `adapm-verify`, as a dev-dependency). This example
//! uses the simplest store, a map behind a mutex; its source is a good start:
//!
//! ```
//! use adapm_verify::ReferenceStore;
//!
//! adapm_verify::store_suite!(my_store, |layout| ReferenceStore::<f32>::new(layout));
//! adapm_verify::store_fuzz!(any_calls, |layout| ReferenceStore::<f32>::new(layout));
//! # fn main() {}
//! ```
//!
//! # Checked by
//!
//! `tests/suite.rs` runs that suite on the stores here, `tests/fixed.rs` goes to the bounds of the
//! fixed one, `tests/memory.rs` counts bytes, `tests/loom_*.rs` model the latch and the reuse of
//! slots, `benches/access.rs` measures access beside plain arrays.
//!
//! Deliberately absent: messages, policies, eviction (a node decides what is held), persistence.
//!
#![doc = include_str!("../../adapm-core/docs/pages.md")]
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
mod arena;
#[cfg(feature = "std")]
mod chunk;
#[cfg(feature = "std")]
mod dense;
#[cfg(feature = "std")]
mod entry;
pub mod fixed;
#[cfg(feature = "std")]
mod guess;
#[cfg(feature = "std")]
mod pages;
#[cfg(feature = "std")]
mod slab;
#[cfg(feature = "std")]
mod sparse;
#[cfg(feature = "std")]
mod sync;
#[cfg(feature = "std")]
mod wide;

#[cfg(feature = "std")]
pub use dense::DenseStore;
pub use fixed::FixedStore;
#[cfg(feature = "std")]
pub use sparse::SparseStore;

#[cfg(adapm_loom)]
#[doc(hidden)]
pub use sync::primitives as model;
