//! Reads a knowledge graph from a folder of triple files, or from one file that is split. [`Facts`]
//! are what was read, with what is odd about them: repeated, in several splits, of names that train
//! does not know.
//!
//! `train.del` makes a folder one of integer ids (as LibKGE writes them, with optional
//! `entity_ids.del` and `relation_ids.del`), else `train.txt`, `train.tsv` or `train.csv` one of
//! names. `train2id.txt` (OpenKE) is read if its order of columns is asked for.
//!
//! # One file
//! Facts of one list are held out, for valid and for test.
//!
//! Of ten facts eight are trained on, one is for valid, and one for test, by a seed (as PyKEEN
//! splits: Ali et al., JMLR 2021). No entity and no relation is held out with its last fact, so
//! train knows all names, and the parts become smaller if that leaves too few. A fact that is
//! listed twice is taken once, or it could be in two parts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::data::family;
use crate::data::lines::read;
use crate::data::names::Names;
use crate::data::triples::{ColumnOrder, File, Folder, Notes, RawTriple, Vocabulary};
use crate::data::{DataError, Looks, looks_like};
use crate::files::is_shared;
use crate::kge::graph::{
    Graph, GraphCounts, GraphFiles, GraphForm, GraphOptions, GraphSource, Triple,
};

impl Graph {
    /// Reads the folder `path`: `train`, and where they exist `valid` (or `dev`) and `test`, each
    /// as `.txt`, `.tsv`, `.csv` or `.del`, compressed (`.gz`) or not. A file is split into the
    /// three: of ten triples eight, one and one, by a seed, and no name is left out of train. Cost:
    /// a few hash tables of all triples.
    ///
    /// # Errors
    ///
    /// A folder or file that is missing or unreadable, a malformed line (with file, line, column),
    /// no training triple, columns that are in another order.
    pub fn load(path: &Path) -> Result<Self, DataError> {
        Self::load_with(path, &GraphOptions::default())
    }

    /// [`Graph::load`] with choices.
    ///
    /// # Errors
    ///
    /// As [`Graph::load`].
    pub fn load_with(path: &Path, options: &GraphOptions) -> Result<Self, DataError> {
        load(path, options)
    }

    /// Generates family trees: facts of kinship in which every held-out fact follows from training
    /// facts, so that the best possible filtered MRR is 1. The same seed gives the same graph.
    #[must_use]
    pub fn family(seed: u64) -> Self {
        Self::families(seed, FAMILIES)
    }

    /// [`Graph::family`] with another number of families than 60, at least one; a family has about
    /// 44 people.
    #[must_use]
    pub fn families(seed: u64, families: usize) -> Self {
        family::graph(seed, families.max(1))
    }
}

/// [`Graph::load_with`].
fn load(path: &Path, options: &GraphOptions) -> Result<Graph, DataError> {
    // A file whose column order the user gives is not data of another task; a pipe can be read only
    // once.
    let looks =
        if options.column_order.is_some() || is_shared(path) { None } else { looks_like(path) };
    let other = |looks| DataError::OtherTask { path: path.to_path_buf(), looks };
    match (looks, load_any(path, options)) {
        // Three numbers a line can be read as ids.
        (Some(looks @ Looks::Vectors), Ok(_)) => Err(other(looks)),
        (Some(looks @ Looks::Ratings), Ok(graph)) if has_few_tails(&graph) => Err(other(looks)),
        (Some(looks), Err(error)) if is_of_lines(&error, looks) => Err(other(looks)),
        (_, loaded) => loaded,
    }
}

/// Returns true if there are fewer tails than twice the relations, as of ratings read as triples:
/// facts with numbers are of few relations.
fn has_few_tails(graph: &Graph) -> bool {
    let tails: HashSet<u32> = graph.train.iter().map(|triple| triple.object).collect();
    tails.len() < 2 * graph.relations.len()
}

/// Returns true if what is wrong may be that the lines are no triples. Words are no text because of
/// a line in their middle.
fn is_of_lines(error: &DataError, looks: Looks) -> bool {
    match error {
        DataError::Malformed { line, .. } => match looks {
            Looks::Triples => false,
            Looks::Text => *line == 1,
            _ => true,
        },
        DataError::MissingSplit { .. } => looks != Looks::Triples,
        DataError::OtherOrder { .. } => matches!(looks, Looks::Ratings | Looks::Vectors),
        _ => false,
    }
}

