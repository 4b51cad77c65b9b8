//! One turn of an endpoint's work: news of pipes and times, packets; and the end.

use core::time::Duration;
use std::time::Instant as Wall;

use adapm_core::transport::{Farewell, Frame};
use adapm_core::{Instant, NodeId};

use super::Net;
use crate::net::clock::later;
use crate::net::connection::{Role, Slot};
use crate::net::error::{NetError, Trouble};
use crate::net::packet::{Kind, Packet};

impl Net {
    /// Waits until there is news, a time has come, or `wait` is over; then looks at everything.
    pub(super) fn look(&mut self, wait: Option<Duration>) -> Result<(), NetError> {
        self.since_look = 0;
        let now = self.links.wait(wait)?;
        self.look_at = later(now, LOOK_TIME);
        if let Some(mut accepting) = self.links.pipes_mut().begin_accepting(now) {
            while let Some((pipe, remote)) = self.links.pipes_mut().accept(&mut accepting, now) {
                self.handshakes.admit(&mut self.links, pipe, remote);
            }
        }
        self.keep_times(now);
        Ok(())
    }

    /// The next frame of a pipe that may have one, pipe by pipe.
    pub(super) fn next_frame(&mut self, frame: &mut Frame) -> Option<NodeId> {
        for _ in 0..PACKETS_PER_TURN {
            let (slot, read) = self.links.pipes_mut().next_packet()?;
            match read {
                Ok(None) => {}
                Ok(Some(packet)) => {
                    if let Some(node) = self.handle_packet(slot, packet, frame) {
                        return Some(node);
                    }
                }
                Err(fault) => self.handshakes.give_up(&mut self.links, slot, Trouble::Fault(fault)),
            }
        }
        None
    }

    /// Says goodbye to all peers, once.
    pub(super) fn say_goodbye(&mut self, farewell: Farewell) {
        if !core::mem::replace(&mut self.has_left, true) {
            self.links.say_goodbye(farewell);
        }
    }

    /// Works on until all peers have the goodbye, or have ended themselves, or it has taken too
    /// long.
    pub(super) fn see_off(&mut self, farewell: Farewell) {
        let started = Wall::now();
        let dead_after = self.links.config().dead_after;
        let patience = match farewell {
            Farewell::Finished => dead_after,
            Farewell::Failed | Farewell::Lost(_) => dead_after.min(FAILED_WAIT),
        };
        let is_over = |patience: Duration| started.elapsed() >= patience;
        while !is_over(patience) && self.links.are_waited_for(is_over(patience.min(STRANGER_WAIT))) {
            self.work();
        }
        // The last acknowledgements must not be torn away with the pipes: peers hang up when they
        // have them.
        self.links.pipes_mut().shut_down();
        let ended = Wall::now();
        while ended.elapsed() < LINGER_TIME && self.links.are_lingering() {
            self.work();
        }
    }

    fn handle_packet(&mut self, slot: Slot, packet: Packet, frame: &mut Frame) -> Option<NodeId> {
        let role = &self.links.pipes().get(slot)?.role;
        match (role, packet.kind) {
            (Role::Closing, _) => None,
            (Role::Attached(node), Kind::Link(kind)) => {
                let node = *node;
                self.links.serve(node, kind, packet, frame)
            }
            (Role::Dialing(..) | Role::Listening(_), Kind::Greeting(greeting)) => {
                self.handshakes.greet(&mut self.links, slot, greeting, &packet.frame.head);
                None
            }
            _ => {
                self.handshakes.refuse_malformed(&mut self.links, slot);
                None
            }
        }
    }

    /// Does what is due.
    fn keep_times(&mut self, now: Instant) {
        for at in 0..self.links.peers().len() {
            let node = self.links.peers()[at].node;
            if self.links.keep_times(node, now) {
                self.handshakes.dial(&mut self.links, node);
            }
        }
        for slot in self.links.pipes().late(now) {
            self.handshakes.give_up(&mut self.links, slot, Trouble::Slow);
        }
    }

    /// One turn of receiving, for nobody.
    fn work(&mut self) {
        let mut frame = Frame::default();
        for _ in 0..FRAMES_AT_ONCE {
            if self.next_frame(&mut frame).is_none() {
                break;
            }
        }
        self.links.told_mut().clear();
        if self.look(Some(WORK_TIME)).is_err() {
            // Without the system's help nothing more can be done; the wait stays bounded by its own
            // clock.
            std::thread::yield_now();
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // Peers that are told need not wait until silence tells them.
        self.say_goodbye(Farewell::Failed);
    }
}

/// Time after which all pipes are looked at, if the user of the frames takes long for each.
const LOOK_TIME: Duration = Duration::from_millis(2);
/// Packets without a frame after which others get their turn.
const PACKETS_PER_TURN: usize = 64;
/// Longest wait for peers after a failure.
const FAILED_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for peers that were never met.
const STRANGER_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for peers that have ended to hang up.
const LINGER_TIME: Duration = Duration::from_millis(200);
/// Frames between two looks while leaving.
const FRAMES_AT_ONCE: u32 = 256;
/// One look while leaving.
const WORK_TIME: Duration = Duration::from_millis(20);
