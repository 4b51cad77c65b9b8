//! Access patterns of the paper's five workloads, generated from seeds (AdaPM §5.1, AdaPM App. C,
//! AdaPM Table 3).
//!
//! Key spaces have the paper's size: an engine keeps only what was touched. What is cut is the
//! epoch: workers do a slice of it from the middle, and figures are scaled to the whole. Two
//! patterns touch so many keys a batch that one modelled key stands for several
//! ([`Facts::keys_per_key`]): space, batch and value width are scaled together, so that the chance
//! that two nodes want the same key stays what it is.
//!
//! | task | what is modelled (AdaPM App. C, AdaPM Table 3) |
//! | --- | --- |
//! | kge | ComplEx of dimension 500 on Wikidata5M |
//! | wv | skip-gram of dimension 1,000 on the One Billion Word Benchmark without stop words |
//! | mf | rank 1,000, 10 M x 1 M, Zipf 1.1, a billion cells, visited by column |
//! | ctr | Wide & Deep of dimension 128 on Criteo Kaggle, batches of 128 |
//! | gnn | a 2-layer GCN of dimension 500 on ogbn-papers100M, batches of 32, 16 neighbours |

use core::ops::Range;
use std::collections::{HashMap, HashSet};

use adapm_core::{Key, Layout, NodeId};
use adapm_verify::sim::NodeWorker;
use rand::RngExt as _;

use crate::measure::simulate::zipf::Ranks;
use crate::measure::simulate::{Chance, Task, vary};

/// The accesses of one step of a worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Keys read and written, each once, ascending; intent is signaled ahead.
    pub keys: Vec<Key>,
    /// Keys that the node will access again and again from here on: intent is signaled once, for
    /// the rest of the run.
    pub lasting: Vec<Key>,
    /// Keys written besides, by sampling.
    pub sampled: Sampled,
    /// Time it takes on one node, accesses included, in nanoseconds.
    pub nanos: u64,
}

/// Negatives: which keys are sampled (AdaPM App. C).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sampled {
    /// None.
    #[default]
    Nothing,
    /// So many of the first [`Facts::sample_keys`] keys, all with the same chance.
    Uniform(u64),
    /// These, or local ones near them.
    Drawn(Vec<Key>),
}

/// The constants of a workload.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Keys and lengths in modelled elements.
    pub layout: Layout,
    /// Bytes of a modelled element.
    pub element_bytes: u64,
    /// Keys that a modelled key stands for.
    pub keys_per_key: u64,
    /// Data points of an epoch.
    pub epoch_points: u64,
    /// Data points of one step.
    pub points: u64,
    /// Clocks of one step.
    pub clocks: u64,
    /// Steps from one tick to the next under a bound: some 20 ms of work, as in training.
    pub tick_steps: u64,
    /// Keys among which negatives are drawn.
    pub sample_keys: u64,
    /// Steps that intent is signaled ahead: more than any action window, fewer than the paper's
    /// (AdaPM App. C), which makes no difference to adaptive timing (AdaPM §5.8).
    pub ahead: u64,
    /// Steps that every worker has done when measuring begins.
    pub warm_up: u64,
    /// Steps of a worker while measuring, on average.
    pub measured: u64,
}

/// Work between two ticks.
const TICK_NANOS: u64 = 20_000_000;

impl Facts {
    /// Those of a workload whose step is a batch of `points` examples, with one clock. Batches take
    /// so long that all copies are where they belong long before the first is done, and touch so
    /// many keys that two are enough to measure.
    fn of_batches(
        layout: Layout,
        value_bytes: u64,
        keys_per_key: u64,
        epoch_points: u64,
        points: u64,
    ) -> Self {
        Self {
            layout,
            element_bytes: value_bytes * keys_per_key,
            keys_per_key,
            epoch_points,
            points,
            clocks: 1,
            tick_steps: 1,
            sample_keys: 0,
            ahead: 16,
            warm_up: 1,
            measured: 2,
        }
    }
}

impl Work {
    /// Returns a step of about `nanos` on `keys`.
    fn of(keys: Vec<Key>, nanos: u64, chance: &mut Chance) -> Self {
        Self { keys: distinct(keys), nanos: vary(nanos, chance), ..Self::default() }
    }
}

/// Generates what workers do.
pub trait Pattern {
    /// Returns the constants.
    fn facts(&self) -> &Facts;

    /// Returns the next step of a worker.
    fn draw(&mut self, who: NodeWorker, chance: &mut Chance) -> Work;

    /// Keys with at least a hundred times the mean frequency: what a static choice of techniques
    /// replicates.
    fn hot(&self) -> Vec<Key>;

