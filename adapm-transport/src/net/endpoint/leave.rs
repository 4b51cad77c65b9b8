//! The end of an endpoint: goodbyes, and a bounded wait until they are heard.

use core::time::Duration;
use std::time::Instant as Wall;

use adapm_core::transport::{Farewell, Frame};

use super::Net;
use crate::net::connection::Role;

impl Net {
    /// Says goodbye to all peers, behind everything sent before.
    pub(super) fn say_goodbye(&mut self, farewell: Farewell) {
        if core::mem::replace(&mut self.has_left, true) {
            return;
        }
        self.clock.look();
        for at in 0..self.peers.len() {
            let node = self.peers[at].node;
            if node != self.own.node {
                self.peers[at].session.close(farewell);
                self.tend(node);
                self.pump(node);
            }
        }
    }

    /// Works on until all peers have the goodbye, or have ended themselves, or it has taken too long.
    pub(super) fn see_off(&mut self, farewell: Farewell) {
        let started = Wall::now();
        let patience = match farewell {
            Farewell::Finished => self.link.dead_after,
            Farewell::Failed | Farewell::Lost(_) => self.link.dead_after.min(FAILED_WAIT),
        };
        let is_over = |patience: Duration| started.elapsed() >= patience;
        while !is_over(patience) && self.is_waited_for(is_over(patience.min(STRANGER_WAIT))) {
            self.work();
        }
        // The last acknowledgements must not be torn away with the pipes: peers hang up when they have them.
        for (_, connection) in self.connections.iter_mut() {
            connection.pipe.shutdown();
        }
        let ended = Wall::now();
        while ended.elapsed() < LINGER_TIME && self.is_lingering() {
            self.work();
        }
    }

    /// Whether a peer has not got the goodbye; `is_late`: those that were never met do not count.
    fn is_waited_for(&self, is_late: bool) -> bool {
        self.peers.iter().any(|peer| {
            let is_reachable = peer.incarnation.is_some() || !is_late;
            let is_own = peer.node == self.own.node;
            let owes = peer.session.has_left() && peer.pipe.is_some() && !self.is_written(peer.pipe);
            !is_own && is_reachable && (owes || !(peer.is_drained || peer.is_lost))
        })
    }

    fn is_written(&self, slot: Option<usize>) -> bool {
        let connection = slot.and_then(|slot| self.connections.get(slot));
        connection.is_none_or(|connection| connection.pipe.is_flushed())
    }

    fn is_lingering(&self) -> bool {
        // A peer that has not ended itself keeps its side open: only one that has will hang up.
        self.peers.iter().any(|peer| {
            let pipe = peer.pipe.and_then(|slot| self.connections.get(slot));
            peer.session.has_left()
                && pipe.is_some_and(|connection| matches!(connection.role, Role::Attached(_)))
        })
    }

    /// One turn of receiving, for nobody.
    fn work(&mut self) {
        let mut frame = Frame::default();
        for _ in 0..FRAMES_AT_ONCE {
            if self.next_frame(&mut frame).is_none() {
                break;
            }
        }
        self.verdicts.clear();
        self.failures.clear();
        if self.look(Some(WORK_TIME)).is_err() {
            // Without the system's help nothing more can be done; the wait stays bounded by its own clock.
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
