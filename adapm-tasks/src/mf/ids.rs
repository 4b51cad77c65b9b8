//! Ids of rows or columns as files have them, and the dense indices of those that occur.
//!
//! While files are read an id gets its index by first appearance; in the end indices are put into the order of the ids, so
//! that they do not depend on the order of the lines.

use std::collections::HashMap;

/// The ids that were seen so far.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    index: HashMap<u64, u32>,
    ids: Vec<u64>,
}

impl Ids {
    /// The preliminary index of an id, which is added if it is new; `None` if there are too many.
    pub(crate) fn add(&mut self, id: u64) -> Option<u32> {
        if let Some(index) = self.index.get(&id) {
            return Some(*index);
        }
        // The last index stays free: a number of ids is a `u32`, too.
        let index = u32::try_from(self.ids.len()).ok().filter(|index| *index < u32::MAX)?;
        self.index.insert(id, index);
        self.ids.push(id);
        Some(index)
    }

    /// The preliminary index of an id that was seen.
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        self.index.get(&id).copied()
    }

    /// The ids in ascending order, and the final index for each preliminary one.
    pub(crate) fn in_order(self) -> (Vec<u64>, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.ids.len() as u32).collect();
        order.sort_unstable_by_key(|index| self.ids[*index as usize]);
        let mut final_index = vec![0; order.len()];
        for (place, index) in (0..).zip(&order) {
            final_index[*index as usize] = place;
        }
        (order.into_iter().map(|index| self.ids[index as usize]).collect(), final_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_in_the_order_of_the_ids_whatever_the_order_of_the_lines() {
        let mut ids = Ids::default();
        let preliminary = [7, u64::MAX, 3, 7].map(|id| ids.add(id).expect("few"));
        assert_eq!((preliminary, ids.find(3), ids.find(4)), ([0, 1, 2, 0], Some(2), None));
        assert_eq!(ids.in_order(), (vec![3, 7, u64::MAX], vec![1, 2, 0]));
    }
}
