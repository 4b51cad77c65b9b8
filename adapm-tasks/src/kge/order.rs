//! The division of facts among workers, and their order: a pure function of the seed and the epoch.
//!
//! Facts are dealt to workers anew every epoch: by chance, by their rarer entity, or by the part of
//! the graph that it is in ([`Dealing`]). By entity, most entities are needed by one node only for
//! as long as an epoch lasts; by part, for the whole run.
//!
//! # Parts
//! The parts of a graph are equally large and have few facts between them.
//!
//! Label propagation: an entity joins the part in which most of its neighbours are, the less so the
//! fuller that part is (after J. Ugander and L. Backstrom: Balanced label propagation for
//! partitioning massive graphs, WSDM 2013, who bound the moves between parts instead; HET-GMP, too,
//! partitions its graph of samples and embeddings before it trains).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::graph::Triple;
use crate::partition::PartitionFile;
use crate::run::random;
use crate::run::topology::WorkerSlot;

/// The part of one worker: positions in the training data, in another order every epoch. 4 bytes
/// for each entity, and 4 more while an epoch is dealt; 4 for each fact of the part, and for a
/// moment 24 for each with an entity of another part; an epoch looks at all facts once.
#[derive(Clone, Debug)]
pub(crate) struct Order<'a> {
    train: &'a [Triple],
    /// The number of facts of each entity, as subject or object.
    degrees: Vec<u32>,
    dealing: Dealing<'a>,
    seed: u64,
    slot: WorkerSlot,
    /// Of each node.
    workers: &'a [usize],
    positions: Vec<u32>,
}

/// The dealing of facts to workers. `step` facts are one step: the more of an entity's facts are in
/// it, the more gradients come from the same value of it, and the more of an entity's facts a node
/// has, the more of them are in a step.
#[derive(Clone, Debug)]
enum Dealing<'a> {
    /// To any worker: where steps are many facts of few entities.
    Chance,
    /// Those with the same rarer entity to the same worker, another one every epoch: while an
    /// average entity is the rarer one of at most a fact in eight steps. Against that rule, CoDEx-S
    /// on four nodes ended at a mean reciprocal rank of 0.423 instead of 0.435 (means of three
    /// seeds, with the recipe).
    Entity,
    /// To the node in whose part of the graph the rarer entity is, and those with the same rarer
    /// entity to the same of its workers: while a step is one fact. What a node needs of entities
    /// in other parts stands together, so that they come once for many facts. The first epoch is
    /// dealt by entity: negatives come from what is here, and a node that has only ever seen its
    /// own part never learns to tell other parts from it.
    Part(&'a [u32]),
    /// As a partition of facts and keys says.
    Listed(Arc<PartitionFile>),
}

