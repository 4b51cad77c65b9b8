//! One cluster of nodes of all kinds: every kind talks with every other, whichever of the two
//! dials.
//!
//! Not here: transports of a single process ([`adapm_transport::inproc`]), which link no processes
//! and so cannot be mixed in.

#![cfg(all(feature = "tokio", feature = "zmq"))]

mod support;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport};
use adapm_transport::net::{Address, Kind, Net, NetConfig};
use adapm_verify::rng::Rng;
use adapm_verify::silence::Silence;
use support::{Faults, Proxy};

/// Each kind once among those that are dialed by the other half, and once among those that dial it.
const KINDS: [Kind; 8] =
    [Kind::Tcp, Kind::Unix, Kind::Tokio, Kind::Zmq, Kind::Zmq, Kind::Tokio, Kind::Unix, Kind::Tcp];
const NODES: usize = KINDS.len();
/// One turn of receiving.
const TURN: Duration = Duration::from_millis(2);

/// The numbers of frames that one node has sent and received, by peer.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    sent: [u64; NODES],
    received: [u64; NODES],
    /// Sums of all integers.
    sent_sum: [i64; NODES],
    received_sum: [i64; NODES],
    /// Number of times that a link went on on a new connection.
    resumed: [u64; NODES],
}

#[test]
fn every_kind_talks_with_every_kind() {
    let ends = listen();
    let tallies = run(connect(ends, |_, address| address), 100, || true);
    let mut matrix = [[0; 4]; 4];
    for (to, tally) in tallies.iter().enumerate() {
        for from in (0..NODES).filter(|from| *from != to) {
            // The node with the higher id dials.
            let (dialing, dialed) = (KINDS[from.max(to)], KINDS[from.min(to)]);
            matrix[place(dialing)][place(dialed)] += tally.received[from];
        }
    }
    let pairs: usize = matrix.iter().flatten().filter(|frames| **frames >= 200).count();
    assert_eq!(pairs, 16, "a pair of kinds has not talked, {matrix:?}");
}

#[test]
fn links_of_all_kinds_go_on_after_cuts() {
    let ends = listen();
    let mut proxies = Vec::new();
    let ends = connect(ends, |dialing, address| {
        let Some(socket) = address.socket() else { return address };
        let faults = Faults {
            cut_after: Some(2_000..300_000),
            reset_percent: 50,
            chunk_max: 9_000,
            ..Faults::none(proxies.len() as u64 ^ dialing as u64)
        };
        let proxy = Proxy::start(socket, faults);
        let route = Address::at(address.kind(), proxy.address()).expect("it has a socket");
        proxies.push((address.kind(), proxy));
        route
    });
    let cuts = |kind: Kind| -> u64 {
        let counts =
            proxies.iter().filter(|(dialed, _)| *dialed == kind).map(|(_, proxy)| proxy.counts());
        counts.map(|counts| counts.resets + counts.ends).sum()
    };
    // The largest frames do not get through a connection that will be cut, so there will be that
    // many.
    let tallies = run(ends, 250, || {
        let is_enough = CUT.into_iter().all(|kind| cuts(kind) >= 40);
        if is_enough {
            proxies.iter().for_each(|(_, proxy)| proxy.calm());
        }
        is_enough
    });
    let mut resumed = [0; 4];
    for (node, tally) in tallies.iter().enumerate() {
        (0..node).for_each(|dialed| resumed[place(KINDS[dialed])] += tally.resumed[dialed]);
    }
    for kind in CUT {
        assert!(resumed[place(kind)] >= 20, "links were resumed {resumed:?} times, by kind");
    }
}

/// Kinds whose connections can be cut.
const CUT: [Kind; 3] = [Kind::Tcp, Kind::Tokio, Kind::Zmq];

fn listen() -> Vec<Net> {
    let open = |(node, kind): (usize, &Kind)| {
        let mut config = NetConfig::new(NodeId(node as u16), NODES);
        config.kind = *kind;
        Net::listen(config).expect("this machine has a loopback address")
    };
    KINDS.iter().enumerate().map(open).collect()
}

/// Gives every node the addresses of those below it, as changed by `route` for the node that dials.
fn connect(mut ends: Vec<Net>, mut route: impl FnMut(usize, Address) -> Address) -> Vec<Net> {
    let addresses: Vec<Address> = ends.iter().map(|end| end.address().clone()).collect();
    let kinds: Vec<Kind> = addresses.iter().map(Address::kind).collect();
    assert_eq!(kinds, KINDS);
    for (node, end) in ends.iter_mut().enumerate() {
        let routes: Vec<Option<Address>> =
            addresses[..node].iter().map(|address| Some(route(node, address.clone()))).collect();
        end.connect(&routes);
    }
    ends
}