    /// Keys of dense layers, which each step reads and changes.
    fn dense(&self) -> Range<Key> {
        Key(0)..Key(0)
    }
}

/// A key is hot with so many times the mean frequency: NuPS's untuned choice (AdaPM §5.3).
const HOT: f64 = 100.0;

/// Returns the pattern of `task` on `nodes` nodes. `settled`: keys with locality lie where a system
/// that relocates has brought them in earlier epochs; else at their homes.
#[must_use]
pub fn pattern(task: Task, nodes: usize, settled: bool) -> Box<dyn Pattern> {
    match task {
        Task::Kge => Box::new(Kge::new()),
        Task::Wv => Box::new(Wv::new()),
        Task::Mf => Box::new(Mf::new(nodes, settled)),
        Task::Ctr => Box::new(Ctr::new()),
        Task::Gnn => Box::new(Gnn::new(nodes, settled)),
    }
}

/// Names for keys of `owner`: `base` itself, or one of the names set aside for it whose home is
/// `owner`.
fn settled_key(base: u64, owner: NodeId, nodes: usize) -> Key {
    let names = (0_u64..).map(|name| Key(base | name << SETTLED_SHIFT));
    let mut names = names.take(1 << SETTLED_BITS);
    names.find(|key| Layout::home(*key, nodes) == owner).unwrap_or(Key(base))
}

/// Names of keys below this many bits are a pattern's own, and so many bits above tell settled
/// names apart.
const SETTLED_SHIFT: u32 = 40;
const SETTLED_BITS: u32 = 16;

/// Returns a layout of all names that a pattern with locality may use.
fn settled_layout() -> Layout {
    Layout::sparse(&[(1 << (SETTLED_SHIFT + SETTLED_BITS), 1)]).expect("there are keys")
}

/// Sorts keys and drops repetitions.
fn distinct(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Entities of Wikidata5M (stated).
const KGE_ENTITIES: u64 = 4_818_679;
/// Relations of Wikidata5M (stated).
const KGE_RELATIONS: u64 = 828;
/// Triples (stated: 21 M).
const KGE_TRIPLES: u64 = 21_000_000;
/// Negatives of each side of a triple (stated).
const KGE_NEGATIVES: u64 = 100;
/// Bytes of a value with its AdaGrad part: the stated 35.9 GB over the stated 4.8 M keys.
const KGE_VALUE_BYTES: u64 = 8_000;
/// Time for a data point: assumed for a core of the paper's cluster and doubles; one worker of this
/// project takes 0.44 ms.
const KGE_POINT_NANOS: u64 = 1_500_000;

/// Random triples: subjects are spread evenly, objects and relations by rank.
pub(super) struct Kge {
    facts: Facts,
    objects: Ranks,
    relations: Ranks,
}

impl Kge {
    pub(super) fn new() -> Self {
        let facts = Facts {
            layout: Layout::sparse(&[(KGE_ENTITIES + KGE_RELATIONS, 1)]).expect("there are keys"),
            element_bytes: KGE_VALUE_BYTES,
            keys_per_key: 1,
            epoch_points: KGE_TRIPLES,
            points: 1,
            clocks: 1,
            tick_steps: TICK_NANOS / KGE_POINT_NANOS,
            sample_keys: KGE_ENTITIES,
            ahead: 64,
            warm_up: 50,
            measured: 50,
        };
        // Exponents are assumed: a few classes ("human", "taxon") are objects of a good part of all
        // triples.
        Self {
            facts,
            objects: Ranks::new(KGE_ENTITIES, 1.0, 0),
            relations: Ranks::new(KGE_RELATIONS, 1.0, 0),
        }
    }
}

impl Pattern for Kge {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, _who: NodeWorker, chance: &mut Chance) -> Work {
        let subject = chance.random_range(0..KGE_ENTITIES);
        let object = self.objects.draw(chance);
        let relation = KGE_ENTITIES + self.relations.draw(chance);
        let work =
            Work::of(vec![Key(subject), Key(object), Key(relation)], KGE_POINT_NANOS, chance);
        Work { sampled: Sampled::Uniform(2 * KGE_NEGATIVES), ..work }
    }

    fn hot(&self) -> Vec<Key> {
        let mean = 3.0 / (KGE_ENTITIES + KGE_RELATIONS) as f64;
        let objects = self.objects.at_least(HOT * mean);
        let relations = self.relations.at_least(HOT * mean);
        (0..objects).chain(KGE_ENTITIES..KGE_ENTITIES + relations).map(Key).collect()
    }
}