impl<'a> Order<'a> {
    /// Returns the part of the worker in `slot`, of nodes with so many `workers` each, where `step`
    /// facts are one step; `parts` are shared with the other workers of the process.
    pub(crate) fn new(
        seed: u64,
        train: &'a [Triple],
        step: usize,
        (slot, workers): (WorkerSlot, &'a [usize]),
        parts: &'a Parts,
    ) -> Self {
        let entities = train.iter().flat_map(|triple| [triple.subject, triple.object]);
        let mut degrees = vec![0; entities.clone().max().map_or(0, |last| last as usize + 1)];
        entities.for_each(|entity| degrees[entity as usize] += 1);
        let by_entity = step.saturating_mul(8 * slot.all) <= degrees.len();
        let dealing = match step {
            _ if !by_entity => Dealing::Chance,
            0 | 1 => Dealing::Part(parts.get_or_init(|| {
                partition(train, &degrees, workers, &mut random::generator(seed, [PARTS]))
            })),
            _ => Dealing::Entity,
        };
        Self { train, degrees, dealing, seed, slot, workers, positions: Vec::new() }
    }

    /// Returns the part of the worker in `slot` that a partition lists.
    pub(crate) fn listed(
        seed: u64,
        train: &'a [Triple],
        (slot, workers): (WorkerSlot, &'a [usize]),
        partition: &Arc<PartitionFile>,
    ) -> Self {
        let (dealing, degrees) = (Dealing::Listed(Arc::clone(partition)), Vec::new());
        Self { train, degrees, dealing, seed, slot, workers, positions: Vec::new() }
    }

    /// Deals and shuffles for an epoch, from 1, and returns the positions. The parts' sizes differ
    /// by one at most.
    pub(crate) fn epoch(&mut self, epoch: u32) -> &[u32] {
        let worker = self.slot.number as u64;
        let mut shuffler = random::generator(self.seed, [SHUFFLING, epoch.into(), worker]);
        self.positions.clear();
        self.deal(epoch);
        self.positions.shuffle(&mut shuffler);
        if epoch > 1 {
            self.gather(&mut shuffler);
        }
        &self.positions
    }

    fn deal(&mut self, epoch: u32) {
        let (len, workers) = (self.train.len(), self.slot.all);
        // The numbers of the workers of each node.
        let mut first = 0;
        let of_nodes = self.workers.iter().map(|workers| {
            first += workers;
            first - workers..first
        });
        let of_nodes: Vec<Range<usize>> = of_nodes.collect();
        // By worker, those of its node.
        let same: Vec<&Range<usize>> = of_nodes
            .iter()
            .flat_map(|numbers| std::iter::repeat_n(numbers, numbers.len()))
            .collect();
        if let Dealing::Listed(partition) = &self.dealing {
            self.positions = self.slot.listed(partition.nodes_of_samples(), self.seed, epoch);
            return;
        }
        // The same for all workers.
        let dealer = &mut random::generator(self.seed, [DEALING, epoch.into()]);
        let slots: Vec<u32> = match &self.dealing {
            Dealing::Chance | Dealing::Listed(_) => Vec::new(),
            Dealing::Part(nodes) if epoch > 1 => {
                let of = |node: &u32| {
                    let numbers = &of_nodes[*node as usize];
                    (numbers.start as u32) + dealer.random_range(0..numbers.len() as u32)
                };
                nodes.iter().map(of).collect()
            }
            Dealing::Entity | Dealing::Part(_) => {
                self.degrees.iter().map(|_| dealer.random_range(0..workers as u32)).collect()
            }
        };
        let mut room: Vec<usize> = (0..workers)
            .map(|worker| len * (worker + 1) / workers - len * worker / workers)
            .collect();
        let mut left_over = Vec::new();
        // What finds no room is what comes last: other facts every time.
        let first = dealer.random_range(0..len.max(1));
        for position in (first..len).chain(0..first) {
            let by_entity = || slots[rarer(&self.degrees, &self.train[position])] as usize;
            let mut slot =
                if slots.is_empty() { dealer.random_range(0..workers) } else { by_entity() };
            if room[slot] == 0 && !slots.is_empty() {
                // Another worker of the same node.
                slot = same[slot].clone().find(|slot| room[*slot] > 0).unwrap_or(slot);
            }
            if room[slot] == 0 {
                left_over.push(position as u32);
                continue;
            }
            room[slot] -= 1;
            if slot == self.slot.number {
                self.positions.push(position as u32);
            }
        }
        let before: usize = room[..self.slot.number].iter().sum();
        self.positions.extend_from_slice(&left_over[before..before + room[self.slot.number]]);
    }

    /// Lets facts with entities of other parts change places with each other, so that some of the
    /// same entity follow each other.
    fn gather(&mut self, shuffler: &mut Xoshiro256PlusPlus) {
        let Dealing::Part(nodes) = &self.dealing else { return };
        let (train, node) = (self.train, self.slot.node as u32);
        let foreign = |position: u32| {
            let triple = &train[position as usize];
            [triple.subject, triple.object]
                .into_iter()
                .find(|entity| nodes[*entity as usize] != node)
        };
        let facts = self.positions.iter();
        let mut gathered: Vec<(u32, u32)> = facts
            .filter_map(|position| foreign(*position).map(|entity| (entity, *position)))
            .collect();
        // The sort is stable: facts of an entity stay in the order of the shuffle.
        gathered.sort_by_key(|(entity, _)| *entity);
        let of_an_entity = gathered.chunk_by(|one, other| one.0 == other.0);
        let mut groups: Vec<_> = of_an_entity.flat_map(|facts| facts.chunks(GROUP)).collect();
        groups.shuffle(shuffler);
        let mut gathered = groups.into_iter().flatten();
        for position in self.positions.iter_mut().filter(|position| foreign(**position).is_some()) {
            (_, *position) = *gathered.next().expect("as many as were gathered");
        }
    }
}

/// The part of each entity, found once for all workers of a process.
pub(crate) type Parts = OnceLock<Vec<u32>>;

/// Returns the part of each entity, `[degrees.len()]`, so that the parts' entities are the rarer
/// ones of about as many facts for each of their `workers`.
///
/// Looks [`SCANS`] times at all facts; 4 bytes for each entity, and one more for each entity and
/// part meanwhile.
pub(crate) fn partition(
    train: &[Triple],
    degrees: &[u32],
    workers: &[usize],
    dealer: &mut Xoshiro256PlusPlus,
) -> Vec<u32> {
    let (parts, all) = (workers.len(), workers.iter().sum::<usize>());
    let mut of: Vec<u32> = degrees.iter().map(|_| dealer.random_range(0..parts as u32)).collect();
    if parts == 1 {
        return of;
    }
    let mut weights = vec![0_u32; degrees.len()];
    train.iter().for_each(|triple| weights[rarer(degrees, triple)] += 1);
    let mut loads = vec![0_u64; parts];
    of.iter().zip(&weights).for_each(|(part, weight)| loads[*part as usize] += u64::from(*weight));
    let fair: Vec<u64> =
        workers.iter().map(|workers| (train.len() * workers).div_ceil(all) as u64).collect();
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
                let room = (fair[part] * (STEEPNESS + 1))
                    .saturating_sub((loads[part] + weight) * STEEPNESS);
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

/// Counts the neighbours of a block's entities in each part: `votes`
/// `[entities of the block × parts]`.
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

/// Returns the entity of a fact that is in fewer facts.
pub(crate) fn rarer(degrees: &[u32], triple: &Triple) -> usize {
    let [subject, object] = [triple.subject, triple.object].map(|entity| entity as usize);
    if degrees[subject] <= degrees[object] { subject } else { object }
}

/// Purposes of generators.
const PARTS: u64 = 1;
const DEALING: u64 = 2;
const SHUFFLING: u64 = 3;

/// Facts of an entity that follow each other, most of them with some of the node's own part
/// between. More would bring the same entity seldomer, at the price of steps that are all about it.
const GROUP: usize = 16;

/// Entities that move at the same time are one of this many blocks: if all did, neighbours would
/// follow each other to and fro.
const BLOCKS: usize = 4;

/// FB15k-237 in two parts: 0.16 of its facts are between parts after 16 scans, 0.15 after 32, 0.14
/// after 64; in four 0.33, 0.30, 0.28. By chance it would be 0.50 and 0.75.
const SCANS: usize = 32;

/// A part that is a tenth larger than the others attracts no vertex.
const STEEPNESS: u64 = 10;

#[cfg(test)]
mod tests;
