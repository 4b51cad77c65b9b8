//! Balanced hybrid partition of samples and keys (HET-GMP §5.2, Algorithm 1).
//!
//! 1D: each sample and each key belongs to one part. A vertex goes to the part `g` with the highest
//! score, where there is room:
//!
//! ```text
//! score(g) = accesses that become local - samples(g) / mean - keys(g) / mean
//! ```
//!
//! Among equal parts the lowest wins. Accesses are weighted by what they cost, if bandwidths are
//! given. 2D: each part replicates those keys of other parts that it accesses most.
//!
//! All of it follows from the graph and the options: the parts' sizes change with every vertex, in
//! one order, on one thread.
//!
//! # Departures
//! The paper starts from random parts. Here the first pass takes samples in random order, each with
//! those of its keys that have no part yet, into empty parts: of planted communities, random parts
//! cut two to three times as many accesses after five rounds. Where that is cheap, several starts
//! are tried, and the one that cuts least is kept. The paper's scores balance; here no part has
//! more than a twentieth above its share, and one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use adapm_core::Key;
use rand::seq::SliceRandom as _;

use crate::partition::bigraph::{Bigraph, BigraphError, PARTS_MAX};
use crate::partition::{HYBRID, share_max};
use crate::run::generator;

/// How a graph is partitioned.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Rounds in which all vertices are moved, after the first pass.
    pub(crate) rounds: u32,
    /// Share of all keys that a part replicates at most.
    pub(crate) store_rate: f64,
    pub(crate) priority: Priority,
    /// Samples of a batch, by which [`Priority::Soft`] tells what most batches need.
    pub(crate) batch: f64,
    /// What an access costs between parts; `None`: the same for all.
    pub(crate) costs: Option<Costs>,
    pub(crate) seed: u64,
}

impl Options {
    /// Checks the options for so many parts.
    ///
    /// # Errors
    /// A rate that is no share, or costs of other parts.
    pub(crate) fn check(&self, parts: usize) -> Result<(), BigraphError> {
        if !(0.0..=1.0).contains(&self.store_rate) {
            return Err(BigraphError::StoreRate { rate: self.store_rate });
        }
        let given = self.costs.as_ref().map(|costs| costs.parts).filter(|given| *given != parts);
        given.map_or(Ok(()), |given| Err(BigraphError::Bandwidths { given, parts }))
    }

    /// Returns the usual options.
    pub(crate) fn usual(seed: u64) -> Self {
        let (priority, costs) = (Priority::default(), None);
        Self { rounds: ROUNDS, store_rate: STORE_RATE, priority, batch: BATCH, costs, seed }
    }
}

/// Which keys of other parts a part replicates first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Priority {
    /// Those that it accesses most (eq. 6).
    #[default]
    Paper,
    /// Those that most of its batches need, the rarer the more, as in the paper's artefact.
    Soft,
}

/// The cost of an access from one part to another: 1 on average, 0 within a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Costs {
    parts: usize,
    /// Row by row.
    of_pair: Vec<f64>,
}

/// Parts of keys and samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The part of each key.
    pub(crate) home: Vec<u16>,
    /// The keys of others that each part replicates, ascending.
    pub(crate) secondary: Vec<Vec<Key>>,
    /// The part of each sample.
    pub(crate) sample: Vec<u16>,
}

impl Costs {
    /// Returns the costs where the bandwidths from each node to each other are these, in any unit,
    /// row by row. Those of a node to itself do not matter; `None` if others are not positive, or
    /// no square.
    pub(crate) fn of_bandwidths(bandwidths: &[Vec<f64>]) -> Option<Self> {
        let parts = bandwidths.len();
        let mut of_pair = Vec::new();
        for (from, row) in bandwidths.iter().enumerate() {
            if row.len() != parts {
                return None;
            }
            for (to, bandwidth) in row.iter().enumerate() {
                let is_fit = from == to || (bandwidth.is_finite() && *bandwidth > 0.0);
                of_pair.push(if !is_fit { return None } else { 1.0 / bandwidth });
                if from == to {
                    of_pair[from * parts + to] = 0.0;
                }
            }
        }
        let mean = of_pair.iter().sum::<f64>() / (parts * parts.saturating_sub(1)).max(1) as f64;
        of_pair.iter_mut().for_each(|cost| *cost /= if mean > 0.0 { mean } else { 1.0 });
        Some(Self { parts, of_pair })
    }