/// Words, with two vectors each: the stated 1.9 M keys.
const WV_WORDS: u64 = 950_000;
/// Words of the text (stated: 375 M data points).
const WV_TEXT: u64 = 375_000_000;
/// Words of a sentence: the benchmark has 30.3 M sentences.
const WV_SENTENCE: u64 = 12;
/// Negatives of a word of a sentence: dynamic window 5 (stated) has 6 words on average, 5 negatives
/// each (assumed).
const WV_NEGATIVES: u64 = 30;
/// Bytes of a value with its AdaGrad part: the stated 14.0 GB over the stated 1.9 M keys.
const WV_VALUE_BYTES: u64 = 8_000;
/// Time for a sentence: as many multiplications a nanosecond as in the knowledge graph task
/// (assumed).
const WV_SENTENCE_NANOS: u64 = 2_500_000;

/// Sentences of words by rank, the same on all nodes.
pub(super) struct Wv {
    facts: Facts,
    words: Ranks,
    negatives: Ranks,
}

impl Wv {
    pub(super) fn new() -> Self {
        let facts = Facts {
            layout: Layout::sparse(&[(2 * WV_WORDS, 1)]).expect("there are keys"),
            element_bytes: WV_VALUE_BYTES,
            keys_per_key: 1,
            epoch_points: WV_TEXT,
            points: WV_SENTENCE,
            clocks: 1,
            tick_steps: TICK_NANOS / WV_SENTENCE_NANOS,
            sample_keys: WV_WORDS,
            ahead: 32,
            warm_up: 10,
            measured: 10,
        };
        // Zipf's law; the first ranks were stop words, which are removed (assumed: ten).
        Self {
            facts,
            words: Ranks::new(WV_WORDS, 1.0, 10),
            negatives: Ranks::new(WV_WORDS, 0.75, 10),
        }
    }
}

impl Pattern for Wv {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, _who: NodeWorker, chance: &mut Chance) -> Work {
        let length = chance.random_range(WV_SENTENCE / 2..=WV_SENTENCE + WV_SENTENCE / 2);
        let words = (0..length).map(|_| self.words.draw(chance));
        let keys = words.flat_map(|word| [input(word), output(word)]).collect();
        let negatives =
            (0..length * WV_NEGATIVES).map(|_| output(self.negatives.draw(chance))).collect();
        let work = Work::of(keys, WV_SENTENCE_NANOS * length / WV_SENTENCE, chance);
        Work { sampled: Sampled::Drawn(distinct(negatives)), ..work }
    }

    fn hot(&self) -> Vec<Key> {
        let hot = self.words.at_least(HOT / WV_WORDS as f64);
        (0..hot).flat_map(|word| [input(word), output(word)]).collect()
    }
}

fn input(word: u64) -> Key {
    Key(2 * word)
}

fn output(word: u64) -> Key {
    Key(2 * word + 1)
}

/// Rows, columns and cells (stated).
const MF_ROWS: u64 = 10_000_000;
const MF_COLUMNS: u64 = 1_000_000;
const MF_CELLS: u64 = 1_000_000_000;
/// Exponent of rows and columns (stated), and how many first ranks are one: a row cannot have more
/// cells than there are columns, nor a column more than rows.
const MF_EXPONENT: f64 = 1.1;
const MF_FLAT_ROWS: u64 = 70;
const MF_FLAT_COLUMNS: u64 = 10;
/// Bytes of a value with its AdaGrad part: the stated 163.9 GB over the stated 11.0 M keys.
const MF_VALUE_BYTES: u64 = 16_000;
/// Data points of one step: fewer events than one a cell, still several steps a round.
const MF_STEP: u64 = 16;
/// Time for a data point: as many multiplications a nanosecond as in the knowledge graph task
/// (assumed).
const MF_CELL_NANOS: u64 = 15_000;

/// Rows belong to nodes; a worker visits its part of one column after another.
pub(super) struct Mf {
    facts: Facts,
    nodes: usize,
    settled: bool,
    rows: Ranks,
    columns: Ranks,
    /// Column and cells left in it, of each worker.
    current: HashMap<NodeWorker, (u64, u64)>,
    /// Rows for which each node has signaled its lasting intent.
    seen: Vec<HashSet<u64>>,
}

