//! Links on which bytes pass and packets take long, and links on which handshakes pass and packets
//! do not, of every kind.

use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::Loss;
use adapm_transport::net::{Address, Kind, LinkFault, Net, NetConfig};

use crate::cluster::Cluster;
use crate::support::{Faults, Proxy};

/// Returns two endpoints of a kind; the second dials the first through a proxy with `faults`.
fn pair(kind: Kind, dead_after: Duration, faults: Faults) -> (Cluster, Proxy) {
    let listen = |node| {
        let mut config = NetConfig::new(NodeId(node), 2);
        (config.kind, config.link) = (kind, LinkConfig::with_dead_after(dead_after));
        Net::listen(config).expect("a free port")
    };
    let mut cluster = Cluster::of(vec![listen(0), listen(1)]);
    let socket = cluster.end(0).address().socket().expect("a network address");
    let proxy = Proxy::start(socket, faults);
    let route = Address::at(kind, proxy.address()).expect("it has a socket");
    cluster.end(1).connect(&[Some(route)]);
    cluster.until("both are up", Cluster::are_all_up);
    (cluster, proxy)
}

fn kinds() -> Vec<Kind> {
    let mut kinds = vec![Kind::Tcp];
    kinds.extend(cfg!(feature = "tokio").then_some(Kind::Tokio));
    kinds.extend(cfg!(feature = "zmq").then_some(Kind::Zmq));
    kinds
}

/// A packet takes longer than the time after which a silent connection is replaced: its bytes show
/// that the peer lives.
#[test]
fn a_slow_link_is_not_given_up() {
    for kind in kinds() {
        // A packet of 16 KiB takes 0.8 s; a connection without a byte is replaced after 0.6 s.
        let faults = Faults { bytes_per_second: Some(20_000), chunk_max: 500, ..Faults::none(4) };
        let (mut cluster, _proxy) = pair(kind, Duration::from_secs(3), faults);
        for (from, to) in [(0, 1), (1, 0)] {
            cluster.send(from, to, &[7; 40_000]);
        }
        cluster.until("both frames have arrived", |cluster| {
            cluster.told.iter().all(|told| told.frames.len() + told.losses.len() > 0)
        });
        for told in &cluster.told {
            assert!(
                told.losses.is_empty() && told.frames[0].1 == [7; 40_000],
                "{kind}: {:?}",
                told.losses
            );
        }
    }
}

/// Connections come up again and again, and none carries a large packet: both give each other up,
/// and the sender knows which size does not pass.
#[test]
fn a_link_that_swallows_large_packets_is_given_up() {
    for kind in kinds() {
        let faults = Faults { swallow_above: Some(1_500), ..Faults::none(5) };
        let (mut cluster, _proxy) = pair(kind, Duration::from_secs(1), faults);
        cluster.send(0, 1, &[7; 700]);
        cluster.until("the small one has arrived", |cluster| !cluster.told[1].frames.is_empty());
        cluster.send(0, 1, &[7; 9_000]);
        cluster.until("both are lost", |cluster| {
            cluster.told.iter().all(|told| !told.losses.is_empty())
        });
        let (1, Loss::Stuck(stall)) = cluster.told[0].losses[0] else {
            panic!("{kind}: {:?}", cluster.told[0].losses)
        };
        assert_eq!((stall.passed, stall.stuck), (700, 9_000), "{kind}");
        let notice = cluster.end(0).poll_notice().expect("it was told before");
        assert!(
            matches!(notice.fault, LinkFault::Stuck(NodeId(1), told) if told.stuck == 9_000),
            "{notice}"
        );
        let text = notice.to_string();
        assert!(
            text.contains("packets up to 700 bytes pass, one of 9.0 KB does not, on 3 connections"),
            "{text}"
        );
    }
}
