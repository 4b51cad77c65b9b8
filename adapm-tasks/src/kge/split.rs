//! Holds facts of one list out, for valid and for test.
//!
//! Of ten facts eight are trained on, one is for valid, and one for test, by a seed (as PyKEEN splits: Ali et al., JMLR 2021). No
//! entity and no relation is held out with its last fact, so train knows all names, and the parts become smaller if that leaves
//! too few. A fact that is listed twice is taken once, or it could be in two parts.

use std::collections::HashSet;

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::facts::Facts;
use crate::kge::graph::Triple;

/// One of so many facts is held out for valid, and one for test.
const HELD_OUT: usize = 10;

/// Moves facts from train to valid and test, each part in the order of the list. The same seed moves the same facts.
pub(crate) fn hold_out(facts: Facts, seed: u64) -> Facts {
    let Facts { splits: [all, ..], entities, relations, source, .. } = facts;
    let mut seen = HashSet::with_capacity(all.len());
    let distinct: Vec<Triple> = all.iter().copied().filter(|triple| seen.insert(*triple)).collect();
    let mut uses = Uses::new(&distinct, entities.len(), relations.len());
    let mut order: Vec<usize> = (0..distinct.len()).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let wanted = distinct.len() / HELD_OUT;
    // 0: train, 1: valid, 2: test; in turns, so that too few are shared by both.
    let mut part = vec![0; distinct.len()];
    let mut held = 0;
    for at in order {
        if held == 2 * wanted {
            break;
        }
        if uses.give_up(&distinct[at]) {
            part[at] = 1 + held % 2;
            held += 1;
        }
    }
    let of = |wanted: usize| {
        let chosen = distinct.iter().zip(&part).filter(move |(_, part)| **part == wanted);
        chosen.map(|(triple, _)| *triple).collect::<Vec<Triple>>()
    };
    let repeated = (all.len() - distinct.len()) as u64;
    Facts { splits: [of(0), of(1), of(2)], repeated, entities, relations, source }
}

/// How often train uses each name.
pub(crate) struct Uses {
    entities: Vec<u32>,
    relations: Vec<u32>,
}

impl Uses {
    pub(crate) fn new(triples: &[Triple], entities: usize, relations: usize) -> Self {
        let mut uses = Self { entities: vec![0; entities], relations: vec![0; relations] };
        for triple in triples {
            uses.entities[triple.subject as usize] += 1;
            uses.entities[triple.object as usize] += 1;
            uses.relations[triple.relation as usize] += 1;
        }
        uses
    }

    /// Takes a fact from train unless it has the last use of a name. Returns true if it did.
    pub(crate) fn give_up(&mut self, triple: &Triple) -> bool {
        let (subject, object) = (triple.subject as usize, triple.object as usize);
        let own = if subject == object { 2 } else { 1 };
        let relation = &mut self.relations[triple.relation as usize];
        if *relation < 2 || [subject, object].iter().any(|entity| self.entities[*entity] <= own) {
            return false;
        }
        *relation -= 1;
        self.entities[subject] -= 1;
        self.entities[object] -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::data::triples::ColumnOrder;
    use crate::kge::graph::{Graph, GraphFiles, GraphForm, Names};

    fn split(triples: &[[u32; 3]], seed: u64) -> Graph {
        let typed = |[subject, relation, object]: [u32; 3]| Triple { subject, relation, object };
        let names = |count: u32| {
            let mut names = Names::default();
            (0..count).for_each(|name| names.push(name.to_string().as_bytes()));
            names
        };
        let most = |place: &[usize]| {
            let used = triples.iter().flat_map(|triple| place.iter().map(|place| triple[*place] + 1));
            used.max().unwrap_or(0)
        };
        let source = GraphFiles {
            path: PathBuf::from("x"),
            form: GraphForm::Names(ColumnOrder::Hrt),
            files: [const { None }; 3],
            split_seed: Some(seed),
            header: None,
            unused: Vec::new(),
            trimmed: 0,
        };
        let all = triples.iter().copied().map(typed).collect();
        let facts =
            Facts::new([all, Vec::new(), Vec::new()], names(most(&[0, 2])), names(most(&[1])), source);
        hold_out(facts, seed).graph().expect("there are facts")
    }

    fn parts(graph: &Graph) -> [usize; 3] {
        [graph.train(), graph.valid(), graph.test()].map(<[Triple]>::len)
    }

    #[test]
    fn eight_of_ten_facts_are_trained_on_and_the_rest_shared_by_a_seed() {
        let all: Vec<[u32; 3]> = (0..500).map(|i| [i % 23, i % 3, i * 7 % 31]).collect();
        let graph = split(&all, 1);
        assert_eq!(parts(&graph), [400, 50, 50]);
        assert_eq!(split(&all, 1).test(), graph.test());
        assert_ne!(split(&all, 2).test(), graph.test());
        let counts = graph.counts();
        assert_eq!(
            [counts.overlap_valid, counts.overlap_test, counts.valid_in_test, counts.duplicates],
            [0; 4]
        );
        assert_eq!([counts.unknown_entities, counts.unknown_relations], [0; 2]);
    }

    #[test]
    fn no_name_is_held_out_with_its_last_fact() {
        // A star: each entity but the one in the middle has one fact. And a relation of one fact, and loops.
        let mut all: Vec<[u32; 3]> = (1..100).map(|i| [0, 0, i]).collect();
        assert_eq!(parts(&split(&all, 3)), [99, 0, 0]);
        all.extend((1..100).map(|i| [i, 1, i]));
        all.push([1, 2, 2]);
        for seed in 0..20 {
            let graph = split(&all, seed);
            let [train, valid, test] = parts(&graph);
            assert_eq!((train + valid + test, valid.abs_diff(test) < 2), (199, true));
            let counts = graph.counts();
            assert_eq!([counts.unknown_entities, counts.unknown_relations], [0; 2], "{seed}");
            assert!(valid > 0, "{seed}: {valid}");
        }
    }

    #[test]
    fn a_fact_that_is_listed_twice_is_in_one_part() {
        let all: Vec<[u32; 3]> = (0..400).map(|i| [i / 2 % 9, 0, i / 2 % 25]).collect();
        let graph = split(&all, 1);
        let counts = graph.counts();
        assert_eq!((parts(&graph), counts.duplicates), ([160, 20, 20], 200));
        assert_eq!([counts.overlap_valid, counts.overlap_test, counts.valid_in_test], [0; 3]);
    }
}
