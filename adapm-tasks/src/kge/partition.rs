//! Which node trains on an entity's facts: parts of a graph that are equally large and have few facts between them.
//!
//! Label propagation: an entity joins the part in which most of its neighbours are, the less so the fuller that part is (after
//! J. Ugander and L. Backstrom: Balanced label propagation for partitioning massive graphs, WSDM 2013, who bound the moves between
//! parts instead; HET-GMP, too, partitions its graph of samples and embeddings before it trains).

use std::sync::OnceLock;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::graph::Triple;

/// The part of each entity, found once for all workers of a process.
pub(crate) type Parts = OnceLock<Vec<u32>>;

/// The part of each entity, `[degrees.len()]`, so that the parts' entities are the rarer ones of about as many facts each.
///
/// Looks [`SCANS`] times at all facts; 4 bytes for each entity, and one more for each entity and part meanwhile.
pub(crate) fn partition(
    train: &[Triple],
    degrees: &[u32],
    parts: usize,
    dealer: &mut Xoshiro256PlusPlus,
) -> Vec<u32> {
    let mut of: Vec<u32> = degrees.iter().map(|_| dealer.random_range(0..parts as u32)).collect();
    if parts == 1 {
        return of;
    }
    let mut weights = vec![0_u32; degrees.len()];
    train.iter().for_each(|triple| weights[rarer(degrees, triple)] += 1);
    let mut loads = vec![0_u64; parts];
    of.iter().zip(&weights).for_each(|(part, weight)| loads[*part as usize] += u64::from(*weight));
    let fair = train.len().div_ceil(parts) as u64;
    let mut votes = vec![0_u32; degrees.len().div_ceil(BLOCKS) * parts];
    for block in (0..BLOCKS).cycle().take(SCANS) {
        count_votes(train, &of, block, parts, &mut votes);
        let members = degrees.len().saturating_sub(block).div_ceil(BLOCKS);
        // Who comes first finds more room: others every time.
        let first = dealer.random_range(0..members.max(1));
        for member in (first..members).chain(0..first) {
            let entity = member * BLOCKS + block;
            let (before, weight) = (of[entity] as usize, u64::from(weights[entity]));
            loads[before] -= weight;
            let score = |part: usize| {
                let room = (fair * (STEEPNESS + 1)).saturating_sub((loads[part] + weight) * STEEPNESS);
                u128::from(votes[member * parts + part]) * u128::from(room)
            };
            let better = |best, part| if score(part) > score(best) { part } else { best };
            let best = (0..parts).fold(before, better);
            loads[best] += weight;
            of[entity] = best as u32;
        }
    }
    of
}

/// How many neighbours in each part the entities of a block have: `votes` `[entities of the block × parts]`.
fn count_votes(train: &[Triple], of: &[u32], block: usize, parts: usize, votes: &mut [u32]) {
    votes.fill(0);
    for triple in train {
        let [subject, object] = [triple.subject, triple.object].map(|entity| entity as usize);
        for (entity, neighbour) in [(subject, object), (object, subject)] {
            if entity % BLOCKS == block {
                votes[entity / BLOCKS * parts + of[neighbour] as usize] += 1;
            }
        }
    }
}

/// The entity of a fact that is in fewer facts.
pub(crate) fn rarer(degrees: &[u32], triple: &Triple) -> usize {
    let [subject, object] = [triple.subject, triple.object].map(|entity| entity as usize);
    if degrees[subject] <= degrees[object] { subject } else { object }
}

/// Entities that move at the same time are one of this many blocks: if all did, neighbours would follow each other to and fro.
const BLOCKS: usize = 4;

/// FB15k-237 in two parts: 0.16 of its facts are between parts after 16 scans, 0.15 after 32, 0.14 after 64; in four 0.33, 0.30,
/// 0.28. By chance it would be 0.50 and 0.75.
const SCANS: usize = 32;

/// A part that is a tenth larger than the others attracts nobody.
const STEEPNESS: u64 = 10;

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// Four families of 30 that know each other well, and few of the others.
    fn families() -> Vec<Triple> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut fact = |_| {
            let subject = random.random_range(0..120);
            let stranger = random.random_range(0..10) == 0;
            let family = if stranger { random.random_range(0..4) } else { subject % 4 };
            Triple { subject, relation: 0, object: random.random_range(0..30) * 4 + family }
        };
        (0..3_000).map(&mut fact).collect()
    }

    fn degrees(train: &[Triple]) -> Vec<u32> {
        let mut degrees = vec![0; 120];
        train
            .iter()
            .flat_map(|fact| [fact.subject, fact.object])
            .for_each(|entity| degrees[entity as usize] += 1);
        degrees
    }

    #[test]
    fn few_facts_are_between_parts_of_the_same_size() {
        let train = families();
        let degrees = degrees(&train);
        // By chance, a half, two thirds and three quarters of the facts are between parts.
        for (parts, mean_max) in [(1, 0.0), (2, 0.2), (3, 0.4), (4, 0.5)] {
            let of = |seed| partition(&train, &degrees, parts, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
            assert_eq!(of(1), of(1), "a function of the seed");
            let mut between = 0;
            for seed in 0..20 {
                let of = of(seed);
                between +=
                    train.iter().filter(|fact| of[fact.subject as usize] != of[fact.object as usize]).count();
                let mut loads = vec![0; parts];
                train.iter().for_each(|fact| loads[of[rarer(&degrees, fact)] as usize] += 1);
                let largest = loads.iter().max().expect("there are parts");
                assert!(largest * parts <= train.len() * 11 / 10, "{parts} parts, seed {seed}: {loads:?}");
            }
            let share = between as f64 / (20 * train.len()) as f64;
            assert!(share <= mean_max, "{parts} parts: {share}");
        }
    }

    #[test]
    fn no_facts_and_more_parts_than_entities_are_fine() {
        let mut dealer = Xoshiro256PlusPlus::seed_from_u64(1);
        assert!(partition(&[], &[], 3, &mut dealer).is_empty());
        let train = [Triple { subject: 0, relation: 0, object: 1 }];
        assert!(partition(&train, &[1, 1], 9, &mut dealer).iter().all(|part| *part < 9));
    }
}
