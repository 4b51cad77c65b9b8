//! The chosen parameters as a process has them after training: all, or if nodes are processes those at home in it.
//!
//! An evaluation starts from them on every node, and no node needs more than its own: a manager asks for the values of keys at
//! their home. Only a checkpoint needs all, on node 0.

use std::ops::Range;
use std::sync::Arc;

use adapm_core::{Key, NodeId};

use crate::run::crew::{home, is_here};
use crate::run::error::TaskError;
use crate::run::parameters::Shape;
use crate::run::peers::Peers;
use crate::run::task::Tell;

/// Parameters of the chosen epoch, without accumulators.
#[derive(Debug)]
pub(crate) struct Kept {
    shape: Shape,
    /// Keys that are here, ascending; `None`: all.
    keys: Option<Arc<Vec<Key>>>,
    /// Their values, in the order of keys.
    values: Arc<Vec<f32>>,
}

impl Kept {
    /// What the workers of this process copied, one behind the other; `shape` is that of values without accumulators.
    pub(crate) fn new(shape: Shape, mut parts: Vec<Vec<f32>>, peers: &Peers<'_>) -> Self {
        let (node, processes) = (peers.node(), peers.processes());
        let keys = (processes > 1).then(|| {
            let keys = (0..shape.keys()).map(Key).filter(|key| is_here(*key, node, processes));
            Arc::new(keys.collect())
        });
        // One worker's part is not copied again.
        let values = if parts.len() == 1 { parts.swap_remove(0) } else { parts.concat() };
        Self { shape, keys, values: Arc::new(values) }
    }

    /// All values, in key order.
    pub(crate) fn all(shape: Shape, values: Arc<Vec<f32>>) -> Self {
        Self { shape, keys: None, values }
    }

    /// Writes the value of a key that is here; others stay as they are.
    pub(crate) fn initial(&self) -> impl Fn(Key, &mut [f32]) + Send + Sync + 'static {
        let (shape, keys, values) = (self.shape.clone(), self.keys.clone(), Arc::clone(&self.values));
        move |key, value| {
            let start = match &keys {
                None => shape.offset(key),
                Some(keys) => {
                    let Ok(at) = keys.binary_search(&key) else { return };
                    shape.offset_among(keys, at)
                }
            };
            value.copy_from_slice(&values[start..start + value.len()]);
        }
    }

    /// Brings all values together at node 0, in key order; `None` elsewhere. Collective; a piece of a few MiB at a time.
    pub(crate) fn gather(
        self,
        peers: &Peers<'_>,
        floats_max: usize,
        tell: &Tell<'_>,
    ) -> Result<Option<Arc<Vec<f32>>>, TaskError> {
        let Some(keys) = &self.keys else { return Ok(Some(self.values)) };
        let shape = &self.shape;
        let mut gathered = Vec::new();
        if peers.node() == 0 {
            gathered.reserve_exact(shape.total());
        }
        let mut next = Key(0);
        while next.0 < shape.keys() {
            let end = piece_end(shape, next, floats_max);
            let bound = |key: Key| shape.offset_among(keys, keys.partition_point(|other| *other < key));
            let own: Vec<u8> =
                self.values[bound(next)..bound(end)].iter().flat_map(|value| value.to_le_bytes()).collect();
            if let Some(pieces) = peers.gather(&own)? {
                merge(shape, next..end, &pieces, &mut gathered)?;
            }
            next = end;
            tell(next.0, shape.keys());
        }
        Ok((peers.node() == 0).then(|| Arc::new(gathered)))
    }
}

/// The key behind a piece of at most `floats_max` floats, at least one key, over all nodes.
fn piece_end(shape: &Shape, start: Key, floats_max: usize) -> Key {
    let (mut end, mut floats) = (start.0 + 1, shape.len_of(start));
    while end < shape.keys() && floats + shape.len_of(Key(end)) <= floats_max {
        floats += shape.len_of(Key(end));
        end += 1;
    }
    Key(end)
}

/// Appends the values of `keys` in order, each from the piece of its home.
fn merge(
    shape: &Shape,
    keys: Range<Key>,
    pieces: &[Vec<u8>],
    gathered: &mut Vec<f32>,
) -> Result<(), TaskError> {
    let mut rests: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    let unintelligible = |node: usize| {
        let node = NodeId(u16::try_from(node).unwrap_or(u16::MAX));
        TaskError::Unintelligible { node }
    };
    for key in (keys.start.0..keys.end.0).map(Key) {
        let node = home(key, pieces.len());
        let value = rests[node].split_off(..4 * shape.len_of(key)).ok_or_else(|| unintelligible(node))?;
        gathered.extend(value.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)));
    }
    match rests.iter().position(|rest| !rest.is_empty()) {
        None => Ok(()),
        Some(node) => Err(unintelligible(node)),
    }
}

/// Floats of a piece of [`Kept::gather`] over all nodes.
pub(crate) const PIECE_FLOATS: usize = 1 << 20;
