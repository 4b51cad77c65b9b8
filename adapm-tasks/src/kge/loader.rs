//! A worker's loader: prepares chunks ahead, with all that a step needs to know before it starts,
//! draws their samples and signals intent for their keys (AdaPM §3, Fig. 2).

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};

use crate::kge::config::{Negatives, TrainConfig};
use crate::kge::graph::Triple;
use crate::kge::model::Shape;
use crate::kge::order::Order;
use crate::run::parameters::IntentSignaler;
use crate::run::queue::{Cursor, Over, Queue};

/// The loader's view of a step.
#[derive(Clone, Debug)]
pub(crate) struct Loader<'a> {
    pub(crate) train: &'a [Triple],
    pub(crate) order: Order<'a>,
    pub(crate) planner: Planner,
    /// Positives of a chunk.
    pub(crate) chunk: usize,
    /// Keys of a sample per step: with independent negatives, of both sides.
    pub(crate) sampled: usize,
}

impl Loader<'_> {
    /// Prepares the chunks of an epoch from the `start` on, and returns the worker's clock after
    /// them.
    pub(crate) fn epoch<A: IntentSignaler>(
        &mut self,
        start: Cursor,
        signaler: &mut A,
        queue: &Queue<Chunk<A::Sample>>,
    ) -> Result<Clock, Over> {
        let mut clock = start.clock;
        let chunks = self.order.epoch(start.round.epoch).chunks(self.chunk);
        for positions in chunks.skip(start.batch) {
            let triples = positions.iter().map(|position| self.train[*position as usize]);
            let chunk = prepare(self.planner, self.sampled, triples, clock, signaler)?;
            clock = clock + chunk.steps;
            queue.send(chunk)?;
        }
        Ok(clock)
    }
}

fn prepare<A: IntentSignaler>(
    planner: Planner,
    sampled: usize,
    triples: impl Iterator<Item = Triple> + Clone,
    clock: Clock,
    signaler: &mut A,
) -> Result<Chunk<A::Sample>, OpError> {
    let chunk = planner.chunk(triples, clock, ());
    let steps = chunk.steps;
    let sample = signaler.prepare_sample(sampled * steps as usize, clock..clock + steps)?;
    let window = clock..clock + steps;
    match planner.negatives {
        // Each key is there once.
        Negatives::Shared => signaler.signal_intent(&chunk.keys, window)?,
        Negatives::Independent => {
            let mut keys = chunk.keys.clone();
            keys.sort_unstable();
            keys.dedup();
            signaler.signal_intent(&keys, window)?;
        }
    }
    let Chunk { positives, keys, floats, relation_floats, clock, sample: (), steps } = chunk;
    Ok(Chunk { positives, keys, floats, relation_floats, clock, sample, steps })
}

/// Positives of a chunk, and chunks that wait in the queue, for a configuration whose steps are
/// `step` positives.
///
/// Shared negatives: a chunk is a step, and the queue holds the larger of 1000 positives and 16
/// chunks. Independent: a step is one positive, and the queue holds 2048; chunks only spare
/// hand-overs between threads, and signals: each key of a chunk is signalled once, for all its
/// steps. A task that localizes chooses the distance.
pub(crate) fn pace(config: &TrainConfig, step: usize, localizes: bool) -> (usize, usize) {
    let steps = |points: usize| if localizes { config.run.localize_ahead as usize } else { points };
    match config.negatives {
        Negatives::Shared => (step, steps(POINTS_AHEAD.div_ceil(step).max(CLOCKS_AHEAD))),
        Negatives::Independent => {
            let ahead = steps(STEPS_AHEAD);
            let chunk = (ahead / 8).clamp(1, POINTS_AT_ONCE);
            (chunk, ahead.div_ceil(chunk))
        }
    }
}

/// A positive of a chunk: its entities' keys, and where the values of its parts start among those
/// that are pulled with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Positive {
    pub(crate) subject_key: Key,
    pub(crate) object_key: Key,
    pub(crate) subject: usize,
    pub(crate) relation: usize,
    /// The inverse relation; the relation itself without inverse relations.
    pub(crate) inverse: usize,
    pub(crate) object: usize,
}

/// Positives that are prepared together.
#[derive(Clone, Debug)]
pub(crate) struct Chunk<S> {
    pub(crate) positives: Vec<Positive>,
    /// The keys to pull: with shared negatives the keys of the chunk, ascending, each once; with
    /// independent ones [`Planner::keys_of_positive`] keys for each positive in turn.
    pub(crate) keys: Vec<Key>,
    /// Floats of the values of `keys`, with shared negatives; of those of one positive, with
    /// independent ones.
    pub(crate) floats: usize,
    /// The start of the relations' values among them.
    pub(crate) relation_floats: usize,
    /// The worker's clock at the first step of the chunk.
    pub(crate) clock: Clock,
    /// Negatives, prepared.
    pub(crate) sample: S,
    /// The clocks that the chunk takes.
    pub(crate) steps: u64,
}

