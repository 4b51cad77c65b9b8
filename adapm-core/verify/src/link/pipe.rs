//! A pipe between two ends: packets in order, until it is cut.

use std::collections::VecDeque;

use adapm_core::link::{Packet, Seq};

use crate::link::End;

/// The next item that an end reads.
#[derive(Debug)]
pub(super) enum Item {
    /// The first item on a new pipe: its writer's position.
    Hello(Seq),
    /// A packet.
    Packet(Packet),
    /// The pipe has broken.
    Broken,
}

/// A sequence of pipes; unread items of an old one precede those of the new one.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    /// By reader.
    ways: [VecDeque<Item>; 2],
    is_broken: bool,
}

impl Pipe {
    /// Queues a packet for `reader`; a broken pipe swallows it.
    pub(super) fn write(&mut self, reader: End, packet: Packet) {
        if !self.is_broken {
            self.ways[reader as usize].push_back(Item::Packet(packet));
        }
    }

    pub(super) fn read(&mut self, reader: End) -> Option<Item> {
        self.ways[reader as usize].pop_front()
    }

    /// Returns true if a packet is the first item in flight to `reader`.
    pub(super) fn has_packet(&self, reader: End) -> bool {
        matches!(self.ways[reader as usize].front(), Some(Item::Packet(_)))
    }

    /// Breaks the pipe. Of the items in flight to each end, the first `keep` still arrive.
    pub(super) fn cut(&mut self, keep: [usize; 2]) {
        if !core::mem::replace(&mut self.is_broken, true) {
            for (way, keep) in self.ways.iter_mut().zip(keep) {
                way.truncate(keep);
                way.push_back(Item::Broken);
            }
        }
    }

    /// Starts a new pipe from `dialer`, which reads nothing from the old one any more.
    pub(super) fn dial(&mut self, dialer: End, stands: Seq) {
        self.ways[dialer as usize].clear();
        self.ways[dialer.other() as usize].push_back(Item::Hello(stands));
        self.is_broken = false;
    }

    /// Answers at the listener: its items on the old pipe are gone.
    pub(super) fn answer(&mut self, dialer: End, stands: Seq) {
        let way = &mut self.ways[dialer as usize];
        way.retain(|item| matches!(item, Item::Broken));
        way.push_front(Item::Hello(stands));
    }

    /// Returns the number of items in flight to `reader`.
    pub(super) fn len(&self, reader: End) -> usize {
        self.ways[reader as usize].len()
    }
}
