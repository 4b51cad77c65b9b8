//! A saved model as what an evaluation begins with.
//!
//! Each node reads the values of keys at home there, and no others: those of keys in a row at once,
//! up to a piece. What cannot be read is told once all have their values, as a function of initial
//! values cannot fail.

use std::cell::RefCell;
use std::sync::OnceLock;

use adapm_core::Key;

use crate::run::file::CheckpointError;
use crate::run::parameters::Shape;
use crate::run::topology::home;
use crate::run::values::{Ahead, Values};

/// The parameters of a saved model, by key.
#[derive(Debug)]
pub(crate) struct Stored {
    shape: Shape,
    values: Values,
    failed: OnceLock<CheckpointError>,
}

impl Stored {
    /// Returns these values of the keys of `shape`, in order: as many floats as that has.
    pub(crate) fn new(shape: Shape, values: Values) -> Self {
        Self { shape, values, failed: OnceLock::new() }
    }

    /// Reads the values of `keys`, concatenated in their order.
    ///
    /// # Errors
    ///
    /// As [`Values::read`].
    pub(crate) fn pull(&self, keys: &[Key], values: &mut [f32]) -> Result<(), CheckpointError> {
        let mut rest = values;
        for key in keys {
            let (value, behind) = rest.split_at_mut(self.shape.len_of(*key));
            self.values.read(self.shape.offset(*key), value)?;
            rest = behind;
        }
        Ok(())
    }

    /// Writes the value of a key, as long as all could be read. Best if a thread asks for keys of
    /// one node in order.
    pub(crate) fn write(&self, nodes: usize, key: Key, value: &mut [f32]) {
        if self.failed.get().is_some() {
            return;
        }
        let start = self.shape.offset(key);
        let read = AHEAD.with_borrow_mut(|ahead| {
            let ahead = match ahead {
                Some(ahead) if ahead.is_of(&self.values) => ahead,
                ahead => ahead.insert(Ahead::new(&self.values)),
            };
            let range = start..start + value.len();
            let read = ahead.get_before(range, |most| self.end_of_row(nodes, key, most))?;
            value.copy_from_slice(read);
            Ok(())
        });
        if let Err(error) = read {
            // Of several threads that fail at once, the first one's counts.
            let _ = self.failed.set(error);
        }
    }

    /// Returns the end of the values from those of `key` on that are at home on its node, as far as
    /// they are whole before `most`.
    fn end_of_row(&self, nodes: usize, key: Key, most: usize) -> usize {
        let (node, mut end) = (home(key, nodes), self.shape.offset(key));
        for next in (key.0..self.shape.keys()).map(Key) {
            let len = self.shape.len_of(next);
            if home(next, nodes) != node || end + len > most {
                break;
            }
            end += len;
        }
        end
    }

    /// Returns the first error of [`write`](Self::write), and drops the piece of this thread.
    ///
    /// # Errors
    ///
    /// What could not be read.
    pub(crate) fn written(&self) -> Result<(), CheckpointError> {
        AHEAD.take();
        self.failed.get().cloned().map_or(Ok(()), Err)
    }
}

thread_local! {
    /// The piece that this thread has read.
    static AHEAD: RefCell<Option<Ahead>> = const { RefCell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::values::tests::{LEN, in_file, numbers};

    #[test]
    fn a_node_reads_what_is_at_home_there_alone() {
        let all: Vec<f32> = numbers().collect();
        for node in 0..2 {
            // What is at home elsewhere is NaN.
            let values = in_file("homes", |bytes| {
                let elsewhere = (0..LEN as u64).filter(|key| home(Key(*key), 2) != node);
                elsewhere.for_each(|key| bytes[4 + 4 * key as usize..][..4].fill(0xff));
            });
            let stored = Stored::new(Shape::new(&[(LEN as u64, 1)]), values);
            let own = || (0..LEN as u64).filter(|key| home(Key(*key), 2) == node);
            for key in own() {
                let mut value = [0.0];
                stored.write(2, Key(key), &mut value);
                assert_eq!(value, [all[key as usize]], "{key}");
            }
            assert_eq!(stored.written(), Ok(()));
            let other = (0..).map(Key).find(|key| home(*key, 2) != node).expect("there is one");
            stored.write(2, other, &mut [0.0]);
            assert!(stored.written().is_err());
        }
    }
}