/// Lets every node send `frames` frames to every other, and checks that each arrives once and in
/// order; meanwhile calls `watch` until it returns true.
fn run(ends: Vec<Net>, frames: u64, watch: impl Fn() -> bool) -> Vec<Tally> {
    let done = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = ends
        .into_iter()
        .enumerate()
        .map(|(node, end)| {
            let done = Arc::clone(&done);
            thread::spawn(move || Party::new(node, end).play(frames, &done))
        })
        .collect();
    let mut silence = Silence::new();
    while !watch() {
        assert!(threads.iter().all(|thread| !thread.is_finished()), "a node has ended early");
        assert!(!silence.is_too_long(()), "what is watched for does not come");
        thread::park_timeout(TURN);
    }
    let tallies: Vec<Tally> =
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    for to in 0..NODES {
        for from in 0..NODES {
            let (there, here) = (&tallies[from], &tallies[to]);
            assert_eq!(
                (there.sent[to], there.sent_sum[to]),
                (here.received[from], here.received_sum[from])
            );
        }
    }
    tallies
}

/// One node at work.
struct Party {
    node: usize,
    end: Net,
    rng: Rng,
    tally: Tally,
    waiting: [Option<Frame>; NODES],
    scratch: Frame,
}

impl Party {
    fn new(node: usize, end: Net) -> Self {
        Self {
            node,
            end,
            rng: Rng::new(node as u64),
            tally: Tally::default(),
            waiting: Default::default(),
            scratch: Frame::default(),
        }
    }

    fn play(mut self, frames: u64, done: &AtomicUsize) -> Tally {
        let mut silence = Silence::new();
        let mut is_done = false;
        // Peers may need acknowledgements of this node until all are done.
        while done.load(Ordering::SeqCst) < NODES {
            assert!(
                !silence.is_too_long(self.tally.clone()),
                "n{} waits forever: {:?}",
                self.node,
                self.tally
            );
            let all_sent = self.send_some(frames);
            self.receive();
            let received =
                self.tally.received.iter().filter(|received| **received == frames).count();
            if all_sent && received == NODES - 1 && !std::mem::replace(&mut is_done, true) {
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
        for peer in self.end.peers() {
            self.tally.resumed[peer.node.index()] = peer.resumed;
        }
        self.end.leave(CloseReason::Finished);
        self.tally
    }

    /// Sends a frame to each peer that takes one. Returns true if all were sent.
    fn send_some(&mut self, frames: u64) -> bool {
        let mut all_sent = true;
        let own = self.node;
        for to in (0..NODES).filter(|to| *to != own) {
            if self.waiting[to].is_none() && self.tally.sent[to] < frames {
                self.waiting[to] = Some(self.frame(to));
            }
            let Some(frame) = &mut self.waiting[to] else { continue };
            all_sent = false;
            match self.end.send(NodeId(to as u16), frame) {
                Ok(()) => self.waiting[to] = None,
                Err(SendError::Full) => {}
                Err(error) => panic!("n{} cannot send: {error}", self.node),
            }
        }
        all_sent
    }

    /// Returns a frame with its number, and integers whose sum both sides keep.
    fn frame(&mut self, to: usize) -> Frame {
        let mut frame =
            Frame { head: self.tally.sent[to].to_le_bytes().to_vec(), ..Frame::default() };
        let len = match self.rng.within(0..50) {
            0 => self.rng.within(0..100_000),
            1..10 => 0,
            _ => self.rng.within(0..500),
        };
        let integers: Vec<i64> = (0..len).map(|_| self.rng.bits() as i64).collect();
        frame.values.push(&integers);
        self.tally.sent[to] += 1;
        self.tally.sent_sum[to] =
            integers.iter().fold(self.tally.sent_sum[to], |sum, i| sum.wrapping_add(*i));
        frame
    }

    fn receive(&mut self) {
        match self.end.recv(Some(TURN), &mut self.scratch) {
            Ok(Received::Frame(from)) => {
                let from = from.index();
                assert_eq!(
                    self.scratch.head,
                    self.tally.received[from].to_le_bytes(),
                    "n{from} to n{}",
                    self.node
                );
                self.tally.received[from] += 1;
                for integer in self.scratch.values.values::<i64>() {
                    let sum = &mut self.tally.received_sum[from];
                    *sum = sum.wrapping_add(*integer);
                }
            }
            Ok(Received::Woken | Received::TimedOut) => {}
            Ok(Received::Lost(node, loss)) => panic!("n{} has lost {node}: {loss}", self.node),
            Err(error) => panic!("n{} cannot receive: {error}", self.node),
        }
    }
}

fn place(kind: Kind) -> usize {
    Kind::ALL.iter().position(|other| *other == kind).expect("a kind")
}
