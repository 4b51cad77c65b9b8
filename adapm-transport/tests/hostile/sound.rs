//! Sound nodes: each in a thread, each telling all others the number of frames it has sent, without
//! end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{Frame, Loss, Received, SendError, Transport};
use adapm_transport::net::{Address, Net, NetConfig, PeerState, Token};
use adapm_verify::silence::Silence;

use crate::case::Memory;

/// The sound nodes of a cluster; the others are for the test.
pub(crate) struct SoundNodes {
    members: BTreeMap<u16, Member>,
    memory: Memory,
}

struct Member {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// The observations of a node.
#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    rounds: AtomicU64,
    seen: Mutex<Seen>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    notices: Vec<String>,
    losses: Vec<(u16, Loss)>,
    /// Frames of nodes that are not members.
    foreign: u64,
    /// The states of the links with the others, by node.
    statuses: BTreeMap<u16, (PeerState, Option<String>)>,
    /// Number of times that links went on over another connection.
    resumed: u64,
    error: Option<String>,
}

impl SoundNodes {
    /// Starts `members` of a cluster of `nodes`, each configured by `configure`, and waits until
    /// they talk.
    pub(crate) fn start(nodes: usize, members: &[u16], configure: impl Fn(&mut NetConfig)) -> Self {
        Self::start_with(nodes, members, configure, &[])
    }

    /// Like [`SoundNodes::start`]; `others` are addresses of nodes that are no members.
    pub(crate) fn start_with(
        nodes: usize,
        members: &[u16],
        configure: impl Fn(&mut NetConfig),
        others: &[(u16, SocketAddr)],
    ) -> Self {
        let mut nets: Vec<(u16, Net)> = Vec::new();
        for &node in members {
            let mut config = self::config(node, nodes);
            configure(&mut config);
            nets.push((node, Net::listen(config).expect("loopback has a free port")));
        }
        let mut addresses: Vec<Option<Address>> = vec![None; nodes];
        for (node, net) in &nets {
            addresses[usize::from(*node)] = Some(net.address().clone());
        }
        for (node, address) in others {
            addresses[usize::from(*node)] = Some(Address::Tcp(*address));
        }
        let peers = |node: u16| members.iter().copied().filter(move |&peer| peer != node).collect();
        let members = nets.into_iter().map(|(node, mut net)| {
            net.connect(&addresses);
            let address = net.address().socket().expect("TCP has a socket address");
            let shared = Arc::new(Shared::default());
            let (for_thread, peers) = (Arc::clone(&shared), peers(node));
            let thread = thread::spawn(move || Talk::new(net, peers, for_thread).run());
            (node, Member { address, shared, thread })
        });
        let mut sound = Self { members: members.collect(), memory: Memory::mark() };
        sound.goes_on();
        sound.memory = Memory::mark();
        sound
    }

    /// Returns the address of a member.
    pub(crate) fn address(&self, node: u16) -> SocketAddr {
        self.members[&node].address
    }

    /// Waits until each member has received many more frames of each other one.
    #[track_caller]
    pub(crate) fn goes_on(&self) {
        for (node, member) in &self.members {
            let until = member.shared.rounds.load(Ordering::Relaxed) + ROUNDS;
            let what = format!("node {node} hears no more of the others");
            member.shared.wait(&what, |_| member.shared.rounds.load(Ordering::Relaxed) >= until);
        }
    }

    /// Waits until `node` has reported a refused connection with all these words, and returns the
    /// notice.
    #[track_caller]
    pub(crate) fn notice(&self, node: u16, words: &str) -> String {
        let shared = &self.members[&node].shared;
        shared.wait(&format!("node {node} does not say {words:?}"), |seen| {
            seen.notices.iter().any(|notice| notice.contains(words))
        });
        let seen = shared.seen();
        seen.notices.iter().find(|notice| notice.contains(words)).cloned().expect("waited for it")
    }

    /// Waits until `node` counts `peer` as lost, and returns why.
    #[track_caller]
    pub(crate) fn loss(&self, node: u16, peer: u16) -> Loss {
        let shared = &self.members[&node].shared;
        let of =
            |seen: &Seen| seen.losses.iter().find(|(lost, _)| *lost == peer).map(|(_, loss)| *loss);
        shared.wait(&format!("node {node} does not lose node {peer}"), |seen| of(seen).is_some());
        of(&shared.seen()).expect("waited for it")
    }

    /// Waits until `node` has received `frames` frames of nodes that are no members.
    #[track_caller]
    pub(crate) fn foreign(&self, node: u16, frames: u64) {
        let shared = &self.members[&node].shared;
        shared.wait(&format!("node {node} does not get {frames} frames"), |seen| {
            seen.foreign >= frames
        });
    }

    /// Returns the number of frames that `node` has received of nodes that are no members.
    pub(crate) fn foreign_so_far(&self, node: u16) -> u64 {
        self.members[&node].shared.seen().foreign
    }

    /// Waits until `node` reports these words as the reason for its missing link with `peer`.
    #[track_caller]
    pub(crate) fn fault(&self, node: u16, peer: u16, words: &str) {
        let shared = &self.members[&node].shared;
        shared.wait(&format!("node {node} does not say {words:?} of node {peer}"), |seen| {
            let fault = seen.statuses.get(&peer).and_then(|(_, fault)| fault.as_deref());
            fault.is_some_and(|fault| fault.contains(words))
        });
    }

