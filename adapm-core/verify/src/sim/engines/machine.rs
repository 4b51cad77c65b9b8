//! Costs of a machine and its network: the parameters of the model, each with its origin.

use adapm_core::wire::message::{Body, Grants, Operation};

use crate::sim::WireConfig;

/// A kind of machine in a kind of network.
///
/// Times are of one node. A node's protocol work is one queue: `channels` channels share it evenly
/// and are as fast as one that is `channels` times as fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Its name on the command line.
    pub name: &'static str,
    /// Time from a sender's memory to a receiver's, for the shortest message, in nanoseconds.
    pub latency_nanos: u64,
    /// Bytes that a node can send, and receive, per second.
    pub bytes_per_second: u64,
    /// Number of channel threads of a node.
    pub channels: u64,
    /// Time of a channel thread for a message sent or received, in nanoseconds: system call, queue,
    /// frame.
    pub message_nanos: u64,
    /// Time of a channel thread for a key in a message, in nanoseconds.
    pub key_nanos: u64,
    /// Bytes that a channel thread copies between a frame and the store per second.
    pub copied_bytes_per_second: u64,
    /// Time of a worker to hand an access over to a channel thread and to be woken by it, in
    /// nanoseconds.
    pub hand_over_nanos: u64,
    /// Number of cores of a node, shared by workers and channel threads.
    pub cores: u64,
}

impl Machine {
    /// The papers' cluster: 32 cores and 4 channels per node, 100 Gbit/s Infiniband (AdaPM §5.1).
    /// Its latency and the costs of a channel thread are not stated: they are assumed, see the
    /// crate's page on the model.
    pub const PAPER: Self = Self {
        name: "paper",
        latency_nanos: 20_000,
        bytes_per_second: 12_500_000_000,
        channels: 4,
        message_nanos: 3_000,
        key_nanos: 200,
        copied_bytes_per_second: 5_000_000_000,
        hand_over_nanos: 10_000,
        cores: 32,
    };

    /// Common rented machines: 10 Gbit/s Ethernet, 8 cores and one channel per node. Assumed.
    pub const ETHERNET: Self = Self {
        name: "ethernet",
        latency_nanos: 50_000,
        bytes_per_second: 1_250_000_000,
        channels: 1,
        cores: 8,
        ..Self::PAPER
    };

    /// A machine without costs of network and protocol: only the waits for rounds remain.
    pub const IDEAL: Self = Self {
        name: "ideal",
        latency_nanos: 0,
        bytes_per_second: 0,
        channels: 1,
        message_nanos: 0,
        key_nanos: 0,
        copied_bytes_per_second: 0,
        hand_over_nanos: 0,
        cores: 0,
    };

    /// All presets.
    pub const ALL: [Self; 3] = [Self::PAPER, Self::ETHERNET, Self::IDEAL];

    /// Returns the links between such machines.
    #[must_use]
    pub fn wire(&self) -> WireConfig {
        WireConfig {
            latency_nanos: self.latency_nanos,
            jitter_nanos: 0,
            bytes_per_second: self.bytes_per_second,
        }
    }

    /// Returns the time that a node's channels spend on a message, on either side.
    #[must_use]
    pub fn service_nanos(&self, keys: u64, bytes: u64) -> u64 {
        let copying = match self.copied_bytes_per_second {
            0 => 0,
            rate => (u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64,
        };
        (self.message_nanos + keys * self.key_nanos + copying) / self.channels.max(1)
    }
}

/// Returns the number of keys that a message names.
pub(super) fn keys_in(body: &Body) -> u64 {
    let grants = |grants: &Grants| grants.at.len();
    let operations = |operation: &Operation| {
        operation.pulls.len() + operation.pushes.len() + operation.sets.len()
    };
    let keys = match body {
        Body::SyncRequest(request) => {
            request.deltas.len()
                + request.sets.len()
                + request.releases.len()
                + request.renews.len()
                + request.intents.keys.len()
                + request.localizes.keys.len()
        }
        Body::SyncResponse(response) => {
            grants(&response.grants) + response.refreshes.len() + response.hand_overs.at.keys.len()
        }
        Body::Grant(sent) => grants(sent),
        Body::Forward(forward) => {
            forward.intents.keys.len()
                + forward.localizes.keys.len()
                + operations(&forward.operation)
        }
        Body::Operation(operation) => operations(operation),
        Body::Answer(answer) => answer.pulls.keys.len() + answer.done.keys.len(),
        Body::Residence(residence) => residence.at.keys.len(),
        Body::News | Body::Retry(_) | Body::Barrier(_) | Body::Quiesce(_) => 0,
    };
    keys as u64
}
