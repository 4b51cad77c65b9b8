//! A stranger that listens at a peer's former address.

use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{CloseReason, Frame, Loss, Transport};
use adapm_transport::net::{Address, Net, NetConfig, PeerState};

use crate::cluster::{Cluster, DEAD_AFTER};
use crate::support::{Faults, Proxy};

/// Links node 1 with node 0, which then vanishes without a goodbye; at its address, node 0 of a
/// cluster of `nodes` listens.
fn replaced(nodes: usize) -> (Cluster, Net) {
    let listen = |node: u16, nodes: usize, bind: &str| {
        let mut config = NetConfig::new(NodeId(node), nodes);
        config.link = LinkConfig::with_dead_after(DEAD_AFTER);
        config.bind = bind.to_owned();
        Net::listen(config).expect("the address is free")
    };
    let mut cluster = Cluster::of(vec![listen(0, 2, ""), listen(1, 2, "")]);
    let target = cluster.end(0).address().socket().expect("a network address");
    let proxy = Proxy::start(target, Faults::none(1));
    let at = proxy.address();
    cluster.end(1).connect(&[Some(Address::Tcp(at))]);
    cluster.until("both are up", Cluster::are_all_up);
    drop(proxy);
    drop(cluster.take(0));
    (cluster, listen(0, nodes, &at.to_string()))
}

#[test]
fn a_listening_peer_that_was_started_anew_is_lost() {
    let (mut cluster, anew) = replaced(2);
    cluster.ends[0] = Some(anew);
    cluster.until("it is lost", |cluster| cluster.state(1, 0) == PeerState::Lost);
    assert_eq!(cluster.told[1].losses, [(0, Loss::Restarted)]);
    assert!(cluster.told[1].errors.is_empty(), "{:?}", cluster.told[1]);
    // The new one learns of it too, if only as a notice: it has met no peer.
    let notice = cluster.end(0).poll_notice().expect("it has turned somebody away").to_string();
    assert!(notice.contains("started anew"), "{notice}");
}

#[test]
fn a_peer_is_lost_by_silence_though_a_stranger_has_its_address() {
    let (mut cluster, stranger) = replaced(7);
    cluster.ends[0] = Some(stranger);
    cluster.until("it is lost", |cluster| cluster.state(1, 0) == PeerState::Lost);
    assert!(matches!(cluster.told[1].losses[..], [(0, Loss::Silent(_))]), "{:?}", cluster.told[1]);
    assert!(cluster.told[1].errors.is_empty(), "{:?}", cluster.told[1]);
}

#[test]
fn a_stranger_where_a_peer_was_that_has_left_is_no_failure() {
    let mut cluster = Cluster::new(2, |_| {});
    let socket = cluster.end(0).address().socket().expect("a network address");
    let mut leaving = cluster.take(0);
    let leaver = thread::spawn(move || leaving.leave(CloseReason::Finished));
    cluster.until("it has left", |cluster| cluster.state(1, 0) == PeerState::Left);
    leaver.join().expect("no panic");
    let mut config = NetConfig::new(NodeId(0), 7);
    config.bind = socket.to_string();
    let mut stranger = Net::listen(config).expect("the port is free again");
    for _ in 0..300 {
        cluster.turn();
        let received = stranger.recv(Some(Duration::from_millis(1)), &mut Frame::default());
        received.expect("nothing fails here");
    }
    assert!(
        cluster.told[1].errors.is_empty() && cluster.told[1].losses.is_empty(),
        "{:?}",
        cluster.told[1]
    );
}
