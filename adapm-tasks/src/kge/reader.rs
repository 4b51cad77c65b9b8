//! Reads a knowledge graph from a folder of triple files, or from one file that is split.
//!
//! `train.del` makes a folder one of integer ids (as LibKGE writes them, with optional `entity_ids.del` and
//! `relation_ids.del`), else `train.txt`, `train.tsv` or `train.csv` one of names. `train2id.txt` (OpenKE) is read if its order
//! of columns is asked for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::data::lines::read;
use crate::data::triples::{ColumnOrder, File, Folder, Notes, RawTriple, Vocabulary};
use crate::data::{DataError, Looks, looks_like};
use crate::files::is_shared;
use crate::kge::facts::Facts;
use crate::kge::graph::{Graph, GraphFiles, GraphForm, GraphOptions, Names, Triple};
use crate::kge::split;

/// [`Graph::load_with`].
pub(crate) fn load(path: &Path, options: &GraphOptions) -> Result<Graph, DataError> {
    // What is told in which order its columns are is no data of another task; a pipe can be read once.
    let looks = if options.column_order.is_some() || is_shared(path) { None } else { looks_like(path) };
    let other = |looks| DataError::OtherTask { path: path.to_path_buf(), looks };
    match (looks, load_any(path, options)) {
        // Three numbers a line can be read as ids.
        (Some(looks @ Looks::Vectors), Ok(_)) => Err(other(looks)),
        (Some(looks @ Looks::Ratings), Ok(graph)) if has_few_tails(&graph) => Err(other(looks)),
        (Some(looks), Err(error)) if is_of_lines(&error, looks) => Err(other(looks)),
        (_, loaded) => loaded,
    }
}

/// Returns true if there are fewer tails than twice the relations, as of ratings read as triples: facts with numbers are of few
/// relations.
fn has_few_tails(graph: &Graph) -> bool {
    let tails: HashSet<u32> = graph.train.iter().map(|triple| triple.object).collect();
    tails.len() < 2 * graph.relations.len()
}

/// Returns true if what is wrong may be that the lines are no triples. Words are no text because of a line in their middle.
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

/// The graph in a folder that is there.
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

fn load_names(folder: &Folder<'_>, train: &File, options: &GraphOptions) -> Result<Graph, DataError> {
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
    let files = [Some(train), valid.as_ref(), test.as_ref()].map(|file| file.map(|file| file.path.clone()));
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

/// Returns true if what is read as relations are entities: most of them are heads, too, and no tail is.
fn looks_like_htr(triples: &[RawTriple], entities: &Vocabulary, relations: &Vocabulary) -> bool {
    let (mut is_head, mut is_tail) =
        (vec![false; entities.names().len()], vec![false; entities.names().len()]);
    for [head, _, tail] in triples {
        (is_head[*head as usize], is_tail[*tail as usize]) = (true, true);
    }
    let tails = is_tail.iter().filter(|is_tail| **is_tail).count();
    let all = relations.names().len();
    let name = |index| relations.names().bytes(index).unwrap_or_default();
    let are_heads =
        (0..all).filter_map(|index| entities.find(name(index))).filter(|index| is_head[*index as usize]);
    let is_never_both = is_head.iter().zip(&is_tail).all(|(is_head, is_tail)| !(*is_head && *is_tail));
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
    let (entities, relations, valid, test) = (listed(entities)?, listed(relations)?, at(valid)?, at(test)?);
    let files = [Some(train), valid.as_ref(), test.as_ref()];
    let source = |files| source(folder.path, GraphForm::OpenKe, files, None, Notes::default());
    assemble_ids(files, [entities, relations], File::counted_ids, source)
}

/// A graph of ids, whose names are those that are listed, if they are, else the ids.
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

/// The graph in one file, split.
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
    split::hold_out(all, options.seed).graph()
}

/// Checks that a file is not one part of a folder whose other parts are to be read, too.
fn check_alone(path: &Path) -> Result<(), DataError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stems = [TRAIN.as_slice(), &VALID, &TEST].concat();
    let Some(own) = name.split('.').next().filter(|own| stems.contains(own)) else { return Ok(()) };
    let mut others = Vec::new();
    for stem in stems.iter().filter(|stem| **stem != own) {
        let endings =
            NAMES.iter().chain(&IDS).flat_map(|ending| [(*ending).to_owned(), format!("{ending}.gz")]);
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
    triples.into_iter().map(|[subject, relation, object]| Triple { subject, relation, object }).collect()
}

fn names(list: &[&[u8]]) -> Names {
    let mut names = Names::default();
    list.iter().for_each(|name| names.push(name));
    names
}

/// Replaces the ids at `places` of the triples by their position among those that occur, so that a large id costs no
/// memory, and returns the ids as names.
fn renumber(splits: &mut [Vec<RawTriple>; 3], places: &[usize]) -> Names {
    let occurrences = splits.iter().flatten().flat_map(|triple| places.iter().map(|place| triple[*place]));
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

/// Names of the files of a split, without ending, in the order in which they are looked for.
const TRAIN: [&str; 1] = ["train"];
const VALID: [&str; 2] = ["valid", "dev"];
const TEST: [&str; 1] = ["test"];
/// Endings of files of names, in the order in which they are looked for; each may be followed by `.gz`.
const NAMES: [&str; 3] = ["txt", "tsv", "csv"];
/// The ending of files of ids.
const IDS: [&str; 1] = ["del"];
/// OpenKE's files: train, valid, test, and the names of entities and relations.
const OPEN_KE: [&str; 5] =
    ["train2id.txt", "valid2id.txt", "test2id.txt", "entity2id.txt", "relation2id.txt"];
