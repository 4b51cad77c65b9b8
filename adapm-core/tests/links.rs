//! Links over datagrams that get lost, repeated, reordered and cut, by seeds.
//!
//! A failure prints one line with its seed. More seeds:
//! `ADAPM_SEEDS=10000 cargo test -p adapm-core --test links`.

use std::collections::BTreeMap;
use std::env;
use std::num::NonZeroU32;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use adapm_core::link::{LinkConfig, Links};
use adapm_core::transport::{Frame, Loss, Received};
use adapm_core::{Instant, NodeId};
use adapm_verify::link::Claim;
use adapm_verify::link::mesh::{self, MeshCounts};
use adapm_verify::{DatagramBug, FaultRates, Faulty};

const SEEDS: u64 = 300;

/// Three nodes send to each other; one may vanish, the others leave: every frame arrives once and
/// in order, goodbyes arrive, only those that are gone are lost, and what is kept is bounded.
#[test]
fn lossy_networks_keep_every_claim() {
    let (from, to) = match number("ADAPM_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("ADAPM_SEEDS").unwrap_or(SEEDS)),
    };
    let mut counts = MeshCounts::default();
    let mut failures = 0;
    for seed in from..to {
        let result = panic::catch_unwind(AssertUnwindSafe(|| mesh::run(seed, None)));
        match result {
            Ok(Ok(run)) => counts.merge(&run),
            Ok(Err(broken)) => {
                println!("ADAPM_SEED={seed} cargo test -p adapm-core --test links # {broken:?}");
                failures += 1;
            }
            Err(_) => {
                println!("ADAPM_SEED={seed} cargo test -p adapm-core --test links # panicked");
                failures += 1;
            }
        }
    }
    println!("{} meshes: {counts:?}", to - from);
    assert_eq!(failures, 0, "meshes that break a claim");
    if to - from >= SEEDS {
        let MeshCounts { delivered, refused, network, stale, vanished, lost, failed, .. } = counts;
        let many = [delivered, network.lost, network.repeated, network.reordered, network.cut];
        assert!(
            many.iter().all(|count| *count >= 1_000),
            "the meshes have become tame: {counts:?}"
        );
        let some = [refused, stale, vanished, lost, failed];
        assert!(some.iter().all(|count| *count >= 50), "the meshes have become tame: {counts:?}");
    }
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(mesh::run(3, None), mesh::run(3, None));
    assert_ne!(mesh::run(3, None), mesh::run(4, None));
}

#[test]
fn planted_mistakes_are_found_by_the_claim_that_they_break() {
    for bug in DatagramBug::ALL {
        let broken = (0..20).find_map(|seed| mesh::run(seed, Some(bug)).err());
        let broken = broken.unwrap_or_else(|| panic!("{bug} is not found"));
        assert_eq!(broken.claim, Claim::broken_by_datagrams(bug), "{bug}: {broken:?}");
    }
}

/// Packets behind one that was lost are not sent again, and it is sent again within a round trip: a
/// network that loses every twentieth datagram costs a few times the time of a sound one, and a
/// tenth of the datagrams.
#[test]
fn a_lost_datagram_costs_little_time_and_little_traffic() {
    let sound = transfer(FaultRates::default(), 0);
    for seed in 0..20 {
        let lossy = transfer(FaultRates { lost: 5, ..FaultRates::default() }, seed);
        println!("seed {seed}: {lossy:?} beside {sound:?}");
        assert!(lossy.time < TIME_FACTOR * sound.time, "seed {seed}: {lossy:?} beside {sound:?}");
        assert!(10 * lossy.written < 11 * sound.written, "seed {seed}: {lossy:?} beside {sound:?}");
    }
}

