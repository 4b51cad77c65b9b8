//! What a bye carries: why its sender ends.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::NodeId;
use crate::transport::Farewell;

/// The bytes that say `farewell`.
pub(crate) fn bytes_of(farewell: Farewell) -> Vec<u8> {
    match farewell {
        Farewell::Finished => vec![0],
        Farewell::Failed => vec![1],
        Farewell::Lost(NodeId(node)) => {
            let [low, high] = node.to_le_bytes();
            vec![2, low, high]
        }
    }
}

/// What the bytes say; `None` if it cannot be understood.
pub(crate) fn read(bytes: &[u8]) -> Option<Farewell> {
    match *bytes {
        [0] => Some(Farewell::Finished),
        [1] => Some(Farewell::Failed),
        [2, low, high] => Some(Farewell::Lost(NodeId(u16::from_le_bytes([low, high])))),
        _ => None,
    }
}