impl Mf {
    pub(super) fn new(nodes: usize, settled: bool) -> Self {
        let facts = Facts {
            layout: settled_layout(),
            element_bytes: MF_VALUE_BYTES,
            keys_per_key: 1,
            epoch_points: MF_CELLS,
            points: MF_STEP,
            clocks: MF_STEP,
            tick_steps: TICK_NANOS / (MF_STEP * MF_CELL_NANOS),
            sample_keys: 0,
            ahead: 32,
            warm_up: 64,
            measured: 64,
        };
        Self {
            facts,
            nodes,
            settled,
            rows: Ranks::new(MF_ROWS, MF_EXPONENT, MF_FLAT_ROWS),
            columns: Ranks::new(MF_COLUMNS, MF_EXPONENT, MF_FLAT_COLUMNS),
            current: HashMap::new(),
            seen: vec![HashSet::new(); nodes],
        }
    }

    /// A worker is found in a column as often as it has cells, somewhere in it; then it takes one
    /// as good as another.
    fn enter(&self, first: bool, chance: &mut Chance) -> (u64, u64) {
        loop {
            let column =
                if first { self.columns.draw(chance) } else { chance.random_range(0..MF_COLUMNS) };
            let cells = self.columns.share(column) * MF_CELLS as f64 / self.nodes as f64;
            let left = if first { cells * chance.random::<f64>() } else { cells };
            let left = (left + chance.random::<f64>()) as u64;
            if left > 0 {
                return (column, left);
            }
        }
    }

    fn row(&self, node: NodeId, chance: &mut Chance) -> (u64, Key) {
        let nodes = self.nodes as u64;
        let row = self.rows.draw(chance) / nodes * nodes + u64::from(node.0);
        let key = if self.settled {
            settled_key(MF_COLUMNS + row, node, self.nodes)
        } else {
            Key(MF_COLUMNS + row)
        };
        (row, key)
    }
}

impl Pattern for Mf {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, who: NodeWorker, chance: &mut Chance) -> Work {
        let (mut column, mut left) = match self.current.get(&who) {
            Some(current) => *current,
            None => self.enter(true, chance),
        };
        let (mut keys, mut lasting) = (Vec::new(), Vec::new());
        for _ in 0..MF_STEP {
            if left == 0 {
                (column, left) = self.enter(false, chance);
            }
            left -= 1;
            keys.push(Key(column));
            let (row, key) = self.row(who.0, chance);
            keys.push(key);
            if self.seen[who.0.index()].insert(row) {
                lasting.push(key);
            }
        }
        self.current.insert(who, (column, left));
        Work { lasting: distinct(lasting), ..Work::of(keys, MF_STEP * MF_CELL_NANOS, chance) }
    }

    fn hot(&self) -> Vec<Key> {
        // Each row is accessed by one node only, however often: replicas would help no node.
        let mean = 2.0 / (MF_ROWS + MF_COLUMNS) as f64;
        (0..self.columns.at_least(HOT * mean)).map(Key).collect()
    }
}

/// Values of each categorical feature; with a wide and a deep part each, the stated 67 M keys.
const CTR_FEATURES: [u64; 26] = [
    1_460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5_683, 8_351_593, 3_194,
    27, 14_992, 5_461_306, 10, 5_652, 2_173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];
/// Training examples: the stated 85.7 % of 46 M.
const CTR_EXAMPLES: u64 = 39_400_000;
/// Examples of a batch (stated).
const CTR_BATCH: u64 = 128;
/// Modelled keys stand for so many: a modelled batch has so many times fewer examples.
const CTR_KEYS_PER_KEY: u64 = 8;
/// Draws of a modelled batch from each categorical feature.
const CTR_DRAWN: u64 = CTR_BATCH / CTR_KEYS_PER_KEY;
/// Bytes of the deep and the wide value of a feature with their AdaGrad parts: the stated 32.5 GB
/// over half the stated keys.
const CTR_VALUE_BYTES: u64 = 1_032;
/// Dense layers: the stated 52 % of all accesses, against 26 x 128 sparse ones; in this many long
/// values.
const CTR_DENSE: u64 = 60;
const CTR_DENSE_ELEMENTS: usize = 8;
/// Time for a batch: 57.5 minutes (stated) for an epoch on 256 workers, taken for computation.
const CTR_BATCH_NANOS: u64 = 2_880_000_000;

/// Batches of examples with features by rank, the same on all nodes; all batches use the dense
/// layers.
pub(super) struct Ctr {
    facts: Facts,
    features: Vec<(u64, Ranks)>,
    dense: u64,
}

