//! Ids of rows or columns as files have them, and the dense indices of those that occur, which
//! cells are of.
//!
//! While files are read an id gets its index by first appearance; in the end indices are put into
//! the order of the ids, so that they do not depend on the order of the lines. Ids are held as
//! numbers as long as all of them are; one that is a name makes names of all, which loses nothing:
//! a number has one way to be written.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};

use crate::data::RatingId;
use crate::kge::Names;
use crate::run::consistency::Digest;
use crate::run::file::{Fault, Reader};
use crate::run::tensors::{Draft, Parts};

/// The ids of rows or columns by index, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// As many, each its own index, as of generated ratings.
    Indices(u32),
    /// Numbers.
    Numbers(Vec<u64>),
    /// Names, in the order of their bytes.
    Names(Names),
}

impl Ids {
    /// Returns the number of ids.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Indices(len) => *len as usize,
            Self::Numbers(ids) => ids.len(),
            Self::Names(names) => names.len(),
        }
    }

    /// Returns the id at an index, `None` beyond the last.
    pub(crate) fn get(&self, index: usize) -> Option<RatingId<'_>> {
        match self {
            Self::Indices(len) => (index < *len as usize).then_some(RatingId::Number(index as u64)),
            Self::Numbers(ids) => ids.get(index).map(|id| RatingId::Number(*id)),
            Self::Names(names) => names.bytes(index).map(|name| RatingId::Name(text(name))),
        }
    }

    /// Returns the index of an id. A binary search.
    pub(crate) fn find(&self, id: RatingId<'_>) -> Option<usize> {
        match (self, id) {
            (Self::Indices(len), RatingId::Number(id)) => {
                usize::try_from(id).ok().filter(|index| index < &(*len as usize))
            }
            (Self::Numbers(ids), RatingId::Number(id)) => ids.binary_search(&id).ok(),
            (Self::Names(names), id) => id.with_name(|id| place(names, id)),
            (_, RatingId::Name(_)) => None,
        }
    }

    /// Adds them to a digest.
    pub(crate) fn add_to(&self, digest: &mut Digest) {
        digest.word(self.len() as u64);
        match self {
            Self::Indices(_) => {}
            Self::Numbers(ids) => ids.iter().for_each(|id| digest.word(*id)),
            Self::Names(names) => (0..names.len()).for_each(|index| {
                let name = names.bytes(index).unwrap_or_default();
                digest.word(name.len() as u64);
                digest.bytes(name);
            }),
        }
    }

    /// Adds them to a file, as those of the rows of a tensor.
    pub(crate) fn add_to_file<'a>(&'a self, of: &str, draft: Draft<'a>) -> Draft<'a> {
        match self {
            Self::Indices(_) => draft,
            Self::Numbers(ids) => draft.words(ids_of(of), ids),
            Self::Names(names) => draft.names(of, names),
        }
    }

    /// Reads those of so many rows of a tensor.
    ///
    /// # Errors
    ///
    /// Ids that do not ascend, or are no text; numbers and names.
    pub(crate) fn of_parts(parts: &Parts<'_>, of: &str, rows: u64) -> Result<Self, Fault> {
        match (parts.words(&ids_of(of))?, parts.names(of)?) {
            (Some(numbers), None) => Self::Numbers(numbers).sound(),
            (None, Some(names)) => Self::Names(names).sound(),
            (None, None) => u32::try_from(rows).map(Self::Indices).map_err(|_| Fault::Corrupt),
            (Some(_), Some(_)) => Err(Fault::Corrupt),
        }
    }

    /// Reads those of a file of the older form: a form, how many there are, and each.
    ///
    /// # Errors
    ///
    /// Bytes that are missing, ids that do not ascend.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let (form, count) = (reader.count()?, reader.count()?);
        // The list grows with the bytes that are there, not by the count, which may be wrong.
        let ids = match form {
            INDICES => Self::Indices(u32::try_from(count).map_err(|_| Fault::Corrupt)?),
            NUMBERS => Self::Numbers(
                (0..count).map(|_| reader.count()).collect::<Result<Vec<u64>, Fault>>()?,
            ),
            NAMES => {
                let mut names = Names::default();
                for _ in 0..count {
                    names.push(reader.name()?);
                }
                Self::Names(names)
            }
            _ => return Err(Fault::Corrupt),
        };
        ids.sound()
    }

    /// Returns itself if ids ascend and names are text.
    fn sound(self) -> Result<Self, Fault> {
        let is_sound = match &self {
            Self::Indices(_) => true,
            Self::Numbers(ids) => ids.windows(2).all(|two| two[0] < two[1]),
            Self::Names(names) => {
                let is_text =
                    |index| names.bytes(index).is_some_and(|name| str::from_utf8(name).is_ok());
                (0..names.len()).all(is_text)
                    && (1..names.len()).all(|index| names.bytes(index - 1) < names.bytes(index))
            }
        };
        if is_sound { Ok(self) } else { Err(Fault::Corrupt) }
    }
}