/// Cuts chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner {
    pub(crate) shape: Shape,
    pub(crate) negatives: Negatives,
    /// Relations of the graph if every relation has an inverse, else `None`.
    pub(crate) inverse_offset: Option<u64>,
}

impl Planner {
    /// Returns the keys of a triple: subject, object, relation, and its inverse if relations have
    /// one (else the relation again).
    pub(crate) fn keys_of(self, triple: &Triple) -> [Key; 4] {
        let relation = self.shape.entities + u64::from(triple.relation);
        [
            Key(u64::from(triple.subject)),
            Key(u64::from(triple.object)),
            Key(relation),
            Key(relation + self.inverse_offset.unwrap_or(0)),
        ]
    }

    /// Keys that a positive has to itself with independent negatives.
    pub(crate) fn keys_of_positive(self) -> usize {
        if self.inverse_offset.is_some() { 4 } else { 3 }
    }

    /// Plans a chunk of `triples` that starts at `clock`, with a prepared sample.
    pub(crate) fn chunk<S>(
        self,
        triples: impl Iterator<Item = Triple> + Clone,
        clock: Clock,
        sample: S,
    ) -> Chunk<S> {
        match self.negatives {
            Negatives::Shared => self.shared(triples, clock, sample),
            Negatives::Independent => self.independent(triples, clock, sample),
        }
    }

    fn shared<S>(
        self,
        triples: impl Iterator<Item = Triple> + Clone,
        clock: Clock,
        sample: S,
    ) -> Chunk<S> {
        let mut keys: Vec<Key> = triples.clone().flat_map(|triple| self.keys_of(&triple)).collect();
        keys.sort_unstable();
        keys.dedup();
        let entities = keys.partition_point(|key| key.0 < self.shape.entities);
        let relation_floats = entities * self.shape.entity_len;
        let start = |key: Key| {
            let at = keys.partition_point(|other| *other < key);
            at.min(entities) * self.shape.entity_len
                + at.saturating_sub(entities) * self.shape.relation_len
        };
        let positives = triples.map(|triple| {
            let [subject_key, object_key, relation, inverse] = self.keys_of(&triple);
            Positive {
                subject_key,
                object_key,
                subject: start(subject_key),
                relation: start(relation),
                inverse: start(inverse),
                object: start(object_key),
            }
        });
        let positives = positives.collect();
        let floats = relation_floats + (keys.len() - entities) * self.shape.relation_len;
        Chunk { positives, keys, floats, relation_floats, clock, sample, steps: 1 }
    }

    fn independent<S>(
        self,
        triples: impl Iterator<Item = Triple>,
        clock: Clock,
        sample: S,
    ) -> Chunk<S> {
        let Shape { entity_len, relation_len, .. } = self.shape;
        let (mut positives, mut keys) = (Vec::new(), Vec::new());
        let relation = 2 * entity_len;
        let inverse = relation + if self.inverse_offset.is_some() { relation_len } else { 0 };
        for triple in triples {
            let of_triple = self.keys_of(&triple);
            let [subject_key, object_key, ..] = of_triple;
            positives.push(Positive {
                subject_key,
                object_key,
                subject: 0,
                object: entity_len,
                relation,
                inverse,
            });
            keys.extend_from_slice(&of_triple[..self.keys_of_positive()]);
        }
        let (floats, steps) = (inverse + relation_len, positives.len() as u64);
        Chunk { positives, keys, floats, relation_floats: relation, clock, sample, steps }
    }
}