/// A peer that sends more than this node takes, or does not keep to its window, fills no memory;
/// what was refused comes again.
#[test]
fn what_waits_for_the_user_is_bounded() {
    let config = LinkConfig::datagrams(Duration::from_secs(10));
    let mut net = Net::new(config, FaultRates::default(), 0);
    let mut small = config;
    small.window_packets = 8;
    net.ends[1] = Links::new(NodeId(1), 2, life(1), small);
    for _ in 0..100 {
        net.send(0, 100);
    }
    net.takes = [true, false];
    while net.now < Instant::ZERO + Duration::from_secs(1) {
        net.step();
        let (packets, _) = net.ends[1].kept();
        assert!(packets <= small.window_packets + 1, "{packets} packets wait");
    }
    net.takes = [true; 2];
    while net.received < 100 {
        assert!(net.now < Instant::ZERO + Duration::from_secs(9), "{} came", net.received);
        net.step();
    }
}

/// A frame of a user that takes nothing for a while, and is lost, is repeated meanwhile; and there
/// is always something to wait for.
#[test]
fn a_node_whose_user_is_busy_repeats_what_was_lost() {
    let mut net =
        Net::new(LinkConfig::datagrams(Duration::from_secs(10)), FaultRates::default(), 0);
    for node in [0, 1] {
        net.send(node, 100);
    }
    while net.received < 2 {
        net.step();
    }
    net.takes = [false, true];
    net.send(1, 100);
    let taken = net.now + Duration::from_millis(500);
    while net.now < taken {
        net.step();
    }
    net.send(0, 100);
    net.serve(0);
    net.flights.clear();
    let sent = net.now;
    while net.received < 3 {
        assert!(net.now < sent + Duration::from_millis(300), "a lost frame is not repeated");
        net.step();
    }
    // Longer than silence takes to make a node suspect.
    while net.now < sent + Duration::from_secs(5) {
        net.step();
    }
    net.takes = [true; 2];
    net.step();
    assert_eq!((net.received, net.lost), (4, Vec::new()));
}

/// A process takes the place of one that was met: its peer hears that, before silence alone would
/// lose it.
#[test]
fn a_peer_that_restarts_is_lost_as_restarted() {
    let mut net =
        Net::new(LinkConfig::datagrams(Duration::from_secs(10)), FaultRates::default(), 0);
    net.send(1, 100);
    while net.received == 0 {
        net.step();
    }
    net.restart();
    while net.lost.is_empty() {
        assert!(net.now < Instant::ZERO + Duration::from_secs(5), "nobody is lost");
        net.step();
    }
    assert_eq!(net.lost, [(0, NodeId(1), Loss::Restarted)]);
}

/// The same datagrams say nothing as long as the process that was met is there: they may be late.
#[test]
fn late_datagrams_of_an_earlier_process_lose_nobody() {
    let mut net =
        Net::new(LinkConfig::datagrams(Duration::from_secs(10)), FaultRates::default(), 0);
    net.restart();
    let mut hello = Vec::new();
    assert_eq!(net.ends[0].poll_datagram(net.now, &mut hello), Some(NodeId(1)));
    net.ends[1].handle_datagram(net.now, NodeId(0), &hello).expect("it is sound");
    let mut late = Vec::new();
    assert_eq!(net.ends[1].poll_datagram(net.now, &mut late), Some(NodeId(0)));
    net.restart();
    net.send(1, 100);
    while net.now < Instant::ZERO + Duration::from_secs(20) {
        net.step();
        if net.received > 0 {
            net.ends[0].handle_datagram(net.now, NodeId(1), &late).expect("it is sound");
        }
    }
    assert_eq!((net.received, &net.lost[..]), (1, &[][..]));
}

/// Virtual time of a transfer, and bytes that its sender wrote.
#[derive(Debug)]
struct Transfer {
    time: Duration,
    written: usize,
}

/// Sends 1 MiB in frames of 64 KiB.
fn transfer(rates: FaultRates, seed: u64) -> Transfer {
    let mut net = Net::new(LinkConfig::datagrams(Duration::from_secs(10)), rates, seed);
    for _ in 0..16 {
        net.send(0, 64 << 10);
    }
    while net.received < 16 {
        net.step();
    }
    Transfer {
        time: Duration::from_nanos(net.now.nanos_since(Instant::ZERO)),
        written: net.written,
    }
}