fn ids_of(tensor: &str) -> String {
    format!("{tensor}.ids")
}

/// The ids that were seen so far.
#[derive(Debug)]
pub(crate) enum IdMap {
    Numbers { index: HashMap<u64, u32, RandomState>, ids: Vec<u64> },
    Names { index: HashTable<u32>, names: Names, state: RandomState },
}

impl Default for IdMap {
    fn default() -> Self {
        Self::Numbers { index: HashMap::default(), ids: Vec::new() }
    }
}

impl IdMap {
    /// Returns the preliminary index of an id, which is added if it is new; `None` if there are too
    /// many.
    pub(crate) fn add(&mut self, id: RatingId<'_>) -> Option<u32> {
        if let (Self::Numbers { ids, .. }, RatingId::Name(_)) = (&*self, id) {
            *self = Self::named(ids);
        }
        match (self, id) {
            (Self::Numbers { index, ids }, RatingId::Number(id)) => {
                if let Some(index) = index.get(&id) {
                    return Some(*index);
                }
                let next = next(ids.len())?;
                index.insert(id, next);
                ids.push(id);
                Some(next)
            }
            (Self::Names { index, names, state }, id) => {
                id.with_name(|id| insert(index, names, state, id))
            }
            (Self::Numbers { .. }, RatingId::Name(_)) => {
                unreachable!("a name has made names of all")
            }
        }
    }

    /// Returns the preliminary index of an id that was seen.
    pub(crate) fn find(&self, id: RatingId<'_>) -> Option<u32> {
        match (self, id) {
            (Self::Numbers { index, .. }, RatingId::Number(id)) => index.get(&id).copied(),
            (Self::Numbers { .. }, RatingId::Name(_)) => None,
            (Self::Names { index, names, state }, id) => id.with_name(|id| {
                index.find(state.hash_one(id), |at| names.bytes(*at as usize) == Some(id)).copied()
            }),
        }
    }

    /// Returns the index in `others` of each id, if it is there.
    pub(crate) fn among(&self, others: &Self) -> Vec<Option<u32>> {
        match self {
            Self::Numbers { ids, .. } => {
                ids.iter().map(|id| others.find(RatingId::Number(*id))).collect()
            }
            Self::Names { names, .. } => {
                let ids = (0..names.len())
                    .map(|index| RatingId::of(text(names.bytes(index).unwrap_or_default())));
                ids.map(|id| others.find(id)).collect()
            }
        }
    }

    /// Returns the ids in ascending order, and the final index for each preliminary one.
    pub(crate) fn in_order(self) -> (Ids, Vec<u32>) {
        match self {
            Self::Numbers { ids, .. } => {
                let order = order(ids.len(), |index| ids[index]);
                let sorted = order.iter().map(|index| ids[*index as usize]).collect();
                (Ids::Numbers(sorted), places(&order))
            }
            Self::Names { names, .. } => {
                let order = order(names.len(), |index| names.bytes(index));
                let mut sorted = Names::default();
                order.iter().for_each(|index| {
                    sorted.push(names.bytes(*index as usize).unwrap_or_default())
                });
                (Ids::Names(sorted), places(&order))
            }
        }
    }

