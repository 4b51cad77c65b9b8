//! Samples: keys that the parameter manager may choose, prepared, chosen and pulled
//! ([`crate::sampling`]).

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adapm_core::config::NodeConfig;
use adapm_core::engine::SignalId;
use adapm_core::error::OpError;
use adapm_core::store::{SLOT_AHEAD, Store};
use adapm_core::{Clock, Key, Value, WorkerId};

use super::Worker;
use crate::node::{NodeShared, check_window};
use crate::promise::Promise;
use crate::sampling::{Sample, SamplePreparer, Sampler, Scheme};
use crate::ticket::Place;

impl<V, S> Worker<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Prepares a sample of `n` keys that will be pulled while the clock is in `clocks`. Schemes
    /// `Preloc` and `Pool` signal intent for its keys in that window, or localize them under
    /// a system whose workers localize; the others send nothing.
    ///
    /// # Errors
    /// [`OpError::NoSampling`] if the cluster was built without sampling, [`OpError::SampleSize`]
    /// above [`Sample::KEYS_MAX`] keys, an empty window, or more keys than there are when sampling
    /// without replacement.
    pub fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<Sample, OpError> {
        let (shared, id) = (Arc::clone(self.shared()), self.id());
        shared.prepare_sample(&mut self.sampler, id, n, clocks)
    }

    /// Chooses the keys of a sample that will be pulled in the next step, and signals intent for
    /// them until the sample's window ends, unless steps are so short that it lasts less than an
    /// engine's round. Sends nothing by itself. Early: more keys have left again by the pull.
    /// Never: the pull does it. Does nothing under schemes other than `Local`, whose keys are
    /// chosen when the sample is prepared.
    ///
    /// # Errors
    /// [`OpError::ForeignSample`] if another worker or cluster prepared it, or a failed cluster.
    pub fn choose_sample(&mut self, sample: &mut Sample) -> Result<(), OpError> {
        self.check_preparer(sample)?;
        if sample.scheme() != Scheme::Local {
            return Ok(());
        }
        let (signal, window) = (sample.signal(), self.clock..sample.clocks().end);
        // Keys that leave before they are pulled are drawn again then.
        let chosen = sample.choose(|key| self.shared().store.is_held(key));
        if self.is_heard(&window) && !chosen.is_empty() {
            self.shared().hold(self.id(), signal, chosen, window.clone())?;
            sample.note_signalled(window);
        }
        Ok(())
    }

    /// Pulls the next `keys.len()` keys of a sample into `keys`, their values into `values`
    /// `[keys.len() × value_len]`.
    ///
    /// Under scheme `Local`, also signals intent until the clock is raised for keys that
    /// [`Worker::choose_sample`] did not: keys that happen to be here stay for the push of their
    /// updates. Not where steps are shorter than an engine's round, as the signal would come too
    /// late. After the window, or before it, pulls are correct and signal nothing for the past.
    ///
    /// # Errors
    /// [`OpError::SampleExhausted`] if fewer keys are left, [`OpError::ForeignSample`] if another
    /// worker or cluster prepared the sample, a wrong length, or a failed cluster. Except for a
    /// failed cluster, nothing was taken off the sample.
    pub fn pull_sample(
        &mut self,
        sample: &mut Sample,
        keys: &mut [Key],
        values: &mut [V],
    ) -> Result<(), OpError> {
        self.check_preparer(sample)?;
        let len = sample.value_len(&self.shared().layout);
        if values.len() != keys.len() * len {
            return Err(OpError::ValueLen { expected: keys.len() * len, given: values.len() });
        }
        sample.take(keys.len())?;
        let held = if sample.scheme() == Scheme::Local {
            let step = self.clock..sample.clocks().end.min(self.clock + 1);
            let is_signalled = sample.is_signalled();
            let replaced = self.pull_local_sample(sample, keys, values, len);
            let unheld = if is_signalled { &replaced } else { &*keys };
            let is_heard = self.is_heard(&step);
            let hold = || self.shared().hold(self.id(), SignalId::default(), unheld, step);
            if is_heard { hold() } else { Ok(()) }
        } else {
            keys.copy_from_slice(sample.next_chosen(keys.len()));
            self.access.pull_local(keys, values);
            Ok(())
        };
        let elsewhere = self.access.refused();
        self.access.counters().add_sampled(keys.len() as u64, (keys.len() - elsewhere) as u64);
        if elsewhere > 0 {
            self.access.finish_pull(values)?;
        }
        held
    }

    /// Chooses and copies local keys; the rest is refused. Returns the keys that replaced chosen
    /// ones.
    fn pull_local_sample(
        &mut self,
        sample: &mut Sample,
        keys: &mut [Key],
        values: &mut [V],
        len: usize,
    ) -> Vec<Key> {
        let store = Arc::clone(&self.shared().store);
        keys.copy_from_slice(sample.upcoming(keys.len(), |key| store.is_held(key)));
        keys.iter().take(SLOT_AHEAD).for_each(|key| store.prefetch(*key));
        let mut replaced = Vec::new();
        for (index, value) in values.chunks_exact_mut(len).enumerate() {
            if let Some(key) = keys.get(index + SLOT_AHEAD) {
                store.prefetch(*key);
            }
            let (chosen, local) = sample.next_local(|key| self.access.try_pull(key, value));
            if chosen != keys[index] {
                keys[index] = chosen;
                replaced.push(chosen);
            }
            if !local {
                self.access.refuse(chosen, Place { offset: index * len, len });
            }
        }
        let fallbacks = self.access.refused() as u64;
        let counters = self.access.counters();
        counters.add_local(keys.len() as u64 - fallbacks);
        counters.add_sample_fallbacks(fallbacks);
        replaced
    }

    /// Checks that this worker, or an intent handle of it, prepared the sample.
    fn check_preparer(&self, sample: &Sample) -> Result<(), OpError> {
        sample.check_preparer(self.shared().sampling.as_ref(), self.node(), self.id())
    }

    /// Returns true if the engines will look at the worker's clock within `window`. Where steps are
    /// shorter than that, a signal costs more than a key that leaves.
    fn is_heard(&mut self, window: &Range<Clock>) -> bool {
        let steps = window.end.0.saturating_sub(window.start.0);
        self.nodes() > 1 && self.pace.lasts(steps, ROUND, self.clock, Instant::now)
    }
}

/// Interval at which engines look at the clocks.
const ROUND: Duration = Duration::from_nanos(NodeConfig::ROUND_NANOS);

impl<S: Store + Send + Sync + 'static> NodeShared<S> {
    /// Prepares a sample for `worker`, and announces its keys if they are chosen.
    pub(super) fn prepare_sample(
        self: &Arc<Self>,
        sampler: &mut Sampler,
        worker: WorkerId,
        n: usize,
        clocks: Range<Clock>,
    ) -> Result<Sample, OpError> {
        check_window(&clocks)?;
        let signal = self.name_sample(worker);
        let preparer =
            SamplePreparer { shared: Arc::clone(self) as _, node: self.node, worker, signal };
        let mut sample = sampler.prepare(n, clocks.clone(), preparer)?;
        if self.nodes == 1 || !sample.scheme().announces() {
            return Ok(sample);
        }
        let keys = sample.announce();
        if self.supply.localizes() && self.clocks.clock(worker) < clocks.end {
            let _alive = self.alive(worker)?;
            // Nothing waits for the outcome: an access waits for a key that is on its way.
            self.localize(worker, &keys, |parts| Arc::new(Promise::new(parts, None)));
        } else {
            self.hold(worker, signal, &keys, clocks)?;
        }
        Ok(sample)
    }
}