/// Two nodes and a network with a round trip of 2 ms that carries 1 Gbit/s each way.
struct Net {
    now: Instant,
    /// Steps since the time has changed.
    still: u32,
    ends: [Links; 2],
    config: LinkConfig,
    network: Faulty<usize>,
    /// Datagrams on their way, with their receiver, by the time of arrival and a number.
    flights: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    numbers: u64,
    /// The time from which on each way is free.
    is_free: [Instant; 2],
    /// Bytes that node 0 wrote.
    written: usize,
    received: usize,
    /// False for a node whose user is busy with something else.
    takes: [bool; 2],
    /// Who reported which loss.
    lost: Vec<(usize, NodeId, Loss)>,
}

impl Net {
    fn new(config: LinkConfig, rates: FaultRates, seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            still: 0,
            ends: [0, 1].map(|id| Links::new(NodeId(id), 2, life(u32::from(id)), config)),
            config,
            network: Faulty::new(rates, seed),
            flights: BTreeMap::new(),
            numbers: 2,
            is_free: [Instant::ZERO; 2],
            written: 0,
            received: 0,
            takes: [true; 2],
            lost: Vec::new(),
        }
    }

    /// Replaces node 1 by another process.
    fn restart(&mut self) {
        self.numbers += 1;
        self.ends[1] = Links::new(NodeId(1), 2, life(self.numbers as u32), self.config);
    }

    fn send(&mut self, from: usize, bytes: usize) {
        let mut frame = Frame::default();
        frame.values.push_bytes(&vec![7; bytes]);
        let to = NodeId(1 - from as u16);
        self.ends[from].send(to, &mut frame).expect("the window has room for all");
    }

    /// Lets both nodes do what is due, and goes on to the next arrival or deadline.
    fn step(&mut self) {
        for node in [0, 1] {
            self.serve(node);
        }
        let arrival = self.flights.first_key_value().map(|((at, _), _)| *at);
        let due = self.ends.iter().filter_map(Links::deadline);
        let next = self.now.max(due.chain(arrival).min().expect("links have heartbeats"));
        self.still = if next == self.now { self.still + 1 } else { 0 };
        assert!(self.still < 10_000, "a node has something due all the time, and does nothing");
        self.now = next;
        while let Some(entry) = self.flights.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, bytes) = entry.remove();
            let from = NodeId(1 - to as u16);
            self.ends[to].handle_datagram(self.now, from, &bytes).expect("datagrams are whole");
        }
    }

    fn serve(&mut self, node: usize) {
        let (mut bytes, mut frame) = (Vec::new(), Frame::default());
        let (now, links) = (self.now, &mut self.ends[node]);
        links.handle_timeout(now);
        while self.takes[node]
            && let Some(received) = links.poll_received(now, &mut frame)
        {
            match received {
                Received::Frame(_) => self.received += 1,
                Received::Lost(lost, loss) => self.lost.push((node, lost, loss)),
                other => panic!("nobody waits, and nothing was refused: {other:?}"),
            }
        }
        while links.poll_datagram(now, &mut bytes).is_some() {
            self.written += if node == 0 { bytes.len() } else { 0 };
            for (to, bytes) in self.network.pass(1 - node, bytes.clone()) {
                self.numbers += 1;
                let is_free = &mut self.is_free[node];
                *is_free = (*is_free).max(now).plus_nanos(8 * bytes.len() as u64);
                let arrival = *is_free + Duration::from_millis(1);
                self.flights.insert((arrival, self.numbers), (to, bytes));
            }
        }
    }
}

fn life(number: u32) -> NonZeroU32 {
    NonZeroU32::new(7 + number).expect("it is not zero")
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}

/// Most time of a transfer that loses every twentieth datagram, in times of one that loses none.
const TIME_FACTOR: u32 = 6;