    fn of(&self, from: usize, to: usize) -> f64 {
        self.of_pair[from * self.parts + to]
    }
}

/// Partitions the graph in O(rounds × (accesses × log parts + keys × parts)) time, with
/// bandwidths O(rounds × (samples + keys) × parts²), and [`BYTES`] for each key and part beside it.
/// Returns `None` once `stop` is raised.
///
/// # Errors
/// No part, more than 256 or than keys, no sample, a rate that is no share, costs of other parts.
pub(crate) fn hybrid(
    graph: &Bigraph,
    parts: usize,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Option<Partition>, BigraphError> {
    let keys = graph.keys();
    if parts == 0 || parts > PARTS_MAX || parts > keys {
        return Err(BigraphError::Parts { parts, keys });
    }
    if graph.samples() == 0 {
        return Err(BigraphError::NoSamples);
    }
    options.check(parts)?;
    let starts =
        if parts == 1 { 1 } else { (STARTS_ACCESSES / graph.accesses().max(1)).clamp(1, 16) };
    let mut assignment = Assignment::new(graph, parts, options.costs.as_ref());
    let mut best: Option<(f64, [Vec<Option<u8>>; 2])> = None;
    for start in 0..starts as u64 {
        assignment.clear();
        if assignment.find(options.rounds, options.seed, start, stop).is_none() {
            return Ok(None);
        }
        if starts == 1 {
            break;
        }
        let cost = assignment.cost_of_accesses();
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, [assignment.sample.clone(), assignment.home.clone()]));
        }
    }
    if let Some((_, parts_of)) = best {
        assignment.take(parts_of);
    }
    let secondary = (0..parts).map(|part| assignment.secondary(part, options)).collect();
    let whole = |of: &[Option<u8>]| of.iter().map(|part| part.unwrap_or(0).into()).collect();
    let (home, sample) = (whole(&assignment.home), whole(&assignment.sample));
    Ok(Some(Partition { home, secondary, sample }))
}

/// Parts, as far as vertices have one.
struct Assignment<'a> {
    graph: &'a Bigraph,
    parts: usize,
    costs: Option<&'a Costs>,
    home: Vec<Option<u8>>,
    sample: Vec<Option<u8>>,
    /// Accesses to each key from each part: key by key.
    counts: Vec<u32>,
    sizes: Sizes,
    /// Accesses of the vertex that is looked at to each part, and the parts that have some.
    near: Vec<u32>,
    touched: Vec<u8>,
}

/// Samples and keys of each part.
struct Sizes {
    /// Of samples, of keys.
    of: [Vec<usize>; 2],
    max: [usize; 2],
    mean: [f64; 2],
    /// Parts by their balance term, the emptiest first: its bits, which are ordered as it is, as it
    /// is never negative.
    emptiest: BTreeSet<(u64, u8)>,
}

impl Sizes {
    fn new(parts: usize, all: [usize; 2]) -> Self {
        Self {
            of: [vec![0; parts], vec![0; parts]],
            max: all.map(|all| share_max(all, 1, parts) + 1),
            mean: all.map(|all| (all as f64 / parts as f64).max(1.0)),
            emptiest: (0..parts).map(|part| (0.0_f64.to_bits(), part as u8)).collect(),
        }
    }

    /// Returns the balance term of a part's score.
    fn term(&self, part: usize) -> f64 {
        let term = |kind: usize| self.of[kind][part] as f64 / self.mean[kind];
        term(SAMPLES) + term(KEYS)
    }

    fn has_room(&self, kind: usize, part: u8) -> bool {
        self.of[kind][usize::from(part)] < self.max[kind]
    }

    fn change(&mut self, kind: usize, part: u8, change: impl Fn(usize) -> usize) {
        let index = usize::from(part);
        self.emptiest.remove(&(self.term(index).to_bits(), part));
        self.of[kind][index] = change(self.of[kind][index]);
        self.emptiest.insert((self.term(index).to_bits(), part));
    }

    /// Returns the emptiest part with room.
    fn emptiest(&self, kind: usize) -> Option<u8> {
        let mut parts = self.emptiest.iter().map(|(_, part)| *part);
        parts.find(|part| self.has_room(kind, *part))
    }
}