fn load_any(path: &Path, options: &GraphOptions) -> Result<Graph, DataError> {
    if path.exists() && !path.is_dir() {
        return load_file(path, options);
    }
    // Tells a folder that is missing or closed from one without the file.
    path.read_dir()
        .map_err(|error| DataError::Unreadable { path: path.to_path_buf(), error: error.into() })?;
    load_from(&Folder { path, read: &read }, options)
}

/// Returns the graph in a folder that is there.
pub(crate) fn load_from(folder: &Folder<'_>, options: &GraphOptions) -> Result<Graph, DataError> {
    if let Some(train) = File::find(folder, &TRAIN, &IDS)? {
        return load_ids(folder, &train);
    }
    if let Some(train) = File::find(folder, &TRAIN, &NAMES)? {
        return load_names(folder, &train, options);
    }
    let open_ke = File::at(folder, folder.path.join(OPEN_KE[0]))?;
    let path = folder.path.to_path_buf();
    match (open_ke, options.column_order) {
        (Some(train), Some(ColumnOrder::Htr)) => load_open_ke(folder, &train),
        (Some(train), _) => Err(DataError::OpenKe { path: train.path }),
        (None, _) => Err(DataError::MissingSplit { folder: path, split: "train" }),
    }
}

fn load_names(
    folder: &Folder<'_>,
    train: &File,
    options: &GraphOptions,
) -> Result<Graph, DataError> {
    let valid = File::find(folder, &VALID, &NAMES)?;
    let test = File::find(folder, &TEST, &NAMES)?;
    let (mut entities, mut relations, mut notes) = Default::default();
    let order = options.column_order.unwrap_or_default();
    let mut splits =
        [read_train(train, options, [&mut entities, &mut relations], &mut notes)?, vec![], vec![]];
    for (split, file) in splits[1..].iter_mut().zip([&valid, &test]) {
        if let Some(file) = file {
            *split = file.names(order, [&mut entities, &mut relations], &mut notes)?;
        }
    }
    let files =
        [Some(train), valid.as_ref(), test.as_ref()].map(|file| file.map(|file| file.path.clone()));
    let source = source(folder.path, GraphForm::Names(order), files, None, notes);
    Facts::new(splits.map(typed), entities.into_names(), relations.into_names(), source).graph()
}

/// Reads names to train on, and makes sure that their columns are those that are meant.
fn read_train(
    file: &File,
    options: &GraphOptions,
    [entities, relations]: [&mut Vocabulary; 2],
    notes: &mut Notes,
) -> Result<Vec<RawTriple>, DataError> {
    let order = options.column_order.unwrap_or_default();
    let triples = file.names(order, [&mut *entities, &mut *relations], notes)?;
    let is_chosen = options.column_order.is_some() || notes.header.is_some();
    if !is_chosen && looks_like_htr(&triples, entities, relations) {
        return Err(DataError::OtherOrder { path: file.path.clone() });
    }
    Ok(triples)
}

/// Returns true if what is read as relations are entities: most of them are heads, too, and no tail
/// is.
fn looks_like_htr(triples: &[RawTriple], entities: &Vocabulary, relations: &Vocabulary) -> bool {
    let (mut is_head, mut is_tail) =
        (vec![false; entities.names().len()], vec![false; entities.names().len()]);
    for [head, _, tail] in triples {
        (is_head[*head as usize], is_tail[*tail as usize]) = (true, true);
    }
    let tails = is_tail.iter().filter(|is_tail| **is_tail).count();
    let all = relations.names().len();
    let name = |index| relations.names().bytes(index).unwrap_or_default();
    let are_heads = (0..all)
        .filter_map(|index| entities.find(name(index)))
        .filter(|index| is_head[*index as usize]);
    let is_never_both =
        is_head.iter().zip(&is_tail).all(|(is_head, is_tail)| !(*is_head && *is_tail));
    is_never_both && tails < all && 2 * are_heads.count() >= all
}

