//! Who trains on which facts, and in which order: a pure function of the seed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The part of one worker: positions in the training data, in another order every epoch.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    positions: Vec<u32>,
    random: Xoshiro256PlusPlus,
}

impl Order {
    /// The part of worker `worker` of `workers` (over all nodes) of `len` facts: of a shuffle common to all, the
    /// contiguous part that makes sizes differ by one at most.
    pub(crate) fn new(seed: u64, len: usize, worker: usize, workers: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut all: Vec<u32> = (0..len as u32).collect();
        all.shuffle(&mut random);
        let positions = all[len * worker / workers..len * (worker + 1) / workers].to_vec();
        for _ in 0..=worker {
            random.jump();
        }
        Self { positions, random }
    }

    /// Shuffles for the next epoch and gives the positions.
    pub(crate) fn next_epoch(&mut self) -> &[u32] {
        self.positions.shuffle(&mut self.random);
        &self.positions
    }

    /// Number of facts of this part.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_data_once_and_differ_between_epochs() {
        let mut parts: Vec<Order> = (0..3).map(|worker| Order::new(9, 100, worker, 3)).collect();
        assert!(parts.iter().all(|part| (33..=34).contains(&part.len())));
        let mut epoch = || parts.iter_mut().flat_map(|part| part.next_epoch().to_vec()).collect::<Vec<u32>>();
        let (first, second) = (epoch(), epoch());
        assert_ne!(first, second);
        for mut epoch in [first, second] {
            epoch.sort_unstable();
            assert!(epoch.into_iter().eq(0..100));
        }
    }

    #[test]
    fn more_workers_than_facts_leave_some_without() {
        let lens: Vec<usize> = (0..4).map(|worker| Order::new(9, 2, worker, 4).len()).collect();
        assert_eq!(lens.iter().sum::<usize>(), 2);
    }
}