impl<'a> Assignment<'a> {
    fn new(graph: &'a Bigraph, parts: usize, costs: Option<&'a Costs>) -> Self {
        let (keys, samples) = (graph.keys(), graph.samples());
        Self {
            graph,
            parts,
            costs,
            home: vec![None; keys],
            sample: vec![None; samples],
            counts: vec![0; keys * parts],
            sizes: Sizes::new(parts, [samples, keys]),
            near: vec![0; parts],
            touched: Vec::new(),
        }
    }

    /// Takes all vertices out of their parts.
    fn clear(&mut self) {
        self.home.fill(None);
        self.sample.fill(None);
        self.counts.fill(0);
        self.sizes = Sizes::new(self.parts, [self.graph.samples(), self.graph.keys()]);
    }

    /// Takes these parts of samples and keys, with the accesses that follow from them.
    fn take(&mut self, [sample, home]: [Vec<Option<u8>>; 2]) {
        (self.sample, self.home) = (sample, home);
        self.counts.fill(0);
        for (sample, part) in self.sample.iter().enumerate() {
            for key in self.graph.of(sample) {
                self.counts[*key as usize * self.parts + usize::from(part.unwrap_or(0))] += 1;
            }
        }
    }

    /// Gives each vertex a part, then improves that in rounds; `None` once `stop` is raised.
    fn find(&mut self, rounds: u32, seed: u64, start: u64, stop: &AtomicBool) -> Option<()> {
        let go_on = || (!stop.load(Ordering::Relaxed)).then_some(());
        let mut order: Vec<u32> = (0..self.graph.samples() as u32).collect();
        order.shuffle(&mut generator(seed, [HYBRID, start]));
        let graph = self.graph;
        let place = |of: &mut Self, key: usize| {
            if of.home[key].is_none() {
                of.move_key(key);
            }
        };
        for sample in &order {
            go_on()?;
            self.move_sample(*sample as usize);
            graph.of(*sample as usize).iter().for_each(|key| place(self, *key as usize));
        }
        (0..graph.keys()).for_each(|key| place(self, key));
        for _ in 0..rounds {
            let mut has_moved = false;
            for sample in &order {
                go_on()?;
                has_moved |= self.move_sample(*sample as usize);
            }
            for key in 0..self.graph.keys() {
                go_on()?;
                has_moved |= self.move_key(key);
            }
            if !has_moved {
                break;
            }
        }
        Some(())
    }

    /// Takes a sample from its part and gives it the best. Returns true if that is another.
    fn move_sample(&mut self, sample: usize) -> bool {
        let (graph, before) = (self.graph, self.sample[sample]);
        if let Some(part) = before {
            self.sizes.change(SAMPLES, part, |size| size - 1);
        }
        for key in graph.of(sample) {
            if let Some(part) = self.home[*key as usize] {
                self.note(part, 1);
            }
        }
        let after = self.best(SAMPLES);
        self.sizes.change(SAMPLES, after, |size| size + 1);
        if before != Some(after) {
            self.sample[sample] = Some(after);
            for key in graph.of(sample) {
                let first = *key as usize * self.parts;
                self.counts[first + usize::from(after)] += 1;
                if let Some(part) = before {
                    self.counts[first + usize::from(part)] -= 1;
                }
            }
        }
        before != Some(after)
    }

    /// Takes a key from its part and gives it the best. Returns true if that is another.
    fn move_key(&mut self, key: usize) -> bool {
        let before = self.home[key];
        if let Some(part) = before {
            self.sizes.change(KEYS, part, |size| size - 1);
        }
        for part in 0..self.parts {
            let count = self.counts[key * self.parts + part];
            if count > 0 {
                self.note(part as u8, count);
            }
        }
        let after = self.best(KEYS);
        self.sizes.change(KEYS, after, |size| size + 1);
        self.home[key] = Some(after);
        before != Some(after)
    }

    fn note(&mut self, part: u8, count: u32) {
        let near = &mut self.near[usize::from(part)];
        if *near == 0 {
            self.touched.push(part);
        }
        *near += count;
    }