fn load_ids(folder: &Folder<'_>, train: &File) -> Result<Graph, DataError> {
    let entity_list = File::find(folder, &["entity_ids"], &IDS)?;
    let relation_list = File::find(folder, &["relation_ids"], &IDS)?;
    let listed = |file: &Option<File>| match file {
        Some(file) => file.id_names().map(|list| Some(names(&list))),
        None => Ok(None),
    };
    let (entities, relations) = (listed(&entity_list)?, listed(&relation_list)?);
    let (valid, test) = (File::find(folder, &VALID, &IDS)?, File::find(folder, &TEST, &IDS)?);
    let files = [Some(train), valid.as_ref(), test.as_ref()];
    let read = |file: &File, limits| file.ids(ColumnOrder::Hrt, limits);
    let source = |files| source(folder.path, GraphForm::Ids, files, None, Notes::default());
    assemble_ids(files, [entities, relations], read, source)
}

fn load_open_ke(folder: &Folder<'_>, train: &File) -> Result<Graph, DataError> {
    let at = |name: &str| File::at(folder, folder.path.join(name));
    let [_, valid, test, entities, relations] = OPEN_KE;
    let listed = |name: &str| match at(name)? {
        Some(file) => file.counted_names().map(|list| Some(names(&list))),
        None => Ok(None),
    };
    let (entities, relations, valid, test) =
        (listed(entities)?, listed(relations)?, at(valid)?, at(test)?);
    let files = [Some(train), valid.as_ref(), test.as_ref()];
    let source = |files| source(folder.path, GraphForm::OpenKe, files, None, Notes::default());
    assemble_ids(files, [entities, relations], File::counted_ids, source)
}

/// Returns a graph of ids, whose names are those that are listed, if they are, else the ids.
fn assemble_ids(
    files: [Option<&File>; 3],
    [entities, relations]: [Option<Names>; 2],
    read: impl Fn(&File, [Option<u32>; 3]) -> Result<Vec<RawTriple>, DataError>,
    source: impl FnOnce([Option<PathBuf>; 3]) -> GraphFiles,
) -> Result<Graph, DataError> {
    let limit = |names: &Option<Names>| names.as_ref().map(|names| names.len() as u32);
    let limits = [limit(&entities), limit(&relations), limit(&entities)];
    let mut splits = [const { Vec::new() }; 3];
    for (split, file) in splits.iter_mut().zip(&files) {
        if let Some(file) = file {
            *split = read(file, limits)?;
        }
    }
    let entities = entities.unwrap_or_else(|| renumber(&mut splits, &[0, 2]));
    let relations = relations.unwrap_or_else(|| renumber(&mut splits, &[1]));
    let source = source(files.map(|file| file.map(|file| file.path.clone())));
    Facts::new(splits.map(typed), entities, relations, source).graph()
}

/// Returns the graph in one file, split.
fn load_file(path: &Path, options: &GraphOptions) -> Result<Graph, DataError> {
    check_alone(path)?;
    let folder = Folder { path: path.parent().unwrap_or(path), read: &read };
    let missing = || DataError::Empty { path: path.to_path_buf() };
    let file = File::at(&folder, path.to_path_buf())?.ok_or_else(missing)?;
    let name = path.to_string_lossy();
    let is_ids = [".del", ".del.gz"].iter().any(|ending| name.ends_with(ending));
    let (mut entities, mut relations, mut notes) =
        (Vocabulary::default(), Vocabulary::default(), Notes::default());
    let order = options.column_order.unwrap_or_default();
    let (triples, entities, relations, form) = if is_ids {
        let mut splits = [file.ids(order, [None; 3])?, Vec::new(), Vec::new()];
        let (entities, relations) = (renumber(&mut splits, &[0, 2]), renumber(&mut splits, &[1]));
        let [triples, ..] = splits;
        (triples, entities, relations, GraphForm::Ids)
    } else {
        let triples = read_train(&file, options, [&mut entities, &mut relations], &mut notes)?;
        (triples, entities.into_names(), relations.into_names(), GraphForm::Names(order))
    };
    let files = [Some(path.to_path_buf()), None, None];
    let source = source(path, form, files, Some(options.seed), notes);
    let all = Facts::new([typed(triples), Vec::new(), Vec::new()], entities, relations, source);
    hold_out(all, options.seed).graph()
}

