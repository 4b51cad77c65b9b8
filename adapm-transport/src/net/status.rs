//! What an endpoint tells of itself and its peers, for rosters, messages and tests.

use core::net::SocketAddr;
use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::link;

use super::pipe::Pipe;

/// How it stands with one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// The peer.
    pub node: NodeId,
    /// How it stands.
    pub state: PeerState,
    /// Where it is dialed, else where it dialed from.
    pub address: Option<SocketAddr>,
    /// Time from a packet to its answer, as the last handshake has met it.
    pub rtt: Option<Duration>,
    /// How often a new connection has replaced one that broke.
    pub resumed: u64,
    /// Why the last connection came to nothing, if none is up.
    pub refused: Option<String>,
}

/// How it stands with one peer, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerState {
    /// Nothing is known of it.
    Missing,
    /// It is being dialed, for the first time or again, or will dial again.
    Connecting,
    /// All is well.
    Up,
    /// Nothing was heard of it for longer than is usual.
    Suspect,
    /// It has ended as it should.
    Left,
    /// It is lost for good.
    Lost,
}

/// What an endpoint has sent and received since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetStats {
    /// Packets with frames that were sent, repeated ones included.
    pub frames_sent: u64,
    /// Frames that were received, each counted once.
    pub frames_received: u64,
    /// Frames that came again after a resumption, and were dropped.
    pub duplicates: u64,
    /// Packets that only said that this node lives.
    pub heartbeats_sent: u64,
    /// Packets that only acknowledged.
    pub acks_sent: u64,
    /// All packets but those of handshakes.
    pub packets_sent: u64,
    /// Bytes of all packets but those of handshakes.
    pub bytes_sent: u64,
    /// Bytes read.
    pub bytes_received: u64,
    /// Handshakes that came to a link, first and repeated ones.
    pub greetings: u64,
    /// Links that went on on a new connection.
    pub resumes: u64,
    /// Calls of the system to read.
    pub reads: u64,
    /// Calls of the system to write.
    pub writes: u64,
}

impl NetStats {
    /// Adds a packet that was sent.
    pub(super) fn count_sent(&mut self, kind: link::Kind, bytes: usize) {
        self.packets_sent += 1;
        self.bytes_sent += bytes as u64;
        match kind {
            link::Kind::Data => self.frames_sent += 1,
            link::Kind::Heartbeat => self.heartbeats_sent += 1,
            link::Kind::Ack => self.acks_sent += 1,
            link::Kind::Part | link::Kind::Bye => {}
        }
    }

    /// Adds what a pipe has done.
    pub(super) fn count_pipe(&mut self, pipe: &Pipe) {
        let (reads, writes) = pipe.calls();
        self.bytes_received += pipe.bytes_in();
        self.reads += reads;
        self.writes += writes;
    }
}
