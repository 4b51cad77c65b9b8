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
use adapm_core::transport::{Frame, Received};
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

/// Virtual time of a transfer, and bytes of frames that its sender wrote.
#[derive(Debug)]
struct Transfer {
    time: Duration,
    written: usize,
}

/// Sends 1 MiB in frames of 64 KiB over a network with a round trip of 2 ms that carries 1 Gbit/s
/// each way.
fn transfer(rates: FaultRates, seed: u64) -> Transfer {
    const FRAMES: usize = 16;
    let config = LinkConfig::datagrams(Duration::from_secs(10));
    let life = |id: u16| NonZeroU32::new(7 + u32::from(id)).expect("it is not zero");
    let mut ends = [0, 1].map(|id| Links::new(NodeId(id), 2, life(id), config));
    for _ in 0..FRAMES {
        let mut frame = Frame::default();
        frame.values.push_bytes(&vec![7; 64 << 10]);
        ends[0].send(NodeId(1), &mut frame).expect("the window has room for all");
    }
    let mut network = Faulty::new(rates, seed);
    let (mut now, mut flights, mut numbers) = (Instant::ZERO, BTreeMap::new(), 0_u64);
    let (mut written, mut received, mut is_free) = (0, 0, [now; 2]);
    let (mut bytes, mut frame) = (Vec::new(), Frame::default());
    loop {
        for from in [0, 1] {
            ends[from].handle_timeout(now);
            while let Some(report) = ends[from].poll_received(now, &mut frame) {
                assert_eq!((report, frame.len()), (Received::Frame(NodeId(0)), 64 << 10));
                received += 1;
            }
            while ends[from].poll_datagram(now, &mut bytes).is_some() {
                written += if from == 0 { bytes.len() } else { 0 };
                for (to, bytes) in network.pass(1 - from, bytes.clone()) {
                    numbers += 1;
                    is_free[from] = is_free[from].max(now).plus_nanos(8 * bytes.len() as u64);
                    let arrival = is_free[from] + Duration::from_millis(1);
                    flights.insert((arrival, numbers), (to, bytes));
                }
            }
        }
        if received == FRAMES {
            return Transfer {
                time: Duration::from_nanos(now.nanos_since(Instant::ZERO)),
                written,
            };
        }
        let arrival = flights.first_key_value().map(|((at, _), _)| *at);
        let due = ends.iter().filter_map(Links::deadline);
        now = now.max(due.chain(arrival).min().expect("the transfer is not over"));
        while let Some(entry) = flights.first_entry()
            && entry.key().0 <= now
        {
            let (to, bytes) = entry.remove();
            let from = NodeId(1 - to as u16);
            ends[to].handle_datagram(now, from, &bytes).expect("datagrams are whole");
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}

/// Most time of a transfer that loses every twentieth datagram, in times of one that loses none.
const TIME_FACTOR: u32 = 6;
