//! Endpoints driven by the test's own thread, and their reports.

use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{Frame, Loss, Received, SendError, Transport};
use adapm_transport::net::{Net, NetConfig, NetError, PeerState, network_with};
use adapm_verify::silence::Silence;

/// A dead time that no test reaches: an earlier end was not caused by silence.
pub(crate) const NEVER_DEAD: Duration = Duration::from_secs(3_600);
/// A dead time that no thread of a busy machine exceeds by accident, and that a test can wait for.
pub(crate) const DEAD_AFTER: Duration = Duration::from_millis(1_000);

/// The reports of an endpoint, in order.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) frames: Vec<(u16, Vec<u8>)>,
    pub(crate) losses: Vec<(u16, Loss)>,
    pub(crate) errors: Vec<NetError>,
}

/// Endpoints by node id; `None` once ended.
pub(crate) struct Cluster {
    pub(crate) ends: Vec<Option<Net>>,
    pub(crate) told: Vec<Told>,
}

impl Cluster {
    /// Creates endpoints with links to each other.
    pub(crate) fn new(nodes: usize, adjust: impl Fn(&mut NetConfig)) -> Self {
        let mut cluster = Self::apart(nodes, adjust);
        cluster.until("all are up", |cluster| cluster.are_all_up());
        cluster
    }

    /// Creates endpoints that know each other's addresses and have not met.
    pub(crate) fn apart(nodes: usize, adjust: impl Fn(&mut NetConfig)) -> Self {
        let adjust = |config: &mut NetConfig| {
            config.link = LinkConfig::with_dead_after(DEAD_AFTER);
            adjust(config);
        };
        Self::of(network_with(nodes, adjust).expect("this machine has a loopback address"))
    }

    pub(crate) fn of(ends: Vec<Net>) -> Self {
        let told = ends.iter().map(|_| Told::default()).collect();
        Self { ends: ends.into_iter().map(Some).collect(), told }
    }

    pub(crate) fn end(&mut self, node: usize) -> &mut Net {
        self.ends[node].as_mut().expect("it has not ended")
    }

    /// Takes an endpoint out: it is not driven from here on.
    pub(crate) fn take(&mut self, node: usize) -> Net {
        self.ends[node].take().expect("it has not ended")
    }

    pub(crate) fn state(&self, at: usize, of: u16) -> PeerState {
        let end = self.ends[at].as_ref().expect("it has not ended");
        end.peers().find(|peer| peer.node == NodeId(of)).expect("a peer").state
    }

    pub(crate) fn are_all_up(&self) -> bool {
        let mut peers = self.ends.iter().flatten().flat_map(Net::peers);
        peers.all(|peer| peer.state == PeerState::Up)
    }

    /// Sends a frame of these bytes, for which there must be room.
    pub(crate) fn send(&mut self, from: usize, to: u16, bytes: &[u8]) {
        let mut frame = Frame { head: bytes.to_vec(), ..Frame::default() };
        match self.end(from).send(NodeId(to), &mut frame) {
            Ok(()) => {}
            Err(SendError::Full) => panic!("the way is full"),
            Err(SendError::Transport(error)) => panic!("{error}"),
        }
    }

    /// Drives every endpoint once.
    pub(crate) fn turn(&mut self) {
        let mut frame = Frame::default();
        for (end, told) in self.ends.iter_mut().zip(&mut self.told) {
            let Some(end) = end else { continue };
            let mut wait = Duration::from_millis(1);
            for _ in 0..64 {
                match end.recv(Some(wait), &mut frame) {
                    Ok(Received::Frame(from)) => told.frames.push((from.0, frame.head.clone())),
                    Ok(Received::Lost(node, loss)) => told.losses.push((node.0, loss)),
                    Ok(Received::Woken) => {}
                    Ok(Received::TimedOut) => break,
                    Err(error) => told.errors.push(error),
                }
                wait = Duration::ZERO;
            }
        }
    }

    /// Drives every endpoint until `is_true` returns true.
    pub(crate) fn until(&mut self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let mut silence = Silence::new();
        while !is_true(self) {
            let told = self
                .told
                .iter()
                .map(|told| told.frames.len() + told.losses.len() + told.errors.len());
            assert!(
                !silence.is_too_long(told.sum::<usize>()),
                "it never came true that {what}: {:?}",
                self.told
            );
            self.turn();
        }
    }

    /// Drives every endpoint for a while.
    pub(crate) fn pass(&mut self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            self.turn();
        }
    }

    /// Checks that frames pass in both directions between each two endpoints that have not ended.
    pub(crate) fn check_all_ways(&mut self) {
        let alive: Vec<u16> = (0..self.ends.len() as u16)
            .filter(|node| self.ends[usize::from(*node)].is_some())
            .collect();
        let before: Vec<usize> = self.told.iter().map(|told| told.frames.len()).collect();
        for from in &alive {
            for to in alive.iter().filter(|to| *to != from) {
                self.send(usize::from(*from), *to, &[*from as u8, *to as u8]);
            }
        }
        let all = alive.len() - 1;
        let at = alive.clone();
        self.until("all frames have arrived", |cluster| {
            at.iter().all(|node| {
                cluster.told[usize::from(*node)].frames.len() == before[usize::from(*node)] + all
            })
        });
        for to in &alive {
            let mut frames = self.told[usize::from(*to)].frames.split_off(before[usize::from(*to)]);
            frames.sort();
            let expected: Vec<(u16, Vec<u8>)> = alive
                .iter()
                .filter(|from| *from != to)
                .map(|from| (*from, vec![*from as u8, *to as u8]))
                .collect();
            assert_eq!(frames, expected);
        }
    }
}
