//! Knowledge graph embeddings: ComplEx of dimension 500 on Wikidata5M (AdaPM App. C, AdaPM Table 3).

use adapm_core::{Key, Layout};
use adapm_verify::sim::Who;

use super::{Facts, Pattern, Sampled, Work};
use crate::measure::simulate::Chance;
use crate::measure::simulate::zipf::Ranks;
use rand::RngExt as _;

/// Entities of Wikidata5M (stated).
const ENTITIES: u64 = 4_818_679;
/// Relations of Wikidata5M (stated).
const RELATIONS: u64 = 828;
/// Triples (stated: 21 M).
const TRIPLES: u64 = 21_000_000;
/// Negatives of each side of a triple (stated).
const NEGATIVES: u64 = 100;
/// Bytes of a value with its AdaGrad part: the stated 35.9 GB over the stated 4.8 M keys.
const VALUE_BYTES: u64 = 8_000;
/// Time for a data point: assumed for a core of the paper's cluster and doubles; one worker of this project takes 0.44 ms.
const POINT_NANOS: u64 = 1_500_000;

/// Random triples: subjects are spread evenly, objects and relations by rank.
pub(super) struct Kge {
    facts: Facts,
    objects: Ranks,
    relations: Ranks,
}

impl Kge {
    pub(super) fn new() -> Self {
        let facts = Facts {
            layout: Layout::sparse(&[(ENTITIES + RELATIONS, 1)]).expect("there are keys"),
            element_bytes: VALUE_BYTES,
            keys_per_key: 1,
            epoch_points: TRIPLES,
            points: 1,
            clocks: 1,
            sample_keys: ENTITIES,
            ahead: 64,
            warm_up: 50,
            measured: 50,
        };
        // Exponents are assumed: a few classes ("human", "taxon") are objects of a good part of all triples.
        Self { facts, objects: Ranks::new(ENTITIES, 1.0, 0), relations: Ranks::new(RELATIONS, 1.0, 0) }
    }
}

impl Pattern for Kge {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, _who: Who, chance: &mut Chance) -> Work {
        let subject = chance.random_range(0..ENTITIES);
        let object = self.objects.draw(chance);
        let relation = ENTITIES + self.relations.draw(chance);
        let work = Work::of(vec![Key(subject), Key(object), Key(relation)], POINT_NANOS, chance);
        Work { sampled: Sampled::Uniform(2 * NEGATIVES), ..work }
    }

    fn hot(&self) -> Vec<Key> {
        let mean = 3.0 / (ENTITIES + RELATIONS) as f64;
        let objects = self.objects.at_least(100.0 * mean);
        let relations = self.relations.at_least(100.0 * mean);
        (0..objects).chain(ENTITIES..ENTITIES + relations).map(Key).collect()
    }
}
