//! Which key has a value of which length.

use std::sync::Arc;

use adapm_core::{Key, Layout};

use crate::run::error::TaskError;

/// Groups of keys, one behind the other from key 0; all values of a group are equally long. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    groups: Arc<[Group]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// Its first key.
    first: u64,
    count: u64,
    /// Floats of a value.
    len: usize,
}

impl Group {
    /// The key behind its last.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

impl Shape {
    /// Groups of so many keys with so many floats each. What is too much to count is as much as can be counted, which no
    /// manager lays out.
    pub(crate) fn new(groups: &[(u64, usize)]) -> Self {
        let mut first: u64 = 0;
        let groups = groups.iter().map(|(count, len)| {
            let group = Group { first, count: *count, len: *len };
            first = group.end();
            group
        });
        Self { groups: groups.collect() }
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> u64 {
        self.groups.last().map_or(0, Group::end)
    }

    /// Floats of the value of `key`, 0 if there is no such key.
    pub(crate) fn len_of(&self, key: Key) -> usize {
        self.groups.iter().find(|group| key.0 < group.end()).map_or(0, |group| group.len)
    }

    /// Where the value of `key` starts if all values lie behind each other; also defined one behind the last key.
    pub(crate) fn offset(&self, key: Key) -> usize {
        self.floats(|group| key.0.clamp(group.first, group.end()) - group.first)
    }

    /// Where the value of the key at position `at` of `keys`, which ascend, starts if their values lie behind each other; also
    /// defined one behind the last.
    pub(crate) fn offset_among(&self, keys: &[Key], at: usize) -> usize {
        let position = |key: u64| keys.partition_point(|other| other.0 < key);
        self.floats(|group| {
            let (first, end) = (position(group.first), position(group.end()));
            (at.clamp(first, end) - first) as u64
        })
    }

    /// Floats of all values.
    pub(crate) fn total(&self) -> usize {
        self.floats(|group| group.count)
    }

    /// The manager's layout.
    ///
    /// # Errors
    ///
    /// No key at all, values of no or too many floats, or more of them than can be counted.
    pub(crate) fn layout(&self) -> Result<Layout, TaskError> {
        let extents: Vec<_> = self.groups.iter().map(|group| (group.count, group.len)).collect();
        Layout::dense(&extents).map_err(|error| TaskError::Build(error.into()))
    }

    /// Floats of so many values of each group.
    fn floats(&self, count: impl Fn(&Group) -> u64) -> usize {
        let floats = self.groups.iter().map(|group| (count(group) as usize).saturating_mul(group.len));
        floats.fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_behind_each_other_group_by_group() {
        let shape = Shape::new(&[(3, 2), (0, 9), (2, 5), (1, 1)]);
        assert_eq!((shape.keys(), shape.total()), (6, 17));
        let lens: Vec<usize> = (0..7).map(|key| shape.len_of(Key(key))).collect();
        assert_eq!(lens, [2, 2, 2, 5, 5, 1, 0]);
        let mut start = 0;
        for key in (0..7).map(Key) {
            assert_eq!(shape.offset(key), start);
            start += shape.len_of(key);
        }
        let keys = [1, 2, 4, 5].map(Key);
        let among: Vec<usize> = (0..5).map(|at| shape.offset_among(&keys, at)).collect();
        assert_eq!(among, [0, 2, 4, 9, 10]);
    }

    #[test]
    fn what_is_too_much_is_refused_and_not_counted() {
        let shape = Shape::new(&[(u64::MAX, 1), (2, usize::MAX)]);
        assert_eq!((shape.keys(), shape.total()), (u64::MAX, usize::MAX));
        assert!(shape.layout().is_err() && Shape::new(&[]).layout().is_err());
        assert!(Shape::new(&[(3, 2), (0, 9)]).layout().is_ok());
    }
}