impl Ctr {
    pub(super) fn new() -> Self {
        let mut start = 0;
        let mut features = Vec::new();
        for values in CTR_FEATURES {
            // The exponent is assumed.
            let ranks = Ranks::new(values / CTR_KEYS_PER_KEY, 1.1, 0);
            features.push((start, ranks));
            start += (values / CTR_KEYS_PER_KEY).max(1);
        }
        let layout =
            Layout::sparse(&[(start, 1), (CTR_DENSE, CTR_DENSE_ELEMENTS)]).expect("there are keys");
        let facts =
            Facts::of_batches(layout, CTR_VALUE_BYTES, CTR_KEYS_PER_KEY, CTR_EXAMPLES, CTR_BATCH);
        Self { facts, features, dense: start }
    }
}

impl Pattern for Ctr {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, _who: NodeWorker, chance: &mut Chance) -> Work {
        let dense = self.dense();
        let mut keys: Vec<Key> = (dense.start.0..dense.end.0).map(Key).collect();
        for (start, ranks) in &self.features {
            keys.extend((0..CTR_DRAWN).map(|_| Key(start + ranks.draw(chance))));
        }
        Work::of(keys, CTR_BATCH_NANOS, chance)
    }

    fn hot(&self) -> Vec<Key> {
        let accesses = self.features.len() as u64 * CTR_DRAWN + CTR_DENSE;
        let mean = accesses as f64 / (self.dense + CTR_DENSE) as f64;
        let hot = |(start, ranks): &(u64, Ranks)| {
            let end = start + ranks.at_least(HOT * mean / CTR_DRAWN as f64);
            *start..end
        };
        let dense = self.dense();
        self.features.iter().flat_map(hot).chain(dense.start.0..dense.end.0).map(Key).collect()
    }

    fn dense(&self) -> Range<Key> {
        Key(self.dense)..Key(self.dense + CTR_DENSE)
    }
}

/// Vertices (stated: 111 M keys).
const GNN_VERTICES: u64 = 111_059_956;
/// Labelled vertices of the training split (the benchmark's; the paper does not state it).
const GNN_EXAMPLES: u64 = 1_207_179;
/// Examples of a batch (stated).
const GNN_BATCH: u64 = 32;
/// Vertices of a batch: 16 neighbours in each of two layers (stated).
const GNN_SAMPLED: u64 = GNN_BATCH * (1 + 16 + 16 * 16);
/// Modelled keys stand for so many.
const GNN_KEYS_PER_KEY: u64 = 32;
/// Bytes of a value with its AdaGrad part: the stated 413.7 GB over the stated 111 M keys.
const GNN_VALUE_BYTES: u64 = 4_000;
/// Time for a batch: 5.3 minutes (stated) for an epoch on 256 workers, taken for computation.
const GNN_BATCH_NANOS: u64 = 2_160_000_000;
/// Share of a vertex's neighbours in its own part of the graph, which METIS maximises (assumed).
const GNN_INSIDE: f64 = 0.85;

/// Each node has a part of the graph; most neighbours are in it.
pub(super) struct Gnn {
    facts: Facts,
    nodes: usize,
    settled: bool,
    part: u64,
    ranks: Ranks,
}

impl Gnn {
    pub(super) fn new(nodes: usize, settled: bool) -> Self {
        let facts = Facts::of_batches(
            settled_layout(),
            GNN_VALUE_BYTES,
            GNN_KEYS_PER_KEY,
            GNN_EXAMPLES,
            GNN_BATCH,
        );
        let part = GNN_VERTICES / GNN_KEYS_PER_KEY / nodes as u64;
        // Citations are unequal, sampled neighbours a little less so (assumed).
        Self { facts, nodes, settled, part, ranks: Ranks::new(part, 0.8, 10) }
    }

    fn vertex(&self, part: u64, rank: u64) -> Key {
        let vertex = part * self.part + rank;
        let owner = NodeId(u16::try_from(part).expect("a part a node"));
        if self.settled { settled_key(vertex, owner, self.nodes) } else { Key(vertex) }
    }
}

impl Pattern for Gnn {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, (node, _): NodeWorker, chance: &mut Chance) -> Work {
        let own = u64::from(node.0);
        let mut keys = Vec::new();
        for _ in 0..GNN_SAMPLED / GNN_KEYS_PER_KEY {
            let inside = self.nodes == 1 || chance.random_bool(GNN_INSIDE);
            let part = if inside {
                own
            } else {
                (own + chance.random_range(1..self.nodes as u64)) % self.nodes as u64
            };
            keys.push(self.vertex(part, self.ranks.draw(chance)));
        }
        Work::of(keys, GNN_BATCH_NANOS, chance)
    }

    fn hot(&self) -> Vec<Key> {
        let hot = self.ranks.at_least(HOT / self.part as f64);
        let parts = 0..self.nodes as u64;
        parts.flat_map(|part| (0..hot).map(move |rank| self.vertex(part, rank))).collect()
    }
}
