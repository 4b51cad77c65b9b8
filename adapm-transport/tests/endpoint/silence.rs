//! Traffic of an idle endpoint.

use std::time::{Duration, Instant};

use adapm_core::transport::{Frame, Received, Transport};
use adapm_transport::net::packet::HEADER_BYTES;

use crate::cluster::Cluster;

#[test]
fn an_idle_cluster_sends_nothing_but_heartbeats() {
    let mut cluster = Cluster::new(4, |_| {});
    cluster.check_all_ways();
    // Received frames are acknowledged.
    cluster.pass(Duration::from_millis(200));
    let before: Vec<_> = cluster.ends.iter().flatten().map(|end| end.stats()).collect();
    cluster.pass(Duration::from_millis(800));
    for (end, before) in cluster.ends.iter().flatten().zip(before) {
        let stats = end.stats();
        let packets = stats.packets_sent - before.packets_sent;
        let heartbeats = stats.heartbeats_sent - before.heartbeats_sent;
        assert!(
            packets == heartbeats && heartbeats >= 3,
            "{packets} packets, {heartbeats} heartbeats"
        );
        assert_eq!((stats.frames_sent, stats.acks_sent), (before.frames_sent, before.acks_sent));
        // One in 50 ms to each of three peers, and no more, however late the test is driven.
        assert!(heartbeats <= 3 * 30, "{heartbeats} heartbeats in less than a second");
        assert_eq!(stats.bytes_sent - before.bytes_sent, HEADER_BYTES as u64 * heartbeats);
    }
}

#[test]
fn a_wait_below_a_millisecond_is_not_rounded_up() {
    let mut cluster = Cluster::new(2, |_| {});
    let mut frame = Frame::default();
    let mut least = Duration::MAX;
    // The machine may be busy at any time, but not all the time.
    for _ in 0..200 {
        let start = Instant::now();
        let received = cluster.end(0).recv(Some(Duration::from_micros(100)), &mut frame);
        if received == Ok(Received::TimedOut) {
            least = least.min(start.elapsed());
        }
    }
    assert!(least < Duration::from_millis(1), "the shortest wait of 100 us took {least:?}");
    assert!(least >= Duration::from_micros(100), "it ended early: {least:?}");
}

#[test]
fn peers_are_described() {
    let mut cluster = Cluster::new(3, |_| {});
    for at in 0..3 {
        let peers: Vec<_> = cluster.end(at).peers().collect();
        assert_eq!(peers.len(), 2);
        for peer in peers {
            assert!(peer.rtt.is_some() && peer.resumed == 0 && peer.refused.is_none(), "{peer:?}");
            assert_eq!(Transport::address(cluster.end(at), peer.node), peer.address);
            assert!(peer.address.is_some_and(|address| address.ip().is_loopback()));
        }
        assert_eq!(cluster.end(at).stats().greetings, 2);
    }
}
