//! Messages between the processes of a group: one message per frame, with the bytes of collectives
//! in its value block.
//!
//! A message takes no more memory than its frame and a list with an entry for each node: the length
//! of a list is checked against the number of nodes before it is allocated.

use core::net::SocketAddr;

use adapm_core::NodeId;
use adapm_core::transport::Frame;
use adapm_core::wire::list;
use serde::{Deserialize, Serialize};

use super::losses::LossReport;

/// The address and identity of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberInfo {
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) pid: u32,
}

/// One message. The order of the variants is part of the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// To node 0: this process has started.
    Here(MemberInfo),
    /// From node 0: the nodes that have started, by node.
    Table(#[serde(deserialize_with = "list")] Vec<Option<MemberInfo>>),
    /// From node 0: these have not started in time; the attempt is over.
    GiveUp {
        #[serde(deserialize_with = "list")]
        missing: Vec<NodeId>,
        waited_millis: u64,
    },
    /// The sender has entered a collective; its first bytes for the receiver are in the value
    /// block.
    Begin(Begin),
    /// The next bytes of the sender's part, in the value block.
    Piece { number: u64 },
    /// All nodes are to stop, for the reason in the code.
    Stop { code: u8 },
    /// The sender leaves in order: it takes part in nothing more.
    Left,
    /// The sender has lost a node, or another node has lost the receiver.
    Lost(LossReport),
    /// The sender ends as it needs that node, which has left in order.
    Lacks(NodeId),
}

/// The begin of a collective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begin {
    /// Collectives are numbered from 1.
    pub(super) number: u64,
    /// The callers' label, and whether all or only node 0 get the result: the same on all nodes.
    pub(super) label: String,
    pub(super) to_all: bool,
    /// Bytes of the sender's part for the receiver.
    pub(super) total: u64,
}

/// The error of a frame that no sound node sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Message {
    /// Writes the message and `bytes` over `frame`.
    pub(super) fn encode(&self, bytes: &[u8], frame: &mut Frame) {
        frame.clear();
        let head = std::mem::take(&mut frame.head);
        frame.head = postcard::to_extend(self, head).expect("a vector takes every message");
        frame.values.resize(bytes.len());
        frame.values.bytes_mut().copy_from_slice(bytes);
    }

    /// Decodes the message of a frame in a group of `nodes`; its bytes are `frame.values`.
    pub(super) fn decode(frame: &Frame, nodes: usize) -> Result<Self, Malformed> {
        if let Some((&(TABLE | GIVE_UP), list)) = frame.head.split_first() {
            let (length, _) = postcard::take_from_bytes::<u64>(list).map_err(|_| Malformed)?;
            if length > nodes as u64 {
                return Err(Malformed);
            }
        }
        match postcard::take_from_bytes(&frame.head) {
            Ok((message, [])) => Ok(message),
            _ => Err(Malformed),
        }
    }
}

/// The messages that begin with a list, by their index among the variants.
const TABLE: u8 = 1;
const GIVE_UP: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte in a frame may stand for an absent info, which takes 64 bytes and more of memory.
    #[test]
    fn a_list_has_no_more_entries_than_there_are_nodes() {
        let table = |infos: usize| {
            let mut frame = Frame::default();
            Message::Table(vec![None; infos]).encode(&[], &mut frame);
            assert_eq!(frame.head[0], TABLE);
            frame
        };
        let missing = |nodes: u16| {
            let mut frame = Frame::default();
            let missing = (0..nodes).map(NodeId).collect();
            Message::GiveUp { missing, waited_millis: 3 }.encode(&[], &mut frame);
            assert_eq!(frame.head[0], GIVE_UP);
            frame
        };
        for (frame, is_read) in
            [(table(8), true), (table(9), false), (missing(8), true), (missing(9), false)]
        {
            assert_eq!(Message::decode(&frame, 8).is_ok(), is_read);
        }
        assert_eq!(Message::decode(&table(16 << 20), 8), Err(Malformed), "a frame full of them");
        let read = Message::decode(&table(8), 8);
        let Ok(Message::Table(infos)) = read else { panic!("{read:?}") };
        assert_eq!(infos.capacity(), 8, "as much room as is needed");
        let mut cut = table(8);
        cut.head.truncate(5);
        assert_eq!(Message::decode(&cut, 8), Err(Malformed));
    }

    #[test]
    fn messages_are_read_as_they_are_written_and_nothing_else_is() {
        let info = MemberInfo {
            address: SocketAddr::from(([10, 0, 0, 7], 4157)),
            host: "a".repeat(60),
            pid: 4_000_000,
        };
        let begin = Begin { number: 3, label: "ranks".to_owned(), to_all: true, total: 1 << 40 };
        let messages = [
            Message::Here(info.clone()),
            Message::Table(vec![None, Some(info)]),
            Message::GiveUp { missing: vec![NodeId(3)], waited_millis: 60_000 },
            Message::Begin(begin),
            Message::Piece { number: u64::MAX },
            Message::Stop { code: 15 },
            Message::Left,
            Message::Lost(LossReport { by: NodeId(1), of: NodeId(2), is_certain: true }),
            Message::Lacks(NodeId(1)),
        ];
        let mut frame = Frame::default();
        for message in messages {
            message.encode(&[1, 2, 3], &mut frame);
            assert_eq!(Message::decode(&frame, 4).as_ref(), Ok(&message));
            assert_eq!(frame.values.bytes(), [1, 2, 3]);
            frame.head.push(0);
            assert_eq!(Message::decode(&frame, 4), Err(Malformed), "a byte too many");
            frame.head.truncate(frame.head.len() - 2);
            assert_eq!(Message::decode(&frame, 4), Err(Malformed), "a byte too few");
        }
    }
}