/// Checks that a file is not one part of a folder whose other parts are to be read, too.
fn check_alone(path: &Path) -> Result<(), DataError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stems = [TRAIN.as_slice(), &VALID, &TEST].concat();
    let Some(own) = name.split('.').next().filter(|own| stems.contains(own)) else { return Ok(()) };
    let mut others = Vec::new();
    for stem in stems.iter().filter(|stem| **stem != own) {
        let endings = NAMES
            .iter()
            .chain(&IDS)
            .flat_map(|ending| [(*ending).to_owned(), format!("{ending}.gz")]);
        others.extend(endings.map(|ending| path.with_file_name(format!("{stem}.{ending}"))));
    }
    match others.into_iter().find(|path| path.exists()) {
        Some(other) => Err(DataError::OneSplit { path: path.to_path_buf(), other }),
        None => Ok(()),
    }
}

fn source(
    path: &Path,
    form: GraphForm,
    files: [Option<PathBuf>; 3],
    split_seed: Option<u64>,
    notes: Notes,
) -> GraphFiles {
    let Notes { trimmed, header, unused } = notes;
    GraphFiles { path: path.to_path_buf(), form, files, split_seed, header, unused, trimmed }
}

fn typed(triples: Vec<RawTriple>) -> Vec<Triple> {
    triples
        .into_iter()
        .map(|[subject, relation, object]| Triple { subject, relation, object })
        .collect()
}

fn names(list: &[&[u8]]) -> Names {
    let mut names = Names::default();
    list.iter().for_each(|name| names.push(name));
    names
}

/// Replaces the ids at `places` of the triples by their position among those that occur, so that a
/// large id costs no memory, and returns the ids as names.
fn renumber(splits: &mut [Vec<RawTriple>; 3], places: &[usize]) -> Names {
    let occurrences =
        splits.iter().flatten().flat_map(|triple| places.iter().map(|place| triple[*place]));
    let mut ids: Vec<u32> = occurrences.collect();
    ids.sort_unstable();
    ids.dedup();
    for triple in splits.iter_mut().flatten() {
        for place in places {
            triple[*place] = ids.partition_point(|id| *id < triple[*place]) as u32;
        }
    }
    let mut names = Names::default();
    ids.iter().for_each(|id| names.push(id.to_string().as_bytes()));
    names
}

/// Facts as they were read.
pub(crate) struct Facts {
    /// Of train, valid and test.
    pub(crate) splits: [Vec<Triple>; 3],
    /// Facts that were left out, as train has them.
    pub(crate) repeated: u64,
    pub(crate) entities: Names,
    pub(crate) relations: Names,
    pub(crate) source: GraphFiles,
}

impl Facts {
    pub(crate) fn new(
        splits: [Vec<Triple>; 3],
        entities: Names,
        relations: Names,
        source: GraphFiles,
    ) -> Self {
        Self { splits, repeated: 0, entities, relations, source }
    }

    /// Returns the graph: each training fact once, the others as they are.
    ///
    /// # Errors
    ///
    /// No training fact.
    pub(crate) fn graph(self) -> Result<Graph, DataError> {
        let Self { splits: [train, valid, test], repeated, entities, relations, source } = self;
        let read = train.len();
        let mut known = HashSet::with_capacity(read);
        let train: Vec<Triple> = train.into_iter().filter(|triple| known.insert(*triple)).collect();
        if train.is_empty() {
            let [path, ..] = source.files;
            return Err(DataError::Empty { path: path.unwrap_or(source.path) });
        }
        let known = Known {
            facts: known,
            entities: seen(&train, entities.len()),
            relations: seen_relations(&train, relations.len()),
        };
        let duplicates = repeated + (read - train.len()) as u64;
        let mut counts = GraphCounts { duplicates, ..GraphCounts::default() };
        let valid_facts: HashSet<&Triple> = valid.iter().collect();
        let test_facts: HashSet<&Triple> = test.iter().collect();
        counts.duplicates_valid = (valid.len() - valid_facts.len()) as u64;
        counts.duplicates_test = (test.len() - test_facts.len()) as u64;
        counts.overlap_valid = count(&valid, |triple| known.facts.contains(triple));
        counts.overlap_test = count(&test, |triple| known.facts.contains(triple));
        counts.valid_in_test = count(&valid, |triple| test_facts.contains(triple));
        counts.unknown_valid = count(&valid, |triple| !known.all_of(triple));
        counts.unknown_test = count(&test, |triple| !known.all_of(triple));
        let held_out: Vec<Triple> = valid.iter().chain(&test).copied().collect();
        counts.unknown_entities = unknown(&known.entities, &seen(&held_out, entities.len()));
        counts.unknown_relations =
            unknown(&known.relations, &seen_relations(&held_out, relations.len()));
        let source = GraphSource::Files(source);
        Ok(Graph { train, valid, test, entities, relations, counts, source })
    }
}

