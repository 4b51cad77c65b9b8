//! A prepared sample: the choice of its keys, the keys left to pull, and the return of unused keys.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::engine::SignalId;
use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout, NodeId, WorkerId};
use foldhash::fast::FixedState;

use super::{DRAWS_IN_VAIN, Random, Sampling, Scheme};

/// Keys to be pulled by [`crate::Worker::pull_sample`], a few at a time, by the worker that
/// prepared it or whose intent handle did. May outlive its worker and the cluster.
#[derive(Debug)]
pub struct Sample {
    sampling: Arc<Sampling>,
    random: Random,
    clocks: Range<Clock>,
    /// Number of keys not pulled yet.
    left: usize,
    /// Keys chosen so far; those before `next` have been pulled.
    chosen: Vec<Key>,
    next: usize,
    /// The window of the intent signalled for the chosen keys, if any.
    signalled: Option<Range<Clock>>,
    /// Keys that may not occur again, without replacement.
    used: HashMap<Key, (), FixedState>,
    preparer: SamplePreparer,
}

/// The worker that prepared a sample, and its node.
pub(crate) struct SamplePreparer {
    /// The node, to return unused keys.
    pub(crate) shared: Arc<dyn SampleNode>,
    pub(crate) node: NodeId,
    pub(crate) worker: WorkerId,
    /// The id of the signals for the sample's keys that last until its window ends.
    pub(crate) signal: SignalId,
}

/// The node of a sample, to which unused keys are returned.
pub(crate) trait SampleNode: Send + Sync {
    /// Takes back the intent of `worker` for `keys` in `clocks` that was signalled under `id`; a
    /// key is listed as often as it was signalled.
    fn take_back(&self, worker: WorkerId, id: SignalId, keys: &[Key], clocks: Range<Clock>);

    /// Counts `keys` keys of a sample of `worker` that were not pulled.
    fn note_unpulled(&self, worker: WorkerId, keys: u64);
}

impl Sample {
    /// Maximum number of keys in one sample.
    pub const KEYS_MAX: usize = 1 << 20;

    /// Creates a sample of `n` keys.
    pub(super) fn new(
        sampling: Arc<Sampling>,
        random: Random,
        clocks: Range<Clock>,
        n: usize,
        preparer: SamplePreparer,
    ) -> Self {
        let mut sample = Self::of_keys(sampling, random, clocks, Vec::new(), preparer);
        sample.left = n;
        if sample.sampling.scheme != Scheme::Local {
            sample.chosen = (0..n).map(|_| sample.draw_unused()).collect();
            sample.used = HashMap::default();
        }
        sample
    }

    /// Creates a sample of these keys.
    pub(super) fn of_keys(
        sampling: Arc<Sampling>,
        random: Random,
        clocks: Range<Clock>,
        keys: Vec<Key>,
        preparer: SamplePreparer,
    ) -> Self {
        Self {
            sampling,
            random,
            clocks,
            left: keys.len(),
            chosen: keys,
            next: 0,
            signalled: None,
            used: HashMap::default(),
            preparer,
        }
    }

    /// Returns the number of keys that have not been pulled.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Gives back everything that the sample holds and has not pulled: intent that was signalled
    /// for it, and the rest of its keys, which are not sampled again. Returns their number, which
    /// [`crate::Stats::sample_unpulled`] counts too.
    ///
    /// Pulled keys stay for the push of their updates: those signalled ahead until the sample's
    /// window ends, others until the clock is raised. Dropping the sample does the same. The time
    /// of the call makes no difference to other samples, whose keys do not depend on it.
    pub fn finish(self) -> usize {
        self.left
    }

    /// Returns the number of elements of each value.
    pub(crate) fn value_len(&self, layout: &Layout) -> usize {
        layout.value_len(self.sampling.keys.start).expect("the builder checked the range")
    }

    /// Returns the window in which the sample is pulled and its updates are pushed.
    pub(crate) fn clocks(&self) -> Range<Clock> {
        self.clocks.clone()
    }

    /// Returns the id of the signals for the sample's keys that last until its window ends.
    pub(crate) fn signal(&self) -> SignalId {
        self.preparer.signal
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.sampling.scheme
    }

    /// Checks that this worker, of the cluster that samples by `sampling`, may pull the sample.
    pub(crate) fn check_preparer(
        &self,
        sampling: Option<&Arc<Sampling>>,
        node: NodeId,
        worker: WorkerId,
    ) -> Result<(), OpError> {
        let of_cluster = sampling.is_some_and(|sampling| Arc::ptr_eq(sampling, &self.sampling));
        if of_cluster && (self.preparer.node, self.preparer.worker) == (node, worker) {
            Ok(())
        } else {
            Err(OpError::ForeignSample { node: self.preparer.node, worker: self.preparer.worker })
        }
    }

    /// Returns the chosen keys that have not been pulled, in ascending order, each once; the caller
    /// signals intent for them until the window ends.
    pub(crate) fn announce(&mut self) -> Vec<Key> {
        let mut keys = self.chosen[self.next..].to_vec();
        keys.sort_unstable();
        keys.dedup();
        self.signalled = Some(self.clocks());
        keys
    }

    /// Removes `n` keys from the sample.
    pub(crate) fn take(&mut self, n: usize) -> Result<(), OpError> {
        if n > self.left {
            return Err(OpError::SampleExhausted { left: self.left, asked: n });
        }
        self.left -= n;
        Ok(())
    }

    /// Returns the next `n` keys of a sequence that was chosen as a whole.
    pub(crate) fn next_chosen(&mut self, n: usize) -> &[Key] {
        self.next += n;
        &self.chosen[self.next - n..self.next]
    }

