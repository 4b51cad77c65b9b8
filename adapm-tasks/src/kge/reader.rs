//! Reads a knowledge graph from a folder of triple files.
//!
//! `train.del` makes it a folder of integer ids (as LibKGE writes them, with optional `entity_ids.del` and
//! `relation_ids.del`), else `train.txt` or `train.tsv` one of names.

use std::collections::HashSet;
use std::path::Path;

use crate::data::DataError;
use crate::data::lines::read;
use crate::data::triples::{File, Folder, RawTriple, Vocabulary};
use crate::kge::graph::{Graph, GraphCounts, GraphSource, Names, Triple};

/// [`Graph::load`].
pub(crate) fn load(folder: &Path) -> Result<Graph, DataError> {
    // Tells a folder that is missing, no folder, or closed from one without the file.
    folder
        .read_dir()
        .map_err(|error| DataError::Unreadable { path: folder.to_path_buf(), error: error.into() })?;
    load_from(&Folder { path: folder, read: &read })
}

/// The graph in a folder that is there.
pub(crate) fn load_from(folder: &Folder<'_>) -> Result<Graph, DataError> {
    let ids = File::find(folder, "train", &["del"])?;
    let names = if ids.is_some() { None } else { File::find(folder, "train", &["txt", "tsv"])? };
    match (ids, names) {
        (Some(train), _) => load_ids(folder, &train),
        (None, Some(train)) => load_names(folder, &train),
        (None, None) => Err(DataError::MissingSplit { folder: folder.path.to_path_buf(), split: "train" }),
    }
}

fn load_names(folder: &Folder<'_>, train: &File) -> Result<Graph, DataError> {
    let valid = File::find(folder, "valid", &["txt", "tsv"])?;
    let test = File::find(folder, "test", &["txt", "tsv"])?;
    let (mut entities, mut relations) = (Vocabulary::default(), Vocabulary::default());
    let mut splits = [train.names(&mut entities, &mut relations)?, Vec::new(), Vec::new()];
    for (split, file) in splits[1..].iter_mut().zip([&valid, &test]) {
        if let Some(file) = file {
            *split = file.names(&mut entities, &mut relations)?;
        }
    }
    let source = GraphSource::NameFiles(folder.path.to_path_buf());
    assemble(splits, names(&entities.names), names(&relations.names), source, train)
}

fn load_ids(folder: &Folder<'_>, train: &File) -> Result<Graph, DataError> {
    let entity_list = File::find(folder, "entity_ids", &["del"])?;
    let relation_list = File::find(folder, "relation_ids", &["del"])?;
    let listed = |file: &Option<File>| match file {
        Some(file) => file.id_names().map(|list| Some(names(&list))),
        None => Ok(None),
    };
    let (entities, relations) = (listed(&entity_list)?, listed(&relation_list)?);
    let limit = |names: &Option<Names>| names.as_ref().map(|names| names.len() as u32);
    let limits = [limit(&entities), limit(&relations), limit(&entities)];
    let mut splits = [train.ids(limits)?, Vec::new(), Vec::new()];
    for (split, stem) in splits[1..].iter_mut().zip(["valid", "test"]) {
        if let Some(file) = File::find(folder, stem, &["del"])? {
            *split = file.ids(limits)?;
        }
    }
    let entities = entities.unwrap_or_else(|| renumber(&mut splits, &[0, 2]));
    let relations = relations.unwrap_or_else(|| renumber(&mut splits, &[1]));
    assemble(splits, entities, relations, GraphSource::IdFiles(folder.path.to_path_buf()), train)
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

fn assemble(
    [train, valid, test]: [Vec<RawTriple>; 3],
    entities: Names,
    relations: Names,
    source: GraphSource,
    file: &File,
) -> Result<Graph, DataError> {
    let typed = |[subject, relation, object]: RawTriple| Triple { subject, relation, object };
    let read = train.len();
    let mut seen = HashSet::with_capacity(read);
    let train: Vec<Triple> = train.into_iter().map(typed).filter(|triple| seen.insert(*triple)).collect();
    if train.is_empty() {
        return Err(DataError::Empty { path: file.path.clone() });
    }
    let (valid, test): (Vec<_>, Vec<_>) =
        (valid.into_iter().map(typed).collect(), test.into_iter().map(typed).collect());
    let known_entities: HashSet<u32> = train.iter().flat_map(|t| [t.subject, t.object]).collect();
    let known_relations: HashSet<u32> = train.iter().map(|t| t.relation).collect();
    let is_known = |triple: &&Triple| {
        known_entities.contains(&triple.subject)
            && known_relations.contains(&triple.relation)
            && known_entities.contains(&triple.object)
    };
    let unknown = |split: &[Triple]| (split.len() - split.iter().filter(is_known).count()) as u64;
    let counts = GraphCounts {
        duplicates: (read - train.len()) as u64,
        unknown_valid: unknown(&valid),
        unknown_test: unknown(&test),
    };
    Ok(Graph { train, valid, test, entities, relations, counts, source })
}
