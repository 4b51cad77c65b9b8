//! A pipe between two ends: packets in order, until it is cut.

use std::collections::VecDeque;

use adapm_core::link::{Packet, Seq};

use crate::link::End;

/// What an end reads next.
#[derive(Debug)]
pub(super) enum Item {
    /// The first word on a new pipe: where its writer stands.
    Hello(Seq),
    /// A packet.
    Packet(Packet),
    /// The pipe has broken.
    Broken,
}

/// One pipe after the other; what was written to an old one and not read yet is still ahead of what
/// comes on the new one.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    /// By reader.
    ways: [VecDeque<Item>; 2],
    is_broken: bool,
}

impl Pipe {
    /// Puts a packet on its way to `reader`; a broken pipe swallows it.
    pub(super) fn write(&mut self, reader: End, packet: Packet) {
        if !self.is_broken {
            self.ways[reader as usize].push_back(Item::Packet(packet));
        }
    }

    pub(super) fn read(&mut self, reader: End) -> Option<Item> {
        self.ways[reader as usize].pop_front()
    }

    /// Whether a packet is first on its way to `reader`.
    pub(super) fn has_packet(&self, reader: End) -> bool {
        matches!(self.ways[reader as usize].front(), Some(Item::Packet(_)))
    }

    /// Breaks the pipe. Of what is on its way to each end, the first `keep` items still arrive.
    pub(super) fn cut(&mut self, keep: [usize; 2]) {
        if !core::mem::replace(&mut self.is_broken, true) {
            for (way, keep) in self.ways.iter_mut().zip(keep) {
                way.truncate(keep);
                way.push_back(Item::Broken);
            }
        }
    }

    /// A new pipe from `dialer`, which reads nothing of the old one any more.
    pub(super) fn dial(&mut self, dialer: End, stands: Seq) {
        self.ways[dialer as usize].clear();
        self.ways[dialer.other() as usize].push_back(Item::Hello(stands));
        self.is_broken = false;
    }

    /// The listener answers: what it wrote to the old pipe is gone.
    pub(super) fn answer(&mut self, dialer: End, stands: Seq) {
        let way = &mut self.ways[dialer as usize];
        way.retain(|item| matches!(item, Item::Broken));
        way.push_front(Item::Hello(stands));
    }

    /// How much is on its way to `reader`.
    pub(super) fn len(&self, reader: End) -> usize {
        self.ways[reader as usize].len()
    }
}
