//! Who trains on which facts, and in which order: a pure function of the seed.
//!
//! An epoch deals facts to workers by entity: those whose rarer entity is the same go to the same worker, another one every
//! epoch. So most entities are needed by one node only for as long as an epoch lasts; frequent ones are wanted everywhere.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::graph::Triple;

/// The part of one worker: positions in the training data, others and in another order every epoch. 4 bytes for each entity,
/// and for each fact of the part; an epoch looks at all facts once.
#[derive(Clone, Debug)]
pub(crate) struct Order<'a> {
    train: &'a [Triple],
    /// How many subjects and objects each entity is.
    degrees: Vec<u32>,
    worker: usize,
    workers: usize,
    positions: Vec<u32>,
    /// The same for all workers.
    dealer: Xoshiro256PlusPlus,
    shuffler: Xoshiro256PlusPlus,
}

impl<'a> Order<'a> {
    /// The part of worker `worker` of `workers` (over all nodes).
    pub(crate) fn new(seed: u64, train: &'a [Triple], worker: usize, workers: usize) -> Self {
        let dealer = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut shuffler = dealer.clone();
        for _ in 0..=worker {
            shuffler.jump();
        }
        let entities = train.iter().flat_map(|triple| [triple.subject, triple.object]);
        let mut degrees = vec![0; entities.clone().max().map_or(0, |last| last as usize + 1)];
        entities.for_each(|entity| degrees[entity as usize] += 1);
        Self { train, degrees, worker, workers, positions: Vec::new(), dealer, shuffler }
    }

    /// Deals and shuffles for the next epoch and gives the positions. The parts' sizes differ by one at most.
    pub(crate) fn next_epoch(&mut self) -> &[u32] {
        self.positions.clear();
        self.deal();
        self.positions.shuffle(&mut self.shuffler);
        &self.positions
    }

    fn deal(&mut self) {
        let (len, workers) = (self.train.len(), self.workers);
        let seats: Vec<usize> = self.degrees.iter().map(|_| self.dealer.random_range(0..workers)).collect();
        let mut room: Vec<usize> =
            (0..workers).map(|worker| len * (worker + 1) / workers - len * worker / workers).collect();
        let mut left_over = Vec::new();
        for (position, triple) in (0..).zip(self.train) {
            let [subject, object] = [triple.subject, triple.object].map(|entity| entity as usize);
            let rarer = if self.degrees[subject] <= self.degrees[object] { subject } else { object };
            let seat = seats[rarer];
            if room[seat] == 0 {
                left_over.push(position);
                continue;
            }
            room[seat] -= 1;
            if seat == self.worker {
                self.positions.push(position);
            }
        }
        let before: usize = room[..self.worker].iter().sum();
        self.positions.extend_from_slice(&left_over[before..before + room[self.worker]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts of 100 entities: each has some with the next and some with entity 100, which is in more than any other.
    fn facts() -> Vec<Triple> {
        let fact = |subject, object| Triple { subject, relation: 0, object };
        (0..100).flat_map(|entity| [fact(entity, (entity + 1) % 100), fact(100, entity)]).collect()
    }

    fn parts(train: &[Triple], workers: usize) -> Vec<Order<'_>> {
        (0..workers).map(|worker| Order::new(9, train, worker, workers)).collect()
    }

    #[test]
    fn parts_cover_the_data_once_and_differ_between_epochs() {
        let train = facts();
        let mut parts = parts(&train, 3);
        let mut epoch = || parts.iter_mut().map(|part| part.next_epoch().to_vec()).collect::<Vec<_>>();
        let epochs = [epoch(), epoch()];
        assert!(epochs.iter().flatten().all(|part| (66..=67).contains(&part.len())));
        let [mut first, mut second] = epochs.map(|epoch| epoch.concat());
        assert_ne!(first, second);
        for epoch in [&mut first, &mut second] {
            epoch.sort_unstable();
            assert!(epoch.iter().copied().eq(0..200));
        }
    }

    #[test]
    fn facts_with_the_same_rarer_entity_are_together_but_for_what_makes_sizes_equal() {
        let train = facts();
        let mut parts = parts(&train, 2);
        for _ in 0..5 {
            let epoch: Vec<Vec<u32>> = parts.iter_mut().map(|part| part.next_epoch().to_vec()).collect();
            // Both facts that are dealt by an entity: with the next one, which is as rare, and with entity 100.
            let together = (0..100_u32).filter(|entity| {
                let of = |position| epoch.iter().position(|part| part.contains(&position));
                of(2 * entity) == of(2 * entity + 1)
            });
            assert!(together.count() >= 75, "a deal without regard to entities has about 50");
        }
    }

    #[test]
    fn more_workers_than_facts_leave_some_without() {
        let train = facts();
        let lens: Vec<usize> =
            (0..4).map(|worker| Order::new(9, &train[..2], worker, 4).next_epoch().len()).collect();
        assert_eq!(lens.iter().sum::<usize>(), 2);
        assert!(Order::new(9, &[], 0, 1).next_epoch().is_empty());
    }
}