    /// Returns the numbers as names, with the same indices.
    fn named(ids: &[u64]) -> Self {
        let (mut index, mut names, state) =
            (HashTable::new(), Names::default(), RandomState::default());
        for id in ids {
            RatingId::Number(*id).with_name(|id| insert(&mut index, &mut names, &state, id));
        }
        Self::Names { index, names, state }
    }
}

fn insert(
    index: &mut HashTable<u32>,
    names: &mut Names,
    state: &RandomState,
    id: &[u8],
) -> Option<u32> {
    let hash = state.hash_one(id);
    if let Some(index) = index.find(hash, |at| names.bytes(*at as usize) == Some(id)) {
        return Some(*index);
    }
    let next = next(names.len())?;
    names.push(id);
    index.insert_unique(hash, next, |at| {
        state.hash_one(names.bytes(*at as usize).unwrap_or_default())
    });
    Some(next)
}

/// Returns the index of the next of so many ids. The last one stays free: a number of ids is a
/// `u32`, too.
fn next(len: usize) -> Option<u32> {
    u32::try_from(len).ok().filter(|index| *index < u32::MAX)
}

/// Indices below `len`, ascending by their ids.
fn order<T: Ord>(len: usize, id: impl Fn(usize) -> T) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len as u32).collect();
    order.sort_unstable_by_key(|index| id(*index as usize));
    order
}

/// Returns the place of each index in an order of all.
fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, index) in (0..).zip(order) {
        places[*index as usize] = place;
    }
    places
}

fn place(names: &Names, id: &[u8]) -> Option<usize> {
    let (mut low, mut high) = (0, names.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if names.bytes(middle)? < id { low = middle + 1 } else { high = middle }
    }
    (names.bytes(low) == Some(id)).then_some(low)
}

/// Names of ids are UTF-8: they are made of text, and checked where they are read from a file.
fn text(name: &[u8]) -> &str {
    str::from_utf8(name).unwrap_or_default()
}

const INDICES: u64 = 0;
const NUMBERS: u64 = 1;
const NAMES: u64 = 2;

#[cfg(test)]
mod tests {
    use RatingId::{Name, Number};

    use super::*;

    #[test]
    fn indices_are_in_the_order_of_the_ids_whatever_the_order_of_the_lines() {
        let mut ids = IdMap::default();
        let preliminary = [7, u64::MAX, 3, 7].map(|id| ids.add(Number(id)).expect("few"));
        assert_eq!(
            (preliminary, ids.find(Number(3)), ids.find(Number(4))),
            ([0, 1, 2, 0], Some(2), None)
        );
        assert_eq!(ids.in_order(), (Ids::Numbers(vec![3, 7, u64::MAX]), vec![1, 2, 0]));
    }

    #[test]
    fn a_name_makes_names_of_all_and_indices_stay() {
        let mut ids = IdMap::default();
        let added = [Number(10), Number(9), Name("b"), Number(10), Name("a b"), Name("b")];
        assert_eq!(added.map(|id| ids.add(id).expect("few")), [0, 1, 2, 0, 3, 2]);
        assert_eq!(
            [Number(9), Name("9"), Name("c")].map(|id| ids.find(id)),
            [Some(1), Some(1), None]
        );
        let (ids, places) = ids.in_order();
        assert_eq!(places, [0, 1, 3, 2]);
        let shown: Vec<String> =
            (0..5).filter_map(|index| ids.get(index)).map(|id| id.to_string()).collect();
        assert_eq!(shown, ["10", "9", "a b", "b"]);
        assert_eq!(
            [Number(9), Name("a b"), Number(8)].map(|id| ids.find(id)),
            [Some(1), Some(2), None]
        );
    }

    #[test]
    fn ids_are_found_where_there_are_gaps() {
        let ids = Ids::Numbers(vec![3, 9, 11]);
        let found = [3, 9, 11, 0, 4, 12, u64::MAX].map(|id| ids.find(Number(id)));
        assert_eq!(found, [Some(0), Some(1), Some(2), None, None, None, None]);
        let indices = Ids::Indices(3);
        assert_eq!([0, 2, 3].map(|id| indices.find(Number(id))), [Some(0), Some(2), None]);
        assert_eq!(
            (indices.get(2), indices.get(3), ids.find(Name("3"))),
            (Some(Number(2)), None, None)
        );
    }
}
