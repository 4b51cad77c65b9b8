//! A copy of all main copies at one moment, taken by all workers together (protocol, "Operations").
//!
//! No error leaves a node frozen: each tells of a loss, which thaws all, or of the end of the
//! cluster.

use adapm_core::Key;
use adapm_core::engine::OpBody;
use adapm_core::error::OpError;
use adapm_core::store::Store;

use super::access::Access;
use crate::checkpoint::Part;

/// Copies the part of one of so many workers of the node, into the memory of an earlier part. All
/// have quiesced.
pub(super) fn take<S: Store<Value = f32>>(
    access: &mut Access<S>,
    workers: usize,
    room: Vec<f32>,
) -> Result<Part, OpError> {
    let channels = access.shared().ports.len();
    access.on_channels(channels, &OpBody::Freeze)?;
    // Without the tick that lies behind a barrier: for that, changes would have to leave.
    access.on_channels(1, &OpBody::Barrier)?;
    // For what was on its way.
    access.on_channels(channels, &OpBody::Freeze)?;
    let part = copy(access, workers, room)?;
    // Nobody writes before all have copied.
    access.on_channels(1, &OpBody::Barrier)?;
    access.on_channels(channels, &OpBody::Thaw)?;
    Ok(part)
}

fn copy<S: Store<Value = f32>>(
    access: &mut Access<S>,
    workers: usize,
    mut values: Vec<f32>,
) -> Result<Part, OpError> {
    let part = Part::new(access.main_copies(workers), Vec::new());
    let len = access.elements(&part);
    if values.capacity() < len {
        // Fresh memory takes most of the time of a copy, so there is some more: keys come and go.
        values = vec![0.0; len + len / SPARE];
    }
    // All of it is written below.
    values.resize(len, 0.0);
    let (mut rest, mut all) = (values.as_mut_slice(), part.keys().peekable());
    let mut keys: Vec<Key> = Vec::with_capacity(KEYS_AT_ONCE);
    while all.peek().is_some() {
        keys.clear();
        keys.extend(all.by_ref().take(KEYS_AT_ONCE));
        let len = keys.iter().map(|key| access.value_len(*key)).sum();
        access.pull(&keys, rest.split_off_mut(..len).expect("room for the values of all keys"))?;
    }
    drop(all);
    Ok(part.with_values(values))
}

/// The part of the memory of a copy that is spare.
const SPARE: usize = 64;
/// Keys that are copied at once.
const KEYS_AT_ONCE: usize = 1 << 12;