/// The names that train knows.
struct Known {
    facts: HashSet<Triple>,
    entities: Vec<bool>,
    relations: Vec<bool>,
}

impl Known {
    /// Returns true if train knows entities and relation of `triple`.
    fn all_of(&self, triple: &Triple) -> bool {
        let Triple { subject, relation, object } = *triple;
        [subject, object].iter().all(|entity| self.entities[*entity as usize])
            && self.relations[relation as usize]
    }
}

fn count(triples: &[Triple], is_counted: impl Fn(&Triple) -> bool) -> u64 {
    triples.iter().filter(|triple| is_counted(triple)).count() as u64
}

/// Marks the entities, of `all`, that occur.
fn seen(triples: &[Triple], all: usize) -> Vec<bool> {
    let mut seen = vec![false; all];
    triples
        .iter()
        .flat_map(|t| [t.subject, t.object])
        .for_each(|entity| seen[entity as usize] = true);
    seen
}

/// Marks the relations, of `all`, that occur.
fn seen_relations(triples: &[Triple], all: usize) -> Vec<bool> {
    let mut seen = vec![false; all];
    triples.iter().for_each(|triple| seen[triple.relation as usize] = true);
    seen
}

/// Returns the names that occur and are not known.
fn unknown(known: &[bool], seen: &[bool]) -> u64 {
    known.iter().zip(seen).filter(|(known, seen)| **seen && !**known).count() as u64
}

/// Families of the generated graph.
const FAMILIES: usize = 60;

/// One of so many facts is held out for valid, and one for test.
const HELD_OUT: usize = 10;

/// Moves facts from train to valid and test, each part in the order of the list. The same seed
/// moves the same facts.
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

/// The number of uses of each name in train.
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

/// Names of the files of a split, without ending, in the order in which they are looked for.
const TRAIN: [&str; 1] = ["train"];
const VALID: [&str; 2] = ["valid", "dev"];
const TEST: [&str; 1] = ["test"];
/// Endings of files of names, in the order in which they are looked for; each may be followed by
/// `.gz`.
const NAMES: [&str; 3] = ["txt", "tsv", "csv"];
/// The ending of files of ids.
const IDS: [&str; 1] = ["del"];
/// OpenKE's files: train, valid, test, and the names of entities and relations.
const OPEN_KE: [&str; 5] =
    ["train2id.txt", "valid2id.txt", "test2id.txt", "entity2id.txt", "relation2id.txt"];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::data::names::Names;
    use crate::data::triples::ColumnOrder;
    use crate::kge::graph::{Graph, GraphFiles, GraphForm};

    fn split(triples: &[[u32; 3]], seed: u64) -> Graph {
        let typed = |[subject, relation, object]: [u32; 3]| Triple { subject, relation, object };
        let names = |count: u32| {
            let mut names = Names::default();
            (0..count).for_each(|name| names.push(name.to_string().as_bytes()));
            names
        };
        let most = |place: &[usize]| {
            let used =
                triples.iter().flat_map(|triple| place.iter().map(|place| triple[*place] + 1));
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
        let facts = Facts::new(
            [all, Vec::new(), Vec::new()],
            names(most(&[0, 2])),
            names(most(&[1])),
            source,
        );
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
        // A star: each entity but the one in the middle has one fact. And a relation of one fact,
        // and loops.
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