    /// Chooses all keys that are left under scheme `Local`, and returns those newly chosen.
    pub(crate) fn choose(&mut self, mut is_local: impl FnMut(Key) -> bool) -> &[Key] {
        let before = self.chosen.len();
        self.choose_up_to(self.next + self.left, &mut is_local);
        &self.chosen[before..]
    }

    /// Returns the next `n` keys of scheme `Local`, as many as [`Sample::take`] has removed.
    /// [`Sample::next_local`] yields them one by one, unless another has to replace one.
    pub(crate) fn upcoming(&mut self, n: usize, mut is_local: impl FnMut(Key) -> bool) -> &[Key] {
        self.choose_up_to(self.next + n, &mut is_local);
        &self.chosen[self.next..self.next + n]
    }

    fn choose_up_to(&mut self, len: usize, is_local: &mut impl FnMut(Key) -> bool) {
        if self.sampling.with_replacement {
            self.draw_up_to(len, is_local);
        }
        while self.chosen.len() < len {
            let (key, _) = self.next_free_local(is_local);
            self.chosen.push(key);
        }
    }

    /// Draws keys until the sample has `len` chosen ones, or too many are elsewhere. Branch-free,
    /// as the processor cannot predict which keys are local: each key is written, and counted if
    /// local.
    fn draw_up_to(&mut self, len: usize, is_local: &mut impl FnMut(Key) -> bool) {
        let chosen = self.chosen.len();
        let draws = DRAWS * len.saturating_sub(chosen);
        self.chosen.resize(len.max(chosen), Key(0));
        let room = &mut self.chosen[chosen..];
        // Kept in registers while drawing.
        let mut random = self.random.clone();
        let mut found = 0;
        for _ in 0..draws {
            let Some(place) = room.get_mut(found) else { break };
            *place = self.sampling.draw(&mut random);
            found += usize::from(is_local(*place));
        }
        self.random = random;
        self.chosen.truncate(chosen + found);
    }

    /// Records that intent is signalled in this window for all chosen keys.
    pub(crate) fn note_signalled(&mut self, window: Range<Clock>) {
        self.signalled = Some(window);
    }

    pub(crate) fn is_signalled(&self) -> bool {
        self.signalled.is_some()
    }

    /// Returns the next key of scheme `Local` and true if it is local: the key announced by
    /// [`Sample::upcoming`] if `try_local` returns true for it, else the first key for which it
    /// does, from a drawn one upward. If there is none, returns the drawn key and false.
    pub(crate) fn next_local(&mut self, mut try_local: impl FnMut(Key) -> bool) -> (Key, bool) {
        let chosen = self.chosen[self.next];
        self.next += 1;
        if try_local(chosen) {
            return (chosen, true);
        }
        // The key has left since, and becomes free again: else a sample of all keys would find
        // none.
        self.used.remove(&chosen);
        self.next_free_local(&mut try_local)
    }

    fn next_free_local(&mut self, try_local: &mut impl FnMut(Key) -> bool) -> (Key, bool) {
        let mut drawn = self.draw_free();
        for _ in 1..DRAWS {
            if try_local(drawn) {
                self.note_used(drawn);
                return (drawn, true);
            }
            drawn = self.draw_free();
        }
        let mut key = drawn;
        for _ in 0..SCAN_MAX.min(self.sampling.len()) {
            if !self.is_used(key) && self.sampling.can_draw(key) && try_local(key) {
                self.note_used(key);
                return (key, true);
            }
            key = self.sampling.after(key);
        }
        self.note_used(drawn);
        (drawn, false)
    }

    /// Draws a key and marks it used.
    fn draw_unused(&mut self) -> Key {
        let key = self.draw_free();
        self.note_used(key);
        key
    }

    /// Draws a key that is not used.
    fn draw_free(&mut self) -> Key {
        let mut key = self.sampling.draw(&mut self.random);
        for _ in 1..DRAWS_IN_VAIN {
            if !self.is_used(key) {
                return key;
            }
            key = self.sampling.draw(&mut self.random);
        }
        self.sampling.next_unused(key, |key| self.is_used(key))
    }

    fn is_used(&self, key: Key) -> bool {
        !self.sampling.with_replacement && self.used.contains_key(&key)
    }

    fn note_used(&mut self, key: Key) {
        if !self.sampling.with_replacement {
            self.used.insert(key, ());
        }
    }

    /// Returns the keys that were signalled and not pulled, each as often as it was signalled.
    fn unpulled(&mut self) -> Vec<Key> {
        let mut keys = self.chosen.split_off(self.next);
        if self.sampling.scheme.announces() {
            // Each key was signalled once, however often it occurs in the sample.
            self.chosen.sort_unstable();
            keys.sort_unstable();
            keys.dedup();
            keys.retain(|key| self.chosen.binary_search(key).is_err());
        }
        keys
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        if self.left == 0 {
            return;
        }
        self.preparer.shared.note_unpulled(self.preparer.worker, self.left as u64);
        if let Some(clocks) = mem::take(&mut self.signalled) {
            let keys = self.unpulled();
            self.preparer.shared.take_back(
                self.preparer.worker,
                self.preparer.signal,
                &keys,
                clocks,
            );
        }
    }
}

impl fmt::Debug for SamplePreparer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.worker, self.node)
    }
}

/// Draws before the scan for the next local key: with a quarter of the keys local, one in ten needs
/// the scan.
const DRAWS: usize = 8;

/// Keys that a scan looks at: with a 256th of the keys local, one scan in fifty finds none. The
/// scan then costs about as much as the pull that it was to save, which is done all the same; on a
/// vast range with few local keys longer scans would never pay.
const SCAN_MAX: u64 = 1_024;
