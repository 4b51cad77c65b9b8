//! Where main copies come from: those of a dense layout before the first input, those of a sparse one when they are asked for.
//!
//! They come into being at the home of their key, with an initial value that follows from the key alone.

use alloc::sync::Arc;

use crate::id::Key;
use crate::store::Store;

/// Writes the initial value of a key, `[value_len]` zeros before: a pure function of the key, the same on every node.
pub type Initial<V> = Arc<dyn Fn(Key, &mut [V]) + Send + Sync>;

/// Creates the main copies of `keys` in the store of the node that is their home, before the first input of any of its channels;
/// `initial` writes the value `[value_len]` of each. No message is sent: costs the memory of the values, and a latch a key.
///
/// What [`crate::engine::Engine::populate`] does for the keys of its channel, for a driver that has several threads do it: each calls this for
/// keys of its own, and the engines see what it did if their threads start later.
///
/// # Panics
/// In debug builds, for a key that has a copy or a known location.
pub fn found<S: Store>(store: &S, keys: &[Key], initial: &Initial<S::Value>) {
    store.reserve_each(keys, |key, mut slot| {
        slot.found();
        initial(key, slot.value);
    });
}