    /// Waits until `node` has a link with `peer`.
    #[track_caller]
    pub(crate) fn up(&self, node: u16, peer: u16) {
        let shared = &self.members[&node].shared;
        shared.wait(&format!("node {node} has no link with node {peer}"), |seen| {
            seen.statuses.get(&peer).is_some_and(|(state, _)| *state == PeerState::Up)
        });
    }

    /// Returns how many times links of the members went on over another connection so far.
    pub(crate) fn resumed(&self) -> u64 {
        self.members.values().map(|member| member.shared.seen().resumed).sum()
    }

    /// Checks that all members go on, have lost only `lost`, and have not grown; then they leave.
    #[track_caller]
    pub(crate) fn finish(self, lost: &[u16]) {
        self.goes_on();
        self.memory.assert_bounded();
        for (node, member) in &self.members {
            let seen = member.shared.seen();
            assert!(
                seen.losses.iter().all(|(peer, _)| lost.contains(peer)),
                "node {node}: {seen:?}"
            );
        }
        for member in self.members.values() {
            member.shared.ends.store(true, Ordering::Relaxed);
        }
        for (node, member) in self.members {
            member.thread.join().unwrap_or_else(|_| panic!("node {node} has panicked"));
            assert_eq!(member.shared.seen().error, None, "node {node}");
        }
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[track_caller]
    fn wait(&self, what: &str, is_there: impl Fn(&Seen) -> bool) {
        let mut silence = Silence::new();
        let mut seen = self.seen();
        while !is_there(&seen) {
            assert!(!silence.is_too_long(()) && seen.error.is_none(), "{what}: {seen:?}");
            let (next, _) =
                self.news.wait_timeout(seen, POLL).unwrap_or_else(PoisonError::into_inner);
            seen = next;
        }
    }
}

/// The work of a member's thread.
struct Talk {
    net: Net,
    /// Numbers of frames sent to and received from each other member.
    peers: BTreeMap<u16, (u64, u64)>,
    /// The time to send next: more often would only waste time.
    send_at: Instant,
    shared: Arc<Shared>,
}

impl Talk {
    fn new(net: Net, peers: Vec<u16>, shared: Arc<Shared>) -> Self {
        Self {
            net,
            peers: peers.into_iter().map(|peer| (peer, (0, 0))).collect(),
            send_at: Instant::now(),
            shared,
        }
    }

    fn run(mut self) {
        let mut frame = Frame::default();
        while !self.shared.ends.load(Ordering::Relaxed) {
            if self.send_at <= Instant::now() {
                self.send_at = Instant::now() + PACE;
                self.send(&mut frame);
                self.look();
            }
            match self.net.recv(Some(PACE), &mut frame) {
                Ok(Received::Frame(NodeId(node))) => self.take(node, &frame),
                Ok(Received::Lost(NodeId(node), loss)) => {
                    self.peers.remove(&node);
                    self.shared.seen().losses.push((node, loss));
                }
                Ok(Received::Woken | Received::TimedOut) => {}
                Err(error) => {
                    self.shared.seen().error = Some(error.to_string());
                    self.shared.news.notify_all();
                    return;
                }
            }
        }
    }

    fn look(&mut self) {
        let mut seen = self.shared.seen();
        while let Some(notice) = self.net.poll_notice() {
            // Beyond the first notices the rest do not matter; a bound keeps the test itself small.
            if seen.notices.len() < 1_000 {
                seen.notices.push(notice.to_string());
            }
        }
        seen.resumed = self.net.peers().map(|status| status.resumed).sum();
        for status in self.net.peers() {
            seen.statuses.insert(status.node.0, (status.state, status.refused));
        }
        self.shared.news.notify_all();
    }

    /// Sends so that at most two frames are in flight to each.
    fn send(&mut self, frame: &mut Frame) {
        for (&peer, (sent, received)) in &mut self.peers {
            if *sent >= *received + 2 {
                continue;
            }
            frame.clear();
            frame.head.extend_from_slice(&sent.to_le_bytes());
            match self.net.send(NodeId(peer), frame) {
                Ok(()) => *sent += 1,
                Err(SendError::Full) => {}
                Err(SendError::Transport(error)) => {
                    self.shared.seen().error = Some(error.to_string())
                }
            }
        }
    }

    fn take(&mut self, node: u16, frame: &Frame) {
        let Some((_, received)) = self.peers.get_mut(&node) else {
            self.shared.seen().foreign += 1;
            return;
        };
        assert_eq!(frame.head, received.to_le_bytes(), "a frame of node {node} is lost or doubled");
        *received += 1;
        let least = self.peers.values().map(|(_, received)| *received).min().unwrap_or(0);
        self.shared.rounds.store(least, Ordering::Relaxed);
    }
}

/// Returns the settings of a sound node.
pub(crate) fn config(node: u16, nodes: usize) -> NetConfig {
    let mut config = NetConfig::new(NodeId(node), nodes);
    config.layout_digest = DIGEST;
    config.token = Some(token(1));
    if let Ok(kind) = std::env::var("ADAPM_HOSTILE_KIND") {
        config.kind = kind.parse().expect("a kind of endpoint");
    }
    // A busy machine may delay a thread for long.
    config.link = LinkConfig::with_dead_after(Duration::from_secs(20));
    config
}

/// Returns one of several secrets.
pub(crate) fn token(number: u8) -> Token {
    adapm_transport::testing::token(number)
}

pub(crate) const DIGEST: u64 = 0xd1;

const ROUNDS: u64 = 20;
const PACE: Duration = Duration::from_millis(2);
const POLL: Duration = Duration::from_millis(10);
