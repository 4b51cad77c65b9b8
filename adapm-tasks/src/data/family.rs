//! Generated family trees: facts of kinship with known structure.
//!
//! Every relation has an inverse among the relations (`parent_of` and `child_of`) or is its own
//! (`sibling_of`), and of a fact and its mirror at most one is held out: each held-out fact follows
//! from a training fact, so an oracle that knows the rules ranks every answer first, and the best
//! possible filtered MRR is 1.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::data::names::Names;
use crate::kge::{Graph, GraphCounts, GraphSource, Triple};

/// The relations, each with the position of its mirror.
const RELATIONS: [(&str, u32); 11] = [
    ("parent_of", 1),
    ("child_of", 0),
    ("spouse_of", 2),
    ("sibling_of", 3),
    ("grandparent_of", 5),
    ("grandchild_of", 4),
    ("aunt_or_uncle_of", 7),
    ("niece_or_nephew_of", 6),
    ("cousin_of", 8),
    ("parent_in_law_of", 10),
    ("child_in_law_of", 9),
];

/// Generations of a family below its founders.
const GENERATIONS: usize = 3;
/// One of so many pairs of mirrored facts has a fact held out, in turn for valid and for test.
const HELD_OUT: u32 = 8;

/// One family while it grows.
#[derive(Default)]
struct Family {
    /// Parents of each person, by position in the family.
    parents: Vec<Option<[u32; 2]>>,
    spouse: Vec<Option<u32>>,
}

impl Family {
    fn add(&mut self, parents: Option<[u32; 2]>) -> u32 {
        self.parents.push(parents);
        self.spouse.push(None);
        self.parents.len() as u32 - 1
    }

    fn marry(&mut self, a: u32, b: u32) -> [u32; 2] {
        self.spouse[a as usize] = Some(b);
        self.spouse[b as usize] = Some(a);
        [a, b]
    }

    /// Returns two founders, their children, who marry people from elsewhere, their grandchildren,
    /// and so on.
    fn grow(random: &mut Xoshiro256PlusPlus) -> Self {
        let mut family = Self::default();
        let (a, b) = (family.add(None), family.add(None));
        let mut couples = vec![family.marry(a, b)];
        for generation in 1..=GENERATIONS {
            let mut next = Vec::new();
            for couple in couples {
                for _ in 0..random.random_range(2..=3) {
                    let child = family.add(Some(couple));
                    if generation < GENERATIONS {
                        let partner = family.add(None);
                        next.push(family.marry(child, partner));
                    }
                }
            }
            couples = next;
        }
        family
    }

    /// Returns the facts without their mirrors: one of each pair.
    fn facts(&self) -> Vec<(u32, u32, u32)> {
        let people = 0..self.parents.len() as u32;
        let parents = |person: u32| self.parents[person as usize].into_iter().flatten();
        let are_siblings = |a: u32, b: u32| {
            a != b && self.parents[a as usize].is_some_and(|p| self.parents[b as usize] == Some(p))
        };
        let mut facts = Vec::new();
        for a in people.clone() {
            for parent in parents(a) {
                facts.push((parent, 0, a));
                facts.extend(parents(parent).map(|grandparent| (grandparent, 4, a)));
                facts
                    .extend(people.clone().filter(|b| are_siblings(parent, *b)).map(|b| (b, 6, a)));
                facts.extend(self.spouse[a as usize].map(|spouse| (parent, 9, spouse)));
            }
            for b in a + 1..people.end {
                if self.spouse[a as usize] == Some(b) {
                    facts.push((a, 2, b));
                }
                if are_siblings(a, b) {
                    facts.push((a, 3, b));
                }
                if parents(a).any(|p| parents(b).any(|q| are_siblings(p, q))) {
                    facts.push((a, 8, b));
                }
            }
        }
        facts
    }
}

/// Returns the graph of `families` families.
pub(crate) fn graph(seed: u64, families: usize) -> Graph {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut train, mut held_out) = (Vec::new(), [Vec::new(), Vec::new()]);
    let mut entities = Names::default();
    let mut turn = 0;
    for number in 0..families {
        let family = Family::grow(&mut random);
        let first = entities.len() as u32;
        for person in 0..family.parents.len() {
            entities.push(format!("family{number}_person{person}").as_bytes());
        }
        for (a, relation, b) in family.facts() {
            let fact = Triple { subject: first + a, relation, object: first + b };
            let mirror = Triple {
                subject: fact.object,
                relation: RELATIONS[relation as usize].1,
                object: fact.subject,
            };
            let (kept, other) =
                if random.random_bool(0.5) { (fact, mirror) } else { (mirror, fact) };
            train.push(kept);
            if random.random_ratio(1, HELD_OUT) {
                held_out[turn % 2].push(other);
                turn += 1;
            } else {
                train.push(other);
            }
        }
    }
    train.shuffle(&mut random);
    let [valid, test] = held_out;
    let mut relations = Names::default();
    RELATIONS.iter().for_each(|(name, _)| relations.push(name.as_bytes()));
    let (counts, source) = (GraphCounts::default(), GraphSource::Generated { seed });
    Graph { train, valid, test, entities, relations, counts, source }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_held_out_fact_follows_from_a_training_fact() {
        let graph = graph(3, 20);
        let train: HashSet<Triple> = graph.train.iter().copied().collect();
        assert_eq!(train.len(), graph.train.len(), "no duplicates");
        assert!(graph.valid.len() > 100 && graph.test.len() > 100);
        for fact in graph.valid.iter().chain(&graph.test) {
            let relation = RELATIONS[fact.relation as usize].1;
            assert!(!train.contains(fact));
            assert!(train.contains(&Triple {
                subject: fact.object,
                relation,
                object: fact.subject
            }));
        }
    }

    #[test]
    fn mirrors_are_mutual_and_all_relations_occur() {
        for (position, (_, mirror)) in RELATIONS.iter().enumerate() {
            assert_eq!(RELATIONS[*mirror as usize].1 as usize, position);
        }
        let used: HashSet<u32> = graph(1, 5).train.iter().map(|triple| triple.relation).collect();
        assert_eq!(used.len(), RELATIONS.len());
    }

    #[test]
    fn the_same_seed_gives_the_same_graph() {
        assert_eq!(graph(5, 4), graph(5, 4));
        assert_ne!(graph(5, 4), graph(6, 4));
    }
}