const POINTS_AHEAD: usize = 1000;
/// Steps of one positive: twice as many as the papers' tasks signal ahead. A step takes some
/// microseconds, 1,000 of them hardly more than the rounds in which nodes ask for what they need,
/// and workers waited. With 4,096 they hardly wait, but more keys are replicas, which are
/// refreshed.
const STEPS_AHEAD: usize = 2048;
const CLOCKS_AHEAD: usize = 16;
const POINTS_AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Range;

    use adapm_core::Key;

    use super::*;
    use crate::kge::model::Shape;
    use crate::kge::order::Parts;
    use crate::run::queue;
    use crate::run::queue::Round;
    use crate::run::topology::WorkerSlot;

    /// Records intent signals.
    struct Recorder(Vec<(Vec<Key>, Range<Clock>)>, usize);

    impl IntentSignaler for &mut Recorder {
        type Sample = usize;

        fn signal_intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
            self.0.push((keys.to_vec(), clocks));
            Ok(())
        }

        fn skip_samples(&mut self, _: u64) {}

        fn prepare_sample(&mut self, n: usize, _: Range<Clock>) -> Result<usize, OpError> {
            self.1 += n;
            Ok(n)
        }
    }

    fn run(negatives: Negatives, chunk: usize) -> (Recorder, Vec<Chunk<usize>>) {
        let train: Vec<Triple> =
            (0..10).map(|i| Triple { subject: i, relation: 0, object: i + 1 }).collect();
        let shape = Shape { entities: 11, relations: 1, entity_len: 2, relation_len: 2 };
        let planner = Planner { shape, negatives, inverse_offset: None };
        let parts = Parts::new();
        let order = Order::new(1, &train, 1, (WorkerSlot::ONLY, &[1]), &parts);
        let mut loader = Loader { train: &train, order, planner, chunk, sampled: 6 };
        let (mut recorder, (queue, mut batches)) = (Recorder(Vec::new(), 0), queue::queue(100));
        queue.fill(Cursor::START, 2, 1, |start, queue| {
            loader.epoch(start, &mut &mut recorder, queue)
        });
        let mut chunks = Vec::new();
        for epoch in 1..=2 {
            let next = || batches.next(Round { epoch, index: 0 }).expect("nothing fails");
            let before = chunks.len();
            chunks.extend(std::iter::from_fn(next));
            assert_eq!(chunks.len() - before, 10_usize.div_ceil(chunk));
        }
        (recorder, chunks)
    }

    #[test]
    fn a_shared_chunk_is_one_clock_and_its_keys_are_announced_for_it() {
        let (recorder, chunks) = run(Negatives::Shared, 4);
        assert_eq!(
            chunks.iter().map(|chunk| chunk.clock.0).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5]
        );
        for (chunk, (keys, clocks)) in chunks.iter().zip(&recorder.0) {
            assert_eq!((keys, clocks), (&chunk.keys, &(chunk.clock..chunk.clock + 1)));
        }
        assert_eq!((recorder.0.len(), recorder.1), (6, 36));
    }

    #[test]
    fn independent_positives_are_a_clock_each() {
        let (recorder, chunks) = run(Negatives::Independent, 4);
        assert_eq!(
            chunks.iter().map(|chunk| chunk.clock.0).collect::<Vec<_>>(),
            [0, 4, 8, 10, 14, 18]
        );
        assert_eq!(recorder.1, 120);
        for (chunk, (keys, clocks)) in chunks.iter().zip(&recorder.0) {
            assert_eq!(clocks, &(chunk.clock..chunk.clock + chunk.steps), "a signal for all steps");
            let once: BTreeSet<Key> = chunk.keys.iter().copied().collect();
            assert!(keys.iter().eq(&once) && keys.len() < chunk.keys.len(), "each key once");
        }
        assert_eq!(recorder.0.len(), chunks.len());
    }

    #[test]
    fn the_queue_is_at_least_as_long_as_the_papers_look_ahead() {
        let mut config = TrainConfig::default();
        assert_eq!(pace(&config, 256, false), (256, 16));
        assert_eq!(pace(&config, 256, true), (256, 8));
        assert_eq!(pace(&config, 10, false), (10, 100));
        config.negatives = Negatives::Independent;
        assert_eq!(pace(&config, 1, false), (64, 32));
        assert_eq!(pace(&config, 1, true), (1, 8));
    }

    const SHAPE: Shape = Shape { entities: 10, relations: 4, entity_len: 4, relation_len: 6 };

    fn triples() -> [Triple; 2] {
        let triple = |subject, relation, object| Triple { subject, relation, object };
        [triple(7, 1, 2), triple(2, 0, 2)]
    }

    #[test]
    fn a_shared_chunk_lists_each_key_once_and_knows_where_its_value_lies() {
        let planner =
            Planner { shape: SHAPE, negatives: Negatives::Shared, inverse_offset: Some(2) };
        let chunk = planner.chunk(triples().into_iter(), Clock(0), ());
        assert_eq!(chunk.keys, [2, 7, 10, 11, 12, 13].map(Key));
        assert_eq!((chunk.relation_floats, chunk.floats, chunk.steps), (8, 32, 1));
        let first = chunk.positives[0];
        assert_eq!((first.subject, first.relation, first.inverse, first.object), (4, 14, 26, 0));
        let second = chunk.positives[1];
        assert_eq!((second.subject, second.relation, second.inverse, second.object), (0, 8, 20, 0));
        let without =
            Planner { inverse_offset: None, ..planner }.chunk(triples().into_iter(), Clock(0), ());
        assert_eq!(without.positives[0].inverse, without.positives[0].relation);
    }

    #[test]
    fn independent_positives_have_their_keys_to_themselves() {
        let planner =
            Planner { shape: SHAPE, negatives: Negatives::Independent, inverse_offset: None };
        let chunk = planner.chunk(triples().into_iter(), Clock(5), ());
        assert_eq!(chunk.keys, [7, 2, 11, 2, 2, 10].map(Key));
        assert_eq!((chunk.floats, chunk.relation_floats, chunk.steps), (14, 8, 2));
        let positive = chunk.positives[1];
        assert_eq!(
            (positive.subject, positive.object, positive.relation, positive.inverse),
            (0, 4, 8, 8)
        );
    }
}
