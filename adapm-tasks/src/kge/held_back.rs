//! Triples held back from training where there are none to select on.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::config::TrainConfig;
use crate::kge::graph::Graph;
use crate::kge::split::Uses;

/// The graph with some of its training triples as valid, a pure function of the seed: as many as are to be held back, never the last one
/// of an entity or relation. `None` if none is, or none can be spared.
pub(crate) fn hold_back(graph: &Graph, config: &TrainConfig) -> Option<Graph> {
    let wanted = config.held_back_of(graph.train.len(), graph.valid.len());
    if wanted == 0 {
        return None;
    }
    // Another stream than that of who trains on which facts.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    (0..2).for_each(|_| random.long_jump());
    let mut positions: Vec<u32> = (0..graph.train.len() as u32).collect();
    positions.shuffle(&mut random);
    let mut uses = Uses::new(&graph.train, graph.entities.len(), graph.relations.len());
    let mut is_held = vec![false; graph.train.len()];
    let mut held = 0;
    for position in positions {
        if held == wanted {
            break;
        }
        if uses.give_up(&graph.train[position as usize]) {
            is_held[position as usize] = true;
            held += 1;
        }
    }
    let part = |wanted: bool| {
        let triples = graph.train.iter().zip(&is_held).filter(|(_, is_held)| **is_held == wanted);
        triples.map(|(triple, _)| *triple).collect()
    };
    (held > 0).then(|| Graph { train: part(false), valid: part(true), ..graph.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kge::graph::Triple;

    fn of_seed(seed: u64) -> TrainConfig {
        TrainConfig { seed, ..TrainConfig::default() }
    }

    #[test]
    fn a_twentieth_is_held_back_and_every_name_stays_in_train() {
        let mut graph = Graph::families(1, 4);
        assert!(hold_back(&graph, &of_seed(1)).is_none(), "it has a valid set");
        graph.valid.clear();
        let divided = hold_back(&graph, &of_seed(1)).expect("there are triples to spare");
        assert_eq!(divided.train.len() + divided.valid.len(), graph.train.len());
        assert_eq!(divided.valid.len(), graph.train.len().div_ceil(20));
        let mut all = [divided.train.clone(), divided.valid.clone()].concat();
        let mut before = graph.train.clone();
        all.sort_unstable();
        before.sort_unstable();
        assert_eq!(all, before);
        let names = |graph: &Graph| {
            let mut names: Vec<u32> =
                graph.train.iter().flat_map(|fact| [fact.subject, fact.object]).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        assert_eq!(names(&divided), names(&graph));
        assert_eq!(hold_back(&graph, &of_seed(1)).expect("as before").valid, divided.valid);
        assert_ne!(hold_back(&graph, &of_seed(2)).expect("as before").valid, divided.valid);
    }

    #[test]
    fn a_chain_and_a_few_triples_spare_nothing() {
        let mut graph = Graph::families(1, 1);
        (graph.valid, graph.train) = (Vec::new(), graph.train[..10].to_vec());
        assert!(hold_back(&graph, &of_seed(1)).is_none(), "too few");
        let fact = |index: u32| Triple { subject: 2 * index, relation: 0, object: 2 * index + 1 };
        graph.train = (0..40).map(fact).collect();
        graph.entities = Default::default();
        (0..80).for_each(|index: u32| graph.entities.push(index.to_string().as_bytes()));
        assert!(hold_back(&graph, &of_seed(1)).is_none(), "each entity has one triple");
    }
}
