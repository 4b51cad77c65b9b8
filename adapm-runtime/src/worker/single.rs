//! Pulls and pushes of one local key: as few instructions as possible.
//!
//! A processor runs ahead of a value that it waits for by some hundred instructions. The fewer of them a call has, the more calls of a
//! loop wait for their values together: of a million keys that is most of their time. Whatever is not simple goes the way of several
//! keys, from the start.

use adapm_core::Key;
use adapm_core::error::OpError;
use adapm_core::slot::Pushed;
use adapm_core::store::Store;

use super::Worker;
use super::access::Access;

impl<S: Store> Worker<S> {
    /// Whether that was all.
    #[inline]
    pub(super) fn pull_one(&mut self, key: Key, value: &mut [S::Value]) -> bool {
        self.store.prefetch_guess(key);
        let is_done = self.fits(key, value.len()) && self.try_pull(key, value);
        if is_done {
            self.counters().add_local(1);
        }
        is_done
    }

    /// Whether that was all.
    #[inline]
    pub(super) fn push_one(&mut self, key: Key, update: &[S::Value]) -> bool {
        self.store.prefetch_guess(key);
        if !self.fits(key, update.len()) {
            return false;
        }
        match self.try_push(key, update) {
            Pushed::Refused => return false,
            Pushed::Dirtied => self.tell_dirtied_one(key),
            Pushed::Done => {}
        }
        self.counters().add_local(1);
        true
    }

    /// Whether the layout has that key with that length.
    #[inline]
    fn fits(&self, key: Key, len: usize) -> bool {
        // Of a key that there is not, stores say 0.
        len > 0 && self.store.value_len(key) == len
    }

    #[cold]
    fn tell_dirtied_one(&mut self, key: Key) {
        self.dirtied.push(key);
        self.tell_dirtied();
    }

    #[inline(never)]
    pub(super) fn pull_several(&mut self, keys: &[Key], values: &mut [S::Value]) -> Result<(), OpError> {
        self.check(keys, values.len())?;
        self.pull_local(keys, values);
        if self.slow.is_empty() { Ok(()) } else { self.finish_pull(values) }
    }

    #[inline(never)]
    pub(super) fn push_several(&mut self, keys: &[Key], updates: &[S::Value]) -> Result<(), OpError> {
        self.check(keys, updates.len())?;
        self.push_local(keys, updates);
        if self.slow.is_empty() { Ok(()) } else { self.finish_write(Access::Push, updates) }
    }
}