    /// Returns the best part with room for the vertex whose accesses are noted, and forgets these.
    fn best(&mut self, kind: usize) -> u8 {
        // Of parts without accesses the emptiest is best, unless some are cheaper to reach.
        let others = self.costs.map_or(0, |_| self.parts);
        let candidates = self.touched.iter().copied().chain(self.sizes.emptiest(kind));
        let candidates = candidates.chain((0..others).map(|part| part as u8));
        let mut best = None;
        for part in candidates.filter(|part| self.sizes.has_room(kind, *part)) {
            let score = self.saved(kind, part) - self.sizes.term(usize::from(part));
            let is_better = best
                .is_none_or(|(most, of): (f64, u8)| score > most || (score == most && part < of));
            if is_better {
                best = Some((score, part));
            }
        }
        for part in self.touched.drain(..) {
            self.near[usize::from(part)] = 0;
        }
        let (_, part) = best.expect("parts have room for more than there are");
        part
    }

    /// Returns what is saved of the cost of the noted accesses if their vertex is in this part.
    fn saved(&self, kind: usize, part: u8) -> f64 {
        let Some(costs) = self.costs else { return f64::from(self.near[usize::from(part)]) };
        let cost = |other: &u8| {
            let (own, other) = (usize::from(part), usize::from(*other));
            // Samples access keys.
            let cost = if kind == SAMPLES { costs.of(own, other) } else { costs.of(other, own) };
            f64::from(self.near[other]) * cost
        };
        -self.touched.iter().map(cost).sum::<f64>()
    }

    fn cost_between(&self, from: usize, to: usize) -> f64 {
        self.costs.map_or(f64::from(u8::from(from != to)), |costs| costs.of(from, to))
    }

    fn cost_of_accesses(&self) -> f64 {
        let of_key = |(key, counts): (usize, &[u32])| {
            let home = usize::from(self.home[key].unwrap_or(0));
            let cost =
                |(part, count): (usize, &u32)| f64::from(*count) * self.cost_between(part, home);
            counts.iter().enumerate().map(cost).sum::<f64>()
        };
        self.counts.chunks(self.parts).enumerate().map(of_key).sum()
    }

    /// Returns the keys that a part replicates, ascending.
    fn secondary(&self, part: usize, options: &Options) -> Vec<Key> {
        let budget = (options.store_rate * self.home.len() as f64) as usize;
        let mut keys: Vec<(f64, u32)> = Vec::new();
        for (key, home) in self.home.iter().enumerate() {
            let (count, home) =
                (self.counts[key * self.parts + part], usize::from(home.unwrap_or(0)));
            if count > 0 && home != part {
                let priority = match options.priority {
                    Priority::Paper => f64::from(count),
                    Priority::Soft => self.soft_priority(key, count, options.batch),
                };
                keys.push((priority * self.cost_between(part, home), key as u32));
            }
        }
        if budget < keys.len() {
            let first = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            keys.select_nth_unstable_by(budget, first);
            keys.truncate(budget);
        }
        let mut keys: Vec<Key> = keys.into_iter().map(|(_, key)| Key(key.into())).collect();
        keys.sort_unstable();
        keys
    }

    /// Returns the square of the batches of a part that need a key, by its accesses there and all
    /// in all.
    fn soft_priority(&self, key: usize, count: u32, batch: f64) -> f64 {
        let samples = self.sizes.mean[SAMPLES];
        let chance = 1.0 - (1.0 - f64::from(count) / samples).max(0.0).powf(batch);
        let batches = chance * samples / batch;
        let all: u32 = self.counts[key * self.parts..(key + 1) * self.parts].iter().sum();
        batches * batches * (1.0 / f64::from(all) + 1.0 / f64::from(count))
    }
}

/// Bytes that counting takes for each key and part.
pub(crate) const BYTES: u64 = size_of::<u32>() as u64;
/// Kinds of vertices.
const SAMPLES: usize = 0;
const KEYS: usize = 1;
/// Accesses of all starts together, about; some seconds.
const STARTS_ACCESSES: usize = 1 << 22;
/// The usual options: the store rate is the paper's (HET-GMP §6), the batch that of its artefact.
pub(crate) const ROUNDS: u32 = 5;
pub(crate) const STORE_RATE: f64 = 0.01;
const BATCH: f64 = 8_192.0;

#[cfg(test)]
mod tests;
